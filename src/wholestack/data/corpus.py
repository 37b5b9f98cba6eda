"""A prepared corpus: a folder that answers where each token came from.

It holds ``manifest.json`` (written last: a folder without it is no corpus), ``tokenizer.json``, ``ledger.jsonl``,
``refused.jsonl`` and ``shards/``. Nothing here writes.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from wholestack.data.ledger import DataStatement, LedgerEntry, SourceSummary
from wholestack.data.shards import Shard, TokenStream, file_sha256
from wholestack.data.source import SPLITS, Document, Refusal, Split
from wholestack.data.tokenizer import Tokenizer, Tokens
from wholestack.errors import DataError, InputError
from wholestack.finding import Finding, finding
from wholestack.journal import read_journal
from wholestack.record import Record, digest, from_json, to_builtins

MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
LEDGER = "ledger.jsonl"
REFUSED = "refused.jsonl"
SHARDS = "shards"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusManifest(Record):
    """What a corpus is. Make it with :func:`sealed`, which computes the digest."""

    SCHEMA: ClassVar[str] = "corpus/1"

    digest: str
    """Identity: hash of everything below but the versions. Neither paths of the machine nor times are in it."""
    inputs: str
    """Hash of what it was made from: every document and refusal, and the settings."""
    vocab_size: int
    """Size of the vocabulary."""
    vocab_size_asked: int
    """What was asked for; a small sample can yield fewer."""
    seed: int
    """Seed of the split."""
    held_out_fraction: float
    """Share of each source's bytes that was to be held out."""
    tokenizer: str
    """Digest of the tokenizer."""
    near_duplicates_complete: bool
    """Whether shingle sets were complete; if not they were sampled (see ``similarity``)."""
    files: dict[str, str]
    """SHA-256 of the files other than shards."""
    shards: tuple[Shard, ...]
    """The shards, stream by stream."""
    sources: tuple[SourceSummary, ...]
    """What each source gave."""
    versions: dict[str, str]
    """Versions of what made it."""


def sealed(manifest: CorpusManifest) -> str:
    """The digest that belongs to a manifest, whatever is in its field ``digest``."""
    content = to_builtins(manifest)
    return digest({key: value for key, value in content.items() if key not in ("digest", "versions")})


class Corpus:
    """A prepared corpus; make one with :func:`wholestack.data.build.prepare` or :meth:`open`."""

    def __init__(self, folder: Path, manifest: CorpusManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._streams: dict[tuple[Split, str], TokenStream] = {}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a corpus.

        Raises:
            DataError: there is none, or its manifest was changed.
            RecordError: the manifest does not decode.
        """
        path = folder / MANIFEST
        try:
            manifest = from_json(CorpusManifest, path.read_bytes(), where=str(path))
        except OSError as error:
            raise DataError(f"{folder}: no corpus ({MANIFEST}: {error.strerror})", remedy="prepare it first") from error
        if sealed(manifest) != manifest.digest:
            raise DataError(f"{path}: does not match its own digest", remedy="prepare the corpus again")
        return cls(folder, manifest)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(source.name for source in self.manifest.sources)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the shards."""
        return Tokenizer.load(self.folder / TOKENIZER)

    @cached_property
    def ledger(self) -> Sequence[LedgerEntry]:
        """One entry a document, read at the first use; about 1 kB of memory each."""
        return read_journal(self.folder / LEDGER, LedgerEntry)

    def refused(self) -> list[Refusal]:
        """Everything that was found and not taken."""
        return read_journal(self.folder / REFUSED, Refusal)

    def stream(self, split: Split, source: str) -> TokenStream:
        """Random access to the tokens of one source and split.

        Raises:
            InputError: no such source or split.
            DataError: a shard is missing or has the wrong length.
        """
        key = split, source
        if key not in self._streams:
            self._check(split, source)
            own = [each for each in self.manifest.shards if each.split == split and each.source == source]
            self._streams[key] = TokenStream(self.folder, own)
        return self._streams[key]

    def tokens(self, split: Split, source: str) -> Tokens:
        """All tokens of one source and split in memory, two bytes each; :meth:`stream` needs no memory."""
        stream = self.stream(split, source)
        return stream.take(0, len(stream))

    def where(self, source: str, split: Split, token_index: int) -> LedgerEntry:
        """The document that a token came from.

        Args:
            source: Name of the source.
            split: Train or held out.
            token_index: Place in the stream of that source and split.

        Raises:
            InputError: no such source, split or token.
        """
        entries = self._entries(split, source)
        place = bisect_right(entries, token_index, key=lambda entry: entry.first_token) - 1
        if token_index < 0 or place < 0 or token_index >= entries[place].first_token + entries[place].tokens:
            held = entries[-1].first_token + entries[-1].tokens if entries else 0
            raise InputError(f"no token {token_index} in {source}/{split}", remedy=f"it holds {held:,} tokens")
        return entries[place]

    def not_from(self, sources: Iterable[str]) -> list[LedgerEntry]:
        """Every document that is not from one of these sources; empty means the corpus is from them alone."""
        allowed = frozenset(sources)
        return [entry for entry in self.ledger if entry.source not in allowed]

    def documents(self, split: Split, source: str | None = None) -> Iterator[Document]:
        """Documents with their text, in the order of the ledger; decoded from the shards, hashes checked.

        Raises:
            InputError: no such source or split.
            DataError: a text does not match its hash in the ledger.
        """
        self._check(split, source)
        for entry in self.ledger:
            if entry.split == split and source in (None, entry.source):
                yield Document(id=entry.id, source=entry.source, path=entry.path, text=self._text(entry))

    def statement(self) -> DataStatement:
        """The data statement; ``.text()`` is for reading."""
        manifest = self.manifest
        return DataStatement(
            corpus=manifest.digest,
            vocab_size=manifest.vocab_size,
            seed=manifest.seed,
            held_out_fraction=manifest.held_out_fraction,
            sources=manifest.sources,
        )

    def verify(self) -> list[Finding]:
        """Hash every file again.

        Returns:
            One Finding for each file that is not what the manifest says (``fail``) or cannot be read
            (``unknown``), with the check ``data.shard`` or ``data.file``; one ``ok`` when there is none.
        """
        expected = [(shard.file, shard.sha256, "data.shard") for shard in self.manifest.shards]
        expected += [(name, sha256, "data.file") for name, sha256 in self.manifest.files.items()]
        found = [_judge(self.folder, file, sha256, check) for file, sha256, check in expected]
        bad = [each for each in found if each is not None]
        if bad:
            return bad
        evidence = [f"{len(self.manifest.shards)} shards and {len(self.manifest.files)} files match their SHA-256"]
        return [finding(f"corpus {self.manifest.digest}", "data.shard", "ok", evidence=evidence)]

    def _entries(self, split: Split, source: str) -> Sequence[LedgerEntry]:
        self._check(split, source)
        return self._by_stream.get((split, source), [])

    @cached_property
    def _by_stream(self) -> dict[tuple[Split, str], list[LedgerEntry]]:
        streams: dict[tuple[Split, str], list[LedgerEntry]] = {}
        for entry in self.ledger:
            streams.setdefault((entry.split, entry.source), []).append(entry)
        return streams

    def _text(self, entry: LedgerEntry) -> str:
        tokens = self.stream(entry.split, entry.source).take(entry.first_token, entry.tokens)
        data = self.tokenizer.decode_bytes(tokens.tolist())
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise DataError(
                f"{entry.source}:{entry.path}: its tokens no longer spell the text in the ledger",
                remedy=f"see wholestack data verify {self.folder}",
            )
        return data.decode()

    def _check(self, split: str, source: str | None) -> None:
        if source is not None and source not in self.sources:
            raise InputError(f"no source {source!r} in {self.folder}", remedy=f"known are: {', '.join(self.sources)}")
        if split not in SPLITS:
            raise InputError(f"no split {split!r}", remedy=f"known are: {', '.join(SPLITS)}")


def _judge(folder: Path, file: str, sha256: str, check: str) -> Finding | None:
    """``None`` when the file is what it should be."""
    try:
        actual = file_sha256(folder / file)
    except FileNotFoundError:
        return _damaged(folder, file, check, "is missing", [f"no file {folder / file}"])
    except OSError as error:
        evidence = [f"{folder / file}: {error.strerror}"]
        return finding(file, check, "unknown", evidence=evidence, cause="cannot be read", remedy="check disk and owner")
    if actual == sha256:
        return None
    return _damaged(folder, file, check, "content changed", [f"SHA-256 is {actual}", f"manifest says {sha256}"])


def _damaged(folder: Path, file: str, check: str, cause: str, evidence: list[str]) -> Finding:
    remedy = f"prepare {folder} again, or copy {file} from a good copy; do not trust runs that read it"
    return finding(file, check, "fail", evidence=evidence, cause=cause, owner="storage", remedy=remedy)
