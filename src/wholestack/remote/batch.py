"""A batch of commands for one host, and what came back: the values that every way of reaching a host shares.

All outputs are untrusted bytes: capped in size, decoded with replacement, never evaluated.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.remote.host import Host

Ending = Literal["ended", "timed_out", "hung", "needs_root", "not_run"]
"""``ended`` by itself; ``timed_out`` and killed; ``hung``: killed and still there (state D); ``needs_root``: not
started, since it needs root and there is none; ``not_run``: nothing of it came back."""
Trouble = Literal[
    "unreachable", "closed", "jump", "name", "refused", "host_key", "auth", "key_file", "lost", "timed_out", "protocol"
]
"""Why a host gave no or not all outputs. ``closed``: it, or a firewall, says that nothing listens there; ``jump``: the
jump host before it does not answer, which says nothing of the host; ``name``: its name does not resolve;
``key_file``: the private key here cannot be used; ``protocol``: it answered something that is not ours."""


MAX_SHELL_BYTES = 100_000
"""Of one command: Linux takes 131,072 bytes as one argument."""
_NAME = re.compile(r"[a-z0-9_]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Record):
    """One command of a batch.

    Raises:
        InputError: a field is out of its bounds.
    """

    name: str
    """Unique in the batch: lower-case letters, digits, ``_``."""
    shell: str
    """Run by ``sh -c`` with ``LC_ALL=C``, no standard input."""
    limit_s: float = 10.0
    """Wall seconds until it is killed."""
    max_bytes: int = 1_000_000
    """Standard output beyond this is thrown away and marked."""
    needs_root: bool = False
    """Not started unless the session is root (or ``sudo -n`` was allowed and works)."""
    once: bool = False
    """It changes something: where the connection broke while it may have been at work, it is not sent again."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"command name {self.name!r} is not of lower-case letters, digits and _")
        if "\0" in self.shell or len(self.shell.encode()) > MAX_SHELL_BYTES:
            raise InputError(f"command {self.name} has a NUL or more than {MAX_SHELL_BYTES:,} bytes")
        if not (math.isfinite(self.limit_s) and self.limit_s > 0):
            raise InputError(f"command {self.name}: limit_s is {self.limit_s}, must be above 0")
        if self.max_bytes < 0:
            raise InputError(f"command {self.name}: max_bytes is {self.max_bytes}, must be at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one command gave."""

    name: str
    """Name of the command."""
    stdout: bytes = b""
    """Standard output, at most ``max_bytes``."""
    stderr: bytes = b""
    """The first 2,000 bytes of standard error."""
    exit_status: int | None = 0
    """As the shell has it (127: no such command, 128 + n: ended by signal n); ``None`` unless it ``ended``."""
    ending: Ending = "ended"
    truncated: bool = False
    """Whether more than ``max_bytes`` came."""
    seconds: float = 0.0
    """Wall time on the host."""

    @property
    def text(self) -> str:
        """Standard output as text: UTF-8, wrong bytes replaced, line ends made one."""
        return self.stdout.decode(errors="replace").replace("\r\n", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one host gave."""

    host: Host
    outputs: Mapping[str, Output] = field(default_factory=dict)
    """By name of the command; every command of the batch is in it."""
    trouble: Trouble | None = None
    """Why not everything came, if so."""
    detail: str = ""
    """One line on the trouble, for a person."""
    seconds: float = 0.0
    """Wall time of the round trip."""
    attempts: int = 1
    """Connections tried."""


class Remote(Protocol):
    """A way to reach hosts. Built in: :mod:`~wholestack.remote.ssh`, ``local``, ``simulated``."""

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """Run a batch on one host in one round trip.

        Never raises for what a host does: that is ``Reply.trouble``. Outputs that arrived before a connection was
        lost are kept. Cancelling ends the connection.

        Args:
            host: Where.
            commands: The batch; commands run side by side.
            deadline_s: Wall seconds for the whole round trip; what has arrived by then counts.
        """
        ...

    async def close(self) -> None:
        """Let go of what is kept between runs."""
        ...
