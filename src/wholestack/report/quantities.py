"""Numbers with their units as text, the same way on the page and in the terminal.

Everything that comes out of a run directory goes through :func:`printable` before it is shown: names, reasons and
evidence were written by other programs and may hold control characters that a terminal obeys, that XML refuses, or
that turn the direction of the text round.
"""

import math
import unicodedata
from datetime import UTC, datetime

UNIT_OF_METRIC = {
    "answer_bpb": "bits per byte",
    "answer_nll": "nats",
    "choice_nll": "nats",
    "accuracy": "share of items",
}
"""Unit by the beginning of a metric's name; what follows says how it was normalised."""

_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MAX_TEXT = 600


def printable(text: str, *, limit: int = _MAX_TEXT) -> str:
    """Text without control and direction characters, tabs and line ends as spaces, cut at ``limit`` characters."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(_safe(character) for character in shown)


def _safe(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if character in _BIDI_CONTROLS or unicodedata.category(character) in {"Cc", "Cs", "Co", "Cn"}:
        return "\ufffd"
    return character


def number(value: float) -> str:
    """A number to four significant digits, ``4.2e11`` when it is very large or small."""
    if isinstance(value, int) and abs(value) < 1e7:
        return f"{value:,}"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e7:
        return _scientific(value, 3)
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def short(value: float) -> str:
    """A number as a setting or an axis shows it: no padding zeros."""
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e5:
        return _scientific(value, 2)
    return f"{value:.4g}"


def _scientific(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def flops(value: float) -> str:
    """Training FLOPs, for instance ``4.2e11 FLOPs``."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)} FLOPs"


def percent(value: float, *, signed: bool = True) -> str:
    """A ratio as percent: ``+1.2 %``."""
    return f"{100 * value:+.1f} %" if signed else f"{100 * value:.1f} %"


def duration(seconds: float) -> str:
    """``1.8 s``, ``42 s``, ``7 min 42 s``, ``2 h 05 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count_bytes: float) -> str:
    """Bytes in decimal units: ``12.3 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count_bytes) < 1000:
            return f"{count_bytes:.0f} B" if unit == "B" else f"{count_bytes:.1f} {unit}"
        count_bytes /= 1000
    return f"{count_bytes:.1f} TB"


def moment(at: float) -> str:
    """A time as ``2026-11-29 21:00:05 UTC``."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at:g} s since the epoch"


def setting(value: object) -> str:
    """A setting's value: numbers short, anything else as printable text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(str(value), limit=200)
    if isinstance(value, int) or 1e5 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return short(value)


def with_interval(value: float, low: float, high: float) -> str:
    """``1.934 (1.880 to 1.990)``."""
    return f"{number(value)} ({number(low)} to {number(high)})"


def unit_of(metric: str) -> str:
    """Unit of a metric, empty when it is not known."""
    return next((unit for begin, unit in UNIT_OF_METRIC.items() if metric.startswith(begin)), "")


def named(metric: str) -> str:
    """A metric with its unit: ``answer_bpb (bits per byte)``."""
    unit = unit_of(metric)
    return f"{printable(metric, limit=80)} ({unit})" if unit else printable(metric, limit=80)


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 trial``, ``3 trials``."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
