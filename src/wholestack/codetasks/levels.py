"""The ten levels of difficulty, one line each.

First what must be looked up grows: at level 1 one of the four choices stands in the program, at level 2 two of them, at
level 3 three, at level 4 all four, and names change their values. So a model that has learnt no more than that an
answer stands in its program is above chance at once, and one that looks up by name is seen to be better. From level 5
on the answer must be worked out, and what grows is the chain from the first value to it; constructs join as levels
grow (each block of the grammar says from which level on it is used). The last levels have classes, exceptions,
aliasing and nested loops.
"""

from dataclasses import dataclass

LOWEST, HIGHEST = 1, 10


@dataclass(frozen=True, slots=True)
class Level:
    """What a program of one level may be like."""

    number: int
    """1 to 10."""
    choices_shown: int
    """How many of the four choices stand in the program, to be looked up; 0 where the answer must be worked out."""
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


# number, choices shown, steps, inner, start, small, turns
LEVELS = {
    level.number: level
    for level in (
        Level(1, 1, (0, 0), (1, 1), (10, 99), (1, 9), (2, 3)),
        Level(2, 2, (0, 0), (1, 1), (10, 99), (1, 9), (2, 3)),
        Level(3, 3, (0, 0), (1, 1), (10, 99), (1, 9), (2, 3)),
        Level(4, 4, (1, 1), (1, 1), (10, 99), (1, 9), (2, 3)),
        Level(5, 0, (1, 1), (1, 1), (2, 19), (1, 9), (2, 3)),
        Level(6, 0, (2, 2), (1, 1), (2, 19), (1, 9), (2, 3)),
        Level(7, 0, (2, 3), (1, 1), (2, 29), (1, 9), (3, 4)),
        Level(8, 0, (3, 4), (1, 2), (2, 29), (2, 9), (3, 4)),
        Level(9, 0, (4, 5), (1, 2), (2, 49), (2, 9), (3, 5)),
        Level(10, 0, (5, 6), (2, 2), (2, 49), (2, 12), (4, 5)),
    )
}

LOOKED_UP = max(level.number for level in LEVELS.values() if level.choices_shown)
"""Last level at which the answer stands in the program."""
