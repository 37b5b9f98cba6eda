"""What a check asks of a device: take, multiply, copy, give back, and be timed. One file a kind of device.

A backend is told what to hold and gives back opaque handles, so that results lie in the device's memory until they are
fetched: as many at a time as a check wants to fill. What it gives back is judged elsewhere, never by itself.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.operands import IntArray, PrecisionName, WordArray
from wholestack.health.parts import Part

Handle = Any
"""What a backend calls the things that it holds; freed when the last reference is gone."""


class Device(Protocol):
    """A GPU, or a core of a CPU."""

    @property
    def part(self) -> Part:
        """What a Finding blames."""

    @property
    def kind(self) -> str:
        """The product's name: devices of one kind and one backend should be equally fast."""

    @property
    def serial(self) -> str:
        """Which one it is, wherever it is put; empty where it has nothing of the sort."""

    @property
    def precisions(self) -> tuple[PrecisionName, ...]:
        """In which it multiplies."""

    def free_bytes(self) -> int:
        """Memory that is free for this device alone."""

    def in_use(self) -> str | None:
        """By what it is busy, in a few words; empty where it is idle, ``None`` where that cannot be told."""

    def corrections(self) -> tuple[str, ...]:
        """What was ever corrected, remapped or retired in it, a line each; empty also where that cannot be read."""

    def put(self, values: IntArray, precision: PrecisionName) -> Handle:
        """Integers as operands of a precision."""

    def write(self, words: WordArray) -> Handle:
        """Words into its memory, as they are."""

    def multiply(self, left: Handle, right: Handle, precision: PrecisionName) -> Handle:
        """A product; need not be finished on return."""

    def copy(self, held: Handle) -> Handle:
        """A copy within its memory."""

    def fetch(self, held: Handle) -> NDArray[np.generic]:
        """Back as an array: a product as a float array (bfloat16 as float32), words as uint64."""

    def timed(self, work: Callable[[], object]) -> float:
        """Seconds that the device takes for some work, until it is finished."""
