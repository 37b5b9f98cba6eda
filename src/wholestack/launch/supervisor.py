"""The supervisor: a separate process that loads modules once and forks a keeper, and with it a worker, for each job.

It is single-threaded and runs nothing of what it loads, so a fork of it is safe: libraries are imported with one
thread, and if one starts a thread all the same, entries are run in fresh interpreters and the engine is told.
When its engine has gone, by whatever death, it ends every job and exits; when it is killed itself, its keepers
do the same.
"""

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from wholestack.errors import EngineError
from wholestack.launch.keeper import keep
from wholestack.launch.wire import Lines, Order, Report, Request, line_of, lost
from wholestack.processes import become_subreaper, end_children, name_process, reap
from wholestack.record import from_json

_READ_BYTES = 1 << 16
_KEEPERS_S = 5.0
_END_S = 5.0


@dataclass(slots=True)
class _Kept:
    """A job with its keeper."""

    request: Request
    pid: int
    link: socket.socket
    lines: Lines
    end: Report | None = None


class Supervisor:
    """Loop between one engine and its keepers.

    Args:
        engine: Socket to the engine.
        engine_pid: Parent; its death ends everything even if somebody holds a copy of the socket.
        token: The engine's token.
    """

    def __init__(self, engine: socket.socket, *, engine_pid: int, token: str) -> None:
        self._engine = engine
        self._token = token
        self._orders = Lines()
        self._outgoing = bytearray()
        self._kept: dict[str, _Kept] = {}
        self._warm = True
        self._over = os.getppid() != engine_pid
        self._selector = selectors.DefaultSelector()
        self._selector.register(engine, selectors.EVENT_READ, self._on_engine)
        self._parent = os.pidfd_open(os.getppid())
        self._selector.register(self._parent, selectors.EVENT_READ, self._on_parent)
        engine.setblocking(False)

    def run(self, preload: Sequence[str]) -> None:
        """Load, serve until the engine has gone, end everything."""
        self._send(self._load(preload))
        while not self._over:
            for key, events in self._selector.select():
                if events & selectors.EVENT_WRITE:
                    self._flush()
                if events & selectors.EVENT_READ:
                    key.data()
        self._end_all()

    def _load(self, preload: Sequence[str]) -> Report:
        for module in preload:
            try:
                importlib.import_module(module)
            except Exception as error:  # noqa: BLE001  a module that is loaded for others may raise anything
                traceback.print_exc()
                return Report(kind="broken", detail=f"cannot preload {module}: {type(error).__name__}: {error}")
        gc.collect()
        gc.freeze()  # a collection in a worker must not touch, and so copy, what is shared
        threads = len(os.listdir("/proc/self/task"))
        self._warm = threads == 1
        return Report(kind="ready", detail="" if self._warm else f"preloading started {threads - 1} threads")

    def _on_engine(self) -> None:
        try:
            data = self._engine.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._over = True
        for line in self._orders.feed(data):
            self._obey(from_json(Order, line, where="order"))

    def _on_parent(self) -> None:
        self._over = True

    def _obey(self, order: Order) -> None:
        if order.request is not None:
            self._start(order.request)
        elif order.job_id in self._kept:
            with contextlib.suppress(OSError):
                self._kept[order.job_id].link.send(b"cancel\n")

    def _start(self, request: Request) -> None:
        supervisor_pid = os.getpid()
        try:
            link, far = socket.socketpair()
            pid = os.fork()
        except OSError as error:  # no process, file or memory to be had
            self._send(Report(kind="state", state=lost(request, f"could not be started: {error.strerror}")))
            return
        if pid == 0:
            self._become_keeper(request, link, far, supervisor_pid)
        far.close()
        kept = _Kept(request=request, pid=pid, link=link, lines=Lines())
        self._kept[request.id] = kept
        self._selector.register(link, selectors.EVENT_READ, lambda: self._on_keeper(kept))

    def _become_keeper(self, request: Request, link: socket.socket, far: socket.socket, parent_pid: int) -> NoReturn:
        code = 1
        try:
            self._leave(link)
            keep(request, far, supervisor_pid=parent_pid, token=self._token, warm=self._warm)
            code = 0
        except BaseException:  # noqa: BLE001  the top of a process: it must never return into the supervisor's loop
            traceback.print_exc()
        finally:
            os._exit(code)

    def _leave(self, link: socket.socket) -> None:
        """In the keeper: let go of everything by which the supervisor is known to others."""
        self._selector.close()
        self._engine.close()
        os.close(self._parent)
        link.close()
        for other in self._kept.values():
            other.link.close()

    def _on_keeper(self, kept: _Kept) -> None:
        try:
            data = kept.link.recv(_READ_BYTES)
        except OSError:
            data = b""
        for line in kept.lines.feed(data):
            report = from_json(Report, line, where="report")
            if report.state is not None and report.state.ended:
                kept.end = report
            else:
                self._send(report)
        if not data:
            self._bury(kept)

    def _bury(self, kept: _Kept) -> None:
        """The keeper has gone, so the job's end can be told: nothing of it is left.

        If the keeper had not told the end, what its job left behind is ours now.
        """
        self._selector.unregister(kept.link)
        kept.link.close()
        del self._kept[kept.request.id]
        with contextlib.suppress(ChildProcessError):
            os.waitpid(kept.pid, 0)
        if kept.end is not None:
            self._send(kept.end)
            return
        why = "its keeper ended before it: see supervisor.log"
        try:
            end_children(_END_S, spare=[other.pid for other in self._kept.values()])
        except EngineError as error:
            why = f"{why}; {error}"
        self._send(Report(kind="state", state=lost(kept.request, why)))

    def _end_all(self) -> None:
        for kept in self._kept.values():
            kept.link.close()
        deadline = time.monotonic() + _KEEPERS_S
        while self._keepers_alive() and (rest := deadline - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, rest)
        end_children(_END_S)

    def _keepers_alive(self) -> bool:
        reap()
        return any(os.path.exists(f"/proc/{kept.pid}") for kept in self._kept.values())

    def _send(self, report: Report) -> None:
        self._outgoing += line_of(report)
        self._flush()

    def _flush(self) -> None:
        """Send what the engine takes now; it may be slow to poll, and must not hold up the watch over its jobs."""
        try:
            sent = self._engine.send(self._outgoing) if self._outgoing else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._over = True
            return
        del self._outgoing[:sent]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
        self._selector.modify(self._engine, wanted, self._on_engine)


def main(socket_number: int, engine_pid: int, token: str, preload: Sequence[str]) -> None:
    """Entry of the process; ``LocalEngine`` starts it."""
    name_process("ws-supervisor")
    become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    engine = socket.socket(fileno=socket_number)
    Supervisor(engine, engine_pid=engine_pid, token=token).run(preload)
    sys.stderr.flush()
    os._exit(0)
