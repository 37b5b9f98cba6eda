"""Signal and noise of a metric: how far models are apart against how far one model is from itself.

Notation: m models, each with r repeats (seeds, or the last checkpoints of one run) on the same items; y_kj is the
metric of repeat j of model k. Mean squares between and within models,
MSB = r/(m-1) sum_k (mean_k - mean)^2 and MSW = 1/(m(r-1)) sum_kj (y_kj - mean_k)^2.

- ``noise`` = sqrt(MSW), the spread over repeats of one model.
- ``signal`` = sqrt(max(0, (MSB - MSW)/r)), the spread between models without the part that noise makes.
- ``ratio`` = signal / noise. Its interval is exact where repeats scatter normally and alike for all models: MSB/MSW
  over its true value is F with m-1 and m(r-1) degrees of freedom (Searle, Casella & McCulloch 1992, chapter 3).
- ``decision_accuracy``: how often one repeat of each of two models orders them as the mean of their other repeats does;
  the others, so that no run judges itself.

Signal and Noise (arXiv 2508.13144) divides the relative spread of models by the relative deviation over last
checkpoints; here both are in the metric's unit, which cancels, and the noise is taken out of the signal. Single items
scatter too much for so few repeats, so the variance within models of an item is drawn towards that of all items by as
much as the items themselves say (Smyth 2004, moderated F); items that carry signal are named at a false discovery rate
of 10 % (Benjamini & Hochberg 1995). Repeats of last checkpoints are alike; noise over seeds is larger: never mix them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, fdtrc, fdtri, polygamma

from wholestack.errors import InputError
from wholestack.evals.comparable import unit_of
from wholestack.evals.comparison import NOT_BY_ALL
from wholestack.evals.items import metric_name
from wholestack.evals.scored import ScoredItems, match_items
from wholestack.evals.statistics import Floats, Interval
from wholestack.record import Record

FEWEST_MODELS = 3
"""With two models there is one difference, and no spread of differences."""
FEWEST_REPEATS = 2
FALSE_DISCOVERY_RATE = 0.1
ITEMS_SHOWN = 10
_NO_NOISE = 1e-12
_MANY = 1e9
"""Degrees of freedom that stand for infinitely many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalToNoise(Record):
    """Spread between models against spread over repeats, of one metric on some items."""

    models: int
    repeats: int
    """Of each model."""
    items: int
    mean: float
    """Of the metric over models and repeats."""
    signal: float
    """Standard deviation between models, noise taken out; in the metric's unit."""
    noise: float
    """Standard deviation over the repeats of one model."""
    ratio: float | None
    """Signal over noise; ``None`` where repeats do not differ at all: then the noise is unknown and not zero."""
    interval: Interval | None
    """Of the ratio; ``None`` with it."""
    decision_accuracy: float | None
    """Share of pairs of models that single runs order as the mean of the other runs; a draw counts one half. ``None``
    with the ratio: repeats that are all alike say nothing of how others would order the models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSignal(Record):
    """What one item says about models."""

    id: str
    source: str
    ratio: float | None
    """Spread between models over the moderated spread within, noise taken out; 0 where there is no more than noise,
    ``None`` where no item differs between repeats at all."""
    p_value: float
    """Of the moderated F."""
    carries_signal: bool
    """At a false discovery rate of 10 % over all items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerItem(Record):
    """Which items carry signal; rough for accuracy, where an item is 0 or 1 and nothing like normal."""

    items: int
    carrying: int
    """Items that carry signal."""
    prior_freedom: float | None
    """Degrees of freedom that all items lend to each; ``None`` where they lend everything: all scatter alike."""
    ratios: tuple[ItemSignal, ...]
    """Every item, the strongest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSignal(Record):
    """One part of the item set."""

    source: str
    found: SignalToNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSignal(Record):
    """Signal and noise of one metric."""

    metric: str
    """With the item set."""
    unit: str
    """Of signal and noise; empty for shares."""
    whole: SignalToNoise
    """On all items."""
    sources: tuple[SourceSignal, ...]
    """By source, where there are several; the largest ratio first."""
    per_item: PerItem
    """By item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalReport(Record):
    """Signal and noise of several metrics on the same items, models and repeats."""

    SCHEMA: ClassVar[str] = "signal/1"

    models: tuple[str, ...]
    repeats: int
    """Of each model."""
    passed_over: int
    """Results left out because other models have fewer repeats."""
    items: int
    """Items that every result has scored."""
    not_by_all: int
    """Shared items that some result has not."""
    level: float
    """Of the intervals."""
    warnings: tuple[str, ...]
    """What keeps these numbers from saying more."""
    metrics: tuple[MetricSignal, ...]

    @property
    def can_tell(self) -> bool:
        """Whether every metric has a noise and the models are enough for a spread between them."""
        return len(self.models) >= FEWEST_MODELS and all(each.whole.ratio is not None for each in self.metrics)


def signal_report(
    groups: Mapping[str, Sequence[ScoredItems]],
    *,
    metrics: Sequence[str] = (),
    common: bool = False,
    level: float = 0.95,
) -> SignalReport:
    """Signal and noise of metrics over models with their repeats.

    Args:
        groups: For each model its results: seeds, or last checkpoints. The first ones are taken where some have more.
        metrics: As in :func:`~wholestack.evals.comparison.compare_results`; default loss, choice loss and accuracy, of
            written answers the share of right ones.
        common: Take what the item sets have in common where they differ.
        level: Of the intervals.

    Raises:
        InputError: fewer than two models or repeats, item sets that differ, or an unknown metric.
    """
    if len(groups) < 2:
        raise InputError(f"signal is a spread between models: give two or more, got {len(groups)}")
    repeats = min(len(each) for each in groups.values())
    if repeats < FEWEST_REPEATS:
        short = next(name for name, each in groups.items() if len(each) < FEWEST_REPEATS)
        raise InputError(
            f"noise is a spread over repeats: {short!r} has one result", remedy="give two or more seeds or checkpoints"
        )
    taken = [result for each in groups.values() for result in each[:repeats]]
    scores = [result.scores for result in match_items(taken, common=common).results]
    family = taken[0].family
    keep = np.logical_and.reduce([each.is_scored for each in scores])
    if not keep.any():
        raise InputError(f"no item was scored in every result ({NOT_BY_ALL})", remedy="look at each one's reasons")
    names = [family.full(metric) for metric in metrics or family.usual]
    if any(name.endswith("per_token") for name in names) and not all(each.counts_tokens for each in taken):
        raise InputError("some results do not say how many tokens were scored", remedy="use another normalisation")
    found = []
    for name in names:
        columns = [each.values(name) for each in scores]
        shape = (len(groups), repeats, -1)
        found.append(
            _metric_signal(
                name,
                np.stack([numerator[keep] for numerator, _ in columns]).reshape(shape),
                columns[0][1][keep],
                ids=scores[0].item_ids[keep].tolist(),
                sources=scores[0].sources[keep],
                item_set=scores[0].item_set,
                level=level,
            )
        )
    return SignalReport(
        models=tuple(groups),
        repeats=repeats,
        passed_over=sum(len(each) for each in groups.values()) - len(taken),
        items=int(keep.sum()),
        not_by_all=int((~keep).sum()),
        level=level,
        warnings=_warnings(len(groups), repeats),
        metrics=tuple(found),
    )


def signal_to_noise(values: Floats, weights: Floats, *, level: float = 0.95) -> SignalToNoise:
    """Signal and noise of a metric that is a ratio of sums over items.

    Args:
        values: ``[models, repeats, items]``, numerators.
        weights: ``[items]``; ones for a mean.
        level: Of the interval.

    Raises:
        InputError: fewer than two models or repeats, or no items.
    """
    models, repeats, items = _shape(values)
    metric = values.sum(axis=2) / weights.sum()
    between, within = (float(each) for each in _mean_squares(metric))
    noise_free = within <= (_NO_NOISE * max(1.0, float(np.abs(metric).max()))) ** 2
    ratio = None if noise_free else float(np.sqrt(max(0.0, (between / within - 1) / repeats)))
    return SignalToNoise(
        models=models,
        repeats=repeats,
        items=items,
        mean=float(metric.mean()),
        signal=float(np.sqrt(max(0.0, (between - within) / repeats))),
        noise=float(np.sqrt(within)),
        ratio=ratio,
        interval=None if noise_free else _ratio_interval(between / within, models, repeats, level),
        decision_accuracy=None if noise_free else decision_accuracy(metric),
    )


def decision_accuracy(metric: Floats) -> float:
    """How often single runs order two models as the mean of their other runs does; draws count one half.

    Args:
        metric: ``[models, repeats]``.
    """
    models, repeats = metric.shape
    others = (metric.sum(axis=1, keepdims=True) - metric) / (repeats - 1)
    first, second = np.triu_indices(models, 1)
    agree = []
    for one in range(repeats):
        single = np.sign(metric[first, one, None] - metric[second])
        reference = np.sign(others[first, one, None] - others[second])
        agree.append((1 + single * reference).mean() / 2)
    return float(np.mean(agree))


def per_item(values: Floats, ids: Sequence[str], sources: Sequence[str]) -> PerItem:
    """Which items carry signal.

    Args:
        values: ``[models, repeats, items]``, one number an item, not weighted.
        ids: ``[items]``.
        sources: ``[items]``.
    """
    models, repeats, items = _shape(values)
    between, within = _mean_squares(values)
    if not within.any():
        # Repeats that are all alike measure no noise, so nothing can be told from it.
        strength, p_values, ratios, lent = between, np.ones(items), [None] * items, None
    else:
        freedom = models * (repeats - 1)
        prior = _prior(within, freedom)
        moderated = prior.moderate(within, freedom)
        strength, lent = between / moderated, prior.freedom
        p_values = fdtrc(models - 1, freedom + (_MANY if lent is None else lent), strength)
        ratios = np.sqrt(np.maximum(0, (strength - 1) / repeats)).tolist()
    carrying = benjamini_hochberg(p_values, FALSE_DISCOVERY_RATE)
    return PerItem(
        items=items,
        carrying=int(carrying.sum()),
        prior_freedom=lent,
        ratios=tuple(
            ItemSignal(
                id=ids[at],
                source=sources[at],
                ratio=ratios[at],
                p_value=float(p_values[at]),
                carries_signal=bool(carrying[at]),
            )
            for at in np.argsort(-strength, kind="stable").tolist()
        ),
    )


def benjamini_hochberg(p_values: Floats, rate: float) -> npt.NDArray[np.bool_]:
    """Which tests to believe so that at most a share ``rate`` of them is false on average."""
    order = np.argsort(p_values, kind="stable")
    below = np.flatnonzero(p_values[order] <= rate * np.arange(1, len(order) + 1) / len(order))
    kept = np.zeros(len(order), dtype=bool)
    if len(below):
        kept[order[: below[-1] + 1]] = True
    return kept


def _metric_signal(
    name: str,
    values: Floats,
    weights: Floats,
    *,
    ids: Sequence[str],
    sources: npt.NDArray[np.str_],
    item_set: str,
    level: float,
) -> MetricSignal:
    parts = []
    names = np.unique(sources)
    for source in names.tolist() if len(names) > 1 else ():
        inside = sources == source
        found = signal_to_noise(values[:, :, inside], weights[inside], level=level)
        parts.append(SourceSignal(source=source, found=found))
    return MetricSignal(
        metric=metric_name(name, item_set),
        unit=unit_of(name),
        whole=signal_to_noise(values, weights, level=level),
        sources=tuple(sorted(parts, key=lambda each: -(np.inf if each.found.ratio is None else each.found.ratio))),
        per_item=per_item(values / weights, ids, sources.tolist()),
    )


def _shape(values: Floats) -> tuple[int, int, int]:
    models, repeats, items = values.shape
    if models < 2 or repeats < FEWEST_REPEATS or items < 1:
        raise InputError(
            f"signal and noise need two models, two repeats and an item, got {models}, {repeats} and {items}"
        )
    return models, repeats, items


def _mean_squares(values: Floats) -> tuple[Floats, Floats]:
    """Between and within models, over axis 0 (models) and 1 (repeats)."""
    models, repeats = values.shape[:2]
    means = values.mean(axis=1)
    between = repeats * ((means - means.mean(axis=0)) ** 2).sum(axis=0) / (models - 1)
    within = ((values - means[:, None]) ** 2).sum(axis=(0, 1)) / (models * (repeats - 1))
    return between, within


def _ratio_interval(observed: float, models: int, repeats: int, level: float) -> Interval:
    degrees = models - 1, models * (repeats - 1)
    largest, smallest = fdtri(*degrees, 0.5 + level / 2), fdtri(*degrees, 0.5 - level / 2)
    low, high = (np.sqrt(max(0.0, (observed / quantile - 1) / repeats)) for quantile in (largest, smallest))
    return Interval(low=float(low), high=float(high), level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prior:
    """What the items together say about the variance of one."""

    variance: float
    freedom: float | None
    """Degrees of freedom that it is worth; ``None`` for infinitely many."""

    def moderate(self, variances: Floats, freedom: int) -> Floats:
        if self.freedom is None:
            return np.full(len(variances), self.variance)
        return (self.freedom * self.variance + freedom * variances) / (self.freedom + freedom)


def _prior(variances: Floats, freedom: int) -> _Prior:
    """Scaled inverse chi-squared prior of the items' variances, by the moments of their logarithms (Smyth 2004, 6.2).

    Items without any variance say nothing here and are moderated all the more.
    """
    positive = variances[variances > 0]
    logs = np.log(positive) - digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(logs.var(ddof=1) - polygamma(1, freedom / 2)) if len(positive) > 1 else 0.0
    if excess <= 0:
        return _Prior(variance=float(positive.mean()), freedom=None)
    half = _inverse_trigamma(excess)
    return _Prior(variance=float(np.exp(logs.mean() + digamma(half) - np.log(half))), freedom=2 * half)


def _inverse_trigamma(value: float) -> float:
    """Newton on 1/trigamma, which is convex: it converges from its start (Smyth 2004, appendix)."""
    place = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, place))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, place))
        place += step
        if abs(step) < 1e-10 * place:
            break
    return place


def _warnings(models: int, repeats: int) -> tuple[str, ...]:
    said = []
    if models < FEWEST_MODELS:
        said.append(f"{models} models are too few to tell: their spread rests on one difference")
    elif models < 5:
        said.append(f"{models} models give a wide interval; five or more are better")
    if repeats < 3:
        said.append(f"{repeats} repeats of each model: the noise rests on {models * (repeats - 1)} differences")
    return tuple(said)
