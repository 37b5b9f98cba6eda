"""The first pass over the sources: keep or refuse every document, put its text into a scratch file, sketch it."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from wholestack.data.screen import verdict
from wholestack.data.similarity import Sketches
from wholestack.data.source import WHY, Reason, Refusal, Source, SourceDocument
from wholestack.errors import InputError, RunDirectoryError
from wholestack.record import digest

Progress = Callable[[str, int, int | None], None]
"""Called with the phase (``read``, ``compare``, ``train tokenizer``, ``write``), bytes done, and bytes in all where
they are known."""


@dataclass(slots=True)
class Gathered:
    """A document that was read and is not written yet."""

    id: str
    source: str
    path: str
    licence: str
    sha256: str
    size_bytes: int
    offset: int
    groups: list[str]


class Scratch:
    """Texts on the disk, in a file without a name: however the process ends, nothing stays behind.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._end = 0
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise self._failed(error) from error

    def append(self, data: bytes) -> int:
        """Store bytes and hand back their offset."""
        offset = self._end
        try:
            while self._end < offset + len(data):
                self._end += os.pwrite(self._file.fileno(), data[self._end - offset :], self._end)
        except OSError as error:
            raise self._failed(error) from error
        return offset

    def read(self, document: Gathered) -> str:
        """The text of a document."""
        return os.pread(self._file.fileno(), document.size_bytes, document.offset).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _failed(self, error: OSError) -> RunDirectoryError:
        return RunDirectoryError(
            f"{self._folder}: cannot be written: {error.strerror}", remedy="check owner and free space, then go on"
        )


@dataclass(slots=True)
class Gathering:
    """What the first pass found, in the order it came."""

    scratch: Scratch
    documents: list[Gathered] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    sketches: Sketches = field(default_factory=Sketches)
    size_bytes: int = 0
    _index_of: dict[str, int] = field(default_factory=dict)

    def take(self, source: str, found: SourceDocument | Refusal) -> None:
        """Keep or refuse one thing that a source handed over."""
        if isinstance(found, Refusal):
            self.refusals.append(found)
            return
        try:
            data = found.text.encode()
        except UnicodeEncodeError as error:
            self._refuse(source, found, "not_utf8", f"a lone surrogate at character {error.start}")
            return
        junk = verdict(found.text, data)
        sha256 = hashlib.sha256(data).hexdigest()
        if junk:
            self._refuse(source, found, *junk)
        elif sha256 in self._index_of:
            twin = self.documents[self._index_of[sha256]]
            twin.groups.extend(found.groups)
            self._refuse(source, found, "duplicate", f"same text as {twin.source}:{twin.path}")
        else:
            self._keep(source, found, data, sha256)

    def _keep(self, source: str, found: SourceDocument, data: bytes, sha256: str) -> None:
        self._index_of[sha256] = len(self.documents)
        self.sketches.add(data)
        self.size_bytes += len(data)
        self.documents.append(
            Gathered(
                id=digest(source, found.path, sha256),
                source=source,
                path=found.path,
                licence=found.licence,
                sha256=sha256,
                size_bytes=len(data),
                offset=self.scratch.append(data),
                groups=list(found.groups),
            )
        )

    def _refuse(self, source: str, found: SourceDocument, reason: Reason, detail: str) -> None:
        self.refusals.append(Refusal(source=source, path=found.path, reason=reason, detail=detail))

    def inputs_digest(self, settings: Iterable[object]) -> str:
        """Identity of everything that was found and of the settings."""
        hasher = hashlib.sha256(msgspec.json.encode(list(settings)))
        for document in self.documents:
            line = (document.source, document.path, document.licence, document.sha256, document.groups)
            hasher.update(msgspec.json.encode(line))
        for refusal in self.refusals:
            hasher.update(msgspec.json.encode(refusal))
        return hasher.hexdigest()[:16]


def gather(sources: Sequence[Source], scratch: Scratch, report: Progress) -> Gathering:
    """Read every source once.

    Raises:
        InputError: a source gives no document that can be used; says what it gave instead.
    """
    gathering = Gathering(scratch)
    for source in sources:
        report("read", gathering.size_bytes, None)
        before, refused_before = len(gathering.documents), len(gathering.refusals)
        for found in source.documents():
            gathering.take(source.name, found)
            report("read", gathering.size_bytes, None)
        if len(gathering.documents) == before:
            raise InputError(
                f"source {source.name!r} gives no usable document: {_why(gathering.refusals[refused_before:])}",
                remedy="give a licence, or name text that is not in already",
            )
    return gathering


def _why(refusals: Sequence[Refusal]) -> str:
    """Counts by reason, each with one name."""
    by_reason: dict[Reason, list[Refusal]] = {}
    for refusal in refusals:
        by_reason.setdefault(refusal.reason, []).append(refusal)
    parts = [f"{len(each)} x {WHY[reason]} (first: {each[0].path})" for reason, each in by_reason.items()]
    return "; ".join(parts) or "it is empty"
