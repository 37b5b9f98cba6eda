"""The provenance ledger: one entry a document, and the data statement that a customer reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wholestack.data.source import WHY, Reason, Refusal, Split
from wholestack.journal import write_pieces
from wholestack.record import Record, to_json

NAMED = 20
"""How many refused documents the text of the statement names for each source and reason; the file has all."""
_SHOWN: Mapping[Reason, int] = {"left_out": 3, "generated": 3, "duplicate": 5}
"""Fewer where the names say little."""
NOTICES = 200
"""How many documents with terms of their own a summary names for each source; the ledger has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry(Record):
    """Where one document came from and where it went."""

    SCHEMA: ClassVar[str] = "ledger/1"

    id: str
    """Identity: hash of source, path and text."""
    source: str
    """Name of the source."""
    path: str
    """Where it lies inside the source."""
    licence: str
    """SPDX identifier or expression."""
    sha256: str
    """Hash of the text as UTF-8."""
    size_bytes: int
    """Length of the text as UTF-8."""
    tokens: int
    """Tokens in the shards, the end of the document included."""
    split: Split
    """Train or held out."""
    cluster: str
    """Id of the first document of its cluster of near-duplicates and groups; a cluster is never split."""
    first_token: int
    """Place of its first token in the stream of its source and split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount(Record):
    """How much there is of something."""

    documents: int = 0
    """Documents."""
    size_bytes: int = 0
    """Bytes of text as UTF-8."""
    tokens: int = 0
    """Tokens, ends of documents included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSummary(Record):
    """What one source gave, and what of it was refused."""

    name: str
    """Name of the source."""
    licence: str
    """Which licence, and where it was read, in the source's own words."""
    amounts: dict[Split, Amount]
    """Amount by split."""
    licences: dict[str, Amount]
    """Amount by licence of the document."""
    refused: dict[Reason, int]
    """Number of refusals by reason."""
    named: dict[Reason, tuple[str, ...]]
    """The first refused by reason, each with what was seen."""
    own_notices: tuple[str, ...]
    """The first documents whose licence is not the most common one of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataStatement(Record):
    """What a model was given to read: for the person who has to answer for it."""

    SCHEMA: ClassVar[str] = "data_statement/1"

    corpus: str
    """Digest of the corpus."""
    vocab_size: int
    """Size of the vocabulary."""
    seed: int
    """Seed of the split."""
    held_out_fraction: float
    """Share of bytes that was to be held out."""
    sources: tuple[SourceSummary, ...]
    """One for each source."""

    def text(self) -> str:
        """The statement as plain text."""
        return "\n".join(_lines(self)) + "\n"


def _lines(statement: DataStatement) -> Iterator[str]:
    total = _sum([amount for source in statement.sources for amount in source.amounts.values()])
    yield f"Data statement, corpus {statement.corpus}"
    yield f"{_amount(total)} from {len(statement.sources)} source(s), vocabulary of {statement.vocab_size}"
    yield (
        f"Held out by whole clusters of near-duplicates: {statement.held_out_fraction:.1%} of bytes asked for, "
        f"seed {statement.seed}"
    )
    for source in statement.sources:
        yield ""
        yield from _source_lines(source)
    yield ""
    yield "Every document is in ledger.jsonl, every refusal in refused.jsonl."


def _source_lines(source: SourceSummary) -> Iterator[str]:
    yield f"Source {source.name}"
    yield f"  licence: {_printable(source.licence)}"
    for split, amount in source.amounts.items():
        yield f"  {split.replace('_', ' ')}: {_amount(amount)}"
    if not source.amounts["held_out"].documents:
        yield "  nothing is held out: too few documents that are not near-duplicates of each other"
    for licence, amount in source.licences.items():
        yield f"  {_printable(licence)}: {amount.documents:,} documents, {amount.size_bytes:,} bytes"
    own = sum(amount.documents for amount in [*source.licences.values()][1:])
    if own:
        yield from _named("with terms of their own", own, source.own_notices, show=NOTICES)
    for reason, count in source.refused.items():
        yield from _named(
            f"refused, {WHY[reason]}", count, source.named.get(reason, ()), show=_SHOWN.get(reason, NAMED)
        )


def _named(title: str, count: int, names: Sequence[str], *, show: int = NAMED) -> Iterator[str]:
    yield f"  {title}: {count:,}"
    yield from (f"    {_printable(name)}" for name in names[:show])
    if count > min(len(names), show):
        yield f"    and {count - min(len(names), show):,} more"


def _printable(foreign: str) -> str:
    """A foreign string on one line: a file name with a line break must not write lines of its own."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in foreign)


def _amount(amount: Amount) -> str:
    return f"{amount.documents:,} documents, {amount.size_bytes:,} bytes, {amount.tokens:,} tokens"


def _sum(amounts: Sequence[Amount]) -> Amount:
    return Amount(
        documents=sum(each.documents for each in amounts),
        size_bytes=sum(each.size_bytes for each in amounts),
        tokens=sum(each.tokens for each in amounts),
    )


class Tally:
    """Counts what goes into a corpus, in memory that does not grow with it.

    Args:
        licences: What each source says of its licence, by name.
    """

    def __init__(self, licences: Mapping[str, str]) -> None:
        self._said = dict(licences)
        self._amounts: dict[tuple[str, Split], Amount] = {}
        self._licences: dict[tuple[str, str], Amount] = {}
        self._paths: dict[tuple[str, str], list[str]] = {}
        self._refused: dict[tuple[str, Reason], int] = {}
        self._named: dict[tuple[str, Reason], list[str]] = {}

    def add(self, entry: LedgerEntry) -> None:
        """Count one document."""
        own = Amount(documents=1, size_bytes=entry.size_bytes, tokens=entry.tokens)
        by_split, by_licence = (entry.source, entry.split), (entry.source, entry.licence)
        self._amounts[by_split] = _sum([self._amounts.get(by_split, Amount()), own])
        self._licences[by_licence] = _sum([self._licences.get(by_licence, Amount()), own])
        paths = self._paths.setdefault(by_licence, [])
        if len(paths) < NOTICES:
            paths.append(f"{entry.path}: {entry.licence}")

    def refuse(self, refusal: Refusal) -> None:
        """Count one refusal, and name it if it is among the first."""
        key = refusal.source, refusal.reason
        self._refused[key] = self._refused.get(key, 0) + 1
        named = self._named.setdefault(key, [])
        if len(named) < NAMED:
            named.append(f"{refusal.path} ({refusal.detail})" if refusal.detail else refusal.path)

    def summaries(self) -> tuple[SourceSummary, ...]:
        """One for each source, in the order they were named."""
        return tuple(self._summary(name) for name in self._said)

    def _summary(self, name: str) -> SourceSummary:
        licences = {licence: amount for (source, licence), amount in self._licences.items() if source == name}
        ordered = sorted(licences, key=lambda each: (-licences[each].size_bytes, each))
        return SourceSummary(
            name=name,
            licence=self._said[name],
            amounts={split: self._amounts.get((name, split), Amount()) for split in ("train", "held_out")},
            licences={licence: licences[licence] for licence in ordered},
            refused={reason: count for (source, reason), count in self._refused.items() if source == name},
            named={reason: tuple(names) for (source, reason), names in self._named.items() if source == name},
            own_notices=tuple(path for licence in ordered[1:] for path in self._paths[name, licence])[:NOTICES],
        )


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write records as JSON Lines, one in memory at a time; the file appears whole, by rename.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """
    write_pieces(path, (to_json(record) + b"\n" for record in records))
