"""Fit every candidate form, and weigh the forms by how well their fits on cheaper runs met the costlier runs.

A clean fit says nothing about the horizon, so the score is extrapolation: sort the runs by cost, fit on the cheapest
share, score all that are costlier, for several shares. The score is the log predictive density, not the error: on
noisy runs over a decade or two a straight line often misses by less than the true law with its free asymptote does,
and then misses badly at the target; density asks whether a form missed by more than it said it might. A blend is
used instead of the single winner because the scores of nested forms on few runs are close, and a winner that changes
with one run is no forecast.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wholestack.scaling.fit import Prior, Problem, best_of, minimise
from wholestack.scaling.forms import Form, Frame, frame_of, prior_of
from wholestack.scaling.points import Array, Table
from wholestack.scaling.residuals import Edge, ErrorModel, Huber

STARTS = 12
REFITS = 4
"""Alternations between the law and the scales of its scatter."""
TRAIN_SHARES = (0.4, 0.55, 0.7, 0.85)
"""Shares of the runs, cheapest first, that validation fits on."""
MIN_TRAIN = 5
MIN_TEST = 2
VALIDATION_REPLICATES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A form fitted to runs."""

    form: Form
    """Which."""
    frame: Frame
    """What its features are measured from."""
    prior: Prior
    """Prior of theta."""
    theta: Array
    """(p,)."""
    error: ErrorModel
    """Scatter with its fitted scales."""
    residuals: Array
    """(n,) log loss of the run - log loss of the law."""

    def predict(self, table: Table) -> Array:
        """Log loss (n,) of the law at other runs."""
        return np.asarray(self.form.law(self.frame.features(table))(self.theta[None, :]).value[0])


def fit_form(
    form: Form,
    table: Table,
    error: ErrorModel,
    rng: np.random.Generator,
    *,
    log_asymptote: float | None = None,
    refits: int = REFITS,
) -> Candidate:
    """Fit one form, alternating between the law and the scales of its scatter.

    Args:
        form: Which.
        table: Runs.
        error: Kind of scatter, with scales to start from.
        rng: Draws the starts.
        log_asymptote: Fixes ln E.
        refits: How often; the scales stay at ``error`` with one.
    """
    frame = frame_of(table)
    prior = prior_of(form, frame, log_asymptote=log_asymptote)
    law = form.law(frame.features(table))
    start = np.concatenate([prior.mean[None, :], prior.draw(STARTS - 1, rng)])
    for last in reversed(range(refits)):
        problem = Problem(law=law, targets=table.log_loss, weights=table.weight, error=error, prior=prior)
        theta = best_of(minimise(problem, start))
        residuals = table.log_loss - law(theta[None, :]).value[0]
        error = error.refit(residuals, table.weight, len(theta)) if last or refits > 1 else error
        start = theta[None, :]
    return Candidate(form=form, frame=frame, prior=prior, theta=theta, error=error, residuals=residuals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """How a form, fitted to the cheaper runs, met the costlier ones."""

    error: float
    """Root mean square of the errors in log loss over the shares."""
    lack_of_fit: float
    """The part of the error that noise and the uncertainty of the parameters do not explain, in log loss."""
    log_score: float
    """Mean log predictive density of the costlier runs' level; larger is better."""


def validate(
    form: Form, table: Table, error: ErrorModel, rng: np.random.Generator, *, log_asymptote: float | None = None
) -> Validation:
    """Fit on every share of :data:`TRAIN_SHARES` that leaves enough runs on both sides, and score the others.

    The scales of the scatter are those of ``error``, the fit to all runs: a few cheap runs cannot tell them.
    """
    errors, expected, scores = [], [], []
    for count in train_counts(len(table)):
        train, test = table.take(np.arange(count)), table.take(np.arange(count, len(table)))
        fitted = fit_form(form, train, error, rng, log_asymptote=log_asymptote, refits=1)
        missed = test.log_loss - fitted.predict(test)
        theta, _ = replicates(fitted, train, VALIDATION_REPLICATES, rng)
        spread = form.law(fitted.frame.features(test))(theta).value - fitted.predict(test)
        errors.append(error.offset(missed) ** 2)
        expected.append(error.expected_offset(missed, spread) ** 2)
        scores.append(error.log_score(missed, spread))
    unexplained = max(0.0, float(np.mean(errors) - np.mean(expected)))
    return Validation(
        error=float(np.sqrt(np.mean(errors))), lack_of_fit=float(np.sqrt(unexplained)), log_score=float(np.mean(scores))
    )


def train_counts(n_runs: int) -> list[int]:
    """How many runs, cheapest first, each validation fits on."""
    counts = {max(MIN_TRAIN, round(share * n_runs)) for share in TRAIN_SHARES}
    return sorted(count for count in counts if n_runs - count >= MIN_TEST)


def weights_of(validations: Sequence[Validation], prior: Sequence[float]) -> Array:
    """Weights that sum to 1: prior weight times predictive density."""
    logs = np.log(prior) + np.array([each.log_score for each in validations])
    raw = np.exp(logs - logs.max())
    return np.asarray(raw / raw.sum())


def replicates(candidate: Candidate, table: Table, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Parameters (count, p) of refits to perturbed data and priors, and the noise (count,) that each draw believes in.

    Symmetric scatter: the law plus fresh noise, its scale drawn for the degrees of freedom left (so small samples get
    the tails of Student's t). One-sided scatter: exponential case weights, since a search's excess has no
    trustworthy model to draw from.
    """
    law = candidate.form.law(candidate.frame.features(table))
    prior = Prior(mean=candidate.prior.draw(count, rng), sd=candidate.prior.sd)
    start = np.broadcast_to(candidate.theta, (count, len(candidate.theta)))
    if isinstance(candidate.error, Huber):
        freedom = max(len(table) - len(candidate.theta), 3)
        noise = candidate.error.noise * np.sqrt(freedom / rng.chisquare(freedom, count))
        fresh = rng.standard_normal((count, len(table))) * noise[:, None] / np.sqrt(table.weight)
        targets = table.log_loss - candidate.residuals + fresh
        weights = np.broadcast_to(table.weight, targets.shape)
    else:
        noise = candidate.error.noise * np.exp(0.15 * rng.standard_normal(count))
        targets = np.broadcast_to(table.log_loss, (count, len(table)))
        weights = table.weight * rng.exponential(size=(count, len(table)))
    problem = Problem(law=law, targets=targets, weights=weights, error=candidate.error, prior=prior)
    return minimise(problem, start, iterations=30, tolerance=1e-6).theta, noise


def target_excess(candidate: Candidate) -> Array:
    """Excess that the runs nearest the edge are expected to carry: the target is tuned as well as they were."""
    if not isinstance(candidate.error, Edge):
        return np.zeros(1)
    near = np.sort(candidate.residuals)[: max(4, len(candidate.residuals) // 8)]
    return candidate.error.excess_given(near)
