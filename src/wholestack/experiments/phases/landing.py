"""Phase 8: settle every claim, put predicted beside actual, and write the outcome."""

from collections import Counter
from typing import Literal

from wholestack.claim import Claim, ClaimStatus
from wholestack.claim import exit_code as claims_exit_code
from wholestack.evals.items import ItemSet, metric_name
from wholestack.experiments import claims
from wholestack.experiments.phases.long_runs import go_or_no_go
from wholestack.experiments.records import (
    LAWS_RUNG,
    OUTCOME,
    PLAN,
    REPORT,
    SMALL_ROLES,
    ClaimLine,
    Landing,
    Laws,
    Outcome,
    Plan,
    Role,
    TrialRecord,
)
from wholestack.experiments.settlement import keep_new, settle
from wholestack.experiments.stage import Stage, ended_trial, find_claim, phase_note, unfit
from wholestack.experiments.standing import standing
from wholestack.finding import EXIT_FINDINGS, EXIT_UNKNOWN
from wholestack.runs import RunReader


def run(stage: Stage) -> str:
    """Settle, sum up, write ``outcome.json``."""
    stage.tell("landing", "settling claims", left_s=0.0)
    _seal_what_was_not_predicted(stage)
    keep_new(stage.run, settle(stage.run, at=stage.clock.now))
    outcome = make_outcome(stage)
    stage.run.write(OUTCOME, outcome)
    if outcome.relative_error is None:
        return f"no landing: {outcome.reason}"
    return f"{outcome.relative_error:+.2%} off, {'inside' if outcome.inside else 'outside'} the interval"


def _seal_what_was_not_predicted(stage: Stage) -> None:
    """A long run that was never started sealed nothing: without this the claims before it would all have held."""
    longs: tuple[Literal["rung", "large"], ...] = ("rung", "large")
    for role in longs:
        claims.seal_no_prediction(stage, role, phase_note(stage.run, role))


def make_outcome(stage: Stage) -> Outcome:
    """Sum up a run from what is on the disk."""
    run, trials = stage.run, stage.trials
    plan = run.read_optional(PLAN, Plan)
    laws = run.read_optional(LAWS_RUNG, Laws)
    name = _metric_name(stage)
    large = landing_of(stage, "large", name)
    searched = [trial for trial in trials if trial.role == "search"]
    completed = [trial for trial in trials if trial.role in SMALL_ROLES and trial.outcome == "ok"]
    lines = claim_lines(run, now=stage.clock.now)
    go, why = go_or_no_go(stage)
    return Outcome(
        metric=name,
        predicted=large.predicted if large else None,
        interval=large.interval if large else None,
        actual=large.actual if large else None,
        inside=large.inside if large else None,
        relative_error=large.relative_error if large else None,
        rung=landing_of(stage, "rung", name),
        straight_line=laws.straight if laws else None,
        scaled=landing_of(stage, "scaled", name),
        target_cost_flops=plan.target_cost_flops if plan else 0.0,
        largest_trial_cost_flops=max((trial.cost_flops for trial in completed), default=0.0),
        trials=sum(trial.outcome == "ok" for trial in searched),
        failures=dict(Counter(trial.outcome for trial in searched if trial.outcome != "ok")),
        seconds=stage.clock.used_s,
        go=go if ended_trial(trials, "rung") is not None else None,
        reason=_reason(run, laws, large, why),
        claims=lines,
        exit_code=_exit_code(lines, large, unfit=bool(unfit(run))),
        report=REPORT,
    )


def landing_of(stage: Stage, role: Role, metric: str) -> Landing | None:
    """Predicted and actual of one run; ``None`` if it was never planned."""
    trial = ended_trial(stage.trials, role)
    claim = find_claim(stage.run, claims.metric_claim(role))
    if trial is None and (claim is None or claim.predicted is None):
        return None
    predicted = claim.predicted if claim is not None and isinstance(claim.predicted, float) else None
    interval = claim.interval if claim is not None else None
    actual = _actual(stage, trial)
    return Landing(
        metric=metric,
        predicted=predicted,
        interval=interval,
        actual=actual,
        inside=None if actual is None or interval is None else interval[0] <= actual <= interval[1],
        relative_error=None if actual is None or predicted is None else actual / predicted - 1,
        cost_flops=trial.cost_flops if trial else 0.0,
        params=trial.params if trial else {},
    )


def claim_lines(run: RunReader, *, now: float) -> tuple[ClaimLine, ...]:
    """Every claim of a run and how it stands."""
    claims = run.claims()
    statuses = standing(run, claims, run.findings(), now=now)
    return tuple(_line(claim, statuses[claim.id]) for claim in claims)


def _line(claim: Claim, status: ClaimStatus) -> ClaimLine:
    return ClaimLine(id=claim.id, name=claim.name, status=status, statement=claim.statement)


def _actual(stage: Stage, trial: TrialRecord | None) -> float | None:
    return trial.metrics[stage.recipe.metric] if trial is not None and trial.outcome == "ok" else None


def _metric_name(stage: Stage) -> str:
    folder = stage.run.path / "items"
    return metric_name(stage.recipe.metric, ItemSet.load(folder)) if (folder / "manifest.json").exists() else ""


def _reason(run: RunReader, laws: Laws | None, large: Landing | None, why_go: str) -> str:
    """Why go or no-go, or why there is no prediction; and if the large run has no result, why not."""
    trained = large is not None and large.actual is not None
    note = phase_note(run, "large") or "not reached"
    missing = [] if trained else [f"the large run: {note}"]
    if laws is not None and not laws.supported:
        return "; ".join([f"no prediction: {laws.refusal}", *missing])
    said = why_go in note or why_go.endswith(note)
    return why_go if trained else "; ".join(missing if said else [*missing, why_go])


def _exit_code(lines: tuple[ClaimLine, ...], large: Landing | None, *, unfit: bool) -> int:
    """A broken claim or an unfit machine is 1; without a settled prediction it could not tell, whatever else held."""
    code = EXIT_FINDINGS if unfit else claims_exit_code([line.status for line in lines])
    settled = large is not None and large.inside is not None
    return code if settled or code == EXIT_FINDINGS else EXIT_UNKNOWN
