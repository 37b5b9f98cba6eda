"""Running programs: many of them in one sandboxed process, JSON in and out."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol, cast

import msgspec

from wholestack.errors import SandboxError
from wholestack.sandbox import Limits, Outcome

STEPS_KEPT = 60
"""Lines of a trace that an item keeps."""
JOBS_A_PROCESS = 2000
"""Programs that share one process at most."""

_LIMITS = Limits(wall_s=300.0, memory_bytes=1 << 30, processes=1, output_bytes=256 << 20)
_RUNNER = files("wholestack.codetasks").joinpath("runner_source.py").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Watch:
    """What to look at during a run."""

    line: int
    """Line of the program, from 1."""
    name: str = ""
    """Variable whose value is wanted just before the line runs; "" to count how often the line runs."""
    time: int = 0
    """For the how-many-th time the line runs; 0 for the last."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program, and what to do with it."""

    source: str
    """The program."""
    calls: tuple[str, ...] = ()
    """Expressions, each evaluated in a fresh run of the program; with none the program runs once."""
    watches: tuple[Watch, ...] = ()
    """What to look at."""
    steps: int = 0
    """Lines to write down at most."""


class Run(msgspec.Struct, frozen=True, gc=False):
    """What one run did; the fields are those of ``runner_source.py``. Tens of thousands of them stand at one time."""

    printed: str
    value: str | None
    error: str | None
    watched: list[str | None]
    lines: int
    steps: list[tuple[int, str]]


class Runs(Protocol):
    """Runs a program apart from this process; :meth:`wholestack.sandbox.Sandbox.run` does."""

    def __call__(
        self, program: str, *, argument: Any = None, limits: Limits | None = None, hash_seed: int | None = None
    ) -> Outcome:
        """Run it to its end."""
        ...


def run_jobs(jobs: Sequence[Job], run: Runs, *, hash_seed: int, processes: int = 1) -> list[list[Run]]:
    """Run every job; for each, one run a call.

    Args:
        jobs: The programs, which are the generator's own: one that does not end would cost all of them.
        run: The sandbox's.
        hash_seed: Of the processes that are started.
        processes: How many at one time.

    Raises:
        SandboxError: a process ended badly or gave no result.
    """
    if not jobs:
        return []
    share = min(JOBS_A_PROCESS, -(-len(jobs) // processes))
    parts = [jobs[start : start + share] for start in range(0, len(jobs), share)]

    def run_part(part: Sequence[Job]) -> list[list[Run]]:
        outcome = run(_RUNNER, argument=[_plain(job) for job in part], limits=_LIMITS, hash_seed=hash_seed)
        if not outcome.ok:
            said = outcome.stderr[-300:].decode(errors="replace").strip()
            raise SandboxError(f"programs could not be run: {outcome.describe()}: {said}")
        return cast(list[list[Run]], outcome.value(list[list[Run]]))

    if len(parts) == 1:
        return run_part(parts[0])
    with ThreadPoolExecutor(processes) as pool:
        return [runs for part in pool.map(run_part, parts) for runs in part]


def _plain(job: Job) -> dict[str, Any]:
    watches = [(watch.line, watch.name, watch.time) for watch in job.watches]
    return {"source": job.source, "calls": job.calls, "watches": watches, "steps": job.steps}
