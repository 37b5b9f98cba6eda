"""Training runs through an engine: a suggestion becomes a job, an ended job becomes a trial record.

A worker that somebody else ended says nothing about its settings: it is started again, up to ``MAX_STARTS`` times,
and then acknowledged as ``abandoned``, which the search does not learn from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import RecordError, RunDirectoryError
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import (
    CURVE,
    PREDICTED,
    PREPARED,
    RESULT,
    SPEC,
    CurvePoint,
    SuggestionRecord,
    TrialOutcome,
    TrialRecord,
)
from wholestack.experiments.settings import TrainingPlan, training_plan
from wholestack.experiments.specs import TrainingResult, TrainingSpec
from wholestack.journal import read_journal, write_atomic
from wholestack.launch.failures import is_retryable
from wholestack.launch.job import Engine, Job, JobState, Limits
from wholestack.record import from_json, to_json
from wholestack.runs import RunDirectory

MAX_STARTS = 3
ENTRY = "wholestack.experiments.worker:train_and_score"
LONG_ROLES = ("rung", "large", "scaled")


@dataclass(frozen=True, slots=True)
class Running:
    """A training run in flight."""

    suggestion: SuggestionRecord
    plan: TrainingPlan
    expected_s: float
    starts: int


class TrainingRuns:
    """Starts training runs and collects them.

    Args:
        run: The run directory.
        recipe: Threads, limits, device.
        engine: What runs the jobs.
        bytes_per_token: Of each source.
        large_threads: Of rung and large run.
        clock: Seconds since the epoch.
        amend: Changes what the settings alone do not say, for instance a schedule of mixtures.
    """

    def __init__(
        self,
        run: RunDirectory,
        recipe: Recipe,
        engine: Engine,
        *,
        bytes_per_token: dict[str, float],
        large_threads: int,
        clock: Callable[[], float],
        amend: Callable[[SuggestionRecord, TrainingSpec], TrainingSpec] = lambda _, spec: spec,
    ) -> None:
        self._amend = amend
        self._run = run
        self._recipe = recipe
        self._engine = engine
        self._bytes_per_token = bytes_per_token
        self._large_threads = large_threads
        self._clock = clock
        self.running: dict[str, Running] = {}

    def start(self, suggestion: SuggestionRecord, *, expected_s: float, starts: int = 1) -> None:
        """Start the training of a suggestion.

        Args:
            suggestion: What to train; already on the disk.
            expected_s: Expected wall seconds; a run that takes many times longer is ended.
            starts: Which attempt this is.
        """
        plan = training_plan(self._recipe, suggestion.params)
        folder = self._run.folder(f"jobs/{suggestion.name}")
        (folder / RESULT).unlink(missing_ok=True)
        write_atomic(folder / SPEC, to_json(self._amend(suggestion, self._spec(suggestion, plan)), indent=2))
        job = Job(
            name=suggestion.name,
            entry=ENTRY,
            arguments={"folder": str(folder)},
            folder=folder,
            limits=Limits(
                wall_s=max(60.0, 8.0 * expected_s),
                resident_bytes=self._recipe.resident_limit_bytes,
                threads=self._threads(suggestion),
            ),
        )
        self.running[self._engine.start(job)] = Running(suggestion, plan, expected_s, starts)

    def collect(self, timeout_s: float) -> list[TrialRecord]:
        """Trials that ended since the last call; workers that were ended from outside are started again.

        Raises:
            RunDirectoryError: a worker could not write into the run directory.
        """
        ended = []
        for state in self._engine.poll(timeout_s):
            if not state.ended or state.id not in self.running:
                continue
            running = self.running.pop(state.id)
            _refuse_our_own_trouble(state)
            if is_retryable(state.outcome) and running.starts < MAX_STARTS:
                self.start(running.suggestion, expected_s=running.expected_s, starts=running.starts + 1)
            else:
                ended.append(self._trial(running, state))
        return ended

    def stop(self) -> None:
        """End what runs without acknowledging it: a later session goes on from its last checkpoint."""
        for job in self.running:
            self._engine.cancel(job)
        self.running.clear()

    def curve(self, name: str) -> list[CurvePoint]:
        """The training curve of a run so far."""
        return read_journal(self._run.path / "jobs" / name / CURVE, CurvePoint)

    def predicted(self, name: str) -> list[CurvePoint]:
        """The curve that was predicted for a run before it started; empty if none was."""
        return read_journal(self._run.path / "jobs" / name / PREDICTED, CurvePoint)

    def _spec(self, suggestion: SuggestionRecord, plan: TrainingPlan) -> TrainingSpec:
        long = suggestion.role in LONG_ROLES
        return TrainingSpec(
            name=suggestion.name,
            corpus=str(self._run.path / "data"),
            items=str(self._run.path / PREPARED),
            model=plan.model,
            optimizer=plan.optimizer,
            mixture=plan.mixture,
            seed=suggestion.seed,
            threads=self._threads(suggestion),
            checkpoints=long,
            device=self._recipe.device,
            precision=self._recipe.precision,
            bytes_per_token=self._bytes_per_token,
        )

    def _threads(self, suggestion: SuggestionRecord) -> int:
        return self._large_threads if suggestion.role in LONG_ROLES else 1

    def _trial(self, running: Running, state: JobState) -> TrialRecord:
        suggestion, plan = running.suggestion, running.plan
        outcome, detail, result = _judge(self._run.path / "jobs" / suggestion.name / RESULT, state)
        now = self._clock()
        return TrialRecord(
            name=suggestion.name,
            role=suggestion.role,
            number=suggestion.number,
            params=suggestion.params,
            seed=suggestion.seed,
            outcome=outcome,
            cost_flops=plan.cost_flops,
            parameters=plan.parameters,
            tokens=plan.tokens,
            seconds=state.wall_s or 0.0,
            train_seconds=result.train_seconds if result else 0.0,
            cpu_seconds=state.cpu_s or 0.0,
            queued_seconds=result.queued_seconds if result else 0.0,
            peak_bytes=state.peak_resident_bytes or 0,
            threads=self._threads(suggestion),
            metrics=result.metrics if result and outcome == "ok" else {},
            errors=result.errors if result and outcome == "ok" else {},
            stability=result.stability if result else {},
            origin=suggestion.origin,
            detail=detail,
            started_at=state.started_at or now,
            ended_at=now,
        )


def _refuse_our_own_trouble(state: JobState) -> None:
    """A worker that could not write says nothing about its settings either: stop, and let it be trained again.

    Raises:
        RunDirectoryError: the worker could not write into the run directory, for instance because the disk is full.
    """
    if state.outcome == "failed" and RunDirectoryError.__name__ in state.detail:
        raise RunDirectoryError(f"worker {state.name}: {state.detail}")


def _judge(path: Path, state: JobState) -> tuple[TrialOutcome, str, TrainingResult | None]:
    """Outcome of an ended job; a result file counts only when the worker also ended well."""
    if is_retryable(state.outcome) or state.outcome == "cancelled":
        return "abandoned", f"ended from outside {MAX_STARTS} times: {state.detail}", None
    if state.outcome in ("out_of_memory", "timeout"):
        return state.outcome, state.detail, None
    if state.outcome != "done":
        return "failed", state.detail, None
    try:
        result = from_json(TrainingResult, path.read_bytes(), where=str(path))
    except (OSError, RecordError) as error:
        return "failed", f"ended with code 0 and left no readable result: {error}", None
    return ("diverged" if result.diverged else "ok"), result.detail, result
