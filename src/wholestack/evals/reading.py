"""Files that a user names, or that lie in a folder of results: ordinary, of bounded size, or refused in one line.

A pipe without a writer would hang, a device would fill the memory; neither is waited for nor read.
"""

import os
from pathlib import Path

from wholestack.errors import InputError
from wholestack.journal import NotOrdinaryError, open_ordinary

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
        with open_ordinary(path) as file:
            found = os.fstat(file.fileno())
            if found.st_size > MOST_BYTES:
                raise InputError(f"{path}: is larger than {MOST_BYTES:,} bytes", remedy="split it")
            raw = file.read(found.st_size + 1)
            after = os.fstat(file.fileno())
            if (len(raw), after.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
                raise InputError(f"{path}: changed while it was read", remedy="wait until it is written and try again")
            return raw
    except NotOrdinaryError as error:
        if path.is_dir():
            raise InputError(f"{path}: cannot be read: it is a folder", remedy=remedy) from error
        raise InputError(f"{path}: is no ordinary file", remedy="write its content to a file first") from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be read: {said}", remedy=remedy) from error
