"""How runs scatter round a law: symmetric noise with outliers, or the one-sided scatter of a search.

Residual r = log loss of the run - log loss of the law. Every model gives, elementwise, the negative log-likelihood
rho(r), its slope psi = rho' and its curvature rho'' >= 0, which is all that the fit needs.

Huber: quadratic within 1.345 scales, linear beyond (P. J. Huber, 1964), so that a few bad runs do not bend the law.

Edge: r = v + u with noise v ~ Normal(0, noise) and excess u ~ Exponential(mean excess) of settings that were not the
best (the stochastic frontier of Aigner, Lovell and Schmidt, 1977, with the exponential excess of Meeusen and van den
Broeck, 1977). Fitting the Pareto front instead would take the luckiest of several noisy runs at every cost: each
front run is too low by about one noise, more where more runs compete. The edge has no such bias: its noise is what
runs below it show, and the excess is estimated from all runs.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from wholestack.scaling.points import Array

HUBER_THRESHOLD = 1.345
"""In scales: 95 % efficient when the noise is normal."""
SMALLEST_NOISE = 2e-4
"""Floor of an estimated noise (fraction of loss): tables are rounded at about this size."""


class Penalty(NamedTuple):
    """Elementwise value, slope and curvature of a negative log-likelihood."""

    rho: Array
    psi: Array
    curvature: Array


class ErrorModel(Protocol):
    """How runs scatter round the law."""

    @property
    def noise(self) -> float:
        """Standard deviation of the log loss of a repeated run."""

    def penalty(self, residuals: Array) -> Penalty:
        """Negative log-likelihood and its derivatives, elementwise."""

    def refit(self, residuals: Array, weight: Array, n_params: int) -> "ErrorModel":
        """The same kind of model with its scales estimated from residuals (n,) of a fit with ``n_params``."""

    def log_score(self, missed: Array, spread: Array) -> float:
        """Log density of held-out residuals (n,), given replicates' deviations (R, n) from the law there."""

    def offset(self, residuals: Array) -> float:
        """Root mean square (symmetric) or location (one-sided) of held-out residuals: the error of the law there."""

    def expected_offset(self, missed: Array, spread: Array) -> float:
        """Root mean square of :meth:`offset` if the law were true, with only noise and fit in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Huber:
    """Symmetric noise with outliers."""

    scale: float = 0.02
    """Standard deviation of the bulk."""

    @property
    def noise(self) -> float:
        """Standard deviation of the log loss of a repeated run."""
        return self.scale

    def penalty(self, residuals: Array) -> Penalty:
        """Huber's function of r / scale."""
        z = residuals / self.scale
        size = np.abs(z)
        inside = size <= HUBER_THRESHOLD
        rho = np.where(inside, 0.5 * z**2, HUBER_THRESHOLD * (size - 0.5 * HUBER_THRESHOLD))
        psi = np.clip(z, -HUBER_THRESHOLD, HUBER_THRESHOLD) / self.scale
        # psi / r instead of rho'': the weights of iterative reweighting, which never vanish, descend for any r.
        curvature = np.minimum(1.0, HUBER_THRESHOLD / np.maximum(size, 1e-12)) / self.scale**2
        return Penalty(rho, psi, curvature)

    def refit(self, residuals: Array, weight: Array, n_params: int) -> "Huber":
        """Scale from the median absolute residual, corrected for the degrees of freedom that the fit used up."""
        freedom = np.sqrt(len(residuals) / max(len(residuals) - n_params, 1))
        robust = 1.4826 * float(np.median(np.abs(residuals) * np.sqrt(weight)))
        # The median of few residuals jumps; the Huberised root mean square does not, and is capped by outliers less.
        capped = np.minimum(np.abs(residuals) * np.sqrt(weight), 2.5 * max(robust, SMALLEST_NOISE))
        return Huber(scale=max(float(np.sqrt(np.mean(capped**2))) * float(freedom), SMALLEST_NOISE))

    def log_score(self, missed: Array, spread: Array) -> float:
        """Joint normal density; residuals beyond three standard deviations count as three."""
        covariance = spread.T @ spread / len(spread) + self.scale**2 * np.eye(len(missed))
        deviation = np.sqrt(np.diag(covariance))
        capped = np.clip(missed, -3 * deviation, 3 * deviation)
        quadratic = float(capped @ np.linalg.solve(covariance, capped))
        return -0.5 * (quadratic + float(np.linalg.slogdet(covariance)[1]))

    def offset(self, residuals: Array) -> float:
        """Root mean square, single residuals capped at four times the median."""
        size = np.abs(residuals)
        return float(np.sqrt(np.mean(np.minimum(size, 4 * max(float(np.median(size)), SMALLEST_NOISE)) ** 2)))

    def expected_offset(self, missed: Array, spread: Array) -> float:
        """Noise of a run and spread of the replicates, root mean square over the held-out runs."""
        return float(np.sqrt(self.scale**2 + np.mean(spread**2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One-sided scatter of a search above the best reachable loss, plus noise."""

    noise: float = 0.01
    """Standard deviation of the log loss of a repeated run."""
    excess: float = 0.03
    """Mean log loss above the edge of a run with imperfect settings."""
    known_noise: float | None = None
    """Noise measured by repeated runs; the estimate is drawn to it."""

    def penalty(self, residuals: Array) -> Penalty:
        """Negative log density of normal plus exponential."""
        rate, noise = 1 / self.excess, self.noise
        # Only wild starts of a fit come below; there the penalty goes on straight, for the square would overflow.
        kept = np.maximum(residuals, -1e4 * noise)
        z = kept / noise - rate * noise
        log_cdf = log_ndtr(z)
        mills = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_cdf)
        psi = rate - mills / noise
        rho = -(np.log(rate) + 0.5 * (rate * noise) ** 2 - rate * kept + log_cdf) + psi * (residuals - kept)
        return Penalty(rho, psi, np.maximum(mills * (z + mills), 1e-6) / noise**2)

    def refit(self, residuals: Array, weight: Array, n_params: int) -> "Edge":
        """Maximum posterior of (noise, excess); weak log-normal priors keep apart what few runs cannot tell apart."""
        centre = np.log([self.known_noise or 0.007, 0.03])
        width = np.array([0.25 if self.known_noise else 0.7, 1.0])

        def objective(logs: Array) -> float:
            model = Edge(noise=float(np.exp(logs[0])), excess=float(np.exp(logs[1])))
            freedom = (len(residuals) - n_params) / len(residuals)
            prior = 0.5 * float(np.sum(((logs - centre) / width) ** 2))
            return float(np.sum(weight * model.penalty(residuals).rho)) * freedom + prior

        found = minimize(objective, np.log([self.noise, self.excess]), method="L-BFGS-B", bounds=[(-8.0, -1.5)] * 2)
        noise, excess = np.exp(found.x)
        return Edge(noise=float(noise), excess=float(excess), known_noise=self.known_noise)

    def log_score(self, missed: Array, spread: Array) -> float:
        """Normal density of the edge's shift: its own uncertainty is the curvature of the likelihood there."""
        shift, variance = self._shift(missed), self.expected_offset(missed, spread) ** 2
        return -0.5 * (min(shift**2 / variance, 16.0) + float(np.log(variance)))

    def offset(self, residuals: Array) -> float:
        """How far the edge of held-out residuals lies from zero."""
        return abs(self._shift(residuals))

    def expected_offset(self, missed: Array, spread: Array) -> float:
        """Spread of the replicates' mean level, and the uncertainty of the shift: the curvature of its likelihood."""
        own = 1 / float(self.penalty(missed - self._shift(missed)).curvature.sum())
        return float(np.sqrt(np.mean(spread.mean(axis=1) ** 2) + own))

    def _shift(self, residuals: Array) -> float:
        """The most likely shift of the edge."""
        low, high = float(residuals.min()) - 4 * self.noise, float(residuals.max()) + 4 * self.noise
        for _ in range(50):
            middle = 0.5 * (low + high)
            # psi rises with r, so the summed slope falls as the shift grows.
            low, high = (middle, high) if self.penalty(residuals - middle).psi.sum() > 0 else (low, middle)
        return 0.5 * (low + high)

    def excess_given(self, residuals: Array) -> Array:
        """Expected excess u of each run given its residual: the mean of a truncated normal."""
        centre = residuals - self.noise**2 / self.excess
        z = centre / self.noise
        return np.asarray(centre + self.noise * np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z)))
