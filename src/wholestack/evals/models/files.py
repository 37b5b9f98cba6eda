"""Files of a model: what they hash to, and whether its weights fit into memory."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from wholestack.errors import InputError
from wholestack.machine import available_memory_bytes
from wholestack.record import digest

BYTES_OF = {"float32": 4, "bfloat16": 2, "float64": 8}


def files_hash(paths: Sequence[Path]) -> str:
    """One hash over names and bytes of files, read as a stream.

    Raises:
        InputError: one cannot be read.
    """
    return digest([[path.name, _file_hash(path)] for path in sorted(paths)])


def _file_hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def refuse_too_large(name: str, weights: int, dtype: str, *, available_bytes: int | None = None) -> None:
    """Refuse weights that do not fit into the memory that is free now.

    Args:
        name: The model, for the message.
        weights: Number of weights.
        dtype: As which they will be held.
        available_bytes: Free memory; by default that of this machine, or of the control group where it is less.

    Raises:
        InputError: they do not fit.
    """
    available = available_memory_bytes() if available_bytes is None else available_bytes
    needed = weights * BYTES_OF[dtype]
    if available is not None and needed > available:
        raise InputError(
            f"{name}: {weights:,} weights as {dtype} take {needed / 1e9:.1f} GB, {available / 1e9:.1f} GB are free",
            remedy="take a smaller dtype or model, or a machine with more memory",
        )
