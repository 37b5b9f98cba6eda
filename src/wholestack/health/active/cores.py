"""Cores of this machine's CPU as devices: the process is pinned to a core while that core works.

What a core gave is checked while the process is kept off it, so that a core that multiplies wrong does not judge
itself; where there is one core only, it must. numpy multiplies in one thread if ``OMP_NUM_THREADS`` and its like are 1
when it is loaded, which the command sees to: more threads would multiply elsewhere.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.device import Handle
from wholestack.health.active.operands import IntArray, PrecisionName, WordArray
from wholestack.health.parts import Part
from wholestack.machine import CGROUP, available_memory_bytes

BUSY_SHARE = 0.2
"""Of a core's time spent on other work."""
LOOK_S = 0.3
_DTYPES = {"float64": np.float64, "float32": np.float32}
_EDAC = Path("/sys/devices/system/edac/mc")


class Core:
    """One core.

    Args:
        number: As the kernel counts.
        allowed: Cores that this process may use.
        proc: Where the kernel tells of itself.
        edac: Where it counts errors of the memory.
        cgroup: Folder of this process's control group.
        wait: Waits so many seconds.
    """

    def __init__(
        self,
        number: int,
        allowed: frozenset[int],
        *,
        proc: Path = Path("/proc"),
        edac: Path = _EDAC,
        cgroup: Path = CGROUP,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.number = number
        self.allowed = allowed
        self.kind = f"{model_name(proc)}, 1 core"
        self.part = Part(kind="cpu", key=f"core {number}", label=self.kind)
        self.serial = ""
        self.precisions: tuple[PrecisionName, ...] = ("float64", "float32")
        self._proc, self._edac, self._cgroup, self._wait = proc, edac, cgroup, wait
        self._depth = 0

    def free_bytes(self) -> int:
        """The share of one core in what is available; 0 where that is not said."""
        return (available_memory_bytes(self._proc, self._cgroup) or 0) // len(self.allowed)

    def in_use(self) -> str:
        """Whether others computed on it in the last moment; this process sleeps meanwhile."""
        before = core_times(self._proc, self.number)
        self._wait(LOOK_S)
        after = core_times(self._proc, self.number)
        total = sum(after) - sum(before)
        # user, nice, system, idle, iowait, irq, softirq, steal
        idle = sum(after[3:5]) - sum(before[3:5])
        share = 1 - idle / total if total > 0 else 0.0
        return f"other work takes {share:.0%} of it" if share > BUSY_SHARE else ""

    def corrections(self) -> tuple[str, ...]:
        """Errors of the memory that its controllers corrected since boot."""
        lines = []
        for counter in sorted(self._edac.glob("mc*/ce_count")):
            text = "".join(_lines(counter)).strip()
            if text.isdigit() and int(text):
                lines.append(f"{counter.parent.name}: {text} corrected errors since boot")
        return tuple(lines)

    def put(self, values: IntArray, precision: PrecisionName) -> Handle:
        """See :class:`Device`."""
        with self._here():
            return values.astype(_DTYPES[precision])

    def write(self, words: WordArray) -> Handle:
        """See :class:`Device`."""
        with self._here():
            return words.copy()

    def multiply(self, left: Handle, right: Handle, precision: PrecisionName) -> Handle:
        """See :class:`Device`."""
        with self._here():
            return left @ right

    def copy(self, held: Handle) -> Handle:
        """See :class:`Device`."""
        with self._here():
            return held.copy()

    def fetch(self, held: Handle) -> NDArray[np.generic]:
        """The very array: it lies in the memory of this machine."""
        found: NDArray[np.generic] = held
        return found

    def timed(self, work: Callable[[], object]) -> float:
        """Time that the core worked for this thread: what others took of it is no slowness of the core."""
        with self._here():
            start = time.thread_time()
            work()
            return time.thread_time() - start

    @contextmanager
    def _here(self) -> Iterator[None]:
        if self._depth == 0:
            os.sched_setaffinity(0, {self.number})
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                os.sched_setaffinity(0, (self.allowed - {self.number}) or self.allowed)


@contextmanager
def cores_here(proc: Path = Path("/proc")) -> Iterator[list[Core]]:
    """Every core that this process may use; afterwards it may run on all of them again."""
    allowed = frozenset(os.sched_getaffinity(0))
    try:
        yield [Core(number, allowed, proc=proc) for number in sorted(allowed)]
    finally:
        os.sched_setaffinity(0, allowed)


def model_name(proc: Path) -> str:
    """As the CPU calls itself."""
    for line in _lines(proc / "cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return " ".join(value.split())
    return os.uname().machine


def core_times(proc: Path, number: int) -> list[int]:
    """Ticks of a core by state, in the kernel's order, at least eight; see proc_stat(5)."""
    for line in _lines(proc / "stat"):
        words = line.split()
        if words and words[0] == f"cpu{number}":
            return [int(word) for word in words[1:9]] + [0] * (9 - len(words))
    return [0] * 8


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
