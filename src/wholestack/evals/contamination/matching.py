"""One document: which items stand in it, and how.

All matched runs of an item must lie within one window of the document, twice as long as the item: runs that a book
has here and there are no question. The rules, the strictest that holds is said:

* ``exact``: the question stands there letter for letter but for spaces;
* ``normalised``: the same words in the same order, whatever their case, signs and spaces;
* ``near``: at least half of the item's own runs of five words, in whatever order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from wholestack.data.similarity import THRESHOLD, WORDS_A_SHINGLE, Hashes, runs, word_hashes, words_with_starts
from wholestack.data.training_text import Text
from wholestack.evals.contamination.index import Index
from wholestack.evals.statistics import Ints
from wholestack.record import Record

Rule = Literal["exact", "normalised", "near"]
RULES: tuple[Rule, ...] = ("exact", "normalised", "near")
WINDOW = 2.0
"""Of an item's length in words."""
SLACK_WORDS = 20
MOST_SHOWN = 400
"""Characters of matched text that are kept."""
_AROUND = bytes(code for code in range(128) if not chr(code).isalnum())
ANSWER_WITHIN = 150
"""Words behind the question among which its answer is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag(Record):
    """One item in one document."""

    SCHEMA: ClassVar[str] = "contamination-flag/1"

    item: str
    document: str
    """Where it is, for a person to find it."""
    rule: Rule
    share: float
    """Of the item's own runs of five words."""
    has_answer: bool
    """Whether the right choice stands behind it."""
    match: str
    """The text of the document that matched, cut."""


def match_documents(index: Index, documents: Sequence[Text]) -> list[Flag]:
    """Items in many documents: one look at all of them together finds the few that have anything of an item.

    Args:
        index: What is looked for.
        documents: Small ones, some hundred kilobytes together.
    """
    pieces = [each.text.encode(errors="replace") for each in documents]
    words, starts = words_with_starts(b"\n".join(pieces))
    where, _, _ = index.hits(runs(words))
    if not len(where):
        return []
    ends = np.cumsum([len(each) + 1 for each in pieces])
    # A run that begins in one document and ends in the next costs a second look and finds nothing there.
    some = np.unique(np.searchsorted(ends, starts[where], side="right"))
    return [flag for place in some.tolist() for flag in match_document(index, documents[place])]


def match_document(index: Index, text: Text) -> list[Flag]:
    """Items in one document."""
    data = text.text.encode(errors="replace")
    words, starts = words_with_starts(data)
    where, owners, matched = index.hits(runs(words))
    if not len(where):
        return []
    document = _Document(place=text.place, data=data, words=words, starts=starts)
    order = np.lexsort((where, owners))
    where, owners, matched = where[order], owners[order], matched[order]
    begins = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    found: dict[str, Flag] = {}
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(owners)], strict=True):
        entry = int(owners[begin])
        if end - begin < THRESHOLD * index.sizes[entry]:
            continue
        width = WINDOW * len(index.words[entry]) + SLACK_WORDS
        seen = _densest(where[begin:end], matched[begin:end], width)
        if seen.count >= THRESHOLD * index.sizes[entry]:
            flag = _flag(index, entry, seen, document)
            if flag.item not in found or strictest(flag) < strictest(found[flag.item]):
                found[flag.item] = flag
    return list(found.values())


def strictest(flag: Flag) -> tuple[int, bool, float, str, str]:
    """Sorts flags: the strictest rule first, with its answer before without, then the largest share."""
    return RULES.index(flag.rule), not flag.has_answer, -flag.share, flag.item, flag.document


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A stretch of a document."""

    first: int
    """Word with which it begins."""
    last: int
    """Behind its last word."""
    count: int
    """Different runs in it that are the item's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    place: str
    data: bytes
    words: Hashes
    starts: Ints
    """The byte with which each word begins."""

    def between(self, first: int, last: int) -> bytes:
        """From a word to behind another, with the signs in between."""
        end = int(self.starts[last]) if last < len(self.starts) else len(self.data)
        return self.data[int(self.starts[first]) : end]


def _densest(where: Ints, matched: Hashes, width: float) -> _Seen:
    """The window with the most different runs."""
    inside: dict[int, int] = {}
    places, hashes = where.tolist(), matched.tolist()
    first, last, count, left = places[0], places[0], 0, 0
    for place, run in zip(places, hashes, strict=True):
        inside[run] = inside.get(run, 0) + 1
        while place - places[left] > width:
            inside[hashes[left]] -= 1
            if not inside[hashes[left]]:
                del inside[hashes[left]]
            left += 1
        if len(inside) > count:
            first, last, count = places[left], place, len(inside)
    return _Seen(first=first, last=last + WORDS_A_SHINGLE, count=count)


def _flag(index: Index, entry: int, seen: _Seen, document: _Document) -> Flag:
    wanted, own = index.items[index.item_of[entry]], index.words[entry]
    first, last = seen.first, seen.last
    rule: Rule = "near"
    if seen.count == index.sizes[entry]:
        # What several items have in common was not looked for, and belongs to the question all the same.
        begin = max(0, first - len(own))
        at = _place_of(own, document.words[begin : last + len(own)])
        if at is not None:
            first, last = begin + at, begin + at + len(own)
            is_exact = _plain(document.between(first, last)) == _plain(index.texts[entry].encode(errors="replace"))
            rule = "exact" if is_exact else "normalised"
    answer = word_hashes(wanted.answer.encode(errors="replace"))
    # A short question was looked for with its choices, which then stand before the end of what matched.
    with_choices = index.texts[entry] != wanted.text
    behind = document.words[first if with_choices else last : last + ANSWER_WITHIN]
    return Flag(
        item=wanted.id,
        document=document.place,
        rule=rule,
        share=float(seen.count / index.sizes[entry]),
        has_answer=_place_of(answer, behind) is not None,
        match=" ".join(document.between(first, last).decode(errors="replace").split())[:MOST_SHOWN],
    )


def _plain(text: bytes) -> bytes:
    """Without what stands around its words, and with one space for any."""
    return b" ".join(text.strip(_AROUND).split())


def _place_of(wanted: Hashes, words: Hashes) -> int | None:
    """Where words stand one behind the other; ``None``: nowhere, or there are none."""
    if not len(wanted):
        return None
    for place in np.flatnonzero(words[: max(0, len(words) - len(wanted) + 1)] == wanted[0]).tolist():
        if np.array_equal(words[place : place + len(wanted)], wanted):
            return int(place)
    return None
