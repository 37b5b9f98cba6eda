"""What is looked for: every item as its runs of five words, without those that say nothing.

A word is what :mod:`wholestack.data.similarity` says it is: case, spaces and signs do not matter. A run of words that
several items have in common is a template's ("which of the following is"), not an item's, and is left out. A question
with fewer than :data:`LEAST_RUNS` runs left is looked for together with its choices, plain, lettered and numbered;
where these are too few as well it cannot be told from chance and is not looked for, but counted.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wholestack.data.similarity import Hashes, runs, word_hashes
from wholestack.errors import InputError
from wholestack.evals.statistics import Ints

LEAST_RUNS = 4
COMMON_ITEMS = 3
"""A run of words in so many items is nobody's own."""
_BITS = 22
_MARKS = (" " * 26, string.ascii_uppercase, "123456789")
"""What stands in front of choices."""

TOO_SHORT = f"fewer than {LEAST_RUNS} runs of five words of its own: cannot be told from chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An item to look for."""

    id: str
    text: str
    """The question, without its choices."""
    choices: tuple[str, ...] = ()
    """What there is to choose from."""
    answer: str = ""
    """The right choice."""


class Index:
    """Which items have a run of words.

    Args:
        items: All of them; ids are different.

    Raises:
        InputError: there is none.
    """

    def __init__(self, items: Sequence[Wanted]) -> None:
        if not items:
            raise InputError("no item to look for", remedy="name a file with items")
        self.items = tuple(items)
        entries = [_Entry(place, item.text) for place, item in enumerate(items)]
        hashes, owners = _own_runs(entries)
        short = np.flatnonzero(np.bincount(owners, minlength=len(items)) < LEAST_RUNS).tolist()
        for place in short:
            entries[place] = _Entry(place, _with_choices(items[place], _MARKS[0]))
            entries += [_Entry(place, _with_choices(items[place], marks)) for marks in _MARKS[1:]]
        if short:
            hashes, owners = _own_runs(entries)
        sizes = np.bincount(owners, minlength=len(entries))
        self.item_of = tuple(each.item for each in entries)
        """Of each entry, the place of its item; an item has one entry for each way in which it is looked for."""
        self.texts = tuple(each.text for each in entries)
        """Of each entry, what is looked for."""
        self.words = tuple(each.words for each in entries)
        """Of each entry, in order."""
        self.sizes: Ints = np.where(sizes >= LEAST_RUNS, sizes, 0)
        """``[entries]``, runs of words of its own; 0 of an entry that is not looked for."""
        own = self.sizes[owners] > 0
        self._hashes, self._owners = hashes[own], owners[own]
        self._may: npt.NDArray[np.bool_] = np.zeros(1 << _BITS, dtype=bool)
        self._may[(self._hashes & np.uint64((1 << _BITS) - 1)).astype(np.int64)] = True

    @property
    def too_short(self) -> tuple[str, ...]:
        """Items that are not looked for."""
        known = {self.item_of[entry] for entry in np.flatnonzero(self.sizes).tolist()}
        return tuple(item.id for place, item in enumerate(self.items) if place not in known)

    def hits(self, found: Hashes) -> tuple[Ints, Ints, Hashes]:
        """Which runs of a document are an entry's: their places, the entries, and the runs themselves.

        Args:
            found: Every run of the document, in its order.
        """
        maybe = np.flatnonzero(self._may[(found & np.uint64((1 << _BITS) - 1)).astype(np.int64)])
        first = np.searchsorted(self._hashes, found[maybe], side="left")
        count = np.searchsorted(self._hashes, found[maybe], side="right") - first
        place = np.repeat(maybe, count)
        inside = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        owner = self._owners[np.repeat(first, count) + inside]
        return place.astype(np.int64), owner.astype(np.int64), found[place]


@dataclass(frozen=True)
class _Entry:
    item: int
    text: str

    @cached_property
    def words(self) -> Hashes:
        return word_hashes(self.text.encode(errors="replace"))


def _with_choices(item: Wanted, marks: str) -> str:
    lines = [f"{mark} {choice}".strip() for mark, choice in zip(marks, item.choices, strict=False)]
    return "\n".join([item.text, *(lines if marks.strip() else item.choices)])


def _own_runs(entries: Sequence[_Entry]) -> tuple[Hashes, Ints]:
    """Runs of words that few items have, in rising order, and whose entries they are of."""
    sets = [np.unique(runs(each.words)) for each in entries]
    hashes = np.concatenate(sets)
    owners = np.repeat(np.arange(len(entries)), [len(each) for each in sets])
    items = np.array([each.item for each in entries], dtype=np.int64)[owners]
    order = np.lexsort((items, hashes))
    hashes, owners, items = hashes[order], owners[order], items[order]
    is_new = np.ones(len(hashes), dtype=bool)
    is_new[1:] = hashes[1:] != hashes[:-1]
    number = np.cumsum(is_new) - 1
    is_other = is_new.copy()
    is_other[1:] |= items[1:] != items[:-1]
    own = np.bincount(number, is_other)[number] < COMMON_ITEMS
    return hashes[own], owners[own]
