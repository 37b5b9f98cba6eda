"""A sweep on a terminal while it runs: counts, time left, and what has been found so far; 80 columns."""

import sys
import time
from collections import Counter
from typing import TextIO

from rich.console import Group
from rich.table import Table
from rich.text import Text

from wholestack.cli.live import LiveWatcher
from wholestack.finding import WORST_FIRST, Status
from wholestack.health.catalog import causes
from wholestack.health.result import HostResult

ROWS = 8
PLAIN_EVERY_S = 10.0
STYLES: dict[Status, str] = {"fail": "bold red", "unknown": "magenta", "warn": "yellow", "ok": "green"}


class SweepWatcher(LiveWatcher):
    """Draws a table that lives; where there is no terminal, a line now and then. Use as a context manager.

    Args:
        total: Hosts of the sweep.
        stream: Where to draw.
    """

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total = total
        self._causes = {code: cause for code, (cause, _) in causes().items()}
        self._hosts: Counter[Status] = Counter()
        self._found: Counter[tuple[Status, str]] = Counter()
        self._example: dict[tuple[Status, str], str] = {}
        self._started = time.monotonic()
        self._last_plain = self._started
        self._first: float | None = None
        super().__init__(stream, self._picture)  # last, for it draws at once

    def __call__(self, result: HostResult) -> None:
        """Take in one host; drawing follows by itself."""
        seen = {(each.status or self._causes[each.cause].status, self._causes[each.cause].says)
                for each in result.symptoms if each.cause in self._causes}  # fmt: skip
        statuses = {status for status, _ in seen}
        self._first = self._first or time.monotonic()
        self._hosts[next((status for status in WORST_FIRST if status in statuses), "ok")] += 1
        for each in seen:
            self._found[each] += 1
            self._example.setdefault(each, result.host)
        if not self._console.is_terminal and time.monotonic() - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._console.print(self._line(), soft_wrap=True)

    def _line(self) -> str:
        done = self._hosts.total()
        elapsed_s = time.monotonic() - self._started
        left = ""
        if self._first is not None and 1 < done < self._total:
            # From the first answer on: until then nothing is known of the pace.
            pace_s = (time.monotonic() - self._first) / (done - 1)
            left = f", about {pace_s * (self._total - done):.0f} s left"
        counts = self._hosts
        return (
            f"{done} of {self._total} hosts, {elapsed_s:.0f} s{left}: {counts['ok'] + counts['warn']} fit,"
            f" {counts['fail']} not, {counts['unknown']} unknown"
        )

    def _picture(self) -> Group:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=7)
        table.add_column(width=6, justify="right")
        table.add_column(overflow="ellipsis", no_wrap=True)
        ordered = sorted(self._found.items(), key=lambda row: (WORST_FIRST.index(row[0][0]), row[1], row[0][1]))
        for (status, says), count in ordered[:ROWS]:
            example = self._example[(status, says)]
            table.add_row(Text(status.upper(), style=STYLES[status]), str(count), f"{says} ({example} ...)")
        return Group(Text(self._line(), style="bold"), table)
