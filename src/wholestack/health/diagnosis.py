"""From symptoms to Findings: one physical fault is one Finding, whatever number of checks it shows in.

A symptom is taken into another one whose cause explains it, on the same part, on a part that holds it, or where it
blames only the host as a whole or a silent probe. Its evidence goes with it; the status is that of the one that
explains, which may be milder: hyper-threading turned off is a warning, the CPUs that are missing for it no failure.
"""

import heapq
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from wholestack.finding import WORST_FIRST, Finding, Status
from wholestack.health.check import Symptom
from wholestack.health.parts import HOST, fitting
from wholestack.health.telemetry import FIELD

MOST_EVIDENCE = 12
LONGEST_LINE = 400
MOST_SYMPTOMS = 2_000
"""Of one host: a hostile or broken one may claim a thousand GPUs; what is beyond is counted in one line."""
_LEFT = re.compile(r"(\d{1,9}) more symptoms on this host are not kept")
_MORE = re.compile(r"and (\d{1,9}) more lines")


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
    """Merge equals, then let each be taken in by the one that explains it; order is kept, evidence is cut."""
    merged = _merge_equals(seen)
    explanations = _Explanations(merged)
    heads = _settled([explanations.head(place) for place in range(len(merged))])
    groups: dict[int, list[CheckSymptom]] = {head: [merged[head]] for head in sorted(set(heads))}
    for place, head in enumerate(heads):
        if head != place:
            groups[head].append(merged[place])
    return [_with_evidence_of(group) for group in groups.values()]


def bounded(each: CheckSymptom) -> CheckSymptom:
    """The same with at most so many lines of evidence, and lines and names of a part of at most so many characters."""
    symptom = each.symptom
    evidence, part = _cut(symptom.evidence), fitting(symptom.part)
    if evidence == symptom.evidence and part is symptom.part:
        return each
    return replace(each, symptom=replace(symptom, evidence=evidence, part=part))


def not_too_many(symptoms: Sequence[CheckSymptom]) -> list[CheckSymptom]:
    """At most :data:`MOST_SYMPTOMS`, the worst, in their order; and one that counts the others."""
    before = [left for each in symptoms if (left := _left_out(each))]
    told = [each for each in symptoms if not _left_out(each)] if before else list(symptoms)
    left = sum(before) + max(0, len(told) - MOST_SYMPTOMS)
    if not left:
        return told
    by_rank = sorted(range(len(told)), key=lambda place: WORST_FIRST.index(told[place].status))
    more = Symptom(cause=FIELD, part=HOST, evidence=(f"{left} more symptoms on this host are not kept",))
    kept = [told[place] for place in sorted(by_rank[:MOST_SYMPTOMS])]
    return [*kept, CheckSymptom(check="telemetry.reading", symptom=more)]


def _left_out(each: CheckSymptom) -> int:
    """How many an earlier cut left out, where this is the symptom that says so."""
    said = _LEFT.fullmatch(each.symptom.evidence[0]) if each.check == "telemetry.reading" else None
    return int(said[1]) if said else 0


def to_findings(subject: str, symptoms: Iterable[CheckSymptom], *, at: float) -> list[Finding]:
    """Findings of one host."""
    return [
        each.symptom.cause.finding(
            subject,
            each.check,
            status=each.status,
            part=str(each.symptom.part),
            evidence=each.symptom.evidence,
            at=at,
        )
        for each in symptoms
    ]


def _merge_equals(seen: Iterable[CheckSymptom]) -> list[CheckSymptom]:
    by_key: dict[tuple[str, str], list[CheckSymptom]] = {}
    for each in map(bounded, seen):
        by_key.setdefault((each.symptom.cause.code, each.symptom.part.identity), []).append(each)
    return [_as_one(equals) for equals in by_key.values()]


def _as_one(equals: Sequence[CheckSymptom]) -> CheckSymptom:
    """The first one's check and part, the worst status, the evidence of all."""
    one = _with_evidence_of(equals)
    worst = min((each.status for each in equals), key=WORST_FIRST.index)
    return replace(one, symptom=replace(one.symptom, status=worst)) if worst != one.status else one


def _with_evidence_of(group: Sequence[CheckSymptom]) -> CheckSymptom:
    first = group[0]
    if len(group) == 1:
        return first
    evidence = _cut(line for each in group for line in each.symptom.evidence)
    return replace(first, symptom=replace(first.symptom, evidence=evidence))


class _Explanations:
    """Finds for every symptom those that explain it, by what they say they explain: no search over all."""

    def __init__(self, symptoms: Sequence[CheckSymptom]) -> None:
        self._symptoms = symptoms
        self._anywhere: dict[str, list[int]] = {}
        self._at_part: dict[tuple[str, str], list[int]] = {}
        codes = {each.symptom.cause.code for each in symptoms}
        for place, each in enumerate(symptoms):
            for explained in each.symptom.cause.explains:
                if explained.partition(" ")[0] in codes:
                    self._anywhere.setdefault(explained, []).append(place)
                    self._at_part.setdefault((explained, each.symptom.part.identity), []).append(place)

    def head(self, place: int) -> int:
        """The last one on the chain of explanations that begins here; of a circle the member seen first."""
        path = {place: None}  # in order, and quick to ask
        while True:
            above = self._above(place)
            first = next(above, None)
            if first is None:
                return place
            further = first if first not in path else next((each for each in above if each not in path), None)
            if further is None:
                passed = list(path)
                return min(passed[passed.index(first) :])
            path[further] = None
            place = further

    def _above(self, place: int) -> Iterator[int]:
        """Those that explain this one directly, in order."""
        cause, held = self._symptoms[place].symptom.cause, self._symptoms[place].symptom.part
        names = (cause.code, f"{cause.code} {held.key}")
        if held.kind in ("host", "probe"):
            lists = [self._anywhere.get(name, []) for name in names]
        else:
            holders = (held.identity, *held.within)
            lists = [self._at_part.get((name, holder), []) for name in names for holder in holders]
        return (each for each in heapq.merge(*filter(None, lists)) if each != place)


def _settled(heads: Sequence[int]) -> list[int]:
    """A head of another's chain may lie in a circle of its own: everybody goes to where that one ends."""

    def end(place: int) -> int:
        path = [place]
        while heads[path[-1]] not in path:
            path.append(heads[path[-1]])
        return min(path[path.index(heads[path[-1]]) :])

    return [end(place) for place in heads]


def _cut(evidence: Iterable[str]) -> tuple[str, ...]:
    """The first of the lines that differ, each cut; then how many more there were, with those cut before."""
    unique: dict[str, None] = {}
    left = 0
    for line in evidence:
        cut_before = _MORE.fullmatch(line)
        if cut_before is not None:
            left += int(cut_before[1])
        else:
            unique[line[:LONGEST_LINE]] = None
    left += max(0, len(unique) - MOST_EVIDENCE)
    shown = tuple(itertools.islice(unique, MOST_EVIDENCE))
    return (*shown, f"and {left} more lines") if left else shown
