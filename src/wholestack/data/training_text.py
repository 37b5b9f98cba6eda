"""Training text as it lies about: a corpus or run of ours, or any files, read in bounded memory, document by document.

JSON Lines give one document a line, all texts of it whatever their keys are; other files give pieces that overlap.
Files may be compressed: ``.gz``, ``.bz2``, ``.xz``, and ``.zst`` where the Python that runs can read it. What cannot be
read is handed over by name with the reason: nobody knows what stands there.
"""

import bz2
import gzip
import importlib
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import msgspec

from wholestack.data.corpus import Corpus
from wholestack.data.folder import LARGEST_DOCUMENT_BYTES, numbered_lines, open_plain
from wholestack.errors import InputError

_ESCAPED = re.compile(r'\\(["\\/nrt]|u[0-9a-fA-F]{4})')
_PIECE_BYTES, _OVERLAP_BYTES = 1 << 20, 1 << 14
_LINES = (".jsonl", ".ndjson")
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)


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


def training_texts(folder: Path) -> Iterator[Text | Unread]:
    """Documents of the training split of a corpus or run of ours, or of all files of a folder, or of one file.

    Raises:
        InputError: there is no such place, or no file in it.
        DataError: a corpus is damaged.
    """
    for corpus in (folder, folder / "data"):
        if (corpus / "manifest.json").exists():
            return _of_corpus(corpus)
    if not folder.exists():
        raise InputError(f"{folder}: is not there", remedy="name a corpus, a run, or a folder of text")
    return texts_of(training_files(folder))


def training_files(folder: Path) -> list[Path]:
    """All files below a folder, or the one that is named.

    Raises:
        InputError: there is none.
    """
    files = _all_files(folder) if folder.is_dir() else [folder]
    if not files:
        raise InputError(f"{folder}: no file in it", remedy="name a corpus, a run, or a folder of text")
    return files


def _all_files(folder: Path) -> list[Path]:
    """Everything below that is no folder, hidden or not, in a fixed order; links are not followed."""
    return sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)


def _of_corpus(folder: Path) -> Iterator[Text]:
    for document in Corpus.open(folder).documents("train"):
        yield Text(f"{folder}: {document.source} {document.path}", document.text)


def texts_of(files: Iterable[Path]) -> Iterator[Text | Unread]:
    """Documents of files, in their order."""
    for path in files:
        file = open_plain(path)
        if isinstance(file, tuple):
            yield Unread(str(path), file[1])
            continue
        with file:
            before = os.fstat(file.fileno())
            packed = path.suffix.lower() in _PACKED
            kind = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
            try:
                plain = _PACKED[path.suffix.lower()](file) if packed else file
                yield from _of_json_lines(path, plain) if kind in _LINES else _of_text(path, plain)
            except _BROKEN as error:
                yield Unread(str(path), f"cannot be read to its end: {error}")
                continue
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                yield Unread(str(path), "changed while it was read: what came behind is not known")


def _of_text(path: Path, file: IO[bytes]) -> Iterator[Text | Unread]:
    """Pieces that overlap by more than a question is long, so that none is cut in two."""
    kept = b""
    while block := file.read(_PIECE_BYTES):
        if b"\0" in block:
            yield Unread(str(path), "holds zero bytes: is no text")
            return
        text = (kept + block).decode(errors="replace")
        yield Text(str(path), text)
        if "\\n" in text:  # programs within JSON of any shape, or within source code
            yield Text(str(path), _ESCAPED.sub(_unescaped, text))
        kept = block[-_OVERLAP_BYTES:]


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said[1:], 16)) if said[0] == "u" else {"n": "\n", "t": "\t", "r": "\r"}.get(said, said)


def _of_json_lines(path: Path, file: IO[bytes]) -> Iterator[Text | Unread]:
    """One document a line: all its texts, whatever their keys are."""
    for number, line in numbered_lines(file.readline, longest_bytes=LARGEST_DOCUMENT_BYTES):
        try:
            yield Text(f"{path}:{number}", "\n".join(_strings(msgspec.json.decode(line))))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            yield Unread(f"{path}:{number}", f"not JSON: {error}")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))


def _zstandard(file: BufferedReader) -> IO[bytes]:
    """Python 3.14 has it; before, two packages do."""
    for name, opener in (("compression.zstd", "ZstdFile"), ("backports.zstd", "ZstdFile"), ("zstandard", "open")):
        try:
            found: Callable[..., IO[bytes]] = getattr(importlib.import_module(name), opener)
        except ImportError:
            continue
        return found(file) if opener == "ZstdFile" else found(file, "rb")
    raise ValueError("this Python reads no .zst; pip install zstandard, or unpack it first")


_PACKED: dict[str, Callable[[BufferedReader], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstandard,
}
