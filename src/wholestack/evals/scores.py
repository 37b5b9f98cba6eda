"""From the log-likelihood of every choice to named numbers, and from two such sets of numbers to a difference.

Notation: nll_ij is minus the natural logarithm of the probability of choice j of item i, summed over its scored
tokens; bytes_ij the UTF-8 bytes of delimiter + choice; * the right choice.

- ``answer_bpb`` = sum_i nll_i* / (ln 2 * sum_i bytes_i*), bits per byte, a ratio of sums (micro);
- ``answer_bpb_macro`` = mean_i nll_i* / (ln 2 * bytes_i*);
- ``choice_nll_V`` = mean_i -log softmax_j(s_ij)[*] in nats, chance ln(choices), with s_ij = -nll_ij (V = raw),
  divided by bytes_ij (per_byte), by scored tokens (per_token) or by characters (per_char);
- ``accuracy_V`` = share of items whose s_i* is largest; a tie of k choices counts 1/k;
- ``brier_V`` = mean_i sum_j (p_ij - [j = *])^2 and ``ece_V`` (ten equal bins) of the same softmax.

Items are put in the order of their ids before anything is added up or drawn, and clusters are numbered along it: the
same items in another order give the same numbers to the last bit.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError
from wholestack.evals.arrays import npz_bytes, read_npz
from wholestack.evals.calibration import Calibration, ChoiceValues, Outcome, calibration, held_out_half, outcome_of
from wholestack.evals.comparable import ItemNumbers, Texts, variant_of
from wholestack.evals.detectable import detectable_before_scoring
from wholestack.evals.items import metric_name
from wholestack.evals.statistics import (
    ASSUMED_PAIRED_SD_BPB,
    DetectableDifference,
    Estimate,
    Floats,
    Interval,
    Ints,
    bootstrap_ratios,
    detectable_difference,
    expected_calibration_error,
    mean_estimate,
    p_value,
    ratio_estimate,
    t_interval,
)
from wholestack.journal import write_atomic
from wholestack.record import Record, digest

Normalisation = Literal["raw", "per_byte", "per_token", "per_char"]
NORMALISATIONS: tuple[Normalisation, ...] = ("raw", "per_byte", "per_token", "per_char")

LEVEL = 0.95
"""Of bootstrap intervals and reliability bands."""
RESAMPLES = 2000

_BY_ITEM = ("item_ids", "sources", "clusters", "gold", "reasons", "truncated", "spanning")
_BY_CHOICE = ("nll_nats", "answer_bytes", "answer_chars", "answer_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Record):
    """One number with what it may be compared to."""

    name: str
    """The metric without the item set, for instance ``answer_bpb``."""
    item_set: str
    """Digest of the item set."""
    value: float
    """The number."""
    standard_error: float | None
    """Cluster-robust over documents; ``None`` where none is defined."""
    unit: str
    """Unit of value and error; empty for shares and probabilities."""
    items: int
    """Scored items behind it."""
    clusters: int
    """Independent clusters of them."""
    interval: Interval | None = None
    """By a bootstrap over clusters, where it was asked for."""

    @property
    def full_name(self) -> str:
        """Name with the item set, ``answer_bpb[3f2a9c1b]``."""
        return metric_name(self.name, self.item_set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Record):
    """All numbers of one model on one item set."""

    SCHEMA: ClassVar[str] = "scores/2"

    item_set: str
    """Digest of the item set."""
    items: int
    """Items in the set."""
    scored: int
    """Items that could be scored."""
    unscorable: dict[str, int]
    """The others, counted by reason."""
    truncated: int
    """Scored items whose context was cut on the left to fit the model."""
    spanning: int
    """Scored items where a token spans the join and was scored with the choice."""
    positions: int
    """Positions that the model computed, padding included."""
    metrics: tuple[Metric, ...]
    """The numbers; empty if nothing could be scored."""
    detectable: DetectableDifference | None
    """Smallest difference in ``answer_bpb`` from another model that these items can show; needs two clusters."""
    calibrations: tuple[Calibration, ...] = ()
    """Confidence against credit in each normalisation; empty unless it was asked for."""
    detectable_by_metric: tuple[DetectableDifference, ...] = ()
    """The same smallest difference for accuracy and choice loss too; empty unless it was asked for."""

    def metric(self, name: str) -> Metric:
        """One number by its name, with or without the item set in brackets.

        Raises:
            InputError: it is unknown, belongs to another item set, or nothing could be scored.
        """
        for metric in self.metrics:
            if name in (metric.name, metric.full_name):
                return metric
        if not self.metrics:
            raise InputError(f"no item of {self.item_set} could be scored: {self.unscorable}")
        raise InputError(f"no metric {name!r}", remedy=f"known are: {', '.join(m.full_name for m in self.metrics)}")

    @property
    def answer_bpb(self) -> float:
        """The primary metric, bits per byte."""
        return self.metric("answer_bpb").value

    def flat(self) -> dict[str, float]:
        """Every number by its name, the item set left out; what is not defined is absent, never NaN or zero."""
        numbers: dict[str, float] = {}
        for metric in self.metrics:
            numbers[metric.name] = metric.value
            if metric.standard_error is not None:
                numbers[f"{metric.name}_se"] = metric.standard_error
            if metric.interval is not None:
                numbers[f"{metric.name}_low"] = metric.interval.low
                numbers[f"{metric.name}_high"] = metric.interval.high
        for each in self.calibrations:
            numbers |= each.flat()
        for found in self.detectable_by_metric or ((self.detectable,) if self.detectable else ()):
            numbers[f"detectable_{found.metric.partition(',')[0]}"] = found.difference
        return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScores:
    """What one model gave to every choice; the material of every metric and of paired comparisons.

    Choices lie one behind the other: item i has ``choice_offsets[i]`` to ``choice_offsets[i + 1]``.
    """

    item_set: str
    """Digest of the item set."""
    item_ids: Texts
    """``[items]``."""
    sources: Texts
    """``[items]``."""
    clusters: Ints
    """``[items]``; equal numbers are one cluster."""
    gold: Ints
    """``[items]``, index of the right choice within the item."""
    reasons: Texts
    """``[items]``, why it could not be scored; empty if it was."""
    truncated: npt.NDArray[np.bool_]
    """``[items]``, whether the context was cut on the left."""
    spanning: npt.NDArray[np.bool_]
    """``[items]``, whether a token spans the join."""
    choice_offsets: Ints
    """``[items + 1]``."""
    nll_nats: Floats
    """``[choices]``, minus log-likelihood; 0 for unscorable items, which no metric reads."""
    answer_bytes: Ints
    """``[choices]``, UTF-8 bytes of delimiter and choice."""
    answer_chars: Ints
    """``[choices]``, characters of delimiter and choice."""
    answer_tokens: Ints
    """``[choices]``, scored tokens."""
    positions: int
    """Positions that the model computed."""

    @property
    def is_scored(self) -> npt.NDArray[np.bool_]:
        """``[items]``."""
        return np.asarray(self.reasons == "")

    @property
    def answers(self) -> Ints:
        """``[items]``, index of the right choice among all choices."""
        return self.choice_offsets[:-1] + self.gold

    def by_id(self) -> "ItemScores":
        """The same in the order of item ids, clusters numbered as they come in it."""
        order = np.argsort(self.item_ids, kind="stable")
        _, first, number = np.unique(self.clusters[order], return_index=True, return_inverse=True)
        return replace(self.take(order), clusters=np.argsort(np.argsort(first))[number])

    def take(self, places: Ints) -> "ItemScores":
        """Some of the items, or all in another order.

        Args:
            places: ``[n]``, indices of items.
        """
        sizes = np.diff(self.choice_offsets)
        taken = sizes[places]
        offsets = np.concatenate(([0], np.cumsum(taken)))
        choices = np.repeat(self.choice_offsets[:-1][places] - offsets[:-1], taken) + np.arange(offsets[-1])
        return replace(
            self,
            **{name: getattr(self, name)[places] for name in _BY_ITEM},
            **{name: getattr(self, name)[choices] for name in _BY_CHOICE},
            choice_offsets=offsets,
        )

    def values(self, metric: str) -> tuple[Floats, Floats]:
        """See :func:`item_values`."""
        return item_values(self, metric)

    def standing(self) -> Floats:
        """``[items]``, log-likelihood of the right answer in nats; 0 for unscorable items."""
        return -self.nll_nats[self.answers]

    def beats(self, other: "ItemScores", metric: str) -> npt.NDArray[np.bool_]:
        """``[items]``, where this model takes the right choice and the other does not; a tie of choices is no win."""
        one, two = (item_values(each, f"accuracy_{variant_of(metric)}")[0] for each in (self, other))
        return np.asarray((one == 1) & (two < 1))

    def equals(self, other: "ItemScores") -> npt.NDArray[np.bool_]:
        """``[items]``, where both gave every choice the same number."""
        item = np.repeat(np.arange(len(self.gold)), np.diff(self.choice_offsets))
        return np.asarray(np.bincount(item, self.nll_nats != other.nll_nats, minlength=len(self.gold)) == 0)

    def save(self, path: Path) -> None:
        """Write as ``.npz`` by atomic rename.

        Raises:
            RunDirectoryError: the file cannot be written.
        """
        write_atomic(path, npz_bytes({field.name: getattr(self, field.name) for field in fields(self)}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            InputError: the file is missing, damaged or something else.
        """
        arrays = read_npz(path, [field.name for field in fields(cls)])
        plain = {"item_set": str(arrays["item_set"]), "positions": int(arrays["positions"])}
        return cls(**{**arrays, **plain})  # type: ignore[arg-type]  # one mapping of arrays and two scalars


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference(Record):
    """How much a second model differs from a first one on the same items."""

    SCHEMA: ClassVar[str] = "paired-difference/1"

    metric: str
    """Metric with its item set."""
    difference: float
    """Second minus first."""
    standard_error: float | None
    """Cluster-robust, of the paired differences."""
    interval: Interval | None
    """Where the true difference lies."""
    p_value: float | None
    """Two-sided, against no difference."""
    items: int
    """Items that both models were scored on."""
    clusters: int
    """Independent clusters of them."""
    detectable: DetectableDifference | None
    """What a comparison with this spread can find, measured on these two models."""


def summarise(scores: ItemScores, *, paired_sd_bpb: float = ASSUMED_PAIRED_SD_BPB, thorough: bool = False) -> Scores:
    """All metrics of one pass.

    Args:
        scores: What the model gave to every choice.
        paired_sd_bpb: Spread assumed for the smallest detectable difference, bits per byte and item.
        thorough: Also bootstrap intervals, calibration and what the items can detect by each metric. They take up to
            seconds, and a search that summarises hundreds of trials reads none of them.
    """
    scores = scores.by_id()
    keep = scores.is_scored
    metrics = tuple(_metrics(scores)) if keep.any() else ()
    clusters = len(np.unique(scores.clusters[keep]))
    summary = Scores(
        item_set=scores.item_set,
        items=len(keep),
        scored=int(keep.sum()),
        unscorable=dict(sorted(Counter(scores.reasons[~keep].tolist()).items())),
        truncated=int((scores.truncated & keep).sum()),
        spanning=int((scores.spanning & keep).sum()),
        positions=scores.positions,
        metrics=metrics,
        detectable=detectable_difference(items=int(keep.sum()), clusters=clusters, paired_sd=paired_sd_bpb)
        if clusters > 1
        else None,
    )
    return _thorough(scores, summary, paired_sd_bpb) if thorough and metrics else summary


def compare(first: Metric, second: Metric) -> float:
    """Second minus first, for two numbers that may be compared.

    Raises:
        InputError: they are different metrics or from different item sets; names both.
    """
    if (first.name, first.item_set) != (second.name, second.item_set):
        raise _not_comparable(first.full_name, second.full_name)
    return second.value - first.value


def paired_difference(
    first: ItemNumbers, second: ItemNumbers, *, metric: str = "answer_bpb", level: float = 0.95, power: float = 0.8
) -> PairedDifference:
    """Difference of two models over the items that both have a number for.

    Args:
        first: Scores of one model.
        second: Scores of the other; the result is second minus first.
        metric: ``answer_bpb``, ``answer_bpb_macro``, or ``choice_nll``, ``accuracy`` or ``brier`` with a variant, for
            instance ``accuracy_raw``.
        level: Probability that the interval covers; the test is at ``1 - level``.
        power: Of the smallest detectable difference.

    Raises:
        InputError: the item sets differ (names both), the metric is unknown, or no item was scored by both.
    """
    if first.item_set != second.item_set or not np.array_equal(first.item_ids, second.item_ids):
        raise _not_comparable(metric_name(metric, first.item_set), metric_name(metric, second.item_set))
    keep = first.is_scored & second.is_scored
    if not keep.any():
        raise InputError(f"no item of {first.item_set} was scored by both models")
    one, weight = first.values(metric)
    other, _ = second.values(metric)
    estimate = ratio_estimate((other - one)[keep], weight[keep], first.clusters[keep])
    full_name = metric_name(metric, first.item_set)
    return PairedDifference(
        metric=full_name,
        difference=estimate.value,
        standard_error=estimate.standard_error,
        interval=t_interval(estimate, level=level),
        p_value=p_value(estimate),
        items=estimate.items,
        clusters=estimate.clusters,
        detectable=_measured_detectable(estimate, full_name, level=level, power=power),
    )


def item_values(scores: ItemScores, metric: str) -> tuple[Floats, Floats]:
    """Numerator and weight of every item, ``[items]`` each: the metric is the ratio of their sums.

    Raises:
        InputError: the metric is no ratio of sums over items, or unknown.
    """
    ones = np.ones(len(scores.gold))
    bits = scores.nll_nats[scores.answers] / np.log(2)
    answer_bytes = scores.answer_bytes[scores.answers].astype(np.float64)
    if metric == "answer_bpb":
        return bits, answer_bytes
    if metric == "answer_bpb_macro":
        return bits / np.maximum(answer_bytes, 1), ones
    for normalisation in NORMALISATIONS:
        outcome = outcomes(scores, normalisation)
        for name, values in (("choice_nll", outcome.nll), ("accuracy", outcome.credit), ("brier", outcome.brier)):
            if metric == f"{name}_{normalisation}":
                return values, ones
    raise InputError(
        f"no paired metric {metric!r}",
        remedy=f"use answer_bpb, answer_bpb_macro, or choice_nll_, accuracy_, brier_ with {', '.join(NORMALISATIONS)}",
    )


def choice_values(scores: ItemScores, normalisation: Normalisation) -> ChoiceValues:
    """The values of all choices in one normalisation; of unscorable items they mean nothing."""
    lengths = {
        "raw": np.ones(len(scores.nll_nats)),
        "per_byte": scores.answer_bytes,
        "per_token": scores.answer_tokens,
        "per_char": scores.answer_chars,
    }[normalisation]
    return ChoiceValues(
        values=-scores.nll_nats / np.maximum(lengths, 1), offsets=scores.choice_offsets[:-1], answers=scores.answers
    )


def outcomes(scores: ItemScores, normalisation: Normalisation) -> Outcome:
    """The softmax over the choices of each item in one normalisation."""
    return outcome_of(choice_values(scores, normalisation))


def _metrics(scores: ItemScores) -> Sequence[Metric]:
    keep = scores.is_scored
    clusters = scores.clusters[keep]

    def metric(name: str, unit: str, estimate: Estimate) -> Metric:
        return Metric(
            name=name,
            item_set=scores.item_set,
            value=estimate.value,
            standard_error=estimate.standard_error,
            unit=unit,
            items=estimate.items,
            clusters=estimate.clusters,
        )

    found = []
    for name in ("answer_bpb", "answer_bpb_macro"):
        numerator, weight = item_values(scores, name)
        found.append(metric(name, "bits per byte", ratio_estimate(numerator[keep], weight[keep], clusters)))
    for normalisation in NORMALISATIONS:
        outcome = outcomes(scores, normalisation)
        for name, unit, values in (
            ("choice_nll", "nats", outcome.nll),
            ("accuracy", "", outcome.credit),
            ("brier", "", outcome.brier),
        ):
            found.append(metric(f"{name}_{normalisation}", unit, mean_estimate(values[keep], clusters)))
        ece = expected_calibration_error(outcome.confidence[keep], outcome.credit[keep])
        whole = Estimate(value=ece, standard_error=None, items=int(keep.sum()), clusters=len(np.unique(clusters)))
        found.append(metric(f"ece_{normalisation}", "", whole))
    return found


def _thorough(scores: ItemScores, summary: Scores, paired_sd_bpb: float) -> Scores:
    """Add what costs more; ``scores`` is in the order of ids."""
    keep = np.flatnonzero(scores.is_scored)
    names = cluster_names(scores)
    kept = scores.take(keep)
    seed = int(digest(scores.item_ids.tolist()), 16)
    clusters = len(np.unique(kept.clusters))
    half = held_out_half([names[place] for place in keep])
    return replace(
        summary,
        metrics=_with_intervals(kept, summary.metrics, seed) if clusters > 1 else summary.metrics,
        calibrations=tuple(
            calibration(each, choice_values(kept, each), tested=half, level=LEVEL, seed=seed) for each in NORMALISATIONS
        ),
        detectable_by_metric=detectable_before_scoring(items=len(keep), clusters=clusters, paired_sd_bpb=paired_sd_bpb),
    )


def cluster_names(scores: ItemScores) -> list[str]:
    """``[items]``, for each item the smallest id of its cluster: a name that no order and no numbering changes."""
    order = np.argsort(scores.item_ids, kind="stable")
    smallest: dict[int, str] = {}
    for identity, cluster in zip(scores.item_ids[order].tolist(), scores.clusters[order].tolist(), strict=True):
        smallest.setdefault(cluster, identity)
    return [smallest[cluster] for cluster in scores.clusters.tolist()]


def _with_intervals(kept: ItemScores, metrics: tuple[Metric, ...], seed: int) -> tuple[Metric, ...]:
    """The metrics that are ratios of sums with their bootstrap intervals, all from the same draws of clusters."""
    ratios = [metric.name for metric in metrics if not metric.name.startswith("ece_")]
    columns = [item_values(kept, name) for name in ratios]
    low, high = bootstrap_ratios(
        np.stack([numerator for numerator, _ in columns], axis=1),
        np.stack([weight for _, weight in columns], axis=1),
        kept.clusters,
        level=LEVEL,
        resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    found = {
        name: Interval(low=float(low[place]), high=float(high[place]), level=LEVEL) for place, name in enumerate(ratios)
    }
    return tuple(replace(metric, interval=found.get(metric.name)) for metric in metrics)


def _measured_detectable(estimate: Estimate, metric: str, *, level: float, power: float) -> DetectableDifference | None:
    if estimate.standard_error is None:
        return None
    return detectable_difference(
        items=estimate.items,
        clusters=estimate.clusters,
        paired_sd=estimate.standard_error * estimate.items**0.5,
        level=1 - level,
        power=power,
        metric=metric,
        basis="measured: cluster-robust standard error of the paired differences of these two models",
    )


def _not_comparable(first: str, second: str) -> InputError:
    return InputError(
        f"{first} and {second} are not comparable: another metric or another item set",
        remedy="score both models on the same items",
    )
