"""From symptoms to Findings: one physical fault is one Finding, whatever number of checks it shows in.

A symptom is taken into another one whose cause explains it, on the same part, on a part that holds it, or where it
blames only the host as a whole or a silent probe. Its evidence goes with it; the status is that of the one that
explains, which may be milder: hyper-threading turned off is a warning, the CPUs that are missing for it no failure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wholestack.finding import WORST_FIRST, Finding, Status, finding
from wholestack.health.check import Symptom

MOST_EVIDENCE = 12
LONGEST_LINE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSymptom:
    """A symptom and the check that saw it."""

    check: str
    symptom: Symptom

    @property
    def status(self) -> Status:
        """Its own, else that of its cause."""
        return self.symptom.status or self.symptom.cause.status


def diagnose(seen: Iterable[CheckSymptom]) -> list[CheckSymptom]:
    """Merge equals, then let each be taken in by the one that explains it; order is kept."""
    merged = _merge_equals(seen)
    taken_in: dict[int, list[CheckSymptom]] = {id(each): [] for each in merged}
    heads = [_head(each, merged) for each in merged]
    for each, head in zip(merged, heads, strict=True):
        if head is not each:
            taken_in[id(head)].append(each)
    return [
        _with_evidence(each, [line for one in (each, *taken_in[id(each)]) for line in one.symptom.evidence])
        for each, head in zip(merged, heads, strict=True)
        if head is each
    ]


def to_findings(subject: str, symptoms: Iterable[CheckSymptom], *, at: float) -> list[Finding]:
    """Findings of one host."""
    return [
        finding(
            subject,
            each.check,
            each.status,
            part=str(each.symptom.part),
            evidence=each.symptom.evidence,
            cause=each.symptom.cause.says,
            owner=each.symptom.cause.owner,
            remedy=each.symptom.cause.remedy,
            at=at,
        )
        for each in symptoms
    ]


def _merge_equals(seen: Iterable[CheckSymptom]) -> list[CheckSymptom]:
    by_key: dict[tuple[str, str], CheckSymptom] = {}
    for each in seen:
        key = (each.symptom.cause.code, each.symptom.part.identity)
        known = by_key.get(key)
        by_key[key] = each if known is None else _merged(known, each)
    return list(by_key.values())


def _merged(known: CheckSymptom, other: CheckSymptom) -> CheckSymptom:
    """Both as one: the first one's check and part, the worse status."""
    worse = min(known.status, other.status, key=WORST_FIRST.index)
    both = _with_evidence(known, known.symptom.evidence + other.symptom.evidence)
    return replace(both, symptom=replace(both.symptom, status=worse)) if worse != known.status else both


def _head(each: CheckSymptom, all_of_them: Sequence[CheckSymptom]) -> CheckSymptom:
    """The last one on the chain of explanations that begins here; of a circle the member that was seen first."""
    path = [each]
    while True:
        above = [other for other in all_of_them if _explains(other, path[-1])]
        further = next((other for other in above if not any(other is passed for passed in path)), None)
        if further is not None:
            path.append(further)
        elif above:
            begin = next(index for index, passed in enumerate(path) if passed is above[0])
            circle = {id(passed) for passed in path[begin:]}
            return next(one for one in all_of_them if id(one) in circle)
        else:
            return path[-1]


def _explains(one: CheckSymptom, other: CheckSymptom) -> bool:
    holder, held = one.symptom.part, other.symptom.part
    code, explained = other.symptom.cause.code, one.symptom.cause.explains
    if one is other or not (code in explained or f"{code} {held.key}" in explained):
        return False
    return held.kind in ("host", "probe") or holder.identity == held.identity or holder.identity in held.within


def _with_evidence(each: CheckSymptom, evidence: Sequence[str]) -> CheckSymptom:
    unique = list(dict.fromkeys(line[:LONGEST_LINE] for line in evidence))
    left = len(unique) - MOST_EVIDENCE
    shown = unique if left <= 0 else [*unique[:MOST_EVIDENCE], f"and {left} more lines"]
    return replace(each, symptom=replace(each.symptom, evidence=tuple(shown)))
