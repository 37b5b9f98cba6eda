"""Does a scaling curve look clean because of what it follows, or only because of the axes it is drawn on?

Three ways to draw make a straight line of one form each: linear axes of y = a + b x, a logarithmic x axis of
y = a + b ln x, and logarithmic axes on both sides of a power law y = A x^b. A curve *looks clean* on axes where a
straight line explains at least 95 % of the variance **there**. That is little evidence: a logarithm folds large
misfits into small distances, and over a short range every smooth curve is straight ("you can hide a multitude of sins
on a log-log graph"; Clauset, Shalizi and Newman, SIAM Review 51, 2009, show what R^2 on such axes is worth). So a
clean look counts as owed to the axes when, for the very line that looks straight,

- its residuals are larger than the metric's own errors allow (chi-square, p < 0.01), or
- its residuals follow each other in order, on the axes or taken back to the linear scale (lag-one correlation against
  random order, p < 0.01), or
- taken back to the linear scale it explains less than 80 % of the variance, or
- x spans less than a factor of ten: the range is cut so short that it cannot bend.

Where the line passes on one way of drawing, the curve is clean; where it passes on several, these points do not tell
which form it follows, and an extrapolation by any of them is a guess.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammaincc

from wholestack.evals.statistics import Floats
from wholestack.record import Record

CLEAN_R2 = 0.95
LEAST_LINEAR_R2 = 0.8
LEAST_RANGE = 10.0
ALPHA = 0.01
LEAST_POINTS = 5
PERMUTATIONS = 1999

Axes = Literal["linear", "logarithmic x", "logarithmic both"]
ALL_AXES: tuple[Axes, ...] = ("linear", "logarithmic x", "logarithmic both")
Look = Literal["clean", "clean by its axes only", "clean in several ways", "not clean", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Record):
    """The straight line on one way of drawing."""

    axes: Axes
    """How the curve is drawn."""
    slope: float
    """For each unit of x, each factor e of x, or as the exponent of the power law."""
    r_squared: float
    """On these axes."""
    linear_r_squared: float
    """Of the same line taken back to the linear scale of y."""
    misfit: float | None
    """Chi-square for each degree of freedom, 1 where the errors explain the residuals; ``None`` without errors."""
    misfit_p_value: float | None
    """Of residuals so large if the line were true."""
    order_p_value: float
    """Of residuals that follow each other so closely if their order meant nothing."""
    looks_clean: bool
    """Whether ``r_squared`` is at least 0.95."""
    reasons: tuple[str, ...]
    """Why a clean look is owed to the axes; empty where it is not, or where it does not look clean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Straightness(Record):
    """A curve on all axes."""

    look: Look
    """Verdict; ``unknown`` with fewer than five points."""
    lines: tuple[Line, ...]
    """One for each way of drawing that is possible; a value of zero or less has no logarithm."""


def straightness(x: Floats, values: Floats, errors: Floats | None, *, rng: np.random.Generator) -> Straightness:
    """Fit a straight line on every way of drawing and say what a clean look is worth.

    Args:
        x: ``[points]``, rising and above zero.
        values: ``[points]``.
        errors: ``[points]``, standard errors above zero, or ``None`` where they are not known.
        rng: Source of the random orders.
    """
    if len(x) < LEAST_POINTS or np.ptp(values) == 0:
        return Straightness(look="unknown", lines=())
    lines = tuple(
        _line(axes, x, values, errors, rng)
        for axes in ALL_AXES
        if (axes == "linear" or x.min() > 0) and (axes != "logarithmic both" or values.min() > 0)
    )
    looking = [line for line in lines if line.looks_clean]
    passing = [line for line in looking if not line.reasons]
    look: Look = "not clean"
    if passing:
        look = "clean" if len(passing) == 1 else "clean in several ways"
    elif looking:
        look = "clean by its axes only"
    return Straightness(look=look, lines=lines)


def _line(axes: Axes, x: Floats, values: Floats, errors: Floats | None, rng: np.random.Generator) -> Line:
    t = x if axes == "linear" else np.log(x)
    folded = axes == "logarithmic both"
    y = np.log(values) if folded else values
    spread = None if errors is None else (errors / values if folded else errors)
    slope, start = np.polyfit(t, y, 1, w=None if spread is None else 1 / spread)
    fitted = start + slope * t
    back = np.exp(fitted) if folded else fitted
    misfit, misfit_p = _misfit(y - fitted, spread)
    order = min(_order(y - fitted, rng), _order(values - back, rng) if folded else 1.0)
    line = Line(
        axes=axes,
        slope=float(slope),
        r_squared=_r_squared(y, fitted),
        linear_r_squared=_r_squared(values, back),
        misfit=misfit,
        misfit_p_value=misfit_p,
        order_p_value=order,
        looks_clean=_r_squared(y, fitted) >= CLEAN_R2,
        reasons=(),
    )
    if not line.looks_clean:
        return line
    reasons = tuple(_reasons(line, float(x[-1] / x[0]) if x[0] > 0 else math.inf))
    return Line(**{name: getattr(line, name) for name in line.__dataclass_fields__} | {"reasons": reasons})


def _reasons(line: Line, factor: float) -> list[str]:
    found = []
    if line.misfit is not None and line.misfit_p_value is not None and line.misfit_p_value < ALPHA:
        found.append(f"the line misses the points by {math.sqrt(line.misfit):.1f} times their errors")
    if line.order_p_value < ALPHA:
        found.append("the residuals bend: they follow each other in order")
    if line.linear_r_squared < LEAST_LINEAR_R2:
        found.append(
            f"on the linear scale the same line explains {100 * max(0.0, line.linear_r_squared):.0f} % of the variance"
        )
    if factor < LEAST_RANGE:
        found.append(f"x spans a factor of {factor:.2g} only, where every smooth curve is straight")
    return found


def _r_squared(values: Floats, fitted: Floats) -> float:
    return 1 - float(np.sum((values - fitted) ** 2) / np.sum((values - values.mean()) ** 2))


def _misfit(residuals: Floats, errors: Floats | None) -> tuple[float | None, float | None]:
    if errors is None:
        return None, None
    freedom = len(residuals) - 2
    chi_square = float(np.sum((residuals / errors) ** 2))
    return chi_square / freedom, float(gammaincc(freedom / 2, chi_square / 2))


def _order(residuals: Floats, rng: np.random.Generator) -> float:
    """One-sided permutation test of the sum of squared steps between neighbours (von Neumann 1941)."""
    scale = float(np.abs(residuals).max())
    if scale == 0:
        return 1.0
    shuffled = rng.permuted(np.tile(residuals / scale, (PERMUTATIONS, 1)), axis=1)
    steps = np.sum(np.diff(shuffled, axis=1) ** 2, axis=1)
    actual = float(np.sum(np.diff(residuals / scale) ** 2))
    return float((1 + np.sum(steps <= actual * (1 + 1e-9))) / (1 + PERMUTATIONS))
