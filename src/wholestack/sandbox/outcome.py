"""How a run ended, and what came out of it."""

import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from wholestack.errors import RecordError
from wholestack.record import Record


class Isolation(StrEnum):
    """What stood between the program and this machine."""

    BUBBLEWRAP = "bubblewrap"
    """Own namespaces of users, processes, network, mounts, IPC, host name and cgroups, an empty file system with an
    interpreter in it, a system call filter, an unprivileged user."""
    PROCESS = "process"
    """A plain process with resource limits: it sees this machine's files and network. Only for code that is trusted."""


class Ending(StrEnum):
    """Why the program ran no longer."""

    EXITED = "exited"
    """By itself; ``exit_code`` is 128 + n where signal n ended it, and may be that where the program says so."""
    TIMED_OUT = "timed_out"
    OUTPUT_EXCEEDED = "output_exceeded"
    MEMORY_EXCEEDED = "memory_exceeded"
    """All its processes together; one alone gets a ``MemoryError`` first."""
    FILES_EXCEEDED = "files_exceeded"
    """Too many files; too many bytes are an ``OSError`` first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Record):
    """What one run gave. All of it was made by untrusted code: bytes to look at, never to evaluate."""

    isolation: Isolation
    ending: Ending
    exit_code: int | None
    """``None`` when it was ended from outside."""
    stdout: bytes
    """As much as came before the end, at most ``Limits.output_bytes``."""
    stderr: bytes
    result: bytes
    """What the program wrote to its result channel."""
    seconds: float
    """From the start of the sandbox to the proof that nothing is left of it."""
    peak_bytes: int
    """Most resident memory of all processes that was seen; 0 if the run was too short to look."""

    @property
    def ok(self) -> bool:
        """Whether the program ended by itself, with exit code 0."""
        return self.ending is Ending.EXITED and self.exit_code == 0

    def value(self, kind: Any = Any) -> Any:
        """The JSON value in the result channel.

        Args:
            kind: A type that the value must have, of those that msgspec reads.

        Raises:
            RecordError: there is none, it is cut off, not JSON, more than one, or of another type: the program may
                have written there what it wanted.
        """
        if not self.result:
            raise RecordError(f"the program gave no result ({self.describe()})")
        try:
            return msgspec.json.decode(self.result, type=kind)
        except msgspec.ValidationError as error:
            raise RecordError(f"the program's result is not what was asked for: {error} ({self.describe()})") from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise RecordError(f"the program's result is not one JSON value: {error} ({self.describe()})") from error

    def describe(self) -> str:
        """The ending in a few words."""
        if self.ending is Ending.EXITED:
            how = f"exit code {self.exit_code}"
            if self.exit_code is not None and self.exit_code - 128 in signal.valid_signals():
                how += f", as by signal {self.exit_code - 128}"  # a program can end with such a number by itself
        else:
            how = f"ended from outside: {self.ending.replace('_', ' ')}"
        return f"{how}, after {self.seconds:.2f} s"
