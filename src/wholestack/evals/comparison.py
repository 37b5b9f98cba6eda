"""Which of two or more models is better on the same items, whether that can be seen, and where they differ.

- The difference of a pair is paired: items that all models were scored on, cluster-robust error, Student's t
  (:func:`~wholestack.evals.scores.paired_difference`). Intervals are of single pairs, at the stated level.
- For accuracy and the share of right texts McNemar's exact test counts as well: with few items that only one model has
  right, t is too sure of itself. The larger of the two p-values decides. (McNemar takes items as independent, so it
  never decides alone.)
- With more than two models the p-values are Holm's over all pairs, and what a pair could detect is stated at
  level / pairs. Over the sources of a pair Holm holds as well. So at most 5 % of such comparisons find a difference
  where there is none, whatever the number of models or sources.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np
from scipy.special import bdtr

from wholestack.errors import InputError
from wholestack.evals.comparable import (
    Flags,
    ItemNumbers,
    is_share_of_right,
    lower_is_better,
    relabelled,
    unit_of,
    variant_of,
)
from wholestack.evals.items import metric_name
from wholestack.evals.scored import By, Matched, ScoredItems, match_items
from wholestack.evals.scores import paired_difference
from wholestack.evals.statistics import (
    DetectableDifference,
    Estimate,
    Floats,
    Interval,
    detectable_difference,
    holm,
    ratio_estimate,
)
from wholestack.evals.tasks import Purpose
from wholestack.record import Record

Verdict = Literal["first", "second", "same", "unknown"]

ITEMS_SHOWN = 10
FEWEST_CLUSTERS = 10
"""Of a source that is judged by itself: on two items t believes whatever they happen to share."""
MOST_ITEMS = 10_000_000
NOT_BY_ALL = "not scored by every model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLine(Record):
    """One model in a comparison."""

    name: str
    """Of the model."""
    path: str
    """Of its result."""
    value: float
    """The metric on the items that all models were scored on."""
    standard_error: float | None
    """Of this number alone; the error of a difference is another."""
    unscorable: dict[str, int]
    """Shared items that this model could not be scored on, by reason."""
    left_out: int
    """Items of its result that another one does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactTest(Record):
    """McNemar's exact test on right answers."""

    only_first_right: int
    """Items that the first model has right and the second has not; where a tie of choices is involved it is no win,
    and of several texts behind a question more right ones are."""
    only_second_right: int
    """The other way round."""
    p_value: float
    """Two-sided, against equal chances for both; items taken as independent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDifference(Record):
    """Second minus first on the items of one source."""

    source: str
    items: int
    clusters: int
    difference: float
    interval: Interval | None
    """At the comparison's level, for this source alone; ``None`` with too few clusters to judge."""
    p_holm: float | None
    """Adjusted for the number of sources that are judged; ``None`` with the interval."""
    differs: bool
    """Whether the adjusted p-value is below 1 - level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDifference(Record):
    """An item on which the right answer stands very differently with two models."""

    id: str
    source: str
    context: str
    """Its last characters."""
    answer: str
    """The right one."""
    first: float
    """How it stands with the first model; ``standing`` of the comparison says in which unit."""
    second: float
    """With the second."""
    first_given: str
    """What the first model answered; empty where it chose."""
    second_given: str
    """What the second did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips(Record):
    """Items that one model answers rightly and the other does not."""

    normalisation: str
    """Of the choices' likelihoods; empty of written answers."""
    only_first: int
    only_second: int
    ids_only_first: tuple[str, ...]
    """Some of them, those of the largest change in how the right answer stands first."""
    ids_only_second: tuple[str, ...]
    """Some of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Record):
    """Two models beside each other."""

    first: int
    """Place of the first model among ``models``."""
    second: int
    """Of the second."""
    difference: float
    """Second minus first."""
    standard_error: float | None
    """Cluster-robust, of the paired differences."""
    interval: Interval | None
    """Where the true difference lies."""
    p_value: float | None
    """Two-sided; for accuracy the larger of the t-test's and the exact test's."""
    p_holm: float | None
    """Adjusted for the number of pairs."""
    exact: ExactTest | None
    """For shares of right answers only."""
    detectable: DetectableDifference | None
    """The smallest true difference that these items show for these two models."""
    items_needed: int | None
    """Items like these that would show a difference as large as the one found; where the verdict is ``unknown``."""
    verdict: Verdict
    """Which is better; ``same`` where every item has the same value, ``unknown`` where they cannot be told apart."""
    sources: tuple[SourceDifference, ...]
    """By source, where there are several."""
    items_apart: tuple[ItemDifference, ...]
    """Largest differences first."""
    flips: Flips
    """Right answers won and lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Record):
    """A model in the order from best to worst."""

    model: int
    """Place among ``models``."""
    apart_from_next: bool | None
    """Whether it can be told from the next; ``None`` for the last."""
    not_apart_from: tuple[int, ...]
    """All models that it cannot be told from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Record):
    """Two or more models on the same items."""

    SCHEMA: ClassVar[str] = "comparison/2"

    metric: str
    """With the item set."""
    unit: str
    """Of values and differences; empty for shares."""
    lower_is_better: bool
    level: float
    """Of intervals; tests are at ``1 - level``."""
    items: int
    """Items that every model was scored on."""
    clusters: int
    """Independent clusters of them."""
    not_by_all: int
    """Shared items that some model could not be scored on."""
    purpose: Purpose
    """What all these numbers are for."""
    standing: str
    """What the numbers of single items are, with their unit."""
    equal: str
    """What two models gave where the verdict is ``same``."""
    matched_by: By
    """How the items were brought together."""
    prompts_differ: int
    """Items that were not read alike by all models; 0 unless matched by id."""
    written_with: tuple[str, ...]
    """The ways in which texts were written, where they differ; empty unless matched by id."""
    models: tuple[ModelLine, ...]
    pairs: tuple[Pair, ...]
    ranking: tuple[Rank, ...]
    """Best first."""


def compare_results(
    results: Sequence[ScoredItems],
    *,
    metric: str = "",
    by: By = "content",
    common: bool = False,
    level: float = 0.95,
    power: float = 0.8,
    shown: int = ITEMS_SHOWN,
) -> Comparison:
    """Compare two or more models.

    Args:
        results: What each gave to the items.
        metric: ``answer_bpb``, ``answer_bpb_macro``, or ``accuracy``, ``choice_nll`` or ``brier``
            with a variant; without one, raw. Of written answers ``share_right``. Empty for ``answer_bpb`` or that.
        by: How items are matched, see :func:`~wholestack.evals.scored.match_items`.
        common: Compare what the item sets have in common where they differ.
        level: Of the intervals; verdicts are at ``1 - level``.
        power: Of what can be detected.
        shown: Most items listed for a pair.

    Raises:
        InputError: fewer than two models, item sets that differ, purposes or ways to judge that do, no item scored by
            all, or an unknown metric.
    """
    if len(results) < 2:
        raise InputError(f"a comparison needs two or more results, got {len(results)}")
    joined = match_items(results, by=by, common=common)
    family = results[0].family
    metric = family.full(metric)
    if metric.endswith("per_token") and (silent := [each.path for each in results if not each.counts_tokens]):
        raise InputError(f"{silent[0]}: does not say how many tokens were scored", remedy="use another normalisation")
    scores = _scored_by_all([each.scores for each in joined.results])
    keep = scores[0].is_scored
    if not keep.any():
        raise InputError(f"no item was scored by all of {', '.join(each.path for each in results)}")
    better_low = lower_is_better(metric)
    models = _model_lines(joined, scores, metric)
    places = list(combinations(range(len(results)), 2))
    measured = [_measure(scores[a], scores[b], metric, level) for a, b in places]
    adjusted = holm([each.p_value for each in measured])
    pairs = tuple(
        _pair(
            (joined.results[a], scores[a], a), (joined.results[b], scores[b], b), each, p_holm, metric=metric,
            better_low=better_low, level=level, power=power, comparisons=len(places), shown=shown,
        )
        for (a, b), each, p_holm in zip(places, measured, adjusted, strict=True)
    )  # fmt: skip
    return Comparison(
        metric=metric_name(metric, scores[0].item_set),
        unit=unit_of(metric),
        lower_is_better=better_low,
        level=level,
        items=int(keep.sum()),
        clusters=len(np.unique(scores[0].clusters[keep])),
        not_by_all=int((~keep).sum()),
        purpose=results[0].purpose,
        standing=family.standing,
        equal=family.equal,
        matched_by=by,
        prompts_differ=joined.prompts_differ,
        written_with=joined.written_with,
        models=models,
        pairs=pairs,
        ranking=_ranking(models, pairs, better_low),
    )


def exact_mcnemar(first: Floats, second: Floats) -> ExactTest:
    """McNemar's exact test on the credit of two models.

    Args:
        first: ``[items]``, 1 where the first is right, a share at ties.
        second: ``[items]``, the same of the second.
    """
    return _exact_test((first == 1) & (second < 1), (second == 1) & (first < 1))


def _exact_test(only_first: Flags, only_second: Flags) -> ExactTest:
    one, other = int(only_first.sum()), int(only_second.sum())
    tail = float(bdtr(min(one, other), one + other, 0.5)) if one + other else 1.0
    return ExactTest(only_first_right=one, only_second_right=other, p_value=min(1.0, 2 * tail))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    estimate: Estimate
    interval: Interval | None
    p_value: float | None
    exact: ExactTest | None
    identical: bool


def _measure(first: ItemNumbers, second: ItemNumbers, metric: str, level: float) -> _Measured:
    found = paired_difference(first, second, metric=metric, level=level)
    keep = first.is_scored
    won = [one.beats(two, metric) & keep for one, two in ((first, second), (second, first))]
    exact = _exact_test(*won) if is_share_of_right(metric) else None
    p_value = found.p_value
    if p_value is not None:
        # However alike the differences: of G independent signs no test can say more than this.
        p_value = max(p_value, 2.0 ** (1 - found.clusters), exact.p_value if exact else 0.0)
    return _Measured(
        estimate=Estimate(
            value=found.difference, standard_error=found.standard_error, items=found.items, clusters=found.clusters
        ),
        interval=found.interval if found.standard_error else None,
        p_value=p_value,
        exact=exact,
        # Whether both gave every item the same: another metric could not tell them apart either.
        identical=bool(first.equals(second)[keep].all()),
    )


def _scored_by_all(scores: Sequence[ItemNumbers]) -> list[ItemNumbers]:
    keep = np.logical_and.reduce([each.is_scored for each in scores])
    reasons = np.where(keep, "", NOT_BY_ALL)
    return [relabelled(each, reasons=reasons) for each in scores]


def _model_lines(joined: Matched, scores: Sequence[ItemNumbers], metric: str) -> tuple[ModelLine, ...]:
    lines = []
    for result, shared, left_out in zip(joined.results, scores, joined.left_out, strict=True):
        keep = shared.is_scored
        numerator, weight = shared.values(metric)
        estimate = ratio_estimate(numerator[keep], weight[keep], shared.clusters[keep])
        reasons, counts = np.unique(result.scores.reasons[~result.scores.is_scored], return_counts=True)
        lines.append(
            ModelLine(
                name=result.name,
                path=result.path,
                value=estimate.value,
                standard_error=estimate.standard_error,
                unscorable=dict(zip(reasons.tolist(), counts.tolist(), strict=True)),
                left_out=left_out,
            )
        )
    return tuple(lines)


_Side = tuple[ScoredItems, ItemNumbers, int]


def _pair(
    first: _Side,
    second: _Side,
    measured: _Measured,
    p_holm: float | None,
    *,
    metric: str,
    better_low: bool,
    level: float,
    power: float,
    comparisons: int,
    shown: int,
) -> Pair:
    difference = measured.estimate.value
    detectable = _detectable(measured.estimate, metric, (1 - level) / comparisons, power)
    verdict = _verdict(measured, p_holm, better_low, 1 - level)
    return Pair(
        first=first[2],
        second=second[2],
        difference=difference,
        standard_error=measured.estimate.standard_error,
        interval=measured.interval,
        p_value=measured.p_value,
        p_holm=p_holm,
        exact=measured.exact,
        detectable=detectable,
        items_needed=_items_needed(difference, detectable) if verdict == "unknown" else None,
        verdict=verdict,
        sources=_by_source(first[1], second[1], metric, level),
        items_apart=_items_apart(first, second, shown),
        flips=_flips(first[1], second[1], metric, shown),
    )


def _verdict(measured: _Measured, p_holm: float | None, better_low: bool, alpha: float) -> Verdict:
    if measured.identical:
        return "same"
    if p_holm is None or p_holm >= alpha or measured.estimate.clusters < FEWEST_CLUSTERS:
        return "unknown"
    return "second" if (measured.estimate.value < 0) == better_low else "first"


def _detectable(estimate: Estimate, metric: str, alpha: float, power: float) -> DetectableDifference | None:
    if not estimate.standard_error:
        return None
    unit = unit_of(metric)
    return detectable_difference(
        items=estimate.items,
        clusters=estimate.clusters,
        paired_sd=estimate.standard_error * estimate.items**0.5,
        level=alpha,
        power=power,
        metric=f"{metric}, {unit}" if unit else metric,
        basis="measured: cluster-robust standard error of the paired differences of these two models",
    )


def _items_needed(difference: float, detectable: DetectableDifference | None) -> int | None:
    if detectable is None or difference == 0:
        return None
    needed = detectable.items * (detectable.difference / abs(difference)) ** 2
    return math.ceil(needed) if needed > detectable.items and needed <= MOST_ITEMS else None


def _by_source(first: ItemNumbers, second: ItemNumbers, metric: str, level: float) -> tuple[SourceDifference, ...]:
    keep = first.is_scored
    names = np.unique(first.sources[keep])
    if len(names) < 2:
        return ()
    found = []
    for name in names.tolist():
        places = np.flatnonzero(keep & (first.sources == name))
        found.append((name, _measure(first.take(places), second.take(places), metric, level)))
    judged = [measured.estimate.clusters >= FEWEST_CLUSTERS for _, measured in found]
    adjusted = holm([each.p_value if ok else None for (_, each), ok in zip(found, judged, strict=True)])
    return tuple(
        SourceDifference(
            source=name,
            items=measured.estimate.items,
            clusters=measured.estimate.clusters,
            difference=measured.estimate.value,
            interval=measured.interval if ok else None,
            p_holm=p_holm,
            differs=p_holm is not None and p_holm < 1 - level and not measured.identical,
        )
        for (name, measured), p_holm, ok in zip(found, adjusted, judged, strict=True)
    )


def _items_apart(first: _Side, second: _Side, shown: int) -> tuple[ItemDifference, ...]:
    gap = _gap(first[1], second[1])
    one, other = first[1].standing(), second[1].standing()
    return tuple(
        ItemDifference(
            id=str(first[1].item_ids[at]),
            source=str(first[1].sources[at]),
            context=first[0].contexts[at],
            answer=first[0].answers[at],
            first=float(one[at]),
            second=float(other[at]),
            first_given=first[0].given[at],
            second_given=second[0].given[at],
        )
        for at in np.argsort(-gap, kind="stable")[:shown].tolist()
        if gap[at] > 0
    )


def _flips(first: ItemNumbers, second: ItemNumbers, metric: str, shown: int) -> Flips:
    order = np.argsort(-_gap(first, second), kind="stable")
    sides = [first.is_scored & one.beats(two, metric) for one, two in ((first, second), (second, first))]
    ids = [tuple(first.item_ids[order[side[order]]][:shown].tolist()) for side in sides]
    return Flips(
        normalisation=variant_of(metric),
        only_first=int(sides[0].sum()),
        only_second=int(sides[1].sum()),
        ids_only_first=ids[0],
        ids_only_second=ids[1],
    )


def _gap(first: ItemNumbers, second: ItemNumbers) -> Floats:
    """How differently the right answer of each item stands with two models; 0 where it is not scored."""
    return np.where(first.is_scored, np.abs(second.standing() - first.standing()), 0.0)


def _ranking(models: Sequence[ModelLine], pairs: Sequence[Pair], better_low: bool) -> tuple[Rank, ...]:
    order = sorted(range(len(models)), key=lambda at: models[at].value if better_low else -models[at].value)
    apart = {frozenset((pair.first, pair.second)): pair.verdict in ("first", "second") for pair in pairs}
    return tuple(
        Rank(
            model=at,
            apart_from_next=apart[frozenset((at, order[place + 1]))] if place + 1 < len(order) else None,
            not_apart_from=tuple(other for other in order if other != at and not apart[frozenset((at, other))]),
        )
        for place, at in enumerate(order)
    )
