"""Does a metric jump between checkpoints, or does it improve smoothly?

Notation: checkpoint i stands at t_i on an axis (x itself or its logarithm) and has the value y_i with standard error
s_i, turned so that the curve improves upwards. Smooth means *diminishing returns*: from one checkpoint to the next
the improvement for each step of the axis never grows (f is concave). Straight lines, power laws and exponential decay
of a loss are all of that kind; a curve that lies flat and then takes off is not.

The test: T is the smallest sum of ((y_i - f(t_i)) / s_i)^2 over all concave f (quadratic programming, by non-negative
least squares over hinges behind a free straight line). Under the null T is largest in distribution where f is a
straight line (least favourable point of a convex cone; Silvapulle and Sen, Constrained Statistical Inference, 2005,
chapter 3), so its p-value is simulated there with the metric's own errors at its own checkpoints. A concave curve is
therefore taken for a jump with a probability of at most the level of the test, whatever its form. Where no errors
are known, T is divided by the noise between neighbours (residuals from the line between both neighbours; Gasser,
Sroka and Jennen-Steinmetz, Biometrika 73, 1986), and the simulation does the same.

A curve that fails the test accelerates. It *jumps* when also at least half of its whole change falls into the
fastest quarter of the axis.

Schaeffer, Miranda and Koyejo ("Are Emergent Abilities of Large Language Models a Mirage?", 2023, arXiv:2304.15004)
show how a metric makes such a jump: an answer of k tokens, each right with probability p, matches exactly with
probability p^k, so that exact match lies flat and takes off while the loss -ln p of the same models falls smoothly.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import nnls

from wholestack.evals.statistics import Floats
from wholestack.record import Record

ALPHA = 0.01
LEAST_POINTS = 5
SIMULATIONS = 1999
JUMP_SHARE = 0.5
JUMP_WIDTH = 0.25
"""Of the axis."""

_DRAWS, _FEWEST_DRAWS = 999, 399
_DOUBLINGS, _HALVINGS = 14, 7

Shape = Literal["smooth", "accelerates", "jumps", "no change", "unknown"]
Axis = Literal["linear", "logarithmic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpTest(Record):
    """One curve on one axis."""

    axis: Axis
    """How x was taken."""
    shape: Shape
    """Verdict; ``no change`` where the whole change is no more than noise, ``unknown`` with too few points."""
    p_value: float | None
    """Of so much acceleration in a curve of diminishing returns; ``None`` where it was not tested."""
    share: float | None
    """Of the whole change, in the fastest quarter of the axis."""
    begin: float | None
    """x where that quarter begins."""
    end: float | None
    """x where it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableJump(Record):
    """The smallest jump that a curve without one would have shown."""

    like: str
    """Metric whose jump has the form that was tried."""
    size: float | None
    """Change by the jump, in the unit of the curve's own metric; ``None`` where one of any size would be hidden."""
    share: float | None
    """The same as a share of the curve's whole change; ``None`` with it."""
    power: float
    """How often a jump of this size fails the test for diminishing returns."""


def jump_test(
    x: Floats,
    values: Floats,
    errors: Floats | None,
    *,
    axis: Axis,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    simulations: int = SIMULATIONS,
) -> JumpTest:
    """Say whether a curve jumps on an axis.

    Args:
        x: ``[points]``, rising, above zero for a logarithmic axis.
        values: ``[points]``, in either direction: what is tested is the change from left to right.
        errors: ``[points]``, standard errors above zero, or ``None`` where they are not known.
        axis: How to take x.
        rng: Source of the simulation.
        alpha: Probability at most of calling a curve of diminishing returns anything but smooth.
        simulations: Curves that are simulated at most; long curves get fewer.
    """
    if len(x) >= LEAST_POINTS and np.ptp(values) == 0:
        return JumpTest(axis=axis, shape="no change", p_value=None, share=None, begin=None, end=None)
    if len(x) < LEAST_POINTS:
        return JumpTest(axis=axis, shape="unknown", p_value=None, share=None, begin=None, end=None)
    place = np.log(x) if axis == "logarithmic" else x
    t = (place - place[0]) / (place[-1] - place[0])
    test = _Test(t, errors)
    y = values * test.direction(values)
    p_change, p_shape = test.p_values(y, rng, most=simulations)
    if p_change >= alpha:
        return JumpTest(axis=axis, shape="no change", p_value=p_shape, share=None, begin=None, end=None)
    share, start = _fastest(t, rising(y, None if errors is None else errors**-2.0))
    ends = [place[0] + (place[-1] - place[0]) * each for each in (start, min(1.0, start + JUMP_WIDTH))]
    begin, end = (float(np.exp(each)) if axis == "logarithmic" else float(each) for each in ends)
    shape: Shape = "smooth"
    if p_shape < alpha:
        shape = "jumps" if share >= JUMP_SHARE else "accelerates"
    return JumpTest(axis=axis, shape=shape, p_value=p_shape, share=share, begin=begin, end=end)


def detectable_jump(
    x: Floats,
    values: Floats,
    errors: Floats | None,
    form: Floats,
    *,
    like: str,
    axis: Axis,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    power: float = 0.8,
) -> DetectableJump:
    """The smallest jump of a form that this curve would have shown: what "no jump" is worth.

    To the nearest curve of diminishing returns a jump is added, with noise as the errors say, or as neighbours scatter
    where these are not known. The same draws serve for every size, and the size is found by halving.

    Args:
        x: ``[points]``, five or more, rising, above zero for a logarithmic axis.
        values: ``[points]``.
        errors: ``[points]`` above zero, or ``None``.
        form: ``[points]``, rising from 0 to 1.
        like: Whose form it is.
        axis: How to take x.
        rng: Source of the draws.
        alpha: Level of the test.
        power: How often the jump is to be seen.
    """
    place = np.log(x) if axis == "logarithmic" else x
    test = _Test((place - place[0]) / (place[-1] - place[0]), errors)
    y = values * test.direction(values)
    spread = test.spread(y)
    draws = max(_FEWEST_DRAWS, min(_DRAWS, 40_000 // len(y)))
    critical = test.critical_value(spread * rng.normal(size=(draws, len(y))), alpha)
    base, noise = test.nearest(y), spread * rng.normal(size=(draws // 4, len(y)))

    def seen(size: float) -> bool:
        return test.rate_above(base + size * form + noise, critical) >= power

    whole = float(np.ptp(y))
    largest = next((size for size in whole * 2.0 ** np.arange(-6, _DOUBLINGS) if seen(size)), None)
    if largest is None:
        return DetectableJump(like=like, size=None, share=None, power=power)
    smallest = 0.0
    for _ in range(_HALVINGS):
        middle = (smallest + largest) / 2
        smallest, largest = (smallest, middle) if seen(middle) else (middle, largest)
    return DetectableJump(like=like, size=float(largest), share=float(largest) / whole, power=power)


def rising(values: Floats, weights: Floats | None = None) -> Floats:
    """The nearest curve that never falls: pools neighbours that do (Ayer et al. 1955)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, np.ones(len(values)) if weights is None else weights, strict=True):
        mean, mass, count = float(value), float(weight), 1
        while blocks and blocks[-1][0] >= mean:
            before, its_mass, its_count = blocks.pop()
            mean = (before * its_mass + mean * mass) / (its_mass + mass)
            mass, count = mass + its_mass, count + its_count
        blocks.append((mean, mass, count))
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks])


class _Test:
    """The projections that do not change between the data and their simulations."""

    def __init__(self, t: Floats, errors: Floats | None) -> None:
        self._scale = np.ones(len(t)) if errors is None else 1 / errors
        self._errors = errors
        self._t = t
        line = np.column_stack([np.ones(len(t)), t]) * self._scale[:, None]
        self._line, _ = np.linalg.qr(line)
        self._bends = -np.maximum(t[:, None] - t[None, 1:-1], 0) * self._scale[:, None]
        self._hinges = self._without_line(self._bends)

    def direction(self, values: Floats) -> float:
        """+1 where the curve rises from left to right on the whole, else -1."""
        weights = self._scale**2
        middle = np.average(self._t, weights=weights)
        return 1.0 if float(np.sum(weights * (self._t - middle) * values)) >= 0 else -1.0

    def p_values(self, y: Floats, rng: np.random.Generator, *, most: int) -> tuple[float, float]:
        """Of no change at all, and of diminishing returns."""
        draws = min(most, max(499, 40_000 // len(y)))
        noise = rng.normal(size=(draws, len(y))) / self._scale
        simulated = np.array([self._statistics(row) for row in noise])
        reached = simulated >= np.array(self._statistics(y)) * (1 - 1e-9)
        p_change, p_shape = (1 + reached.sum(axis=0)) / (1 + draws)
        return float(p_change), float(p_shape)

    def spread(self, y: Floats) -> Floats:
        """``[points]``, standard deviation of the noise: as the errors say, or as neighbours scatter."""
        return self._errors if self._errors is not None else np.full(len(y), self._between_neighbours(y) ** 0.5)

    def nearest(self, y: Floats) -> Floats:
        """The nearest curve of diminishing returns."""
        scaled = y * self._scale
        weights, _ = nnls(self._hinges, self._without_line(scaled))
        bent = self._bends @ weights
        return np.asarray((bent + self._line @ (self._line.T @ (scaled - bent))) / self._scale)

    def critical_value(self, noise: Floats, alpha: float) -> float:
        """What the distance must exceed for a p-value below alpha, from ``[draws, points]`` of noise alone."""
        simulated = np.sort([self._statistics(row)[1] for row in noise])[::-1]
        return float(simulated[max(0, int(np.ceil(alpha * (1 + len(noise)) - 1)) - 1)])

    def rate_above(self, curves: Floats, critical: float) -> float:
        """Share of ``[draws, points]`` whose distance exceeds a value."""
        return float(np.mean([self._statistics(row)[1] > critical for row in curves]))

    def _statistics(self, y: Floats) -> tuple[float, float]:
        scaled = y * self._scale
        level = self._scale / np.sqrt(np.sum(self._scale**2))
        change = float(np.sum((scaled - level * (level @ scaled)) ** 2))
        _, distance = nnls(self._hinges, self._without_line(scaled))
        noise = 1.0 if self._errors is not None else self._between_neighbours(y)
        return change / noise, float(distance) ** 2 / noise

    def _without_line(self, values: Floats) -> Floats:
        return np.asarray(values - self._line @ (self._line.T @ values))

    def _between_neighbours(self, y: Floats) -> float:
        gaps = np.diff(self._t)
        left = gaps[1:] / (gaps[1:] + gaps[:-1])
        residuals = y[1:-1] - left * y[:-2] - (1 - left) * y[2:]
        found = float(np.mean(residuals**2 / (1 + left**2 + (1 - left) ** 2)))
        # Values that lie on a line to the last digit have no noise to measure by.
        return found + 1e-20 * float(np.ptp(y)) ** 2 + 1e-300


def _fastest(t: Floats, curve: Floats) -> tuple[float, float]:
    """Largest share of the whole change in a window of a quarter of the axis, and where the window begins."""
    whole = float(curve[-1] - curve[0])
    starts = np.unique(np.clip(np.concatenate([t, t - JUMP_WIDTH]), 0, 1 - JUMP_WIDTH))
    gained = np.interp(starts + JUMP_WIDTH, t, curve) - np.interp(starts, t, curve)
    best = int(np.argmax(gained))
    return (float(gained[best]) / whole if whole > 0 else 0.0), float(starts[best])
