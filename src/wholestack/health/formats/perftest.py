"""The table of perftest's bandwidth tests (``ib_write_bw``, ``ib_read_bw``, ``ib_send_bw``).

``MB/sec`` are 2**20 bytes a second, ``Gb/sec`` (``--report_gbits``) 1e9 bits. Source: linux-rdma/perftest
``src/perftest_parameters.c``.
"""

import re
from dataclasses import dataclass

from wholestack.health.probe import UnreadableError

GBS_OF_MB = 8 * 2**20 / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One size of messages."""

    size_bytes: int
    peak_gbs: float
    """Gb/s."""
    average_gbs: float
    """Gb/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthTest:
    """One run; of client and server in one log each size counts once, with its best average."""

    device: str
    sizes: tuple[Size, ...]
    ended: bool
    """Whether the table is closed by its line."""
    failure: str
    """The line that says that it broke off, if there is one."""


FAILURE = re.compile(
    r"^.*(?:Couldn't|Could not|Unable to|Failed |failed to|Completion with error|syndrom|Problems with|error: ).*$",
    re.MULTILINE | re.IGNORECASE,
)
FATAL = re.compile(r"completion with error|syndrom", re.IGNORECASE)
"""With other complaints, for instance of CPU clocks, the table counts."""
ROW = re.compile(r"^[ \t]*(\d+)[ \t]+(\d+)[ \t]+([\d.]+|-?nan|inf)[ \t]+([\d.]+|-?nan|inf)(?:[ \t]+\S+)?[ \t]*$")


def looks_like_perftest(text: str) -> bool:
    """A heading such as ``RDMA_Write BW Test``, or the table's."""
    return re.search(r"BW Test|^[ \t]*#bytes[ \t]+#iterations[ \t]+BW peak", text[:20_000], re.MULTILINE) is not None


def read_perftest(text: str) -> BandwidthTest:
    """Read one run.

    Raises:
        UnreadableError: no row, or one that was cut or holds no numbers.
    """
    heading = re.search(r"BW average\[(MB|Gb)/sec\]", text)
    failure = FAILURE.search(text)
    best: dict[int, Size] = {}
    table = text[heading.end() :].splitlines()[1:] if heading else []
    ended = False
    for line in table:
        ended = line.startswith("----") or (ended and not re.match(r"[ \t]*\d", line))
        if not re.match(r"[ \t]*\d", line):
            continue
        row = ROW.match(line)
        if row is None or "n" in row[3] + row[4]:
            raise UnreadableError(f"not a row of the table: {line.strip()[:80]!r}")
        factor = GBS_OF_MB if heading and heading[1] == "MB" else 1.0
        size = Size(size_bytes=int(row[1]), peak_gbs=float(row[3]) * factor, average_gbs=float(row[4]) * factor)
        known = best.get(size.size_bytes)
        if known is None or size.average_gbs > known.average_gbs:
            best[size.size_bytes] = size
    if not best and failure is None:
        raise UnreadableError("no row of the table is in it")
    device = re.search(r"Device[ \t]*:[ \t]*(\S+)", text)
    return BandwidthTest(
        device=device[1] if device else "",
        sizes=tuple(best.values()),
        ended=ended,
        failure=failure[0].strip()[:300] if failure and (not best or FATAL.search(text)) else "",
    )
