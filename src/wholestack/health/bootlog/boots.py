"""The boots of a log: messages of the first minutes of each, and what is known of how whole they are.

A log is read in pieces, so its size does not matter; of a boot so many lines are kept at most. Reading of dates is
:mod:`wholestack.health.formats.kernel_log`'s.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from wholestack.health.bootlog.masking import LONGEST_MESSAGE, SLOT
from wholestack.health.formats.kernel_log import Columns, begins_boot, columns, moment
from wholestack.health.probe import UnreadableError

WINDOW_S = 600.0
"""Of uptime, that count as boot."""
MOST_LINES = 200_000
"""Of a boot."""
PIECE_BYTES = 1 << 22
LONGEST_LINE = 1 << 16
DAY_S = 86_400.0
FIRST_LINES = 300
"""Of a boot, that tell it from others."""
BEGINNING_LINES = 20
"""Within so many first lines the kernel says its version."""
SLACK_S = 5.0
"""Times may go back so far, since lines of several CPUs are written down a little out of order."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|\x1b.")
_SUPPRESSED = re.compile(
    r"\d+ callbacks suppressed|messages? suppressed|Suppressed \d+ messages|Missed \d+ kernel messages"
    r"|kmsg buffer overrun|message rate limit|printk messages dropped"
)
_SUPPRESSED_WORDS = ("uppress", "issed ", "overrun", "rate limit", "dropped")
"""One of these is in every such line."""
_BEGINNINGS = ("Linux version ", "-- ")
_VERSION = re.compile(r"Linux version (\S{1,200})")
_EPOCH = re.compile(r"audit\(1\d{9}\.|UTC \(1\d{9}\)")
_FORMATS = {0: "ISO dates", 2: "dmesg -T", 3: "seconds since boot", 4: "syslog dates", 5: "/dev/kmsg"}


@dataclass(slots=True, kw_only=True)
class Boot:
    """One boot of a log."""

    messages: list[str] = field(default_factory=list)
    """Without date, level and host, in the order of the log, within the window."""
    kernel: str = ""
    """Version; empty where the log does not say it."""
    host: str = ""
    """As the log names it; empty where it does not."""
    format: str = ""
    """Which dates most of its lines have."""
    begun: bool = False
    """Whether it begins with the first lines of the kernel."""
    unfinished: bool = False
    """Whether the file ends in the middle of a line."""
    full: bool = False
    """Whether there were more lines within the window than are kept."""
    later: int = 0
    """Lines after the window."""
    others: int = 0
    """Lines of other programs than the kernel."""
    suppressed: list[str] = field(default_factory=list)
    """Lines that say that others were dropped."""
    jumps: list[str] = field(default_factory=list)
    """Lines before which the clock jumped."""

    @property
    def identity(self) -> str:
        """The same for two logs of the same boot, whatever their dates look like.

        A boot that tells a moment of the epoch is known by its lines alone, another also by its host.
        """
        first = "\n".join(self.messages[:FIRST_LINES])
        whose = "" if _EPOCH.search(first) else self.host
        return hashlib.sha256(f"{whose}\n{first}".encode(errors="replace")).hexdigest()[:16]


def read_boots(file: BinaryIO, *, window_s: float = WINDOW_S) -> Iterator[Boot]:
    """Every boot of a log, in order.

    Args:
        file: Opened for bytes; read once, in pieces.
        window_s: Seconds of uptime that count as boot.

    Raises:
        UnreadableError: it holds NUL bytes, or no line of a kernel.
    """
    reader = _Reader(window_s)
    for piece in _pieces(file):
        yield from reader.take(piece)
    yield from reader.end()


def suppresses(message: str) -> bool:
    """Whether a line says that others were dropped."""
    return _SUPPRESSED.search(message) is not None


def _pieces(file: BinaryIO) -> Iterator[str]:
    """Whole lines; a line without end is cut where it is too long for one."""
    rest = b""
    while read := file.read(PIECE_BYTES):
        data = rest + read
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if len(rest) > LONGEST_LINE:
            data, end, rest = data[: end + LONGEST_LINE] + b"\n", len(data), b""
        yield _text(data[:end])
    if rest:
        yield _text(rest)


def _text(data: bytes) -> str:
    if b"\x00" in data:
        raise UnreadableError("holds NUL bytes: not a text")
    text = data.decode(errors="replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if SLOT in text:
        text = text.replace(SLOT, "<?>")  # it stands for a value in what is learnt
    return without_escapes(text)


def without_escapes(text: str) -> str:
    """Without what steers a terminal, as ``dmesg --color=always`` prints it."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


class _Reader:
    """Follows a log, in blocks of lines between which a boot begins or the time matters."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._boot = Boot()
        self._formats: Counter[int] = Counter()
        self._at = 0.0
        self._clock = "none"
        self._elapsed_s = 0.0
        self._from_kernel = False
        self._ended = True
        self._found = 0

    def take(self, text: str) -> Iterator[Boot]:
        """One piece; gives the boots that end in it."""
        if not text:
            return
        self._ended = text.endswith("\n")
        table = columns(text.removesuffix("\n"))
        says_suppressed = any(word in text for word in _SUPPRESSED_WORDS)
        start = 0
        for place in self._turns(table, says_begin=any(word in text for word in _BEGINNINGS)):
            if self._is_behind_window and not table.message[place].startswith(_BEGINNINGS):
                continue
            self._keep(table, start, place, says_suppressed)
            yield from self._turn(table, place)
            start = place
        self._keep(table, start, len(table.message), says_suppressed)

    def end(self) -> Iterator[Boot]:
        """The last boot.

        Raises:
            UnreadableError: there was none at all.
        """
        if self._boot.messages:
            self._boot.unfinished = not self._ended
            yield self._let_go()
        if not self._found:
            raise UnreadableError("no line of a kernel log in it")

    def _turns(self, table: Columns, *, says_begin: bool) -> list[int]:
        """Lines at which a boot may begin, or the time matters: each once, in order."""
        found: set[int] = set()
        if says_begin:
            found.update(place for place, message in enumerate(table.message) if message.startswith(_BEGINNINGS))
        if any(table.iso) or any(table.ctime) or any(table.syslog):
            stamps = list(zip(*table[:6], strict=True))
            found.update(place for place in range(1, len(stamps)) if stamps[place] != stamps[place - 1])
            found.add(0)
        else:
            found.update(self._turns_of_uptime(table))
        return sorted(found)

    @property
    def _is_behind_window(self) -> bool:
        """The date matters no more, only where the next boot begins."""
        return self._clock not in ("uptime", "none") and self._elapsed_s > self._window_s

    def _turns_of_uptime(self, table: Columns) -> Iterator[int]:
        """Where the seconds since boot fall back, or pass the window."""
        last, window_s = self._at, self._window_s
        seconds = [float(text) for text in table.uptime if text] or [int(text) / 1e6 for text in table.kmsg if text]
        if not seconds:
            return
        if max(seconds) <= window_s and seconds == sorted(seconds) and seconds[0] >= last:
            self._clock, self._at, self._elapsed_s = "uptime", seconds[-1], seconds[-1]
            return
        for place, stamp in enumerate(zip(table.uptime, table.kmsg, strict=True)):
            at = float(stamp[0]) if stamp[0] else int(stamp[1]) / 1e6 if stamp[1] else last
            if at < last or (at > window_s) != (last > window_s):
                yield place
            last = at

    def _turn(self, table: Columns, place: int) -> Iterator[Boot]:
        """Move the clock on, and begin a boot where one begins."""
        message = table.message[place]
        jump = self._pass_time(tuple(column[place] for column in table[:6]))
        if message.startswith(_BEGINNINGS) and begins_boot(message):
            if len(self._boot.messages) > BEGINNING_LINES or self._boot.kernel:
                host = self._boot.host
                yield self._let_go()
                self._boot.host = host
            if (version := _VERSION.match(message)) is not None:
                self._boot.kernel, self._boot.begun = version[1], True
        elif jump == "boot" and self._boot.messages:
            yield self._let_go()
        elif jump == "jump":
            self._boot.jumps.append(message)

    def _keep(self, table: Columns, start: int, end: int, says_suppressed: bool) -> None:
        """Lines of one moment, or of seconds since boot within the window."""
        boot = self._boot
        if self._elapsed_s > self._window_s:
            boot.later += end - start
            return
        messages: Sequence[str] = table.message[start:end]
        if self._from_kernel or any(table.origin[start:end]) or any(table.syslog[start:end]):
            messages = self._of_kernel(table, start, end)
        kept = list(map(str.rstrip, messages))
        if "" in kept or (kept and kept[0].startswith("-- ")):
            kept = [message for message in kept if message and not message.startswith("-- ")]
        if max(map(len, kept), default=0) > LONGEST_MESSAGE:
            kept = [message[:LONGEST_MESSAGE] for message in kept]
        if says_suppressed:
            boot.suppressed += [message for message in kept if suppresses(message)]
        if len(boot.messages) < FIRST_LINES:
            for place in _FORMATS:
                self._formats[place] += end - start - table[place][start:end].count("")
        room = MOST_LINES - len(boot.messages)
        boot.full = boot.full or len(kept) > room
        boot.messages += kept[:room]

    def _of_kernel(self, table: Columns, start: int, end: int) -> list[str]:
        """Without lines of other programs: those that have a date but do not come from the kernel.

        ``dmesg`` names no program, but it has no dates of syslog either.
        """
        found = []
        for place in range(start, end):
            origin = table.origin[place]
            if origin:
                if not self._from_kernel or not self._boot.host:
                    self._from_kernel, self._boot.host = True, origin.partition(" ")[0]
            elif table.syslog[place] or (self._from_kernel and any(column[place] for column in table[:6])):
                self._boot.others += 1
                continue
            found.append(table.message[place])
        return found

    def _pass_time(self, stamp: tuple[str, ...]) -> str:
        """Move the clock on; says whether it jumped (``jump``), or a boot began (``boot``)."""
        clock, at = moment(stamp)
        if clock == "none":
            return ""
        before, old = self._at, self._clock
        self._at, self._clock = at, clock
        if clock == "uptime":
            self._elapsed_s = at
            return "boot" if old == clock and at < before - 2 * SLACK_S and at < 1.0 else ""
        if old != clock:
            return ""
        step = at - before
        if step < -SLACK_S or step > DAY_S or (step > self._window_s and _is_of_zone(step)):
            return "jump"
        self._elapsed_s += max(0.0, step)
        return ""

    def _let_go(self) -> Boot:
        boot = self._boot
        place = self._formats.most_common(1)[0][0] if self._formats else -1
        boot.format = _FORMATS.get(place, "no dates")
        self._boot, self._formats = Boot(), Counter()
        self._elapsed_s = 0.0 if self._clock != "uptime" else self._at
        self._found += 1
        return boot


def _is_of_zone(step_s: float) -> bool:
    """Near a multiple of half an hour: a clock that was set from local time to UTC."""
    return abs(step_s / 1800 - round(step_s / 1800)) < 60 / 1800
