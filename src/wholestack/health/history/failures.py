"""When machines failed, how often, and which do so too often. Pure.

A **failure** begins where a machine that was fit for a while (:data:`QUIET_S`) shows a Finding that says ``fail``; a
Finding that goes and comes back within that while is the same failure, and counted as flapping beside. Time in which
the machine was failing, or was not asked, is no time in which it could have failed.

A **repeat offender** fails again sooner than a sound machine would, by either of two questions: how soon after its
repair, and how soon for the second time after the repair before that one or after it was first watched. With the rate
of its kind both times are those of a Poisson process; what is as short as what was seen has the probability that is
asked, and the two share :data:`FALSE_RATE` by :data:`SHARE_OF_ONE`. That is the false rate: after a failure of a sound
machine its next one names it with at most that probability. The first question finds a machine that has just become
bad, the second one that always was, though its last gap was a long one. One is named at its second failure if at all
possible, since waiting for the third costs another job.

The rate of a kind is that of its machines that failed at most once, given that they did not fail more often: a few
offenders hardly move it, while they may account for half of all failures.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wholestack.health.history.rates import Rate, poisson_tail, rate
from wholestack.health.history.spans import FindingSpan, Machine, Sweeps, Timeline
from wholestack.record import Record

QUIET_S = 24 * 3600.0
"""Fit for less is not fit."""
FALSE_RATE = 0.15
"""After one failure of a sound machine in seven the next one names it; see ``docs/benchmarks/health-operations.md``."""
SHARE_OF_ONE = 0.8
"""Share of the false rate that the time since the last repair has; the rest is that of the last two failures."""
LEAST_FIT = 0.2
"""Share of the machines without a failure in the window from which the rate is taken; else a shorter window."""
LEAST_OF_A_KIND = 20
"""A kind with fewer machines has no rate of its own: that of all is taken."""
RECENT_S = 90 * 86400.0
"""A machine that was named, or flapped, longer ago is not shown as one."""
_STEPS = 100
FLAPS = 3
"""A Finding that came back so often within :data:`RECENT_S` flaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Record):
    """One failure of one machine."""

    first: float
    until: float | None
    """``None`` while it lasts."""
    causes: tuple[str, ...]
    """What was found, the first thing first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one machine fared."""

    machine: Machine
    failures: tuple[Failure, ...]
    line: Timeline

    def fit_s(self, until: float, since: float | None = None) -> float:
        """Time in which it was observed and did not fail, until then; since when, if not since it was first seen."""
        since = self.machine.first if since is None else max(since, self.machine.first)
        fit = self.line.observed_s(since, until)
        for each in self.failures:
            if each.first < until and (each.until is None or each.until > since):
                ends = until if each.until is None else min(until, each.until)
                fit -= self.line.observed_s(max(since, each.first), ends)
        return fit

    def rate(self, until: float) -> Rate:
        """Failures in the time in which it could fail."""
        return rate(sum(each.first <= until for each in self.failures), self.fit_s(until))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offender(Record):
    """A machine that fails too often."""

    host: str
    failures: int
    named_at: float
    """When the rule named it for the first time."""
    latest_at: float
    """When it named it last."""
    at_failure: int
    """At which failure it was named first: 2 is as early as can be."""
    gap_s: float
    """Fit time before the failure that named it last."""
    p: float
    """That a sound machine would be named by its next failure as clearly as by that one, or more so."""
    p_all: float
    """That a sound machine fails as often in all the time in which it was watched."""
    causes: tuple[str, ...]
    """Of its latest failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flapping(Record):
    """A Finding that comes and goes."""

    host: str
    finding: str
    cause: str
    part: str
    returns: int
    """How often it came back."""
    last: float
    """When it came last."""


def failures_of(spans: Iterable[FindingSpan]) -> tuple[Failure, ...]:
    """Failures of one machine.

    Args:
        spans: Of its Findings, in the order in which they began; what was silenced is left out by the caller.
    """
    found: list[tuple[float, float | None, dict[str, None]]] = []
    for each in spans:
        if each.status != "fail":
            continue
        if found and (found[-1][1] is None or each.first - found[-1][1] < QUIET_S):
            first, until, causes = found[-1]
            ends = None if until is None or each.gone is None else max(until, each.gone)
            found[-1] = (first, ends, causes | {each.cause: None})
        else:
            found.append((each.first, each.gone, {each.cause: None}))
    return tuple(Failure(first=first, until=until, causes=tuple(causes)) for first, until, causes in found)


def courses(machines: Iterable[Machine], spans: Iterable[FindingSpan], sweeps: Sweeps) -> list[Course]:
    """How each machine fared, in the order given."""
    by_host: dict[int, list[FindingSpan]] = {}
    for each in spans:
        by_host.setdefault(each.host, []).append(each)
    return [
        Course(machine=each, failures=failures_of(by_host.get(each.id, ())), line=sweeps.of(each.id))
        for each in machines
    ]


def usual_rate(fit_s: Sequence[float], failed: Sequence[int]) -> float:
    """The rate of those that failed at most once, given that; in events a second, 0 without any or with too many.

    Where some failed more often and none just once, that of one more: it is rather too high than none.

    Args:
        fit_s: Time in which each could fail.
        failed: How often each did.
    """
    at_most_once = [(time_s, count) for time_s, count in zip(fit_s, failed, strict=True) if count <= 1 and time_s > 0]
    once = max(sum(count for _, count in at_most_once), int(any(failed)))
    if not once or once >= len(at_most_once):
        return 0.0
    times = Counter(time_s for time_s, _ in at_most_once)
    rate = once / math.fsum(time_s for time_s, _ in at_most_once)
    # How many are to have failed grows with the rate ever more slowly, so Newton's steps from below stay below.
    for _ in range(_STEPS):
        expected = math.fsum(many * rate * time_s / (1 + rate * time_s) for time_s, many in times.items())
        slope = math.fsum(many * time_s / (1 + rate * time_s) ** 2 for time_s, many in times.items())
        step = (once - expected) / slope
        rate += step
        if step <= 1e-12 * rate:
            break
    return rate


def usual_rates(all_courses: Sequence[Course], now: float) -> dict[str, float]:
    """The rate of each kind, in failures a second of fit time."""
    kinds: dict[str, list[Course]] = {}
    for each in all_courses:
        kinds.setdefault(each.machine.kind, []).append(each)
    few = [kind for kind, members in kinds.items() if len(members) < LEAST_OF_A_KIND]
    of_all = _usual_rate(all_courses, now) if few else 0.0
    return {kind: of_all if kind in few else _usual_rate(members, now) for kind, members in kinds.items()}


def _usual_rate(members: Sequence[Course], now: float) -> float:
    window = max((now - each.machine.first for each in members), default=0.0)
    while True:
        since = now - window
        failed = [sum(since <= each.first <= now for each in course.failures) for course in members]
        if window <= QUIET_S or failed.count(0) >= LEAST_FIT * len(members):
            fit = [course.fit_s(now, since) for course in members]
            return usual_rate(fit, failed)
        window /= 2


def offenders(all_courses: Sequence[Course], now: float, *, false_rate: float = FALSE_RATE) -> list[Offender]:
    """Machines that the rule names, the one least likely to be sound first."""
    usual = usual_rates(all_courses, now)
    found = [
        named
        for each in all_courses
        if (named := offender(each, usual[each.machine.kind], now, false_rate=false_rate)) is not None
    ]
    return sorted(found, key=lambda each: (each.p_all, each.host))


def offender(course: Course, usual: float, now: float, *, false_rate: float = FALSE_RATE) -> Offender | None:
    """What the rule says of one machine; ``None`` where it does not name it.

    Args:
        course: Its own.
        usual: Rate of its kind, see :func:`usual_rates`.
        now: Seconds since the epoch.
        false_rate: See :data:`FALSE_RATE`.
    """
    past = [each for each in course.failures if each.first <= now]
    if len(past) < 2:
        return None
    named: list[tuple[int, float, float]] = []
    fit_s = [0.0, *(course.fit_s(each.first) for each in past)] if usual > 0 else []
    for place in range(1, len(fit_s) - 1):
        gap_s, two_s = fit_s[place + 1] - fit_s[place], fit_s[place + 1] - fit_s[place - 1]
        p_one, p_two = -math.expm1(-usual * gap_s), poisson_tail(2, usual * two_s)
        p = min(1.0, p_one / SHARE_OF_ONE, p_two / (1 - SHARE_OF_ONE))
        if p <= false_rate:
            named.append((place, gap_s, p))
    if not named or now - past[named[-1][0]].first > RECENT_S:
        return None
    place, gap_s, p = named[-1]
    return Offender(
        host=course.machine.name,
        failures=len(past),
        named_at=past[named[0][0]].first,
        latest_at=past[place].first,
        at_failure=named[0][0] + 1,
        gap_s=gap_s,
        p=p,
        p_all=poisson_tail(len(past), usual * course.fit_s(now)),
        causes=tuple(dict.fromkeys(cause for each in past[-3:] for cause in each.causes))[:3],
    )


def by_chance(all_courses: Sequence[Course], now: float, *, false_rate: float = FALSE_RATE) -> float:
    """How many machines the rule would name at most if all were sound: its false rate times the failures of late."""
    since = now - RECENT_S
    return false_rate * sum(since <= each.first <= now for course in all_courses for each in course.failures)


def flapping(
    machines: Mapping[int, Machine], spans: Iterable[FindingSpan], now: float, *, least: int = FLAPS
) -> list[Flapping]:
    """Findings that came back too often of late, the worst first."""
    returns: dict[tuple[int, str], list[FindingSpan]] = {}
    for each in spans:
        if each.host in machines and now - each.first <= RECENT_S:
            returns.setdefault((each.host, each.id), []).append(each)
    found = [
        Flapping(
            host=machines[host].name,
            finding=id_,
            cause=episodes[-1].cause,
            part=episodes[-1].part,
            returns=count,
            last=episodes[-1].first,
        )
        for (host, id_), episodes in returns.items()
        if (count := times_back(episodes)) >= least
    ]
    return sorted(found, key=lambda each: (-each.returns, each.host, each.finding))


def times_back(episodes: Sequence[FindingSpan]) -> int:
    """How often a Finding came back; that its status became another is no return.

    Args:
        episodes: Spans of one Finding of one machine, in order.
    """
    return sum(before.gone != after.first for before, after in pairwise(episodes))
