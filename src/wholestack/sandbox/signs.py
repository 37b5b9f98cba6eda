"""Which limit a program may have met that failed by itself.

The kernel enforces most limits from inside: the program gets an error as from any full disk, and fails like any other.
What it then says on standard error, or the signal that ended it, is a sign of the limit and no more than that: it is a
stranger's text, and a machine can be short of the same things.
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
    said = outcome.stderr[-_READ_BYTES:].decode(errors="replace")
    signs = [Sign(limit, found[0]) for limit, pattern in _SAID if (found := pattern.search(said))]
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


_SAID: tuple[tuple[LimitName, re.Pattern[str]], ...] = (
    ("memory_bytes", re.compile(r"^MemoryError\b", re.MULTILINE)),
    ("memory_bytes", _error(errno.ENOMEM)),
    ("file_bytes", _error(errno.EFBIG)),
    ("disk_bytes", _error(errno.ENOSPC)),
    ("processes", _error(errno.EAGAIN)),
    ("processes", re.compile(r"^RuntimeError: can't start new thread", re.MULTILINE)),
    ("open_files", _error(errno.EMFILE)),
)
