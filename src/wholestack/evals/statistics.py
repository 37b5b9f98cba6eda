"""Error bars for item sets: cluster-robust standard errors, cluster bootstrap, and what a comparison can detect.

Notation: item i has a numerator n_i (for instance nats) and a weight w_i (for instance bytes); the estimate is
R = sum n_i / sum w_i, and a mean is the case w_i = 1. Items of one cluster (one document) are not independent. With
residuals e_i = n_i - R w_i, their sums E_g over the G clusters and W = sum w_i, the variance of R is
G / (G - 1) * sum E_g^2 / W^2 (linearised ratio estimator; Cochran, Sampling Techniques, 1977, chapters 6 and 9).
Intervals and tests use Student's t with G - 1 degrees of freedom.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from wholestack.errors import InputError
from wholestack.record import Record

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ASSUMED_PAIRED_SD_BPB = 0.27
"""Spread of one item's difference in bits per byte between two models, clustering included: the largest of four pairs
of small models on 400 continuation choices (0.086 other seed, 0.091 wider, 0.241 lower rate, 0.266 half the steps;
``benchmarks/scoring.py spread``). Models further apart spread more, and then a finer difference is not needed."""


_DRAWN_AT_ONCE = 2_000_000
"""Numbers that a bootstrap holds at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Record):
    """A ratio of sums with its standard error."""

    value: float
    """The estimate."""
    standard_error: float | None
    """Cluster-robust; ``None`` with fewer than two clusters."""
    items: int
    """Items in it."""
    clusters: int
    """Independent clusters of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Record):
    """An interval that covers the true value with a stated probability."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    level: float
    """Probability of covering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableDifference(Record):
    """The smallest true difference between two models that a paired comparison will find."""

    SCHEMA: ClassVar[str] = "detectable-difference/1"

    metric: str
    """Metric that the difference is in, with its unit."""
    difference: float
    """A true difference of this size is found with probability ``power``."""
    items: int
    """Items compared."""
    clusters: int
    """Independent clusters of them."""
    paired_sd: float
    """Standard deviation of one item's difference; if measured, clustering is in it."""
    level: float
    """Two-sided probability of finding a difference where there is none."""
    power: float
    """Probability of finding it."""
    basis: str
    """Whether ``paired_sd`` was assumed or measured, and on what."""


def ratio_estimate(numerator: Floats, weight: Floats, clusters: Ints) -> Estimate:
    """Ratio of sums with its cluster-robust standard error.

    Args:
        numerator: ``[items]``, any unit.
        weight: ``[items]``, sum above zero.
        clusters: ``[items]``, any integers; equal ones are one cluster.

    Raises:
        InputError: no items, or weights that do not sum to something positive.
    """
    total = float(weight.sum())
    if len(numerator) == 0 or total <= 0:
        raise InputError(f"an estimate needs items with weight, got {len(numerator)} with weight {total:g}")
    value = float(numerator.sum()) / total
    _, group = np.unique(clusters, return_inverse=True)
    residuals = np.bincount(group, numerator - value * weight)
    groups = len(residuals)
    error = math.sqrt(groups / (groups - 1) * float(residuals @ residuals)) / total if groups > 1 else None
    return Estimate(value=value, standard_error=error, items=len(numerator), clusters=groups)


def mean_estimate(values: Floats, clusters: Ints) -> Estimate:
    """Mean with its cluster-robust standard error; with one item a cluster this is the usual standard error."""
    return ratio_estimate(values, np.ones(len(values)), clusters)


def t_interval(estimate: Estimate, *, level: float) -> Interval | None:
    """Student's interval round an estimate; ``None`` where there is no standard error."""
    _check_probability("level", level)
    if estimate.standard_error is None:
        return None
    reach = float(stdtrit(estimate.clusters - 1, 0.5 + level / 2)) * estimate.standard_error
    return Interval(low=estimate.value - reach, high=estimate.value + reach, level=level)


def p_value(estimate: Estimate) -> float | None:
    """Two-sided probability of an estimate so far from zero if zero were true; ``None`` without a standard error."""
    if estimate.standard_error is None:
        return None
    if estimate.standard_error == 0:
        return 1.0 if estimate.value == 0 else 0.0
    return 2 * float(stdtr(estimate.clusters - 1, -abs(estimate.value) / estimate.standard_error))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted so that all tests together err at most at the level (Holm 1979); ``None`` is no test."""
    tests = sorted((value, at) for at, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (value, at) in enumerate(tests):
        largest = max(largest, min(1.0, value * (len(tests) - rank)))
        adjusted[at] = largest
    return adjusted


def cluster_bootstrap(
    numerator: Floats,
    weight: Floats,
    clusters: Ints,
    *,
    level: float = 0.9,
    resamples: int = 2000,
    rng: np.random.Generator,
) -> Interval:
    """Percentile interval of a ratio of sums, whole clusters drawn with replacement (Efron & Tibshirani 1993).

    Args:
        numerator: ``[items]``.
        weight: ``[items]``.
        clusters: ``[items]``.
        level: Probability of covering.
        resamples: Bootstrap draws.
        rng: Source of the draws.

    Raises:
        InputError: fewer than two clusters.
    """
    low, high = bootstrap_ratios(
        numerator[:, None], weight[:, None], clusters, level=level, resamples=resamples, rng=rng
    )
    return Interval(low=float(low[0]), high=float(high[0]), level=level)


def bootstrap_ratios(
    numerators: Floats,
    weights: Floats,
    clusters: Ints,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Like :func:`cluster_bootstrap` for several ratios over the same items and the same draws.

    Args:
        numerators: ``[items, ratios]``.
        weights: ``[items, ratios]``.
        clusters: ``[items]``.
        level: Probability of covering.
        resamples: Bootstrap draws.
        rng: Source of the draws.

    Returns:
        Lower and upper ends, ``[ratios]`` each.

    Raises:
        InputError: fewer than two clusters.
    """
    _check_probability("level", level)
    names, group = np.unique(clusters, return_inverse=True)
    groups = len(names)
    if groups < 2:
        raise InputError(f"a bootstrap over clusters needs at least two, got {groups}")
    sums = np.zeros((groups, 2 * numerators.shape[1]))
    np.add.at(sums, group, np.concatenate([numerators, weights], axis=1))
    draws = []
    rows = max(1, _DRAWN_AT_ONCE // groups)
    for first in range(0, resamples, rows):
        taken = rng.integers(0, groups, size=(min(rows, resamples - first), groups))
        times = np.stack([np.bincount(row, minlength=groups) for row in taken]).astype(np.float64)
        tops, bottoms = np.split(times @ sums, 2, axis=1)
        draws.append(tops / bottoms)
    low, high = np.quantile(np.concatenate(draws), [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return low, high


def detectable_difference(
    *,
    items: int,
    paired_sd: float,
    clusters: int | None = None,
    level: float = 0.05,
    power: float = 0.8,
    design_effect: float = 1.0,
    metric: str = "answer_bpb, bits per byte",
    basis: str = "",
) -> DetectableDifference:
    """Smallest true difference that a paired comparison on so many items finds.

    It is (t + z) * paired_sd * sqrt(design_effect / items), where t is the quantile of the two-sided test at
    ``level`` with ``clusters - 1`` degrees of freedom and z the normal quantile of ``power``. Call it before any run
    with an assumed spread, and after two runs use the one inside :class:`~wholestack.evals.scores.PairedDifference`.

    Args:
        items: Items that both models will answer.
        paired_sd: Standard deviation, over items, of the difference between the two models on one item.
        clusters: Independent clusters among the items; default every item by itself.
        level: Two-sided error probability of the test.
        power: Probability of finding a difference of the returned size.
        design_effect: Variance of the estimate over its variance if items were independent.
        metric: Named in the result.
        basis: Where ``paired_sd`` is from; named in the result.

    Raises:
        InputError: fewer than two clusters, or a number out of its range.
    """
    groups = items if clusters is None else clusters
    _check_probability("level", level)
    _check_probability("power", power)
    if not 2 <= groups <= items:
        raise InputError(f"a comparison needs 2 or more clusters and no more than items, got {groups} of {items}")
    if not (math.isfinite(paired_sd) and paired_sd >= 0 and math.isfinite(design_effect) and design_effect > 0):
        raise InputError(f"paired_sd is {paired_sd}, design_effect {design_effect}: must be finite and not negative")
    quantiles = float(stdtrit(groups - 1, 1 - level / 2)) + float(ndtri(power))
    return DetectableDifference(
        metric=metric,
        difference=quantiles * paired_sd * math.sqrt(design_effect / items),
        items=items,
        clusters=groups,
        paired_sd=paired_sd,
        level=level,
        power=power,
        basis=basis or f"assumed paired SD {paired_sd:g}",
    )


def expected_calibration_error(confidence: Floats, correct: Floats, *, bins: int = 10) -> float:
    """Mean gap between confidence and accuracy over equal bins of confidence, weighted by items (Guo et al. 2017).

    Args:
        confidence: ``[items]``, probability given to the choice that was taken.
        correct: ``[items]``, 1 if it was right, 0 if not, a share at ties.
        bins: Number of bins of equal width on 0 to 1.
    """
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(place, confidence - correct, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def _check_probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"{name} is {value}, must be between 0 and 1")
