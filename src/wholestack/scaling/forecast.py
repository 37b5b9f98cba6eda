"""Forecast the loss of a larger run, with an interval that is honest about extrapolation.

What goes into the interval, each as draws:

1. parameters: every replicate refits data perturbed by the noise (or, in a search, reweighted: the Bayesian bootstrap
   of Rubin 1981) with prior means drawn from the prior, so a prior narrows a forecast only as far as it is believed;
2. form: draws come from all candidate forms in proportion to how well each, fitted on the cheaper runs, met the
   costlier ones;
3. asymptote: the forecast with E free and with E fixed are both reported, and draws are spread over their gap (over
   half of it where validation refutes the fixed one);
4. noise of the one run that will be trained, with its own uncertainty;
5. what no form says: a discrepancy that grows with the decades beyond the costliest run and with the lack of fit: the
   part of the validation error that noise and the uncertainty of the parameters, which are counted above, leave over.
"""

import math
from collections.abc import Mapping, Sequence
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
from wholestack.scaling.forms import ASYMPTOTE_SHARE, COST_FORMS, POWER, SIZE_FORMS, TIED, Form
from wholestack.scaling.points import Array, Refusal, RunPoint, Table, span_decades, table_of
from wholestack.scaling.residuals import Edge, ErrorModel, Huber

Scatter = Literal["noise", "search"]
Beliefs = Mapping[str, float]

MIN_POINTS = 8
MIN_DECADES = 1.0
REPLICATES = 400
DISCREPANCY_PER_DECADE = 0.015
"""Standard deviation of log loss that no form explains, per decade beyond the costliest run."""
LACK_SHARE = 0.5
"""Part of the lack of fit in validation that is expected again, per decade."""
BLIND_DECADES = 0.3
"""Tokens per parameter within a factor of two: the horizon was not varied."""
SMALLEST_BELIEF = 0.5
"""Least part of the gap between the two asymptotes that the interval keeps."""
FAR_RATIO = 150.0
"""Largest ratio of target to costliest run that the benchmark covers."""
WIDE_GAP = 0.05
"""ln loss."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFit:
    """One form fitted, validated and replicated."""

    candidate: Candidate
    """The fit to all runs."""
    validation: Validation
    """How fits to the cheaper runs met the costlier ones."""
    theta: Array
    """(R, p) parameters of the replicates."""
    noise: Array
    """(R,) noise that each replicate believes in."""

    def at(self, target: Table) -> float:
        """Log loss at one target."""
        return float(self.candidate.predict(target)[0])

    def draws_at(self, target: Table) -> Array:
        """(R,) log loss of the replicates at one target."""
        law = self.candidate.form.law(self.candidate.frame.features(target))
        return np.asarray(law(self.theta).value[:, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Forms that compete for a forecast: those in cost, and those in size and tokens too where they can be fitted."""

    fits: tuple[FormFit, ...]
    """Competitors."""
    beliefs: Beliefs
    """How far each form is believed before any run, by name; a form's own prior weight where it is not named."""
    free: FormFit
    """The power law with E free."""
    fixed: FormFit
    """The same with E fixed."""

    @property
    def weights(self) -> Array:
        """Share of each competitor."""
        return _weights(self.fits, self.beliefs)

    def gap_at(self, target: Table) -> float:
        """Log gap between free and fixed asymptote, shrunk to half as validation refutes the fixed one.

        Not to nothing: on few runs of nearly one size the cheaper half can refute the right asymptote.
        """
        believed = min(1.0, max(SMALLEST_BELIEF, 2 * float(_weights([self.free, self.fixed], {})[1])))
        return abs(self.free.at(target) - self.fixed.at(target)) * believed


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLaw:
    """Everything that was learnt of the loss; forecasts from it cost no further fit."""

    table: Table
    """The runs."""
    supporting: Table
    """The runs that carry the law."""
    by_cost: Family
    """Laws in cost alone."""
    by_size: Family | None
    """The same and laws in (N, D), if the runs vary tokens per parameter."""
    log_fixed: float
    """ln of the fixed asymptote."""
    uniform: Array
    """(R, 2) random numbers in 0..1: which form a draw comes from, and where in the asymptote's gap it lies."""
    normal: Array
    """(R, 2) standard normal numbers: noise of the target run, and discrepancy."""
    excess: Array
    """(R,) log excess of the target over the edge of a search; zeros otherwise."""
    horizon_warning: str
    """Why the horizon is not in the law, or empty."""

    def forecast(
        self,
        target_cost_flops: float,
        *,
        target_params: float | None = None,
        target_tokens: float | None = None,
        level: float = 0.9,
    ) -> Forecast:
        """The loss of one run; see :func:`forecast_loss`."""
        if not 0 < level < 1:
            raise InputError(f"level is {level}: must lie between 0 and 1")
        point = RunPoint(cost_flops=target_cost_flops, loss=1.0, params=target_params, tokens=target_tokens)
        target = table_of([point])
        sized = self.by_size is not None and target.log_params is not None and target.log_tokens is not None
        family = self.by_size if sized and self.by_size is not None else self.by_cost
        return _record(self, family, target, point, level)


def fit_loss(
    points: Sequence[RunPoint],
    *,
    scatter: Scatter = "noise",
    asymptote: float | None = None,
    noise: float | None = None,
    beliefs: Beliefs | None = None,
    rng: np.random.Generator,
) -> LossLaw | Refusal:
    """Fit every form once, for many forecasts.

    Args:
        points: Runs. With ``scatter="noise"`` each was tuned as well as the target will be. With ``"search"`` they
            are *all* completed trials of a search, not only its front: the law is the edge below them.
        scatter: See ``points``.
        asymptote: An irreducible loss known from elsewhere, for the fixed fit.
        noise: Standard deviation of log loss between repeated runs, where it was measured (search only).
        beliefs: Prior weight of forms by name, where more is known of the regime than of language models in general.
        rng: Draws starts and replicates; the same state and points give the same forecast.

    Returns:
        The law, or a Refusal where fewer than 8 runs or less than a decade of cost carry it.

    Raises:
        InputError: an asymptote or noise that is not above 0.
    """
    _check_positive(asymptote=asymptote, noise=noise)
    table = table_of(points)
    refused = _refusal(table, len(points))
    if refused is not None:
        return refused
    start: ErrorModel = Huber() if scatter == "noise" else Edge(noise=noise or 0.007, known_noise=noise)
    blind = _horizon_warning(table)
    forms = COST_FORMS if blind else (*COST_FORMS, *SIZE_FORMS)
    fits = _fit_all(forms, table, start, rng)
    best = fits[int(np.argmax(_weights(fits, beliefs or {})))].candidate
    supporting = _supporting(best, table)
    refused = _refusal(supporting, len(points))
    if refused is not None:
        return refused
    log_fixed = math.log(asymptote) if asymptote else float(table.log_loss.min()) + math.log(ASYMPTOTE_SHARE)
    in_cost = [each for each in fits if not each.candidate.form.needs_size]
    return LossLaw(
        table=table,
        supporting=supporting,
        by_cost=_family(in_cost, POWER, table, beliefs=beliefs or {}, log_fixed=log_fixed, rng=rng),
        by_size=None if blind else _family(fits, TIED, table, beliefs=beliefs or {}, log_fixed=log_fixed, rng=rng),
        log_fixed=log_fixed,
        uniform=rng.random((REPLICATES, 2)),
        normal=rng.standard_normal((REPLICATES, 2)),
        excess=rng.choice(target_excess(best), REPLICATES),
        horizon_warning=blind,
    )


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
        points: See :func:`fit_loss`.
        target_cost_flops: FLOPs of the run to predict.
        target_params: Its size; with ``target_tokens``, and sizes and tokens in all points, laws in (N, D) compete.
        target_tokens: Its tokens.
        level: Coverage of the interval.
        scatter: See :func:`fit_loss`.
        asymptote: See :func:`fit_loss`.
        noise: See :func:`fit_loss`.
        rng: See :func:`fit_loss`.

    Returns:
        A Forecast, or a Refusal where fewer than 8 runs or less than a decade of cost carry the law.

    Raises:
        InputError: a level or target outside its range.

    Example:
        >>> points = [RunPoint(cost_flops=c, loss=1 + 9 * c**-0.1) for c in 10.0 ** np.arange(9, 12, 0.25)]
        >>> forecast_loss(points, 1e13, rng=np.random.default_rng(0)).predicted
        1.45...
    """
    law = fit_loss(points, scatter=scatter, asymptote=asymptote, noise=noise, rng=rng)
    if isinstance(law, Refusal):
        return law
    return law.forecast(target_cost_flops, target_params=target_params, target_tokens=target_tokens, level=level)


def _fit_all(forms: Sequence[Form], table: Table, start: ErrorModel, rng: np.random.Generator) -> list[FormFit]:
    """All forms; each is scored with its own scatter, so a form that explains less of it pays for that."""
    candidates = [fit_form(form, table, start, rng) for form in forms]
    return [_complete(each, table, rng) for each in candidates]


def _complete(
    candidate: Candidate, table: Table, rng: np.random.Generator, log_asymptote: float | None = None
) -> FormFit:
    theta, noise = replicates(candidate, table, REPLICATES, rng)
    validation = validate(candidate.form, table, candidate.error, rng, log_asymptote=log_asymptote)
    return FormFit(candidate=candidate, validation=validation, theta=theta, noise=noise)


def _family(
    fits: Sequence[FormFit],
    power: Form,
    table: Table,
    *,
    beliefs: Beliefs,
    log_fixed: float,
    rng: np.random.Generator,
) -> Family:
    free = next(each for each in fits if each.candidate.form == power)
    candidate = fit_form(power, table, free.candidate.error, rng, log_asymptote=log_fixed)
    fixed = _complete(candidate, table, rng, log_fixed)
    return Family(fits=tuple(fits), beliefs=beliefs, free=free, fixed=fixed)


def _weights(fits: Sequence[FormFit], beliefs: Beliefs) -> Array:
    forms = [each.candidate.form for each in fits]
    return weights_of([each.validation for each in fits], [beliefs.get(form.name, form.prior_weight) for form in forms])


def _draws(law: LossLaw, family: Family, target: Table) -> Array:
    """(R,) draws of the log loss of one run at the target."""
    chosen = np.searchsorted(np.cumsum(family.weights)[:-1], law.uniform[:, 0], side="right")
    rows = np.arange(REPLICATES)
    level = np.stack([each.draws_at(target) for each in family.fits])[chosen, rows]
    noise = np.stack([each.noise for each in family.fits])[chosen, rows]
    lack = float(family.weights @ [each.validation.lack_of_fit for each in family.fits])
    decades = max(0.0, _log_ratio(law, target)) / math.log(10)
    discrepancy = (DISCREPANCY_PER_DECADE + LACK_SHARE * lack) * decades
    gap = family.gap_at(target) * (law.uniform[:, 1] - 0.5)
    return np.asarray(level + law.excess + gap + noise * law.normal[:, 0] + discrepancy * law.normal[:, 1])


def _log_ratio(law: LossLaw, target: Table) -> float:
    return float(target.log_cost[0] - law.table.log_cost.max())


def _record(law: LossLaw, family: Family, target: Table, point: RunPoint, level: float) -> Forecast:
    low, middle, high = np.exp(np.quantile(_draws(law, family, target), [0.5 - level / 2, 0.5, 0.5 + level / 2]))
    weights = family.weights
    best = family.fits[int(np.argmax(weights))].candidate
    return Forecast(
        predicted=float(middle),
        interval=(float(low), float(high)),
        level=level,
        target_cost_flops=point.cost_flops,
        target_params=point.params,
        target_tokens=point.tokens,
        form=best.form.name,
        forms=tuple(
            FormForecast(
                name=each.candidate.form.name,
                predicted=math.exp(each.at(target)),
                validation_error=each.validation.error,
                weight=float(weight),
            )
            for each, weight in zip(family.fits, weights, strict=True)
        ),
        free_asymptote=math.exp(family.free.at(target)),
        fixed_asymptote=math.exp(family.fixed.at(target)),
        asymptote=math.exp(float(family.free.candidate.theta[0])),
        asymptote_fixed_at=math.exp(law.log_fixed),
        noise=best.error.noise,
        n_points=len(law.table),
        n_supporting=len(law.supporting),
        span_decades=span_decades(law.supporting.log_cost),
        extrapolation_ratio=math.exp(_log_ratio(law, target)),
        warnings=tuple(_warnings(law, family, target)),
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


def _horizon_warning(table: Table) -> str:
    """Why laws in (N, D) cannot be fitted, or empty."""
    ratio = _log_tokens_per_param(table)
    if ratio is None:
        return "params or tokens of some runs are not given: whether the horizon was varied is unknown"
    spread = float(np.quantile(ratio, 0.95) - np.quantile(ratio, 0.05)) / math.log(10)
    if spread >= BLIND_DECADES:
        return ""
    return (
        f"blind to the horizon: 90 % of the runs lie within a factor {10**spread:.2f} in tokens per parameter, "
        "so nothing is known of a run that is trained for longer or shorter"
    )


def _warnings(law: LossLaw, family: Family, target: Table) -> list[str]:
    found = [law.horizon_warning] if law.horizon_warning else []
    ratios, goals = _log_tokens_per_param(law.table), _log_tokens_per_param(target)
    if law.by_size is not None and goals is None:
        found.append("target size and tokens are not given: the law is in cost alone")
    if ratios is not None and goals is not None:
        goal = float(goals[0])
        if not ratios.min() - 0.1 <= goal <= ratios.max() + 0.1:
            low, high = math.exp(float(ratios.min())), math.exp(float(ratios.max()))
            found.append(f"the target has {math.exp(goal):.3g} tokens per parameter, the runs {low:.3g} to {high:.3g}")
    ratio = math.exp(_log_ratio(law, target))
    if ratio > FAR_RATIO:
        found.append(f"the target costs {ratio:.3g} times the costliest run: beyond anything that was tested")
    if family.gap_at(target) > WIDE_GAP:
        found.append("the asymptote decides the forecast: free and fixed E differ by more than 5 % at the target")
    return found


def _log_tokens_per_param(table: Table) -> Array | None:
    if table.log_params is None or table.log_tokens is None:
        return None
    return np.asarray(table.log_tokens - table.log_params)


def _check_positive(**named: float | None) -> None:
    for name, value in named.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value}: must be finite and above 0")
