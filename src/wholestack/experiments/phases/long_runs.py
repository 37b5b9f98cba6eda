"""Phases 6 and 7: the rung, then the large run; each sealed before it starts, watched while it trains."""

from collections.abc import Sequence

from wholestack.claim import status_of
from wholestack.evals.items import ItemSet, metric_name
from wholestack.experiments import claims
from wholestack.experiments.laws import fit_laws
from wholestack.experiments.phases.scaling import describe, report_support
from wholestack.experiments.phases.search import POLL_S, acknowledge
from wholestack.experiments.planning import RESERVE_S
from wholestack.experiments.records import (
    LAWS_RUNG,
    LAWS_SEARCH,
    PREDICTED,
    SUGGESTIONS,
    CurvePoint,
    ForecastPoint,
    Laws,
    Params,
    Role,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.experiments.scheduling import suggestion_record
from wholestack.experiments.settings import training_plan
from wholestack.experiments.settlement import judge_data, keep_new, settle
from wholestack.experiments.stage import Stage, claim_named, ended_trial, find_claim, phase_note, training_seconds
from wholestack.experiments.training import TrainingRuns
from wholestack.finding import finding
from wholestack.journal import JournalWriter

CURVE_OFF = 0.15
"""The training loss may leave the predicted curve by this share before it is reported: more than batches differ."""
CURVE_JUDGED_FROM = 0.3
"""Share of the run after which the curve is compared: before, the warm-up rules it."""
SMALLEST_OVERRUN_S = 20.0


def run_rung(stage: Stage, runs: TrainingRuns) -> str:
    """Train the rung with the extrapolated settings, settle its claim, fit the laws again with it."""
    laws = stage.run.read(LAWS_SEARCH, Laws)
    trial, why_not = _train(stage, runs, "rung", laws.rung_params, laws)
    if trial is None:
        stage.run.write(LAWS_RUNG, laws)
        return f"not trained: {why_not}"
    settled = settle(stage.run, at=stage.clock.now)
    keep_new(stage.run, (each for each in settled if each.check.startswith("rung.")))
    refitted = fit_laws(stage.recipe, stage.plan, stage.trials, seed=stage.seed)
    stage.run.write(LAWS_RUNG, refitted)
    report_support(stage, refitted)
    reached = f"{trial.metrics[stage.recipe.metric]:.3f}" if trial.outcome == "ok" else trial.outcome
    go, reason = go_or_no_go(stage)
    return f"reached {reached}; {'go' if go else 'no-go'}: {reason}; now {describe(refitted)}"


def run_large(stage: Stage, runs: TrainingRuns) -> str:
    """Train the large run, unless the rung says no and the user wants that to count."""
    go, reason = go_or_no_go(stage)
    if stage.stop_if_off and not go:
        return f"not trained: no-go, {reason}"
    laws = stage.run.read(LAWS_RUNG, Laws)
    params = {**laws.target_params, **(stage.recipe.large_overrides or {})}
    trial, why_not = _train(stage, runs, "large", params, laws)
    if trial is None:
        return f"not trained: {why_not}"
    return f"{trial.metrics[stage.recipe.metric]:.4f}" if trial.outcome == "ok" else f"{trial.outcome}: {trial.detail}"


def go_or_no_go(stage: Stage) -> tuple[bool, str]:
    """Whether the rung supports the large run, and why."""
    claim = find_claim(stage.run, claims.metric_claim("rung"))
    if claim is None or claim.predicted is None:
        note = phase_note(stage.run, "rung")
        return False, f"the rung was {note}" if note.startswith("not ") else "there was no prediction for the rung"
    status = status_of(claim, stage.run.findings(), now=stage.clock.now)
    if status == "held":
        return True, "the rung landed inside its interval"
    settling = [each for each in stage.run.findings() if each.settles == claim.id]
    cause = settling[-1].cause if settling else "it was not trained"
    return False, f"the rung's claim is {status}: {cause}"


def _train(stage: Stage, runs: TrainingRuns, role: Role, params: Params, laws: Laws) -> tuple[TrialRecord | None, str]:
    """Seal, train and acknowledge one long run; or say why it was not started."""
    done = ended_trial(stage.trials, role)
    if done is not None:
        return done, ""
    forecast, lawful = (laws.rung, laws.rung_params) if role == "rung" else (laws.target, laws.target_params)
    suggestion = next((each for each in stage.suggestions if each.role == role), None)
    if suggestion is None:
        suggestion = suggestion_record(stage.recipe, role, 0, params, seed=stage.seed, origin="laws")
        why_not = _why_not(stage, suggestion)
        if why_not:
            return None, why_not
        metric = metric_name(stage.recipe.metric, ItemSet.load(stage.run.path / "items"))
        claims.seal_run(
            stage,
            role,
            lawful,
            laws=laws,
            forecast=forecast,
            seconds=training_seconds(stage, role, params),
            metric=metric,
        )
        _predict_curve(stage, runs, role, suggestion, forecast)
        stage.run.append(SUGGESTIONS, suggestion)
    return _watch(stage, runs, suggestion, forecast), ""


def train_scaled(stage: Stage, runs: TrainingRuns) -> TrialRecord:
    """Train the baseline that the laws have to beat: the best trial's settings, only size and tokens scaled.

    No part of a rehearsal and of its budget; for benchmarks, in the run directory of one that has ended.
    """
    done = ended_trial(stage.trials, "scaled")
    if done is not None:
        return done
    suggestion = next((each for each in stage.suggestions if each.role == "scaled"), None)
    if suggestion is None:
        params = stage.run.read(LAWS_RUNG, Laws).scaled_params
        suggestion = suggestion_record(stage.recipe, "scaled", 0, params, seed=stage.seed, origin="scaled")
        stage.run.append(SUGGESTIONS, suggestion)
    return _watch(stage, runs, suggestion, None)


def _why_not(stage: Stage, suggestion: SuggestionRecord) -> str:
    """Corrupt data or too little time; both become Findings, and the run is not started."""
    data = judge_data(stage.run.path / "data", claim_named(stage.run, claims.DATA), stage.clock.now)
    if data.status != "ok":
        stage.run.report(data)
        return data.cause
    needed_s = training_seconds(stage, suggestion.role, suggestion.params) + RESERVE_S
    # Everything but this run is done: starting it late costs less than never having an answer, within reason.
    if needed_s > stage.clock.left_s + max(SMALLEST_OVERRUN_S, 0.1 * stage.clock.budget_s):
        stage.run.report(
            finding(
                f"{suggestion.role} run",
                "budget.left",
                "unknown",
                at=stage.clock.now,
                evidence=[f"needs {needed_s:.0f} s, {stage.clock.left_s:.0f} s are left"],
                cause="it would overrun the budget",
                remedy="start again with a longer --budget",
                owner="job owner",
            )
        )
        return f"it needs {needed_s:.0f} s and {stage.clock.left_s:.0f} s are left"
    return ""


def _watch(
    stage: Stage, runs: TrainingRuns, suggestion: SuggestionRecord, forecast: ForecastPoint | None
) -> TrialRecord:
    """Start a long run and tell its progress until it ended."""
    role = suggestion.role
    runs.start(suggestion, expected_s=training_seconds(stage, suggestion.role, suggestion.params))
    expected = runs.predicted(suggestion.name)
    reported = False
    while True:
        ended = runs.collect(2 * POLL_S)
        if ended:
            acknowledge(stage, ended[0])
            return ended[0]
        curve = runs.curve(suggestion.name)
        if not curve:
            continue
        near = _nearest(expected, curve[-1].cost_flops)
        _tell(stage, suggestion, curve[-1], near, forecast)
        if not reported and near is not None and _is_off(suggestion, curve[-1], near):
            reported = True
            _report_off(stage, role, curve[-1], near)


def _tell(
    stage: Stage,
    suggestion: SuggestionRecord,
    now: CurvePoint,
    near: CurvePoint | None,
    forecast: ForecastPoint | None,
) -> None:
    role = suggestion.role
    plan = training_plan(stage.recipe, suggestion.params)
    left = now.seconds * (plan.optimizer.steps / now.step - 1)
    later = stage.plan.seconds["large"] if role == "rung" else 0.0
    beside = f", predicted {near.train_bpb:.3f}" if near is not None else ""
    goal = f"; {stage.recipe.metric} foreseen {forecast.low:.3f} to {forecast.high:.3f}" if forecast is not None else ""
    stage.tell(
        "rung" if role == "rung" else "large",
        f"{role}: training loss {now.train_bpb:.3f}{beside}{goal}",
        done=now.step,
        total=plan.optimizer.steps,
        left_s=left + later + RESERVE_S,
    )


def _is_off(suggestion: SuggestionRecord, now: CurvePoint, near: CurvePoint) -> bool:
    late_enough = now.cost_flops > CURVE_JUDGED_FROM * suggestion.cost_flops
    return late_enough and abs(now.train_bpb / near.train_bpb - 1) > CURVE_OFF


def _report_off(stage: Stage, role: Role, now: CurvePoint, near: CurvePoint) -> None:
    stage.run.report(
        finding(
            f"{role} run",
            "training.curve",
            "warn",
            at=stage.clock.now,
            step=now.step,
            evidence=[f"training loss {now.train_bpb:.3f} bits per byte, {near.train_bpb:.3f} predicted"],
            cause="the run has left its predicted curve",
            owner="job owner",
            remedy="see `wholestack why` when it has ended; end it now if it is costly",
        )
    )


def _predict_curve(
    stage: Stage, runs: TrainingRuns, role: Role, suggestion: SuggestionRecord, forecast: ForecastPoint | None
) -> None:
    """The curve of the rung (for the rung: of the best trial) over the share of the run, scaled to the forecast."""
    model = _shape_of_curve(stage, role)
    if model is None or forecast is None:
        return
    curve = runs.curve(model.name)
    ratio = forecast.value / model.metrics[stage.recipe.metric]
    plan = training_plan(stage.recipe, suggestion.params)
    with JournalWriter(stage.run.folder(f"jobs/{suggestion.name}") / PREDICTED, CurvePoint) as writer:
        for point in curve:
            share = point.cost_flops / model.cost_flops
            writer.append(
                CurvePoint(
                    step=round(share * plan.optimizer.steps),
                    tokens=round(share * plan.tokens),
                    cost_flops=share * plan.cost_flops,
                    train_bpb=point.train_bpb * ratio,
                    gradient_norm=point.gradient_norm,
                    lr=point.lr,
                    seconds=0.0,
                    cpu_seconds=0.0,
                )
            )


def _shape_of_curve(stage: Stage, role: Role) -> TrialRecord | None:
    done = [trial for trial in stage.trials if trial.outcome == "ok"]
    if role == "large":
        rung = ended_trial(done, "rung")
        if rung is not None:
            return rung
    searched = [trial for trial in done if trial.role == "search"]
    return min(searched, key=lambda trial: trial.metrics[stage.recipe.metric], default=None)


def _nearest(curve: Sequence[CurvePoint], cost: float) -> CurvePoint | None:
    return min(curve, key=lambda point: abs(point.cost_flops - cost), default=None)
