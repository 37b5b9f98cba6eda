"""What every phase of a rehearsal works with: the run on the disk, what was asked, engine, clock and watcher."""

from dataclasses import dataclass

from wholestack.claim import Claim
from wholestack.errors import RunDirectoryError
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.pace import Pace, fit_pace, prior_pace
from wholestack.experiments.planning import SAFETY
from wholestack.experiments.progress import Progress, Watcher
from wholestack.experiments.recipe import Recipe, metric_unit
from wholestack.experiments.records import (
    PHASES,
    PLAN,
    SKIPPED,
    SMALL_ROLES,
    SUGGESTIONS,
    TRIALS,
    Params,
    PhaseName,
    PhaseRecord,
    Plan,
    Role,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.experiments.settings import training_plan
from wholestack.finding import Finding, Skipped
from wholestack.launch.job import Engine
from wholestack.runs import RunDirectory, RunReader

MACHINE_PACE = "machine.pace"
"""The one claim on the machine that a run may break without having been forbidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Passed to every phase; what changes is on the disk."""

    run: RunDirectory
    recipe: Recipe
    seed: int
    stop_if_off: bool
    clock: BudgetClock
    engine: Engine
    watch: Watcher

    @property
    def plan(self) -> Plan:
        """The plan that the preflight wrote."""
        return self.run.read(PLAN, Plan)

    @property
    def trials(self) -> list[TrialRecord]:
        """All acknowledged trials, in order."""
        return self.run.journal(TRIALS, TrialRecord)

    @property
    def suggestions(self) -> list[SuggestionRecord]:
        """All suggestions, in order."""
        return self.run.journal(SUGGESTIONS, SuggestionRecord)

    def acknowledge(self, trial: TrialRecord) -> None:
        """Put an ended trial on the disk."""
        self.run.append(TRIALS, trial)

    def skip(self, skipped: Skipped) -> None:
        """Put on the disk that a check did not apply; a phase that runs again does not say it twice."""
        if skipped not in self.run.journal(SKIPPED, Skipped):
            self.run.append(SKIPPED, skipped)

    def tell(self, phase: PhaseName, note: str, *, done: int = 0, total: int | None = None, left_s: float) -> None:
        """Tell the watcher where we are."""
        best = best_metric(self.recipe, self.trials)
        unit = metric_unit(self.recipe.metric)
        self.watch(Progress(phase=phase, done=done, total=total, best=best, unit=unit, left_s=left_s, note=note))


def best_metric(recipe: Recipe, trials: list[TrialRecord]) -> float | None:
    """The lowest value of the primary metric that any run reached."""
    return min((trial.metrics[recipe.metric] for trial in trials if trial.outcome == "ok"), default=None)


def unfit(run: RunReader) -> list[Finding]:
    """What the preflight found that forbids the run: it multiplies wrong, or memory or disk do not suffice."""
    return [
        each
        for each in run.findings()
        if each.check.startswith("machine.") and each.check != MACHINE_PACE and each.status == "fail"
    ]


def phase_note(run: RunReader, phase: PhaseName) -> str:
    """What came out of a phase, in one line; empty if it has not ended."""
    ended = [each.note for each in run.journal(PHASES, PhaseRecord) if (each.phase, each.event) == (phase, "ended")]
    return ended[-1] if ended else ""


def find_claim(run: RunReader, name: str) -> Claim | None:
    """The newest claim of a name."""
    return next((claim for claim in reversed(run.claims()) if claim.name == name), None)


def claim_named(run: RunReader, name: str) -> Claim:
    """Like :func:`find_claim`, for one that an earlier phase has sealed.

    Raises:
        RunDirectoryError: there is none: the run directory was tampered with.
    """
    claim = find_claim(run, name)
    if claim is None:
        raise RunDirectoryError(f"{run.path}: no claim {name!r}", remedy="start a new run")
    return claim


def ended_trial(trials: list[TrialRecord], role: Role) -> TrialRecord | None:
    """The acknowledged run of a role that has only one."""
    return next((trial for trial in trials if trial.role == role), None)


def pace_of(recipe: Recipe, plan: Plan, trials: list[TrialRecord], *, undisturbed: bool = False) -> Pace:
    """Pace of one thread, from the completed trials that had one.

    Args:
        recipe: What the trials are of.
        plan: Gives the rate that is assumed until trials have ended.
        trials: All so far.
        undisturbed: Leave out the time that other work had the processor.
    """
    done = [trial for trial in trials if trial.outcome == "ok" and trial.threads == 1]
    works = [training_plan(recipe, trial.params).work for trial in done]
    prior = prior_pace(plan.rate_flops_s * SAFETY)
    return fit_pace(works, [undisturbed_s(trial) if undisturbed else trial.train_seconds for trial in done], prior)


def undisturbed_s(trial: TrialRecord) -> float:
    """Wall seconds of training without those that other work had the processor."""
    return max(trial.train_seconds - trial.queued_seconds, 1e-3)


def expected_seconds(recipe: Recipe, plan: Plan, pace: Pace, params: Params, threads: int) -> float:
    """Expected wall seconds of training with these settings."""
    alone = pace.seconds(training_plan(recipe, params).work)
    return alone / plan.speed_up if threads > 1 else alone


def training_seconds(stage: Stage, role: Role, params: Params) -> float:
    """Expected wall seconds of training: by the pace of the trials; of a long run also by how the rung kept to it."""
    recipe, plan, trials = stage.recipe, stage.plan, stage.trials
    pace = pace_of(recipe, plan, trials)
    if role in SMALL_ROLES:
        return expected_seconds(recipe, plan, pace, params, 1)
    expected = expected_seconds(recipe, plan, pace, params, plan.large_threads)
    rung = ended_trial(trials, "rung")
    if rung is None or rung.outcome != "ok":
        return expected
    return expected * rung.train_seconds / expected_seconds(recipe, plan, pace, rung.params, plan.large_threads)
