"""Writing a file that appears under its name when it is whole; until then it is kept beside it, under a hidden name.

A lock goes with the file, not with its name: who waited for one may hold what was renamed or removed meanwhile. So
whoever has the lock looks whether the name still means what he locked.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from wholestack.errors import InputError

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
"""What file systems say that give a file one name only."""
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_BLOCK_BYTES = 1 << 20


class NewFile:
    """A file in the making; every line is with the system when :meth:`write` returns, so a kill takes none away.

    Args:
        beside: Where it is kept; named in errors.
        file: It.
        resumable: Whether it is gone on with after an error.
    """

    def __init__(self, beside: Path, file: FileIO, *, resumable: bool) -> None:
        self._beside = beside
        self._file = file
        self._after = "then the same command goes on" if resumable else "then run the same command again"

    def kept_lines(self, longest_bytes: int) -> Iterator[bytes]:
        """Whole lines that are there from before, up to one that is cut off or longer than this.

        Raises:
            InputError: they cannot be read.
        """
        with self._named("read"), open(self._file.fileno(), "rb", closefd=False) as file:
            file.seek(0)
            while (line := file.readline(longest_bytes)).endswith(b"\n"):
                yield line

    def cut(self, size: int) -> int:
        """Keep so many bytes from before; what is written next stands behind them.

        Returns:
            How many line ends are gone.

        Raises:
            InputError: it cannot be read or written.
        """
        with self._named("written"):
            self._file.seek(size)
            gone = sum(block.count(b"\n") for block in iter(lambda: self._file.read(_BLOCK_BYTES), b""))
            self._file.seek(size)
            self._file.truncate()
        return gone

    def write(self, line: bytes) -> None:
        """Add a line.

        Raises:
            InputError: it cannot be written, for instance because the disk is full.
        """
        with self._named("written"):
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]

    def appear(self, path: Path) -> None:
        """Give it its name, which nobody has.

        Raises:
            InputError: somebody has it now, or it cannot be written.
        """
        with self._named("written"):
            os.fsync(self._file.fileno())
        if not self.is_there:
            raise InputError(
                f"{self._beside}: was removed or replaced by another process", remedy="run the same command again"
            )
        try:
            _name(self._beside, path)
        except FileExistsError:
            raise _exists(path) from None
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written: {error.strerror}", remedy=f"see to it, {self._after}"
            ) from error

    @property
    def is_there(self) -> bool:
        """Whether its hidden name still means it."""
        return _means(self._beside, self._file)

    @property
    def has_lines(self) -> bool:
        """Whether there is something to go on with: it is not empty, and has no other name yet."""
        found = os.fstat(self._file.fileno())
        return found.st_size > 0 and found.st_nlink == 1

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            mend = "free space" if error.errno in _NO_SPACE else "check the disk"
            raise InputError(
                f"{self._beside}: cannot be {what}: {error.strerror}", remedy=f"{mend}, {self._after}"
            ) from error


@contextmanager
def new_file(path: Path, *, resumable: bool = False) -> Iterator[NewFile]:
    """A file that does not exist yet; it appears when the block has ended without an error.

    Args:
        path: The file; until then its lines are in ``.NAME.tmp`` beside it.
        resumable: Hand out what a killed block left there, which begins with :meth:`NewFile.cut`, and leave there what
            this one has written when it is ended by any error. Otherwise nothing from before is kept, and nothing is
            left.

    Raises:
        InputError: it exists, another process is writing it, or it cannot be written.
    """
    beside = path.with_name(f".{path.name}.tmp")
    _require_new(path)
    with _locked(path, beside) as file:
        made = NewFile(beside, file, resumable=resumable)
        is_left = False
        try:
            _require_new(path)  # whoever had the lock before may just have given it its name
            if not resumable:
                made.cut(0)
            yield made
            made.appear(path)
        except BaseException:
            is_left = resumable and made.has_lines
            raise
        finally:
            if not is_left and made.is_there:
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


def _require_new(path: Path) -> None:
    if os.path.lexists(path):
        raise _exists(path)


def _exists(path: Path) -> InputError:
    return InputError(f"{path}: exists", remedy="name another file, or remove it")


def _locked(path: Path, beside: Path) -> FileIO:
    """The file in the making, ours alone.

    Raises:
        InputError: another process is writing it, or it cannot be opened.
    """
    while True:
        file = _opened(path, beside)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _means(beside, file):
                if os.fstat(file.fileno()).st_nlink == 1:
                    return file
                beside.unlink()  # killed when it had just appeared: this is the file itself
        except BlockingIOError:
            file.close()
            raise InputError(
                f"{beside}: another process is writing it", remedy="wait for it, or name another file"
            ) from None
        except OSError as error:
            file.close()
            raise InputError(
                f"{beside}: cannot be locked: {error.strerror}", remedy="name a file on another disk"
            ) from error
        file.close()


def _opened(path: Path, beside: Path) -> FileIO:
    """The file in the making as it is, or an empty one.

    Raises:
        InputError: there is something else, or it cannot be opened.
    """
    try:
        if os.path.lexists(beside) and not stat.S_ISREG(beside.lstat().st_mode):
            raise InputError(
                f"{beside}: is no ordinary file, and the lines of {path.name} have to be kept there until all are made",
                remedy="remove it, or name another file",
            )
        return FileIO(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644), "r+")
    except OSError as error:
        raise _cannot_open(path, beside, error) from error


def _cannot_open(path: Path, beside: Path, error: OSError) -> InputError:
    if os.path.lexists(beside):
        where, remedy = beside, "remove it, or name another file"
    else:
        where, remedy = path, "name a file in a folder of yours"
    if error.errno in _NO_SPACE:
        remedy = "free space"
    return InputError(f"{where}: cannot be written: {error.strerror}", remedy=remedy)


def _means(name: Path, file: FileIO) -> bool:
    """Whether a name is that of an open file."""
    try:
        return os.path.samestat(name.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _name(beside: Path, path: Path) -> None:
    """Move a file to a name that nobody has, or add the name.

    Raises:
        FileExistsError: somebody has it.
        OSError: the folder cannot be written.
    """
    try:
        os.link(beside, path)  # unlike a rename it takes nobody's place
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        try:
            beside.replace(path)  # the place that it takes is ours
        except OSError:
            path.unlink()
            raise
