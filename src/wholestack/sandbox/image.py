"""The file system of the inside: a copied interpreter, its standard library, the C libraries they load, nothing else.

A copy, not a view of this machine: so nothing of this machine needs to be hidden, an unprivileged user can read it
wherever the original lies (often below a home that is closed to others), and no installed package is in it, hence
none that could be imported or read for its answers. It is made once for an interpreter, about 75 MB, and shared by
all runs, which see it read-only.
"""

import contextlib
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from wholestack.errors import SandboxError
from wholestack.record import digest

INTERPRETER = "/python/bin/python3"
"""Where the interpreter lies inside."""
WORK = "/tmp"
"""The one folder that can be written to; a file system in memory is mounted there."""

_VERSION = 2
"""Part of the key: raise it when the layout changes."""
_LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3",
    "config-*", "sitecustomize.py", "usercustomize.py", "_tkinter*.so", "*.opt-[12].pyc",
)  # fmt: skip
_DEVICES = ("null", "full", "random", "urandom")
"""Not zero: a shared mapping of it is memory without a file name, see ``system_calls``."""
_NEEDED = re.compile(r"(?:=>\s*)?(/\S+)\s+\(0x[0-9a-f]+\)")
_LDD_LIMIT_S = 60.0


def devices() -> Iterator[str]:
    """Device nodes that a program may open."""
    return (f"/dev/{name}" for name in _DEVICES)


def default_folder() -> Path:
    """Where images are kept: the machine's cache for root, since other users must be able to read it; else the own."""
    return Path("/var/cache/wholestack") if os.geteuid() == 0 else Path.home() / ".cache" / "wholestack"


def image_of_this_interpreter(folder: Path) -> Path:
    """Make the image, or find the one that was made before.

    Args:
        folder: Where images are kept; made if missing.

    Returns:
        The root of the file system, owned by the caller.

    Raises:
        SandboxError: it cannot be written, the interpreter's parts are not found, or what lies there belongs to
            somebody else.
    """
    folder = folder.resolve()
    library, interpreter = Path(sysconfig.get_path("stdlib")), Path(sys.executable).resolve()
    target = folder / f"python-{sys.version_info.major}.{sys.version_info.minor}-{_key(library, interpreter)}"
    try:
        _make_folders(folder)
        _refuse_what_others_can_change(folder)
        if not target.exists():
            _build(library, interpreter, target)
        _refuse_what_others_can_change(target)
    except OSError as error:
        raise SandboxError(
            f"the sandbox's file system {target} cannot be made: {error.strerror or error}",
            remedy="make the folder writable, or name another",
        ) from error
    return target


def _make_folders(folder: Path) -> None:
    """Those that are missing, open to other users whatever the umask is."""
    for place in [*reversed(folder.parents), folder]:
        if not place.exists():
            place.mkdir(exist_ok=True)
            place.chmod(0o755)


def _refuse_what_others_can_change(place: Path) -> None:
    """Whoever can put another folder here would choose what the inside sees of this machine."""
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise SandboxError(f"{place} is not a folder: it is not trusted", remedy="remove it, or name another folder")
    if found.st_uid != os.geteuid():
        raise SandboxError(
            f"{place} belongs to user {found.st_uid}: it is not trusted", remedy="remove it, or name another folder"
        )
    if found.st_mode & 0o022:
        raise SandboxError(
            f"{place} can be written to by other users: it is not trusted", remedy="chmod go-w, or name another folder"
        )


def _key(library: Path, interpreter: Path) -> str:
    """Another interpreter, or one that was upgraded in place, gets an image of its own."""
    stamps = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in (interpreter, library / "os.py")]
    return digest(_VERSION, sys.version, stamps)


def _build(library: Path, interpreter: Path, target: Path) -> None:
    """Beside the target first; whoever is done first wins, the others throw theirs away."""
    draft = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        _fill(draft, library, interpreter)
        draft.chmod(0o755)
        with contextlib.suppress(FileExistsError):
            draft.rename(target)
    except OSError as error:
        if not target.exists():
            raise error from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(root: Path, library: Path, interpreter: Path) -> None:
    prefix = root / INTERPRETER.split("/")[1]
    place = prefix / sys.platlibdir / library.name
    (prefix / "bin").mkdir(parents=True)
    shutil.copyfile(interpreter, root / INTERPRETER.lstrip("/"))
    (root / INTERPRETER.lstrip("/")).chmod(0o755)
    shutil.copytree(library, place, ignore=_LEFT_OUT, ignore_dangling_symlinks=True)
    extensions = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    if not (place / "lib-dynload").exists() and extensions.exists():
        shutil.copytree(extensions, place / "lib-dynload", ignore=_LEFT_OUT)
    for source in _libraries([interpreter, *(place / "lib-dynload").glob("*.so")]):
        copy = root / str(source).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.resolve(), copy)
        copy.chmod(0o755)
    (root / WORK.lstrip("/")).mkdir(exist_ok=True)
    (root / "dev").mkdir()
    for device in devices():
        (root / device.lstrip("/")).touch()
    (root / "dev" / "shm").symlink_to("../tmp")
    _open_to_all(root)


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """The shared libraries and the loader that these programs need, by the names under which they look for them."""
    try:
        listing = subprocess.run(
            ["ldd", *map(str, programs)], capture_output=True, text=True, timeout=_LDD_LIMIT_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"the interpreter's shared libraries cannot be listed with ldd: {error}") from error
    return sorted({Path(found) for found in _NEEDED.findall(listing)})


def _open_to_all(root: Path) -> None:
    """Readable by the unprivileged user whatever the umask was."""
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o755)
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o777 | 0o444)
