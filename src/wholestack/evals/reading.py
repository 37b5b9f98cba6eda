"""Files that a user names, or that lie in a folder of results: ordinary, of bounded size, or refused in one line.

A pipe without a writer would hang, a device would fill the memory; neither is waited for nor read.
"""

import os
import stat
from pathlib import Path

from wholestack.errors import InputError

MOST_BYTES = 8_000_000_000
"""Of one file; it is held in memory as a whole."""


def read_file(path: Path, *, remedy: str = "name an existing file") -> bytes:
    """All bytes of an ordinary file.

    Args:
        path: The file; a link to one is as good.
        remedy: Behind the message of a file that cannot be read.

    Raises:
        InputError: it cannot be read, is a folder, pipe or device, is larger than :data:`MOST_BYTES`, or is written to
            while it is read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{path}: is no ordinary file", remedy="write its content to a file first")
            if found.st_size > MOST_BYTES:
                raise InputError(f"{path}: is larger than {MOST_BYTES:,} bytes", remedy="split it")
            raw = file.read(found.st_size + 1)
            after = os.fstat(handle)
            if (len(raw), after.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
                raise InputError(f"{path}: changed while it was read", remedy="wait until it is written and try again")
            return raw
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be read: {said}", remedy=remedy) from error
