"""What a history says of one host and of the fleet: reads the spans, leaves the arithmetic to its neighbours."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, WORST_FIRST, Status
from wholestack.health.catalog import nearest
from wholestack.health.history.batches import Batch, batches
from wholestack.health.history.changes import Effect, effects
from wholestack.health.history.failures import (
    FALSE_RATE,
    Failure,
    Flapping,
    Offender,
    by_chance,
    courses,
    flapping,
    offender,
    offenders,
    times_back,
    usual_rates,
)
from wholestack.health.history.rates import Rate, rate
from wholestack.health.history.silences import Silence, silenced_by, without_silenced
from wholestack.health.history.spans import Event, FactSpan, FindingSpan, Machine, SeatSpan, Sweeps, Timeline
from wholestack.health.history.store import History
from wholestack.record import Record

Standing = Literal["fail", "unknown", "stale", "warn", "silenced", "ok"]
"""How a host stands: the worst of its Findings that nobody silenced; ``stale`` if it was not asked for too long;
``unknown`` also where it was not asked in full for too long (a sweep with ``--only`` or ``--skip`` says nothing of the
rest); ``silenced`` if all that is left of it is."""
STANDINGS: tuple[Standing, ...] = ("fail", "unknown", "stale", "warn", "silenced", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story(Record):
    """One Finding of one host over time."""

    id: str
    check: str
    part: str
    serial: str
    cause: str
    owner: str
    status: Status
    """The latest."""
    first: float
    """When it was first seen."""
    last: float
    """When it was seen last."""
    returns: int
    """How often it came back."""
    is_open: bool
    is_blind: bool
    """Whether the latest look at the host could not look for it."""
    silenced_until: float | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHistory(Record):
    """Everything of one host."""

    SCHEMA: ClassVar[str] = "health-history/1"

    host: Machine
    standing: Standing
    first: float
    last: float
    """When it was asked last."""
    last_in_full: float | None
    """When it was asked last with no check left out; ``None``: never."""
    looks: int
    stories: tuple[Story, ...]
    """Those that are there first, then the latest first."""
    failures: tuple[Failure, ...]
    rate: Rate
    """Failures in the time in which it was watched and fit."""
    usual: float
    """Failures a second of a sound machine of its kind."""
    offender: Offender | None
    facts: tuple[FactSpan, ...]
    """Today's."""
    changes: tuple[FactSpan, ...]
    """Values that ended."""
    seats: tuple[SeatSpan, ...]
    """Today's parts."""
    events: tuple[Event, ...]
    silences: tuple[Silence, ...]
    """Active ones that are about it."""

    @property
    def exit_code(self) -> int:
        """1 where something is wrong, else 3 where it is not known, else 0."""
        return _code({self.standing})


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHistory(Record):
    """What is to be said of all hosts together."""

    SCHEMA: ClassVar[str] = "health-fleet/1"

    at: float
    since: float
    """When the first sweep ended."""
    last: float
    """When the latest did."""
    sweeps: int
    hosts: int
    standings: dict[str, int]
    """Number of hosts by standing."""
    silenced: int
    """Findings that are there and silenced."""
    failures: Rate
    """Of all hosts together, in host-seconds."""
    false_rate: float
    offenders: tuple[Offender, ...]
    by_chance: float
    """How many of them there would be at most if every host were sound."""
    flapping: tuple[Flapping, ...]
    batches: tuple[Batch, ...]
    tests: int
    """How many pairs of a family and a value were tested for that."""
    families: int
    effects: tuple[Effect, ...]

    @property
    def exit_code(self) -> int:
        """1 where something is wrong with a host, else 3 where something is not known, else 0."""
        return _code({standing for standing, count in self.standings.items() if count})


def fleet_history(history: History, *, now: float, false_rate: float = FALSE_RATE) -> FleetHistory:
    """What a history says of the fleet.

    Args:
        history: Open.
        now: Seconds since the epoch.
        false_rate: Of repeat offenders; see :mod:`wholestack.health.history.failures`.

    Raises:
        InputError: there is no sweep in it.
        HistoryError: it cannot be read.
    """
    fleet = _Fleet(history)
    until = min(now, fleet.sweeps.last)
    findings, silences = history.findings(), history.silences()
    named = {each.id: each for each in fleet.machines}
    counted = [each for each in without_silenced(findings, silences) if each.host in named]
    all_courses = courses(fleet.machines, counted, fleet.sweeps)
    standings, silenced = _standings(fleet, findings, silences, now)
    shared = batches(fleet.machines, counted, history.fact_groups(), history, until)
    return FleetHistory(
        at=now,
        since=min(times[0] for times in fleet.sweeps.times.values()),
        last=fleet.sweeps.last,
        sweeps=fleet.sweeps.count,
        hosts=len(fleet.machines),
        standings={standing: standings[standing] for standing in STANDINGS},
        silenced=silenced,
        failures=rate(sum(len(each.failures) for each in all_courses), sum(each.fit_s(until) for each in all_courses)),
        false_rate=false_rate,
        offenders=tuple(offenders(all_courses, until, false_rate=false_rate)),
        by_chance=by_chance(all_courses, until, false_rate=false_rate),
        flapping=tuple(flapping(named, counted, until)),
        batches=shared.found,
        tests=shared.tests,
        families=shared.families,
        effects=tuple(effects(all_courses, history.changed_facts(), until)),
    )


def host_history(history: History, host: str, *, now: float, false_rate: float = FALSE_RATE) -> HostHistory:
    """What a history says of one host.

    Args:
        history: Open.
        host: Its name, or the serial number of the machine or of one of its parts.
        now: Seconds since the epoch.
        false_rate: As of the fleet.

    Raises:
        InputError: no host is called so.
        HistoryError: the history cannot be read.
    """
    fleet = _Fleet(history)
    machine = find_machine(history, host)
    until, line = min(now, fleet.sweeps.last), fleet.sweeps.of(machine.id)
    in_full = fleet.sweeps.in_full(machine.id)
    findings, silences = history.findings(machine.id), history.silences()
    active = tuple(each for each in silences if each.is_active(now) and each.host in (None, machine.id))
    beside = {each.id for each in fleet.machines} | {machine.id}
    counted = [each for each in without_silenced(history.findings(), silences) if each.host in beside]
    members = [*fleet.machines, *([] if machine.is_named else [machine])]
    all_courses = {each.machine.id: each for each in courses(members, counted, fleet.sweeps)}
    course = all_courses[machine.id]
    usual = usual_rates(list(all_courses.values()), until)[machine.kind]
    facts, seats = history.facts(machine.id), history.seats(machine.id)
    stories = _stories(findings, silences, line, now)
    return HostHistory(
        host=machine,
        standing=_standing(machine, [each for each in findings if each.gone is None], silences, fleet.sweeps, now),
        first=machine.first,
        last=line.times[-1],
        last_in_full=in_full.times[-1] if in_full else None,
        looks=len(line.times),
        stories=tuple(sorted(stories, key=lambda each: (not each.is_open, -each.last, each.id))),
        failures=course.failures,
        rate=course.rate(until),
        usual=usual,
        offender=offender(course, usual, until, false_rate=false_rate),
        facts=tuple(each for each in facts if each.gone is None),
        changes=tuple(each for each in facts if each.gone is not None),
        seats=tuple(each for each in seats if each.gone is None),
        events=tuple(history.events(machine.id)),
        silences=tuple(each for each in active if any(each.means(span) for span in findings) or each.host),
    )


def find_machine(history: History, host: str) -> Machine:
    """The machine of a name, for want of one that had it last, of its serial number, or of that of a part that it has.

    Raises:
        InputError: there is none; names the nearest.
    """
    machines = history.machines()
    by_name = {each.name: each for each in machines if each.is_named}
    by_serial = {each.serial: each for each in machines if each.serial}
    before = {each.name: each for each in machines}
    found = by_name.get(host) or by_serial.get(host) or before.get(host)
    if found is None:
        holder = history.holder_of(host)
        found = next((each for each in machines if each.id == holder), None)
    if found is None:
        listed = ", ".join(sorted(by_name)[:3])
        otherwise = f"it has {len(by_name)}, such as {listed}" if by_name else history.why_empty()
        raise InputError(
            f"{history.path}: no host {host!r}", remedy=nearest(host, sorted(by_name), otherwise=otherwise)
        )
    return found


class _Fleet:
    """The machines that are there, and when they were asked."""

    def __init__(self, history: History) -> None:
        self.machines: Sequence[Machine] = [each for each in history.machines() if each.is_named]
        self.sweeps: Sweeps = history.sweeps()
        if not self.machines:
            raise InputError(f"{history.path}: {history.why_empty()}", remedy="wholestack health history add SWEEP")


def _standings(
    fleet: _Fleet, findings: Sequence[FindingSpan], silences: Sequence[Silence], now: float
) -> tuple[Counter[str], int]:
    there: dict[int, list[FindingSpan]] = {}
    for each in findings:
        if each.gone is None:
            there.setdefault(each.host, []).append(each)
    counts = Counter(
        str(_standing(each, there.get(each.id, ()), silences, fleet.sweeps, now)) for each in fleet.machines
    )
    silenced = sum(
        silenced_by(span, silences, now) is not None for each in fleet.machines for span in there.get(each.id, ())
    )
    return counts, silenced


def _standing(
    machine: Machine, there: Sequence[FindingSpan], silences: Sequence[Silence], sweeps: Sweeps, now: float
) -> Standing:
    line, in_full = sweeps.of(machine.id), sweeps.in_full(machine.id)
    if not machine.is_named or line.is_stale(now):
        return "stale"
    loud = [each.status for each in there if silenced_by(each, silences, now) is None]
    if in_full is None or in_full.is_stale(now):
        loud.append("unknown")
    if loud:
        return min(loud, key=WORST_FIRST.index)
    return "silenced" if there else "ok"


def _stories(findings: Sequence[FindingSpan], silences: Sequence[Silence], line: Timeline, now: float) -> list[Story]:
    by_id: dict[str, list[FindingSpan]] = {}
    for each in findings:
        by_id.setdefault(each.id, []).append(each)
    return [_story(episodes, silences, line, now) for episodes in by_id.values()]


def _story(episodes: Sequence[FindingSpan], silences: Sequence[Silence], line: Timeline, now: float) -> Story:
    latest = episodes[-1]
    silent = silenced_by(latest, silences, now)
    return Story(
        id=latest.id,
        check=latest.check,
        part=latest.part,
        serial=latest.serial,
        cause=latest.cause,
        owner=latest.owner,
        status=latest.status,
        first=episodes[0].first,
        last=_seen_last(latest, line),
        returns=times_back(episodes),
        is_open=latest.gone is None,
        is_blind=latest.gone is None and latest.seen is not None,
        silenced_until=silent.end if silent else None,
        evidence=latest.evidence,
    )


def _seen_last(span: FindingSpan, line: Timeline) -> float:
    if span.seen is not None:
        return span.seen
    return line.times[-1] if span.gone is None else line.before(span.gone)


def _code(standings: set[str]) -> int:
    if standings & {"fail", "warn"}:
        return EXIT_FINDINGS
    return EXIT_UNKNOWN if standings & {"unknown", "stale"} else EXIT_OK
