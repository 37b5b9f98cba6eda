"""The engine on this machine: each job a process of its own, with limits, under a supervisor that outlives us briefly.

The engine is a thin client. A separate process (:mod:`wholestack.launch.supervisor`) owns the workers, so they end
within seconds also when this process is killed with SIGKILL. It is meant for one thread.
"""

import json
import os
import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from wholestack.errors import EngineError
from wholestack.launch.job import Job, JobState
from wholestack.launch.wire import STDERR_LOG, STDOUT_LOG, Lines, Order, Report, Request, line_of, lost, request_of
from wholestack.launch.worker import THREAD_VARIABLES
from wholestack.processes import MARK, check_token, end_leftovers, require_linux
from wholestack.record import from_json

__all__ = ["LocalEngine", "end_leftovers"]

_READ_BYTES = 1 << 16
_CLOSE_S = 10.0
_BOOT = (
    "import json, sys; boot = json.loads(sys.argv[1]); sys.path[:] = boot['path']; "
    "from wholestack.launch.supervisor import main; "
    "main(boot['socket'], boot['engine_pid'], boot['token'], boot['preload'])"
)


class LocalEngine:
    """Runs jobs on this machine; use as a context manager.

    Args:
        folder: Where ``supervisor.log`` goes; made if it is missing.
        preload: Modules that the supervisor imports once, while the caller goes on; jobs that are Python entries
            then start in milliseconds. They must not start threads when imported.
        token: Marks every process of this engine (see :func:`end_leftovers`); unique to the run, the same on resume.

    Raises:
        EngineError: not Linux, or the supervisor cannot be started.
        InputError: the token has other characters than letters, digits, '.', '-' and '_'.

    Example:
        >>> with LocalEngine(Path("run"), preload=["torch"], token="run-7") as engine:
        ...     engine.start(Job(name="one", entry="mypackage.train:run", folder=Path("run/one")))
        ...     states = engine.poll(1.0)
    """

    def __init__(self, folder: Path, *, preload: Sequence[str] = (), token: str) -> None:
        require_linux()
        self._folder = folder
        self._preload = tuple(preload)
        self._token = check_token(token)
        self._running: dict[str, Request] = {}
        self._known: set[str] = set()
        self._news: list[JobState] = []
        self._broken = ""
        self._closed = False
        self.notes: list[str] = []
        """What a user should know, for instance that workers start cold."""
        self._launch()

    @property
    def supervisor_pid(self) -> int | None:
        """Process id of the supervisor, ``None`` when there is none."""
        return self._process.pid if self._process else None

    def start(self, job: Job) -> str:
        """Hand over a job; see :class:`wholestack.launch.job.Engine`."""
        if self._closed:
            raise EngineError(f"job {job.name}: the engine is closed")
        self._raise_if_broken()
        if self._process is None:
            end_leftovers(self._token)
            self._launch()
        _make_folder(job.folder)
        _empty_logs(job.folder)
        job_id = f"{job.name}-{secrets.token_hex(4)}"
        request = request_of(job, job_id)
        self._known.add(job_id)
        self._running[job_id] = request
        self._order(Order(kind="start", job_id=job_id, request=request))
        return job_id

    def poll(self, timeout_s: float) -> list[JobState]:
        """States that are new; see :class:`wholestack.launch.job.Engine`.

        Raises:
            EngineError: a module could not be preloaded.
        """
        deadline = time.monotonic() + timeout_s
        self._read(0.0)
        while (
            not (self._news or self._broken) and self._process is not None and (rest := deadline - time.monotonic()) > 0
        ):
            self._read(rest)
        self._raise_if_broken()
        news, self._news = self._news, []
        return news

    def cancel(self, job_id: str) -> None:
        """Ask for a job's end; see :class:`wholestack.launch.job.Engine`."""
        if job_id not in self._known:
            raise EngineError(f"no job has the id {job_id!r}")
        if job_id in self._running:
            self._order(Order(kind="cancel", job_id=job_id))

    def close(self) -> None:
        """End every job, wait for that, and end the supervisor; a second time is harmless.

        Interrupted (a second Ctrl-C), it still ends everything, only without grace.
        """
        self._closed = True
        if self._process is None:
            return
        try:
            for job_id in list(self._running):
                self.cancel(job_id)
            deadline = time.monotonic() + self._close_s()
            while self._running and (rest := deadline - time.monotonic()) > 0:
                self._read(rest)
        finally:
            self._part()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _launch(self) -> None:
        _make_folder(self._folder)
        ours, theirs = socket.socketpair()
        boot = {
            "path": [path or os.getcwd() for path in sys.path],
            "socket": theirs.fileno(),
            "engine_pid": os.getpid(),
            "token": self._token,
            "preload": self._preload,
        }
        # Workers inherit our environment, as from a shell; one thread, so that no library starts a pool on import.
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), MARK: self._token}
        with theirs, (self._folder / "supervisor.log").open("ab") as log:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(boot)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[theirs.fileno()],
                env=environment,
                start_new_session=True,  # Ctrl-C in the terminal is for us to decide about
            )
        self._is_ready = False
        self._socket = ours
        self._lines = Lines()
        self._selector = selectors.DefaultSelector()
        self._selector.register(ours, selectors.EVENT_READ)

    def _read(self, timeout_s: float) -> None:
        """Take in what the supervisor says within a time."""
        if self._process is None or not self._selector.select(timeout_s):
            return
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        for line in self._lines.feed(data):
            self._take(from_json(Report, line, where="supervisor"))
        if not data:
            self._part()

    def _take(self, report: Report) -> None:
        self._is_ready = True
        if report.kind == "broken":
            self._broken = report.detail
        elif report.kind == "ready" and report.detail:
            self.notes.append(f"Python jobs start cold, each loading its modules anew: {report.detail}")
        if report.state is not None:
            self._news.append(report.state)
            if report.state.ended:
                self._running.pop(report.state.id, None)

    def _order(self, order: Order) -> None:
        try:
            self._socket.sendall(line_of(order))
        except ConnectionError:
            self._part()

    def _part(self) -> None:
        """Part with the supervisor, which ends everything; what had not ended by then is lost."""
        process, self._process = self._process, None
        if process is None:
            return
        self._selector.close()
        self._socket.close()
        if not self._is_ready:
            process.terminate()  # busy importing, it would notice our end late; it has no workers yet
        try:
            process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode != 0:
            end_leftovers(self._token)
        why = f"the supervisor ended with status {process.returncode}: see {self._folder / 'supervisor.log'}"
        self._news += [lost(request, why) for request in self._running.values()]
        self._running.clear()

    def _close_s(self) -> float:
        return _CLOSE_S + max((request.limits.grace_s for request in self._running.values()), default=0.0)

    def _raise_if_broken(self) -> None:
        if self._broken:
            raise EngineError(self._broken, remedy="install it, or take it out of preload")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(f"{folder}: cannot be made: {error.strerror}", remedy="choose another folder") from error


def _empty_logs(folder: Path) -> None:
    """Make the logs here, where a refusal can be told to whoever starts the job."""
    for name in (STDOUT_LOG, STDERR_LOG):
        try:
            (folder / name).write_bytes(b"")
        except OSError as error:
            raise EngineError(f"{folder / name}: cannot be written: {error.strerror}") from error
