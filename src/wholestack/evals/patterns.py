"""Regular expressions of users and of files of questions, over text that a model wrote, bounded in time and memory.

A matcher that backtracks takes longer than anybody lives for some patterns and texts. That of the library `regex`
stops at a time limit, in any thread; it counts the process's computing, so waiting for a busy machine does not count.
Patterns mean what they mean there, in its ``VERSION0``: whatever Python's ``re`` takes, and more, such as ``\\p{Lu}``;
other than there, ``{e}`` and ``{e<=1}`` behind a part let it be misspelt.

That library writes out what is to be there n times n times, so ``((a{1000}){1000}){1000}`` would take all memory
before any text is seen: how large a pattern grows is reckoned first, from above.
"""

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import regex

from wholestack.errors import InputError

MOST_SECONDS = 1.0
"""Of computing, for one text."""
MOST_SLOW = 20
"""Texts that may take longer before a pattern is given up for good."""
TOO_SLOW = "the pattern takes too long on this text"

LONGEST_PATTERN = 10_000
"""Characters."""
LARGEST_PATTERN = 50_000
"""Characters, with all that is to be repeated written out; about 300 bytes each."""
_KEPT = 16
"""Patterns that are kept ready; the library would keep 500."""
_COUNT = re.compile(r"(^|.)\{((?:\d|\s|#[^\n]*\n)*)", re.DOTALL)
"""How often at least, and what stands in front of it; a pattern may allow blanks and comments anywhere."""

T = TypeVar("T")


class TooSlowError(Exception):
    """A match was broken off; nothing is known of the text."""


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> regex.Pattern[str]:
    """A pattern that is ready to match; its methods want a ``timeout``, which :class:`Bounded` tells.

    Raises:
        InputError: it is no regular expression, or too large.
    """
    if len(pattern) > LONGEST_PATTERN or _written_out(pattern) > LARGEST_PATTERN:
        raise InputError(
            f"is too large a regular expression: at most {LONGEST_PATTERN:,} characters, "
            f"{LARGEST_PATTERN:,} with what it repeats written out"
        )
    try:
        return regex.compile(pattern, regex.VERSION0, cache_pattern=False)
    except (regex.error, RecursionError, OverflowError) as error:
        raise InputError(f"is no regular expression: {error}") from error


class Bounded:
    """Runs matches of one pattern, or of patterns of one kind, each text for :data:`MOST_SECONDS` at most.

    Args:
        name: What the user called the pattern, for the message.

    Example:
        >>> year = compiled(r"20\\d\\d")
        >>> Bounded("year")(lambda left: year.search("in 2026", timeout=left()))[0]
        '2026'
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._slow = 0

    def __call__(self, match: Callable[[Callable[[], float]], T]) -> T:
        """What ``match`` gives; it is told how many seconds are left for its text, whenever it asks.

        Raises:
            TooSlowError: it took too long.
            InputError: it did so for the last of :data:`MOST_SLOW` times.
        """
        end = time.process_time() + MOST_SECONDS
        try:
            return match(lambda: max(0.0, end - time.process_time()))
        except TimeoutError as error:
            self._slow += 1
            if self._slow < MOST_SLOW:
                raise TooSlowError from error
        raise InputError(
            f"{self._name}: takes more than {MOST_SECONDS:g} s on each of {self._slow} texts",
            remedy="write the pattern without a repetition inside a repetition",
        )


def _written_out(pattern: str) -> int:
    """At most so many characters has a pattern when what it repeats is written out: as if all groups were nested."""
    alone, groups = 0, 1
    for count in _COUNT.finditer(pattern):
        digits = re.sub(r"#[^\n]*\n|\s", "", count[2]).lstrip("0")
        least = int(digits[:9] or 0)
        if count[1] in ")}" or count[1].isspace():
            groups *= max(1, least)
        else:
            alone += least
    return (len(pattern) + alone) * groups
