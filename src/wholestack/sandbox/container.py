"""What both kinds of isolation have in common: how the inner interpreter is started, and as whom."""

import fcntl
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from wholestack.sandbox.image import INTERPRETER
from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Isolation

_FIRST_USER, _USERS = 0x70000000, 0x0F000000
"""Numbers that no account has. One is drawn for each run, so that no two runs share an owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How to start one run."""

    command: Sequence[str]
    """Its standard input is the life line: when that ends, the owner has gone or wants the end, and all must end."""
    inherited: Sequence[int]
    """File descriptors that the started process keeps."""
    only_for_start: Sequence[int] = ()
    """Those of them that the caller closes after the start."""
    environment: Mapping[str, str] = field(default_factory=dict)
    user: int | None
    """Number of the user and group that it becomes; ``None`` to stay who we are."""


class Container(Protocol):
    """A way to start the inner interpreter so that it can be ended with all that it starts."""

    isolation: Isolation
    needs_folder: bool
    """Whether the program works in a folder of this machine, for the container has none of its own."""

    def start(
        self, *, limits: Limits, letter: int, status: int, channel: int, hash_seed: int | None, folder: Path | None
    ) -> Start:
        """Prepare one run.

        Args:
            limits: Caps; those that the container itself can set are set.
            letter: File descriptor from which the first code inside reads what it becomes.
            status: File descriptor to which the container writes JSON documents: ``{"child-pid": ...}``, the process
                whose end is the end of all others, and at last ``{"exit-code": ...}``.
            channel: File descriptor that the program gets for its result.
            hash_seed: Of the inner interpreter; ``None`` for a random one.
            folder: An empty folder of this machine, if one is needed.
        """
        ...

    def holds_too_much(self, pid: int, limits: Limits, folder: Path | None) -> bool:
        """Whether the files of the run are over a limit that nothing else keeps; ``pid`` is its first process."""
        ...


def interpreter_arguments(letter: int, channel: int, *, others: int, interpreter: str = INTERPRETER) -> list[str]:
    """The inner interpreter's command line: no site, no user's site, nothing from the current folder.

    Args:
        letter: File descriptor of what is to come.
        channel: File descriptor for the result.
        others: How many processes the kernel counts as this user's, and that are not the program's.
        interpreter: Where it lies, as the container sees it.
    """
    numbers = map(str, (letter, channel, others))
    return [interpreter, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", _inside(), *numbers]


def unprivileged_user() -> int | None:
    """Who a run belongs to, outside: a number of nobody's if we are root and may choose, else ourselves."""
    return _FIRST_USER + secrets.randbelow(_USERS) if os.geteuid() == 0 else None


def file_of(content: bytes) -> int:
    """A file without a name that holds this, at its start."""
    descriptor = beside_the_standard_streams(os.memfd_create("wholestack"))
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def beside_the_standard_streams(descriptor: int) -> int:
    """The same file under a number from 3 on: in the started process the lower ones become its standard streams."""
    if descriptor > 2:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


@cache
def _inside() -> str:
    return files("wholestack.sandbox").joinpath("inside.py").read_text()
