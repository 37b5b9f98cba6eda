"""Linux processes: who descends from whom, how much memory they hold, and how to end all of them.

A *subreaper* inherits every orphan below it, however often it forked and whatever session it made for itself; so
"no children left" (ECHILD) proves to a subreaper that nothing that it started is alive.
Sources: proc_pid_statm(5), proc_tid_children(5), PR_SET_CHILD_SUBREAPER(2const), PR_SET_PDEATHSIG(2const).
"""

import contextlib
import ctypes
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import EngineError, InputError

MARK = "WHOLESTACK_JOB"
"""Environment variable of every process of an engine: ``<token>`` or ``<token>/<job id>``."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,200}")
_EXACT_COST_SHARE = 0.1
_KILLED = re.compile(rb"\d+,\d+,(\d+),[^;]*;.*[Oo]ut of memory.*: Killed process (\d+) ")


def require_linux() -> None:
    """Refuse where processes cannot be followed.

    Raises:
        EngineError: not Linux 5.3 or later with /proc.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open") or not Path("/proc/self/statm").exists():
        raise EngineError(
            f"the local engine needs Linux 5.3 or later with /proc, this is {sys.platform}: "
            "without them it could not promise that no process is left behind",
            remedy="run it on Linux or in a Linux container",
        )


def check_token(token: str) -> str:
    """Hand the token back if it can stand in an environment variable and in a file name.

    Raises:
        InputError: it cannot.
    """
    if not _TOKEN.fullmatch(token):
        raise InputError(f"token {token!r}: up to 200 letters, digits, '.', '-' and '_' are allowed")
    return token


def become_subreaper() -> None:
    """Make this process the parent of every orphan below it."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel send SIGKILL to this process when its parent ends; at once if it is gone already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def name_process(name: str) -> None:
    """The name that ``ps`` and ``top`` show, at most 15 bytes."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


def descendants(pid: int) -> list[int]:
    """Every living process below ``pid``, parents before children. Races with forks: repeat to be sure."""
    found: list[int] = []
    queue = [pid]
    while queue:
        children = list(_children(queue.pop()))
        found += children
        queue += children
    return found


def resident_bytes(pid: int) -> int:
    """Resident memory of one process, shared pages included; 0 once it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Resident memory of one process, each shared page divided by the number of its users; 0 once it has gone.

    Costs milliseconds a gigabyte, for the kernel walks the page tables.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return 0
    found = re.search(rb"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


@dataclass(slots=True)
class MemoryGauge:
    """Resident memory of a process tree, and its peak.

    One process: its resident memory. Several: they share pages (a forked data loader shares nearly all), so the
    sum of the resident sizes is only an upper bound. When that bound matters, the sum of the proportional sizes is
    taken, at most a tenth of the time; it is never below the largest process.
    """

    peak_bytes: int = 0
    """Most that was seen."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    exact_after: float = 0.0
    """Earliest time for the next costly measurement."""

    def measure(self, pids: Iterable[int]) -> int:
        """Resident bytes of these processes now; raises the peak."""
        sizes = {pid: resident_bytes(pid) for pid in pids}
        total = sum(sizes.values())
        if len(sizes) > 1 and total > self.peak_bytes:
            total = max(*sizes.values(), self._exact(sizes))
        self.peak_bytes = max(self.peak_bytes, total)
        return total

    def _exact(self, pids: Iterable[int]) -> int:
        start = self.clock()
        if start < self.exact_after:
            return 0
        total = sum(map(proportional_bytes, pids))
        end = self.clock()
        self.exact_after = end + (end - start) / _EXACT_COST_SHARE
        return total


def kernel_kills() -> int:
    """How many processes the kernel's out-of-memory killer has ended on this machine since boot."""
    try:
        found = re.search(rb"^oom_kill (\d+)$", Path("/proc/vmstat").read_bytes(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def kernel_log_names(pids: Collection[int], *, since_s: float) -> bool | None:
    """Whether the kernel's log says that it killed one of these processes for memory.

    Args:
        pids: Processes.
        since_s: Seconds since boot; older lines are about others that had the same number.

    Returns:
        ``None`` where that cannot be known: the log may not be read, or it numbers processes in another namespace.
    """
    if not _is_first_pid_namespace():
        return None
    try:
        file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return any(pid in pids for pid in _killed_for_memory(file, since_s))
    finally:
        os.close(file)


def _killed_for_memory(kernel_log: int, since_s: float) -> Iterator[int]:
    """Each read is one record, ``level,sequence,microseconds,flags;text``."""
    while True:
        try:
            record = os.read(kernel_log, 8192)
        except BrokenPipeError:  # records were overwritten meanwhile; the next read goes on behind the gap
            continue
        except OSError:
            return
        found = _KILLED.match(record)
        if found and int(found[1]) / 1e6 >= since_s:
            yield int(found[2])


def _is_first_pid_namespace() -> bool:
    """The kernel gives the first one this number (PROC_PID_INIT_INO)."""
    try:
        return os.readlink("/proc/self/ns/pid") == f"pid:[{0xEFFFFFFC}]"
    except OSError:
        return False


def reap(watched: int | None = None) -> tuple[int, float] | None:
    """Collect every child that has ended.

    Returns:
        Wait status of ``watched`` and its largest resident size in bytes, if it was among them.
    """
    result = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == watched:
                result = (status, usage.ru_maxrss * 1024)
    return result


def end_children(timeout_s: float, *, spare: Sequence[int] = ()) -> int:
    """End everything below this process, which must be a subreaper and must have SIGCHLD blocked.

    Whole process groups are signalled too, because that is atomic with respect to a fork: a process that only
    forks and exits cannot outrun it.

    Args:
        timeout_s: After so long what cannot die (it hangs in the kernel) is left.
        spare: Children of this process that are left alone, with all below them.

    Returns:
        How many processes were found alive.

    Raises:
        EngineError: some would not die.
    """
    deadline = time.monotonic() + timeout_s
    seen: set[int] = set()
    while True:
        reap()
        alive = [pid for child in _children(os.getpid()) if child not in spare for pid in (child, *descendants(child))]
        if not alive:
            return len(seen)
        if time.monotonic() > deadline:
            raise EngineError(f"processes that do not die: {alive}")
        seen.update(alive)
        _kill_with_groups(alive, spare=[os.getpid()])
        signal.sigtimedwait({signal.SIGCHLD}, 0.01)


def end_leftovers(token: str, *, timeout_s: float = 10.0) -> int:
    """End every process that carries an engine's token, for instance after the engine and its owner were killed.

    A process is known by its environment (it got the variable ``WHOLESTACK_JOB`` from the engine), or because it
    descends from one that is. The caller and its ancestors are left alone.

    Args:
        token: The engine's token.
        timeout_s: How long to wait for them to be gone.

    Returns:
        How many were found.

    Raises:
        InputError: not a token.
        EngineError: not Linux, or some would not die.
    """
    require_linux()
    check_token(token)
    deadline = time.monotonic() + timeout_s
    own = set(_ancestors(os.getpid()))
    seen: set[int] = set()
    while alive := [pid for pid in marked_processes(token) if pid not in own]:
        if time.monotonic() > deadline:
            raise EngineError(
                f"processes of an earlier run do not die: {sorted(alive)}", remedy="end them, then resume"
            )
        seen.update(alive)
        handles = _open_handles(alive)
        _kill_with_groups(list(handles), spare=own)
        _wait_for_end(handles.values(), 0.1)
    return len(seen)


def marked_processes(token: str) -> list[int]:
    """Living processes whose environment carries the token, and their descendants."""
    wanted = f"{MARK}={token}".encode()
    found: dict[int, None] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _carries(entry, wanted):
            found[int(entry.name)] = None
            found.update(dict.fromkeys(descendants(int(entry.name))))
    return list(found)


def _carries(process: Path, wanted: bytes) -> bool:
    try:
        words = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word == wanted or word.startswith(wanted + b"/") for word in words)


def _children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        with contextlib.suppress(OSError):
            yield from map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        pid = int(stat.rpartition(")")[2].split()[1])


def _kill_with_groups(pids: Iterable[int], *, spare: Iterable[int]) -> None:
    """SIGKILL to processes and to their groups, except the groups of those to be spared."""
    pids = list(pids)
    for group in _groups(pids) - _groups(spare):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _groups(pids: Iterable[int]) -> set[int]:
    groups = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            groups.add(os.getpgid(pid))
    return groups


def _open_handles(pids: Iterable[int]) -> dict[int, int]:
    """A pidfd for each that is still there."""
    handles = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            handles[pid] = os.pidfd_open(pid)
    return handles


def _wait_for_end(handles: Iterable[int], timeout_s: float) -> None:
    """Until all have ended or the time is over; closes the handles."""
    deadline = time.monotonic() + timeout_s
    for handle in handles:
        select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
        os.close(handle)


def _prctl(option: int, argument: "int | ctypes.c_char_p") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        raise EngineError(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")
