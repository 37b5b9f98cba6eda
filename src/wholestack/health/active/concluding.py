"""From what was seen of devices to Findings: which is wrong, which is slow, which could not be judged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from wholestack.claim import Claim, seal
from wholestack.finding import Finding, Skipped, Status, finding, worst, worst_first
from wholestack.health.active import causes
from wholestack.health.active.device import Device
from wholestack.health.active.pacing import Paced
from wholestack.health.active.records import DEVICES, DeviceOutcome, Round, WrongProduct
from wholestack.health.active.speed import MOST_SAMPLES
from wholestack.health.check import Cause, Symptom
from wholestack.health.claim_causes import COMPUTES, VALID_S, settled_by
from wholestack.health.diagnosis import CheckSymptom, to_findings
from wholestack.health.judging import Judgement
from wholestack.health.parts import Part
from wholestack.record import digest
from wholestack.runs import RunDirectory

MOST_NAMES = 8
"""Devices that the statement of the claim names."""
FAIL_SLOWER = 0.05
"""A device that is slower by so much holds up a job more than its absence would; below it is a warning."""


@dataclass(slots=True, kw_only=True)
class State:
    """What is known of one device so far."""

    device: Device
    side: int
    """Of a square product."""
    room: int
    """Bytes to fill."""
    busy: str | None
    """By what; empty where it is idle, ``None`` where that cannot be told."""
    works: bool
    """Whether it is probed at all, and goes on working."""
    gave_up: str = ""
    golden: list[WrongProduct] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    paces: list[Paced] = field(default_factory=list)
    became_busy: str | None = ""
    """The same once its pace was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What a probe came to."""

    judgement: Judgement
    outcomes: tuple[DeviceOutcome, ...]
    """A device each."""


def claim_on(host: str, devices: Sequence[tuple[Part, str, str]], *, sealed_at: float) -> Claim:
    """The claim on the devices of a host, sealed before the first of them is asked anything.

    Args:
        host: Its name.
        devices: Part, kind and serial number of each.
        sealed_at: Seconds since the epoch.
    """
    names = fold_parts([part.identity for part, _, _ in devices])
    what = "multiply right and keep what they are given, and none is shown to be slower than its like"
    return seal(
        COMPUTES,
        host,
        f"the devices of {host} ({names}) {what}; at most {VALID_S / 3600:g} h",
        quantity="digest of the devices' places, kinds and serial numbers",
        predicted=digest([(part.identity, kind, serial) for part, kind, serial in devices]),
        sealed_at=sealed_at,
        valid_until=sealed_at + VALID_S,
    )


def fold_parts(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return (", ".join(names[:MOST_NAMES]) or "none") + more


def conclude(
    states: Sequence[State], run: RunDirectory, claim: Claim, *, out_of_reach: str = "", at: float
) -> Conclusion:
    """Judge every device, settle the claim, and put outcomes and Findings on the disk.

    Args:
        states: A device each.
        run: Where to write.
        claim: Of :func:`claim_on`, sealed.
        out_of_reach: Why devices that are there were not probed; empty if all were.
        at: Seconds since the epoch.
    """
    host = claim.subject
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    outcomes = []
    for state in states:
        symptoms = list(_symptoms(state))
        blamed = {each.check for each in symptoms}
        for check in (causes.EXACT, causes.MEMORY):
            if state.works and check not in blamed:
                findings.append(
                    finding(host, check, "ok", part=str(state.device.part), evidence=(_done(state),), at=at)
                )
        compared = [each for each in state.paces if each.bound is not None]
        if compared and causes.PACE not in blamed:
            evidence = tuple(map(_pace_line, compared))
            findings.append(finding(host, causes.PACE, "ok", part=str(state.device.part), evidence=evidence, at=at))
        if state.works and not compared and state.busy == "" and causes.PACE not in blamed:
            detail = f"nothing to compare {state.device.kind} with: give --reference"
            skipped.append(Skipped(check=causes.PACE, reason="not_expected", detail=detail))
        findings += to_findings(host, symptoms, at=at)
        outcomes.append(_outcome(state, sound=not symptoms))
        run.append(DEVICES, outcomes[-1])
    if out_of_reach:
        beyond = Symptom(cause=causes.NOT_REACHED, evidence=(out_of_reach,))
        findings += to_findings(host, [CheckSymptom(check=causes.FREE, symptom=beyond)], at=at)
    findings = worst_first(settled_by(findings, worst(findings), claim))
    for each in findings:
        run.report(each)
    if not any(each.settles for each in findings):
        status: Status = "ok" if findings else "unknown"
        run.report(finding(host, COMPUTES, status, evidence=tuple(map(_done, states)), at=at, settles=claim.id))
    judgement = Judgement(status=worst(findings), findings=tuple(findings), skipped=tuple(dict.fromkeys(skipped)))
    return Conclusion(judgement=judgement, outcomes=tuple(outcomes))


def _symptoms(state: State) -> Iterator[CheckSymptom]:
    part = state.device.part

    def says(check: str, cause: Cause, *evidence: str, status: Status | None = None) -> CheckSymptom:
        return CheckSymptom(check=check, symptom=Symptom(cause=cause, evidence=evidence, part=part, status=status))

    if state.busy != "" and not state.works and not state.gave_up:
        yield _not_free(state.busy, says)
        return
    wrong = [*state.golden, *(each for round_ in state.rounds for each in round_.wrong)]
    sure = [each for each in wrong if not each.checksum_only]
    if sure:
        yield says(causes.EXACT, causes.WRONG_PRODUCT, *_wrong_lines(state, sure))
    elif wrong:
        yield says(causes.EXACT, causes.WRONG_CHECKSUM, f"{wrong[0].case}: {wrong[0].wrong_rows} rows")
    elif state.gave_up:
        yield says(causes.EXACT, causes.GAVE_UP, state.gave_up)
    elif not any(round_.complete for round_ in state.rounds):
        yield says(causes.EXACT, causes.TOO_LITTLE_TIME, _done(state))
    words = [word for round_ in state.rounds for word in round_.words]
    if words:
        total = sum(round_.wrong_words for round_ in state.rounds)
        yield says(causes.MEMORY, causes.WRONG_MEMORY, f"{total:,} wrong words", *map(str, words[:4]))
    elif not state.rounds and not state.gave_up:
        yield says(causes.MEMORY, causes.TOO_LITTLE_TIME, _done(state))
    yield from _pace_symptoms(state, says)


def _not_free(
    busy: str | None, says: Callable[..., CheckSymptom], *, check: str = causes.FREE, when: str = ""
) -> CheckSymptom:
    if busy is None:
        return says(check, causes.USERS_UNKNOWN, f"no answer to the question which processes use it{when}")
    return says(check, causes.BUSY, f"{busy}{when}")


def _pace_symptoms(state: State, says: Callable[..., CheckSymptom]) -> Iterator[CheckSymptom]:
    slow = [each for each in state.paces if each.verdict == "slow"]
    compared = [each for each in state.paces if each.bound is not None]
    if slow and state.became_busy != "":
        yield _not_free(state.became_busy, says, check=causes.PACE, when=", after its pace was measured")
    elif slow:
        corrections = state.device.corrections()
        cause = causes.SLOW_AFTER_REPAIR if corrections else causes.SLOW
        much = max(each.slower for each in slow) >= FAIL_SLOWER
        lines = (*map(_pace_line, slow), *corrections)
        yield says(causes.PACE, cause, *lines, status="fail" if much else "warn")
    elif cut_short := [each for each in compared if each.verdict == "open" and len(each.pace.rates) < MOST_SAMPLES]:
        yield says(causes.PACE, causes.UNDECIDED, *map(_pace_line, cut_short))
    elif state.works and state.busy == "" and not state.paces:
        yield says(causes.PACE, causes.TOO_LITTLE_TIME, "fewer samples than a pace needs")


def _wrong_lines(state: State, wrong: Sequence[WrongProduct]) -> Iterator[str]:
    count = len(state.golden) + sum(round_.wrong_products for round_ in state.rounds)
    patterns = sorted({each.case.pattern for each in wrong})
    yield f"{count:,} of {_products(state):,} products wrong; patterns: {', '.join(patterns)}"
    shapes = dict.fromkeys(each.shape for each in wrong if each.shape)
    yield from list(shapes)[:2]
    for each in wrong[:4]:
        known = ", differs from a value computed elsewhere" if each.golden else ""
        yield f"{each.case}: {each.wrong_rows} rows wrong{known}"
        yield from map(str, each.elements[:2])


def _pace_line(each: Paced) -> str:
    if each.bound is None:
        return f"{each.pace.measure}: not compared"
    way = f"{each.slower:.1%} below" if each.slower >= 0 else f"{-each.slower:.1%} above"
    decided = (
        f"decided with sample {each.decided_at}" if each.decided_at else "near the bound, not shown to be below it"
    )
    return f"{each.pace.measure}: {way} {each.bound.against}; {decided} of {len(each.pace.rates)}"


def _products(state: State) -> int:
    return sum(round_.products for round_ in state.rounds)


def _done(state: State) -> str:
    elements = sum(round_.elements for round_ in state.rounds)
    tested = sum(round_.tested_bytes for round_ in state.rounds)
    return (
        f"{len(state.rounds)} rounds, {_products(state):,} products of {elements:.3g} elements, "
        f"{tested / 1e9:.3g} GB of memory written and read"
    )


def _outcome(state: State, *, sound: bool) -> DeviceOutcome:
    return DeviceOutcome(
        part=state.device.part,
        kind=state.device.kind,
        serial=state.device.serial,
        busy=state.busy or "",
        gave_up=state.gave_up,
        corrections=state.device.corrections(),
        rounds=sum(round_.complete for round_ in state.rounds),
        products=_products(state),
        elements=sum(round_.elements for round_ in state.rounds),
        tested_bytes=sum(round_.tested_bytes for round_ in state.rounds),
        wrong_products=len(state.golden) + sum(round_.wrong_products for round_ in state.rounds),
        wrong_words=sum(round_.wrong_words for round_ in state.rounds),
        paces=tuple(each.pace for each in state.paces),
        sound=sound,
    )
