"""The user's own text: a folder of files, or JSON Lines, each document with a licence or refused by name."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from wholestack.data.licences import identify_file, is_licence_name, is_stated, licence_file, spdx_line
from wholestack.data.source import Reason, Refusal, SourceDocument, check_name, fit_name
from wholestack.errors import InputError
from wholestack.journal import NotOrdinaryError, open_ordinary

MEBIBYTE = 1 << 20
LARGEST_DOCUMENT_BYTES = 4 * MEBIBYTE
LARGEST_SOURCE_BYTES = 16 * 1024 * MEBIBYTE
_BINARY_PROBE_BYTES = 8192

Refused = tuple[Reason, str]


def walk(root: Path, *, skip: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Everything below a folder that is not a folder, in a fixed order; links are not followed.

    Hidden entries and ``__pycache__`` are passed over: they are a tool's, not an author's. A folder below that
    cannot be read is handed over itself, for the caller to refuse by name.

    Raises:
        InputError: the folder itself cannot be read.
    """
    waiting = [root]
    while waiting:
        path = waiting.pop()
        if path != root and (path.is_symlink() or not path.is_dir()):
            yield path
            continue
        try:
            names = sorted(os.listdir(path), reverse=True)
        except OSError as error:
            if path == root:
                raise InputError(f"{root}: cannot be read: {error.strerror}", remedy="check its owner") from error
            yield path
            continue
        waiting.extend(path / name for name in names if not _is_passed_over(name, skip))


def _is_passed_over(name: str, skip: frozenset[str]) -> bool:
    return name in skip or name.startswith(".") or name == "__pycache__"


def place_inside(root: Path, path: Path) -> str:
    """Path below a folder, with ``/``; bytes of a name that are not UTF-8 are spelt out."""
    return os.fsencode(path.relative_to(root).as_posix()).decode(errors="backslashreplace")


def read_text(path: Path, *, largest_bytes: int = LARGEST_DOCUMENT_BYTES) -> str | Refused:
    """The UTF-8 text of a plain file, or why there is none."""
    file = open_plain(path)
    if isinstance(file, tuple):
        return file
    with file:
        size = os.fstat(file.fileno()).st_size
        if size > largest_bytes:
            return "too_large", f"{size:,} bytes, the cap is {largest_bytes:,}"
        return decode(file.read(largest_bytes + 1))


def open_plain(path: Path, *, follow: bool = False) -> BufferedReader | Refused:
    """A plain file for reading bytes, or why it is none: a pipe or a device could keep us for ever.

    Args:
        path: The file.
        follow: Whether it may be a link to one.
    """
    try:
        return open_ordinary(path, follow=follow)
    except NotOrdinaryError:
        return "outside", "not a plain file"
    except OSError as error:
        is_link = path.is_symlink() and not follow
        return ("outside", "a symbolic link") if is_link else ("unreadable", str(error.strerror))


def decode(data: bytes) -> str | Refused:
    """Bytes as UTF-8 text without a byte order mark, or why they are not."""
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        return "binary", "a NUL byte near the start"
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return "not_utf8", f"byte 0x{data[error.start]:02x} at {error.start}"


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder of text files.

    The licence of a file is the one given; else its own SPDX line; else that of the nearest licence file from its
    folder upwards to ``root``. A nearer licence file that is not recognised refuses what lies under it.

    Args:
        root: The folder.
        name: Name of the source; by default that of the folder.
        given: SPDX identifier that holds for every file, or ``None`` to find it.
        suffixes: Take only these endings, for instance ``(".md", ".txt")``; empty for all.
        largest_bytes: A larger file is refused by name.
        largest_total_bytes: More text than this is an error, not a truncation.

    Raises:
        InputError: it is not a folder, or the name cannot be used.
    """

    root: Path
    name: str = ""
    given: str | None = None
    suffixes: tuple[str, ...] = ()
    largest_bytes: int = LARGEST_DOCUMENT_BYTES
    largest_total_bytes: int = LARGEST_SOURCE_BYTES
    _licences: dict[Path, tuple[str, str] | None] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            raise InputError(f"{self.root}: not a folder", remedy="name a folder with text files")
        if self.given is not None and not is_stated(self.given):
            raise InputError(f"{self.root}: {self.given!r} is not a licence", remedy="give an SPDX identifier")
        object.__setattr__(self, "name", check_name(self.name or fit_name(self.root.resolve().name)))

    @property
    def licence(self) -> str:
        """Which licence, and where it was read."""
        if self.given is not None:
            return f"{self.given}, as given by the user"
        found = self._folder_licence(self.root)
        if found is None:
            return "none for the folder as a whole; single files state their own"
        return f"{found[0] or 'not recognised'}, read from {found[1]}"

    def documents(self) -> Iterator[SourceDocument | Refusal]:
        """One document a file.

        Raises:
            InputError: no file in it at all, or more text than the cap.
        """
        total_bytes = count = 0
        for path in walk(self.root):
            inside = place_inside(self.root, path)
            if self.suffixes and path.suffix not in self.suffixes:
                continue
            count += 1
            taken = self._document(path, inside)
            if isinstance(taken, SourceDocument):
                total_bytes += len(taken.text.encode())
                self._check_total(total_bytes)
            yield taken
        if not count:
            wanted = f" ending in {' or '.join(self.suffixes)}" if self.suffixes else ""
            raise InputError(f"{self.root}: no file{wanted} in it", remedy="name a folder with text files")

    def _document(self, path: Path, inside: str) -> SourceDocument | Refusal:
        if is_licence_name(path.name):
            return Refusal(source=self.name, path=inside, reason="left_out", detail="the licence itself")
        text = read_text(path, largest_bytes=self.largest_bytes)
        if not isinstance(text, str):
            return Refusal(source=self.name, path=inside, reason=text[0], detail=text[1])
        licence = self.given or spdx_line(text)
        if licence is None:
            found = self._folder_licence(path.parent)
            licence = found[0] if found else None
            if not is_stated(licence) or licence is None:
                seen = f"{found[1]} is not recognised" if found else "no SPDX line, no licence file above it"
                return Refusal(source=self.name, path=inside, reason="no_licence", detail=seen)
        return SourceDocument(path=inside, text=text, licence=licence)

    def _folder_licence(self, folder: Path) -> tuple[str, str] | None:
        """Identifier ("" if not recognised) and place of the nearest licence file, or ``None``."""
        if folder not in self._licences:
            file = licence_file(folder)
            if file:
                self._licences[folder] = identify_file(file) or "", file.relative_to(self.root).as_posix()
            else:
                self._licences[folder] = None if folder == self.root else self._folder_licence(folder.parent)
        return self._licences[folder]

    def _check_total(self, total_bytes: int) -> None:
        if total_bytes > self.largest_total_bytes:
            raise InputError(
                f"{self.root}: more than {self.largest_total_bytes:,} bytes of text",
                remedy="raise largest_total_bytes, or name a smaller folder",
            )


def numbered_lines(readline: Callable[[int], bytes], *, longest_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Number and content of each line that is not blank, in bounded memory.

    Args:
        readline: Of a file that was opened for reading bytes.
        longest_bytes: A longer line comes cut to this length.
    """
    number = 0
    while line := readline(longest_bytes):
        number += 1
        end = line[-1:]
        while end != b"\n" and (rest := readline(longest_bytes)):
            end = rest[-1:]
        if line.strip():
            yield number, line


@dataclass(frozen=True, slots=True)
class JsonLinesSource:
    """A JSON Lines file: one object a line with ``text`` and ``licence`` (or ``license``).

    ``path`` or ``id`` names the document, else its line does. Other fields are somebody else's and are ignored.

    Args:
        file: The file.
        name: Name of the source; by default that of the file without its ending.
        largest_bytes: A longer line is refused by name; at most one line is in memory.

    Raises:
        InputError: it is not a file, or the name cannot be used.
    """

    file: Path
    name: str = ""
    largest_bytes: int = LARGEST_DOCUMENT_BYTES

    def __post_init__(self) -> None:
        if not self.file.is_file():
            raise InputError(f"{self.file}: not a file", remedy="name a JSON Lines file")
        object.__setattr__(self, "name", check_name(self.name or fit_name(self.file.stem)))

    @property
    def licence(self) -> str:
        """Which licence, and where it was read."""
        return "stated line by line in the field 'licence'"

    def documents(self) -> Iterator[SourceDocument | Refusal]:
        """One document a line.

        Raises:
            InputError: the file cannot be read, or holds no line.
        """
        count = 0
        try:
            with self.file.open("rb") as lines:
                for number, line in numbered_lines(lines.readline, longest_bytes=self.largest_bytes + 1):
                    count += 1
                    place = f"line {number}"
                    yield self._too_long(place) if len(line) > self.largest_bytes else self._document(line, place)
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read: {error.strerror}") from error
        if not count:
            raise InputError(f"{self.file}: no line in it", remedy="write one JSON object a line")

    def _too_long(self, place: str) -> Refusal:
        return Refusal(source=self.name, path=place, reason="too_large", detail=f"the cap is {self.largest_bytes:,}")

    def _document(self, line: bytes, place: str) -> SourceDocument | Refusal:
        row = _object(line)
        if isinstance(row, tuple):
            return Refusal(source=self.name, path=place, reason=row[0], detail=row[1])
        named = row.get("path", row.get("id"))
        path = f"{place} ({named})" if isinstance(named, str | int) else place
        text, licence = row.get("text"), row.get("licence", row.get("license"))
        if not isinstance(text, str):
            return Refusal(source=self.name, path=path, reason="malformed", detail="no field 'text' with a string")
        if not isinstance(licence, str) or not is_stated(licence):
            return Refusal(source=self.name, path=path, reason="no_licence", detail=f"licence: {licence!r}"[:100])
        return SourceDocument(path=path, text=text, licence=licence.strip())


def _object(line: bytes) -> dict[str, Any] | Refused:
    """One JSON object, or why the line is none."""
    text = decode(line)
    if isinstance(text, tuple):
        return text
    try:
        row = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return "malformed", f"not JSON: {error}"
    except RecursionError:
        return "malformed", "nested too deep"
    if not isinstance(row, dict):
        return "malformed", f"a JSON {type(row).__name__}, not an object"
    return row


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Documents from memory: for tests, and for text that another program holds.

    Example:
        >>> notes = MemorySource("notes", {"a.txt": "Some text."}, given="CC0-1.0")
        >>> next(notes.documents()).licence
        'CC0-1.0'

    Args:
        name: Name of the source.
        texts: Text by path.
        given: Licence of all of them; without one each is refused.
        groups: Group names by path, for documents that must go to the same split.
    """

    name: str
    texts: dict[str, str]
    given: str | None = None
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name)

    @property
    def licence(self) -> str:
        """Which licence."""
        return f"{self.given}, as given by the program" if self.given else "none given"

    def documents(self) -> Iterator[SourceDocument | Refusal]:
        """One document an entry, in the order of the dict.

        Raises:
            InputError: there is no entry.
        """
        if not self.texts:
            raise InputError(f"source {self.name!r} is empty", remedy="give it at least one document")
        for path, text in self.texts.items():
            if is_stated(self.given) and self.given is not None:
                yield SourceDocument(path=path, text=text, licence=self.given, groups=self.groups.get(path, ()))
            else:
                yield Refusal(source=self.name, path=path, reason="no_licence", detail="none given")
