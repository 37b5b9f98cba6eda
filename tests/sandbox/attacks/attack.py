"""An attack, and how its success is judged: from outside, by what happened to this machine.

A program finds ``ARGUMENT`` (:meth:`Scene.argument`), ``RESULT``, and the words of :data:`PRELUDE`. It calls ``mark()``
first where its processes are looked at: the mark is their name in ``/proc/PID/comm``, inherited over forks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.sandbox.attacks.scene import Scene
from wholestack.sandbox import Limits

LIMITS = Limits(
    wall_s=2.0, memory_bytes=96 << 20, processes=8, file_bytes=4 << 20, disk_bytes=8 << 20, files=100,
    output_bytes=100_000, open_files=32,
)  # fmt: skip

PRELUDE = """
def _machine():
    import ctypes, os
    calls = ARGUMENT["calls"]
    libc = ctypes.CDLL(None, use_errno=True)
    def call(name, *arguments):
        answer = libc.syscall(calls[name], *[
            ctypes.c_long(each) if isinstance(each, int) else each for each in arguments
        ])
        if answer < 0:
            raise OSError(ctypes.get_errno(), name)
        return answer
    def mark():
        libc.prctl(15, ARGUMENT["mark"].encode())
    return call, mark
call, mark = _machine()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One program and what it is after."""

    name: str
    tries: str
    """What it wants, in a few words."""
    program: str
    effect: Callable[[Scene], bool]
    """Whether it got it. Asked again and again while it runs, and once when its run is over."""
    root: bool = False
    """Whether it succeeds outside as root only."""
    x86_64: bool = False
    """Whether it is written for this processor."""
    reader: Callable[[bytes], Any] | None = None
    """How somebody careless reads the result, outside."""
    after: str = ""
    """A program that is run afterwards, in the same folder."""
    argument: dict[str, Any] = field(default_factory=dict)


def marked(scene: Scene) -> Iterator[Path]:
    """Folders in /proc of the living processes that carry the mark."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                alive = (process / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                if alive and (process / "comm").read_text().strip() == scene.mark:
                    yield process
            except OSError:
                continue


def told(scene: Scene) -> bool:
    """The secret is in what came out."""
    return scene.secret.encode() in scene.output


def stays(scene: Scene) -> bool:
    """A process is there when the run is over."""
    return scene.over and any(marked(scene))


def more_processes_than(most: int) -> Callable[[Scene], bool]:
    """So many at one time."""
    return lambda scene: len(list(marked(scene))) > most


def holds_descriptor(kind: str) -> Callable[[Scene], bool]:
    """A process has a file descriptor of this kind open."""

    def effect(scene: Scene) -> bool:
        return any(kind in link for process in marked(scene) for link in links(process))

    return effect


def holds_socket(table: str) -> Callable[[Scene], bool]:
    """A process has a socket that stands in this table of its network."""

    def effect(scene: Scene) -> bool:
        for process in marked(scene):
            words = (process / "net" / table).read_text().split()
            if any(link.startswith("socket:[") and link[8:-1] in words for link in links(process)):
                return True
        return False

    return effect


def links(process: Path) -> list[str]:
    """What the file descriptors of a process stand for."""
    found = []
    for descriptor in (process / "fd").iterdir():
        try:
            found.append(str(descriptor.readlink()))
        except OSError:
            continue
    return found


def left_namespace(kind: str) -> Callable[[Scene], bool]:
    """A process is in another namespace than its parent."""

    def effect(scene: Scene) -> bool:
        for process in marked(scene):
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if (process / "ns" / kind).readlink() != Path("/proc", parent, "ns", kind).readlink():
                return True
        return False

    return effect


def in_work_folder(holds: Callable[[Path], bool]) -> Callable[[Scene], bool]:
    """Something is so in the folder where a process works, wherever it is mounted."""

    def effect(scene: Scene) -> bool:
        return any(holds(process / "cwd") for process in marked(scene))

    return effect
