"""Votes: who gave which label to which item, as arrays, and the file that they come from.

A file is a table with a header: columns ``item``, ``reviewer`` (or ``worker``, ``annotator``, ``rater``) and
``label``, in any order, others beside them; between the columns a comma, semicolon, tab or bar, as the header shows.
Text is UTF-8, UTF-16 with its mark, or else Windows-1252, which is said.

A reviewer has one vote an item. The same vote twice counts once; of different ones the later line counts, as of
somebody who changed their mind. Both are counted.
"""

import codecs
import csv
import io
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError
from wholestack.evals.reading import read_file
from wholestack.evals.statistics import Ints

ITEM, LABEL = "item", "label"
REVIEWER = ("reviewer", "worker", "annotator", "rater")
DELIMITERS = (",", ";", "\t", "|")
LONGEST_NAME = 1000
"""Characters of the name of an item, reviewer or label."""
LONGEST_ROW = 1_000_000
REMEDY = "a table with the columns item, reviewer and label, one vote a line"

REPEATED = "the same vote of the same reviewer was there before"
REPLACED = "the same reviewer gave another label later"
UNKNOWN_ITEM = "the item is not in the item file"
EMPTY = "item, reviewer or label is empty"
SHORT = "the line has too few columns"
LONG = f"a name of more than {LONGEST_NAME:,} characters"
_NOWHERE = {EMPTY: -1, LONG: -2, UNKNOWN_ITEM: -3}
_PIECE = 128  # rows that are few enough to stay in the processor's cache

CODE_PAGE = "the file is not UTF-8 and was read as Windows-1252"


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """``votes`` votes of ``reviewers`` reviewers on ``items`` items with ``labels`` labels."""

    items: tuple[str, ...]
    """Names, in the order in which they came; those without a vote among them if they were asked for."""
    reviewers: tuple[str, ...]
    labels: tuple[str, ...]
    """In the order of their text."""
    item: Ints
    """``[votes]``, place in ``items``; in rising order."""
    reviewer: Ints
    """``[votes]``"""
    label: Ints
    """``[votes]``"""
    ignored: dict[str, int] = field(default_factory=dict)
    """Lines that are no vote, by reason; those of :data:`CODE_PAGE` are all votes that were read so."""

    def __len__(self) -> int:
        return len(self.item)

    @property
    def counts(self) -> Ints:
        """``[items]``, votes on each."""
        return np.bincount(self.item, minlength=len(self.items))

    def take(self, places: npt.NDArray[np.bool_] | Ints) -> "Votes":
        """Some of the votes on the same items, by the same reviewers."""
        return Votes(
            items=self.items,
            reviewers=self.reviewers,
            labels=self.labels,
            item=self.item[places],
            reviewer=self.reviewer[places],
            label=self.label[places],
        )


def make_votes(
    rows: Iterable[tuple[str, str, str]],
    *,
    items: Collection[str] | None = None,
    labels: Sequence[str] = (),
) -> Votes:
    """Votes of rows ``(item, reviewer, label)``, later ones last.

    Args:
        rows: As said.
        items: Names of all items, where they are known: votes on others do not count, items without one are kept.
        labels: Labels that there are beside those that were given.
    """
    return _gathered([list(rows)], (0, 1, 2), items, labels, {})


def read_votes(path: Path, *, items: Collection[str] | None = None, labels: Sequence[str] = ()) -> Votes:
    """Read a table of votes.

    Raises:
        InputError: the file cannot be read, has no header with the three columns, or holds no vote.
    """
    text, is_code_page = _text(path, read_file(path, remedy=REMEDY))
    ignored: dict[str, int] = {}
    table = _Table(path, text, ((ITEM,), REVIEWER, (LABEL,)), REMEDY)
    item, reviewer, label = table.places
    votes = _gathered(table.pieces(), (item, reviewer, label), items, labels, ignored)
    if is_code_page:
        votes.ignored[CODE_PAGE] = len(votes)
    if not len(votes):
        why = ", ".join(f"{count:,} {reason}" for reason, count in votes.ignored.items())
        raise InputError(f"{path}: no vote in it{f' ({why})' if why else ''}", remedy=REMEDY)
    return votes


def read_table(path: Path, key: str, value: str) -> dict[str, str]:
    """Two columns of a table, of lines with the same key the last.

    Raises:
        InputError: the file cannot be read or has no such columns.
    """
    remedy = f"a table with the columns {key} and {value}"
    table = _Table(path, _text(path, read_file(path, remedy=remedy))[0], ((key,), (value,)), remedy)
    one, other = table.places
    return {
        row[one].strip(): row[other].strip() for rows in table.pieces() for row in rows if len(row) > max(one, other)
    }


class _Names(dict[str, int]):
    """Places of names as they are written; what a name is, is looked at once for each way of writing it."""

    def __init__(self, known: Iterable[str] = (), *, is_closed: bool = False) -> None:
        super().__init__()
        self.places = {name: place for place, name in enumerate(known)}
        self._is_closed = is_closed

    def __missing__(self, written: str) -> int:
        name = written.strip()
        if not name:
            place = _NOWHERE[EMPTY]
        elif len(name) > LONGEST_NAME:
            place = _NOWHERE[LONG]
        elif self._is_closed and name not in self.places:
            place = _NOWHERE[UNKNOWN_ITEM]
        else:
            place = self.places.setdefault(name, len(self.places))
        self[written] = place
        return place


def _gathered(
    pieces: Iterable[Sequence[Sequence[str]]],
    places: tuple[int, int, int],
    items: Collection[str] | None,
    labels: Sequence[str],
    ignored: dict[str, int],
) -> Votes:
    """Votes of rows in pieces; ``places`` of item, reviewer and label in a row."""
    names = (_Names(items or (), is_closed=items is not None), _Names(), _Names(labels))
    columns = (array("q"), array("q"), array("q"))
    for rows in pieces:
        whole = [row for row in rows if len(row) > max(places)]
        if short := sum(map(bool, rows)) - len(whole):
            ignored[SHORT] = ignored.get(SHORT, 0) + short
        for column, known, place in zip(columns, names, places, strict=True):
            column.extend([known[row[place]] for row in whole])
    item, reviewer, label = (np.frombuffer(column, dtype=np.int64) for column in columns)
    worst = np.minimum(np.minimum(item, reviewer), label)
    for reason, place in _NOWHERE.items():
        if count := int((worst == place).sum()):
            ignored[reason] = count
    item, reviewer, label = item[worst >= 0], reviewer[worst >= 0], label[worst >= 0]
    ordered = sorted(names[2].places)
    turned = np.zeros(len(ordered), dtype=np.int64)
    turned[[names[2].places[name] for name in ordered]] = np.arange(len(ordered))
    label = turned[label]
    kept = _last_of_each(item, reviewer, label, len(names[1].places), ignored)
    return Votes(
        items=tuple(names[0].places),
        reviewers=tuple(names[1].places),
        labels=tuple(ordered),
        item=item[kept],
        reviewer=reviewer[kept],
        label=label[kept],
        ignored=ignored,
    )


def _last_of_each(item: Ints, reviewer: Ints, label: Ints, people: int, ignored: dict[str, int]) -> Ints:
    """Places of the votes that count, by item."""
    pair = item * max(1, people) + reviewer
    order = np.argsort(pair, kind="stable")
    is_last = np.ones(len(order), dtype=bool)
    is_last[:-1] = pair[order[1:]] != pair[order[:-1]]
    if not is_last.all():
        group = np.cumsum(np.concatenate([[False], is_last[:-1]]))
        final = label[order[is_last]][group]
        changed = int((label[order] != final).sum())
        repeated = int((~is_last).sum()) - changed
        ignored.update({reason: n for reason, n in ((REPEATED, repeated), (REPLACED, changed)) if n})
    return order[is_last]


def _text(path: Path, raw: bytes) -> tuple[str, bool]:
    """The text, and whether its encoding had to be guessed."""
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    encoding = next((name for mark, name in marks if raw.startswith(mark)), "utf-8")
    try:
        return raw.decode(encoding), False
    except UnicodeDecodeError as error:
        if encoding != "utf-8" or b"\0" in raw:
            raise InputError(f"{path}: is no text: {error.reason}", remedy=REMEDY) from error
    try:
        return raw.decode("cp1252"), True
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is neither UTF-8 nor Windows-1252", remedy="save it as UTF-8") from error


class _Table:
    """The rows of a text, and where in them the wanted columns are, each of which may have several names."""

    def __init__(self, path: Path, text: str, columns: Sequence[Sequence[str]], remedy: str) -> None:
        header = text.split("\n", 1)[0]
        csv.field_size_limit(LONGEST_ROW)
        self._path, self._remedy = path, remedy
        self._reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(DELIMITERS, key=header.count))
        with self._named():
            names = [name.strip().lower() for name in next(self._reader, [])]
        found = [next((name for name in choices if name in names), None) for choices in columns]
        if None in found:
            missing = " and no column ".join(
                choices[0] for choices, name in zip(columns, found, strict=True) if not name
            )
            shown = ", ".join(names)[:200]
            raise InputError(f"{path}: no column {missing} in the header: {shown}", remedy=remedy)
        self.places = tuple(names.index(name) for name in found if name is not None)

    def pieces(self) -> Iterator[list[list[str]]]:
        """The rows behind the header, some at a time; empty lines are empty rows."""
        with self._named():
            while rows := list(islice(self._reader, _PIECE)):
                yield rows

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except csv.Error as error:
            raise InputError(f"{self._path}: line {self._reader.line_num}: {error}", remedy=self._remedy) from error
