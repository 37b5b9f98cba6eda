"""The keeper: one small process per job that starts the worker, watches it, and ends all that is left of it.

It is a subreaper, so what the job started belongs to it and to nobody else, however it hid. It outlives the
supervisor just long enough to end the job when the supervisor is killed.
"""

import contextlib
import math
import os
import resource
import selectors
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from wholestack.errors import EngineError
from wholestack.launch.failures import Ending, Intervention, classify, signal_name
from wholestack.launch.job import JobState
from wholestack.launch.logs import CappedLog
from wholestack.launch.wire import Report, Request, line_of
from wholestack.launch.worker import become_worker
from wholestack.processes import (
    MemoryGauge,
    become_subreaper,
    descendants,
    end_children,
    kernel_kills,
    kernel_log_names,
    name_process,
    reap,
    resident_bytes,
)

SAMPLE_S = 0.1
END_S = 10.0
_READ_BYTES = 1 << 16
# From the kernel's decision to the end of the process: it first gives back its memory, seconds for tens of gigabytes.
_KERNEL_KILL_S = 10.0


class Keeper:
    """Runs one job; made in a process of its own.

    Args:
        request: The job.
        control: Socket to the supervisor: ``cancel`` comes in, states go out, its end means that all is over.
        supervisor_pid: Parent; when it has gone, the job is ended.
        token: The engine's token.
        warm: Whether a Python entry may run in a fork of this process.
    """

    def __init__(
        self, request: Request, control: socket.socket, *, supervisor_pid: int, token: str, warm: bool
    ) -> None:
        self._request = request
        self._limits = request.limits
        self._control = control
        self._token = token
        self._warm = warm
        self._logs: list[CappedLog] = []
        self._pipes: list[int] = []
        self._gauge = MemoryGauge()
        self._intervention: Intervention = "none"
        self._limit = ""
        self._trouble = ""
        self._kill_at: float | None = None
        self._end: tuple[int, float] | None = None
        self._orphaned = False
        self._is_itself = False
        self._selector = selectors.DefaultSelector()
        self._supervisor = os.pidfd_open(supervisor_pid)
        self._watch(self._supervisor, self._abandon)
        self._watch(control.fileno(), self._obey)

    def run(self) -> JobState:
        """From start to end of the job; on return nothing that it started is alive."""
        self._baseline_bytes = resident_bytes(os.getpid())
        self._kernel_kills, self._kernel_kill_at = kernel_kills(), -math.inf
        self._started_at, self._start = time.time(), time.monotonic()
        self._pid = self._spawn()
        self._pids = {self._pid}
        self._tell(self._state_running())
        self._next_sample = self._start
        while self._end is None:
            self._turn()
        self._wall_s = time.monotonic() - self._start
        self._note_kernel_kills()
        self._leftovers = self._end_rest()
        for log, pipe in zip(self._logs, self._pipes, strict=True):
            while self._read(log, pipe):
                pass
            os.close(pipe)
            log.finish()
        state = self._state_ended(*self._end)
        self._tell(state)
        return state

    def _spawn(self) -> int:
        stdout, stderr = self._open_log(self._request.stdout), self._open_log(self._request.stderr)
        gate, gate_sink = os.pipe2(os.O_CLOEXEC)
        keeper_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._let_go()
            os.close(gate)
            become_worker(
                self._request,
                token=self._token,
                keeper_pid=keeper_pid,
                stdout=stdout,
                stderr=stderr,
                gate=gate_sink,
                warm=self._warm,
            )
        for file in (stdout, stderr, gate_sink):
            os.close(file)
        self._watch(gate, lambda: self._open_gate(gate))
        self._watch(os.pidfd_open(pid), self._reap)
        return pid

    def _let_go(self) -> None:
        """In the worker: close what belongs to the keeper, for a fork without exec keeps it open."""
        self._selector.close()
        os.close(self._supervisor)
        self._control.close()
        for log, pipe in zip(self._logs, self._pipes, strict=True):
            log.abandon()
            os.close(pipe)

    def _open_log(self, path: str) -> int:
        log = CappedLog(Path(path), self._limits.log_bytes)
        source, sink = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(source, False)
        self._logs.append(log)
        self._pipes.append(source)
        self._watch(source, lambda: self._follow(log, source))
        return sink

    def _turn(self) -> None:
        """Wait for whatever comes first, then do what is due."""
        for key, _ in self._selector.select(self._pause_s()):
            key.data()
        now = time.monotonic()
        if self._end is None and now >= self._next_sample:
            self._sample()
            self._next_sample = now + SAMPLE_S
        wall_s = self._limits.wall_s
        if self._end is None and wall_s is not None and now >= self._start + wall_s:
            self._intervene("wall", f"wall time {wall_s:g} s")
        if self._end is None and self._kill_at is not None and now >= self._kill_at:
            self._kill()

    def _open_gate(self, gate: int) -> None:
        """The worker is what it was meant to be; until a command is executed it has the supervisor's size."""
        self._selector.unregister(gate)
        os.close(gate)
        self._is_itself = True

    def _pause_s(self) -> float:
        due = [self._next_sample]
        if self._limits.wall_s is not None and self._intervention == "none":
            due.append(self._start + self._limits.wall_s)
        if self._kill_at is not None:
            due.append(self._kill_at)
        return max(0.0, min(due) - time.monotonic())

    def _sample(self) -> None:
        self._reap()
        self._note_kernel_kills()
        pids = descendants(os.getpid())
        self._pids.update(pids)
        resident = self._gauge.measure(pids) if self._is_itself else 0
        limit = self._limits.resident_bytes
        if limit is not None and resident > limit:
            self._intervene("memory", f"resident memory {limit / 2**20:.0f} MiB, held {resident / 2**20:.0f} MiB")

    def _note_kernel_kills(self) -> None:
        kills = kernel_kills()
        if kills > self._kernel_kills:
            self._kernel_kills, self._kernel_kill_at = kills, time.monotonic()

    def _intervene(self, why: Intervention, limit: str = "") -> None:
        """End the job; the first reason stands. Memory gets no grace: the machine is at stake."""
        self._reap()
        if self._end is not None or self._intervention != "none":
            return
        self._intervention, self._limit = why, limit
        if why == "memory":
            self._kill()
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a paused process would not see SIGTERM
        self._kill_at = time.monotonic() + self._limits.grace_s

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, number)

    def _kill(self) -> None:
        self._kill_at = None
        if self._end is not None:
            return  # its number may belong to another process by now
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _obey(self) -> None:
        order = self._control.recv(4096)
        if order:
            self._intervene("cancel")
        else:
            self._abandon()

    def _abandon(self) -> None:
        """Nobody waits for the job any more: end it without grace."""
        self._orphaned = True
        self._intervene("cancel")
        self._kill()
        for key in [key for key in self._selector.get_map().values() if key.data in (self._obey, self._abandon)]:
            self._selector.unregister(key.fd)

    def _reap(self) -> None:
        self._end = self._end or reap(self._pid)

    def _end_rest(self) -> int:
        try:
            return end_children(END_S)
        except EngineError as error:
            self._trouble = str(error)
            return len(descendants(os.getpid()))

    def _follow(self, log: CappedLog, pipe: int) -> None:
        """The selector saw something: a block, or the end of the pipe because the job closed it."""
        if not self._read(log, pipe):
            self._selector.unregister(pipe)

    def _read(self, log: CappedLog, pipe: int) -> bool:
        """Move one block into the log; false when there is none."""
        try:
            data = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return False
        log.write(data)
        return bool(data)

    def _watch(self, file: int, then: Callable[[], None]) -> None:
        self._selector.register(file, selectors.EVENT_READ, then)

    def _tell(self, state: JobState) -> None:
        if not self._orphaned:
            with contextlib.suppress(OSError):
                self._control.sendall(line_of(Report(kind="state", state=state)))

    def _state_running(self) -> JobState:
        return JobState(
            id=self._request.id,
            name=self._request.name,
            outcome="running",
            stdout=self._request.stdout,
            stderr=self._request.stderr,
            pid=self._pid,
            started_at=self._started_at,
        )

    def _state_ended(self, status: int, largest_bytes: float) -> JobState:
        by_signal = os.WIFSIGNALED(status)
        out, err = self._logs
        last_lines = err.last_lines(10)
        ending = Ending(
            exit_code=None if by_signal else os.WEXITSTATUS(status),
            signal_name=signal_name(os.WTERMSIG(status)) if by_signal else "",
            intervention=self._intervention,
            kernel_killed=self._is_kernels_kill(),
            last_lines=last_lines,
        )
        verdict = classify(ending, limit=self._limit)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return JobState(
            id=self._request.id,
            name=self._request.name,
            outcome=verdict.outcome,
            stdout=self._request.stdout,
            stderr=self._request.stderr,
            detail="; ".join(filter(None, (verdict.detail, self._trouble, out.trouble, err.trouble))),
            pid=self._pid,
            exit_code=ending.exit_code,
            signal=ending.signal_name,
            started_at=self._started_at,
            wall_s=self._wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_resident_bytes=self._peak(int(largest_bytes)),
            last_lines=last_lines or out.last_lines(10),
            dropped_log_bytes=out.dropped_bytes + err.dropped_bytes,
            leftovers=self._leftovers,
        )

    def _is_kernels_kill(self) -> bool:
        """By the kernel's log, which names processes; where it cannot be read, by the machine's count of such kills."""
        if time.monotonic() - self._kernel_kill_at > _KERNEL_KILL_S:
            return False
        named = kernel_log_names(self._pids, since_s=self._start - 1.0)
        return True if named is None else named

    def _peak(self, largest_bytes: int) -> int | None:
        """The kernel's own maximum is exact between samples, but a command inherits the size of what it replaced."""
        is_own = not self._request.command or largest_bytes > self._baseline_bytes * 1.1
        return max(self._gauge.peak_bytes, largest_bytes if is_own else 0) or None


def keep(request: Request, control: socket.socket, *, supervisor_pid: int, token: str, warm: bool) -> None:
    """Be the keeper of one job, in a fork of the supervisor."""
    name_process("ws-keeper")
    become_subreaper()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    Keeper(request, control, supervisor_pid=supervisor_pid, token=token, warm=warm).run()
