"""The kernel's log in every dress: ``dmesg`` (ISO times, ``-T``, plain), ``/dev/kmsg``, ``journalctl -k``.

A log may have 1.5 MB, of which a handful of lines matter. So the text is searched for a few literal words (the
searches run in C), and only lines that hold one of them are taken apart. Lines before the last boot are dropped.

Times: a line is dated by the epoch, by a local clock without zone (``naive``) or without year too (``yearly``, as in
syslog), by seconds since boot (``uptime``), or not at all. :meth:`KernelLog.age_hours` brings all to "hours before
the look".
"""

import calendar
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from wholestack.health.probe import UnreadableError

Clock = Literal["epoch", "naive", "yearly", "uptime", "none"]

LEAP_YEAR = 2000
"""Stands for the year of dates that have none."""
ZONE_SLACK_HOURS = 14.0
"""A local time without zone may be off by this much; such a line is taken to be that much younger."""
LEAP_DAY_S = datetime(LEAP_YEAR, 2, 29, tzinfo=UTC).timestamp()
MOST_LINES_A_WORD = 500
"""Of a word that floods the log the newest lines are taken apart; of older ones only the first and the last of each
event, so that ten thousand programs that fail do not hide the one error of the memory before them."""
MOST_EVENTS_A_WORD = 2_000
"""Different ones among those older lines."""
MOST_LOG_BYTES = 1_500_000
"""The newest ones, which are asked for."""

WORDS = (
    "NVRM", "SXid", "ut of memory", "oom-kill", "oom_reaper", "achine check", "Hardware Error", "mce: ",
    "I/O error", " error, dev ", "nvme", "Emask", "ead-only", "readonly", "Shutting down filesystem", "nfs: server",
    "blocked for more than",
    "lockup", "LOCKUP", "stall", "BUG", "Oops", "Kernel panic", "general protection", "mlx5_core", "Link is ",
    "throttled", "AER: ", "EXT4-fs error", "EDAC MC",
)  # fmt: skip
"""One of these is in every line that some check looks for."""

_HEAD = re.compile(
    r"(?:<\d{1,3}>)?(?:[a-z0-9]{2,10}[ \t]{0,4}:[a-z]{3,8}[ \t]{0,4}: ?)?"
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?P<zone>Z|[+-]\d\d:?\d\d)?[ \t]"
    r"|\[(?P<ctime>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\][ \t]?"
    r"|\[[ \t]{0,8}(?P<uptime>\d{1,10}\.\d{1,9})\][ \t]?"
    r"|(?P<syslog>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(?:\.\d{1,9})?[ \t]"
    r"|\d{1,3},\d{1,20},(?P<kmsg>\d{1,18}),[^;\n]{0,200};)?"
)
_FROM = re.compile(r"\S{1,255} kernel(?:\[\d{1,10}\])?: (?:\[[ \t]{0,8}\d{1,10}\.\d{1,9}\] )?")
_ROW = re.compile(f"^{_HEAD.pattern}(?P<origin>{_FROM.pattern})?(?P<message>.*)", re.MULTILINE)
_NUMBERED = re.compile(r"S?Xid \([^)\n]{1,40}\): \d{1,6}")
_LONG_NUMBER = re.compile(r"0x[0-9a-f]{1,16}|\d{3,20}")
_BOOT = re.compile(r"Linux version \d|-- (?:Boot [0-9a-f]{8,}|Reboot) --")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line that holds one of the words."""

    message: str
    """Without time, level and host."""
    clock: Clock
    at: float
    """Seconds by its clock."""
    text: str
    """As it stands in the log."""
    place: int = 0
    """Where it begins in the log."""


class Columns(NamedTuple):
    """Many lines taken apart, column by column.

    A date stands as it is in the log in one of the six columns of dates (an ISO date in two); empty where none is.
    """

    iso: tuple[str, ...]
    zone: tuple[str, ...]
    ctime: tuple[str, ...]
    uptime: tuple[str, ...]
    syslog: tuple[str, ...]
    kmsg: tuple[str, ...]
    origin: tuple[str, ...]
    """``host kernel: ``, of syslog and journal."""
    message: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLog:
    """What matters of one log."""

    by_word: dict[str, tuple[Line, ...]]
    """Lines that hold each of the words, in the order of the log."""
    newest: dict[Clock, float] = field(default_factory=dict)
    """Time of the last line, by clock."""
    flooded: frozenset[str] = frozenset()
    """Words of which not every line is kept."""
    cut: Line | None = None
    """The oldest line that is kept of everything, where older ones may be missing; ``None`` if none are."""
    leap: bool = False
    """Whether it has a 29 February, which tells the kind of year where lines have none."""

    def holding(self, *words: str) -> list[Line]:
        """Lines with any of these words, in the order of the log, each once."""
        found = {line.place: line for word in words for line in self.by_word[word]}
        return [found[place] for place in sorted(found)]

    def age_hours(self, line: Line, *, now: float | None, uptime_s: float | None) -> float:
        """Hours between a line and the look.

        Args:
            line: A line of this log.
            now: Seconds since the epoch; ``None`` for a saved log: then its newest line is now.
            uptime_s: Seconds since boot at the look, or ``None``.
        """
        newest = self.newest.get(line.clock, line.at)
        if line.clock == "none":
            return 0.0
        if line.clock == "uptime":
            reference = newest if uptime_s is None else max(uptime_s, newest)
            return max(0.0, reference - line.at) / 3600
        if line.clock == "yearly":
            if now is None:
                return _age_within_year(line.at, newest, leap=self.leap)
            leap = calendar.isleap(datetime.fromtimestamp(now, UTC).year)
            return max(0.0, _age_within_year(line.at, _within_year(now), leap=leap) - ZONE_SLACK_HOURS)
        if now is None:
            return max(0.0, newest - line.at) / 3600
        slack = ZONE_SLACK_HOURS if line.clock == "naive" else 0.0
        return max(0.0, (now - line.at) / 3600 - slack)


def _within_year(at: float) -> float:
    """The same date in a leap year, in seconds."""
    return datetime.fromtimestamp(at, UTC).replace(year=LEAP_YEAR).timestamp()


def _age_within_year(at: float, reference: float, *, leap: bool) -> float:
    """Hours; a date that lies a little ahead is now, one that lies far ahead is of last year."""
    hours = (reference - at) / 3600
    if hours < -24:
        hours += 366 * 24
    if at < LEAP_DAY_S < reference and not leap:
        hours -= 24
    return max(0.0, hours)


def looks_like_kernel_log(text: str) -> bool:
    """Any of its first lines is dated as a kernel log is, or is a line of the NVIDIA driver."""
    for line in text[:20_000].splitlines()[:50]:
        head = _HEAD.match(line)
        if (head is not None and head.end() > 0 and head.lastgroup) or re.match(r"NVRM: |nvidia-nvswitch\d", line):
            return True
    return text.startswith("[...] NVRM")


def read_kernel_log(text: str) -> KernelLog:
    """All lines of the running kernel that hold one of the words.

    Raises:
        UnreadableError: nothing in it is a line of text.
    """
    if "\x00" in text[:100_000]:
        raise UnreadableError("holds NUL bytes: not a text")
    boot = _last_boot(text)
    return _log(text[boot:], None if boot else _cut(text))


def _cut(text: str) -> Line | None:
    """The first whole line of a text that is as long as what is asked for and begins in the middle of a line.

    A character may be several bytes, one replaced byte is one character: nine tenths are near enough.
    """
    if len(text) < 0.9 * MOST_LOG_BYTES:
        return None
    end = text.find("\n") + 1
    second = _apart(text[end : end + 2000].partition("\n")[0], end)
    return second if _apart(text[: min(end, 2000)]).clock == "none" and second.clock != "none" else None


def _last_boot(text: str) -> int:
    """Where the last boot begins; 0 if no line says so."""
    position = len(text)
    for _ in range(MOST_LINES_A_WORD):
        position = max(text.rfind("Linux version ", 0, position), text.rfind("\n-- ", 0, position))
        if position <= 0:
            return 0
        start = text.rfind("\n", 0, position) + 1 if text[position] == "L" else position + 1
        line = text[start : text.find("\n", start) if "\n" in text[start : start + 500] else start + 500]
        if _BOOT.match(line) or _BOOT.match(_apart(line).message):
            return start
    return 0


def _log(text: str, cut: Line | None) -> KernelLog:
    """A log of one boot. Where a word has too many different events, it is cut at the oldest line kept of all."""
    lines: dict[int, Line] = {}
    found: dict[str, tuple[Line, ...]] = {}
    flooded: set[str] = set()
    forgot: list[int] = []
    named: dict[int, str] = {}
    for word in WORDS:
        newest_first = _starts(text, word)
        starts = list(itertools.islice(newest_first, MOST_LINES_A_WORD))
        older = _events(text, newest_first, named) if len(starts) == MOST_LINES_A_WORD else {}
        if older:
            flooded.add(word)
            if len(older) > MOST_EVENTS_A_WORD:
                forgot.append(starts[-1])
            starts += {start for first_and_last in older.values() for start in first_and_last}
        starts.sort()
        for start in starts:
            if start not in lines:
                lines[start] = _apart(_joined(text, start, _end(text, start)), start)
        found[word] = tuple(lines[start] for start in starts)
    return KernelLog(
        by_word=found,
        newest=_newest(text),
        flooded=frozenset(flooded),
        cut=lines[max(forgot)] if forgot else cut,
        leap="Feb 29 " in text,
    )


def _events(text: str, starts: Iterable[int], named: dict[int, str]) -> dict[str, tuple[int, int]]:
    """Where the first and the last line of every event begin; of at most one event more than is allowed.

    Args:
        text: The log.
        starts: Where its lines begin, the newest first.
        named: Events by line; what is found is added, since a line may hold several words.
    """
    events: dict[str, tuple[int, int]] = {}
    for start in starts:
        event = named.get(start) or named.setdefault(start, _event(text, start))
        if event in events:
            events[event] = (start, events[event][1])
        elif len(events) <= MOST_EVENTS_A_WORD:
            events[event] = (start, start)
    return events


def _event(text: str, start: int) -> str:
    """What happened at which device: number and address of an Xid, else the words without long numbers."""
    head = _HEAD.match(text, start)
    begin = head.end() if head is not None else start
    line = text[begin : min(_end(text, begin), begin + 300)]
    xid = _NUMBERED.search(line)
    return xid[0] if xid is not None else _LONG_NUMBER.sub("#", line[:200])


def _end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _starts(text: str, word: str) -> Iterator[int]:
    """Where lines with the word begin, the newest first."""
    position = len(text)
    while True:
        position = text.rfind(word, 0, position)
        if position < 0:
            return
        position = text.rfind("\n", 0, position) + 1
        yield position
        if position == 0:
            return


def _joined(text: str, start: int, end: int) -> str:
    """A line; with those that follow where a message of the NVIDIA driver is spread over several.

    ``NVRM: The NVIDIA GPU 0000:b3:00.0`` / ``NVRM: (PCI ID: ...) installed in this system has`` / ``NVRM: fallen off
    the bus and is not responding to commands.`` (leptonai/gpud#1209, NVIDIA/NVSentinel#155).
    """
    line = text[start : min(end, start + 2000)]
    if "NVRM: The NVIDIA GPU" not in line or "fallen off" in line:
        return line
    for _ in range(4):
        begin = end + 1
        end = text.find("\n", begin)
        end = end if end >= 0 else len(text)
        following = text[begin : min(end, begin + 500)]
        if "NVRM: " not in following:
            break
        line = f"{line} {following[following.index('NVRM: ') + 6 :].strip()}"
        if "fallen off" in following:
            break
    return line


def _apart(text: str, place: int = 0) -> Line:
    head = _HEAD.match(text)
    if head is None or head.end() == 0 or head.lastgroup is None:
        return Line(
            message=text[head.end() :].strip() if head else text.strip(),
            clock="none",
            at=0.0,
            text=text.strip(),
            place=place,
        )
    message = text[head.end() :]
    origin = _FROM.match(message)
    if origin is not None:
        message = message[origin.end() :]
    clock, at = _when(head)
    return Line(message=message.strip(), clock=clock, at=at, text=text.strip(), place=place)


def columns(text: str) -> Columns:
    """Every line of a text (not empty), taken apart at once; about 2 us a line on one core."""
    return Columns._make(zip(*_ROW.findall(text), strict=True))


def moment(stamp: tuple[str, ...]) -> tuple[Clock, float]:
    """Clock of a line and its seconds by it.

    Args:
        stamp: The line's share of the six columns of dates.
    """
    return _when(dict(zip(Columns._fields, stamp, strict=False)))


def begins_boot(message: str) -> bool:
    """Whether a message, or a line of ``journalctl``, says that a boot begins here."""
    return _BOOT.match(message) is not None


def _when(head: re.Match[str] | Mapping[str, str | None]) -> tuple[Clock, float]:
    try:
        if iso := head["iso"]:
            zone = (head["zone"] or "").replace("Z", "+00:00")
            moment = datetime.fromisoformat(iso + zone)
            return ("epoch", moment.timestamp()) if zone else ("naive", moment.replace(tzinfo=UTC).timestamp())
        if ctime := head["ctime"]:
            return "naive", datetime.strptime(ctime, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()
        if head["syslog"]:
            moment = datetime.strptime(f"{LEAP_YEAR} {head['syslog']}", "%Y %b %d %H:%M:%S")
            return "yearly", moment.replace(tzinfo=UTC).timestamp()
        if uptime := head["uptime"]:
            return "uptime", float(uptime)
        if kmsg := head["kmsg"]:
            return "uptime", int(kmsg) / 1e6
    except (ValueError, OverflowError):
        return "none", 0.0
    return "none", 0.0


def _newest(text: str) -> dict[Clock, float]:
    """Time of the last lines; the log is written in order, so the end of it is enough."""
    newest: dict[Clock, float] = {}
    for line in text[-20_000:].splitlines()[-100:]:
        apart = _apart(line)
        if apart.clock != "none":
            newest[apart.clock] = apart.at
    return newest
