"""Maximum-posterior fits of many replicates at once: Levenberg-Marquardt over a batch.

Symbols: R replicates (starts, bootstrap draws), n runs, p parameters. All replicates share the law and differ in
data, weights, prior means or starts, so one pass of numpy fits them together; every law brings its own Jacobian.

Minimised is, per replicate,  sum_i w_i rho(y_i - f_i(theta)) + 1/2 sum_j ((theta_j - m_j) / s_j)^2.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from wholestack.scaling.points import Array
from wholestack.scaling.residuals import ErrorModel


class Evaluation(NamedTuple):
    """Values (R, n) of a law and their derivatives (R, n, p)."""

    value: Array
    jacobian: Array


class Law(Protocol):
    """Log loss of n runs as a function of parameters (R, p)."""

    def __call__(self, theta: Array) -> Evaluation:
        """Values and Jacobian at every row of ``theta``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Independent normal priors of the parameters."""

    mean: Array
    """(p,), or (R, p) where replicates draw their own."""
    sd: Array
    """(p,), > 0; large means free."""

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """(count, p) parameters."""
        return np.asarray(self.mean + self.sd * rng.standard_normal((count, len(self.sd))))


class Fitted(NamedTuple):
    """Parameters (R, p) and the objective (R,) that they reach."""

    theta: Array
    objective: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is minimised."""

    law: Law
    """Values and Jacobian."""
    targets: Array
    """Log losses, (n,) or (R, n)."""
    weights: Array
    """Relative precisions, (n,) or (R, n)."""
    error: ErrorModel
    """How runs scatter."""
    prior: Prior
    """Priors; their means may be per replicate."""


def minimise(problem: Problem, start: Array, *, iterations: int = 80, tolerance: float = 1e-9) -> Fitted:
    """Fit every replicate from its start.

    Args:
        problem: Law, data and priors.
        start: (R, p).
        iterations: At most so many steps.
        tolerance: Stop when no replicate's objective falls by more than this fraction.

    Returns:
        The parameters reached; the objective never exceeds that of the start.
    """
    theta = start.copy()
    damping = np.full(len(theta), 1e-2)
    value, gradient, hessian = _expand(problem, theta)
    for _ in range(iterations):
        trial = theta - _step(gradient, hessian, damping)
        new_value, new_gradient, new_hessian = _expand(problem, trial)
        better = new_value < value
        gain = np.where(better, value - new_value, 0.0)
        stuck = ~better & (damping > 1e6)
        done = bool(np.all((better & (gain <= tolerance * (1 + np.abs(value)))) | stuck))
        theta = np.where(better[:, None], trial, theta)
        value = np.where(better, new_value, value)
        gradient = np.where(better[:, None], new_gradient, gradient)
        hessian = np.where(better[:, None, None], new_hessian, hessian)
        damping = np.clip(np.where(better, damping * 0.3, damping * 6.0), 1e-9, 1e8)
        if done:
            break
    return Fitted(theta, value)


def best_of(fitted: Fitted) -> Array:
    """(p,): the parameters of the lowest objective, the first of equals."""
    return np.asarray(fitted.theta[int(np.argmin(fitted.objective))])


class _Expansion(NamedTuple):
    value: Array
    gradient: Array
    hessian: Array


def _expand(problem: Problem, theta: Array) -> _Expansion:
    """Objective (R,), gradient (R, p) and Gauss-Newton Hessian (R, p, p)."""
    with np.errstate(over="ignore", invalid="ignore"):
        prior, weights = problem.prior, problem.weights
        value, jacobian = problem.law(theta)
        penalty = problem.error.penalty(problem.targets - value)
        shift = (theta - prior.mean) / prior.sd
        objective = np.sum(weights * penalty.rho, axis=1) + 0.5 * np.sum(shift**2, axis=1)
        gradient = shift / prior.sd - np.einsum("rn,rnp->rp", weights * penalty.psi, jacobian)
        scaled = jacobian * (weights * penalty.curvature)[..., None]
        hessian = np.matmul(scaled.transpose(0, 2, 1), jacobian) + np.diag(prior.sd**-2.0)
    broken = ~(np.isfinite(objective) & np.isfinite(gradient).all(1) & np.isfinite(hessian).all((1, 2)))
    return _Expansion(
        np.where(broken, np.inf, objective),
        np.where(broken[:, None], 0.0, gradient),
        np.where(broken[:, None, None], np.eye(theta.shape[1]), hessian),
    )


def _step(gradient: Array, hessian: Array, damping: Array) -> Array:
    diagonal = np.einsum("rpp->rp", hessian)
    damped = hessian + (damping[:, None] * np.maximum(diagonal, 1e-12))[..., None] * np.eye(gradient.shape[1])
    return np.asarray(np.linalg.solve(damped, gradient[..., None])[..., 0])
