"""Progress of a long job on a terminal: one live line, or where there is no terminal a line now and then."""

import sys
import time
from typing import TextIO

from rich.table import Table
from rich.text import Text

from wholestack.cli.live import LiveWatcher
from wholestack.experiments.progress import Progress
from wholestack.experiments.records import PHASE_ORDER, PhaseName

PLAIN_EVERY_S = 15.0


class TerminalWatcher(LiveWatcher):
    """A watcher that draws; use as a context manager.

    Args:
        stream: Where to draw; live if it is a terminal.
    """

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        super().__init__(stream)
        self._started = time.monotonic()
        self._last_plain = 0.0
        self._phase: PhaseName | None = None

    def __call__(self, progress: Progress) -> None:
        """Draw one moment."""
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._console.print(f"{_clock(self._elapsed_s)}  {_position(progress.phase)} {progress.phase}")
            self._last_plain = 0.0
        if self._console.is_terminal:
            self._draw(self._picture(progress))
        elif self._elapsed_s - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = self._elapsed_s
            self._console.print(f"{_clock(self._elapsed_s)}  {_line(progress)}", soft_wrap=True)

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def _picture(self, progress: Progress) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_row(Text(f"{_clock(self._elapsed_s)} {_position(progress.phase)}", style="bold"), _line(progress))
        return table


def _line(progress: Progress) -> str:
    parts = [progress.note]
    if progress.total:
        unit = "trial" if progress.phase in ("search", "scaling") else "step"
        parts.append(f"{unit} {progress.done} of about {progress.total}")
    if progress.best is not None:
        parts.append(f"best {progress.best:.3f} {progress.unit}")
    parts.append(f"about {_clock(max(0.0, progress.left_s))} left")
    return " | ".join(parts)


def _position(phase: PhaseName) -> str:
    return f"[{PHASE_ORDER.index(phase) + 1}/{len(PHASE_ORDER)}]"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
