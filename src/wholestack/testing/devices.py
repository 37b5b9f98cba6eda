"""Faults of devices to inject, and devices whose pace is drawn, for tests of the active checks.

A :class:`FaultyDevice` stands around a real one and spoils what it gives back, where the checks cannot see it happen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.device import Device, Handle
from wholestack.health.active.operands import IntArray, PrecisionName, WordArray
from wholestack.health.parts import Part


class Fault(Protocol):
    """Spoils a product, in place."""

    def __call__(self, left: IntArray, result: NDArray[np.floating]) -> None:
        """Args: the left operand, shape (rows, inner), and the product, shape (rows, columns)."""


def flip(result: NDArray[np.floating], row: int | slice, column: int, bit: int) -> None:
    """Turn one bit of one element over, or of one column's."""
    words = result.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[result.dtype.itemsize])
    words[row, column] ^= words.dtype.type(1 << bit % (8 * result.dtype.itemsize))


@dataclass(slots=True, kw_only=True)
class OneElement:
    """One element out of all that a device ever makes."""

    at: int
    """Which one, counted over all products from 0."""
    bit: int = 0
    made: int = 0

    def __call__(self, left: IntArray, result: NDArray[np.floating]) -> None:
        """Spoil it if it is in this product."""
        place = self.at - self.made
        self.made += result.size
        if 0 <= place < result.size:
            flip(result, place // result.shape[1], place % result.shape[1], self.bit)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongLane:
    """One lane of a vector unit turns a bit over, always."""

    lane: int
    width: int
    bit: int = 0

    def __call__(self, left: IntArray, result: NDArray[np.floating]) -> None:
        """Spoil its columns."""
        for column in range(self.lane, result.shape[1], self.width):
            flip(result, slice(None), column, self.bit)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOperands:
    """One column is wrong in rows whose left operands meet a condition: an error that depends on the pattern."""

    meets: Callable[[IntArray], NDArray[np.bool_]]
    """Left operand, shape (rows, inner), to which rows."""
    column: int = 0
    bit: int = 0

    def __call__(self, left: IntArray, result: NDArray[np.floating]) -> None:
        """Spoil the rows that meet it."""
        column = self.column % result.shape[1]
        for row in np.flatnonzero(self.meets(left)):
            flip(result, int(row), column, self.bit)


def turns_over(left: IntArray) -> NDArray[np.bool_]:
    """Rows in which neighbours change sign at least nine times of ten: the worst case of switching."""
    changes: NDArray[np.bool_] = (left[:, 1:] * left[:, :-1] < 0).mean(axis=1) >= 0.9
    return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckBit:
    """A bit of one word of memory that is always 1."""

    word: int
    bit: int


@dataclass(slots=True)
class _Held:
    inner: Handle
    product: NDArray[np.floating] | None = None
    values: IntArray | None = None


@dataclass(slots=True, kw_only=True)
class FaultyDevice:
    """A device with a fault.

    Example:
        >>> from wholestack.health.active.cores import Core
        >>> faulty = FaultyDevice(inner=Core(0, frozenset({0})), fault=WrongLane(lane=3, width=8))
    """

    inner: Device
    fault: Fault | None = None
    stuck: StuckBit | None = None
    slower: float = 0.0
    """Share by which its rate is lower."""
    repaired: tuple[str, ...] = ()
    """What was corrected in it."""
    busy_with: str | None = None
    name: str = ""
    """Key of the part, where several stand on one inner device."""
    seconds: Callable[[], float] | None = None
    """Draws the time of any work instead of doing it."""
    serial_number: str = ""

    @property
    def part(self) -> Part:
        """Of the inner device, under another name where one is given."""
        inner = self.inner.part
        return Part(kind=inner.kind, key=self.name, label=inner.label) if self.name else inner

    @property
    def kind(self) -> str:
        """See :class:`Device`."""
        return self.inner.kind

    @property
    def serial(self) -> str:
        """See :class:`Device`."""
        return self.serial_number or self.inner.serial

    @property
    def precisions(self) -> tuple[PrecisionName, ...]:
        """See :class:`Device`."""
        return self.inner.precisions

    def free_bytes(self) -> int:
        """See :class:`Device`."""
        return self.inner.free_bytes()

    def in_use(self) -> str | None:
        """See :class:`Device`."""
        return self.inner.in_use() if self.busy_with is None else self.busy_with

    def corrections(self) -> tuple[str, ...]:
        """See :class:`Device`."""
        return self.repaired or self.inner.corrections()

    def put(self, values: IntArray, precision: PrecisionName) -> Handle:
        """See :class:`Device`."""
        return _Held(self.inner.put(values, precision), values=values)

    def write(self, words: WordArray) -> Handle:
        """The stuck bit shows in whatever is written over it."""
        if self.stuck is not None and self.stuck.word < len(words):
            words = words.copy()
            words[self.stuck.word] |= np.uint64(1 << self.stuck.bit)
        return _Held(self.inner.write(words))

    def multiply(self, left: Handle, right: Handle, precision: PrecisionName) -> Handle:
        """The inner product, spoiled."""
        held = _Held(self.inner.multiply(left.inner, right.inner, precision))
        if self.fault is not None:
            fetched = self.inner.fetch(held.inner)
            assert np.issubdtype(fetched.dtype, np.floating)  # the caller multiplies what it put
            held.product = np.array(fetched)
            self.fault(left.values, held.product)
        return held

    def copy(self, held: Handle) -> Handle:
        """See :class:`Device`."""
        return _Held(self.inner.copy(held.inner))

    def fetch(self, held: Handle) -> NDArray[np.generic]:
        """See :class:`Device`."""
        return self.inner.fetch(held.inner) if held.product is None else held.product

    def timed(self, work: Callable[[], object]) -> float:
        """Longer by the share that it is slower."""
        return (self.seconds() if self.seconds else self.inner.timed(work)) / (1 - self.slower)
