"""Keep a document, or drop it with a reason: control of generated and padded text.

The rules are few and blunt on purpose; each names what it saw, and what was dropped is in the data statement.
"""

import re
import zlib

from wholestack.data.source import Reason

HEAD_CHARACTERS = 600
SMALL_BYTES = 2048
"""Below this size compression says little."""
LEAST_RATIO = 0.10
"""Compressed over plain size (zlib level 1); prose and code lie between 0.2 and 0.6."""
LONGEST_LINE_BYTES = 5000
LONGEST_MEAN_LINE_BYTES = 1000

_GENERATED = re.compile(
    r"(?:^\W{0,4}|\bis (?:an? )?|\bfile (?:was )?|\bconfiguration |\bcodec \S{1,40} )"
    r"(?:auto-?(?:matically[ -])?)?generated (?:by|from|file|code|and used)|@generated\b|\bdo not edit\b",
    re.IGNORECASE | re.MULTILINE,
)


def verdict(text: str, data: bytes) -> tuple[Reason, str] | None:
    """Why a text should not be trained on, with what was seen; ``None`` keeps it.

    Args:
        text: The text.
        data: The same as UTF-8.
    """
    if not text.strip():
        return "empty", "0 characters other than white space"
    marker = _GENERATED.search(text, 0, HEAD_CHARACTERS)
    if marker:
        return "generated", " ".join(marker.group().split())[:100]
    if len(data) < SMALL_BYTES:
        return None
    ratio = len(zlib.compress(data, 1)) / len(data)
    if ratio < LEAST_RATIO:
        return "repetitive", f"compresses to {ratio:.1%}"
    return _long_lines(data)


def _long_lines(data: bytes) -> tuple[Reason, str] | None:
    """Prose in one line a paragraph is fine; it is the mean over a large file, or white space missing, that tells."""
    longest = max(map(len, data.split(b"\n")))
    mean = len(data) / (data.count(b"\n") + 1)
    spaces = data.count(b" ") / len(data)
    if longest > LONGEST_LINE_BYTES and spaces < 0.05:
        return "long_lines", f"a line of {longest:,} bytes, {spaces:.1%} spaces"
    if mean > LONGEST_MEAN_LINE_BYTES and spaces < 0.08:
        return "long_lines", f"{mean:,.0f} bytes a line"
    return None
