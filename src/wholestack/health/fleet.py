"""Compare hosts of one kind with each other: traits with the majority, measures with the bulk.

Only hosts of one kind are compared. Hosts whose kind nobody stated are told apart by their hardware
(:data:`HARDWARE`): a login node is no broken GPU host.

**Traits** (should be equal): a host stands alone only against a clear majority, :data:`CLEAR_MAJORITY` of at least
:data:`FEWEST_VOTERS` hosts; else nothing is said, so a half-finished upgrade or a tie is no fault. Traits that the
profile states are judged against it alone. Where a trait normally differs from part to part of a host, each part is
compared with its namesakes.

**Measures** (should be about equal): an outlier test with a bound on false alarms
(:mod:`wholestack.health.outliers`), :data:`ALPHA` for all measures, kinds and sides of a sweep together. A part among
four or more alike on its host is compared with its neighbours first, since load and cold aisles move all of them; hosts
are compared by their medians. Where physics bounds what healthy parts can differ by (``Measure.certain``), a part
beyond that is named too, unless more than :data:`FEW_SHARE` of its host's are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wholestack.finding import Status
from wholestack.health.check import Cause, Expectation, Scalar, Symptom
from wholestack.health.diagnosis import CheckSymptom
from wholestack.health.outliers import FEWEST, Standing, standing_out
from wholestack.health.parts import HOST, Part
from wholestack.health.result import HostResult, SeenTrait
from wholestack.remote.host import DEFAULT_KIND

ALPHA = 0.01
"""Bound on the chance that a sweep names any healthy host or part as an outlier, kept for tails as heavy as a Student t
with 3 degrees of freedom; for lighter ones it is far lower (docs/benchmarks/fleet.md). It is a warning, never a reason
not to train."""
FEWEST_VOTERS = 4
CLEAR_MAJORITY = 0.75
FEWEST_HOSTS = 8
"""Hosts without which measures are not compared."""
NEIGHBOURS = 4
"""Parts alike on one host from which on they are compared with each other."""
FEW_SHARE = 0.25
"""Of a host's parts, at most so many (and at least one) can be certain to stand out: half of them are a second state,
for instance a job that has just begun on them."""
HARDWARE = ("host.product", "gpu.name", "cpu.model")

Side = Literal["high", "low"]
Causes = Mapping[str, tuple[Cause, str]]
"""By code: the cause, and the name of the check that says it."""
_Row = tuple[HostResult, tuple[float, ...], tuple[int, ...]]
"""A host, its values of one measure, and the places of their parts."""
Found = Iterator[tuple[str, CheckSymptom]]
"""Name of the host, and what it shows beside others."""


def compare(
    results: Sequence[HostResult],
    expectations: Mapping[str, Expectation],
    causes: Causes,
    *,
    alpha: float = ALPHA,
) -> dict[str, list[CheckSymptom]]:
    """What hosts show beside others of their kind, by host.

    Args:
        results: Of all hosts of the sweep.
        expectations: By kind; traits in it are not compared here.
        causes: Those that a symptom can have; what names another one was seen by another version and is left out.
        alpha: Chance that any measure of a healthy fleet is named.
    """
    found: dict[str, list[CheckSymptom]] = defaultdict(list)
    groups = alike(results)
    tests: list[_Test] = []
    for kind, members in groups.items():
        stated = expectations.get(members[0].kind, Expectation()).traits
        for host, symptom in _odd_traits(members, stated, causes, kind):
            found[host].append(symptom)
        tests += _tests(members, kind)
    for test in tests:
        for host, symptom in test.put(alpha / len(tests), causes):
            found[host].append(symptom)
    return dict(found)


def alike(results: Iterable[HostResult]) -> dict[str, list[HostResult]]:
    """Hosts by kind; those of the default kind by their hardware.

    A host that does not say all of its hardware belongs to the largest group that agrees with what it does say.
    """
    groups: dict[str, list[HostResult]] = defaultdict(list)
    by_hardware: dict[tuple[str, ...], list[HostResult]] = defaultdict(list)
    for each in results:
        if each.kind != DEFAULT_KIND:
            groups[each.kind].append(each)
        elif each.traits or each.measures:
            by_hardware[_hardware(each)].append(each)
    for key, members in by_hardware.items():
        fitting = [other for other in by_hardware if _says_more(other, key)]
        home = max(fitting, key=lambda other: len(by_hardware[other]), default=key)
        name = " ".join(filter(None, home)) or DEFAULT_KIND
        groups[name].extend(members)
    return dict(groups)


def _says_more(other: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Whether ``other`` agrees with ``key`` in all that it says and says more."""
    agrees = all(mine in ("", its) for mine, its in zip(key, other, strict=True))
    return agrees and sum(map(bool, other)) > sum(map(bool, key))


def _hardware(result: HostResult) -> tuple[str, ...]:
    values = {name: {str(trait.value) for trait in result.traits if trait.name == name} for name in HARDWARE}
    return tuple("+".join(sorted(values[name])) for name in HARDWARE)


# Traits


def _odd_traits(members: Sequence[HostResult], stated: Mapping[str, Scalar], causes: Causes, kind: str) -> Found:
    if len(members) < FEWEST_VOTERS:
        return
    by_name: dict[str, dict[str, list[SeenTrait]]] = defaultdict(lambda: defaultdict(list))
    for member in members:
        for trait in member.traits:
            if trait.drifts and trait.name not in stated and trait.cause in causes:
                by_name[trait.name][member.host].append(trait)
    parts = {member.host: member.parts for member in members}
    for name, by_host in by_name.items():
        mixed = sum(len(traits) > 1 for traits in by_host.values())
        split = _by_part(by_host, parts) if 2 * mixed > len(by_host) else [by_host]
        for voters in split:
            yield from _against_majority(name, voters, parts, causes, kind)


def _by_part(
    by_host: Mapping[str, list[SeenTrait]], parts: Mapping[str, tuple[Part, ...]]
) -> list[dict[str, list[SeenTrait]]]:
    """One ballot for each part that several hosts have under the same name."""
    ballots: dict[str, dict[str, list[SeenTrait]]] = defaultdict(lambda: defaultdict(list))
    for host, traits in by_host.items():
        for trait in traits:
            for number in trait.parts:
                alone = SeenTrait(name=trait.name, value=trait.value, cause=trait.cause, parts=(number,))
                ballots[parts[host][number].identity][host].append(alone)
    return list(ballots.values())


def _against_majority(
    name: str,
    by_host: Mapping[str, list[SeenTrait]],
    parts: Mapping[str, tuple[Part, ...]],
    causes: Causes,
    kind: str,
) -> Found:
    votes = Counter(max(traits, key=lambda trait: len(trait.parts)).value for traits in by_host.values())
    usual, count = votes.most_common(1)[0]
    if len(by_host) < FEWEST_VOTERS or count < CLEAR_MAJORITY * len(by_host):
        return
    beside = f"{count} of {len(by_host)} hosts of kind {kind} have {usual}"
    for host, traits in by_host.items():
        for trait in traits:
            if trait.value != usual:
                cause, check = causes[trait.cause]
                whole_host = len(traits) == 1 and len(trait.parts) > 1
                odd = [HOST] if whole_host else [parts[host][number] for number in trait.parts]
                where = f" on all {len(trait.parts)} parts" if whole_host else ""
                for part in odd:
                    evidence = (f"{name} is {trait.value}{where}; {beside}",)
                    yield host, CheckSymptom(check=check, symptom=Symptom(cause=cause, part=part, evidence=evidence))


# Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One number to be compared."""

    host: str
    part: Part
    value: float
    """As compared: against the host's other parts, or as it is."""
    says: str
    """As evidence has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """One family of numbers that should be about the same."""

    name: str
    kind: str
    side: Side
    cause: str
    least: float
    readings: tuple[_Reading, ...]
    against: str
    """What it is compared with."""
    certain: float | None = None
    """See :class:`~wholestack.health.check.Measure`."""

    def put(self, alpha: float, causes: Causes) -> Found:
        sign = 1.0 if self.side == "high" else -1.0
        values = sign * np.array([reading.value for reading in self.readings])
        standing = standing_out(values, alpha=alpha, least=self.least)
        if self.cause not in causes:
            return
        cause, check = causes[self.cause]
        said = {place: self._beside(standing, sign) for place in standing.members} if standing is not None else {}
        for place in self._certainly(values):
            said.setdefault(place, f"{self.against}: {_short(values[place])} beyond what is usual for its place")
        for place, beside in said.items():
            reading = self.readings[place]
            evidence = (reading.says, beside)
            # A number that stands out is a reason to look, never by itself one to take a host away.
            status: Status | None = "warn" if cause.status == "fail" else None
            symptom = Symptom(cause=cause, part=reading.part, evidence=evidence, status=status)
            yield reading.host, CheckSymptom(check=check, symptom=symptom)

    def _certainly(self, values: NDArray[np.float64]) -> Iterator[int]:
        """Places of readings that need no statistics."""
        if self.certain is None:
            return
        beyond = np.flatnonzero(values >= self.certain)
        parts = Counter(reading.host for reading in self.readings)
        of_host = Counter(self.readings[place].host for place in beyond)
        for place in beyond:
            host = self.readings[place].host
            if of_host[host] <= max(1, FEW_SHARE * parts[host]):
                yield int(place)

    def _beside(self, standing: Standing, sign: float) -> str:
        others = len(self.readings) - len(standing.members)
        return (
            f"{self.against}: median {_short(sign * standing.median)}, the {self.side}est of {others} others"
            f" {_short(sign * standing.boundary)}; chance among healthy ones below {max(standing.chance, 1e-12):.0e}"
        )


def _tests(members: Sequence[HostResult], kind: str) -> list[_Test]:
    by_measure: dict[tuple[str, str, str, float, float | None], list[_Row]] = defaultdict(list)
    for member in members:
        for seen in member.measures:
            key = (seen.name, seen.cause, seen.bad, seen.least, seen.certain)
            by_measure[key].append((member, seen.values, seen.parts))
    tests: list[_Test] = []
    for (name, cause, bad, least, certain), rows in by_measure.items():
        if len(rows) < FEWEST_HOSTS:
            continue
        sides: tuple[Side, ...] = ("high", "low") if bad == "both" else ("low",) if bad == "low" else ("high",)
        several = median([len(values) for _, values, _ in rows]) >= NEIGHBOURS
        for side in sides:
            hosts = tuple(_middle(name, row) if several else _worst(name, side, row) for row in rows)
            test = _Test(
                name=name,
                kind=kind,
                side=side,
                cause=cause,
                least=least,
                readings=hosts,
                against=f"over hosts of kind {kind}",
            )
            families = [test]
            if several:
                against = f"beside neighbours, over hosts of kind {kind}"
                beside = tuple(_beside_neighbours(name, rows))
                families.append(replace(test, readings=beside, against=against, certain=certain))
            tests += [each for each in families if len(each.readings) >= FEWEST]
    return tests


def _middle(name: str, row: _Row) -> _Reading:
    """A host by the median of its parts."""
    member, values, _ = row
    middle = median(values)
    says = f"{name}: median of {len(values)} parts {_short(middle)}"
    return _Reading(host=member.host, part=HOST, value=middle, says=says)


def _worst(name: str, side: Side, row: _Row) -> _Reading:
    """A host by the worst of its few parts."""
    member, values, parts = row
    value = max(values) if side == "high" else min(values)
    place = values.index(value)
    return _Reading(host=member.host, part=member.parts[parts[place]], value=value, says=f"{name} is {_short(value)}")


def _beside_neighbours(name: str, rows: Sequence[_Row]) -> Iterator[_Reading]:
    """Every part less its host's median, and less what is usual for its place on the host."""
    by_place: dict[str, list[float]] = defaultdict(list)
    for member, values, parts in rows:
        if len(values) >= NEIGHBOURS:
            middle = median(values)
            for number, value in zip(parts, values, strict=True):
                by_place[member.parts[number].identity].append(value - middle)
    usual = {place: median(all_of) for place, all_of in by_place.items() if len(all_of) >= FEWEST_HOSTS}
    for member, values, parts in rows:
        if len(values) >= NEIGHBOURS:
            middle = median(values)
            for number, value in zip(parts, values, strict=True):
                part = member.parts[number]
                says = f"{name} is {_short(value)}, median of its {len(values)} neighbours {_short(middle)}"
                beside = value - middle - usual.get(part.identity, 0.0)
                yield _Reading(host=member.host, part=part, value=beside, says=says)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
