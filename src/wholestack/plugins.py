"""What installed packages add: objects behind entry points, and their mistakes in one line that names the package.

One group a kind of thing, ``wholestack.<package>_<things>``: ``wholestack.evals_layouts`` (classes of layouts),
``wholestack.evals_backends`` (lines of the table of backends), ``wholestack.evals_checkers`` (functions that judge an
answer), ``wholestack.health_checks`` (tuples of checks), ``wholestack.health_fixes`` (tuples of fixes),
``wholestack.health_owners`` (tuples of owners), ``wholestack.codetasks_kinds`` (classes of kinds of question).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from wholestack.errors import InputError, WholestackError

_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry point of one installed package; nothing of it is imported before :meth:`load`."""

    entry: EntryPoint
    """Where it is."""

    @property
    def package(self) -> str:
        """Name and version of the package that offers it."""
        return f"{self.entry.dist.name} {self.entry.dist.version}" if self.entry.dist else "unknown"

    def load(self, kind: type | None = None) -> Any:
        """The object.

        Args:
            kind: Class that it must be of; by default any.

        Raises:
            InputError: it cannot be imported, or is something else.
        """
        with self.blamed("cannot be loaded"):
            found = self.entry.load()
        if kind is not None and not isinstance(found, kind):
            raise self.fault(f"{self.entry.value} is a {type(found).__name__}, not a {kind.__name__}")
        return found

    @contextmanager
    def blamed(self, doing: str) -> Iterator[None]:
        """Around a call of its code: whatever it raises is one line that names it.

        Raises:
            InputError: in place of any exception that is not one of ours.
        """
        try:
            yield
        except WholestackError:
            raise
        except Exception as error:
            said = " ".join(str(error).split())[:_LONGEST]
            raise self.fault(f"{doing}: {type(error).__name__}{': ' if said else ''}{said}") from error

    def fault(self, what: str) -> InputError:
        """An error that names the plug-in and its package."""
        return InputError(
            f"plug-in {self.entry.name!r} of package {self.package} ({self.entry.group}): {what}",
            remedy="mend or uninstall that package",
        )


def installed(group: str) -> tuple[Plugin, ...]:
    """The plug-ins of a group, by name, whatever the order in which they were installed."""
    found = sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))
    return tuple(Plugin(entry=entry) for entry in found)
