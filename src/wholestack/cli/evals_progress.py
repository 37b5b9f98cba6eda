"""Progress of a scoring on a terminal: one live line, or where there is no terminal a line now and then."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from rich.text import Text

from wholestack.cli.live import LiveWatcher

PLAIN_EVERY_S = 15.0


class ScoringWatcher(LiveWatcher):
    """Draws how many items are done and how long the rest will take at the pace since it was started.

    Use as a context manager.

    Args:
        stream: Where to draw; live if it is a terminal.
        clock: Seconds that only grow.
        kept: Whether what is done is kept when it is interrupted.
    """

    def __init__(
        self, stream: TextIO = sys.stderr, clock: Callable[[], float] = time.monotonic, *, kept: bool = True
    ) -> None:
        super().__init__(stream)
        self._clock = clock
        self._began: tuple[float, int] | None = None
        self._seen: tuple[int, int] | None = None
        self._last_plain = clock()
        self._kept = kept

    def __call__(self, done: int, total: int) -> None:
        """Take in one more item."""
        now = self._clock()
        self._seen = (done, total)
        if self._began is None:
            self._began = (now, done)
            if done > 0:
                self._console.print(f"{done:,} of {total:,} items are there from before")
        if self._console.is_terminal:
            self._draw(Text(self._line(done, total)))
        elif now - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = now
            self._console.print(self._line(done, total), soft_wrap=True)

    def _line(self, done: int, total: int) -> str:
        """Items that were there before say nothing about the pace, nor does a single one."""
        began, first = self._began or (self._clock(), done)
        elapsed_s = self._clock() - began
        new = done - first
        left = f", about {elapsed_s / new * (total - done):.0f} s left" if new > 1 else ""
        return f"{done:,} of {total:,} items, {elapsed_s:.0f} s{left}"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, value, trace)
        if kind is KeyboardInterrupt and self._seen and self._kept:
            done, total = self._seen
            self._console.print(f"{done:,} of {total:,} items are kept; the same command goes on with the rest")
