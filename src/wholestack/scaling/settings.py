"""A law for every hyperparameter against cost or tokens, chosen and scored by regret in loss.

The laws are the valley of a response surface (:mod:`wholestack.scaling.surface`). For each setting the form is
constant (or its prior slope), straight or bent in the log of its axis. The choice is by validation towards larger
cost: the surface is fitted to the cheaper trials with every form, and the settings that it advises for the costlier
ones are priced on the surface fitted to all trials: regret in loss, so a setting that does not matter cannot decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.scaling.candidates import train_counts
from wholestack.scaling.fit import Prior, Problem, best_of, minimise
from wholestack.scaling.points import Array, Refusal, span_decades
from wholestack.scaling.residuals import Huber
from wholestack.scaling.setting import Setting, SettingTrial, transformed
from wholestack.scaling.surface import FORMS, Design, LawForm, Scales, evaluate, prior_of, restrict, valley

MIN_TRIALS = 12
MIN_DECADES = 0.5
REPLICATES = 200
NEAR_EXCESS = 0.08
"""ln loss above the front at which a trial counts half: the surface is a bowl only near its bottom."""
MARGIN = 1e-4
"""A freer form must save this much regret (ln loss) to be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingForecast(Record):
    """One setting at a target cost."""

    value: float
    """Inside the bounds and rounded."""
    interval: tuple[float, float]
    """Where the best value lies with the law's level; inside the bounds, not rounded."""
    form: LawForm
    """Shape of its law; ``constant`` keeps the prior slope where one was given."""
    at_bound: bool
    """The law left the bounds and was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsLaw:
    """Laws of all settings, fitted to one search."""

    settings: tuple[Setting, ...]
    """In the caller's order."""
    forms: tuple[LawForm, ...]
    """Shape of every law."""
    validation_regret: tuple[tuple[float, ...], ...]
    """Per setting, the mean regret (ln loss) of constant, straight and bent on costlier trials."""
    level: float
    """Coverage of the intervals."""
    noise: float
    """Standard deviation of ln loss round the surface."""
    tokens_name: str
    """Setting that is the tokens axis; empty if there is none."""
    scales: Scales
    """Coordinates."""
    theta: Array
    """Parameters of the surface, (p,)."""
    draws: Array
    """Parameters of replicates, (R, p)."""
    t_end: float
    """Centred ln cost of the costliest trial."""
    axis_end: Array
    """(k,) largest axis values of the trials."""

    def at(self, cost_flops: float, *, tokens: float | None = None) -> dict[str, SettingForecast]:
        """The settings for a cost.

        Args:
            cost_flops: Target, > 0.
            tokens: Tokens of the target if they are decided; otherwise the law of tokens gives them.
        """
        if not cost_flops > 0:
            raise InputError(f"cost_flops is {cost_flops}: must be above 0")
        best = self._valley(self.theta[None, :], cost_flops, tokens)[0]
        draws = self._valley(self.draws, cost_flops, tokens)
        tail = 0.5 - self.level / 2
        low, high = np.quantile(np.concatenate([draws, best[None, :]]), [tail, 1 - tail], axis=0)
        return {
            each.name: _setting_forecast(each, form, best[i], min(low[i], best[i]), max(high[i], best[i]))
            for i, (each, form) in enumerate(zip(self.settings, self.forms, strict=True))
        }

    def regret(self, cost_flops: float, values: Mapping[str, float], *, tokens: float | None = None) -> float:
        """Fraction of loss that these settings lose against the law's own, by the surface.

        Raises:
            InputError: a setting is missing.
        """
        trial = SettingTrial(cost_flops=cost_flops, loss=1.0, settings=values)
        off = transformed([trial], list(self.settings))[0] - self._valley(self.theta[None, :], cost_flops, tokens)[0]
        stiffness = np.exp(self.theta[3 : 3 + len(off)])
        return float(np.expm1(0.5 * np.sum(stiffness * (off / self.scales.spread) ** 2)))

    def _valley(self, theta: Array, cost_flops: float, tokens: float | None) -> Array:
        """(R, k) best transformed settings."""
        scales, on_tokens = self.scales, [each.prior_axis == "tokens" for each in self.settings]
        axis = np.full((len(theta), len(self.settings)), np.log(cost_flops)) - scales.log_axis
        if any(on_tokens):
            if tokens is None:
                where = [each.name for each in self.settings].index(self.tokens_name)
                best = valley(theta, axis, self.axis_end)[:, where]
                log_tokens = best * scales.spread[where] + scales.centre[where]
            else:
                log_tokens = np.full(len(theta), np.log(tokens))
            axis = np.where(on_tokens, log_tokens[:, None] - scales.log_axis, axis)
        return np.asarray(valley(theta, axis, self.axis_end) * scales.spread + scales.centre)


def fit_settings(
    trials: Sequence[SettingTrial],
    settings: Sequence[Setting],
    *,
    level: float = 0.9,
    tokens_name: str = "tokens",
    rng: np.random.Generator,
) -> SettingsLaw | Refusal:
    """Fit a law for every setting.

    Args:
        trials: All completed trials of a search: the bad ones show where the valley's walls are.
        settings: Hyperparameters to extrapolate, numbers only.
        level: Coverage of the intervals.
        tokens_name: The log setting that holds tokens; laws with ``prior_axis="tokens"`` run along it.
        rng: Draws replicates.

    Returns:
        The laws, or a Refusal for fewer than 12 trials or less than half a decade of cost.

    Raises:
        InputError: no settings, a trial without one of them, or a tokens axis without tokens.
    """
    names = [each.name for each in settings]
    if not settings or len(set(names)) != len(names):
        raise InputError(f"settings must be given and have distinct names, got {names}")
    if not 0 < level < 1:
        raise InputError(f"level is {level}: must lie between 0 and 1")
    _check_tokens(settings, tokens_name)
    ordered = sorted(trials, key=lambda each: (each.cost_flops, each.loss))
    refused = _refusal(ordered)
    if refused is not None:
        return refused
    raw = transformed(ordered, list(settings))
    log_cost, log_loss = np.log([t.cost_flops for t in ordered]), np.log([t.loss for t in ordered])
    weight = np.array([t.weight for t in ordered]) * _near_front(log_cost, log_loss)
    scales, design = _design(log_cost, raw, weight, settings, tokens_name)
    near = np.average(design.z, axis=0, weights=weight**2)
    prior = prior_of(settings, scales, near, float(log_loss.min()))
    table = _Trials(design=design, log_loss=log_loss, weight=weight, prior=prior)
    error, bent = _scale(table)
    regrets = _validation_regrets(table, error, bent)
    forms = tuple(_choose(row) for row in regrets)
    theta = _fit(table, error, forms, bent)
    return SettingsLaw(
        settings=tuple(settings),
        forms=forms,
        validation_regret=tuple(tuple(float(x) for x in row) for row in regrets),
        level=level,
        noise=error.noise,
        tokens_name=tokens_name if tokens_name in names else "",
        scales=scales,
        theta=theta,
        draws=_replicates(table, error, forms, theta, rng),
        t_end=design.t_end,
        axis_end=design.axis_end,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trials:
    """Arrays of one fit."""

    design: Design
    log_loss: Array
    weight: Array
    prior: Prior

    def cheapest(self, count: int) -> "_Trials":
        index = np.arange(count)
        return _Trials(
            design=self.design.take(index),
            log_loss=self.log_loss[index],
            weight=self.weight[index],
            prior=self.prior,
        )


def _fit(table: _Trials, error: Huber, forms: Sequence[LawForm], start: Array | None = None) -> Array:
    prior = restrict(table.prior, forms)
    starts = [prior.mean] if start is None else [prior.mean, np.where(prior.sd < 1e-4, prior.mean, start)]
    law = partial(evaluate, design=table.design)
    problem = Problem(law=law, targets=table.log_loss, weights=table.weight, error=error, prior=prior)
    return best_of(minimise(problem, np.stack(starts)))


def _scale(table: _Trials) -> tuple[Huber, Array]:
    """Noise round the freest surface, and that surface."""
    free: list[LawForm] = ["bent"] * table.design.k
    error = Huber(scale=0.02)
    theta = _fit(table, error, free)
    for _ in range(3):
        theta = _fit(table, error, free, theta)
        residuals = table.log_loss - evaluate(theta[None, :], table.design).value[0]
        # Half the parameters count: the priors hold the rest.
        error = error.refit(residuals, table.weight, min(len(theta) // 2, len(residuals) // 2))
    return error, theta


def _validation_regrets(table: _Trials, error: Huber, reference: Array) -> Array:
    """(k, 3) mean regret of each form's advice for the costlier trials, priced on the reference surface."""
    design, k = table.design, table.design.k
    stiffness = np.exp(reference[3 : 3 + k])
    totals = []
    for count in train_counts(len(table.log_loss)):
        part = table.cheapest(count)
        axis = design.axes[count:]
        best = valley(reference[None, :], axis, design.axis_end)
        advice = [valley(_fit(part, error, (form,) * k)[None, :], axis, part.design.axis_end) for form in FORMS]
        totals.append([np.mean(0.5 * stiffness * (each - best) ** 2, axis=0) for each in advice])
    return np.asarray(np.mean(totals, axis=0).T)


def _choose(regrets: Array) -> LawForm:
    """The simplest form that no freer one beats by the margin and by a fifth."""
    chosen = 0
    for index in range(1, len(FORMS)):
        if regrets[index] < min(0.8 * regrets[chosen], regrets[chosen] - MARGIN):
            chosen = index
    return FORMS[chosen]


def _replicates(
    table: _Trials, error: Huber, forms: Sequence[LawForm], theta: Array, rng: np.random.Generator
) -> Array:
    """(R, p) Bayesian bootstrap over trials with drawn prior means.

    A law chosen as constant still gets its slope drawn here: the choice says that no slope was seen, not that there
    is none.
    """
    loose = restrict(table.prior, ["straight" if form == "constant" else form for form in forms])
    prior = replace(loose, mean=loose.draw(REPLICATES, rng))
    weights = table.weight * rng.exponential(size=(REPLICATES, len(table.log_loss)))
    start = np.broadcast_to(theta, prior.mean.shape)
    law = partial(evaluate, design=table.design)
    problem = Problem(law=law, targets=table.log_loss, weights=weights, error=error, prior=prior)
    return minimise(problem, start, iterations=30, tolerance=1e-5).theta


def _near_front(log_cost: Array, log_loss: Array) -> Array:
    """(n,) weights that fall as a trial lies above a smooth front, itself the running minimum made monotone."""
    front = np.minimum.accumulate(log_loss)
    return 1 / (1 + ((log_loss - front) / NEAR_EXCESS) ** 2)


def _design(
    log_cost: Array, raw: Array, weight: Array, settings: Sequence[Setting], tokens_name: str
) -> tuple[Scales, Design]:
    names = [each.name for each in settings]
    axes = np.repeat(log_cost[:, None], len(settings), axis=1)
    for index, each in enumerate(settings):
        if each.prior_axis == "tokens":
            axes[:, index] = raw[:, names.index(tokens_name)]
    centre = np.average(raw, axis=0, weights=weight)
    spread = np.sqrt(np.average((raw - centre) ** 2, axis=0, weights=weight))
    scales = Scales(
        log_cost=float(log_cost.mean()),
        log_axis=axes.mean(axis=0),
        centre=centre,
        # A setting that was never varied has no wall; any spread will do, the law stays at its value.
        spread=np.where(spread > 1e-9, spread, 1.0),
    )
    t, centred = log_cost - scales.log_cost, axes - scales.log_axis
    z = (raw - scales.centre) / scales.spread
    return scales, Design(t=t, axes=centred, z=z, t_end=float(t.max()), axis_end=centred.max(axis=0))


def _setting_forecast(setting: Setting, form: LawForm, best: float, low: float, high: float) -> SettingForecast:
    value = setting.backward(best)
    unbounded = replace(setting, low=None, high=None).backward(best)
    return SettingForecast(
        value=setting.round(value),
        interval=(setting.backward(low), setting.backward(high)),
        form=form,
        at_bound=abs(unbounded - value) > 1e-9 * max(abs(value), 1e-300),
    )


def _check_tokens(settings: Sequence[Setting], tokens_name: str) -> None:
    along = [each.name for each in settings if each.prior_axis == "tokens"]
    tokens = [each for each in settings if each.name == tokens_name]
    if along and not tokens:
        raise InputError(f"setting {along[0]} has its law along tokens, but no setting is named {tokens_name!r}")
    if along and (tokens[0].transform != "log" or tokens[0].prior_axis != "cost"):
        raise InputError(f"setting {tokens_name} is an axis: it must be log and have its own law along cost")


def _refusal(ordered: Sequence[SettingTrial]) -> Refusal | None:
    span = span_decades(np.log([each.cost_flops for each in ordered])) if ordered else 0.0
    if len(ordered) < MIN_TRIALS:
        reason = f"{len(ordered)} trials, at least {MIN_TRIALS} are needed for laws of settings"
    elif span < MIN_DECADES:
        reason = f"the trials span {span:.2f} decades of cost, at least {MIN_DECADES:g} is needed"
    else:
        return None
    return Refusal(
        reason=reason,
        remedy="let the search run longer or over a wider range of cost",
        n_points=len(ordered),
        n_supporting=len(ordered),
        span_decades=span,
    )
