"""Bubblewrap: namespaces, an empty root, a system call filter, and proof that this machine grants them.

Source: bwrap(1) of version 0.8.
"""

import os
import shutil
from pathlib import Path

from wholestack.errors import SandboxError
from wholestack.sandbox.container import Start, file_of, interpreter_arguments, unprivileged_user
from wholestack.sandbox.image import WORK, devices
from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Isolation
from wholestack.sandbox.system_calls import filter_program

INNER_USER = 65534
_CONFINED = (
    "--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
    "--unshare-cgroup-try", "--uid", str(INNER_USER), "--gid", str(INNER_USER), "--hostname", "sandbox",
    "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
)  # fmt: skip
_LIFE_LINE = """
exec {kept}<&0 </dev/null
{{ read -r _ <&{kept}; kill -KILL 0; }} &
"$@" {kept}<&-
code=$?
{{ kill -KILL $!; wait $!; }} 2>/dev/null
test $code -lt 128 || kill -KILL 0
exit $code
"""
"""Bubblewrap binds itself to its parent, but killed while it starts it leaves its first process behind, blocked for
ever and bound to nobody. So the process group that all of them have until then is ended when it dies, and by one that
waits beside it when the owner's end of a pipe is closed. A shell can name file descriptors of one digit only, and says
of the one that it ended "Killed", which is no word of the program's."""
_REAPER = 1
"""The first process inside is bubblewrap's own and counts as the user's."""
_REMEDY = "install Debian's package bubblewrap, 0.8 or later"


class Bubblewrap:
    """Runs programs in namespaces of their own.

    Args:
        image: Root of the inner file system.

    Raises:
        SandboxError: there is none, or no filter for this processor.
    """

    isolation = Isolation.BUBBLEWRAP
    needs_folder = False

    def __init__(self, image: Path) -> None:
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxError("bwrap is not installed", remedy=_REMEDY)
        self._program = found
        self._image = image
        self._filter = filter_program(os.uname().machine)

    def start(
        self, *, limits: Limits, letter: int, status: int, channel: int, hash_seed: int | None, folder: Path | None
    ) -> Start:
        """See :class:`~wholestack.sandbox.container.Container`."""
        system_calls = file_of(self._filter)
        view = ["--ro-bind", str(self._image), "/"]
        for device in devices():
            view += ["--dev-bind", device, device]
        view += ["--size", str(limits.disk_bytes), "--tmpfs", WORK, "--chdir", WORK]
        seed = [] if hash_seed is None else ["--setenv", "PYTHONHASHSEED", str(hash_seed)]
        inherited = [system_calls, letter, status, channel]
        kept = min({*range(3, 10)} - {*inherited})
        return Start(
            command=[
                *("/bin/sh", "-c", _LIFE_LINE.format(kept=kept), "sh"),
                *(self._program, *_CONFINED, *seed, *view),
                *("--seccomp", str(system_calls), "--json-status-fd", str(status), "--"),
                *interpreter_arguments(letter, channel, others=_REAPER),
            ],
            inherited=inherited,
            only_for_start=[system_calls],
            user=unprivileged_user(),
        )

    def holds_too_much(self, pid: int, limits: Limits, folder: Path | None) -> bool:
        """See :class:`~wholestack.sandbox.container.Container`. Bytes are capped by the file system itself."""
        try:
            held = os.statvfs(f"/proc/{pid}/root{WORK}")
        except OSError:
            return False  # it has just ended
        return held.f_files - held.f_ffree - 1 > limits.files
