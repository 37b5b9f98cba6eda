"""The ten levels of difficulty, one line each.

What grows is the chain that must be followed from the first value to the answer; constructs join as levels grow (each
block of the grammar says from which level on it is used). Level 1 is copying, so that a model of a million parameters
is above chance there; the last levels have classes, exceptions, aliasing and nested loops.
"""

from dataclasses import dataclass

LOWEST, HIGHEST = 1, 10


@dataclass(frozen=True, slots=True)
class Level:
    """What a program of one level may be like."""

    number: int
    """1 to 10."""
    steps: tuple[int, int]
    """Fewest and most blocks between the first value and the answer."""
    inner: tuple[int, int]
    """Fewest and most blocks within a function or a loop."""
    start: tuple[int, int]
    """Smallest and largest number that a program starts from."""
    small: tuple[int, int]
    """Smallest and largest number in its steps."""
    turns: tuple[int, int]
    """Fewest and most turns of a loop, length of a list."""


LEVELS = {
    level.number: level
    for level in (
        Level(1, (0, 0), (1, 1), (10, 99), (1, 9), (2, 3)),
        Level(2, (1, 1), (1, 1), (10, 99), (1, 9), (2, 3)),
        Level(3, (1, 1), (1, 1), (2, 19), (1, 9), (2, 3)),
        Level(4, (2, 2), (1, 1), (2, 19), (1, 9), (2, 3)),
        Level(5, (2, 3), (1, 1), (2, 19), (1, 9), (2, 3)),
        Level(6, (3, 3), (1, 1), (2, 29), (1, 9), (3, 4)),
        Level(7, (3, 4), (1, 2), (2, 29), (2, 9), (3, 4)),
        Level(8, (4, 4), (1, 2), (2, 49), (2, 9), (3, 5)),
        Level(9, (4, 5), (1, 2), (2, 49), (2, 12), (3, 5)),
        Level(10, (5, 6), (2, 2), (2, 49), (2, 12), (4, 5)),
    )
}
