"""Is a product right? Row checksums find that it is not, integers say where, by how much, and which bits.

For a matrix ``C`` that should be ``A B``: ``C w = A (B w)`` for every ``w``, at the cost of products with vectors
(Freivalds 1979; as checksums of rows: Huang and Abraham 1984). Everything is computed with integers modulo ``2**64``,
which has no rounding, by other circuits than floating point has. The weights ``w`` are odd: an odd number has an
inverse modulo ``2**64``, so one wrong element in a row always shows, whatever its error. Several hide each other with a
chance of at most ``2**-8``: only if their errors, of at most 54 bits since what is larger than any right result, or no
integer, is wrong by itself, add up to a multiple of ``2**64``. Every product has other weights. A wrong row is then
computed again in integers, element by element.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.operands import PRECISIONS, IntArray, PrecisionName, noise
from wholestack.record import Record

MOST_ROWS = 16
"""Wrong rows that are computed again, spread over all that are wrong."""
MOST_ELEMENTS = 64
"""That are named of one product."""
BLOCK_ELEMENTS = 4_000_000
"""Checked at one time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongElement(Record):
    """One element of a product."""

    row: int
    column: int
    got: str
    """As printed; it may be infinite."""
    want: int
    bits: tuple[int, ...]
    """Those that differ in the format of the result, 0 the lowest of the mantissa."""

    def __str__(self) -> str:
        flipped = f"bit{'s' if len(self.bits) != 1 else ''} {', '.join(map(str, self.bits))}"
        return f"row {self.row}, column {self.column}: {self.got}, must be {self.want} ({flipped} differ)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of one product."""

    wrong_rows: int
    """By their checksums; 0 where the product is right."""
    elements: tuple[WrongElement, ...] = ()
    """Wrong elements of some of these rows. Empty although rows are wrong: the checksum itself did not repeat."""


def compare(
    left: IntArray, right: IntArray, result: NDArray[np.floating], *, precision: PrecisionName, seed: int
) -> Comparison:
    """Judge one product.

    Args:
        left: Shape (rows, inner).
        right: Shape (inner, columns).
        result: What a device made of them, shape (rows, columns), float16, float32 or float64 (bfloat16 as float32).
        precision: Of the product; says which format the bits are of.
        seed: Of the weights.
    """
    weights = (noise(seed, right.shape[1]) | np.uint64(1)).view(np.int64)
    through = right @ weights
    largest = 2.0 ** PRECISIONS[precision].sum_bits
    rows: list[int] = []
    step = max(1, BLOCK_ELEMENTS // right.shape[1])
    for start in range(0, len(left), step):
        block = result[start : start + step]
        whole = as_integers(block)
        odd = whole @ weights != left[start : start + step] @ through
        odd |= ((whole != block) | (np.abs(block) > largest)).any(axis=1)
        rows += [start + int(row) for row in np.flatnonzero(odd)]
    if not rows:
        return Comparison(wrong_rows=0)
    some = [rows[place] for place in np.unique(np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int))]
    elements = [each for row in some for each in _wrong_in(row, left[row] @ right, result[row], precision)]
    return Comparison(wrong_rows=len(rows), elements=tuple(elements[:MOST_ELEMENTS]))


def as_integers(values: NDArray[np.floating]) -> IntArray:
    """What is no integer, infinite or none at all becomes one that differs from it."""
    with np.errstate(invalid="ignore"):
        whole: IntArray = values.astype(np.int64)
    return whole


def shape_of(elements: Sequence[WrongElement]) -> str:
    """How wrong elements lie: in one column, row or lane; empty where they have no shape."""
    for name, places in (("column", {each.column for each in elements}), ("row", {each.row for each in elements})):
        ordered = sorted(places)
        if len(ordered) == 1 and len(elements) > 1:
            return f"all in {name} {ordered[0]}"
        step = math.gcd(*(place - ordered[0] for place in ordered))
        if len(ordered) > 2 and step > 1:
            return f"a lane: every {step}th {name} from {ordered[0] % step}"
    return ""


def _wrong_in(row: int, want: IntArray, got: NDArray[np.floating], precision: PrecisionName) -> list[WrongElement]:
    wrong = np.flatnonzero((as_integers(got) != want) | (as_integers(got) != got))
    return [
        WrongElement(
            row=row,
            column=int(column),
            got=repr(float(got[column])),
            want=int(want[column]),
            bits=_differing(float(got[column]), int(want[column]), precision),
        )
        for column in wrong
    ]


def _differing(got: float, want: int, precision: PrecisionName) -> tuple[int, ...]:
    apart = _stored(got, precision) ^ _stored(float(want), precision)
    return tuple(bit for bit in range(64) if apart >> bit & 1)


def _stored(value: float, precision: PrecisionName) -> int:
    if precision == "float64":
        return int(np.float64(value).view(np.uint64))
    if precision == "float16":
        return int(np.float16(value).view(np.uint16))
    word = int(np.float32(value).view(np.uint32))
    return word >> 16 if precision == "bfloat16" else word
