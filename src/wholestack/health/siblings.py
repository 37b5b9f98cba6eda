"""What the parts of one host that are alike say of each other."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

V = TypeVar("V", int, float)

FEWEST = 4


def all_but_one(values: Iterable[V | None]) -> V | None:
    """What all but one share, of at least four; ``None`` if there is no such value.

    Two that differ alike may be meant so: the fleet will tell.
    """
    known = [value for value in values if value is not None]
    if len(known) < FEWEST:
        return None
    value, count = Counter(known).most_common(1)[0]
    return value if count == len(known) - 1 else None
