"""From the facts of a job's end to its outcome: pure, and the one place that decides what a failure means.

Two questions follow every outcome: does it tell something about the job's settings (:func:`blames_job`), so that
a model may learn from it; and is it worth another try as it stands (:func:`is_retryable`)?
"""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wholestack.launch.job import Outcome

Intervention = Literal["none", "cancel", "wall", "memory"]

# Signals that a process brings upon itself; any other one came from outside.
_CRASHES = frozenset(
    {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS", "SIGPIPE", "SIGXCPU", "SIGXFSZ"}
    | {"SIGALRM", "SIGVTALRM", "SIGPROF"}
)
# A shell whose command was ended by a signal exits with 128 plus its number.
_SHELL_SIGNALS = {128 + 9: "SIGKILL", 128 + 15: "SIGTERM"}

# How Python, numpy, torch, C++ and the JVM say that an allocation failed.
_OUT_OF_MEMORY = re.compile(
    r"^(\w+\.)*_?\w*MemoryError\b|OutOfMemoryError|CUDA out of memory|DefaultCPUAllocator: can't allocate memory"
    r"|std::bad_alloc|^MemoryError$|Cannot allocate memory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The facts of a job's end."""

    exit_code: int | None
    """Exit code, ``None`` if a signal ended it."""
    signal_name: str = ""
    """Signal that ended it."""
    intervention: Intervention = "none"
    """What we had done to it before it ended."""
    kernel_killed: bool = False
    """Whether the kernel's out-of-memory killer acted on this machine while the job ended."""
    last_lines: Sequence[str] = ()
    """The end of its stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a job, and why."""

    outcome: Outcome
    """Never ``running``."""
    detail: str
    """One line; empty when done."""


def classify(ending: Ending, *, limit: str = "") -> Verdict:
    """Decide what became of a job.

    Args:
        ending: The facts.
        limit: The limit that we enforced, in words, for instance ``wall time 10 s``.
    """
    if ending.intervention != "none":
        return _intervened(ending.intervention, limit)
    if ending.exit_code == 0:
        return Verdict(outcome="done", detail="")
    if ending.exit_code is None:
        return _signalled(ending)
    return _exited(ending, ending.exit_code)


def blames_job(outcome: Outcome) -> bool:
    """Whether the outcome is the job's own failure, which a model of failures may learn from."""
    return outcome in ("failed", "out_of_memory", "timeout")


def is_retryable(outcome: Outcome) -> bool:
    """Whether the same job deserves another try: something else ended it, or nobody knows what did."""
    return outcome in ("killed", "lost")


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; real-time signals, which have no name, as ``signal 40``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _intervened(intervention: Intervention, limit: str) -> Verdict:
    if intervention == "cancel":
        return Verdict(outcome="cancelled", detail="cancelled on request")
    outcome: Outcome = "timeout" if intervention == "wall" else "out_of_memory"
    return Verdict(outcome=outcome, detail=f"over its limit: {limit}")


def _signalled(ending: Ending) -> Verdict:
    name = ending.signal_name
    if name == "SIGKILL" and ending.kernel_killed:
        return Verdict(outcome="out_of_memory", detail="ended by the kernel's out-of-memory killer")
    if says_out_of_memory(ending.last_lines):
        return Verdict(outcome="out_of_memory", detail=f"crashed with {name}: {_last(ending)}")
    if name in _CRASHES:
        return Verdict(outcome="failed", detail=_join(f"crashed with {name}", _last(ending)))
    return Verdict(outcome="killed", detail=f"ended by {name}, which we did not send")


def _exited(ending: Ending, code: int) -> Verdict:
    inner = _SHELL_SIGNALS.get(code)
    if inner == "SIGKILL" and ending.kernel_killed:
        return Verdict(outcome="out_of_memory", detail=f"exit code {code}: the kernel's out-of-memory killer")
    if says_out_of_memory(ending.last_lines):
        return Verdict(outcome="out_of_memory", detail=_last(ending))
    if inner:
        return Verdict(outcome="killed", detail=f"exit code {code}: its command was ended by {inner}")
    return Verdict(outcome="failed", detail=_join(f"exit code {code}", _last(ending)))


def says_out_of_memory(last_lines: Sequence[str]) -> bool:
    """Whether the end of stderr is a failed allocation; looks at the last three lines, for C++ aborts in several."""
    return any(_OUT_OF_MEMORY.search(line) for line in last_lines[-3:])


def _last(ending: Ending) -> str:
    return next((line.strip()[:500] for line in reversed(ending.last_lines) if line.strip()), "")


def _join(what: str, line: str) -> str:
    return f"{what}: {line}" if line else what
