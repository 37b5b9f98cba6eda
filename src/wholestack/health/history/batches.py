"""Faults that share a batch: which part number, lot, firmware, rack, switch or power unit has too many of one fault.

A **family** is one check with one cause. Its cases are units that showed it: hosts for what a host is or where it
stands, parts for what a part is (model, lot). Under the hypothesis that a factor has nothing to do with a family, the
cases are a draw without replacement from all units, so the number of them with one value is hypergeometric: Fisher's
exact test, one-sided, given how many units have the value. A unit that shows a fault ten times is one case.

**Many tests.** Every family is tested against every value of every factor, and the tests depend on each other: values
of one factor exclude each other, racks and switches all but coincide. Benjamini and Yekutieli hold their promise
however tests depend; a permutation would too, but needs thousands of rounds for the small probabilities that are left.
It is conservative, and the tests are discrete, so fewer are false than :data:`FALSE_SHARE` says.

**Factors that coincide.** The best value of a family is named first. Another one stands by itself only if it is still
enriched within and without the best one (the exact test over both strata). If it is not, and the best one is not
enriched either once the other is known, the two cannot be told apart, and both are named.

A factor is not tested against the check whose own trait it is: that hosts with an odd firmware have the Finding
"firmware differs" says nothing.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Protocol, TypeVar

from wholestack.health import catalog
from wholestack.health.history.rates import Table, adjusted, hypergeometric_tail, stratified_tail
from wholestack.health.history.spans import FactGroup, FindingSpan, Machine, SeatGroup
from wholestack.record import Record

FALSE_SHARE = 0.05
"""Of the batches that are named at most so many are none; where there is none, so many fleets have one named."""
WINDOW_S = 90 * 86400.0
"""Cases that began longer ago are not counted: what they shared may be another today."""
LEAST = 2
"""Cases, and units with a value, that are worth a test."""
APART = 0.01
"""Above this a factor is not enriched any more once another one is known."""
MOST_NAMED = 20
"""Hosts of a batch that are named."""

V = TypeVar("V", bound=Hashable)
Unit = tuple[int, str]
"""A machine, and a part of it; the part is empty where the unit is the machine."""


class Seats(Protocol):
    """What is known of parts at a time; a history answers from its index."""

    def seat_groups(self, kind: str) -> Sequence[SeatGroup]:
        """All parts of a kind at all times, counted."""

    def seat_at(self, host: int, parts: Sequence[str], at: float) -> tuple[str, str, str] | None:
        """Place, model and lot of the first of these places where a part sat."""

    def seats_with(self, kind: str, model: str | None, lot: str | None, at: float) -> set[Unit]:
        """All parts of a kind, those of a model and of a lot if these are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Record):
    """One fault that is too frequent where something is shared."""

    check: str
    cause: str
    factor: str
    """``host.rack``, ``gpu.driver``, ``cable lot`` ..."""
    value: str
    hits: int
    """Cases that have it."""
    cases: int
    """All."""
    having: int
    """Units that have it."""
    total: int
    """All."""
    units: str
    """What is counted: ``hosts``, or a kind of part."""
    p: float
    q: float
    """p, taking into account how many tests there were."""
    alike: tuple[str, ...]
    """Other factors with values that cannot be told apart from this one."""
    hosts: tuple[str, ...]
    """The first of those that show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """One value of one factor, tested against one family."""

    factor: str
    value: str
    kind: str
    """Of part; empty for hosts."""
    table: Table
    p: float
    cases: frozenset[Unit]
    at: float
    model: str = ""
    lot: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """What was found, and how hard was looked."""

    found: tuple[Batch, ...]
    tests: int
    families: int


def batches(
    machines: Sequence[Machine],
    findings: Iterable[FindingSpan],
    facts: Iterable[FactGroup],
    seats: Seats,
    now: float,
    *,
    false_share: float = FALSE_SHARE,
) -> Batches:
    """Test every family against every factor.

    Args:
        machines: Those that are asked today.
        findings: Of them; what was silenced is left out by the caller.
        facts: Of them.
        seats: Of them.
        now: Seconds since the epoch.
        false_share: See :data:`FALSE_SHARE`.
    """
    named = {each.id: each for each in machines}
    families: dict[tuple[str, str], list[FindingSpan]] = {}
    for each in findings:
        if each.status in ("fail", "warn") and now - each.first <= WINDOW_S and each.host in named:
            families.setdefault((each.check, each.cause), []).append(each)
    values, seats = _Values(facts, named), _Remembered(seats)
    hits: list[tuple[tuple[str, str], _Hit]] = []
    tests = tried = 0
    for family, spans in sorted(families.items()):
        found, count = _tested(family[0], spans, values, seats)
        hits += [(family, each) for each in found]
        tests += count
        tried += count > 0
    q_values = adjusted([hit.p for _, hit in hits], tests=tests)
    kept: dict[tuple[str, str], list[tuple[_Hit, float]]] = {}
    for (family, hit), q in zip(hits, q_values, strict=True):
        if q <= false_share:
            kept.setdefault(family, []).append((hit, q))
    compare = _Apart(values, seats, set(named))
    told = [batch for family, row in kept.items() for batch in _told_apart(family, row, compare, named)]
    ordered = sorted(told, key=lambda each: (each.p, each.check, each.factor))
    return Batches(found=tuple(ordered), tests=tests, families=tried)


class _Remembered:
    """Counts of a kind of part are read once for all families."""

    def __init__(self, seats: Seats) -> None:
        self.seat_at = seats.seat_at
        self.seats_with = seats.seats_with
        self.seat_groups = cache(seats.seat_groups)


class _Values:
    """Facts of all hosts at any time; times between which nothing changed share one table."""

    def __init__(self, facts: Iterable[FactGroup], named: Mapping[int, Machine]) -> None:
        self._named = named.keys()
        self._groups: dict[str, list[FactGroup]] = {}
        for each in facts:
            if not self._named.isdisjoint(each.hosts):
                self._groups.setdefault(each.name, []).append(each)
        self._times = {
            name: sorted({each.first for each in groups} | {each.gone for each in groups if each.gone is not None})
            for name, groups in self._groups.items()
        }
        self._known: dict[tuple[str, int], tuple[dict[int, str], Counter[str]]] = {}

    def names(self) -> list[str]:
        """Of all facts."""
        return sorted(self._groups)

    def at(self, name: str, at: float) -> Mapping[int, str]:
        """Values by host; a host whose parts differ has all of theirs."""
        return self._at(name, at)[0]

    def counts(self, name: str, at: float) -> Counter[str]:
        """How many hosts have each value."""
        return self._at(name, at)[1]

    def _at(self, name: str, at: float) -> tuple[dict[int, str], Counter[str]]:
        key = (name, bisect_right(self._times[name], at))
        if key not in self._known:
            values: dict[int, str] = {}
            differ: dict[int, set[str]] = {}
            for each in self._groups[name]:
                if each.first <= at and (each.gone is None or at < each.gone):
                    for host in values.keys() & each.hosts:
                        differ.setdefault(host, {values[host]}).add(each.value)
                    values.update(dict.fromkeys(each.hosts, each.value))
            values |= {host: " + ".join(sorted(said)) for host, said in differ.items()}
            values = {host: value for host, value in values.items() if host in self._named}
            self._known[key] = (values, Counter(values.values()))
        return self._known[key]


def _tested(check: str, spans: Sequence[FindingSpan], values: _Values, seats: Seats) -> tuple[list[_Hit], int]:
    """Every value that some cases share, and how many tests that took; values that no case has count as tests too."""
    begins = sorted(each.first for each in spans)
    at = begins[len(begins) // 2]
    hosts = frozenset((each.host, "") for each in spans)
    hits: list[_Hit] = []
    tests = 0
    own = catalog.named(check).trait_names if check in _NAMES else ()
    for name in values.names() if len(hosts) >= LEAST else ():
        if any(fnmatchcase(name, pattern) for pattern in own):
            continue
        of = values.at(name, at)
        counts = values.counts(name, at)
        cases = frozenset(unit for unit in hosts if unit[0] in of)
        hit_counts = Counter(of[host] for host, _ in cases)
        found, count = _values_of(counts, hit_counts, len(cases))
        tests += count
        hits += [
            _Hit(factor=name, value=value, kind="", table=table, p=p, cases=cases, at=at) for value, table, p in found
        ]
    for kind, sitting in _sitting(spans, seats, at).items():
        of_parts, count = _tested_parts(kind, sitting, seats, at)
        hits += of_parts
        tests += count
    return hits, tests


def _tested_parts(
    kind: str, sitting: Mapping[Unit, tuple[str, str]], seats: Seats, at: float
) -> tuple[list[_Hit], int]:
    """Models of a kind of part, and lots, which are told apart by model."""
    models: Counter[tuple[str, str | None]] = Counter()
    lots: Counter[tuple[str, str | None]] = Counter()
    for group in seats.seat_groups(kind) if len(sitting) >= LEAST else ():
        if group.first <= at and (group.gone is None or at < group.gone):
            models[group.model, None] += group.count
            if group.lot:
                lots[group.model, group.lot] += group.count
    cases = frozenset(sitting)
    hits: list[_Hit] = []
    tests = 0
    for factor, counts, of in (
        ("model", models, [(model, None) for model, _ in sitting.values()]),
        ("lot", lots, [(model, lot) for model, lot in sitting.values() if lot]),
    ):
        found, count = _values_of(counts, Counter[tuple[str, str | None]](of), len(of))
        tests += count
        for (held, made), table, p in found:
            says = f"{held} {made or ''}".strip()
            hits.append(_Hit(factor=f"{kind} {factor}", value=says, kind=kind, table=table, p=p, cases=cases, at=at,
                             model=held, lot=made))  # fmt: skip
    return hits, tests


def _values_of(counts: Mapping[V, int], hits: Mapping[V, int], cases: int) -> tuple[list[tuple[V, Table, float]], int]:
    """Values that at least two cases share, each with its probability; and how many were worth a test."""
    total = sum(counts.values())
    worth = [value for value, number in counts.items() if number >= LEAST]
    if cases < LEAST or len(counts) < 2:
        return [], 0
    found = []
    for value in worth:
        if (number := hits.get(value, 0)) >= LEAST:
            table = Table(hits=number, cases=cases, having=counts[value], total=total)
            p = hypergeometric_tail(number, cases=cases, having=counts[value], total=total)
            found.append((value, table, p))
    return found, len(worth)


def _sitting(spans: Iterable[FindingSpan], seats: Seats, at: float) -> dict[str, dict[Unit, tuple[str, str]]]:
    """Parts that the Findings blame, or that hang on what they blame, with model and lot, by kind."""
    found: dict[str, dict[Unit, tuple[str, str]]] = {}
    for host, part in sorted({(each.host, each.part) for each in spans}):
        kind, _, key = part.partition(" ")
        places = [part, *([f"hca {key.partition('/')[0]}"] if kind == "hca_port" else [])]
        for candidates in (places, [f"cable {key}"]):
            seat = seats.seat_at(host, candidates, at)
            if seat is not None:
                place, model, lot = seat
                found.setdefault(place.partition(" ")[0], {})[host, place] = (model, lot)
    return found


class _Apart:
    """Whether one factor says more than another."""

    def __init__(self, values: _Values, seats: Seats, hosts: set[int]) -> None:
        self._values = values
        self._seats = seats
        self._hosts = {(host, "") for host in hosts}

    def given(self, one: _Hit, other: _Hit) -> float:
        """Probability of as many cases with one, if only the other one matters."""
        by_part = bool(one.kind) and one.kind == other.kind
        having, strata = self.members(one, by_part), self.members(other, by_part)
        if by_part:
            every = self._seats_of(one)
            cases = set(one.cases & other.cases) & every
        else:
            every = self._hosts
            cases = {(host, "") for host, _ in one.cases} & {(host, "") for host, _ in other.cases}
        tables = [
            Table(hits=len(cases & having & part), cases=len(cases & part), having=len(having & part), total=len(part))
            for part in (every & strata, every - strata)
            if part
        ]
        return stratified_tail(tables)

    def _seats_of(self, hit: _Hit) -> set[Unit]:
        return self._seats.seats_with(hit.kind, None, None, hit.at)

    def members(self, hit: _Hit, by_part: bool) -> set[Unit]:
        """Units that have the value of a hit."""
        if hit.kind:
            units = self._seats.seats_with(hit.kind, hit.model, hit.lot, hit.at)
            return units if by_part else {(host, "") for host, _ in units}
        return {(host, "") for host, value in self._values.at(hit.factor, hit.at).items() if value == hit.value}


def _told_apart(
    family: tuple[str, str], row: list[tuple[_Hit, float]], compare: _Apart, named: Mapping[int, Machine]
) -> list[Batch]:
    """The best one, those alike, then the best of those that stand by themselves, and so on."""
    left = sorted(row, key=lambda each: (each[0].p, each[0].factor, each[0].value))
    found = []
    while left:
        (best, q), *others = left
        alike, left = [], []
        for other, other_q in others:
            if compare.given(other, best) <= APART / len(row):
                left.append((other, other_q))
            elif compare.given(best, other) > APART / len(row):
                alike.append(f"{other.factor} {other.value}")
        members = compare.members(best, by_part=bool(best.kind))
        showing = sorted({named[host].name for host, _ in best.cases & members if host in named})
        found.append(
            Batch(
                check=family[0],
                cause=family[1],
                factor=best.factor,
                value=best.value,
                hits=best.table.hits,
                cases=best.table.cases,
                having=best.table.having,
                total=best.table.total,
                units=f"{best.kind}s" if best.kind else "hosts",
                p=best.p,
                q=q,
                alike=tuple(alike),
                hosts=tuple(showing[:MOST_NAMED]),
            )
        )
    return found


_NAMES = {check.name for check in catalog.CHECKS}
