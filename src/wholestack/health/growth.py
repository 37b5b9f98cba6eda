"""Error counters over time: how much they grew in the current window, and whether a fault is still fresh.

A total says nothing of today, so a look keeps, beside the counter itself, its value and time at the beginning of the
window and the time when a limit was last exceeded (as further :class:`~wholestack.health.check.Counter` values). A
fault then heals only after a quiet window, and survives the looks in between. Looks of another boot give no base.
"""

from dataclasses import dataclass, replace

from wholestack.finding import Status
from wholestack.health.check import Counter, Seen

S_PER_H = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """When growth is a fault."""

    warn: float
    """Counts in a window that are a warning."""
    fail: float = float("inf")
    """Counts in a window that are a fail."""
    window_h: float = 1.0
    quiet_h: float = 24.0
    """Hours without such growth until the fault has healed."""
    boot_least: float = 0.0
    """At the first look of a boot smaller totals do not count: bringing links up counts too."""
    boot_total: float = float("inf")
    """At the first look of a boot such a total is a warning, however long it took."""
    timeless: float = float("inf")
    """Where no time is known at all, as in a saved output, such a total is a warning."""


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
    """What earlier looks at this host left behind, by name and part."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._old = {(one.name, one.part): one.value for one in seen.before.counters} if seen.before else {}
        self._same_boot = seen.before is not None and seen.before.boot_id == seen.boot_id and seen.before.at < seen.now

    def growth(self, counter: Counter, levels: Levels, *, marker: str) -> Growth:
        """Judge one counter.

        Args:
            counter: As read now.
            levels: Its limits.
            marker: Name of a counter that every look keeps of such a part: where that is known and this one is not,
                this one was zero.
        """
        if self._same_boot and (marker, counter.part) in self._old:
            return self._since_looks(counter, levels)
        return self._since_boot(counter, levels)

    def _since_looks(self, counter: Counter, levels: Levels) -> Growth:
        now, before = int(self._seen.now), self._seen.before
        last = self._value(counter, "", 0)
        base = self._value(counter, ".base", last)
        base_at = self._value(counter, ".base_at", int(before.at) if before else now)
        if counter.value < last:
            base = 0
        delta, hours = counter.value - base, (now - base_at) / S_PER_H
        # A window that was over before this look, for looks are rare, is judged by its mean.
        share = delta * levels.window_h / max(hours, levels.window_h)
        if hours >= levels.window_h:
            base, base_at = counter.value, now
        if counter.value == last:
            share = 0.0
        return self._verdict(counter, levels, share, Window(delta, hours, "earlier looks", base, base_at))

    def _since_boot(self, counter: Counter, levels: Levels) -> Growth:
        now, value, uptime_s = int(self._seen.now), counter.value, self._seen.uptime_s
        if uptime_s is None:
            share = levels.warn if value >= levels.timeless else 0.0
            return self._verdict(counter, levels, share, Window(None, 0.0, "boot", value, now))
        hours = uptime_s / S_PER_H
        share = value * levels.window_h / max(hours, levels.window_h) if value >= levels.boot_least else 0.0
        if value >= levels.boot_total:
            share = max(share, levels.warn)
        return self._verdict(counter, levels, share, Window(value, hours, "boot", value, now))

    def _verdict(self, counter: Counter, levels: Levels, share: float, window: "Window") -> Growth:
        now = int(self._seen.now)
        limits: dict[Status, float] = {"fail": levels.fail, "warn": levels.warn}
        alarms = {
            name: now if share >= limit else self._value(counter, f".{name}_at", 0) for name, limit in limits.items()
        }
        fresh = [name for name, at in alarms.items() if at and now - at < levels.quiet_h * S_PER_H]
        says = window.says(counter)
        if fresh and share < levels.warn:
            says += (
                f"; last above the limit {(now - alarms[fresh[0]]) / S_PER_H:.1f} h ago, {levels.quiet_h:g} h heal it"
            )
        kept = {"": counter.value, ".base": window.base, ".base_at": window.base_at}
        kept |= {f".{name}_at": at for name, at in alarms.items() if at}
        keep = tuple(Counter(name=counter.name + tail, value=value, part=counter.part) for tail, value in kept.items())
        return Growth(
            delta=window.delta,
            hours=window.hours,
            since=window.since,
            status=fresh[0] if fresh else "ok",
            says=says,
            keep=keep,
        )

    def _value(self, counter: Counter, tail: str, default: int) -> int:
        return self._old.get((counter.name + tail, counter.part), default)


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
