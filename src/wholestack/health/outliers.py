"""Which hosts stand out of a fleet, at a false-alarm rate that is kept whatever healthy values look like.

Healthy values are not normal: temperatures are skewed and come in whole degrees, rates have heavy tails, idle and busy
hosts form two humps. A threshold in standard deviations, or in median absolute deviations (MAD), keeps its promise
only for the distribution that it was computed for. Here the fleet itself says how heavy its tail is.

Notation, high values bad: ``x_1 >= x_2 >= ... >= x_n``. Are the top ``j`` faulty? Beyond a high value the tail of
nearly every distribution is a generalised Pareto one (Pickands 1975) with a shape ``xi``: 0 for an exponential tail,
below 0 for one that ends, ``1/v`` for a Student t with v degrees of freedom. For it

* ``s_i = i (x_i - x_{i+1})``, ``i > j``, are about independent and exponential with mean ``theta (i/r)^-xi`` (Renyi
  1953, Beirlant et al. 1999), whatever the top ``j`` are;
* given ``x_{j+1}``, the chance that all of ``j`` healthy values lie a gap ``g`` above it is
  ``(1 + xi g/mu)^(-j/xi)`` with ``mu = theta ((j+1)/r)^-xi``, the local scale.

``xi`` and ``theta`` are integrated over their posterior from the spacings below. The prior of ``xi`` says what healthy
hardware is like where few values say little; a gap between two humps only widens ``theta``, which errs towards silence.

Whole numbers and ties: equal values are spread evenly over the resolution ``delta``, and the local scale is never
below it; so one degree more, or one count where all others have none, is nothing.

What this cannot see, by design: fewer than sixteen values, and more than 2 % of a kind standing out alike (that is a
second kind of host, or a second state). What it cannot forgive: a rare healthy state; a check gives a measure only
where it compares, for instance a temperature under load and one at idle under two names.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, gammaln

FEWEST = 16
"""Values without which nothing stands out."""
MOST_SHARE = 0.02
"""Of the values that can stand out on one side; at least one always can."""
SHAPES = np.linspace(-0.15, 0.4, 34) + 1e-9
"""From tails that end to a Student t with 2.5 degrees of freedom; never exactly 0, by which the formulas divide."""
LOG_PRIOR = -0.5 * ((SHAPES - 0.1) / 0.15) ** 2
MOST_WIDE, MOST_NARROW = 192, 64
"""Windows are a quarter and a sixteenth of the values, at most so many: of thousands, a quarter is no tail any more."""
WINDOW_LEAST = 30
CAUTION = 20.0
"""The bound is divided by this: Student t tails with 3 and 4 degrees of freedom pass a bound more often than it says,
since their windows are not yet Pareto. Set by measurement (docs/benchmarks/fleet.md); it costs light tails little.
"""
LEAST_GAP = 3.0
"""In local scales: a smaller gap is never looked at."""
NODES = 81
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Who stands out on the high side."""

    members: tuple[int, ...]
    """Places in the values given, highest first."""
    boundary: float
    """Highest value of the others."""
    median: float
    chance: float
    """Of such a gap among healthy hosts."""


def standing_out(values: FloatArray, *, alpha: float, least: float = 0.0) -> Standing | None:
    """Those that stand out on the high side, if any do.

    Args:
        values: One a host, any order, shape (hosts,), finite.
        alpha: Chance that anything at all is named among healthy hosts.
        least: Differences from the median below this never matter.
    """
    count = len(values)
    if count < FEWEST:
        return None
    order = np.argsort(-values, kind="stable")
    raw = values[order]
    most = max(1, int(count * MOST_SHARE))
    median = float(np.median(raw))
    if raw[0] - median < max(least, np.finfo(float).tiny):
        return None
    resolution = _resolution(raw, most)
    spread = _spread_ties(raw, resolution)
    found = None
    for outside in range(1, most + 1):
        # The bounds of all j add up to less than alpha.
        bound = alpha / CAUTION / (outside * (outside + 1))
        if raw[outside - 1] - median < least:
            break
        chance = _chance(spread, outside, resolution)
        if chance <= bound:
            found = Standing(
                members=tuple(int(place) for place in order[:outside]),
                boundary=float(raw[outside]),
                median=median,
                chance=chance,
            )
    return found


def _chance(x: FloatArray, outside: int, resolution: float) -> float:
    """Chance of the gap below the top ``outside`` values among healthy ones.

    A wide window knows the shape well, but of a tail that grows heavier outwards (Student t) it sees too little. So
    where the outermost spacings are wider than it predicts, a narrow window is asked too, and the higher chance counts.
    """
    gap = float(x[outside - 1] - x[outside])
    wide = _window(min(len(x) // 4, MOST_WIDE), len(x), outside)
    narrow = _window(min(len(x) // 16, MOST_NARROW), len(x), outside)
    ranks = np.arange(outside + 1, outside + wide + 1, dtype=float)
    spacings = ranks * (x[outside : outside + wide] - x[outside + 1 : outside + wide + 1])
    total = max(float(spacings.sum()), wide * resolution / 2)
    if total <= 0 or gap <= max(resolution, LEAST_GAP * total / wide / outside):
        return 1.0
    tail = _fitted(ranks, spacings)
    chance = _predicted(gap, tail, outside, resolution)
    if narrow < wide and tail.outermost(narrow) > 1.0:
        near = _fitted(ranks[:narrow], spacings[:narrow])
        chance = max(chance, _predicted(gap, near, outside, resolution))
    return chance


def _window(size: int, count: int, outside: int) -> int:
    """So many spacings, but at least 30 where there are as many, and never of the lower half."""
    return min(max(size, WINDOW_LEAST), count // 2, count - outside - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tail:
    """What the spacings below the candidates say of the tail, for every shape of :data:`SHAPES`."""

    logs: FloatArray
    """Logarithms of the ranks as shares of the window, (window,)."""
    spacings: FloatArray
    """Normalised, outermost first, (window,)."""
    sums: FloatArray
    """Of spacings that the shape has made alike, (shapes,)."""
    weights: FloatArray
    """Posterior of the shape, (shapes,)."""

    def outermost(self, count: int) -> float:
        """Mean of the outermost spacings as a share of what the likeliest shape predicts."""
        best = int(np.argmax(self.weights))
        alike = self.spacings[:count] * np.exp(SHAPES[best] * self.logs[:count])
        return float(alike.mean() * len(self.spacings) / self.sums[best])


def _fitted(ranks: FloatArray, spacings: FloatArray) -> _Tail:
    """Shapes weighed by their marginal likelihood, the scale integrated under its Jeffreys prior, and by the prior."""
    window = len(ranks)
    logs = np.log(ranks / (ranks[-1] + 1))
    sums = np.exp(np.outer(SHAPES, logs)) @ np.maximum(spacings, max(float(spacings.sum()), 1e-300) * 1e-12)
    weights = SHAPES * logs.sum() - window * np.log(sums) + LOG_PRIOR
    weights = np.exp(weights - weights.max())
    return _Tail(logs=logs, spacings=spacings, sums=sums, weights=weights / weights.sum())


def _predicted(gap: float, tail: _Tail, outside: int, resolution: float) -> float:
    """Chance of a gap, shape and scale integrated over what the spacings say of them."""
    nodes, node_weights = _gamma_nodes(len(tail.spacings))
    local = tail.sums[:, None] / nodes[None, :] * np.exp(-SHAPES * tail.logs[0])[:, None]
    local = np.maximum(local, resolution)
    # Below zero the tail ends at a finite value, beyond which nothing healthy lies.
    left = np.maximum(1 + SHAPES[:, None] * gap / local, 1e-300)
    chances = np.exp(-outside / SHAPES[:, None] * np.log(left))
    chances[left <= 1e-300] = 0.0
    return float(tail.weights @ (chances @ node_weights))


def _gamma_nodes(window: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights over ``total/theta``, which is gamma distributed with shape ``window``."""
    low, high = np.log(gammaincinv(window, 1e-12)), np.log(gammaincinv(window, 1 - 1e-12))
    logs = np.linspace(low, high, NODES)
    weights = np.exp(window * logs - np.exp(logs) - gammaln(window))
    return np.exp(logs), weights / weights.sum()


def _resolution(raw: FloatArray, most: int) -> float:
    """The step of the values: the smallest difference within the bulk; of a bulk that is all but constant, the last
    decimal place that any value uses, and at least a hundredth of the median."""
    digits = min(12 - int(np.ceil(np.log10(max(np.abs(raw).max(), 1e-300)))), 300)
    distinct = np.unique(np.round(raw[most:], digits))
    if len(distinct) >= 3:
        return float(np.diff(distinct).min())
    steps = (10.0**-places for places in range(7))
    last = next((step for step in steps if np.allclose(raw / step, np.round(raw / step), rtol=0, atol=1e-6)), 0.0)
    return max(last, 0.01 * abs(float(np.median(raw))))


def _spread_ties(raw: FloatArray, resolution: float) -> FloatArray:
    """Equal values spread evenly over one step, order kept."""
    _, first, sizes = np.unique(-raw, return_index=True, return_counts=True)
    within = np.arange(len(raw)) - np.repeat(first, sizes)
    shares = (within + 0.5) / np.repeat(sizes, sizes) - 0.5
    spread: FloatArray = raw - shares * resolution
    return spread
