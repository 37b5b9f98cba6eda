"""Prepare a corpus: read, refuse, cluster, split, train the tokenizer, write shards, ledger and manifest.

Two passes. The first (:mod:`wholestack.data.gather`) reads each document once; the second encodes them one at a
time. Memory: one document, one shard, the sketches (64 MB at most, some four times that while they are compared)
and below 1 kB a document. Time is linear in the bytes, but for the sorting of sketches.

The manifest is written last and names every file by hash, so a kill at any moment leaves no corpus or a whole one.
The same inputs give the same manifest, but for the versions.
"""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from wholestack import __version__
from wholestack.data.bpe import train
from wholestack.data.corpus import LEDGER, MANIFEST, REFUSED, SHARDS, TOKENIZER, Corpus, CorpusManifest, sealed
from wholestack.data.gather import Gathered, Gathering, Progress, Scratch, gather
from wholestack.data.ledger import LedgerEntry, Tally, write_lines
from wholestack.data.shards import ShardWriter, file_sha256
from wholestack.data.similarity import clusters
from wholestack.data.source import SPLITS, Refusal, Source, Split, check_name
from wholestack.data.split import Member, choose_splits
from wholestack.data.tokenizer import END_OF_DOCUMENT, Tokenizer, check_vocab_size
from wholestack.errors import DataError, InputError, RecordError, RunDirectoryError
from wholestack.journal import write_atomic
from wholestack.record import to_json

FORMAT = 1
SAMPLE_BYTES = 2 << 20
LARGEST_SAMPLE_PART_CHARACTERS = 1 << 15
_END = np.array([END_OF_DOCUMENT], dtype=np.uint16)
_OURS = frozenset({MANIFEST, TOKENIZER, LEDGER, REFUSED, SHARDS})


def prepare(
    sources: Sequence[Source],
    folder: Path,
    *,
    vocab_size: int,
    seed: int,
    held_out_fraction: float = 0.06,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Make a corpus, or hand back the one that the same inputs already made there.

    Args:
        sources: Where documents come from; of equal texts the first is kept.
        folder: Made if it is missing; may hold a half-written corpus, which is done again.
        vocab_size: Tokens wanted, 256 (plain bytes) to 65,536.
        seed: Chooses what is held out.
        held_out_fraction: Share of each source's bytes to hold out, 0 to 0.5.
        tokenizer: One that is given, for a model that knows it already; default: trained on this text.
        progress: Told how far it is.

    Raises:
        InputError: a setting is out of range, a given tokenizer is too large, a source gives nothing usable, or the
            folder holds something else.
        RunDirectoryError: the folder cannot be written.
    """
    check_vocab_size(vocab_size)
    _check_settings(sources, held_out_fraction)
    if tokenizer is not None and tokenizer.vocab_size > vocab_size:
        raise InputError(f"the given tokenizer has {tokenizer.vocab_size:,} tokens, vocab_size is {vocab_size:,}")
    report = progress or _unwatched
    _make(folder)
    with Scratch(folder) as scratch:
        gathered = gather(sources, scratch, report)
        said = {source.name: source.licence for source in sources}
        given = [] if tokenizer is None else [tokenizer.digest]
        inputs = gathered.inputs_digest([FORMAT, vocab_size, seed, held_out_fraction, said, *given])
        existing = _existing(folder, inputs)
        if existing:
            return existing
        report("compare", 0, gathered.size_bytes)
        labels = _cluster(gathered)
        splits = _split(gathered.documents, labels, held_out_fraction, seed)
        if tokenizer is None:
            report("train tokenizer", 0, SAMPLE_BYTES)
            tokenizer = train(_sample(gathered, splits), vocab_size=vocab_size)
        _clear(folder)
        tally = Tally(said)
        writers = {(name, split): ShardWriter(folder, name, split) for name in said for split in SPLITS}
        entries = _entries(gathered, splits=splits, labels=labels, tokenizer=tokenizer, writers=writers, report=report)
        tokenizer.save(folder / TOKENIZER)
        write_lines(folder / LEDGER, _tallied(entries, tally))
        write_lines(folder / REFUSED, _refused(gathered, tally))
        manifest = CorpusManifest(
            digest="",
            inputs=inputs,
            vocab_size=tokenizer.vocab_size,
            vocab_size_asked=vocab_size,
            seed=seed,
            held_out_fraction=held_out_fraction,
            tokenizer=tokenizer.digest,
            near_duplicates_complete=gathered.sketches.zero_bits == 0,
            files={name: file_sha256(folder / name) for name in (TOKENIZER, LEDGER, REFUSED)},
            shards=tuple(shard for writer in writers.values() for shard in writer.close()),
            sources=tally.summaries(),
            versions={"python": platform.python_version(), "wholestack": __version__},
        )
        write_atomic(folder / MANIFEST, to_json(replace(manifest, digest=sealed(manifest)), indent=2))
    return Corpus.open(folder)


def _unwatched(phase: str, done_bytes: int, total_bytes: int | None) -> None:
    """Progress that nobody watches."""


def _check_settings(sources: Sequence[Source], held_out_fraction: float) -> None:
    names = [check_name(source.name) for source in sources]
    if not names:
        raise InputError("no source of text", remedy="give at least one")
    if len(set(names)) < len(names):
        raise InputError(f"two sources of one name among {', '.join(names)}", remedy="name them apart")
    if not 0 <= held_out_fraction <= 0.5:
        raise InputError(f"held_out_fraction is {held_out_fraction}", remedy="choose 0 to 0.5")


def _make(folder: Path) -> None:
    """Make the folder, or see that what is in it is ours to write over."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [path.name for path in folder.iterdir() if path.name not in _OURS and not _is_leftover(path)]
    except OSError as error:
        raise RunDirectoryError(
            f"{folder}: cannot be made: {error.strerror}", remedy="choose another folder"
        ) from error
    if foreign:
        raise InputError(
            f"{folder}: holds {min(foreign)!r}, which is no part of a corpus", remedy="choose another folder"
        )


def _existing(folder: Path, inputs: str) -> Corpus | None:
    """The corpus in the folder, if it is whole and of the same inputs.

    Raises:
        InputError: it is of other inputs.
    """
    if not (folder / MANIFEST).exists():
        return None
    try:
        corpus = Corpus.open(folder)
    except (DataError, RecordError):
        return None  # a damaged manifest is no corpus; what lies around it is written again
    if corpus.manifest.inputs != inputs:
        raise InputError(
            f"{folder}: holds corpus {corpus.manifest.digest}, made from other documents or settings",
            remedy="choose another folder, or delete that one",
        )
    return corpus if all(each.status == "ok" for each in corpus.verify()) else None


def _clear(folder: Path) -> None:
    """Take away what an earlier try left, the manifest first: without it the rest is no corpus."""
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
        (folder / SHARDS).mkdir(exist_ok=True)
        for path in [*folder.iterdir(), *(folder / SHARDS).iterdir()]:
            if _is_leftover(path) or path.suffix == ".bin":
                path.unlink()
    except OSError as error:
        raise RunDirectoryError(f"{folder}: cannot be written: {error.strerror}", remedy="check its owner") from error


def _is_leftover(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _cluster(gathered: Gathering) -> list[int]:
    pairs = gathered.sketches.near_pairs().tolist()
    return clusters(len(gathered.documents), pairs, [document.groups for document in gathered.documents])


def _split(documents: Sequence[Gathered], labels: Sequence[int], fraction: float, seed: int) -> list[Split]:
    members = [
        Member(id=document.id, source=document.source, size_bytes=document.size_bytes, cluster=label)
        for document, label in zip(documents, labels, strict=True)
    ]
    return choose_splits(members, fraction=fraction, seed=seed)


def _sample(gathered: Gathering, splits: Sequence[Split]) -> Iterator[str]:
    """Training text of the tokenizer: an equal share of each source, by hash of the documents, never held out."""
    training = [document for document, split in zip(gathered.documents, splits, strict=True) if split == "train"]
    names = dict.fromkeys(document.source for document in training)
    for name in names:
        left = SAMPLE_BYTES // len(names)
        for document in sorted((each for each in training if each.source == name), key=lambda each: each.id):
            if left <= 0:
                break
            text = gathered.scratch.read(document)[:LARGEST_SAMPLE_PART_CHARACTERS]
            left -= len(text)
            yield text


def _entries(
    gathered: Gathering,
    *,
    splits: Sequence[Split],
    labels: Sequence[int],
    tokenizer: Tokenizer,
    writers: Mapping[tuple[str, Split], ShardWriter],
    report: Progress,
) -> Iterator[LedgerEntry]:
    """Encode document after document into its stream, and hand over the entry of each."""
    done_bytes = 0
    for document, split, label in zip(gathered.documents, splits, labels, strict=True):
        tokens = np.append(tokenizer.encode(gathered.scratch.read(document)), _END)
        yield LedgerEntry(
            id=document.id,
            source=document.source,
            path=document.path,
            licence=document.licence,
            sha256=document.sha256,
            size_bytes=document.size_bytes,
            tokens=len(tokens),
            split=split,
            cluster=gathered.documents[label].id,
            first_token=writers[document.source, split].append(tokens),
        )
        done_bytes += document.size_bytes
        report("write", done_bytes, gathered.size_bytes)


def _tallied(entries: Iterable[LedgerEntry], tally: Tally) -> Iterator[LedgerEntry]:
    for entry in entries:
        tally.add(entry)
        yield entry


def _refused(gathered: Gathering, tally: Tally) -> Iterator[Refusal]:
    for refusal in gathered.refusals:
        tally.refuse(refusal)
        yield refusal
