"""From trials to laws: a forecast of the metric, a law for every setting, and the settings of rung and large run.

When the trials cannot support a forecast, the settings are those of the best trial with only size and tokens
scaled, which is also the baseline that the laws have to beat.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wholestack.experiments.recipe import DimensionSpec, Recipe
from wholestack.experiments.records import ForecastPoint, Laws, Params, Plan, Role, SettingLaw, TrialRecord
from wholestack.experiments.scheduling import search_trial
from wholestack.experiments.settings import cost_flops, training_plan, with_cost
from wholestack.scaling.allocation import allocate
from wholestack.scaling.forecast import Forecast, LossLaw, fit_loss
from wholestack.scaling.points import Refusal, RunPoint
from wholestack.scaling.scores import straight_line
from wholestack.scaling.setting import Setting, SettingTrial
from wholestack.scaling.settings import SettingForecast, SettingsLaw, fit_settings
from wholestack.scaling.surface import LawForm
from wholestack.search import pareto_front

LAWFUL: tuple[Role, ...] = ("ladder", "rung")
"""Runs that took their settings from the laws, as the large run will."""
FEWEST_LAWFUL = 8
SMALL_MODELS = {"line": 1.0, "semilog": 1.0, "bend": 0.15, "power": 0.1, "tied": 0.1, "size_tokens": 0.1}
"""Prior weights of the forms: between 1e10 and 1e13 FLOPs losses lie between a line in log-log and one in log cost,
and forms with a floor predict too high (docs/decisions/0003): the floor decides at the scales for which the forms' own
weights are made."""
CHEAPEST_SHARE = 0.1
"""The cheapest trials give one point of the front, so that it does not start with whatever cost least."""
CURVE_POINTS = 25
SIZE_SHARE = 0.5
"""Exponent of size (and of tokens) against cost when only these two are scaled: Hoffmann et al. 2022, table 2."""


def fit_laws(recipe: Recipe, plan: Plan, trials: Sequence[TrialRecord], *, seed: int) -> Laws:
    """Fit all laws to the trials that ended well; a rung among them is one more point.

    Args:
        recipe: Dimensions, level.
        plan: Costs of rung and large run.
        trials: In order of acknowledgement.
        seed: The rehearsal's seed.
    """
    usable = _usable(trials)
    front = front_trials(recipe, usable)
    if not front:
        return _refused(recipe, plan, usable, front, "no trial of the search ended well")
    law = _settings_law(recipe, usable, seed)
    if isinstance(law, Refusal):
        return _refused(recipe, plan, usable, front, law.reason)
    alike = [trial for trial in usable if trial.role in LAWFUL]
    enough = len(alike) >= FEWEST_LAWFUL
    loss = fit_loss(
        [_run_point(recipe, trial) for trial in (alike if enough else usable)],
        scatter="noise" if enough else "search",
        beliefs=SMALL_MODELS,
        rng=np.random.default_rng([seed, 4, len(usable)]),
    )
    if isinstance(loss, Refusal):
        return _refused(recipe, plan, usable, front, loss.reason)
    basis = f"{len(alike)} runs with the laws' own settings" if enough else f"the edge below all {len(usable)} trials"
    return _supported(_Fitted(recipe=recipe, plan=plan, front=front, loss=loss, law=law, basis=basis))


def ladder_settings(
    recipe: Recipe, trials: Sequence[TrialRecord], costs: Sequence[float], *, seed: int
) -> list[Params]:
    """Settings of the ladder's trials from the laws of the search; none if it supports no laws.

    From the search alone, so that a ladder that a kill cut short goes on with the settings it began with.
    """
    usable = [trial for trial in _usable(trials) if trial.role not in LAWFUL]
    front = front_trials(recipe, usable)
    law = _settings_law(recipe, usable, seed) if front else None
    return [settings_at(recipe, law, front, cost) for cost in costs] if isinstance(law, SettingsLaw) else []


def _usable(trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    return [trial for trial in trials if trial.outcome == "ok" and trial.role in ("search", "random", *LAWFUL)]


def _settings_law(recipe: Recipe, usable: Sequence[TrialRecord], seed: int) -> SettingsLaw | Refusal:
    return fit_settings(
        [_setting_trial(recipe, trial) for trial in usable],
        _settings(recipe),
        level=recipe.level,
        rng=np.random.default_rng([seed, 3, len(usable)]),
    )


def front_trials(recipe: Recipe, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Trials of search, ladder and rung on the Pareto front, cheapest first; of repeated settings the first trial."""
    done = [trial for trial in trials if trial.role in ("search", *LAWFUL) and trial.outcome == "ok"]
    told = [replace(search_trial(trial, recipe.metric), number=index) for index, trial in enumerate(done)]
    return [done[point.trials[0]] for point in pareto_front(told, min_cost_fraction=CHEAPEST_SHARE)]


def scale_up(recipe: Recipe, trial: TrialRecord, target_flops: float) -> Params:
    """A trial's settings with only size and tokens scaled: depth and width share the growth of the size alike."""
    growth = (target_flops / trial.cost_flops) ** SIZE_SHARE
    params = dict(trial.params)
    for name in ("layers", "width"):
        spec = next((each for each in recipe.dimensions if each.name == name), None)
        if spec is not None:
            params[name] = int(_setting(spec).round(float(params[name]) * growth ** (1 / 3)))
    return with_cost(recipe, params, target_flops)


def settings_at(recipe: Recipe, law: SettingsLaw, front: Sequence[TrialRecord], target_flops: float) -> Params:
    """The laws' settings for a cost: numbers from their laws, choices by vote of the costlier half of the front."""
    votes = _votes(recipe, front)
    allocation = allocate(law, target_flops, lambda values: cost_flops(recipe, _typed(recipe, {**values, **votes})))
    return with_cost(recipe, _typed(recipe, {**allocation.settings, **votes}), target_flops)


def _votes(recipe: Recipe, front: Sequence[TrialRecord]) -> Params:
    costlier = front[len(front) // 2 :]
    votes: Params = {}
    for spec in recipe.dimensions:
        if spec.kind == "categorical":
            counts = Counter(trial.params[spec.name] for trial in reversed(costlier))
            votes[spec.name] = counts.most_common(1)[0][0]
    return votes


def _typed(recipe: Recipe, values: Mapping[str, float | int | str]) -> Params:
    """Settings in the recipe's order; whole ones as integers."""
    return {
        spec.name: round(float(values[spec.name])) if spec.rounding is not None else values[spec.name]
        for spec in recipe.dimensions
    }


def _numeric(recipe: Recipe) -> list[DimensionSpec]:
    return [spec for spec in recipe.dimensions if spec.kind != "categorical"]


def _settings(recipe: Recipe) -> list[Setting]:
    return [_setting(spec) for spec in _numeric(recipe)]


def _setting(spec: DimensionSpec) -> Setting:
    high = spec.extrapolated_high if spec.extrapolated_high is not None else spec.high
    return Setting(
        name=spec.name,
        transform=spec.kind if spec.kind != "categorical" else "linear",
        low=spec.low,
        high=None if spec.name == "tokens" else high,
        rounding=float(spec.rounding) if spec.rounding is not None else None,
        prior_slope=spec.prior_slope,
        prior_slope_sd=spec.prior_slope_sd,
        prior_axis=spec.prior_axis,
    )


def _setting_trial(recipe: Recipe, trial: TrialRecord) -> SettingTrial:
    return SettingTrial(
        cost_flops=trial.cost_flops,
        loss=trial.metrics[recipe.metric],
        settings={spec.name: float(trial.params[spec.name]) for spec in _numeric(recipe)},
    )


def _run_point(recipe: Recipe, trial: TrialRecord) -> RunPoint:
    return RunPoint(
        cost_flops=trial.cost_flops,
        loss=trial.metrics[recipe.metric],
        params=float(trial.parameters),
        tokens=float(trial.tokens),
        seed=trial.seed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """What the laws are drawn from."""

    recipe: Recipe
    plan: Plan
    front: Sequence[TrialRecord]
    loss: LossLaw
    law: SettingsLaw
    basis: str

    def params_at(self, cost: float) -> Params:
        return settings_at(self.recipe, self.law, self.front, cost)

    def forecast(self, cost: float) -> Forecast:
        run = training_plan(self.recipe, self.params_at(cost))
        return self.loss.forecast(
            cost, target_params=float(run.parameters), target_tokens=float(run.tokens), level=self.recipe.level
        )

    def point(self, cost: float) -> ForecastPoint:
        forecast = self.forecast(cost)
        low, high = forecast.interval
        return ForecastPoint(cost_flops=cost, value=forecast.predicted, low=low, high=high)


def _supported(fitted: _Fitted) -> Laws:
    recipe, plan, front = fitted.recipe, fitted.plan, fitted.front
    target = fitted.forecast(plan.target_cost_flops)
    costs = _grid(front[0].cost_flops, plan.target_cost_flops)
    ends = {"rung": fitted.params_at(plan.rung_cost_flops), "target": fitted.params_at(plan.target_cost_flops)}
    line = straight_line([_run_point(recipe, trial) for trial in front], plan.target_cost_flops, level=recipe.level)
    return Laws(
        pareto=tuple(trial.name for trial in front),
        form=target.form,
        basis=fitted.basis,
        supported=True,
        refusal="",
        level=recipe.level,
        curve=tuple(fitted.point(cost) for cost in costs),
        rung=fitted.point(plan.rung_cost_flops),
        target=fitted.point(plan.target_cost_flops),
        straight=ForecastPoint(
            cost_flops=plan.target_cost_flops, value=line.predicted, low=line.interval[0], high=line.interval[1]
        ),
        free_asymptote=target.free_asymptote,
        fixed_asymptote=target.fixed_asymptote,
        settings=tuple(_setting_law(spec, fitted, costs, ends) for spec in recipe.dimensions),
        rung_params=ends["rung"],
        target_params=ends["target"],
        scaled_params=scale_up(recipe, _best_search_trial(recipe, front), plan.target_cost_flops),
        warnings=target.warnings,
    )


def _best_search_trial(recipe: Recipe, front: Sequence[TrialRecord]) -> TrialRecord:
    searched = [trial for trial in front if trial.role == "search"] or list(front)
    return min(searched, key=lambda each: each.metrics[recipe.metric])


def _setting_law(
    spec: DimensionSpec, fitted: _Fitted, costs: Sequence[float], ends: Mapping[str, Params]
) -> SettingLaw:
    rung, target = ends["rung"][spec.name], ends["target"][spec.name]
    if spec.kind == "categorical":
        why = "a choice has no law: the vote of the costlier half of the front"
        return SettingLaw(
            name=spec.name, form="vote", transform=spec.kind, why=why, points=(), curve=(), rung=rung, target=target
        )
    index = [each.name for each in fitted.law.settings].index(spec.name)
    return SettingLaw(
        name=spec.name,
        form=form_in_words(spec, fitted.law.forms[index]),
        transform=spec.kind,
        why=_why(spec, fitted.law.validation_regret[index]),
        points=tuple((trial.cost_flops, float(trial.params[spec.name])) for trial in fitted.front),
        curve=tuple(_setting_point(cost, fitted.law.at(cost)[spec.name]) for cost in costs),
        rung=rung,
        target=target,
    )


def form_in_words(spec: DimensionSpec, form: LawForm) -> str:
    """How a setting moves, along which axis; a law without a slope of its own keeps the prior one, so it may move."""
    axis = spec.prior_axis
    if form != "constant":
        return f"{form} line against ln {axis}"
    if not spec.prior_slope:
        return f"the same at every {'cost' if axis == 'cost' else 'number of tokens'}"
    if spec.kind == "log":
        moves = f"goes as {axis}^{spec.prior_slope:g}"
    else:
        unit = "its logit" if spec.kind == "logit" else "it"
        moves = f"{unit} moves by {spec.prior_slope:+g} a unit of ln {axis}"
    return f"{moves}: its prior slope, for the trials favour no other"


def _why(spec: DimensionSpec, regrets: Sequence[float]) -> str:
    named = zip(("prior slope" if spec.prior_slope else "constant", "straight", "bent"), regrets, strict=True)
    priced = ", ".join(f"{form} {100 * regret:.2f} %" for form, regret in named)
    prior = (
        f"; drawn towards a slope of {spec.prior_slope:+g} a unit of ln {spec.prior_axis}" if spec.prior_slope else ""
    )
    return f"regret in loss on costlier trials: {priced}{prior}"


def _setting_point(cost: float, forecast: SettingForecast) -> ForecastPoint:
    return ForecastPoint(cost_flops=cost, value=forecast.value, low=forecast.interval[0], high=forecast.interval[1])


def _grid(low: float, high: float) -> list[float]:
    return [float(cost) for cost in np.geomspace(low, high, CURVE_POINTS)]


def _refused(
    recipe: Recipe, plan: Plan, trials: Sequence[TrialRecord], front: Sequence[TrialRecord], reason: str
) -> Laws:
    """No law: the best small settings, scaled by size and tokens; with no trial at all the search centre, scaled."""
    scaled = {
        cost: scale_up(recipe, _best_search_trial(recipe, front), cost) if front else _centre_at(recipe, cost)
        for cost in (plan.rung_cost_flops, plan.target_cost_flops)
    }
    return Laws(
        pareto=tuple(trial.name for trial in front),
        form="none",
        basis="",
        supported=False,
        refusal=reason,
        level=recipe.level,
        curve=(),
        rung=None,
        target=None,
        straight=None,
        free_asymptote=None,
        fixed_asymptote=None,
        settings=(),
        rung_params=scaled[plan.rung_cost_flops],
        target_params=scaled[plan.target_cost_flops],
        scaled_params=scaled[plan.target_cost_flops],
        warnings=(f"no law: {reason}", f"{len(trials)} trials ended well"),
    )


def _centre_at(recipe: Recipe, target_flops: float) -> Params:
    return with_cost(recipe, {spec.name: spec.centre for spec in recipe.dimensions}, target_flops)
