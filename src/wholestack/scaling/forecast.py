"""Forecast the loss of a larger run, with an interval that is honest about extrapolation.

What goes into the interval, each as draws:

1. parameters: every replicate refits data perturbed by the noise (or, in a search, reweighted: the Bayesian bootstrap
   of Rubin 1981) with prior means drawn from the prior, so a prior narrows a forecast only as far as it is believed;
2. form: draws come from all candidate forms in proportion to how well each, fitted on the cheaper runs, met the
   costlier ones;
3. asymptote: the forecast with E free and with E fixed are both reported, and draws are spread over their gap (less
   where validation refutes the fixed one);
4. noise of the one run that will be trained, with its own uncertainty;
5. what no form says: a discrepancy that grows with the decades beyond the costliest run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.scaling.candidates import (
    Candidate,
    Validation,
    fit_form,
    replicates,
    target_excess,
    validate,
    weights_of,
)
from wholestack.scaling.forms import ASYMPTOTE_SHARE, COST_FORMS, SIZE_FORMS, Form
from wholestack.scaling.points import Array, Refusal, RunPoint, Table, span_decades, table_of
from wholestack.scaling.residuals import Edge, ErrorModel, Huber

Scatter = Literal["noise", "search"]

MIN_POINTS = 8
MIN_DECADES = 1.0
REPLICATES = 400
DISCREPANCY_PER_DECADE = 0.005
"""Standard deviation of log loss that no form explains, per decade beyond the costliest run."""
BLIND_DECADES = 0.3
"""Tokens per parameter within a factor of two: the horizon was not varied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormForecast(Record):
    """What one functional form says."""

    name: str
    """Form, as in :mod:`wholestack.scaling.forms`."""
    predicted: float
    """Loss at the target."""
    validation_error: float
    """Root mean square log error on costlier runs after fits on cheaper ones."""
    weight: float
    """Share of the forecast, from the validation error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast(Record):
    """A loss predicted before the run."""

    SCHEMA: ClassVar[str] = "scaling.forecast/1"

    predicted: float
    """Loss at the target, unit of the points."""
    interval: tuple[float, float]
    """Where one run at the target will land with probability ``level``."""
    level: float
    """Probability that the interval is meant to cover."""
    target_cost_flops: float
    """Cost asked for."""
    target_params: float | None
    """Size asked for."""
    target_tokens: float | None
    """Tokens asked for."""
    form: str
    """The form with the largest weight."""
    forms: tuple[FormForecast, ...]
    """All candidates."""
    free_asymptote: float
    """Forecast of the power law with E free."""
    fixed_asymptote: float
    """Forecast of the same law with E fixed."""
    asymptote: float
    """E of the free fit."""
    asymptote_fixed_at: float
    """E of the fixed fit: the caller's, or by convention half the lowest loss."""
    noise: float
    """Standard deviation of a repeated run, as a fraction of loss."""
    n_points: int
    """Runs in the fit."""
    n_supporting: int
    """Runs that carry the law: all, or in a search those on the edge within two noises."""
    span_decades: float
    """Decades of cost that the supporting runs span."""
    extrapolation_ratio: float
    """Target cost over the cost of the costliest run."""
    warnings: tuple[str, ...]
    """What the reader must know before relying on it."""


def forecast_loss(
    points: Sequence[RunPoint],
    target_cost_flops: float,
    *,
    target_params: float | None = None,
    target_tokens: float | None = None,
    level: float = 0.9,
    scatter: Scatter = "noise",
    asymptote: float | None = None,
    noise: float | None = None,
    rng: np.random.Generator,
) -> Forecast | Refusal:
    """Predict the loss of one run at a target cost.

    Args:
        points: Runs. With ``scatter="noise"`` each was tuned as well as the target will be. With ``"search"`` they
            are *all* completed trials of a search, not only its front: the law is the edge below them.
        target_cost_flops: FLOPs of the run to predict.
        target_params: Its size; with ``target_tokens``, and sizes and tokens in all points, laws in (N, D) compete.
        target_tokens: Its tokens.
        level: Coverage of the interval.
        scatter: See ``points``.
        asymptote: An irreducible loss known from elsewhere, for the fixed fit.
        noise: Standard deviation of log loss between repeated runs, where it was measured (search only).
        rng: Draws starts and replicates; the same state and points give the same forecast.

    Returns:
        A Forecast, or a Refusal where fewer than 8 runs or less than a decade of cost carry the law.

    Raises:
        InputError: a level or target outside its range.

    Example:
        >>> points = [RunPoint(cost_flops=c, loss=1 + c ** -0.1) for c in 10.0 ** np.arange(9, 12, 0.25)]
        >>> forecast_loss(points, 1e13, rng=np.random.default_rng(0)).predicted
        1.05...
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level}: must lie between 0 and 1")
    _check_positive(asymptote=asymptote, noise=noise)
    table = table_of(points)
    refused = _refusal(table, len(points))
    if refused is not None:
        return refused
    target = table_of([RunPoint(cost_flops=target_cost_flops, loss=1.0, params=target_params, tokens=target_tokens)])
    error: ErrorModel = Huber() if scatter == "noise" else Edge(noise=noise or 0.007, known_noise=noise)
    sized, warnings = _sized(table, target)
    fits = _fit_all((*COST_FORMS, *SIZE_FORMS) if sized else COST_FORMS, table, error, rng)
    supporting = _supporting(fits[int(np.argmax(_weights(fits)))].candidate, table)
    refused = _refusal(supporting, len(points))
    if refused is not None:
        return refused
    lowest = float(table.log_loss.min())
    log_fixed = math.log(asymptote) if asymptote else lowest + math.log(ASYMPTOTE_SHARE)
    free = next(each for each in fits if each.candidate.form.name == ("tied" if sized else "power"))
    fixed = _fit_one(free.candidate.form, table, error, rng, log_asymptote=log_fixed)
    study = _Study(
        table=table, supporting=supporting, target=target, fits=fits, free=free, fixed=fixed, log_fixed=log_fixed
    )
    return _record(study, _draws(study, rng), level, warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A fitted form with the error of its extrapolations."""

    candidate: Candidate
    validation: Validation

    def at(self, target: Table) -> float:
        return float(self.candidate.predict(target)[0])


def _fit_one(
    form: Form, table: Table, error: ErrorModel, rng: np.random.Generator, *, log_asymptote: float | None = None
) -> _Fit:
    candidate = fit_form(form, table, error, rng, log_asymptote=log_asymptote)
    validation = validate(form, table, candidate.error, rng, log_asymptote=log_asymptote)
    return _Fit(candidate=candidate, validation=validation)


def _fit_all(forms: Sequence[Form], table: Table, error: ErrorModel, rng: np.random.Generator) -> list[_Fit]:
    """All forms, with one scale of scatter for all scores: that of the form that leaves the least."""
    fits = [fit_form(form, table, error, rng) for form in forms]
    least = min((each.error for each in fits), key=lambda each: each.noise)
    return [_Fit(candidate=each, validation=validate(each.form, table, least, rng)) for each in fits]


def _weights(fits: Sequence[_Fit]) -> Array:
    return weights_of([each.validation for each in fits], [each.candidate.form.prior_weight for each in fits])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Study:
    """All fits of one forecast."""

    table: Table
    supporting: Table
    target: Table
    fits: Sequence[_Fit]
    free: _Fit
    fixed: _Fit
    log_fixed: float

    @property
    def log_ratio(self) -> float:
        """Natural log of the target's cost over the costliest run's."""
        return float(self.target.log_cost[0] - self.table.log_cost.max())

    @property
    def gap(self) -> float:
        """Log gap between free and fixed asymptote, shrunk towards 0 as validation refutes the fixed one."""
        believed = min(1.0, 2 * float(_weights([self.free, self.fixed])[1]))
        return abs(self.free.at(self.target) - self.fixed.at(self.target)) * believed


def _draws(study: _Study, rng: np.random.Generator) -> Array:
    """Draws of the log loss of one run at the target."""
    parts = []
    for each, share in zip(study.fits, _weights(study.fits), strict=True):
        count = round(REPLICATES * float(share))
        if count:
            theta, noise = replicates(each.candidate, study.table, count, rng)
            mean = each.candidate.form.law(each.candidate.frame.features(study.target))(theta).value[:, 0]
            excess = rng.choice(target_excess(each.candidate), count)
            parts.append(mean + excess + noise * rng.standard_normal(count))
    draws = np.concatenate(parts)
    discrepancy = DISCREPANCY_PER_DECADE * max(0.0, study.log_ratio) / math.log(10)
    return np.asarray(
        draws + study.gap * rng.uniform(-0.5, 0.5, len(draws)) + discrepancy * rng.standard_normal(len(draws))
    )


def _record(study: _Study, draws: Array, level: float, warnings: Sequence[str]) -> Forecast:
    low, middle, high = np.exp(np.quantile(draws, [0.5 - level / 2, 0.5, 0.5 + level / 2]))
    weights, target = _weights(study.fits), study.target
    best = study.fits[int(np.argmax(weights))].candidate
    return Forecast(
        predicted=float(middle),
        interval=(float(low), float(high)),
        level=level,
        target_cost_flops=math.exp(float(target.log_cost[0])),
        target_params=None if target.log_params is None else math.exp(float(target.log_params[0])),
        target_tokens=None if target.log_tokens is None else math.exp(float(target.log_tokens[0])),
        form=best.form.name,
        forms=tuple(
            FormForecast(
                name=each.candidate.form.name,
                predicted=math.exp(each.at(target)),
                validation_error=each.validation.error,
                weight=float(weight),
            )
            for each, weight in zip(study.fits, weights, strict=True)
        ),
        free_asymptote=math.exp(study.free.at(target)),
        fixed_asymptote=math.exp(study.fixed.at(target)),
        asymptote=math.exp(float(study.free.candidate.theta[0])),
        asymptote_fixed_at=math.exp(study.log_fixed),
        noise=best.error.noise,
        n_points=len(study.table),
        n_supporting=len(study.supporting),
        span_decades=span_decades(study.supporting.log_cost),
        extrapolation_ratio=math.exp(study.log_ratio),
        warnings=tuple(warnings),
    )


def _supporting(best: Candidate, table: Table) -> Table:
    """The runs that carry the law."""
    if isinstance(best.error, Huber):
        return table
    return table.take(np.flatnonzero(best.residuals <= 2 * best.error.noise))


def _refusal(supporting: Table, n_points: int) -> Refusal | None:
    span = span_decades(supporting.log_cost)
    if len(supporting) < MIN_POINTS:
        reason = f"{len(supporting)} of {n_points} runs carry the law, at least {MIN_POINTS} are needed"
        remedy = "add well-tuned runs over the range of cost"
    elif span < MIN_DECADES:
        reason = f"the runs that carry the law span {span:.2f} decades of cost, at least {MIN_DECADES:g} is needed"
        remedy = "add cheaper or costlier runs"
    else:
        return None
    return Refusal(reason=reason, remedy=remedy, n_points=n_points, n_supporting=len(supporting), span_decades=span)


def _sized(table: Table, target: Table) -> tuple[bool, list[str]]:
    """Whether laws in (N, D) can compete, and what the reader must know about the horizon."""
    if table.log_params is None or table.log_tokens is None:
        return False, ["params or tokens of some runs are not given: whether the horizon was varied is unknown"]
    ratio = table.log_tokens - table.log_params
    spread = float(np.quantile(ratio, 0.95) - np.quantile(ratio, 0.05)) / math.log(10)
    if spread < BLIND_DECADES:
        return False, [
            f"blind to the horizon: 90 % of the runs lie within a factor {10**spread:.2f} in tokens per parameter, "
            "so nothing is known of a run that is trained for longer or shorter"
        ]
    if target.log_params is None or target.log_tokens is None:
        return False, ["target size and tokens are not given: the law is in cost alone"]
    goal = float(target.log_tokens[0] - target.log_params[0])
    if ratio.min() - 0.1 <= goal <= ratio.max() + 0.1:
        return True, []
    low, high = math.exp(float(ratio.min())), math.exp(float(ratio.max()))
    return True, [f"the target has {math.exp(goal):.3g} tokens per parameter, the runs {low:.3g} to {high:.3g}"]


def _check_positive(**named: float | None) -> None:
    for name, value in named.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value}: must be finite and above 0")
