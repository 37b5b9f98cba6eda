"""What a sweep keeps of one host: one line of its journal, small enough to hold thousands in memory.

Parts are listed once and referred to by their place in that list; causes by their code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.finding import Skipped, Status
from wholestack.health.check import Before, Cause, Counter, Scalar, Symptom
from wholestack.health.cleaning import is_number, printable
from wholestack.health.connection import CHECK, POWER, cause_of, power_line
from wholestack.health.diagnosis import CheckSymptom, bounded, not_too_many
from wholestack.health.examine import Examination
from wholestack.health.parts import Part, fitting
from wholestack.health.telemetry import FIELD, LOST
from wholestack.record import Record
from wholestack.remote.batch import Reply, Trouble

LONGEST_NAME = 200
MOST_IDENTITIES = 1_000
"""Of one host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSymptom(Record):
    """A symptom, small."""

    check: str
    cause: str
    """Code."""
    part: int
    """Place in ``HostResult.parts``."""
    evidence: tuple[str, ...]
    status: Status | None = None
    """Another than the cause's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTrait(Record):
    """One value of a trait and the parts that have it."""

    name: str
    value: Scalar
    cause: str
    """Code of what it means if it differs."""
    parts: tuple[int, ...]
    drifts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMeasure(Record):
    """One measure of all parts that have it."""

    name: str
    cause: str
    """Code of what it means if it stands out."""
    parts: tuple[int, ...]
    values: tuple[float, ...]
    bad: Literal["high", "low", "both"] = "both"
    least: float = 0.0
    certain: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenIdentity(Record):
    """Which one a part is."""

    part: int
    """Place in ``HostResult.parts``."""
    serial: str
    model: str = ""
    lot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResult(Record):
    """What one host said, by itself."""

    SCHEMA: ClassVar[str] = "health-result/1"

    host: str
    kind: str
    at: float
    """Seconds since the epoch, by the host's clock where it said."""
    seconds: float
    """Wall time of the round trip."""
    attempts: int
    """Connections tried."""
    trouble: Trouble | None = None
    """Why not everything arrived, if so."""
    boot_id: str = ""
    """Of the running kernel; empty if it did not say."""
    parts: tuple[Part, ...] = ()
    symptoms: tuple[SeenSymptom, ...] = ()
    traits: tuple[SeenTrait, ...] = ()
    measures: tuple[SeenMeasure, ...] = ()
    identities: tuple[SeenIdentity, ...] = ()
    passed: tuple[str, ...] = ()
    """Checks that applied, could be read and saw nothing."""
    skipped: tuple[Skipped, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Checks that could not be put: what they read was lost, cut, hung or garbled."""
    after: Before | None = None
    """Counters, for the next sweep; of a host that did not answer, those of the last one."""

    def __post_init__(self) -> None:
        """Refuse a damaged line: places that are in no list, and measures without as many values as parts."""
        places = [each.part for each in self.symptoms] + [each.part for each in self.identities]
        places += [part for many in (self.traits, self.measures) for each in many for part in each.parts]
        for place in places:
            if not 0 <= place < len(self.parts):
                raise ValueError(f"part {place} of host {self.host!r} is not among its {len(self.parts)}")
        for each in self.measures:
            if len(each.parts) != len(each.values):
                raise ValueError(f"measure {each.name!r} has {len(each.values)} values for {len(each.parts)} parts")


def result_of(reply: Reply, found: Examination, checks: Iterable[str], *, now: float) -> HostResult:
    """Make the small from the large; what is not a number, or steers a terminal, stays behind.

    Args:
        reply: What came from the host.
        found: What the checks say of it.
        checks: Names of those that were put.
        now: Seconds since the epoch, where the host gave no time.
    """
    parts, after = _Parts(), _clean_before(found.after)
    judged = {*found.passed, *(each.check for each in found.symptoms), *(each.check for each in found.skipped)}
    symptoms = [*found.symptoms, *_not_numbers(found)]
    if reply.trouble is not None:
        symptoms = [_lost(reply, symptoms), *(each for each in symptoms if each.symptom.cause.code != LOST.code)]
    symptoms = not_too_many([bounded(each) for each in symptoms])
    return HostResult(
        host=reply.host.name,
        kind=reply.host.kind,
        at=found.at if is_number(found.at) else now,
        seconds=reply.seconds,
        attempts=reply.attempts,
        trouble=reply.trouble,
        boot_id=printable(found.boot_id)[:LONGEST_NAME],
        symptoms=tuple(_seen_symptom(each, parts) for each in symptoms),
        traits=_seen_traits(found, parts),
        measures=_seen_measures(found, parts),
        identities=_seen_identities(found, parts),
        passed=found.passed,
        skipped=tuple(_clean_skipped(each) for each in found.skipped),
        unjudged=tuple(name for name in checks if name not in judged),
        after=after,
        parts=parts.all(),
    )


def silent_result(reply: Reply, checks: Iterable[str], *, before: Before | None = None, now: float) -> HostResult:
    """Of a host from which nothing came; what was known of it stays known."""
    parts = _Parts()
    lost = _seen_symptom(_lost(reply, ()), parts)
    return HostResult(
        host=reply.host.name,
        kind=reply.host.kind,
        at=now,
        seconds=reply.seconds,
        attempts=reply.attempts,
        trouble=reply.trouble or "lost",
        symptoms=(lost,),
        unjudged=tuple(checks),
        after=_clean_before(before),
        parts=parts.all(),
    )


def symptoms_of(result: HostResult, causes: Mapping[str, Cause]) -> list[CheckSymptom]:
    """The symptoms again, large.

    Args:
        result: Of one host.
        causes: By code; a symptom whose cause is not among them was seen by another version and is left out.
    """
    return [
        CheckSymptom(
            check=each.check,
            symptom=Symptom(
                cause=causes[each.cause], part=result.parts[each.part], evidence=each.evidence, status=each.status
            ),
        )
        for each in result.symptoms
        if each.cause in causes
    ]


class _Parts:
    """Numbers parts in the order in which they are first named."""

    def __init__(self) -> None:
        self._numbers: dict[Part, int] = {}

    def number(self, part: Part) -> int:
        return self._numbers.setdefault(part, len(self._numbers))

    def all(self) -> tuple[Part, ...]:
        return tuple(_clean_part(part) for part in self._numbers)


def _lost(reply: Reply, symptoms: Iterable[CheckSymptom]) -> CheckSymptom:
    """One symptom for a connection, whatever number of probes it took with it."""
    trouble = reply.trouble or "lost"
    attempts = f"{reply.attempts} attempt{'s' if reply.attempts != 1 else ''}"
    evidence = [f"{trouble}: {reply.detail or 'no word from it'} ({attempts}, {reply.seconds:.1f} s)"]
    missing = [each.symptom.part.key for each in symptoms if each.symptom.cause.code == LOST.code]
    power = reply.outputs.get(POWER.name)
    if power is not None:
        evidence.append(power_line(power))
    elif missing:
        evidence.append(f"arrived before that: {len(reply.outputs) - len(missing)} of {len(reply.outputs)} outputs")
        evidence.append(f"missing: {', '.join(missing)}")
    return CheckSymptom(check=CHECK, symptom=Symptom(cause=cause_of(trouble, power), evidence=tuple(evidence)))


def _not_numbers(found: Examination) -> list[CheckSymptom]:
    """Measures that are not finite: a reading that is none."""
    return [
        CheckSymptom(
            check="telemetry.reading",
            symptom=Symptom(cause=FIELD, part=each.part, evidence=(f"{each.name} is {each.value}",)),
        )
        for each in found.measures
        if not is_number(each.value)
    ]


def _seen_symptom(each: CheckSymptom, parts: _Parts) -> SeenSymptom:
    return SeenSymptom(
        check=each.check,
        cause=each.symptom.cause.code,
        part=parts.number(each.symptom.part),
        evidence=tuple(printable(line) for line in each.symptom.evidence),
        status=each.symptom.status,
    )


def _seen_traits(found: Examination, parts: _Parts) -> tuple[SeenTrait, ...]:
    grouped: dict[tuple[str, str, bool, str, Scalar], list[int]] = {}
    for each in found.traits:
        value = printable(each.value)[:LONGEST_NAME] if isinstance(each.value, str) else each.value
        if isinstance(value, str) or is_number(value):
            # True == 1 == 1.0 in Python: the kind of value is part of what tells two apart.
            key = (each.name, each.differs.code, each.drifts, type(value).__name__, value)
            grouped.setdefault(key, []).append(parts.number(each.part))
    return tuple(
        SeenTrait(name=name, value=value, cause=cause, drifts=drifts, parts=tuple(members))
        for (name, cause, drifts, _, value), members in grouped.items()
    )


def _seen_measures(found: Examination, parts: _Parts) -> tuple[SeenMeasure, ...]:
    grouped: dict[
        tuple[str, str, Literal["high", "low", "both"], float, float | None], tuple[list[int], list[float]]
    ] = {}
    for each in found.measures:
        if is_number(each.value):
            key = (each.name, each.outlies.code, each.bad, each.least, each.certain)
            numbers, values = grouped.setdefault(key, ([], []))
            numbers.append(parts.number(each.part))
            values.append(float(each.value))
    return tuple(
        SeenMeasure(
            name=name,
            cause=cause,
            bad=bad,
            least=least,
            certain=certain,
            parts=tuple(numbers),
            values=tuple(values),
        )
        for (name, cause, bad, least, certain), (numbers, values) in grouped.items()
    )


def _seen_identities(found: Examination, parts: _Parts) -> tuple[SeenIdentity, ...]:
    """Without those that give no serial number; the last word on a part counts."""
    known = {
        parts.number(each.part): SeenIdentity(
            part=parts.number(each.part),
            serial=printable(each.serial.strip())[:LONGEST_NAME],
            model=printable(each.model.strip())[:LONGEST_NAME],
            lot=printable(each.lot.strip())[:LONGEST_NAME],
        )
        for each in found.identities[:MOST_IDENTITIES]
        if each.serial.strip()
    }
    return tuple(known.values())


def _clean_part(part: Part) -> Part:
    part = fitting(part)
    return Part(
        kind=part.kind,
        key=printable(part.key),
        label=printable(part.label),
        within=tuple(printable(each) for each in part.within),
    )


def _clean_skipped(each: Skipped) -> Skipped:
    return Skipped(check=each.check, reason=each.reason, detail=printable(each.detail)[:LONGEST_NAME])


def _clean_before(after: Before | None) -> Before | None:
    if after is None or not is_number(after.at):
        return None
    kept = tuple(
        Counter(name=each.name, value=each.value, part=printable(each.part)[:LONGEST_NAME])
        for each in after.counters
        if is_number(each.value)
    )
    older = tuple(look for each in after.older if (look := _clean_before(each)) is not None)
    return Before(at=after.at, boot_id=printable(after.boot_id)[:LONGEST_NAME], counters=kept, older=older)
