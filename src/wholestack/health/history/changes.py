"""What a change of firmware, driver or another version did: failures before against after, on the same machines. Pure.

Of every machine that went from one value to another, the fit time and the failures up to :data:`WINDOW_S` before and
after count, not beyond another change of the same fact; two Poisson rates are compared exactly. What it cannot tell:
whether something else changed on the same days, and a machine that was changed because it failed fails less afterwards
whatever was changed. Therefore a failure that lasted or ended within :data:`BECAUSE_S` before the change is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from wholestack.health.history.failures import Course
from wholestack.health.history.looks import PLACES
from wholestack.health.history.rates import Rate, adjusted, compare_rates, rate
from wholestack.health.history.spans import FactSpan
from wholestack.record import Record

WINDOW_S = 90 * 86400.0
BECAUSE_S = 24 * 3600.0
"""A change so soon after a failure may be its repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect(Record):
    """What one change did."""

    fact: str
    old: str
    new: str
    hosts: int
    """That made it and were watched on both sides."""
    latest: float
    """When the last of them did."""
    before: Rate
    after: Rate
    ratio: float | None
    """Rate after over rate before; ``None`` where there was no failure before."""
    low: float
    high: float | None
    p: float
    q: float
    """p, taking into account how many changes are listed (Benjamini and Yekutieli)."""


def effects(courses: Iterable[Course], facts: Iterable[FactSpan], now: float) -> list[Effect]:
    """Every change that some failure can be told of, the clearest first.

    Args:
        courses: Of the machines.
        facts: Of all machines, in the order in which they began; those that never changed may be left out.
        now: Seconds since the epoch.
    """
    by_host = {each.machine.id: each for each in courses}
    groups: dict[tuple[str, str, str], list[_Side]] = {}
    for key, spans in _rows(facts).items():
        course = by_host.get(key[0])
        if course is not None:
            for old, new in pairwise(spans):
                if old.gone == new.first and old.value != new.value:
                    groups.setdefault((new.name, old.value, new.value), []).append(_sides(course, old, new, now))
    found = [(key, sides) for key, sides in groups.items() if any(side.before + side.after for side in sides)]
    plain = [_effect(*key, sides) for key, sides in found]
    q_values = adjusted([each.p for each in plain], tests=len(groups))
    with_q = [_with_q(each, q) for each, q in zip(plain, q_values, strict=True)]
    return sorted(with_q, key=lambda each: (each.p, each.fact, each.old, each.new))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One machine before and after one change."""

    at: float
    before: int
    before_s: float
    after: int
    after_s: float


def _rows(facts: Iterable[FactSpan]) -> Mapping[tuple[int, str], list[FactSpan]]:
    """Spans of one fact of one machine that all its parts share; places are no versions."""
    rows: dict[tuple[int, str], list[FactSpan]] = {}
    for each in facts:
        if not each.part and each.name not in PLACES:
            rows.setdefault((each.host, each.name), []).append(each)
    return rows


def _sides(course: Course, old: FactSpan, new: FactSpan, now: float) -> _Side:
    at = new.first
    since = max(old.first, at - WINDOW_S)
    until = min(now if new.gone is None else new.gone, at + WINDOW_S, now)
    before = sum(
        since <= each.first < at and each.until is not None and at - each.until > BECAUSE_S for each in course.failures
    )
    return _Side(
        at=at,
        before=before,
        before_s=course.fit_s(at, since),
        after=sum(at <= each.first <= until for each in course.failures),
        after_s=course.fit_s(until, at),
    )


def _effect(fact: str, old: str, new: str, sides: Iterable[_Side]) -> Effect:
    watched = [each for each in sides if each.before_s > 0 and each.after_s > 0]
    before = rate(sum(each.before for each in watched), sum(each.before_s for each in watched))
    after = rate(sum(each.after for each in watched), sum(each.after_s for each in watched))
    compared = compare_rates(after.count, after.time_s, before.count, before.time_s)
    return Effect(
        fact=fact,
        old=old,
        new=new,
        hosts=len(watched),
        latest=max((each.at for each in sides), default=0.0),
        before=before,
        after=after,
        ratio=compared.ratio,
        low=compared.low,
        high=compared.high,
        p=compared.p,
        q=1.0,
    )


def _with_q(effect: Effect, q: float) -> Effect:
    return replace(effect, q=q)
