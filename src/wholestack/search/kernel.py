r"""The covariance of all three models, its hyperparameters, and the marginal likelihood with its analytic gradient.

Notation: X [n, d] coordinates, y [n] standardised targets, theta [2 d + 2] log hyperparameters, in the order

===================  =====================================================================================
``length`` [d]       ordered column: length scale l_j; categorical column: l_j with covariance exp(-1/l_j)
                     between different choices (1 between equal ones)
``linear`` [d]       variance v_j of a straight line in an ordered column, of an offset a choice otherwise
``amplitude``        variance a of the Matern term
``noise``            variance s of the observations
===================  =====================================================================================

    k(x, x') = a m(r) prod_cat exp(-[x_j != x'_j] / l_j) + sum_ord v_j x_j x'_j + sum_cat v_j [x_j = x'_j] + 1
    r^2 = sum_ord (x_j - x'_j)^2 / l_j^2,   m(r) = (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)

The constant 1 is the prior variance of the mean of standardised targets. Matern 5/2 instead of the 3/2 of CARBS: a
response to a setting is a smooth bowl, and twice differentiable paths find its floor from fewer points. Gradients
follow Rasmussen & Williams (2006), eq. 5.9; those of the length scales use
sum_ab G_ab (x_aj - x_bj)^2 = 2 (sum_a x_aj^2 G_a+ - x_j' G x_j), so that all d of them cost one matrix product and no
[n, n, d] array.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from wholestack.search.dimensions import Array

Mask: TypeAlias = npt.NDArray[np.bool_]

SQRT5 = math.sqrt(5.0)
JITTER = 1e-9
"""Added to the diagonal, relative to the mean of the diagonal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Independent normal prior on every log hyperparameter."""

    mean: Array
    """[2 d + 2]."""
    deviation: Array
    """[2 d + 2]."""

    def penalty(self, theta: Array) -> float:
        """Minus the log density, up to a constant."""
        return 0.5 * float(np.sum(((theta - self.mean) / self.deviation) ** 2))

    def gradient(self, theta: Array) -> Array:
        """Gradient of the penalty."""
        return np.asarray((theta - self.mean) / self.deviation**2, np.float64)

    def bounds(self) -> list[tuple[float, float]]:
        """Box of four deviations, where the fit stays."""
        low, high = self.mean - 4.0 * self.deviation, self.mean + 4.0 * self.deviation
        return list(zip(low.tolist(), high.tolist(), strict=True))


def default_prior(ordered: Mask, *, noise: float = 1e-3) -> Prior:
    """Length scales grow with the square root of the dimension, so that far more than a few points stay correlated.

    Args:
        ordered: [d] which columns are ordered.
        noise: Median of the noise variance, in units of the targets' variance; its log has a deviation of 2, for the
            noise of a loss is anything from a tenth to a thousandth of its spread.
    """
    d = len(ordered)
    length = np.where(ordered, math.log(1.5) + 0.5 * math.log(max(1, int(ordered.sum()))), math.log(2.0))
    mean = np.concatenate([length, np.full(d, math.log(0.05)), [0.0, math.log(noise)]])
    deviation = np.concatenate([np.full(d, 0.9), np.full(d, 1.5), [1.2, 2.0]])
    return Prior(mean=mean, deviation=deviation)


def covariance(theta: Array, left: Array, right: Array, ordered: Mask) -> Array:
    """k between every row of ``left`` [n, d] and of ``right`` [m, d], without noise; [n, m]."""
    length, linear, amplitude, _ = _split(theta)
    matern, _ = _matern(left[:, ordered] / length[ordered], right[:, ordered] / length[ordered])
    total = np.multiply(matern, amplitude, out=matern)
    total *= _mismatch(left, right, length, ordered)
    total += (left[:, ordered] * linear[ordered]) @ right[:, ordered].T
    for j in np.flatnonzero(~ordered):
        total += linear[j] * (left[:, j, None] == right[None, :, j])
    total += 1.0
    return total


def variance(theta: Array, points: Array, ordered: Mask) -> Array:
    """k of every row with itself, without noise; [n]."""
    _, linear, amplitude, _ = _split(theta)
    straight = points[:, ordered] ** 2 @ linear[ordered]
    return np.asarray(amplitude + straight + linear[~ordered].sum() + 1.0, np.float64)


def noise_variance(theta: Array) -> float:
    """Variance of one observation round the function."""
    return math.exp(float(theta[-1]))


def negative_log_likelihood(theta: Array, x: Array, y: Array, ordered: Mask) -> tuple[float, Array]:
    """Minus the log marginal likelihood of y and its gradient [2 d + 2] by theta.

    Raises:
        np.linalg.LinAlgError: the covariance is not positive definite in float64.
    """
    n = len(y)
    length, linear, amplitude, noise = _split(theta)
    scaled = x[:, ordered] / length[ordered]
    matern, slope = _matern(scaled, scaled)
    mismatch = _mismatch(x, x, length, ordered)
    smooth = amplitude * matern * mismatch
    full = smooth + (x[:, ordered] * linear[ordered]) @ x[:, ordered].T + 1.0
    for j in np.flatnonzero(~ordered):
        full += linear[j] * (x[:, j, None] == x[None, :, j])
    full[np.diag_indices(n)] += noise
    lower = cholesky(full)
    white = whitener(lower)
    alpha = white.T @ (white @ y)
    value = 0.5 * float(y @ alpha) + float(np.sum(np.log(np.diag(lower)))) + 0.5 * n * math.log(2.0 * math.pi)
    weight = white.T @ white - np.outer(alpha, alpha)

    gradient = np.empty_like(theta)
    by_distance = weight * slope * mismatch * amplitude
    quadratic = scaled**2 * by_distance.sum(axis=1)[:, None] - scaled * (by_distance @ scaled)
    d = len(ordered)
    gradient[:d][ordered] = quadratic.sum(axis=0)
    columns = x[:, ordered]
    gradient[d : 2 * d][ordered] = 0.5 * linear[ordered] * np.sum(columns * (weight @ columns), axis=0)
    for j in np.flatnonzero(~ordered):
        equal = x[:, j, None] == x[None, :, j]
        gradient[j] = 0.5 * float(np.sum((weight * smooth)[~equal])) / length[j]
        gradient[d + j] = 0.5 * linear[j] * float(np.sum(weight[equal]))
    gradient[2 * d] = 0.5 * float(np.sum(weight * smooth))
    gradient[2 * d + 1] = 0.5 * noise * float(np.trace(weight))
    return value, gradient


def cholesky(matrix: Array) -> Array:
    """Lower factor of a symmetric matrix, with the jitter that keeps repeated points apart.

    Raises:
        np.linalg.LinAlgError: not positive definite.
    """
    n = len(matrix)
    padded = matrix.copy()
    padded[np.diag_indices(n)] += JITTER * float(np.trace(matrix)) / max(n, 1)
    lower, info = lapack.dpotrf(padded, lower=1, clean=1, overwrite_a=1)
    # LAPACK passes NaN on without a word; it reaches the last element of the diagonal.
    if info != 0 or (n and not np.isfinite(np.diag(lower)).all()):
        raise np.linalg.LinAlgError(f"covariance of {n} points is not positive definite (leading minor {info})")
    return np.asarray(lower, np.float64)


def whitener(lower: Array) -> Array:
    """L^-1 of a lower factor.

    Everything else is then a product with it. LAPACK's solves with a factor (potrs, potri, trsm) would need half of the
    operations, but OpenBLAS spreads even tiny ones over all threads, and on a busy machine they then take 100 times
    as long. The error is of the order of the factor's condition, which the noise bounds.
    """
    result, _ = lapack.dtrtri(lower, lower=1)
    return np.asarray(result, np.float64)


def _split(theta: Array) -> tuple[Array, Array, float, float]:
    d = (len(theta) - 2) // 2
    plain = np.exp(theta)
    return plain[:d], plain[d : 2 * d], float(plain[2 * d]), float(plain[2 * d + 1])


def _matern(left: Array, right: Array) -> tuple[Array, Array]:
    """m(r), and -m'(r) / r = 5/3 (1 + sqrt(5) r) exp(-sqrt(5) r), which carries the gradient by the length scales."""
    squared = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)[None, :] - 2.0 * (left @ right.T)
    np.maximum(squared, 0.0, out=squared)
    distance = SQRT5 * np.sqrt(squared)
    decay = np.exp(-distance)
    slope = (distance + 1.0) * decay
    return slope + (5.0 / 3.0) * squared * decay, (5.0 / 3.0) * slope


def _mismatch(left: Array, right: Array, length: Array, ordered: Mask) -> Array | float:
    """Product over categorical columns; 1 without any."""
    exponent: Array | float = 0.0
    for j in np.flatnonzero(~ordered):
        exponent = exponent + (left[:, j, None] != right[None, :, j]) / length[j]
    return np.exp(-exponent) if (~ordered).any() else 1.0
