"""A plain process with resource limits, for machines that grant no namespaces. It keeps nobody out who wants out.

Between us and the program stands a guard: a subreaper, so that whatever the program starts belongs to the guard
however it hides, and is ended with it.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from wholestack.processes import become_subreaper, end_children
from wholestack.sandbox.container import Start, interpreter_arguments, unprivileged_user
from wholestack.sandbox.image import INTERPRETER
from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Isolation

_END_S = 10.0
_GUARD = "from wholestack.sandbox.plain import guard; guard()"


class PlainProcess:
    """Runs programs as ordinary processes, of another user if we are root.

    Args:
        image: Root of the copied interpreter, which has no packages.
    """

    isolation = Isolation.PROCESS
    needs_folder = True

    def __init__(self, image: Path) -> None:
        self._image = image

    def start(
        self, *, limits: Limits, letter: int, status: int, channel: int, hash_seed: int | None, folder: Path | None
    ) -> Start:
        """See :class:`~wholestack.sandbox.container.Container`."""
        user = unprivileged_user()
        if user is not None and folder is not None:
            os.chown(folder, user, user)
        interpreter = f"{self._image}{INTERPRETER}"
        program = interpreter_arguments(letter, channel, others=_processes_of(user), interpreter=interpreter)
        # Arguments of guard(), which has its own command line.
        whose = [*map(str, (status, letter, channel, user or "")), str("" if hash_seed is None else hash_seed)]
        return Start(
            command=[sys.executable, "-c", _GUARD, *whose, *program],
            inherited=[letter, status, channel],
            environment={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            user=None,
        )

    def holds_too_much(self, pid: int, limits: Limits, folder: Path | None) -> bool:
        """See :class:`~wholestack.sandbox.container.Container`; looks at no more than the limit allows."""
        files = held = 0
        for place, folders, names in os.walk(folder or ""):
            files += len(folders) + len(names)
            for name in names:
                try:
                    held += os.lstat(os.path.join(place, name)).st_blocks * 512
                except OSError:
                    continue
            if files > limits.files or held > limits.disk_bytes:
                return True
        return False


def _processes_of(user: int | None) -> int:
    """Threads that are running as us; a user drawn for the run has none."""
    if user is not None:
        return 0
    count = 0
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and process.stat().st_uid == os.geteuid():
                count += len(os.listdir(process / "task"))
        except OSError:
            continue
    return count


def guard() -> None:
    """Start the program of the command line, wait for its end or our owner's, then end all that it started."""
    status, letter, channel, command = *map(int, sys.argv[1:4]), sys.argv[6:]
    user, hash_seed = sys.argv[4], sys.argv[5]
    become_subreaper()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    owner = os.pidfd_open(os.getppid())
    as_user: dict[str, Any] = {"user": int(user), "group": int(user), "extra_groups": []} if user else {}
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        pass_fds=[letter, channel],
        env={"PYTHONHASHSEED": hash_seed} if hash_seed else {},
        start_new_session=True,
        **as_user,
    )
    os.close(letter)
    os.close(channel)
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    _say(status, {"child-pid": program.pid})
    ended = os.pidfd_open(program.pid)
    select.select([0, owner, ended], [], [])
    exit_code = None
    if select.select([ended], [], [], 0.0)[0]:
        code = os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1])
        exit_code = 128 - code if code < 0 else code
    end_children(_END_S)
    _say(status, {"exit-code": exit_code})


def _say(status: int, document: dict[str, Any]) -> None:
    os.write(status, json.dumps(document).encode() + b"\n")
