"""Which limit a program may have met that failed by itself.

The kernel enforces most limits from inside: the program gets an error as from any full disk, and fails like any other.
What it then says on standard error, or the signal that ended it, is a sign of the limit and no more than that: it is a
stranger's text, and a machine can be short of the same things. Where an error can come of two limits, both are named.
"""

import errno
import os
import re
import signal
from dataclasses import dataclass
from typing import Literal

from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Ending, Outcome

LimitName = Literal["memory_bytes", "file_bytes", "disk_bytes", "processes", "open_files", "wall_s"]

_READ_BYTES = 1 << 16
"""Of the end of standard error."""


def cpu_seconds(limits: Limits) -> int:
    """Processor time of each process: above what a program of one thread can take before the wall clock ends it."""
    return int(limits.wall_s) + 2


@dataclass(frozen=True, slots=True)
class Sign:
    """What hints at a limit."""

    limit: LimitName
    """Field of :class:`~wholestack.sandbox.limits.Limits`; processor time comes from ``wall_s``."""
    seen: str
    """As the program said it, for instance ``MemoryError``."""


def signs_of_limits(outcome: Outcome, limits: Limits) -> tuple[Sign, ...]:
    """Signs of limits in a run that ended by itself and failed, each limit once; none where it was ended from outside.

    Args:
        outcome: The run's.
        limits: That it had.
    """
    if outcome.ending is not Ending.EXITED or not outcome.exit_code:
        return ()
    said = _IN_GROUP.sub("", outcome.stderr[-_READ_BYTES:].decode(errors="replace"))
    signs = [Sign(limit, found[0]) for limit, pattern in _SAID if (found := pattern.search(said))]
    signs += [
        Sign("processes", found[0]) for found in _AGAIN.finditer(said) if _starts_a_process(said[: found.start()])
    ]
    number = outcome.exit_code - 128
    if number == signal.SIGXFSZ:
        signs.append(Sign("file_bytes", "SIGXFSZ"))
    most_used_s = outcome.seconds * min(os.cpu_count() or 1, limits.processes)
    if number == signal.SIGXCPU or (number == signal.SIGKILL and most_used_s >= cpu_seconds(limits)):
        signs.append(Sign("wall_s", signal.Signals(number).name))
    return tuple({sign.limit: sign for sign in reversed(signs)}.values())[::-1]


def _error(number: int) -> re.Pattern[str]:
    """A line of a traceback that names an error of the operating system."""
    return re.compile(rf"^(?:\w+\.)*(?:OS|BlockingIO)Error: \[Errno {number}\] [^:\n]{{1,60}}", re.MULTILINE)


def _starts_a_process(before: str) -> bool:
    """Whether the statement that a traceback ends with, before its error, is one that starts a process.

    A read or write that would have to wait gives the same error. Where the traceback shows no statement, as of a
    program text that is run from a string, it may be any.
    """
    statement = before.rpartition('\n  File "')[2].partition("\n")[2]
    return not statement.strip() or _STARTS.search(statement) is not None


_IN_GROUP = re.compile(r"^ +\| ", re.MULTILINE)
"""What stands before every line of the errors within an ``ExceptionGroup``."""
_AGAIN = _error(errno.EAGAIN)
_STARTS = re.compile(r"fork|spawn|clone")
_THREAD = re.compile(r"^RuntimeError: can't start new thread", re.MULTILINE)
_SAID: tuple[tuple[LimitName, re.Pattern[str]], ...] = (
    ("memory_bytes", re.compile(r"^MemoryError(?=:|$)", re.MULTILINE)),
    ("memory_bytes", _error(errno.ENOMEM)),
    ("file_bytes", _error(errno.EFBIG)),
    ("disk_bytes", _error(errno.ENOSPC)),
    ("processes", _THREAD),
    ("memory_bytes", _THREAD),  # every thread takes address space for its stack
    ("open_files", _error(errno.EMFILE)),
)
