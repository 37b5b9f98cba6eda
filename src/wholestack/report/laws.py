"""Sections on the Pareto front and on the law of every setting."""

from collections.abc import Sequence
from dataclasses import replace

from wholestack.experiments.records import SMALL_ROLES, ForecastPoint, Laws, SettingLaw, TrialRecord
from wholestack.report import plots
from wholestack.report.evidence import Evidence
from wholestack.report.page import Markup, element, figure, join, listing, not_reached, paragraph
from wholestack.report.quantities import flops, number, percent, plural, printable, setting
from wholestack.report.tables import Table, draw, folded
from wholestack.report.verdict import metric_label, rung, target

_MOST_PANELS = 40


def pareto(evidence: Evidence) -> Markup:
    """The metric against cost, with everything on it."""
    if not evidence.trials:
        return not_reached("The search has not completed a trial yet.")
    shown = _front(evidence)
    caption = (
        "Each point is one trained model; lower and further left is better where the metric is a loss. The line is the"
        " law fitted to the front and the band its interval; blue bars are the intervals predicted for the rung and the"
        " large run, orange marks are where they landed, red ticks on the axis are failed trials."
    )
    tables = folded("The numbers", _runs_table(evidence), _front_table(evidence), _law_table(evidence))
    return join([_told(evidence), figure(plots.front(shown), caption, tables)])


def settings(evidence: Evidence) -> Markup:
    """How every setting moves with cost."""
    laws = evidence.laws
    if laws is None:
        return not_reached("No laws of settings have been fitted yet.")
    if not laws.settings:
        return not_reached("The points cannot support laws of settings; see the front above.")
    rung_cost, target_cost = _chosen_costs(evidence)
    chosen = [_as_trained(law, evidence.last("rung")) for law in laws.settings]
    panels = [
        plots.setting_law(law, number, rung_cost=rung_cost, target_cost=target_cost)
        for number, law in enumerate(chosen[:_MOST_PANELS])
    ]
    caption = (
        "Dots are the trials on the Pareto front, the line is the law with its interval; the blue diamond is the"
        " setting chosen for the rung, the blue star the one for the large run, after rounding and bounds."
    )
    points = folded("The points", _points_table(laws))
    table = Table(
        caption="Each setting: form of its law, why this form, and the values chosen",
        columns=("setting", "form", "rung", "large run", "why"),
        rows=[_setting_row(law) for law in chosen],
    )
    return join([figure(element("div", *panels, class_="grid"), caption, points), draw(table)])


def _as_trained(law: SettingLaw, rung: TrialRecord | None) -> SettingLaw:
    """The law with what the rung really had: the laws were fitted again after it, and would now choose otherwise."""
    return law if rung is None or law.name not in rung.params else replace(law, rung=rung.params[law.name])


def _told(evidence: Evidence) -> Markup:
    laws = evidence.laws
    if laws is None:
        return paragraph("No law has been fitted yet.")
    refitted = "after the rung, with it" if evidence.laws_rung is not None else "after the search"
    if not laws.supported:
        told = paragraph(f"The points cannot support a law: {printable(laws.refusal)}")
    else:
        told = paragraph(
            f"Law of the metric ({refitted}): ", element("code", laws.form), f", fitted to {printable(laws.basis)}."
        )
    warnings = listing(printable(each) for each in laws.warnings) if laws.warnings else Markup("")
    return join([told, _asymptotes(laws), warnings])


def _asymptotes(laws: Laws) -> Markup:
    """What the law says with its irreducible loss free and fixed, and what the gap does to the interval."""
    free, fixed, target = laws.free_asymptote, laws.fixed_asymptote, laws.target
    if free is None or fixed is None or target is None:
        return Markup("")
    gap = percent(abs(fixed / free - 1), signed=False)
    span = percent((target.high - target.low) / target.value, signed=False)
    return paragraph(
        f"How low a loss can go at all is hard to read off small runs: at {flops(target.cost_flops)} the power law"
        f" gives {number(free)} with its irreducible loss left free and {number(fixed)} with it fixed at half of the"
        f" lowest loss seen, {gap} apart. The gap widens the interval, which spans {span} in all: its draws are spread"
        " over the whole gap, or less of it, at least half, where the costlier runs speak against the fixed one."
    )


def _front(evidence: Evidence) -> plots.Front:
    metric, laws = evidence.metric, evidence.laws
    on_front = _on_front(evidence)
    names = {trial.name for trial in on_front}
    return plots.Front(
        metric=metric_label(evidence),
        trials=[_point(trial, metric) for trial in evidence.completed("search") if trial.name not in names],
        random=[_point(trial, metric) for trial in evidence.completed("random") if trial.name not in names],
        ladder=[_point(trial, metric) for trial in evidence.completed("ladder")],
        front=[_point(trial, metric) for trial in on_front],
        law=laws.curve if laws else (),
        level=laws.level if laws else 0.9,
        runs=[
            _run(evidence, "rung", "D", rung(evidence)),
            _run(evidence, "large", "*", target(evidence)),
        ],
        scaled=next((_point(trial, metric) for trial in evidence.completed("scaled")), None),
        failures=[trial.cost_flops for trial in evidence.failures if trial.cost_flops > 0],
    )


def _on_front(evidence: Evidence) -> list[TrialRecord]:
    """Trials on the front as the laws name them, before there are laws those that no cheaper trial beats."""
    ordered = sorted(evidence.completed(*SMALL_ROLES, "rung"), key=lambda trial: trial.cost_flops)
    if evidence.laws is not None:
        names = set(evidence.laws.pareto)
        return [trial for trial in ordered if trial.name in names]
    return unbeaten(ordered, evidence.metric)


def unbeaten(cheapest_first: Sequence[TrialRecord], metric: str) -> list[TrialRecord]:
    """Trials with a lower metric than every cheaper one."""
    front: list[TrialRecord] = []
    for trial in cheapest_first:
        if not front or trial.metrics[metric] < front[-1].metrics[metric]:
            front.append(trial)
    return front


def _point(trial: TrialRecord, metric: str) -> tuple[float, float]:
    return trial.cost_flops, trial.metrics[metric]


def _run(evidence: Evidence, role: str, marker: str, forecast: ForecastPoint | None) -> plots.Run:
    done = evidence.completed(role)
    actual = _point(done[-1], evidence.metric) if done else None
    label = "rung" if role == "rung" else "large run"
    return plots.Run(label=label, marker=marker, forecast=forecast, actual=actual)


def _chosen_costs(evidence: Evidence) -> tuple[float | None, float | None]:
    laws, plan = evidence.laws, evidence.plan
    at_rung = laws.rung.cost_flops if laws and laws.rung else (plan.rung_cost_flops if plan else None)
    at_target = laws.target.cost_flops if laws and laws.target else (plan.target_cost_flops if plan else None)
    return at_rung, at_target


def _runs_table(evidence: Evidence) -> Table:
    rows = []
    for name, role, forecast in (("rung", "rung", rung(evidence)), ("large run", "large", target(evidence))):
        done = evidence.completed(role)
        actual = done[-1].metrics[evidence.metric] if done else None
        cost = done[-1].cost_flops if done else (forecast.cost_flops if forecast else None)
        rows.append(
            (
                name,
                "–" if cost is None else flops(cost),
                "–" if forecast is None else number(forecast.value),
                "–" if forecast is None else f"{number(forecast.low)} to {number(forecast.high)}",
                "–" if actual is None else number(actual),
                "–" if actual is None or forecast is None else percent(actual / forecast.value - 1),
            )
        )
    columns = ("run", "cost", "predicted", "interval", "actual", "actual / predicted - 1")
    return Table(caption=f"Rung and large run, {metric_label(evidence)}", columns=columns, rows=rows)


def _front_table(evidence: Evidence) -> Table:
    metric = evidence.metric
    front = _on_front(evidence)
    rows = [(each.name, flops(each.cost_flops), number(each.metrics[metric]), _error(each, metric)) for each in front]
    return Table(
        caption=f"{plural(len(front), 'trial')} on the Pareto front, cheapest first (all trials: last section)",
        columns=("trial", "cost", metric_label(evidence), "standard error"),
        rows=rows,
    )


def _error(trial: TrialRecord, metric: str) -> str:
    return number(trial.errors[metric]) if metric in trial.errors else "–"


def _law_table(evidence: Evidence) -> Table:
    laws = evidence.laws
    rows = [
        (flops(each.cost_flops), number(each.value), number(each.low), number(each.high))
        for each in (laws.curve if laws else ())
    ]
    level = f"{100 * laws.level:.0f} %" if laws else ""
    return Table(
        caption=f"The law with its {level} interval, {metric_label(evidence)}",
        columns=("cost", "value", "low", "high"),
        rows=rows,
        most=60,
    )


def _points_table(laws: Laws) -> Table:
    rows = [(law.name, flops(cost), setting(value)) for law in laws.settings for cost, value in law.points]
    return Table(caption="Settings of the trials on the front", columns=("setting", "cost", "value"), rows=rows)


def _setting_row(law: SettingLaw) -> tuple[str, ...]:
    axis = {"log": "logarithmic", "logit": "logit", "linear": "linear", "categorical": "categories"}[law.transform]
    form = f"{printable(law.form, limit=200)}; axis: {axis}"
    return element("code", law.name), form, setting(law.rung), setting(law.target), printable(law.why, limit=400)
