"""Append-only JSONL journals: one writer, every line fsynced before it is acknowledged.

A kill can leave an unfinished last line. It was never acknowledged, so a reader passes over it and the next
writer cuts it off. Anything else that does not decode is damage, and is reported with file and line.
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from wholestack.errors import InputError, RecordError, RunDirectoryError
from wholestack.record import Record, from_json, to_json

R = TypeVar("R", bound=Record)


class JournalWriter(Generic[R]):
    """The one writer of a journal; use as a context manager or close it.

    Args:
        path: The file; made if it is missing.
        kind: The Record class of its lines.

    Raises:
        RunDirectoryError: the file cannot be opened or written (for instance a full disk).
    """

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self._kind = kind
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._end = _acknowledged_bytes(self._file)
            os.ftruncate(self._file, self._end)
            _sync_folder(path.parent)
        except OSError as error:
            raise _cannot_write(path, error) from error

    def append(self, record: R) -> None:
        """Write one record; on return it is on the disk, on an error the journal is as it was."""
        self.extend((record,))

    def extend(self, records: Sequence[R]) -> None:
        """Write several records at the price of one; on return all are on the disk, on an error none is."""
        for record in records:
            if not isinstance(record, self._kind):
                raise TypeError(f"{self._path.name} holds {self._kind.__name__}, got {type(record).__name__}")
        lines = b"".join(to_json(record) + b"\n" for record in records)
        try:
            written = 0
            while written < len(lines):
                written += os.pwrite(self._file, lines[written:], self._end + written)
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise _cannot_write(self._path, error) from error
        self._end += len(lines)

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(path: Path, kind: type[R]) -> list[R]:
    """All acknowledged records, oldest first; of a journal that does not exist yet, none.

    Raises:
        RecordError: a finished line does not decode; names file and line.
    """
    return list(iterate_journal(path, kind))


class NotOrdinaryError(OSError):
    """A folder, pipe or device stands where a file should."""


def open_ordinary(path: Path, *, follow: bool = True) -> BufferedReader:
    """An ordinary file for reading bytes. A pipe in its place is not waited for, nor is a device read without end.

    Args:
        path: The file.
        follow: Whether a link to one is as good.

    Raises:
        NotOrdinaryError: it is something else.
        OSError: it cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise NotOrdinaryError("it is no ordinary file")


def read_at_most(path: Path, most: int, *, remedy: str) -> bytes:
    """A whole file that a person named.

    Args:
        path: The file.
        most: Bytes that it may have.
        remedy: What to do where it cannot be read.

    Raises:
        InputError: it cannot be read, or is larger.
    """
    try:
        with path.open("rb") as opened:
            content = opened.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", remedy=remedy) from error
    if len(content) > most:
        raise InputError(f"{path}: is larger than {most:,} bytes", remedy="name the right file")
    return content


def iterate_journal(path: Path, kind: type[R]) -> Iterator[R]:
    """Like :func:`read_journal`, one record at a time."""
    try:
        with open_ordinary(path) as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield from_json(kind, line, where=f"{path}:{number}")
    except FileNotFoundError:
        return
    except NotOrdinaryError as error:
        raise RecordError(f"{path}: is no ordinary file") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error


def hold(path: Path) -> int:
    """Hold a file, made if it is missing, for this process alone; the handle to close. It goes with the process, so it
    never goes stale.

    Raises:
        BlockingIOError: a live process holds it.
        OSError: it cannot be made or locked.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file so that of all processes one alone is in the block; raises as :func:`hold`."""
    handle = hold(path)
    try:
        yield
    finally:
        os.close(handle)


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Read a file, then replace it, with nobody else doing the same in between: else the last one would win.

    Args:
        path: What is replaced. Held is a file beside it, which stays: the file itself is another one afterwards.

    Raises:
        InputError: another process changes it, or the file beside it cannot be made.
    """
    target = path.resolve()
    beside = target.with_name(f"{target.name}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(held(beside))
        except BlockingIOError as error:
            raise InputError(
                f"{path}: another process changes it", remedy="run the same command again when that one is done"
            ) from error
        except OSError as error:
            remedy = "make its folder, and writable, or name another file"
            raise InputError(f"{beside}: cannot be made: {error.strerror}", remedy=remedy) from error
        yield


def write_atomic(path: Path, data: bytes) -> None:
    """Make ``path`` hold ``data``, or leave it as it was; see :func:`write_pieces`."""
    write_pieces(path, (data,))


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Make ``path`` hold some bytes, one piece in memory at a time, or leave it as it was.

    They are written beside it, fsynced and renamed. A rename puts a file in the place of whatever is there, so only an
    ordinary file is replaced; of a link, the file that it leads to.

    Raises:
        RunDirectoryError: the folder cannot be written, or a folder, device, pipe or socket is there.
    """
    target = _replaceable(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            beside.unlink()


def _replaceable(path: Path) -> Path:
    """The file that a path means, which is not there yet or is an ordinary one."""
    try:
        target = path.resolve() if path.is_symlink() else path
        there = target.stat().st_mode
    except FileNotFoundError:
        there = 0
    except OSError as error:
        raise _cannot_write(path, error) from error
    except (ValueError, RuntimeError) as error:  # a NUL in the name; a link that leads to itself
        raise RunDirectoryError(f"{path}: cannot be written: {error}", remedy="name another file") from error
    if not target.name or stat.S_ISDIR(there):
        raise RunDirectoryError(f"{path}: is a folder", remedy="name a file")
    if there and not stat.S_ISREG(there):
        raise RunDirectoryError(f"{path}: is no ordinary file", remedy="name a new or an ordinary file")
    return target


def _acknowledged_bytes(file: int, block: int = 65536) -> int:
    """Length of the file up to and with its last newline."""
    end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - block)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(path: Path, error: OSError) -> RunDirectoryError:
    remedy = {
        28: "free space on that disk, then resume",  # ENOSPC
        122: "raise the quota or free space, then resume",  # EDQUOT
        13: "choose another folder or change its owner",  # EACCES
        30: "choose a folder on a writable file system",  # EROFS
    }.get(error.errno or 0, "")
    return RunDirectoryError(f"{path}: cannot be written: {error.strerror or error}", remedy=remedy)
