"""Regular expressions over text that a model or another program wrote, with a bound on how long they may take.

Python's matcher backtracks, so ``(a+)+$`` on forty letters runs longer than anybody lives. Its loop looks for signals,
so a timer of the process's own computing time can break it off; waiting for a busy machine does not count. Signals
reach the main thread only: called in another thread, a match has no bound.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from wholestack.errors import InputError

MOST_SECONDS = 1.0
"""Of computing, for one text."""
MOST_SLOW = 20
"""Texts that may take longer before a pattern is given up for good."""
TOO_SLOW = "the pattern takes too long on this text"

T = TypeVar("T")


class TooSlowError(Exception):
    """A match was broken off; nothing is known of the text."""


class Bounded:
    """Runs matches of one pattern, or of patterns of one kind, each for :data:`MOST_SECONDS` at most.

    Args:
        name: What the user called the pattern, for the message.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._slow = 0

    def __call__(self, match: Callable[[], T]) -> T:
        """What ``match`` gives.

        Raises:
            TooSlowError: it took too long.
            InputError: it did so for the last of :data:`MOST_SLOW` times.
        """
        try:
            with _timer():
                return match()
        except TooSlowError:
            self._slow += 1
            if self._slow < MOST_SLOW:
                raise
        raise InputError(
            f"{self._name}: takes more than {MOST_SECONDS:g} s on each of {self._slow} texts",
            remedy="write the pattern without a repetition inside a repetition",
        )


@contextmanager
def _timer() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _break_off)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _break_off(number: int, frame: FrameType | None) -> None:
    raise TooSlowError
