"""Scores and baselines for forecasts: the interval score, and a straight line in log-log."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from wholestack.errors import FitError, InputError
from wholestack.record import Record
from wholestack.scaling.points import RunPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class StraightLine(Record):
    """Least squares of ln loss on ln cost."""

    predicted: float
    """Loss at the target."""
    interval: tuple[float, float]
    """Textbook prediction interval, which trusts the line."""
    level: float
    """Its coverage if the line were true."""
    slope: float
    """d ln loss / d ln cost."""


def straight_line(points: Sequence[RunPoint], target_cost_flops: float, *, level: float = 0.9) -> StraightLine:
    """The baseline that a forecast must beat.

    Raises:
        FitError: fewer than three points or a single cost.
    """
    x, y = np.log([p.cost_flops for p in points]), np.log([p.loss for p in points])
    if len(x) < 3 or np.ptp(x) == 0:
        raise FitError(f"a line needs 3 points at 2 costs, got {len(x)} at {len(set(x.tolist()))}")
    slope, intercept = np.polyfit(x, y, 1)
    spread = float(np.sqrt(np.sum((y - intercept - slope * x) ** 2) / (len(x) - 2)))
    goal = math.log(target_cost_flops)
    leverage = 1 + 1 / len(x) + (goal - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2)
    half = float(student.ppf(0.5 + level / 2, len(x) - 2)) * spread * float(np.sqrt(leverage))
    middle = float(intercept + slope * goal)
    return StraightLine(
        predicted=math.exp(middle),
        interval=(math.exp(middle - half), math.exp(middle + half)),
        level=level,
        slope=float(slope),
    )


def interval_score(actual: float, interval: tuple[float, float], level: float) -> float:
    """Width plus 2/(1 - level) times the distance by which the actual value lies outside; smaller is better.

    A proper score (Gneiting and Raftery 2007, equation 43): neither a wide nor an overconfident interval wins.
    """
    low, high = interval
    if not (low <= high and 0 < level < 1):
        raise InputError(f"interval {interval} at level {level}: needs low <= high and a level between 0 and 1")
    outside = max(low - actual, 0.0, actual - high)
    return high - low + 2 / (1 - level) * outside
