"""Byte-level byte-pair encoding: text to token ids and back without loss.

Ids 0 to 255 are the bytes themselves, so every text can be encoded and plain bytes are the case without merges;
each merge adds one id behind them. Byte 0xFF never occurs in UTF-8: its id ends a document. No text, whatever it
spells, can produce that id, and no vocabulary entry is spent on it.

Text is first cut into words (:func:`words`), and merges do not cross them. The rule uses ASCII classes only, so
it does not change with the Unicode tables of a Python version.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from wholestack.errors import DataError, InputError
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, from_json, to_json

END_OF_DOCUMENT = 0xFF
SMALLEST_VOCABULARY = 256
LARGEST_VOCABULARY = 65_536
CUT_RULE = "words/1"
_LARGEST_CACHE_WORDS = 500_000
_NO_JOIN = (LARGEST_VOCABULARY, 0)

_WORD = re.compile(
    r" ?[A-Za-z\u0080-\U0010FFFF]{1,48}"  # letters, and everything that is not ASCII
    r"| ?[0-9]{1,3}"
    r"| ?[^\sA-Za-z0-9\u0080-\U0010FFFF]{1,48}"  # punctuation and control characters
    r"|\s{1,48}(?!\S)|\s{1,48}",
    re.ASCII,
)

Tokens = npt.NDArray[np.uint16]


def words(text: str) -> list[str]:
    """Cut a text into the words that merges do not cross; joined again they are the text.

    A space goes with the word behind it, indentation stays together, and no word is longer than 49 characters,
    which bounds the work a pathological text can cause.
    """
    return _WORD.findall(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFile(Record):
    """What is stored of a tokenizer."""

    SCHEMA: ClassVar[str] = "tokenizer/1"

    cut_rule: str
    """Name of the rule that cuts words."""
    merges: tuple[tuple[int, int], ...]
    """Pairs of ids in order of rank; each becomes the next id, or the one that already spells the same bytes."""


class _Words(dict[str, list[int]]):
    """Ids of words that were met before; forgets everything when it has grown too large."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= _LARGEST_CACHE_WORDS:
            self.clear()
        ids = self[word] = self._tokenizer.merge(word.encode())
        return ids


class Tokenizer:
    """A byte-level BPE tokenizer.

    Args:
        merges: Pairs of ids in order of rank; each becomes the next id from 256 on, or, where an id already spells
            the same bytes, that one.

    Raises:
        DataError: a pair names an id that does not exist yet, or there are too many.

    Example:
        >>> tokenizer = Tokenizer([(104, 105)])  # h i
        >>> tokenizer.encode("hi!").tolist(), tokenizer.decode([256, 33])
        ([256, 33], 'hi!')
    """

    def __init__(self, merges: Sequence[tuple[int, int]]) -> None:
        if len(merges) > LARGEST_VOCABULARY - 256:
            raise DataError(f"{len(merges)} merges: at most {LARGEST_VOCABULARY - 256} fit 16-bit ids")
        spelt = [bytes([byte]) for byte in range(256)]
        ids = {each: byte for byte, each in enumerate(spelt)}
        self._joins: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, (left, right) in enumerate(merges):
            if not (0 <= left < len(spelt) and 0 <= right < len(spelt)):
                raise DataError(f"merge {rank} joins ({left}, {right}), but ids so far end at {len(spelt) - 1}")
            joined = spelt[left] + spelt[right]
            if joined not in ids:
                ids[joined] = len(spelt)
                spelt.append(joined)
            self._joins[left, right] = (rank, ids[joined])
        self.merges = tuple((left, right) for left, right in merges)
        self._spelt = spelt
        self._words = _Words(self)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Self:
        """From merges given as the bytes they join, in order of rank."""
        ids = {bytes([byte]): byte for byte in range(256)}
        merges = []
        for left, right in pairs:
            merges.append((ids[left], ids[right]))
            ids.setdefault(left + right, len(ids))
        return cls(merges)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: the file is missing, or another version cut its words.
            RecordError: it does not decode.
        """
        try:
            stored = from_json(TokenizerFile, path.read_bytes(), where=str(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        if stored.cut_rule != CUT_RULE:
            raise DataError(f"{path}: words are cut by {stored.cut_rule!r}, this version has {CUT_RULE!r}")
        return cls(stored.merges)

    def save(self, path: Path) -> None:
        """Write it as JSON, by atomic rename."""
        write_atomic(path, to_json(self._file()) + b"\n")

    def _file(self) -> TokenizerFile:
        return TokenizerFile(cut_rule=CUT_RULE, merges=self.merges)

    @property
    def vocab_size(self) -> int:
        """Number of ids, the end of a document included."""
        return len(self._spelt)

    @property
    def end_of_document(self) -> int:
        """The id that ends a document."""
        return END_OF_DOCUMENT

    @property
    def digest(self) -> str:
        """Identity: two tokenizers with the same digest encode alike."""
        return digest(self._file())

    @property
    def byte_lengths(self) -> npt.NDArray[np.int64]:
        """Bytes of text that each id stands for, shape [vocab_size]; 0 for the end of a document."""
        lengths = np.array([len(each) for each in self._spelt], dtype=np.int64)
        lengths[END_OF_DOCUMENT] = 0
        return lengths

    def encode(self, text: str) -> Tokens:
        """Ids of a text, without an end of document.

        Raises:
            DataError: the text holds a lone surrogate, which has no UTF-8.
        """
        try:
            ids = chain.from_iterable(map(self._words.__getitem__, words(text)))
            return np.fromiter(ids, dtype=np.uint16)
        except UnicodeEncodeError as error:
            raise DataError(f"character {error.start} is a lone surrogate and has no UTF-8") from error

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that ids stand for; ends of documents are passed over."""
        spelt = self._spelt
        return b"".join(spelt[each] for each in ids if each != END_OF_DOCUMENT)

    def decode(self, ids: Iterable[int]) -> str:
        """The text that ids stand for; what was cut in the middle of a character shows as U+FFFD."""
        return self.decode_bytes(ids).decode(errors="replace")

    def merge(self, word: bytes) -> list[int]:
        """Ids of one word: the pair of lowest rank is joined, everywhere, until none is left."""
        ids = list(word)
        joins = self._joins
        while len(ids) > 1:
            found = [joins.get(pair, _NO_JOIN) for pair in pairwise(ids)]
            lowest = min(found)
            if lowest == _NO_JOIN:
                break
            ids = _joined(ids, found, lowest)
        return ids


def _joined(ids: list[int], found: list[tuple[int, int]], lowest: tuple[int, int]) -> list[int]:
    """Replace each pair of the lowest rank, from left to right, by its id."""
    merged: list[int] = []
    place = 0
    while place < len(ids):
        if place < len(found) and found[place] == lowest:
            merged.append(lowest[1])
            place += 2
        else:
            merged.append(ids[place])
            place += 1
    return merged


def check_vocab_size(vocab_size: int) -> int:
    """Hand back a vocabulary size that can be trained.

    Raises:
        InputError: it is out of range.
    """
    if not SMALLEST_VOCABULARY <= vocab_size <= LARGEST_VOCABULARY:
        raise InputError(
            f"vocab_size is {vocab_size}", remedy=f"choose {SMALLEST_VOCABULARY} (plain bytes) to {LARGEST_VOCABULARY}"
        )
    return vocab_size
