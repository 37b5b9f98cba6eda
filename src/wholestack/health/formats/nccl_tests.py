"""The table of nccl-tests (``all_reduce_perf`` and its siblings).

Columns of a row: size (B), count, type, operation, root (newer versions), then twice (out of place, in place) time
(us), algorithm bandwidth, bus bandwidth (GB/s), and ``#wrong`` (count of wrong elements) or ``error`` (older: largest
deviation); ``N/A`` where values were not checked. Source: NVIDIA/nccl-tests ``src/common.cu``, ``doc/PERFORMANCE.md``.
"""

import re
from dataclasses import dataclass

from wholestack.health.probe import UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One size."""

    size_bytes: int
    busbw_gbs: tuple[float, float]
    """Out of place, in place."""
    wrong: tuple[str, str]
    """As printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTest:
    """One run."""

    rows: tuple[Row, ...]
    counts_wrong: bool
    """Whether the column is ``#wrong``, a count."""
    out_of_bounds: str
    """``0 OK`` or ``3 FAILED``; empty if the line is missing."""
    average_gbs: float | None
    failure: str
    """The line that says that it broke off, if there is one."""


FAILURE = re.compile(
    r"^.*(?:Test (?:NCCL|CUDA) failure|NCCL failure|CUDA failure|unhandled (?:cuda|system) error|Segmentation fault"
    r"|Test failure).*$",
    re.MULTILINE | re.IGNORECASE,
)
CELL = r"[ \t]+(\S+)"
ROW = re.compile(rf"^[ \t]*(\d+)[ \t]+(\d+)[ \t]+([a-z]\w*)[ \t]+(\S+)((?:{CELL}){{4,10}})[ \t]*$", re.MULTILINE)


def looks_like_nccl(text: str) -> bool:
    """The first comment line ``# nThread 1 nGpus 8 minBytes ...`` or the heading of the table."""
    return re.search(r"^#[ \t]*(?:nThread \d+|.*\bsize[ \t]+count[ \t]+type)", text[:20_000], re.MULTILINE) is not None


def read_nccl(text: str) -> NcclTest:
    """Read one run.

    Raises:
        UnreadableError: no row, or a row that was cut.
    """
    rows: list[Row] = []
    for size, _, _, _, cells, _ in ROW.findall(text):
        words = cells.split()[-8:]
        if len(words) < 8:
            raise UnreadableError(f"the row of {size} bytes was cut")
        busbw = (float(words[2]), float(words[6]))
        rows.append(Row(size_bytes=int(size), busbw_gbs=busbw, wrong=(words[3], words[7])))
    failure = FAILURE.search(text)
    if not rows and failure is None:
        raise UnreadableError("no row of the table is in it")
    bounds = re.search(r"^# Out of bounds values[ \t]*:[ \t]*(\d+ \w+)", text, re.MULTILINE)
    average = re.search(r"^# Avg bus bandwidth[ \t]*:[ \t]*([\d.]+)", text, re.MULTILINE)
    return NcclTest(
        rows=tuple(rows),
        counts_wrong="#wrong" in text,
        out_of_bounds=bounds[1] if bounds else "",
        average_gbs=float(average[1]) if average else None,
        failure=failure[0].strip()[:300] if failure else "",
    )
