"""Whether a model's confidence can be believed: reliability bins, calibration error, temperature, abstention.

Notation: s_ij is the value of choice j of item i (see :mod:`wholestack.evals.scores`), p_ij = softmax_j(s_ij), the
confidence of item i is max_j p_ij, its credit 1 if the choice taken is right, 0 if not, 1/k at a tie of k choices.

- ``ece`` is the mean gap of confidence and credit over ten equal bins (Guo et al. 2017). It is biased upwards: a
  perfectly calibrated model has one above zero, and the more so the fewer items there are. So it stands beside
  ``ece_if_calibrated``, the mean of what these confidences would give if they were right, with the share of such draws
  that reach the ``ece`` found (consistency resampling, Brocker & Smith 2007; items are taken as independent), and
  beside the root of the squared gap without its bias (Kumar, Liang & Ma 2019, "debiased").
- Bands of bins are exact binomial (Clopper & Pearson 1934). At ties they take the credit rounded outwards.
- The temperature T minimises the mean of -log softmax_j(s_ij / T)[gold] on one half and is judged on the other.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from wholestack.evals.statistics import Floats, Interval, Ints, expected_calibration_error
from wholestack.record import Record

BINS = 10
ACCURACIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Accuracies for which the abstention curve says how many items can be answered."""
CURVE_POINTS = 20
DRAWS = 1000
TIE = 1e-12
"""Relative difference below which two choices are tied."""
_DRAWN_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin(Record):
    """Items whose confidence lies in one range; empty bins are left out."""

    low: float
    """Lower end of the range, in it."""
    high: float
    """Upper end, not in it but for the last bin."""
    items: int
    """Items in it."""
    confidence: float
    """Their mean confidence."""
    accuracy: float
    """Their mean credit."""
    band: Interval
    """Where the true accuracy lies, exact binomial; items are taken as independent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperatureFit(Record):
    """A temperature fitted on one half of the items and judged on the other; clusters are never torn apart."""

    temperature: float
    """Above 1: the model was too sure."""
    fitted_on: int
    """Items of the half that it was fitted on."""
    tested_on: int
    """Items of the other half, to which the four numbers belong."""
    nll_before_nats: float
    """Mean loss of the softmax over choices at temperature 1."""
    nll_after_nats: float
    """The same at the fitted temperature."""
    ece_before: float
    """Calibration error at temperature 1."""
    ece_after: float
    """The same at the fitted temperature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint(Record):
    """What answering only the surest items gives."""

    coverage: float
    """Share of items answered."""
    confidence: float
    """Smallest confidence among them."""
    accuracy: float
    """Mean credit of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstention(Record):
    """Accuracy over the share of items answered, the surest first; items of equal confidence stay together."""

    area: float
    """Mean accuracy over all coverages; equals the accuracy where confidence says nothing."""
    points: tuple[CoveragePoint, ...]
    """The curve at about twenty coverages, the last one everything."""
    reached: dict[str, CoveragePoint]
    """For an accuracy, for instance ``0.9``: the largest coverage at which it is still reached; absent if nowhere."""
    first_reached: dict[str, CoveragePoint]
    """The smallest coverage at which it is reached; with few items behind it that may be luck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Record):
    """Confidence against credit for one normalisation."""

    normalisation: str
    """``raw``, ``per_byte``, ``per_token`` or ``per_char``."""
    ece: float
    """Expected calibration error in ten equal bins, biased upwards."""
    ece_if_calibrated: float
    """What a calibrated model with these confidences would show on average."""
    ece_p_value: float
    """Share of draws from such a model with an error as large; small: the model is not calibrated."""
    rms_error: float
    """Root of the squared gap over the same bins with its bias removed; 0 where the gap is no more than chance."""
    bins: tuple[ReliabilityBin, ...]
    """The reliability diagram."""
    temperature: TemperatureFit | None
    """``None`` where a half is empty, or no finite temperature is best: all right, or no better than a blind guess."""
    abstention: Abstention
    """Accuracy over coverage."""

    def flat(self) -> dict[str, float]:
        """Every number by a name that ends in the normalisation or what was done; what is not defined is absent."""
        variant = self.normalisation
        numbers = {
            f"ece_{variant}_if_calibrated": self.ece_if_calibrated,
            f"ece_{variant}_p_value": self.ece_p_value,
            f"rms_calibration_error_{variant}": self.rms_error,
            f"abstention_area_{variant}": self.abstention.area,
        }
        for stated, point in self.abstention.reached.items():
            numbers[f"coverage_{variant}_at_accuracy_{stated}"] = point.coverage
        for stated, point in self.abstention.first_reached.items():
            numbers[f"smallest_coverage_{variant}_at_accuracy_{stated}"] = point.coverage
        return numbers | (_flat_temperature(variant, self.temperature) if self.temperature else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceValues:
    """Values of the choices of some items, one item behind the other."""

    values: Floats
    """``[choices]``, the larger the likelier."""
    offsets: Ints
    """``[items]``, first choice of each."""
    answers: Ints
    """``[items]``, index of the right choice among all choices."""

    @property
    def sizes(self) -> Ints:
        """``[items]``, choices of each."""
        return np.diff(self.offsets, append=len(self.values))

    def only(self, keep: np.ndarray) -> "ChoiceValues":
        """Some of the items.

        Args:
            keep: ``[items]``, true for those.
        """
        sizes = self.sizes
        kept = sizes[keep]
        offsets = np.cumsum(kept) - kept
        return ChoiceValues(
            values=self.values[np.repeat(keep, sizes)],
            offsets=offsets,
            answers=offsets + (self.answers - self.offsets)[keep],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The softmax over the choices of each item, ``[items]`` each."""

    nll: Floats
    """Minus the logarithm of the probability of the right choice."""
    credit: Floats
    """1 if the right choice has the largest value, 1/k at a tie of k, else 0."""
    brier: Floats
    """Squared distance from the right answer, over all choices."""
    confidence: Floats
    """Probability of the likeliest choice."""


def outcome_of(choices: ChoiceValues, *, temperature: float = 1.0) -> Outcome:
    """Probabilities, loss and credit of every item."""
    sizes = choices.sizes
    best = np.maximum.reduceat(choices.values, choices.offsets)
    shifted = (choices.values - np.repeat(best, sizes)) / temperature
    normaliser = np.log(np.add.reduceat(np.exp(shifted), choices.offsets))
    log_p = shifted - np.repeat(normaliser, sizes)
    right = np.zeros(len(choices.values))
    right[choices.answers] = 1
    # Choices that differ by rounding alone are tied: their values were divided by different lengths.
    top = np.repeat(best, sizes)
    is_best = choices.values >= top - TIE * np.maximum(np.abs(top), 1.0)
    ties = np.add.reduceat(is_best.astype(np.float64), choices.offsets)
    return Outcome(
        nll=-log_p[choices.answers],
        credit=is_best[choices.answers] / ties,
        brier=np.add.reduceat((np.exp(log_p) - right) ** 2, choices.offsets),
        confidence=np.exp(-normaliser),
    )


def calibration(
    normalisation: str, choices: ChoiceValues, *, tested: np.ndarray, level: float, seed: int
) -> Calibration:
    """Everything about the confidence of one model in one normalisation.

    Args:
        normalisation: Named in the result.
        choices: Scored items, at least one, in an order that does not depend on how they came.
        tested: ``[items]``, true for the half that the temperature is judged on; see :func:`held_out_half`.
        level: Of the bands.
        seed: Of the draws from a calibrated model.
    """
    outcome = outcome_of(choices)
    ece = expected_calibration_error(outcome.confidence, outcome.credit, bins=BINS)
    drawn = _errors_if_calibrated(outcome.confidence, np.random.default_rng(seed))
    return Calibration(
        normalisation=normalisation,
        ece=ece,
        ece_if_calibrated=float(drawn.mean()),
        ece_p_value=float((1 + (drawn >= ece - 1e-12).sum()) / (1 + len(drawn))),
        rms_error=_debiased_rms(outcome),
        bins=reliability(outcome.confidence, outcome.credit, level=level),
        temperature=fit_temperature(choices, tested),
        abstention=abstention(outcome.confidence, outcome.credit),
    )


def held_out_half(cluster_names: Sequence[str]) -> np.ndarray:
    """Which items a temperature is judged on: decided by a hash of each cluster's name, never by order.

    Args:
        cluster_names: ``[items]``, one name for all items of a cluster.
    """
    sides = {name: hashlib.sha256(f"half\0{name}".encode()).digest()[0] & 1 for name in set(cluster_names)}
    return np.array([sides[name] for name in cluster_names], dtype=bool)


def clopper_pearson(right: float, items: int, *, level: float) -> Interval:
    """Exact binomial interval of a share; of a count that is no whole number the one rounded outwards.

    Args:
        right: Successes, 0 to ``items``.
        items: Trials, at least one.
        level: Probability of covering, at least.
    """
    low, high = float(np.floor(right + 1e-9)), float(np.ceil(right - 1e-9))
    tail = (1 - level) / 2
    return Interval(
        low=float(betaincinv(low, items - low + 1, tail)) if low > 0 else 0.0,
        high=float(betaincinv(high + 1, items - high, 1 - tail)) if high < items else 1.0,
        level=level,
    )


def reliability(confidence: Floats, credit: Floats, *, level: float = 0.95) -> tuple[ReliabilityBin, ...]:
    """Ten equal bins of confidence; those without an item are left out."""
    place = _places(confidence)
    bins = []
    for number in np.unique(place).tolist():
        inside = place == number
        items = int(inside.sum())
        bins.append(
            ReliabilityBin(
                low=number / BINS,
                high=(number + 1) / BINS,
                items=items,
                confidence=float(confidence[inside].mean()),
                accuracy=float(credit[inside].mean()),
                band=clopper_pearson(float(credit[inside].sum()), items, level=level),
            )
        )
    return tuple(bins)


def fit_temperature(choices: ChoiceValues, tested: np.ndarray) -> TemperatureFit | None:
    """Fit on the items that are not ``tested``, judge on those that are."""
    if tested.all() or not tested.any():
        return None
    temperature = best_temperature(choices.only(~tested))
    if temperature is None:
        return None
    other = choices.only(tested)
    before, after = outcome_of(other), outcome_of(other, temperature=temperature)
    return TemperatureFit(
        temperature=temperature,
        fitted_on=int((~tested).sum()),
        tested_on=int(tested.sum()),
        nll_before_nats=float(before.nll.mean()),
        nll_after_nats=float(after.nll.mean()),
        ece_before=expected_calibration_error(before.confidence, before.credit, bins=BINS),
        ece_after=expected_calibration_error(after.confidence, after.credit, bins=BINS),
    )


def best_temperature(choices: ChoiceValues) -> float | None:
    """The temperature of least loss; ``None`` where the loss falls all the way to 0 or to infinity.

    The loss is convex in 1/T; its slope there is the mean over items of the expected value minus the right one.
    """
    from scipy.optimize import brentq  # a third of what importing this package takes

    best = np.maximum.reduceat(choices.values, choices.offsets)
    shifted = choices.values - np.repeat(best, choices.sizes)
    scale = float(np.abs(shifted).mean())
    if scale == 0:
        return None

    def slope(log_inverse: float) -> float:
        weights = np.exp(shifted * np.exp(log_inverse))
        sums = np.add.reduceat(weights, choices.offsets)
        expected = np.add.reduceat(weights * shifted, choices.offsets) / sums
        return float((expected - shifted[choices.answers]).mean())

    low, high = -np.log(scale) - 12, -np.log(scale) + 12
    if slope(low) >= 0 or slope(high) <= 0:
        return None
    return float(np.exp(-brentq(slope, low, high, xtol=1e-12)))


def abstention(confidence: Floats, credit: Floats) -> Abstention:
    """Accuracy of the surest items over their share."""
    order = np.lexsort((credit, -confidence))
    sure, ends = confidence[order], np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True)) + 1
    total = np.cumsum(credit[order])[ends - 1]
    accuracy, coverage = total / ends, ends / len(confidence)
    # Within items of equal confidence the curve is that of answering them in a random order: linear in the sums.
    starts, before = np.append(0, ends[:-1]), np.append(0.0, total[:-1])
    group = np.repeat(np.arange(len(ends)), ends - starts)
    rank = np.arange(1, len(confidence) + 1)
    mean_sum = before[group] + (rank - starts[group]) * ((total - before) / (ends - starts))[group]
    points = [
        CoveragePoint(coverage=float(coverage[at]), confidence=float(sure[ends[at] - 1]), accuracy=float(accuracy[at]))
        for at in range(len(ends))
    ]
    shown = np.unique(np.searchsorted(coverage, np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS - 1e-12))
    reaching = {str(stated): np.flatnonzero(accuracy >= stated - 1e-12) for stated in ACCURACIES}
    return Abstention(
        area=float((mean_sum / rank).mean()),
        points=tuple(points[at] for at in shown.tolist()),
        reached={stated: points[where[-1]] for stated, where in reaching.items() if len(where)},
        first_reached={stated: points[where[0]] for stated, where in reaching.items() if len(where)},
    )


def _flat_temperature(variant: str, fit: TemperatureFit) -> dict[str, float]:
    return {
        f"temperature_{variant}": fit.temperature,
        f"choice_nll_{variant}_before_temperature": fit.nll_before_nats,
        f"choice_nll_{variant}_after_temperature": fit.nll_after_nats,
        f"ece_{variant}_before_temperature": fit.ece_before,
        f"ece_{variant}_after_temperature": fit.ece_after,
    }


def _places(confidence: Floats) -> Ints:
    return np.minimum((confidence * BINS).astype(np.int64), BINS - 1)


def _errors_if_calibrated(confidence: Floats, rng: np.random.Generator) -> Floats:
    """``[draws]``, the calibration error of outcomes drawn with these confidences as their true probabilities."""
    order = np.argsort(_places(confidence), kind="stable")
    sure = confidence[order]
    starts = np.flatnonzero(np.append(True, np.diff(_places(sure)) != 0))
    rows = max(1, _DRAWN_AT_ONCE // len(sure))
    errors = []
    for first in range(0, DRAWS, rows):
        drawn = rng.random((min(rows, DRAWS - first), len(sure))) < sure
        gaps = np.add.reduceat(sure - drawn, starts, axis=1)
        errors.append(np.abs(gaps).sum(axis=1) / len(sure))
    return np.concatenate(errors)


def _debiased_rms(outcome: Outcome) -> float:
    """Squared gap of each bin minus the part of it that the accuracy's own variance makes, weighted by items."""
    total = 0.0
    place = _places(outcome.confidence)
    for number in np.unique(place):
        inside = place == number
        items = int(inside.sum())
        if items < 2:
            continue
        accuracy = float(outcome.credit[inside].mean())
        gap = float(outcome.confidence[inside].mean()) - accuracy
        total += items * (gap**2 - accuracy * (1 - accuracy) / (items - 1))
    return float(np.sqrt(max(0.0, total / len(place))))
