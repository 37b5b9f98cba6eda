"""An engine in memory, for tests of whoever uses engines: virtual time, no processes, outcomes as you say.

It keeps the promises of every engine (it passes ``wholestack.testing.engines``). Time moves only in ``poll``, which
never waits: it steps to the next event, but by no more than its ``timeout_s``.
"""

import heapq
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from wholestack.errors import EngineError
from wholestack.launch.failures import Ending, Intervention, Verdict, classify
from wholestack.launch.job import Job, JobState
from wholestack.launch.wire import STDERR_LOG, STDOUT_LOG


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a job would do if it ran undisturbed."""

    wall_s: float = 1.0
    """How long it would take."""
    exit_code: int | None = 0
    """Its exit code, ``None`` if a signal ends it."""
    signal: str = ""
    """Name of that signal."""
    peak_resident_bytes: int = 50 << 20
    """Memory that it reaches; beyond the job's limit it is ended half-way."""
    stdout: str = ""
    """What it prints."""
    stderr: str = ""
    """What it prints to standard error."""
    lost: bool = False
    """The engine loses sight of it instead."""
    effect: Callable[[Job], None] | None = None
    """Called when it ends by itself with exit code 0, for instance to write its result file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """How a job ends if nobody cancels it."""

    job: Job
    behaviour: Behaviour
    verdict: Verdict
    intervention: Intervention
    started_at: float
    wall_s: float


class SimulatedEngine:
    """Runs nothing, in virtual time; use as a context manager.

    Args:
        behave: What each job would do.
        workers: Jobs that run at a time; others wait for their turn.

    Example:
        >>> engine = SimulatedEngine(lambda job: Behaviour(wall_s=3.0, exit_code=1))
        >>> job_id = engine.start(Job(name="one", entry="any:thing", folder=Path("one")))
        >>> [state.outcome for state in engine.poll(10.0)]
        ['running', 'failed']
    """

    def __init__(self, behave: Callable[[Job], Behaviour] = lambda job: Behaviour(), *, workers: int = 1_000) -> None:
        self.now_s = 0.0
        """Virtual time since the engine was made."""
        self._behave = behave
        self._workers = workers
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, _Plan] = {}
        self._ends: list[tuple[float, int, str]] = []
        self._count = 0
        self._news: list[JobState] = []
        self._closed = False

    def start(self, job: Job) -> str:
        """Hand over a job; see :class:`wholestack.launch.job.Engine`."""
        if self._closed:
            raise EngineError(f"job {job.name}: the engine is closed")
        for name in (STDOUT_LOG, STDERR_LOG):
            _write(job.folder / name, "")
        self._count += 1
        job_id = f"{job.name}-{self._count}"
        self._waiting[job_id] = job
        self._fill()
        return job_id

    def poll(self, timeout_s: float) -> list[JobState]:
        """States that are new; moves virtual time to the next end, or by ``timeout_s`` if that is sooner."""
        deadline = self.now_s + timeout_s
        if not any(state.ended for state in self._news):
            self._advance(deadline)
        news, self._news = self._news, []
        return news

    def cancel(self, job_id: str) -> None:
        """Ask for a job's end; see :class:`wholestack.launch.job.Engine`."""
        if job_id in self._waiting:
            job = self._waiting.pop(job_id)
            self._news.append(_state(job_id, job, Verdict(outcome="cancelled", detail="cancelled before its start")))
        elif job_id in self._running:
            plan = self._running.pop(job_id)
            verdict = classify(Ending(exit_code=None, intervention="cancel"))
            wall_s = self.now_s - plan.started_at
            self._news.append(_ended(job_id, plan, verdict, wall_s=wall_s, exit_code=None, signal="SIGTERM"))
            self._fill()
        elif not self._is_known(job_id):
            raise EngineError(f"no job has the id {job_id!r}")

    def close(self) -> None:
        """Cancel every job; a second time is harmless."""
        self._closed = True
        for job_id in [*self._waiting, *self._running]:
            self.cancel(job_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fill(self) -> None:
        """Let waiting jobs begin while there is room."""
        while self._waiting and len(self._running) < self._workers:
            job_id = next(iter(self._waiting))
            job = self._waiting.pop(job_id)
            plan = _plan(job, self._behave(job), self.now_s)
            self._running[job_id] = plan
            heapq.heappush(self._ends, (self.now_s + plan.wall_s, self._count, job_id))
            self._news.append(
                _state(job_id, job, Verdict(outcome="running", detail=""), started_at=self.now_s, pid=os.getpid())
            )

    def _advance(self, deadline: float) -> None:
        """To the next end, with all that end at the same moment."""
        while self._ends and self._ends[0][2] not in self._running:
            heapq.heappop(self._ends)
        if not self._ends or self._ends[0][0] > deadline:
            self.now_s = deadline
            return
        self.now_s = self._ends[0][0]
        while self._ends and self._ends[0][0] <= self.now_s:
            job_id = heapq.heappop(self._ends)[2]
            if job_id in self._running:
                self._finish(job_id, self._running.pop(job_id))
        self._fill()

    def _finish(self, job_id: str, plan: _Plan) -> None:
        did = plan.behaviour
        if plan.intervention == "none" and not did.lost:
            _write(plan.job.folder / STDOUT_LOG, did.stdout)
            _write(plan.job.folder / STDERR_LOG, did.stderr)
        if plan.verdict.outcome == "done" and did.effect is not None:
            did.effect(plan.job)
        by_itself = plan.intervention == "none" and not did.lost
        signal = did.signal if by_itself else {"wall": "SIGTERM", "memory": "SIGKILL"}.get(plan.intervention, "")
        exit_code = did.exit_code if by_itself else None
        self._news.append(_ended(job_id, plan, plan.verdict, wall_s=plan.wall_s, exit_code=exit_code, signal=signal))

    def _is_known(self, job_id: str) -> bool:
        number = job_id.rpartition("-")[2]
        return number.isdigit() and 1 <= int(number) <= self._count


def _plan(job: Job, behaviour: Behaviour, now_s: float) -> _Plan:
    """Which comes first: its own end, the limit of time, or the limit of memory (reached half-way)."""
    limits = job.limits
    intervention: Intervention = "none"
    wall_s, limit = behaviour.wall_s, ""
    if limits.resident_bytes is not None and behaviour.peak_resident_bytes > limits.resident_bytes:
        wall_s, intervention, limit = wall_s / 2, "memory", f"resident memory {limits.resident_bytes / 2**20:.0f} MiB"
    if limits.wall_s is not None and wall_s > limits.wall_s:
        wall_s, intervention, limit = limits.wall_s, "wall", f"wall time {limits.wall_s:g} s"
    ending = Ending(
        exit_code=behaviour.exit_code if intervention == "none" else None,
        signal_name=behaviour.signal,
        intervention=intervention,
        last_lines=_lines(behaviour.stderr),
    )
    verdict = classify(ending, limit=limit)
    if behaviour.lost:
        verdict = Verdict(outcome="lost", detail="the engine lost sight of it")
    return _Plan(
        job=job, behaviour=behaviour, verdict=verdict, intervention=intervention, started_at=now_s, wall_s=wall_s
    )


def _ended(
    job_id: str, plan: _Plan, verdict: Verdict, *, wall_s: float, exit_code: int | None, signal: str
) -> JobState:
    is_lost = verdict.outcome == "lost"
    did = plan.behaviour
    return _state(
        job_id,
        plan.job,
        verdict,
        exit_code=exit_code,
        signal=signal,
        started_at=None if is_lost else plan.started_at,
        wall_s=None if is_lost else wall_s,
        cpu_s=None if is_lost else wall_s,
        peak_resident_bytes=None if is_lost else did.peak_resident_bytes,
        last_lines=_lines(did.stderr) or _lines(did.stdout) if plan.intervention == "none" else (),
    )


def _state(
    job_id: str,
    job: Job,
    verdict: Verdict,
    *,
    pid: int | None = None,
    exit_code: int | None = None,
    signal: str = "",
    started_at: float | None = None,
    wall_s: float | None = None,
    cpu_s: float | None = None,
    peak_resident_bytes: int | None = None,
    last_lines: tuple[str, ...] = (),
) -> JobState:
    return JobState(
        id=job_id,
        name=job.name,
        outcome=verdict.outcome,
        stdout=str(job.folder.absolute() / STDOUT_LOG),
        stderr=str(job.folder.absolute() / STDERR_LOG),
        detail=verdict.detail,
        pid=pid,
        exit_code=exit_code,
        signal=signal,
        started_at=started_at,
        wall_s=wall_s,
        cpu_s=cpu_s,
        peak_resident_bytes=peak_resident_bytes,
        last_lines=last_lines,
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line.strip())[-10:]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise EngineError(f"{path}: cannot be written: {error.strerror}") from error
