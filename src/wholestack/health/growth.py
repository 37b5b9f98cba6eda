"""Error counters over time: how much they grew in the current window, and whether a fault is still fresh.

The one way in which growth is judged. A total says nothing of today, so a look keeps, beside the counter itself, its
value and time at the beginning of the window and the time when a limit was last exceeded (as further
:class:`~wholestack.health.check.Counter` values). A fault then heals only after a quiet window, and survives the looks
in between, a counter that is cleared and a reboot, since those mend no cable. Looks of another boot give no base,
unless the counter lasts. What a look could not read stays known with the time at which it was read
(:func:`left_behind`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from wholestack.finding import Status
from wholestack.health.check import Before, Counter, Known, Seen

S_PER_H = 3600
FORGET_H = 720.0
"""What was not read for so long is forgotten; far longer than any quiet window."""
MOST_CARRIED = 5_000
"""Counters of one host that are carried over: a hostile one may name new parts at every look."""
TAILS = (".base", ".base_at", ".fail_at", ".warn_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """When growth is a fault."""

    warn: float
    """Counts in a window that are a warning."""
    fail: float = float("inf")
    """Counts in a window that are a fail."""
    window_h: float = 1.0
    quiet_h: float = 24.0
    """Hours without such growth until the fault has healed: the quiet window."""
    boot_least: float = 0.0
    """At the first look of a boot smaller totals do not count: bringing links up counts too."""
    boot_total: float = float("inf")
    """At the first look of a boot such a total is a warning, however long it took."""
    boot_warn: float | None = None
    """At the first look of a boot a mean of so many in a window is a warning; ``None`` for the same as later."""
    timeless: float = float("inf")
    """Where it is not known since when it counts, as in a saved output, such a total is a warning."""
    timeless_fail: float = float("inf")
    """The same, a fail."""
    least: float = 0.0
    """Growth by less is never judged, however fast."""
    lasting: bool = False
    """Whether it outlives a reboot, as in a drive: the first look of all has nothing to count from."""


def hourly(warn: float, *, fail: float = float("inf"), timeless: float | None = None) -> Levels:
    """Limits in an hour.

    Ten times the warning is the least total that counts at the first look of a boot, for links make errors when they
    are brought up and some counters outlive a reboot, and the total that warns where no time is known.

    Args:
        warn: Counts in an hour.
        fail: Counts in an hour.
        timeless: Another total that warns where no time is known.
    """
    return Levels(warn=warn, fail=fail, boot_least=10 * warn, timeless=timeless if timeless is not None else 10 * warn)


def scaled(levels: Levels, scale: float) -> Levels:
    """The same limits times a factor."""
    return replace(
        levels,
        warn=levels.warn * scale,
        fail=levels.fail * scale,
        timeless=levels.timeless * scale,
        boot_least=levels.boot_least * scale,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What is known of one counter at one part."""

    delta: int | None
    """Counted since ``since``; ``None`` where neither an earlier look nor the time since boot is known."""
    hours: float
    since: str
    """``boot`` or ``earlier looks``."""
    status: Status
    """``ok``, ``warn`` or ``fail``; also of a fault that is not yet quiet for long enough."""
    says: str
    """One line for a person."""
    keep: tuple[Counter, ...]
    """For the next look."""


class Memory:
    """What earlier looks at this host left behind."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def knows(self, counter: Counter) -> bool:
        """Whether an earlier look kept this counter: then it is judged even if it is zero now."""
        return self._seen.known(counter.name, counter.part) is not None

    def growth(self, counter: Counter, levels: Levels, *, marker: tuple[str, str] | None = None) -> Growth:
        """Judge one counter.

        Args:
            counter: As read now.
            levels: Its limits.
            marker: Name and part of a counter that every look keeps where this one is kept only if it is not zero:
                where that is known and this one is not, this one was zero.
        """
        last = self._last(counter, levels, marker)
        return self._first_look(counter, levels) if last is None else self._since_looks(counter, levels, last)

    def _last(self, counter: Counter, levels: Levels, marker: tuple[str, str] | None) -> Known | None:
        """The counter as it was read last; not before a reboot that cleared it, nor by a clock that went back."""
        last = self._seen.known(counter.name, counter.part)
        if last is None and marker is not None and (mark := self._seen.known(*marker)) is not None:
            last = Known(value=0, at=mark.at, boot_id=mark.boot_id)
        if last is None or levels.lasting:
            return last if last is None or last.value <= counter.value else None
        return last if last.boot_id == self._seen.boot_id and last.at < self._seen.now else None

    def _since_looks(self, counter: Counter, levels: Levels, last: Known) -> Growth:
        now = int(self._seen.now)
        base = self._value(counter, ".base", last.value)
        base_at = min(self._value(counter, ".base_at", int(last.at)), now)
        if counter.value < last.value:
            base = 0
        delta, hours = counter.value - base, (now - base_at) / S_PER_H
        # A window that was over before this look, for looks are rare, is judged by its mean.
        share = delta * levels.window_h / max(hours, levels.window_h)
        if hours >= levels.window_h:
            base, base_at = counter.value, now
        if counter.value == last.value or delta < levels.least:
            share = 0.0
        return self._verdict(
            counter, levels, _status(levels, share), Window(delta, hours, "earlier looks", base, base_at)
        )

    def _first_look(self, counter: Counter, levels: Levels) -> Growth:
        now, value, uptime_s = int(self._seen.now), counter.value, self._seen.uptime_s
        if uptime_s is None or levels.lasting:
            now_is: Status = "fail" if value >= levels.timeless_fail else "warn" if value >= levels.timeless else "ok"
            return self._verdict(counter, levels, now_is, Window(None, 0.0, "boot", value, now))
        hours = uptime_s / S_PER_H
        share = value * levels.window_h / max(hours, levels.window_h)
        if value < max(levels.boot_least, levels.least):
            share = 0.0
        elif value >= levels.boot_total or (levels.boot_warn is not None and share >= levels.boot_warn):
            share = max(share, levels.warn)
        return self._verdict(counter, levels, _status(levels, share), Window(value, hours, "boot", value, now))

    def _verdict(self, counter: Counter, levels: Levels, now_is: Status, window: "Window") -> Growth:
        now = int(self._seen.now)
        fresh: dict[Status, int] = {}
        for alarm, tail, reached in _ALARMS:
            # A clock that went back must not keep a fault for ever: what lies ahead of now is taken for now.
            at = now if now_is in reached else min(self._value(counter, tail, 0), now)
            if at and now - at < levels.quiet_h * S_PER_H:
                fresh[alarm] = at
        status: Status = next(iter(fresh), "ok")
        says = window.says(counter)
        if fresh and now_is == "ok":
            says += f"; last above the limit {(now - fresh[status]) / S_PER_H:.1f} h ago, {levels.quiet_h:g} h heal it"
        name, part = counter.name, counter.part
        keep = (
            counter,
            Counter(name=f"{name}.base", value=window.base, part=part),
            Counter(name=f"{name}.base_at", value=window.base_at, part=part),
            *(Counter(name=f"{name}.{alarm}_at", value=at, part=part) for alarm, at in fresh.items()),
        )
        return Growth(delta=window.delta, hours=window.hours, since=window.since, status=status, says=says, keep=keep)

    def _value(self, counter: Counter, tail: str, default: int) -> int:
        known = self._seen.known(counter.name + tail, counter.part)
        return default if known is None else known.value


@dataclass(frozen=True, slots=True)
class Window:
    """What was counted since when, and where the next look begins."""

    delta: int | None
    hours: float
    since: str
    base: int
    base_at: int

    def says(self, counter: Counter) -> str:
        """``symbol_error 40 (+12 in 0.5 h since earlier looks)``."""
        if self.delta is None:
            return f"{counter.name} {counter.value} (since when is not known)"
        return f"{counter.name} {counter.value} (+{self.delta} in {self.hours:.1f} h since {self.since})"


_ALARMS: tuple[tuple[Status, str, tuple[Status, ...]], ...] = (
    ("fail", ".fail_at", ("fail",)),
    ("warn", ".warn_at", ("fail", "warn")),
)
"""What is remembered of an alarm, the worse first: the tail of the counter that holds when, and what renews it."""


def _status(levels: Levels, share: float) -> Status:
    if share <= 0 or share < min(levels.warn, levels.fail):
        return "ok"
    return "fail" if share >= levels.fail else "warn"


def left_behind(seen: Seen, counters: Iterable[Counter]) -> Before:
    """For the next look: what was read now, and what only earlier looks could read, with their own time and boot."""
    read = tuple(counters)
    return Before(at=seen.now, boot_id=seen.boot_id, counters=read, older=tuple(_carried(seen, read)))


def _carried(seen: Seen, read: tuple[Counter, ...]) -> Iterator[Before]:
    if seen.before is None:
        return
    newer, left = {_stem(each) for each in read}, MOST_CARRIED
    for look in (seen.before, *seen.before.older):
        if seen.now - look.at > FORGET_H * S_PER_H:
            continue
        kept = tuple(each for each in look.counters if _stem(each) not in newer)[:left]
        newer.update(_stem(each) for each in kept)
        left -= len(kept)
        if kept:
            yield Before(at=look.at, boot_id=look.boot_id, counters=kept)


def _stem(counter: Counter) -> tuple[str, str]:
    """Name and part of the counter itself, of which the tails tell more."""
    stem, dot, tail = counter.name.rpartition(".")
    return (stem if dot + tail in TAILS else counter.name), counter.part
