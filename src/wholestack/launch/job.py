"""Jobs, their limits, what became of them, and the Protocol that every engine speaks.

A job is a command (a tuple of words) or a Python entry (``"module:function"``, called with keyword arguments
that JSON can carry). An engine never raises for a job that fails: it hands back a :class:`JobState`. It raises
``EngineError`` only when the engine itself cannot do its work.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from wholestack.errors import InputError
from wholestack.record import Record

Outcome = Literal["running", "done", "failed", "out_of_memory", "timeout", "cancelled", "killed", "lost"]
"""What became of a job.

* ``running``: it was started and has not ended.
* ``done``: it ended by itself with exit code 0; nothing else is ever called done.
* ``failed``: it ended by itself with another exit code, or crashed (SIGSEGV and its like).
* ``out_of_memory``: ended by our limit, by the kernel, or by a MemoryError (or a library's word for it).
* ``timeout``: ended by us at its wall-time limit.
* ``cancelled``: ended by us because we were asked to.
* ``killed``: ended by a signal that somebody else sent; says nothing about the job.
* ``lost``: the engine cannot know how it ended; says nothing about the job.
"""

_ENTRY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Record):
    """What a job may use. Memory and time hold for the worker together with everything that it started."""

    wall_s: float | None = None
    """Wall time from its start; it runs on while the worker is paused. ``None``: no limit."""
    resident_bytes: int | None = None
    """Resident memory of the process tree, polled about ten times a second, so a burst can overshoot for as long."""
    log_bytes: int = 1 << 20
    """Kept of stdout, and as much of stderr: the first and the last half; what falls between is counted."""
    threads: int = 1
    """Threads of OpenMP, OpenBLAS, MKL and torch in the job."""
    grace_s: float = 1.0
    """Between SIGTERM and SIGKILL when the job is cancelled or out of time."""

    def __post_init__(self) -> None:
        for name in ("wall_s", "resident_bytes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError(f"limits: {name} must be above 0, got {value}")
        if self.log_bytes < 2 or self.threads < 1 or self.grace_s < 0:
            raise InputError(
                f"limits: log_bytes >= 2, threads >= 1 and grace_s >= 0 are needed, "
                f"got {self.log_bytes}, {self.threads} and {self.grace_s}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work for an engine.

    Example:
        >>> Job(name="trial-1", entry="mypackage.train:run", arguments={"lr": 0.01}, folder=Path("run/trial-1"))
        >>> Job(name="list", entry=("ls", "-l"), folder=Path("run/list"))

    Raises:
        InputError: a name, entry or argument that no engine could start.
    """

    name: str
    """Letters, digits, dot, dash and underscore; need not be unique."""
    entry: str | tuple[str, ...]
    """``module:function``, or the words of a command."""
    folder: Path
    """Where ``stdout.log`` and ``stderr.log`` go; made if it is missing. One folder per job."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Keyword arguments of a Python entry, as plain JSON values; a command has none."""
    limits: Limits = field(default_factory=Limits)
    """What it may use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment that the engine itself was started with."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"job name {self.name!r}: up to 100 letters, digits, '.', '-' and '_' are allowed")
        if isinstance(self.entry, str):
            _check_entry(self.name, self.entry, self.arguments)
        elif not self.entry or not self.entry[0] or self.arguments:
            raise InputError(f"job {self.name}: a command needs at least one word and takes no arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState(Record):
    """How a job stands; the last one of a job is its end, and is all that a journal needs."""

    SCHEMA: ClassVar[str] = "job_state/1"

    id: str
    """The id that ``start`` returned."""
    name: str
    """Name of the job."""
    outcome: Outcome
    """What became of it."""
    stdout: str
    """Path of the file that holds its standard output."""
    stderr: str
    """Path of the file that holds its standard error; a Python exception leaves its traceback there."""
    detail: str = ""
    """Why, in one line: the limit, the signal, or exit code and last line; empty when done."""
    pid: int | None = None
    """Process id of the worker, while it ran."""
    exit_code: int | None = None
    """Exit code, if it ended by itself."""
    signal: str = ""
    """Name of the signal that ended it, for instance ``SIGKILL``."""
    started_at: float | None = None
    """Seconds since the epoch."""
    wall_s: float | None = None
    """From start to the worker's end."""
    cpu_s: float | None = None
    """User and system time of the worker and of everything that it started, as far as the kernel accounts for it."""
    peak_resident_bytes: int | None = None
    """Most resident memory of the process tree that was seen; ``None`` if a command ended before the first look."""
    last_lines: tuple[str, ...] = ()
    """The end of stderr, or of stdout if stderr is empty; at most ten lines."""
    dropped_log_bytes: int = 0
    """Output that is not in the files: beyond the cap, or refused by the disk."""
    leftovers: int = 0
    """Processes that outlived the worker and were ended."""

    @property
    def ended(self) -> bool:
        """Whether this is the job's last state."""
        return self.outcome != "running"


class Engine(Protocol):
    """What runs jobs. Every implementation passes ``wholestack.testing.engines``."""

    def start(self, job: Job) -> str:
        """Hand over a job; returns its id at once, the job may begin later.

        Raises:
            EngineError: the engine is closed or broken, or the folder cannot be made.
        """
        ...

    def poll(self, timeout_s: float) -> list[JobState]:
        """States that are new since the last call, oldest first; waits up to ``timeout_s`` for the first one.

        Every started job shows up ``running`` at most once and ended exactly once.
        """
        ...

    def cancel(self, job_id: str) -> None:
        """Ask for a job's end; its last state comes through ``poll``. Harmless once it has ended.

        Raises:
            EngineError: no job has that id.
        """
        ...

    def close(self) -> None:
        """End every job and wait for that; ``poll`` then hands out what was left. Closing twice is harmless."""
        ...


def _check_entry(name: str, entry: str, arguments: Mapping[str, object]) -> None:
    if not _ENTRY.fullmatch(entry):
        raise InputError(
            f"job {name}: entry {entry!r} is not 'module:function'", remedy="a command is a tuple of words"
        )
    try:
        json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"job {name}: JSON cannot carry its arguments: {error}") from error
