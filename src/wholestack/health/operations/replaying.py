"""What a rule would have done, on the recorded events of a history: when, on which hosts, and how often wrongly.

A would-be drain begins with the sweep that makes the rule hold on a part of a host and lasts until none of the sweeps
that the rule looks back at shows it any more. It was **wrong** if a person returned the host to work meanwhile, or if
what was seen went away within ``soon_h`` hours and nobody did anything about the host; it is **open** while neither
can be told; else it was right. What a silence would have vetoed is counted apart: no rule outranks a person. A drain,
fix or exchanged part near it counts as right, whoever began it: whether it would have gone without that is not known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN
from wholestack.health.history.describing import stamp
from wholestack.health.history.rates import share_interval
from wholestack.health.history.silences import Silence, silenced_by
from wholestack.health.history.spans import Event, FindingSpan, Sweeps, Timeline
from wholestack.health.history.store import History
from wholestack.health.operations.draining import Wanted, host_stories
from wholestack.health.operations.rules import Rule
from wholestack.record import Record

REPLAYED = "rule_replayed"
"""Kind of the event that allows a rule to drain; its subject is the rule's hash."""
MOST_SHOWN = 40
DEEDS = (
    "fix_begun", "fix_ended", "drain_ended", "undrain_ended", "part_replaced", "part_moved", "reinstalled", "displaced",
)  # fmt: skip
"""Kinds of event that may be why a fault went away."""
Verdict = Literal["right", "wrong", "open", "vetoed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldBe(Record):
    """One drain that the rule would have begun."""

    host: str
    at: float
    """Seconds since the epoch: the sweep that made the rule hold."""
    until: float | None
    """The sweep that no longer showed it; ``None``: it is still there."""
    part: str
    cause: str
    finding: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Record):
    """A rule, replayed."""

    SCHEMA: ClassVar[str] = "health-replay/1"

    rule: Rule
    hash: str
    since: float
    """The first sweep of the history."""
    last: float
    sweeps: int
    hosts: int
    drains: tuple[WouldBe, ...]
    """In the order in which they would have begun."""
    judged: int
    """Of them, those that are right or wrong."""
    wrong: int
    low: float
    """Of the share that is wrong, with a level of 95 %."""
    high: float

    @property
    def exit_code(self) -> int:
        """0 never wrong; 1 wrong at least once; 3 nothing to judge it by."""
        if not self.judged:
            return EXIT_UNKNOWN
        return EXIT_FINDINGS if self.wrong else EXIT_OK


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A stretch of looks in which a rule held on one part of one machine."""

    host: int
    at: float
    until: float | None
    span: FindingSpan
    """The one that made it hold."""


def replay(history: History, rule: Rule) -> Replay:
    """Replay a rule on all that a history knows.

    Raises:
        InputError: there is no sweep in it.
    """
    sweeps = history.sweeps()
    machines = {each.id: each.name for each in history.machines()}
    if not sweeps.count:
        raise InputError(f"{history.path}: no sweep in it", remedy="wholestack health history add SWEEP")
    events: dict[int, list[Event]] = {}
    for event in history.events():
        events.setdefault(event.host, []).append(event)
    silences = history.silences()
    drains = []
    for held in _by_host(_held(history.findings(), rule, sweeps)):
        verdict, why = _verdict(held, rule, events.get(held.host, ()), silences, sweeps.last)
        drains.append(
            WouldBe(
                host=machines[held.host],
                at=held.at,
                until=held.until,
                part=held.span.part,
                cause=held.span.cause,
                finding=held.span.id,
                verdict=verdict,
                why=why,
            )
        )
    judged = sum(each.verdict in ("right", "wrong") for each in drains)
    wrong = sum(each.verdict == "wrong" for each in drains)
    low, high = share_interval(wrong, judged) if judged else (0.0, 1.0)
    return Replay(
        rule=rule,
        hash=rule.hash,
        since=min(times[0] for times in sweeps.times.values()),
        last=sweeps.last,
        sweeps=sweeps.count,
        hosts=len(machines),
        drains=tuple(drains),
        judged=judged,
        wrong=wrong,
        low=low,
        high=high,
    )


def write_down(history: History, found: Replay, *, by: str, at: float) -> None:
    """Let the rule drain: that it was replayed, with what result, by whom."""
    says = f"{found.rule.name}: {len(found.drains)} drains, {found.wrong} of {found.judged} wrong"
    history.tell(Event(at=at, host=0, kind=REPLAYED, subject=found.hash, says=says, by=by, why=found.rule.name))


def refuse_unreplayed(history: History, rule: Rule) -> None:
    """A rule may drain only where it was replayed, as it is.

    Raises:
        InputError: it was not, or was changed since.
    """
    told = [event for event in history.events() if event.kind == REPLAYED]
    if any(event.subject == rule.hash for event in told):
        return
    was = "was changed since it was replayed" if any(event.why == rule.name for event in told) else "was not replayed"
    raise InputError(f"rule {rule.name!r} {was} on {history.path}", remedy="wholestack health replay RULE")


def wanted_by(history: History, rule: Rule, *, now: float) -> list[Wanted]:
    """Hosts on which a rule holds in their latest sweep, that one not being too old to go by.

    Raises:
        InputError: see :func:`refuse_unreplayed`.
    """
    refuse_unreplayed(history, rule)
    sweeps = history.sweeps()
    machines = {each.id: each.name for each in history.machines() if each.is_named}
    wanted = []
    for held in _by_host(_held(history.findings(), rule, sweeps)):
        line = sweeps.of(held.host)
        if held.until is not None or held.host not in machines or line.is_stale(now) or not _is_seen_last(held.span):
            continue
        told = host_stories(history, held.host, now=now)
        story = next((each for each in reversed(told) if held.span.id in each.findings and each.gone is None), None)
        if story is not None:
            wanted.append(Wanted(host=machines[held.host], story=story, told_by_name=False))
    return wanted


def _is_seen_last(span: FindingSpan) -> bool:
    """Whether the latest look showed it: one that could not look shows nothing."""
    return span.gone is None and span.seen is None


def _held(spans: Iterable[FindingSpan], rule: Rule, sweeps: Sweeps) -> Iterator[_Held]:
    """Every stretch, part by part."""
    by_part: dict[tuple[int, str], list[FindingSpan]] = {}
    for span in spans:
        if rule.means(span):
            by_part.setdefault((span.host, span.part), []).append(span)
    for (host, _), own in by_part.items():
        yield from _of_part(host, own, rule, sweeps.of(host))


def _of_part(host: int, spans: Sequence[FindingSpan], rule: Rule, line: Timeline) -> Iterator[_Held]:
    """Looks are counted by their place in the line; a span is a run of them, so only its first ones are walked."""
    runs = _runs(spans, line)
    held: _Held | None = None
    free = 0
    """First look from which a new stretch may begin."""
    for number, (begin, end, span) in enumerate(runs):
        if held is not None and begin >= free:
            yield held
            held = None
        if held is None:
            start = _first_holding(runs[max(0, number - rule.of) : number + 1], rule)
            if start is None:
                continue
            held = _Held(host=host, at=line.times[start], until=None, span=span)
        free = end + rule.of
        over = end < len(line.times)
        held = _Held(host=host, at=held.at, until=line.times[end] if over else None, span=held.span if over else span)
    if held is not None:
        yield held


def _runs(spans: Sequence[FindingSpan], line: Timeline) -> list[tuple[int, int, FindingSpan]]:
    """Of each span the first look that shows it and the first after it that does not; what overlaps is one run."""
    runs: list[tuple[int, int, FindingSpan]] = []
    for span in sorted(spans, key=lambda each: each.first):
        begin = bisect_left(line.times, span.first)
        ends = [bisect_left(line.times, span.gone)] if span.gone is not None else []
        ends += [bisect_right(line.times, span.seen)] if span.seen is not None else []
        end = min(ends, default=len(line.times))
        if runs and begin <= runs[-1][1]:
            before = runs.pop()
            begin, end = before[0], max(before[1], end)
        if end > begin:
            runs.append((begin, end, span))
    return runs


def _first_holding(runs: Sequence[tuple[int, int, FindingSpan]], rule: Rule) -> int | None:
    """The first look of the last run at which enough of the last looks showed it."""
    begin, end, _ = runs[-1]
    for look in range(begin, min(end, begin + rule.seen)):
        since = look + 1 - rule.of
        seen = sum(max(0, min(until, look + 1) - max(start, since)) for start, until, _ in runs)
        if seen >= rule.seen:
            return look
    return None


def _by_host(held: Iterable[_Held]) -> list[_Held]:
    """A host is drained once, however many of its parts give reason to."""
    merged: list[_Held] = []
    latest: dict[int, int] = {}
    for each in sorted(held, key=lambda one: (one.at, one.host, one.span.part)):
        place = latest.get(each.host)
        if place is not None and (merged[place].until is None or each.at < (merged[place].until or 0.0)):
            before = merged[place]
            until = None if before.until is None or each.until is None else max(before.until, each.until)
            span = each.span if each.until is None and before.until is not None else before.span
            merged[place] = _Held(host=before.host, at=before.at, until=until, span=span)
        else:
            latest[each.host] = len(merged)
            merged.append(each)
    return merged


def _verdict(
    held: _Held, rule: Rule, events: Sequence[Event], silences: Sequence[Silence], last: float
) -> tuple[Verdict, str]:
    silence = silenced_by(held.span, silences, held.at)
    if silence is not None:
        return "vetoed", f"{silence.by} had silenced it: {silence.reason}"
    until = held.until if held.until is not None else last
    after = [event for event in events if held.at <= event.at <= until + 3600 * rule.soon_h]
    returned = next((event for event in after if event.kind == "undrained_by_person"), None)
    if returned is not None:
        return "wrong", f"a person returned the host to work {stamp(returned.at)}"
    if held.until is not None and held.until - held.at <= 3600 * rule.soon_h:
        deed = next((e for e in events if e.kind in DEEDS and held.span.first <= e.at <= held.until), None)
        if deed is None:
            return "wrong", f"gone by itself after {(held.until - held.at) / 3600:.1f} h"
        return "right", f"gone after {deed.kind.replace('_', ' ')} {stamp(deed.at)}"
    if held.until is None and last - held.at <= 3600 * rule.soon_h:
        return "open", "still there, not yet for long"
    return "right", f"still there after {rule.soon_h:g} h"


_WORDS: Mapping[Verdict, str] = {"right": "right", "wrong": "WRONG", "open": "open", "vetoed": "vetoed"}


def describe_replay(found: Replay, *, everything: bool = False) -> str:
    """For a terminal: what was wrong first, then the latest."""
    rule = found.rule
    lines = [
        f"{rule.name}: drain on {rule.check} ({rule.cause}, {' or '.join(rule.statuses)}) seen in {rule.seen} of"
        f" {rule.of} sweeps",
        f"replayed on {found.sweeps:,} sweeps of {found.hosts:,} hosts, {stamp(found.since)} to {stamp(found.last)}",
        f"{len(found.drains)} drains; {found.wrong} of {found.judged} wrong"
        + (f" ({found.low:.0%} to {found.high:.0%}, 95 %)" if found.judged else ": nothing to judge it by"),
    ]
    rows = sorted(found.drains, key=lambda each: (each.verdict != "wrong", -each.at))
    shown = rows if everything else rows[:MOST_SHOWN]
    for each in shown:
        part = f", {each.part}" if each.part not in ("", "host") else ""
        lines.append(f"{_WORDS[each.verdict]:6} {stamp(each.at)} {each.host}{part}: {each.cause}; {each.why}")
    if len(shown) < len(rows):
        lines.append(f"and {len(rows) - len(shown)} more (--all, --json)")
    return "\n".join(lines)
