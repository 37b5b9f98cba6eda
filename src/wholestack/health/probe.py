"""Probes: one command, the formats that its output may have, and a pure reader for each.

Several checks may rest on one probe: its output is fetched once and read once. Readers are plug-ins that meet hostile
text: whatever exception one raises, the output was not understood, and that is all that it costs.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wholestack.finding import SkipReason
from wholestack.remote.batch import Command, Output

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)

NO_SUCH_COMMAND = 127
FORBIDDEN = re.compile(
    r"operation not permitted|permission denied|must be (?:run as )?root|access denied", re.IGNORECASE
)


class UnreadableError(Exception):
    """An output that cannot be understood: the verdict is ``unknown``. The one line says why."""


class NotThereError(Exception):
    """The thing is not on this host: no verdict, the check is skipped (or fails where it was expected)."""

    def __init__(self, reason: SkipReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Generic[F_co]):
    """One layout of an output."""

    name: str
    """As a person would ask for it, for instance ``nvidia-smi -q -x``."""
    matches: Callable[[str], bool]
    """Whether a text looks like it; cheap, looks at the beginning."""
    read: Callable[[str], F_co]
    """Text to facts. Raises :class:`UnreadableError` for what it cannot understand, NotThereError for "none here"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Generic[F_co]):
    """A command and how to read it."""

    command: Command
    formats: tuple[Format[F_co], ...]
    """The command's own first; then those of saved outputs and other tools that hold the same facts."""
    absent: Callable[[Output], str] = lambda _: ""
    """Says that the tool is there but its subject is not ("no devices were found"); empty if it is."""
    failure: Callable[[Output], str] = lambda output: f"exit status {output.exit_status}" if output.exit_status else ""
    """Why the output cannot be trusted although the command ended; empty if it can. Exit status is not always it:
    ``systemctl is-active`` ends with 3 for a stopped unit, ``nvidia-smi`` with 1 for an infoROM warning."""

    with_stderr: bool = False
    """Whether standard error is part of what is read: some tools tell there, and only there, what matters."""
    option: str = ""
    """Name of a profile's option that the command needs as the shell variable of that name in capitals; without it
    the probe is not sent and its checks are skipped."""

    @property
    def name(self) -> str:
        """Name of the command."""
        return self.command.name

    def read(self, output: Output) -> F_co:
        """Facts of one output.

        Raises:
            NotThereError: tool or subject is not on the host.
            UnreadableError: cut, hung, failed, empty where it must not be, or in no known format.
        """
        try:
            self._refuse_unfinished(output)
        except (UnreadableError, NotThereError):
            raise
        except Exception as error:
            raise UnreadableError(f"how the command ended cannot be told: {tripped(error)}") from error
        if self.with_stderr and output.stderr.strip():
            return self.read_text(f"{output.text}\n{output.stderr.decode(errors='replace')}")
        return self.read_text(output.text)

    def read_text(self, text: str) -> F_co:
        """Facts of a saved output.

        Raises:
            NotThereError, UnreadableError: see :meth:`read`.
        """
        if not text.strip():
            raise UnreadableError("the output is empty")
        for form in self.formats:
            if _guarded(form, form.matches, text):
                return _guarded(form, form.read, text)
        known = ", ".join(form.name for form in self.formats)
        raise UnreadableError(f"in none of the known formats ({known}); begins {text.strip()[:60]!r}")

    def knows(self, text: str) -> bool:
        """Whether one of the formats looks like this text."""
        for form in self.formats:
            try:
                if _guarded(form, form.matches, text):
                    return True
            except (UnreadableError, NotThereError):
                continue
        return False

    def _refuse_unfinished(self, output: Output) -> None:
        if output.ending == "needs_root":
            raise UnreadableError("needs root")
        if output.ending == "not_run":
            raise UnreadableError("nothing came back")
        if output.ending != "ended":
            raise UnreadableError(f"no answer within {self.command.limit_s:g} s ({output.ending.replace('_', ' ')})")
        if output.exit_status == NO_SUCH_COMMAND:
            program = self.command.shell.removeprefix("command -v ").split()[0]
            raise NotThereError("not_installed", f"{program} is not installed")
        if detail := self.absent(output):
            raise NotThereError("not_expected", detail)
        if output.truncated:
            raise UnreadableError(f"cut at {self.command.max_bytes:,} bytes")
        if why := self.failure(output):
            said = output.stderr.decode(errors="replace").strip().splitlines()
            if any(FORBIDDEN.search(line) for line in said):
                raise UnreadableError(f"needs root: {said[0][:200]}")
            raise UnreadableError(f"{why}: {said[0][:200]}" if said else why)


def tripped(error: Exception) -> str:
    """What a plug-in raised, in one line: ``csv.Error: field larger than field limit (131072)``."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.lstrip('_')}.{kind.__name__}"
    return f"{name}: {' '.join(str(error).split())[:200]}".removesuffix(": ")


def _guarded(form: Format[Any], answer: Callable[[str], F], text: str) -> F:
    """A reader that trips over foreign text has not understood it; that is never ``ok`` and never a crash."""
    try:
        return answer(text)
    except (UnreadableError, NotThereError):
        raise
    except Exception as error:  # a list of what readers may raise is never complete: csv.Error, ParseError, ...
        raise UnreadableError(f"not as {form.name} writes it: {tripped(error)}") from error
