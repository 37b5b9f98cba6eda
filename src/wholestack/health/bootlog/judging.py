"""Judge a boot: deviations grouped so that one fault is one Finding, without what a person accepted."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wholestack.finding import Finding, Status, finding, worst, worst_first
from wholestack.health.bootlog.acceptance import decided
from wholestack.health.bootlog.boots import Boot
from wholestack.health.bootlog.causes import (
    CHECKS,
    CRASH,
    MISSING_LINES,
    MISSING_UNKNOWN,
    OTHER_KERNEL,
    OTHER_ORDER,
    OTHER_VALUE,
    TOO_FEW,
    UNKNOWN_LINES,
)
from wholestack.health.bootlog.deviations import Comparison, Deviation, Kind
from wholestack.health.bootlog.expecting import FEWEST_BOOTS, FEWEST_FOR_VALUES, Expectations
from wholestack.health.bootlog.records import Acceptance
from wholestack.health.check import Cause
from wholestack.health.cleaning import printable
from wholestack.record import Record

MOST_EVIDENCE = 40
LONGEST_EVIDENCE = 400
LONGEST_PART = 80
NEAR_LINES = 2
"""Lines of other things that may stand between two of one fault."""
SPOKEN_LINES = 50
"""Lines within which the same speaker speaks of the same thing."""
BY_KIND: dict[Kind, str] = {
    "unknown": "bootlog.unknown",
    "missing": "bootlog.missing",
    "value": "bootlog.value",
    "order": "bootlog.order",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Record):
    """A deviation that a person decided may be; it is not ``ok``, and not a Finding."""

    kind: Kind
    line: str
    why: str
    by: str
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLine(Record):
    """One deviating line of a Finding."""

    finding: str
    """Its id."""
    kind: Kind
    line: str
    """The very line; of a missing one whose values vary, its wording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootJudgement(Record):
    """What is said of one boot."""

    SCHEMA: ClassVar[str] = ""

    status: Status
    findings: tuple[Finding, ...]
    """Worst first; with an ``ok`` for each of the checks that found nothing."""
    accepted: tuple[Accepted, ...]
    notes: tuple[str, ...]
    """What was judged, and what was not."""
    lines: tuple[JudgedLine, ...]
    """What each Finding rests on."""


def judge_boot(boot: Boot, expectations: Expectations, *, subject: str, now: float) -> BootJudgement:
    """Judge one boot.

    Args:
        boot: As it was read.
        expectations: Of its kind of host.
        subject: The host, or the file.
        now: Seconds since the epoch, for decisions that end.
    """
    compared = Comparison(boot, expectations)
    deviations, accepted, ended = _without_accepted(_deviations(compared, expectations), expectations, now)
    other_kernel = bool(boot.kernel and expectations.kernels and boot.kernel not in expectations.kernels)
    findings: list[Finding] = []
    lines: list[JudgedLine] = []
    if other_kernel:
        findings.append(_other_kernel(subject, boot, expectations, deviations, now))
        deviations = [each for each in deviations if each.kind in ("value", "order") or each.crash]
        deviations = [each for each in deviations if not each.line.startswith("Linux version ")]
    for group in _groups(deviations, compared):
        found = _as_finding(subject, group, ended, now)
        findings.append(found)
        lines += [JudgedLine(finding=found.id, kind=each.kind, line=each.line) for each in group]
    findings += _unjudged(subject, compared, expectations, now)
    spoken = {each.check for each in findings} | {BY_KIND[each.kind] for each in accepted}
    passed = [check for check in _put(expectations, other_kernel=other_kernel) if check not in spoken]
    findings += [finding(subject, check, "ok", evidence=(f"none of: {CHECKS[check]}",), at=now) for check in passed]
    return BootJudgement(
        status=worst(findings) if findings or not accepted else "ok",
        findings=tuple(worst_first(findings)),
        accepted=tuple(accepted),
        notes=tuple(_notes(boot, compared, expectations)),
        lines=tuple(lines),
    )


def _deviations(compared: Comparison, expectations: Expectations) -> list[Deviation]:
    found = compared.unknown()
    if expectations.boots >= FEWEST_BOOTS:
        found += compared.missing_and_values() + compared.order()
    return found


def _without_accepted(
    deviations: Iterable[Deviation], expectations: Expectations, now: float
) -> tuple[list[Deviation], list[Accepted], dict[str, Acceptance]]:
    """Those that speak, those that are accepted, and by line the decisions that have ended."""
    speaking: list[Deviation] = []
    accepted: list[Accepted] = []
    ended: dict[str, Acceptance] = {}
    for each in deviations:
        decision = decided(expectations.model.accepted, each) if expectations.model.accepted else None
        if decision is not None and decision.until > now:
            accepted.append(
                Accepted(
                    kind=each.kind, line=printable(each.line), why=decision.why, by=decision.by, until=decision.until
                )
            )
            continue
        if decision is not None:
            ended[each.line] = decision
        speaking.append(each)
    return speaking, accepted, ended


def _groups(deviations: Sequence[Deviation], compared: Comparison) -> list[list[Deviation]]:
    """Deviations of one fault together; each group begins with what names it best."""
    by_kind: dict[str, list[Deviation]] = {kind: [] for kind in BY_KIND}
    for each in deviations:
        by_kind[each.kind].append(each)
    unknown = _joined(sorted(by_kind["unknown"], key=_place), NEAR_LINES, (_wording, _address), _is_continued(compared))
    missing = _joined(sorted(by_kind["missing"], key=_place), NEAR_LINES, (_source, _address), _never)
    values = _joined(sorted(by_kind["value"], key=_place), NEAR_LINES, (_source, _wording, *_changes(2)), _never)
    order = _joined(sorted(by_kind["order"], key=_place), NEAR_LINES, (), _never)
    left = []
    for group in unknown:
        home = next((each for each in missing if _is_one_fault(group, each)), None)
        if home is None or any(each.crash for each in group):
            left.append(group)
        else:
            home += group
    return [*left, *missing, *values, *order]


def _joined(
    deviations: Sequence[Deviation],
    near: int,
    keys: Iterable[Callable[[Deviation], Hashable]],
    continues: Callable[[Deviation, Deviation], bool],
) -> list[list[Deviation]]:
    """Neighbours, and those that share a key; in order."""
    head = list(range(len(deviations)))

    def find(place: int) -> int:
        while head[place] != place:
            head[place] = head[head[place]]
            place = head[place]
        return place

    for place in range(1, len(deviations)):
        before, each = deviations[place - 1], deviations[place]
        if each.place - before.place <= near + 1 or continues(before, each):
            head[find(place)] = find(place - 1)
    for key in keys:
        first: dict[Hashable, int] = {}
        for place, each in enumerate(deviations):
            if (name := key(each)) and name in first:
                head[find(place)] = find(first[name])
            elif name:
                first[name] = place
    groups: dict[int, list[Deviation]] = {}
    for place, each in enumerate(deviations):
        groups.setdefault(find(place), []).append(each)
    return list(groups.values())


def _place(each: Deviation) -> float:
    return each.place


def _source(each: Deviation) -> Hashable:
    return each.source


def _wording(each: Deviation) -> Hashable:
    return each.wording


def _address(each: Deviation) -> Hashable:
    return each.address


def _changes(most: int) -> list[Callable[[Deviation], Hashable]]:
    """The same change of value in several lines is one change: 64 CPUs that are 63 now are counted everywhere."""
    return [lambda each, at=at: each.values[at] if at < len(each.values) else None for at in range(most)]  # type: ignore[misc]


def _never(_: Deviation, __: Deviation) -> bool:
    return False


def _is_continued(compared: Comparison) -> Callable[[Deviation, Deviation], bool]:
    """Lines of a stack trace, and of one speaker who goes on speaking, belong together."""

    def continues(before: Deviation, each: Deviation) -> bool:
        if each.place - before.place > SPOKEN_LINES:
            return False
        return each.source == before.source or (compared.is_trace(each) and (compared.is_trace(before) or before.crash))

    return continues


def _is_one_fault(unknown: Sequence[Deviation], missing: Sequence[Deviation]) -> bool:
    """The same speaker says something unknown instead, or it is of the same device."""
    sources = {each.source for each in missing}
    addresses = {each.address for each in missing} - {""}
    return any(each.source in sources or each.address in addresses for each in unknown)


def _as_finding(subject: str, deviations: Sequence[Deviation], ended: dict[str, Acceptance], now: float) -> Finding:
    first = next((each for each in deviations if each.crash), deviations[0])
    cause, check = _cause_of(deviations, first), BY_KIND[first.kind]
    lines = [line for each in deviations for line in each.evidence]
    said = [f"{len(deviations)} lines; {first.support}" if len(deviations) > 1 else first.support]
    said += [_ended(decision) for each in deviations if (decision := ended.get(each.line)) is not None][:1]
    return _finding(subject, check, cause, part=_part(deviations, first), evidence=[*said, *lines], now=now)


def _part(deviations: Sequence[Deviation], first: Deviation) -> str:
    """The device, if all lines are about one; else what names the fault best, the wording of its first line."""
    addresses = {each.address for each in deviations}
    return f"pci {first.address}" if first.address and len(addresses) == 1 else f"line {first.wording}"


def _cause_of(deviations: Sequence[Deviation], first: Deviation) -> Cause:
    if any(each.crash for each in deviations):
        return CRASH
    if first.kind == "missing":
        known = [each for each in deviations if each.kind == "missing"]
        return MISSING_UNKNOWN if all(each.lost for each in known) else MISSING_LINES
    return {"unknown": UNKNOWN_LINES, "value": OTHER_VALUE, "order": OTHER_ORDER}[first.kind]


def _ended(decision: Acceptance) -> str:
    return f"accepted by {decision.by} ({decision.why}): that has ended"


def _finding(subject: str, check: str, cause: Cause, *, part: str, evidence: Sequence[str], now: float) -> Finding:
    shown = [printable(line)[:LONGEST_EVIDENCE] for line in dict.fromkeys(evidence)]
    if len(shown) > MOST_EVIDENCE:
        shown = [*shown[:MOST_EVIDENCE], f"and {len(shown) - MOST_EVIDENCE} more lines"]
    return cause.finding(subject, check, part=printable(part)[:LONGEST_PART], evidence=shown, at=now)


def _other_kernel(
    subject: str, boot: Boot, expectations: Expectations, deviations: Sequence[Deviation], now: float
) -> Finding:
    unknown = [each.line for each in deviations if each.kind == "unknown"]
    missing = [each.line for each in deviations if each.kind == "missing"]
    known = ", ".join(sorted(expectations.kernels))
    evidence = [
        f"kernel {boot.kernel}; learnt from {known[:200]}",
        f"{len(unknown)} unknown and {len(missing)} missing lines are not judged",
        *unknown[:5],
    ]
    return _finding(subject, "bootlog.reading", OTHER_KERNEL, part="kernel", evidence=evidence, now=now)


def _unjudged(subject: str, compared: Comparison, expectations: Expectations, now: float) -> list[Finding]:
    """What could not be looked at, whatever the boot was like."""
    found = []
    boots = expectations.boots
    if boots < FEWEST_FOR_VALUES:
        count = f"learnt from {boots} whole boot{'s' if boots != 1 else ''}"
        can = "whether lines are familiar" + (" or missing" if boots >= FEWEST_BOOTS else "")
        cannot = "values and order" if boots >= FEWEST_BOOTS else "what is always there, its values and its order"
        evidence = [f"{count}: it can be told {can}, not {cannot}"]
        found.append(_finding(subject, "bootlog.reading", TOO_FEW, part="model", evidence=evidence, now=now))
    if compared.suppressed:
        evidence_lines = ["lines were dropped, so unknown ones may have been among them", *compared.suppressed[:5]]
        found.append(
            _finding(subject, "bootlog.reading", MISSING_UNKNOWN, part="suppressed", evidence=evidence_lines, now=now)
        )
    if compared.cut:
        said = ["the last line is cut"]
        found.append(_finding(subject, "bootlog.reading", MISSING_UNKNOWN, part="end", evidence=said, now=now))
    return found


def _put(expectations: Expectations, *, other_kernel: bool) -> list[str]:
    """Checks that could be put."""
    put = ["bootlog.unknown"] if not other_kernel else []
    put += ["bootlog.missing"] if expectations.boots >= FEWEST_BOOTS and not other_kernel else []
    return [*put, *(["bootlog.value", "bootlog.order"] if expectations.boots >= FEWEST_FOR_VALUES else [])]


def _notes(boot: Boot, compared: Comparison, expectations: Expectations) -> list[str]:
    model = expectations.model
    notes = [
        f"{len(boot.messages)} lines ({boot.format}), {compared.familiar} familiar; "
        f"learnt from {len(model.boots)} boots of {len({each.host for each in model.boots})} hosts"
    ]
    if boot.later:
        notes.append(f"{boot.later} lines after the first {model.window_s:g} s are not of the boot")
    if boot.others:
        notes.append(f"{boot.others} lines of other programs than the kernel are not judged")
    if boot.jumps:
        notes.append(f"the clock jumped {len(boot.jumps)} times, first before: {printable(boot.jumps[0])[:100]}")
    if boot.full:
        notes.append("more lines than a boot can have: only the first are judged")
    if expectations.only_parts:
        notes.append("no boot that was learnt is whole: lines at its ends may be missing in the model")
    return notes
