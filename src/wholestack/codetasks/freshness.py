"""Whether questions stand in training text: the same program word for word, or nearly.

Nearly is what :mod:`wholestack.data.similarity` says it is: a document holds at least half of the program's shingles,
runs of five words, whatever their case, spaces and signs. A question about a small program shares shingles with any
other small program that uses the same names, so easy levels come near to other files of this generator by chance; the
same program does not. What is not found may still be known in other words: matching is a lower bound.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from wholestack.codetasks.item import CodeItem
from wholestack.data.corpus import Corpus
from wholestack.data.folder import LARGEST_DOCUMENT_BYTES, numbered_lines, walk
from wholestack.data.similarity import THRESHOLD, Hashes, shingles
from wholestack.errors import InputError
from wholestack.finding import Finding, finding

Match = Literal["exact", "near"]
MOST_SHOWN = 1000
"""Findings that are kept; all are counted."""
SHOWN = 20
"""Places that could not be read that are named."""
_PIECE_BYTES, _OVERLAP_BYTES = 1 << 20, 1 << 14


@dataclass(frozen=True, slots=True)
class Text:
    """A document that a model may have read."""

    place: str
    """Where it is, for a person to find it."""
    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """What may be training text and could not be read."""

    place: str
    reason: str


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


def freshness(
    items: Sequence[CodeItem], texts: Iterable[Text | Unread], *, progress: Callable[[int], None] | None = None
) -> Freshness:
    """Look for every question's program in a stream of documents.

    Memory is that of the items' shingles and of one document; the work for a document grows with its length.

    Args:
        items: Questions.
        texts: Documents, in any order.
        progress: Told the number of documents after each.
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
        if progress is not None:
            progress(documents)
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


def training_texts(folder: Path) -> Iterator[Text | Unread]:
    """Documents of a corpus or run of ours, or of a folder of text and JSON Lines files, or of one such file.

    Raises:
        InputError: there is no such place, or no file in it.
        DataError: a corpus is damaged.
    """
    for corpus in (folder, folder / "data"):
        if (corpus / "manifest.json").exists():
            return _of_corpus(corpus)
    if not folder.exists():
        raise InputError(f"{folder}: is not there", remedy="name a corpus, a run, or a folder of text")
    files = [folder] if folder.is_file() else list(walk(folder))
    if not files:
        raise InputError(f"{folder}: no file in it", remedy="name a corpus, a run, or a folder of text")
    return _of_files(files)


def _of_corpus(folder: Path) -> Iterator[Text]:
    for document in Corpus.open(folder).documents("train"):
        yield Text(f"{folder}: {document.source} {document.path}", document.text)


def _of_files(files: Iterable[Path]) -> Iterator[Text | Unread]:
    for path in files:
        if path.suffix in (".jsonl", ".ndjson"):
            yield from _of_json_lines(path)
        else:
            yield from _of_text(path)


def _of_text(path: Path) -> Iterator[Text | Unread]:
    """Pieces that overlap by more than a program is long, so that none is cut in two."""
    try:
        with path.open("rb") as file:
            kept = b""
            while block := file.read(_PIECE_BYTES):
                if b"\0" in block:
                    yield Unread(str(path), "holds zero bytes: is no text")
                    return
                yield Text(str(path), (kept + block).decode(errors="replace"))
                kept = block[-_OVERLAP_BYTES:]
    except OSError as error:
        yield Unread(str(path), f"cannot be read: {error.strerror}")


def _of_json_lines(path: Path) -> Iterator[Text | Unread]:
    """One document a line: all its texts, whatever their keys are."""
    try:
        with path.open("rb") as file:
            for number, line in numbered_lines(file.readline, longest_bytes=LARGEST_DOCUMENT_BYTES):
                try:
                    yield Text(f"{path}:{number}", "\n".join(_strings(msgspec.json.decode(line))))
                except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                    yield Unread(f"{path}:{number}", f"not JSON: {error}")
    except OSError as error:
        yield Unread(str(path), f"cannot be read: {error.strerror}")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
