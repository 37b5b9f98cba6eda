"""The ring buffer of a simulated kernel, and how the forms of ``dmesg`` print it.

Formats: util-linux ``sys-utils/dmesg.c`` (``-x`` prints facility and level padded to six, ``--time-format iso`` a comma
before the microseconds, ``-T`` the local time without a zone; further lines of one message are indented by the width
of the prefix). Wall times are computed as ``dmesg`` does: from the clock *now* minus the uptime, so a clock that
jumped moves all lines.
"""

import time
from bisect import insort
from dataclasses import dataclass
from functools import lru_cache

CAPACITY_LINES = 6000


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """One message."""

    at_s: float
    """Uptime."""
    level: str
    text: str
    facility: str = "kern"


@lru_cache(maxsize=20_000)
def _shared_line(at_s: float, level: str, text: str) -> Line:
    """Hosts of a kind boot with the same words at the same times: kept once."""
    return Line(at_s, level, text)


class KernelLog:
    """Messages in order of time; the oldest fall out when it is full."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.changes = 0
        """Grows with every message."""
        self._kept: tuple[object, str] | None = None

    def add(self, at_s: float, level: str, text: str, *, facility: str = "kern") -> None:
        """Put a message where its time belongs."""
        insort(self.lines, Line(round(at_s, 6), level, text, facility))
        self.changes += 1
        if len(self.lines) > CAPACITY_LINES:
            del self.lines[: len(self.lines) - CAPACITY_LINES]

    def extend(self, messages: list[tuple[float, str, str]]) -> None:
        """Put many messages (uptime, level, text)."""
        self.lines.extend(_shared_line(round(at_s, 6), level, text) for at_s, level, text in messages)
        self.lines.sort()
        self.changes += 1

    def clear(self) -> None:
        """A new boot."""
        self.lines.clear()
        self.changes += 1

    def forget_text(self) -> None:
        """Let go of the text that was rendered last."""
        self._kept = None

    def render(self, style: str, *, booted_clock_s: float, utc_offset_h: int) -> str:
        """The whole buffer in the given style (``iso``, ``ctime``, ``seconds``).

        Args:
            style: What the ``dmesg`` of the host can print.
            booted_clock_s: The host's clock now minus its uptime.
            utc_offset_h: Zone of the host.
        """
        key = (style, round(booted_clock_s, 3), utc_offset_h, self.changes)
        if self._kept is None or self._kept[0] != key:
            base = booted_clock_s + utc_offset_h * 3600
            text = "".join(_PRINTERS[style](self.lines, base, utc_offset_h))
            self._kept = (key, text)
        return self._kept[1]


def _iso(lines: list[Line], base_s: float, utc_offset_h: int) -> list[str]:
    zone = f"{'-' if utc_offset_h < 0 else '+'}{abs(utc_offset_h):02d}:00"
    out, second, stamp = [], None, ""
    for line in lines:
        whole, micro = divmod(int((base_s + line.at_s) * 1_000_000), 1_000_000)
        if whole != second:
            second, stamp = whole, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
        prefix = f"{line.facility:<6}:{line.level:<6}: {stamp},{micro:06d}{zone} "
        out.append(_indented(prefix, line.text))
    return out


def _ctime(lines: list[Line], base_s: float, utc_offset_h: int) -> list[str]:
    out, second, stamp = [], None, ""
    for line in lines:
        whole = int(base_s + line.at_s)
        if whole != second:
            second, stamp = whole, time.asctime(time.gmtime(whole))
        out.append(_indented(f"[{stamp}] ", line.text))
    return out


def _seconds(lines: list[Line], base_s: float, utc_offset_h: int) -> list[str]:
    return [_indented(f"[{line.at_s:12.6f}] ", line.text) for line in lines]


def _indented(prefix: str, text: str) -> str:
    if "\n" in text:
        text = text.replace("\n", "\n" + " " * len(prefix))
    return f"{prefix}{text}\n"


_PRINTERS = {"iso": _iso, "ctime": _ctime, "seconds": _seconds}
