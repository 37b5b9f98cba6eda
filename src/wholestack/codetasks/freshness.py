"""Whether questions stand in training text: the same program word for word, or nearly.

Nearly is what :mod:`wholestack.data.similarity` says it is: a document holds at least half of the program's shingles,
runs of five words, whatever their case, spaces and signs. A question about a small program shares shingles with any
other small program that uses the same names, so easy levels come near to other files of this generator by chance; the
same program does not. What is not found may still be known in other words: matching is a lower bound.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from wholestack.data.similarity import THRESHOLD, Hashes, shingles
from wholestack.data.training_text import Text, Unread
from wholestack.finding import Finding, finding

Match = Literal["exact", "near"]
MOST_SHOWN = 1000
"""Findings that are kept; all are counted."""
SHOWN = 20
"""Places that could not be read that are named."""


class Question(Protocol):
    """What is compared of a question; a :class:`~wholestack.codetasks.item.CodeItem` has it."""

    @property
    def id(self) -> str:
        """Names it in what is found."""
        ...

    @property
    def program(self) -> str:
        """Python source."""
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """A question without all that is not compared."""

    id: str
    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A question whose program stands in training text."""

    item: str
    """Its id."""
    match: Match
    """``exact``: the program stands there letter for letter; ``near``: half of its shingles do."""
    share: float
    """Of the program's shingles, in the document that has most of them."""
    place: str
    """That document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """What was compared, and what was found."""

    items: int
    documents: int
    characters: int
    seen: tuple[Seen, ...]
    """Exact ones first, then by share."""
    unread: int
    """Places that could not be read: what stands there is not known."""
    first_unread: tuple[Unread, ...]
    """The first of them."""

    @property
    def exact(self) -> int:
        """Questions whose programs stand there letter for letter."""
        return sum(each.match == "exact" for each in self.seen)

    @property
    def near(self) -> int:
        """Questions whose programs nearly stand there."""
        return len(self.seen) - self.exact


def freshness(items: Sequence[Question], texts: Iterable[Text | Unread]) -> Freshness:
    """Look for every question's program in a stream of documents.

    Memory is that of the items' shingles and of one document; the work for a document grows with its length.

    Args:
        items: Questions.
        texts: Documents, in any order.
    """
    index = _Index([shingles(item.program.encode()) for item in items])
    programs = [item.program.strip() for item in items]
    best = np.zeros(len(items))
    place: list[str] = [""] * len(items)
    exact: set[int] = set()
    documents = characters = 0
    unread: list[Unread] = []
    for each in texts:
        if isinstance(each, Unread):
            unread.append(each)
            continue
        documents, characters = documents + 1, characters + len(each.text)
        shares = index.shares(shingles(each.text.encode(errors="replace")))
        for number in np.flatnonzero(shares >= THRESHOLD):
            is_exact = programs[number] in each.text
            if number not in exact and (is_exact or shares[number] > best[number]):
                best[number], place[number] = shares[number], each.place
                exact.update([int(number)] if is_exact else [])
    seen = [
        Seen(item=items[n].id, match="exact" if n in exact else "near", share=float(best[n]), place=place[n])
        for n in np.flatnonzero(best).tolist()
    ]
    seen.sort(key=lambda each: (each.match != "exact", -each.share, each.item))
    return Freshness(
        items=len(items),
        documents=documents,
        characters=characters,
        seen=tuple(seen),
        unread=len(unread),
        first_unread=tuple(unread[:SHOWN]),
    )


def freshness_findings(path: Path, fresh: Freshness) -> list[Finding]:
    """What stands in the training text is ``fail``, what nearly does ``warn``, what could not be read ``unknown``.

    Args:
        path: The questions' file.
        fresh: What was found about them.
    """
    found = [
        finding(
            str(path),
            "codetasks.fresh",
            "fail" if each.match == "exact" else "warn",
            part=each.item,
            cause="seen" if each.match == "exact" else "nearly seen",
            evidence=[f"{each.share:.0%} of its program's runs of five words stand in {each.place}"],
            remedy="leave it out, or generate with another seed",
        )
        for each in fresh.seen[:MOST_SHOWN]
    ]
    if fresh.unread:
        evidence = [f"{each.place}: {each.reason}" for each in fresh.first_unread]
        found.append(
            finding(
                str(path),
                "codetasks.fresh",
                "unknown",
                cause="unread",
                evidence=[f"{fresh.unread} places of training text could not be read", *evidence],
                remedy="give it as text",
            )
        )
    return found


class _Index:
    """Which programs hold a shingle."""

    def __init__(self, sets: Sequence[Hashes]) -> None:
        self._sizes = np.array([len(each) for each in sets], dtype=np.int64)
        hashes = np.concatenate(sets) if sets else np.zeros(0, dtype=np.uint64)
        owners = np.repeat(np.arange(len(sets)), self._sizes)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._owners = hashes[order], owners[order]

    def shares(self, document: Hashes) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Of each program the share of its shingles that the document holds, shape [programs]."""
        first = np.searchsorted(self._hashes, document, side="left")
        last = np.searchsorted(self._hashes, document, side="right")
        hit = last > first
        spans = [np.arange(left, right) for left, right in zip(first[hit], last[hit], strict=True)]
        places = np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)
        counts = np.bincount(self._owners[places], minlength=len(self._sizes))
        shares: np.ndarray[tuple[int], np.dtype[np.float64]] = counts / self._sizes
        return shares
