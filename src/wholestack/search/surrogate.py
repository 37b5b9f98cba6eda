"""Exact Gaussian processes: fitted, asked, and conditioned on further points (fantasies of pending trials)."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from wholestack.search import kernel
from wholestack.search.dimensions import Array
from wholestack.search.kernel import Mask, Prior

_DIVERGED = 1e25
"""Value of the objective where the covariance cannot be factorised: the line search turns back."""


@dataclass(slots=True)
class Work:
    """Counts arithmetic, so that growth with the number of trials is tested without a clock."""

    factorised_flops: float = 0.0
    """2 n^3 / 3 for a Cholesky factor and its inverse, 5 n^3 / 3 with the inverse of the covariance."""
    kernel_entries: float = 0.0
    """Evaluations of the covariance function."""
    likelihoods: int = 0
    """Evaluations of the marginal likelihood with gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Mean and standard deviation of the function (without observation noise) at m points."""

    mean: Array
    """[m]."""
    deviation: Array
    """[m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Hyperparameters found by a fit."""

    theta: Array
    """[2 d + 2] log hyperparameters, see `kernel`."""
    objective: float
    """Minus the log posterior there."""
    trouble: str = ""
    """What went wrong, if anything did; the theta is then the best that was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcess:
    """A posterior; make it with `condition_on`."""

    theta: Array
    """[2 d + 2] log hyperparameters."""
    ordered: Mask
    """[d] which columns are ordered."""
    x: Array
    """[n, d] points."""
    y: Array
    """[n] targets."""
    white: Array
    """[n, n] inverse of the lower Cholesky factor of the covariance with noise."""
    alpha: Array
    """[n] covariance^-1 y."""
    work: Work = field(default_factory=Work)
    """Counter of arithmetic."""

    def predict(self, points: Array) -> Prediction:
        """Posterior at [m, d] points; R&W (2006) eq. 2.25 and 2.26."""
        cross = self._cross(points)
        half = self.white @ cross
        left = kernel.variance(self.theta, points, self.ordered) - np.sum(half**2, axis=0)
        return Prediction(mean=cross.T @ self.alpha, deviation=np.sqrt(np.maximum(left, 1e-12)))

    def mean(self, points: Array) -> Array:
        """Posterior mean alone, an n-th of the price."""
        return self._cross(points).T @ self.alpha

    def sample(self, points: Array, rng: np.random.Generator) -> Array:
        """One joint draw of what would be observed at [m, d] points, noise included."""
        cross = self._cross(points)
        half = self.white @ cross
        joint = kernel.covariance(self.theta, points, points, self.ordered) - half.T @ half
        joint[np.diag_indices(len(points))] += kernel.noise_variance(self.theta) + 1e-10
        values, vectors = np.linalg.eigh(joint)
        draw = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(points)))
        return np.asarray(cross.T @ self.alpha + draw, np.float64)

    def extended(self, points: Array, targets: Array) -> "GaussianProcess":
        """The posterior with m more observations; its factor is extended, not made again."""
        half = self.white @ self._cross(points)
        corner = kernel.covariance(self.theta, points, points, self.ordered) - half.T @ half
        corner[np.diag_indices(len(points))] += kernel.noise_variance(self.theta) + kernel.JITTER
        n, m = len(self.x), len(points)
        new = kernel.whitener(kernel.cholesky(corner))
        white = np.zeros((n + m, n + m))
        white[:n, :n], white[n:, :n], white[n:, n:] = self.white, -new @ half.T @ self.white, new
        y = np.concatenate([self.y, targets])
        return GaussianProcess(
            theta=self.theta,
            ordered=self.ordered,
            x=np.concatenate([self.x, points]),
            y=y,
            white=white,
            alpha=white.T @ (white @ y),
            work=self.work,
        )

    def _cross(self, points: Array) -> Array:
        self.work.kernel_entries += len(self.x) * len(points)
        return kernel.covariance(self.theta, self.x, points, self.ordered)


def condition_on(x: Array, y: Array, ordered: Mask, theta: Array, *, work: Work | None = None) -> GaussianProcess:
    """Posterior given n observations, n = 0 included.

    Raises:
        np.linalg.LinAlgError: the covariance is not positive definite.
    """
    work = work if work is not None else Work()
    n = len(x)
    full = kernel.covariance(theta, x, x, ordered)
    full[np.diag_indices(n)] += kernel.noise_variance(theta)
    white = kernel.whitener(kernel.cholesky(full)) if n else np.zeros((0, 0))
    work.factorised_flops += 2.0 * n**3 / 3.0
    work.kernel_entries += n * n
    return GaussianProcess(theta=theta, ordered=ordered, x=x, y=y, white=white, alpha=white.T @ (white @ y), work=work)


def fit(
    x: Array,
    y: Array,
    ordered: Mask,
    prior: Prior,
    *,
    start: Array | None = None,
    max_iterations: int = 40,
    work: Work | None = None,
) -> Fit:
    """Hyperparameters of greatest posterior density, by L-BFGS from the better of the warm start and the prior mean.

    Args:
        x: [n, d] points.
        y: [n] standardised targets.
        ordered: [d] which columns are ordered.
        prior: Prior of the log hyperparameters.
        start: Warm start, for instance the theta of fewer observations.
        max_iterations: Of L-BFGS.
        work: Counter of arithmetic.
    """
    work = work if work is not None else Work()
    if len(x) == 0:
        return Fit(theta=prior.mean, objective=0.0)
    failures: list[str] = []

    def objective(theta: Array) -> tuple[float, Array]:
        work.likelihoods += 1
        work.factorised_flops += 5.0 * float(len(x)) ** 3 / 3.0
        work.kernel_entries += float(len(x)) ** 2
        try:
            value, gradient = kernel.negative_log_likelihood(theta, x, y, ordered)
        except np.linalg.LinAlgError as error:
            failures.append(str(error))
            return _DIVERGED, np.zeros_like(theta)
        return value + prior.penalty(theta), gradient + prior.gradient(theta)

    starts = [prior.mean] if start is None else [start, prior.mean]
    values = [objective(each)[0] for each in starts]
    best = int(np.argmin(values))
    if values[best] >= _DIVERGED:
        return Fit(theta=prior.mean, objective=_DIVERGED, trouble=failures[-1])
    result = minimize(
        objective,
        starts[best],
        jac=True,
        method="L-BFGS-B",
        bounds=prior.bounds(),
        options={"maxiter": max_iterations, "ftol": 1e-5, "gtol": 1e-3},
    )
    found = np.asarray(result.x, np.float64)
    if not (np.isfinite(result.fun) and result.fun <= values[best] and np.isfinite(found).all()):
        return Fit(theta=starts[best], objective=values[best], trouble=f"fit did not improve: {result.message}")
    return Fit(theta=found, objective=float(result.fun), trouble="")
