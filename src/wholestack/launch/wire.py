"""What engine, supervisor and keeper say to each other: one JSON line a message."""

from dataclasses import dataclass
from typing import Literal

from wholestack.launch.job import Job, JobState, Limits
from wholestack.record import Record, to_json

STDOUT_LOG = "stdout.log"
STDERR_LOG = "stderr.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Record):
    """A job as it crosses to another process."""

    id: str
    """Id of the job."""
    name: str
    """Its name."""
    command: tuple[str, ...]
    """Words of a command; empty for a Python entry."""
    entry: str
    """``module:function``; empty for a command."""
    arguments: dict[str, object]
    """Keyword arguments of the Python entry."""
    stdout: str
    """Absolute path of the log."""
    stderr: str
    """Absolute path of the log."""
    limits: Limits
    """What it may use."""
    environment: dict[str, str]
    """Added to the supervisor's environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Record):
    """From the engine to its supervisor."""

    kind: Literal["start", "cancel"]
    """What to do."""
    job_id: str
    """With which job."""
    request: Request | None = None
    """The job, for ``start``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Record):
    """From the supervisor to its engine."""

    kind: Literal["ready", "broken", "state"]
    """``ready``: modules are loaded; ``broken``: they cannot be; ``state``: a job has a new state."""
    detail: str = ""
    """Why broken, or why workers are started cold."""
    state: JobState | None = None
    """For ``state``."""


def request_of(job: Job, job_id: str) -> Request:
    """The job in a form that JSON carries."""
    folder = job.folder.absolute()
    is_entry = isinstance(job.entry, str)
    return Request(
        id=job_id,
        name=job.name,
        command=() if isinstance(job.entry, str) else job.entry,
        entry=job.entry if isinstance(job.entry, str) else "",
        arguments=dict(job.arguments) if is_entry else {},
        stdout=str(folder / STDOUT_LOG),
        stderr=str(folder / STDERR_LOG),
        limits=job.limits,
        environment=dict(job.environment),
    )


def lost(request: Request, why: str) -> JobState:
    """The last state of a job whose end nobody saw."""
    return JobState(
        id=request.id, name=request.name, outcome="lost", stdout=request.stdout, stderr=request.stderr, detail=why
    )


def line_of(record: Record) -> bytes:
    """One message, with its newline."""
    return to_json(record) + b"\n"


class Lines:
    """Cuts what arrives into whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines
