"""A fix: which causes it mends, and the exact commands for one fault. Pure: it does not know who runs them, or when."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.remote.batch import Command

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}")
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9@_.:\\-]{0,200}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Record):
    """What is to be mended. Its texts come from a host: a fix takes nothing of it into a command unchecked."""

    host: str
    cause: str
    """Code."""
    part: str
    """``kind key``, for instance ``gpu 0000:9b:00``."""

    @property
    def key(self) -> str:
        """Of the part."""
        return self.part.partition(" ")[2]

    def gpu(self) -> str:
        """The GPU as ``nvidia-smi -i`` takes it.

        Raises:
            InputError: the part is none.
        """
        if not self.part.startswith("gpu ") or not _ADDRESS.fullmatch(self.key):
            raise InputError(f"{self.part!r} is no single GPU", remedy="nothing is done to all of them at once")
        return f"{self.key}.0"

    def place(self) -> str:
        """The mount point, quoted for a shell.

        Raises:
            InputError: the part is none.
        """
        if not self.part.startswith("mount /") or not self.key.isprintable():
            raise InputError(f"{self.part!r} is no mount")
        return shlex.quote(self.key)

    def unit(self) -> str:
        """The systemd unit, quoted for a shell.

        Raises:
            InputError: the part is none.
        """
        if not self.part.startswith("service ") or not _UNIT.fullmatch(self.key):
            raise InputError(f"{self.part!r} is no systemd unit")
        return shlex.quote(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class About(Record):
    """What a person is told of a fix."""

    name: str
    """Lower-case letters and ``_``."""
    says: str
    """What it does, in a few words."""
    causes: tuple[str, ...]
    """Codes of the causes that it mends."""
    source: str
    """Where its commands are documented."""
    settle_s: float = 0.0
    """How long the check may go on seeing the fault afterwards, at most ten minutes."""
    is_repeatable: bool = True
    """Whether running it twice does no more than once; else it is not run again where nobody knows whether it ran."""
    by_bmc: bool = False
    """Whether its commands go to the host's BMC: the host need not answer, so only a scheduler can say what runs."""
    interrupts: bool = True
    """Whether what runs on the host could be hurt; false only where the fault is that nothing can run."""


class Fix(Protocol):
    """One way to mend a fault; running it twice does no more than once, unless :class:`About` says otherwise."""

    @property
    def about(self) -> About:
        """What it is."""
        ...

    def commands(self, fault: Fault) -> tuple[Command, ...]:
        """The exact commands, run one after the other until one fails; each has its own limit.

        Raises:
            InputError: the fault's part is none that it can mend.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellFix:
    """A fix that is a few lines for the shell, as root."""

    about: About
    lines: Callable[[Fault], tuple[str, ...]]
    limit_s: float = 60.0
    """Of each."""

    def commands(self, fault: Fault) -> tuple[Command, ...]:
        """See :class:`Fix`."""
        return tuple(
            Command(
                name=f"{self.about.name}_{place}", shell=line, limit_s=self.limit_s, max_bytes=10_000, needs_root=True
            )
            for place, line in enumerate(self.lines(fault), 1)
        )
