"""Where text may be cut, so that what lies before and behind the cut is whole words of a stated length.

Offsets count UTF-8 bytes. All white space that matters here is ASCII, and no byte of a longer character is ASCII, so
every slice between two cuts is whole characters. Text without spaces, such as Chinese prose, has few cuts or none.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Boundary = Literal["word", "line"]
Bounds = tuple[int, int]
Offsets = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NEWLINE, _SPACE = 10, 32
_WHITESPACE = (9, _NEWLINE, 13, _SPACE)
_GRAM = 4
_NEAR = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRule:
    """What is cut where; its text is part of the manifest."""

    boundary: Boundary
    """At a space or line end, or at line ends only."""
    context: Bounds
    """Least and most bytes of a context."""
    answer: Bounds
    """Least and most bytes of an answer, without its delimiter."""
    per_document: int
    """Most items from one document."""

    def __str__(self) -> str:
        place = "one space between words, or one line end" if self.boundary == "word" else "one line end"
        return "; ".join(
            (
                f"cut/1: text is cut at {place} behind a word and before a line that is not blank: the delimiter",
                f"the context reaches back {self.context[0]} to {self.context[1]} bytes, to the furthest line start"
                " there, else to the furthest word start",
                f"the answer has {self.answer[0]} to {self.answer[1]} bytes behind the delimiter and ends with a word",
                "at least half of its bytes that are not white space belong to letters or digits",
                "the wrong choices are from other documents of the source, cut at the same delimiter, equal in bytes",
                f"no two choices share {_NEAR:g} or more of their {_GRAM}-grams (Jaccard, case and spacing ignored)",
                "no choice stands in the context",
                f"at most {self.per_document} items a document, their texts apart, no answer twice",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """One document with every place where it may be cut, ``[cuts]``; other arrays go by offset."""

    hash: str
    """Identity of the text."""
    name: str
    """Source and path."""
    data: bytes
    """The text in UTF-8."""
    at: Offsets
    """Offset of the delimiter."""
    context_from: Offsets
    """Where the context of each cut starts."""
    word_ends: Flags
    """Whether a word ends before each offset."""
    letters: Offsets
    """Bytes of letters and digits before each offset."""
    ink: Offsets
    """Bytes that are not white space before each offset."""

    def fitting(self, answer_bytes: int, delimiter: str = "") -> Offsets:
        """Indices of the cuts behind which an answer of that length can be taken."""
        ends = self.at + 1 + answer_bytes
        inside = ends <= len(self.data)
        ends = np.where(inside, ends, 0)
        letters = self.letters[ends] - self.letters[self.at + 1]
        ink = self.ink[ends] - self.ink[self.at + 1]
        good = inside & self.word_ends[ends] & (2 * letters >= ink)
        if delimiter:
            good &= np.frombuffer(self.data, np.uint8)[self.at] == ord(delimiter)
        return np.flatnonzero(good)

    def answer(self, index: int, answer_bytes: int) -> str:
        """The text behind a cut."""
        start = int(self.at[index]) + 1
        return self.data[start : start + answer_bytes].decode()

    def delimiter(self, index: int) -> str:
        """The space or line end at a cut."""
        return chr(self.data[int(self.at[index])])

    def span(self, index: int, answer_bytes: int) -> tuple[int, int]:
        """From the start of the context to the end of the answer."""
        return int(self.context_from[index]), int(self.at[index]) + 1 + answer_bytes

    def context(self, index: int) -> str:
        """The text before a cut."""
        return self.data[int(self.context_from[index]) : int(self.at[index])].decode()


def find_cuts(data: bytes, identity: str, name: str, rule: CutRule) -> Cuts | None:
    """Every cut with room for a context before it and for the shortest answer behind it."""
    if len(data) < rule.context[0] + 1 + rule.answer[0]:
        return None
    text = np.frombuffer(data, np.uint8)
    blank = np.isin(text, _WHITESPACE)
    at = _delimiters(text, blank, rule.boundary)
    at = at[(at >= rule.context[0]) & (at + 1 + rule.answer[0] <= len(data))]
    line_starts = np.concatenate(([0], np.flatnonzero(text == _NEWLINE) + 1))
    word_starts = np.flatnonzero(~blank & np.concatenate(([True], blank[:-1])))
    by_line = _first_from(line_starts, at - rule.context[1], at - rule.context[0])
    by_word = _first_from(word_starts, at - rule.context[1], at - rule.context[0])
    context_from = np.where(by_line >= 0, by_line, by_word)
    usable = context_from >= 0
    if not usable.any():
        return None
    letter = (text >= 128) | ((text | 32) - 97 < 26) | (text - 48 < 10)  # bytes wrap round, so one test a range
    return Cuts(
        hash=identity,
        name=name,
        data=data,
        at=at[usable],
        context_from=context_from[usable],
        word_ends=np.concatenate(([False], ~blank)) & np.concatenate((blank, [True])),
        letters=np.concatenate(([0], np.cumsum(letter))),
        ink=np.concatenate(([0], np.cumsum(~blank))),
    )


def _delimiters(text: npt.NDArray[np.uint8], blank: Flags, boundary: Boundary) -> Offsets:
    """Offsets of single spaces between words, and of line ends between a word and a line that is not blank."""
    after_word = np.concatenate(([False], ~blank[:-1]))
    line_ends = np.flatnonzero((text == _NEWLINE) & after_word)
    if boundary == "word":
        before_word = np.concatenate((~blank[1:], [False]))
        spaces = np.flatnonzero((text == _SPACE) & after_word & before_word)
    else:
        spaces = np.empty(0, np.int64)
    past_end = len(text)
    next_word = _first_from(np.flatnonzero(~blank), line_ends + 1, np.full_like(line_ends, past_end))
    next_line = _first_from(np.flatnonzero(text == _NEWLINE), line_ends + 1, np.full_like(line_ends, past_end))
    followed = (next_word >= 0) & ((next_line < 0) | (next_word < next_line))
    return np.sort(np.concatenate((spaces, line_ends[followed])))


def _first_from(candidates: Offsets, low: Offsets, high: Offsets) -> Offsets:
    """The smallest candidate in each window from ``low`` to ``high``, both included, or -1."""
    if not len(candidates):
        return np.full_like(low, -1)
    index = np.searchsorted(candidates, low)
    found = candidates[np.minimum(index, len(candidates) - 1)]
    return np.where((index < len(candidates)) & (found <= high), found, -1)


def near_identical(left: str, right: str) -> bool:
    """Whether two texts are the same but for case, spacing and small changes: they share half of their 4-grams."""
    one, other = _grams(left), _grams(right)
    return len(one & other) >= _NEAR * len(one | other)


def plain(text: str) -> str:
    """Text without differences of case and spacing."""
    return " ".join(text.casefold().split())


def _grams(text: str) -> set[str]:
    even = plain(text)
    return {even[i : i + _GRAM] for i in range(max(1, len(even) - _GRAM + 1))}
