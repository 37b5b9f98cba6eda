"""What a candidate is worth, where candidates come from, and the search for the best of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import erfcx, log_ndtr

from wholestack.search.dimensions import Array
from wholestack.search.kernel import Mask
from wholestack.search.space import Space

Score: TypeAlias = Callable[[Array], Array]
"""[m, d] allowed points to [m] log values; minus infinity forbids."""

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def log_expected_improvement(mean: Array, deviation: Array, target: float) -> Array:
    """Log of E[max(0, target - f)] for f ~ N(mean, deviation^2).

    Exact to rounding however hopeless the candidate, so that candidates can be told apart everywhere.

    References:
        Ament et al. (2023), Unexpected improvements to expected improvement, eq. 9 and appendix A.
    """
    z = (target - mean) / deviation
    return np.asarray(np.log(deviation) + _log_h(z), np.float64)


def _log_h(z: Array) -> Array:
    """Log of phi(z) + z Phi(z)."""
    near = np.maximum(z, -1.0)
    density = np.exp(-0.5 * near**2 - _LOG_ROOT_2PI)
    plain = np.log(density + near * np.exp(log_ndtr(near)))
    far = np.clip(z, -1e7, -1.0)
    ratio = math.sqrt(math.pi / 2.0) * erfcx(-far / math.sqrt(2.0))
    with np.errstate(divide="ignore"):
        tail = np.where(far > -1e3, np.log1p(np.maximum(far * ratio, -1.0)), -2.0 * np.log(-far))
    return np.where(z > -1.0, plain, -0.5 * far**2 - _LOG_ROOT_2PI + tail)


def log_below(mean: Array, deviation: Array, limit: float, *, least_deviation: float = 0.01) -> Array:
    """Log probability that N(mean, deviation^2) is below a limit."""
    return np.asarray(log_ndtr((limit - mean) / np.maximum(deviation, least_deviation)), np.float64)


def log_search_prior(points: Array, origins: Array, ordered: Mask, radius: float) -> Array:
    """Log density, up to a constant, of a Gaussian round the nearest origin.

    Its deviation is ``radius * sqrt(d)`` in the distance over all d ordered dimensions: a local step in every
    dimension costs half a nat, however many there are. Another choice in a categorical dimension counts as one step.
    """
    d = max(1, points.shape[1])
    left, right = points[:, ordered] / radius, origins[:, ordered] / radius
    squared = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :] - 2.0 * (left @ right.T)
    for j in np.flatnonzero(~ordered):
        squared += points[:, j, None] != origins[None, :, j]
    return np.asarray(-0.5 * np.maximum(squared, 0.0).min(axis=1) / d, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """Points that candidates start from."""

    x: Array
    """[k, d] coordinates."""
    log_cost: Array
    """[k] their log costs, rising."""

    def near(self, log_cost: float) -> Array:
        """[k] probabilities: mostly bases within a factor of e of the cost, a tenth spread over all."""
        weight = np.exp(-0.5 * (self.log_cost - log_cost) ** 2)
        total = float(weight.sum())
        uniform = np.full(len(weight), 1.0 / len(weight))
        return uniform if total < 1e-12 else 0.9 * weight / total + 0.1 * uniform


def local_candidates(
    space: Space, bases: Array, probability: Array, *, count: int, radius: float, rng: np.random.Generator
) -> Array:
    """[count, d] steps of a quarter to twice the radius from bases, in all dimensions, half of them, or a few."""
    rows = rng.choice(len(bases), size=count, p=probability)
    length = radius * rng.choice(np.array([0.25, 0.5, 1.0, 2.0]), count)
    share = rng.choice(np.array([1.0, 0.5, 1.5 / len(space)]), count)
    return space.move(bases[rows], length, np.minimum(share, 1.0), rng)


def along_front(
    space: Space, bases: Bases, log_cost: float, *, count: int, radius: float, rng: np.random.Generator
) -> Array:
    """[count, d] points where the front leads at a cost: straight lines of its coordinates against log cost, jittered.

    Categorical columns come from a base near the cost. None where the front has no extent.
    """
    if len(bases.x) < 3 or np.ptp(bases.log_cost) < 1e-6:
        return np.zeros((0, len(space)))
    weight = np.sqrt(np.exp(-0.25 * (bases.log_cost - log_cost) ** 2) + 1e-3)
    design = np.stack([np.ones(len(bases.x)), bases.log_cost - log_cost], axis=1) * weight[:, None]
    ridge = np.array([1e-9, 1e-3]) * float(np.sum(weight**2))
    normal = design.T @ design + np.diag(ridge)
    line = np.linalg.solve(normal, design.T @ (bases.x * weight[:, None]))
    points = bases.x[rng.choice(len(bases.x), size=count, p=bases.near(log_cost))]
    points[:, space.ordered] = line[0][space.ordered]
    length = radius * rng.choice(np.array([0.25, 0.5, 1.0]), count)
    return space.move(space.snap(points), length, np.ones(count), rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum:
    """The best candidate found."""

    x: Array
    """[d] its coordinates."""
    score: float
    """Its log value; minus infinity if every candidate was forbidden."""


def maximise(
    space: Space,
    score: Score,
    candidates: Array,
    rng: np.random.Generator,
    *,
    radius: float,
    rounds: int = 4,
    per_round: int = 256,
    survivors: int = 12,
) -> Maximum:
    """Best of the candidates, then of ever smaller steps round the best so far."""
    values = score(candidates)
    order = np.argsort(-values, kind="stable")[:survivors]
    best, values = candidates[order], values[order]
    for number in range(rounds):
        if not np.isfinite(values[0]):
            break
        share = np.full(len(best), 1.0 / len(best))
        fresh = local_candidates(space, best, share, count=per_round, radius=radius * 0.6**number, rng=rng)
        best, values = np.concatenate([best, fresh]), np.concatenate([values, score(fresh)])
        order = np.argsort(-values, kind="stable")[:survivors]
        best, values = best[order], values[order]
    return Maximum(x=best[0], score=float(values[0]))
