"""Sets of named arrays in one uncompressed ``.npz`` file, written whole or not at all."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError


def npz_bytes(arrays: Mapping[str, npt.ArrayLike]) -> bytes:
    """Arrays as the bytes of an uncompressed ``.npz``."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy's stub takes allow_pickle for one of the arrays
    return buffer.getvalue()


def read_npz(path: Path, names: Sequence[str]) -> dict[str, npt.NDArray[np.generic]]:
    """Read exactly these arrays.

    Raises:
        InputError: the file is missing, damaged, or lacks one of them.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in names}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: is damaged or not of this kind: {error}", remedy="make it again") from error
