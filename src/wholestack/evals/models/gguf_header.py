"""The header of a GGUF file, walked within bounds before any library reads it.

Layout (the format's specification, versions 2 and 3, little-endian): magic, version, counts of tensors and of keys;
for each key its name, type and value; for each tensor its name, dimensions, type and offset; padding; the tensors'
bytes. A library that trusts a count loops as often as a damaged file says, and one that reads past the end of a file
gets nothing and goes on: so here every count is held against the bytes that are left, and every tensor against the
file's end, before anything is made of it.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from wholestack.errors import InputError
from wholestack.journal import open_ordinary

MOST_VALUES = 1 << 21
"""Of all arrays together; a vocabulary of 256,000 with its merges has some 1.3 million."""
MOST_TENSORS = 1 << 17
MOST_KEYS = 1 << 16
MOST_NAME_BYTES = 1 << 16
_MOST_DIMENSIONS = 4
_MOST_ALIGNMENT = 1 << 16
_ALIGNMENT_KEY = b"general.alignment"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY, _UINT32 = 8, 9, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file holds."""

    tensors: int
    """How many."""
    weights: int
    """Numbers in all of them."""


def read_header(path: Path) -> Header:
    """Walk a header.

    Raises:
        InputError: the file is no ordinary one, no GGUF file, or its header does not fit what lies behind it.
    """
    try:
        with open_ordinary(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _walk(_Cursor(data))
    except (_DamagedError, OSError, ValueError) as error:  # ValueError: of an empty file no map is made
        raise InputError(f"{path}: is damaged or no GGUF file: {error}", remedy="copy the file again") from error


class _DamagedError(Exception):
    """What is wrong, in a few words."""


class _Cursor:
    """Reads forward and never past the end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self.at, self.size = data, 0, len(data)
        self.values_left = MOST_VALUES

    @property
    def left(self) -> int:
        return self.size - self.at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise _DamagedError(f"it ends in the middle of its header, at byte {self.size:,}")
        self.at += count
        return self._data[self.at - count : self.at]

    def skip(self, count: int) -> None:
        if count > self.left:
            raise _DamagedError(f"it ends in the middle of its header, at byte {self.size:,}")
        self.at += count

    def number(self, form: str) -> int:
        value: int = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0]
        return value

    def name(self) -> bytes:
        length = self.number("Q")
        if length > MOST_NAME_BYTES:
            raise _DamagedError(f"a name has {length:,} bytes")
        return self.take(length)


def _walk(cursor: _Cursor) -> Header:
    if cursor.take(4) != b"GGUF":
        raise _DamagedError("it does not begin with GGUF")
    version = cursor.number("I")
    if version not in (2, 3):
        raise _DamagedError(f"it is of version {version}, 2 and 3 are read")
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    if tensors > MOST_TENSORS or keys > MOST_KEYS:
        raise _DamagedError(f"it speaks of {tensors:,} tensors and {keys:,} keys")
    alignment = _skip_keys(cursor, keys)
    found = [_tensor(cursor) for _ in range(tensors)]
    if len({name for name, _, _, _ in found}) < tensors:
        raise _DamagedError("two tensors have one name")
    start = cursor.at + -cursor.at % alignment
    for name, _, size, offset in found:
        if offset % alignment or start + offset + size > cursor.size:
            raise _DamagedError(f"tensor {name[:80]!r} lies outside of it")
    if sum(size for _, _, size, _ in found) > max(0, cursor.size - start):
        raise _DamagedError("its tensors overlap")
    return Header(tensors=tensors, weights=sum(count for _, count, _, _ in found))


def _skip_keys(cursor: _Cursor, keys: int) -> int:
    """Past all keys; the alignment that they name."""
    alignment, seen = 32, set[bytes]()
    for _ in range(keys):
        name, kind = cursor.name(), cursor.number("I")
        if name in seen:
            raise _DamagedError(f"key {name[:80]!r} stands twice")
        seen.add(name)
        if name == _ALIGNMENT_KEY:
            alignment = cursor.number("I") if kind == _UINT32 else 0
            if not 0 < alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
                raise _DamagedError("its alignment is no power of two")
        else:
            _skip_value(cursor, kind)
    return alignment


def _skip_value(cursor: _Cursor, kind: int) -> None:
    if kind != _ARRAY:
        _skip_values(cursor, kind, 1)
        return
    inner, count = cursor.number("I"), cursor.number("Q")
    cursor.values_left -= count
    if cursor.values_left < 0:
        raise _DamagedError(f"its arrays have more than {MOST_VALUES:,} values")
    _skip_values(cursor, inner, count)


def _skip_values(cursor: _Cursor, kind: int, count: int) -> None:
    if kind == _STRING:
        for _ in range(count):
            cursor.skip(cursor.number("Q"))
    elif kind in _SCALARS:
        cursor.skip(count * struct.calcsize(f"<{_SCALARS[kind]}"))
    else:
        raise _DamagedError(f"a value is of type {kind}, which is none")


def _tensor(cursor: _Cursor) -> tuple[bytes, int, int, int]:
    """Name, numbers, bytes and offset."""
    name, dimensions = cursor.name(), cursor.number("I")
    if not 0 < dimensions <= _MOST_DIMENSIONS:
        raise _DamagedError(f"tensor {name[:80]!r} has {dimensions:,} dimensions")
    count = 1
    for _ in range(dimensions):
        count *= cursor.number("Q")
    kind, offset = cursor.number("I"), cursor.number("Q")
    try:
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError) as error:
        raise _DamagedError(f"tensor {name[:80]!r} is of type {kind}, which is none") from error
    if not count or count % block:
        raise _DamagedError(f"tensor {name[:80]!r} has {count:,} numbers, its type packs {block} at a time")
    return name, count, count // block * size, offset
