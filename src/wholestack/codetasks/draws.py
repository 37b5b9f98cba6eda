"""The dice of the generator: a seed gives the same draws on every machine and in every version of Python.

Only ``random.Random.random`` is used, whose sequence Python keeps from version to version; ``choice``, ``sample`` and
``shuffle`` are made here, because the algorithms of the standard ones have changed.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

SEED_BITS = 53
"""Of an item's seed, so that every reader of JSON keeps it exact."""


class Draws:
    """A stream of draws.

    Args:
        seed: A whole number, zero or more.
    """

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound - 1``."""
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        """True in ``share`` of the cases."""
        return self._random() < share

    def pick(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[int(self._random() * len(values))]

    def weighted(self, values: Sequence[T], weights: Sequence[float]) -> T:
        """One of the values, each as often as its weight says."""
        left = self._random() * sum(weights)
        for value, weight in zip(values, weights, strict=True):
            left -= weight
            if left < 0:
                return value
        return values[-1]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """``count`` of the values, each at most once, in the order drawn."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """All values in a drawn order."""
        return self.some(values, len(values))


def item_seed(seed: int, kind: str, difficulty: int, counter: int) -> int:
    """The seed of one draft of a file: a hash of what it is, so no draft depends on another."""
    name = f"{seed}/{kind}/{difficulty}/{counter}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> (64 - SEED_BITS)
