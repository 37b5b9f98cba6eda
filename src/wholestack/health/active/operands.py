"""Matrices of small integers whose product a precision holds exactly, whatever the order in which it is summed.

Every operand is an integer of at most ``2**bits``, at most ``2**live`` of each row's products are not zero, and
``live + left bits + right bits`` is at most the bits of the narrowest number that a partial sum may be put in. So every
product and every partial sum is an integer that the precision holds: there is one right answer, to the last bit, for
every library, blocking and device. That number is the mantissa of the result for float16 and bfloat16, since a library
may round partial sums to it (split sums); 24 bits of the float32 accumulator for float32 and tf32; 53 for float64.

Operands come from a counter and a mixer of 64 bits (splitmix64, Steele, Lea and Flood 2014, OOPSLA), not from a
library's generator: the same on every machine and in every version, so that golden values can be kept.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wholestack.errors import InputError
from wholestack.record import Record

IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]

Pattern = Literal["random", "ones", "walking", "alternating", "toggle"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
PrecisionName = Literal["float64", "float32", "tf32", "float16", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """What a precision holds exactly."""

    operand_bits: int
    """Integers up to two to this are exact as an operand."""
    sum_bits: int
    """The same of every place that a partial sum may be kept in, the result included."""
    result_bytes: int


PRECISIONS: dict[PrecisionName, Precision] = {
    "float64": Precision(operand_bits=53, sum_bits=53, result_bytes=8),
    "float32": Precision(operand_bits=24, sum_bits=24, result_bytes=4),
    "tf32": Precision(operand_bits=11, sum_bits=24, result_bytes=4),
    "float16": Precision(operand_bits=11, sum_bits=11, result_bytes=2),
    "bfloat16": Precision(operand_bits=8, sum_bits=8, result_bytes=2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Record):
    """One product: everything follows from it.

    Raises:
        InputError: a side is not above 0.
    """

    pattern: Pattern
    precision: PrecisionName
    rows: int
    inner: int
    columns: int
    seed: int

    def __post_init__(self) -> None:
        if min(self.rows, self.inner, self.columns) < 1:
            raise InputError(f"a product of {self.rows} x {self.inner} x {self.columns}: each side must be above 0")

    @property
    def bits(self) -> tuple[int, int, int]:
        """Of the number of products in a sum that are not zero, of a left and of a right operand."""
        precision = PRECISIONS[self.precision]
        live = min((self.inner - 1).bit_length(), 3 * precision.sum_bits // 4)
        left = min((precision.sum_bits - live) // 2, precision.operand_bits)
        return live, left, min(precision.sum_bits - live - left, precision.operand_bits)

    def __str__(self) -> str:
        return f"{self.pattern} {self.precision} {self.rows} x {self.inner} x {self.columns}, seed {self.seed}"


def left_operand(case: Case) -> IntArray:
    """Shape (rows, inner); zero but in as many inner places as may be summed."""
    live, bits, _ = case.bits
    left = _values(case.pattern, bits, 2 * case.seed, case.rows, case.inner)
    if case.inner > 1 << live:
        order = np.argsort(noise(2 * case.seed + 1, case.inner), kind="stable")
        left[:, order[1 << live :]] = 0
    return left


def right_operand(case: Case) -> IntArray:
    """Shape (inner, columns)."""
    return _values(case.pattern, case.bits[2], 2 * case.seed + 1_000_003, case.inner, case.columns)


def noise(seed: int, count: int) -> WordArray:
    """``count`` words of splitmix64 from a seed."""
    start = (seed * 0xD1B54A32D192ED03) % 2**64
    word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: WordArray = word ^ (word >> np.uint64(31))
    return mixed


def _values(pattern: Pattern, bits: int, seed: int, rows: int, columns: int) -> IntArray:
    count = rows * columns
    words = noise(seed, count)
    sign = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
    place = np.arange(seed % 2, seed % 2 + count, dtype=np.int64)
    full = max((1 << bits) - 1, 1)
    if pattern == "random":
        spread = np.uint64((2 << bits) + 1)
        values = (words % spread).astype(np.int64) - (1 << bits)
    elif pattern == "ones":
        values = sign * full
    elif pattern == "walking":
        values = sign * (np.int64(1) << (place % (bits + 1)))
    elif pattern == "alternating":
        odd = max(0x5555_5555_5555_5555 & full, 1)
        values = sign * np.where(place % 2 == 0, odd, full ^ odd if full ^ odd else 1)
    else:
        # From one operand to the next sign, exponent and every bit of the mantissa turn over.
        values = np.where(place % 2 == 0, full, -1)
    return values.reshape(rows, columns)
