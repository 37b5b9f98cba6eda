"""What a history holds, as values: machines, spans, events, and when who was asked."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

from wholestack.finding import Status
from wholestack.record import Record

LOOKS_MISSED = 4
"""A host that was not asked for so many times its usual while is stale; nothing is known of it from then on."""
LEAST_STALE_S = 3600.0
ONE_LOOK_S = 24 * 3600.0
"""The usual while of a host that was asked once."""


_MOST_KNOWN = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Record):
    """One machine."""

    id: int
    name: str
    """As it was called last."""
    kind: str
    serial: str
    """Empty if it never said."""
    first: float
    """When it was first seen."""
    is_named: bool = True
    """``False`` where another machine answers under its name now, or where a person retired it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingSpan(Record):
    """One Finding with one status, from the sweep that first showed it to the one that no longer did."""

    id: str
    host: int
    check: str
    part: str
    serial: str
    """Of the part, where it is known."""
    cause: str
    owner: str
    status: Status
    evidence: tuple[str, ...]
    """As it was first."""
    first: float
    seen: float | None = None
    """When it was seen last, where the latest look could not look; ``None``: in the latest look of its span."""
    gone: float | None = None
    """``None`` while it lasts."""

    def lasts_at(self, at: float) -> bool:
        """Whether it is there at a time."""
        return self.first <= at and (self.gone is None or at < self.gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSpan(Record):
    """One value of one fact."""

    host: int
    name: str
    part: str
    value: str
    first: float
    gone: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactGroup:
    """One value of one fact in machines where it came and went in the same sweeps."""

    name: str
    value: str
    first: float
    gone: float | None
    hosts: tuple[int, ...]
    """Once for each part that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatSpan(Record):
    """One part in one slot."""

    host: int
    part: str
    serial: str
    model: str
    lot: str
    first: float
    gone: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatGroup:
    """Parts of one model and lot that came and went in the same sweeps."""

    model: str
    lot: str
    first: float
    gone: float | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Record):
    """What happened to whom, when, by whom, why."""

    at: float
    host: int
    """0 where it is about no machine."""
    kind: str
    subject: str
    says: str
    by: str = ""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """When one machine was asked."""

    times: tuple[float, ...]
    """In order, at least one."""

    @cached_property
    def stale_s(self) -> float:
        """How long after a look the machine counts as observed."""
        gaps = sorted(later - sooner for sooner, later in pairwise(self.times))
        usual = gaps[len(gaps) // 2] if gaps else ONE_LOOK_S / LOOKS_MISSED
        return max(LEAST_STALE_S, LOOKS_MISSED * usual)

    @cached_property
    def _known(self) -> dict[tuple[float, float], float]:
        """Answers: machines that are always asked together share a line, and most were first seen together."""
        return {}

    @cached_property
    def _observed(self) -> list[float]:
        """Seconds observed until each look."""
        gaps = (min(later - sooner, self.stale_s) for sooner, later in pairwise(self.times))
        return list(accumulate(gaps, initial=0.0))

    def observed_s(self, since: float, until: float) -> float:
        """Seconds between two times in which it is known how the machine was."""
        key = (since, until)
        known = self._known.get(key)
        if known is None:
            known = max(0.0, self._until(until) - self._until(since))
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = known
        return known

    def before(self, at: float) -> float:
        """The last look before a time; the first one if there was none."""
        return self.times[max(0, bisect_left(self.times, at) - 1)]

    def is_stale(self, now: float) -> bool:
        """Whether it was not asked for too long."""
        return now - self.times[-1] > self.stale_s

    def _until(self, at: float) -> float:
        place = bisect_right(self.times, at) - 1
        return self._observed[place] + min(at - self.times[place], self.stale_s) if place >= 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Sweeps:
    """When which machines were asked."""

    times: Mapping[int, Sequence[float]]
    """By plan, in order."""
    plans: Mapping[int, tuple[int, ...]]
    """By machine: those that ask it."""
    in_part: frozenset[int] = frozenset()
    """Plans that leave checks out."""
    _lines: dict[tuple[int, ...], Timeline] = field(default_factory=dict)

    def of(self, machine: int) -> Timeline:
        """When one machine was asked; machines that are always asked together share what is returned."""
        return self._line(self.plans[machine])

    def in_full(self, machine: int) -> Timeline | None:
        """When it was asked with no check left out; ``None`` if never: then nothing says that it is well."""
        plans = tuple(plan for plan in self.plans[machine] if plan not in self.in_part)
        return self._line(plans) if plans else None

    def _line(self, plans: tuple[int, ...]) -> Timeline:
        if plans not in self._lines:
            times = sorted({at for plan in plans for at in self.times[plan]})
            self._lines[plans] = Timeline(times=tuple(times))
        return self._lines[plans]

    @property
    def last(self) -> float:
        """When the latest sweep ended; 0 where there is none."""
        return max((times[-1] for times in self.times.values()), default=0.0)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(map(len, self.times.values()))
