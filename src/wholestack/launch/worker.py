"""Inside the worker: between the fork and the job's own code. Nothing here returns.

A Python entry runs in a fork of the warm supervisor, so modules are there already; a command replaces the process.
State that was made before the fork is shared by all workers: whoever draws random numbers seeds them from the
arguments (numpy's global generator would be the same in each).
"""

import atexit
import contextlib
import importlib
import io
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from wholestack.launch.wire import Request
from wholestack.processes import MARK, die_with_parent, name_process

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

_COLD = (
    "import json, sys; start = json.loads(sys.argv[1]); sys.path[:] = start['path']; "
    "from wholestack.launch.worker import run_entry; run_entry(start['entry'], start['arguments'])"
)


def become_worker(
    request: Request, *, token: str, keeper_pid: int, stdout: int, stderr: int, gate: int, warm: bool
) -> NoReturn:
    """Leave the keeper's session, take the pipes as output, and run the job.

    Args:
        request: The job.
        token: The engine's token.
        keeper_pid: Parent, with which this process dies.
        stdout: Write end of a pipe.
        stderr: Write end of a pipe.
        gate: File that closes, by itself on exec, when this process has become the job.
        warm: Run an entry in this process; otherwise in a fresh interpreter.
    """
    os.setsid()
    name_process("ws-worker")
    die_with_parent(keeper_pid)
    _reset_signals()
    _redirect(stdout, stderr)
    _volunteer_for_the_kernel()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(request.limits.threads)))
    os.environ.update({**request.environment, MARK: f"{token}/{request.id}"})
    if request.command:
        run_command(request.command)
    if not warm:
        cold = {"path": sys.path, "entry": request.entry, "arguments": request.arguments}
        run_command((sys.executable, "-c", _COLD, json.dumps(cold)))
    os.close(gate)
    atexit._clear()  # what loaded modules registered belongs to the supervisor, and torch's part takes 30 ms
    _limit_threads(request.limits.threads)
    run_entry(request.entry, request.arguments)


def run_command(words: tuple[str, ...]) -> NoReturn:
    """Replace this process; if that cannot be, exit with 127 as a shell does."""
    try:
        os.execvp(words[0], words)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        os.write(2, f"cannot run {words[0]!r}: {reason}\n".encode())
        os._exit(127)


def run_entry(entry: str, arguments: Mapping[str, object]) -> NoReturn:
    """Call ``module:function`` and exit: 0, the code of a SystemExit, or 1 with a traceback on stderr."""
    sys.argv = [entry]
    code = _call(entry, arguments)
    _wait_for_own()
    atexit._run_exitfuncs()
    _flush()
    # Not sys.exit: it would unwind into the supervisor's frames and spend 0.1 s and more on taking torch apart.
    os._exit(code)


def _call(entry: str, arguments: Mapping[str, object]) -> int:
    module, _, path = entry.partition(":")
    try:
        function: object = importlib.import_module(module)
        for name in path.split("."):
            function = getattr(function, name)
        function(**arguments)  # type: ignore[operator]
    except SystemExit as stop:
        return _code(stop)
    except KeyboardInterrupt:
        # End by the signal, as Python does: whoever watches shall see that it came from outside.
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        return 130
    except BaseException:  # noqa: BLE001  the top of the worker: whatever the job raises ends in its stderr
        traceback.print_exc()
        return 1
    return 0


def _code(stop: SystemExit) -> int:
    """As the interpreter does: None is 0, a number is itself, anything else is printed and is 1."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _reset_signals() -> None:
    """As a shell starts a program; Python's own handler for Ctrl-C stays, for it makes a KeyboardInterrupt."""
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _redirect(stdout: int, stderr: int) -> None:
    empty = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((empty, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target, inheritable=True)
    for file in (empty, stdout, stderr):
        if file > 2:
            os.close(file)
    # New objects: the old ones believe that they write to the supervisor's seekable log. Line by line, or a killed
    # worker would take its last lines with it.
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), errors="backslashreplace", line_buffering=True)
        for number in (1, 2)
    )


def _volunteer_for_the_kernel() -> None:
    """If memory runs out, the kernel shall end a worker before it ends whoever watches it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def _limit_threads(threads: int) -> None:
    """torch read the environment before the fork, so it has to be told."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def _wait_for_own() -> None:
    """Threads and processes that the job started and did not call daemons: Python waits for them, so do we."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    processes = sys.modules.get("multiprocessing")
    for child in processes.active_children() if processes else ():
        if not child.daemon:
            child.join()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the job may have closed it
            stream.flush()
