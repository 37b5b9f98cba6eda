"""Writing a file that appears under its name when it is whole; until then it is kept beside it, under a hidden name."""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from wholestack.errors import InputError


class NewFile:
    """A file in the making.

    Args:
        path: What it will be called; named in errors.
        file: It, at its start.
    """

    def __init__(self, path: Path, file: BufferedRandom) -> None:
        self._path = path
        self._file = file

    def kept_lines(self, longest_bytes: int) -> Iterator[bytes]:
        """Whole lines that are there from before, up to one that is cut off or longer than this."""
        self._file.seek(0)
        while (line := self._file.readline(longest_bytes)).endswith(b"\n"):
            yield line

    def cut(self, size: int) -> None:
        """Keep so many bytes from before; what is written next stands behind them."""
        with _writable(self._path):
            self._file.seek(size)
            self._file.truncate()

    def write(self, line: bytes) -> None:
        """Add a line.

        Raises:
            InputError: it cannot be written, for instance because the disk is full.
        """
        with _writable(self._path):
            self._file.write(line)


@contextmanager
def new_file(path: Path, *, resumable: bool = False) -> Iterator[NewFile]:
    """A file that does not exist yet; it appears when the block has ended without an error.

    Args:
        path: The file; until then its lines are in ``.NAME.tmp`` beside it.
        resumable: Hand out what a killed block left there, and leave it there when this one is ended by anything but
            an :class:`~wholestack.errors.InputError`. Otherwise nothing from before is kept, and nothing is left.

    Raises:
        InputError: it exists, another process is writing it, or it cannot be written.
    """
    exists = InputError(f"{path}: exists", remedy="name another file, or remove it")
    if path.exists() or path.is_symlink():
        raise exists
    beside = path.with_name(f".{path.name}.tmp")
    with _writable(path):
        file = _locked(beside)
    is_left = False
    with file:
        try:
            made = NewFile(path, file)
            if not resumable:
                made.cut(0)
            yield made
            with _writable(path):
                file.flush()
                os.fsync(file.fileno())
                try:
                    os.link(beside, path)  # unlike a rename it takes nobody's place
                except FileExistsError:
                    raise exists from None
        except BaseException as error:
            is_left = resumable and not isinstance(error, InputError)
            raise
        finally:
            if not is_left:
                with contextlib.suppress(OSError):
                    beside.unlink()


def write_new(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file that does not exist yet; it appears when all lines are in it.

    Raises:
        InputError: it exists, or cannot be written.
    """
    with new_file(path) as file:
        for line in lines:
            file.write(line)


def _locked(beside: Path) -> BufferedRandom:
    """The file in the making, ours alone.

    Raises:
        InputError: another process is writing it.
        OSError: it cannot be opened.
    """
    file = os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(
            f"{beside}: another process is writing it", remedy="wait for it, or name another file"
        ) from None
    if os.fstat(file.fileno()).st_nlink > 1:  # killed when it had just appeared: this is the file itself
        file.close()
        beside.unlink()
        return _locked(beside)
    return file


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}", remedy="name a file in a folder of yours"
        ) from error
