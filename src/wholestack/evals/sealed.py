"""Folders of what a model gave, line by line: a plan that names the key, and lines that are bound to it.

Scores, written texts and the verdicts on them are kept alike. A **plan** is written first; its key is the hash of
everything that decides the lines. Every **line** carries a seal, the hash of the key and of what stands in the line,
and has a place of its own (an item, a text of a question): a line of another folder, one with a digit changed, or one
that is there twice is never taken, and named with what to do.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Generic, TypeVar

from wholestack.errors import InputError, RecordError, RunDirectoryError
from wholestack.evals.reading import read_file
from wholestack.journal import JournalWriter, iterate_journal, write_atomic
from wholestack.record import Record, digest, from_json, to_json

P = TypeVar("P", bound=Record)
L = TypeVar("L", bound=Record)

Watch = Callable[[int, int], None]
"""Told how many lines are there, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedKind(Generic[P, L]):
    """One kind of such folders: how its files are called and what a user is told about them.

    The Record of a plan has a field ``key``, that of a line a field ``seal`` with an empty default.
    """

    plan_file: str
    """File of the plan."""
    plan: type[P]
    """Its Record."""
    lines_file: str
    """File of the lines."""
    line: type[L]
    """Their Record."""
    called: str
    """What a folder is, for instance ``scoring``."""
    holds: str
    """What its lines are, for instance ``scores``."""
    again: str
    """What happens when a line is missing, for instance ``its item is scored again``."""
    command: str
    """What makes such folders."""

    def begin(self, folder: Path, plan: P, *, save: Callable[[], None] = lambda: None) -> None:
        """Write what is to be done, or see that the folder is about just that.

        Args:
            folder: An existing folder.
            plan: What is to be done.
            save: Called before the plan is written, for what must be there when the plan is.

        Raises:
            RunDirectoryError: the folder is about something else, or has lines without a plan.
        """
        path = folder / self.plan_file
        if path.exists():
            there, wanted = _key(self.read_plan(folder)), _key(plan)
            if there != wanted:
                raise RunDirectoryError(
                    f"{folder}: is the {self.called} {there}, not {wanted}", remedy="choose another --out"
                )
            return
        if (folder / self.lines_file).exists():
            raise RunDirectoryError(
                f"{folder}: has {self.holds} and no {self.plan_file}", remedy="move it away or choose another --out"
            )
        save()
        write_atomic(path, to_json(plan, indent=2))

    def is_in(self, folder: Path) -> bool:
        """Whether a folder is of this kind."""
        return (folder / self.plan_file).is_file()

    def read_plan(self, folder: Path) -> P:
        """The plan of a folder.

        Raises:
            InputError: it has none.
            RecordError: it cannot be read or does not decode.
        """
        path = folder / self.plan_file
        if not path.is_file():
            raise InputError(
                f"{folder}: not a result of {self.command} (no {self.plan_file})", remedy="name its folder"
            )
        try:
            raw = read_file(path)
        except InputError as error:
            raise RecordError(error.message) from error
        return from_json(self.plan, raw, where=str(path))

    def read_lines(self, folder: Path, key: str, place: Callable[[L], Hashable | None]) -> list[L]:
        """The acknowledged lines, seals taken off; each bound to the key, in a place of its own.

        Args:
            folder: The folder.
            key: What they must be bound to.
            place: Where a line belongs; ``None`` where it does not.

        Raises:
            RecordError: a line is damaged, doubled, or from elsewhere; names it.
        """
        path = folder / self.lines_file
        return sealed_lines(
            path,
            self.line,
            key,
            place,
            called=self.called,
            remedy=f"remove that line, and {self.again}: sed -i {{line}}d {quote(str(path))}",
        )

    @contextmanager
    def writer(self, folder: Path, key: str) -> Iterator[Callable[[Iterable[L]], None]]:
        """Appends lines, sealed; those of one call share a write, and on its return are on the disk."""
        with JournalWriter(folder / self.lines_file, self.line) as journal:
            yield lambda lines: journal.extend([sealed(line, key) for line in lines])


def sealed_lines(
    path: Path, kind: type[L], key: str, place: Callable[[L], Hashable | None], *, called: str, remedy: str
) -> list[L]:
    """Lines of a file, seals taken off; each bound to the key, in a place of its own.

    Args:
        path: The file.
        kind: Record of its lines.
        key: What they must be bound to.
        place: Where a line belongs; ``None`` where it does not.
        called: What they are lines of.
        remedy: What to do about a line that is not sound; its number stands for ``{line}``.

    Raises:
        RecordError: a line is damaged, doubled, or from elsewhere; names it.
    """
    found: dict[Hashable, L] = {}
    for number, line in enumerate(iterate_journal(path, kind), start=1):
        where = place(line)
        if where is None or where in found or sealed(line, key) != line:
            raise RecordError(
                f"{path}:{number}: is damaged, doubled, or from another {called}",
                remedy=remedy.replace("{line}", str(number)),
            )
        found[where] = _unsealed(line)
    return list(found.values())


def sealed(line: L, key: str) -> L:
    """A line with its seal, whatever seal it had."""
    bare = _unsealed(line)
    return replace(bare, seal=digest(key, bare))  # type: ignore[type-var]  # a Record is a dataclass


def _unsealed(line: L) -> L:
    return replace(line, seal="")  # type: ignore[type-var]


def _key(plan: Record) -> str:
    return str(plan.key)  # type: ignore[attr-defined]
