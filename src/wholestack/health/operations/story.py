"""One physical fault is one story, from first sight to repair. Pure: spans and events in, stories and next steps out.

A story is a chain of Findings of one part of one machine: the same serial number, else the same place, without a break
longer than :data:`REJOIN_S`; one that was repaired and proved is over, and what is seen after it is a repeat. What was
done is read from the events, of which :data:`TRANSITIONS` is the whole table: ``X_begun`` was written down before
something happened, ``X_ended`` or ``X_failed`` after it, so a story whose last word is ``X_begun`` (or ``X_unknown``:
the connection broke) goes on with X.

A person's word outranks the tool: a silence that means the Finding, part or host is a veto on every step until it ends,
and a host that a person returned to work is theirs until the fault is gone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from wholestack.finding import WORST_FIRST, Status
from wholestack.health.history.silences import Silence, silenced_by
from wholestack.health.history.spans import Event, FindingSpan
from wholestack.record import Record, digest

REJOIN_S = 24 * 3600.0
"""A fault that is back within this was never gone."""
FIX_BUDGET = 2
"""Fixes begun in one story, whether they ended or not."""
REPEAT_WINDOW_S = 30 * 86400.0
REPEATS = 3
"""The third story of a host within the window in which something had to be done is not fixed again: hardware return."""

WRONG = "the check no longer sees it, but a probe found the device wrong: hand it over (health ticket)"

Doing = Literal["", "drain", "fix", "undrain"]
Action = Literal["drain", "fix", "prove", "undrain", "hand_over", "wait", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Record):
    """What was done in a story, as its events say."""

    doing: Doing = ""
    """Begun, and no end is written down: it was interrupted, or is going on now."""
    is_drained: bool = False
    fixes: int = 0
    """Begun."""
    proved: bool | None = None
    """What the check said after the last fix; ``None``: it was not asked, or there was no fix."""
    since: float | None = None
    """When the first thing was done."""
    is_wrong: bool = False
    """A probe after the last fix found the device wrong, though the check no longer sees anything."""
    tried: float | None = None
    """When the last fix was begun."""
    returned: float | None = None
    """When it was over: proved, and the host back at work if it was drained."""
    by_person: bool = False
    """A person took the drain away."""


def _over(done: Done, at: float) -> Done:
    return replace(done, doing="", is_drained=False, returned=at)


def _proved(done: Done, at: float) -> Done:
    return replace(done, proved=True, is_wrong=False, returned=None if done.is_drained else at)


TRANSITIONS: Mapping[str, Callable[[Done, float], Done]] = {
    "drain_begun": lambda done, at: replace(done, doing="drain"),
    "drain_ended": lambda done, at: replace(done, doing="", is_drained=True, by_person=False, returned=None),
    "drain_failed": lambda done, at: replace(done, doing=""),
    "fix_begun": lambda done, at: replace(done, doing="fix", fixes=done.fixes + 1, proved=None, tried=at),
    "fix_unknown": lambda done, at: done,
    "fix_ended": lambda done, at: replace(done, doing=""),
    "fix_failed": lambda done, at: replace(done, doing="", proved=False),
    "proof_held": _proved,
    "proof_broken": lambda done, at: replace(done, proved=False),
    "probe_broken": lambda done, at: replace(done, proved=False, is_wrong=True),
    "proof_unknown": lambda done, at: done,
    "undrain_begun": lambda done, at: replace(done, doing="undrain"),
    "undrain_ended": _over,
    "undrain_failed": lambda done, at: replace(done, doing=""),
    "undrained_by_person": lambda done, at: replace(done, doing="", is_drained=False, by_person=True),
}
"""What each kind of event makes of what was done before; other kinds are no business of a story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultStory(Record):
    """One fault of one machine."""

    id: str
    """Hash of machine, place and first sight: the subject of its events."""
    host: int
    part: str
    serial: str
    findings: tuple[str, ...]
    """Ids, in the order in which they were first seen."""
    finding: str
    """Id. This and what follows: of the worst Finding that is there, else of the latest."""
    check: str
    cause: str
    owner: str
    status: Status
    first: float
    gone: float | None
    """When the last of its Findings was no longer seen; ``None`` while one is."""
    done: Done = field(default_factory=Done)
    repeat: int = 1
    """Which story of its host within the window it is, among those in which something was done, and itself."""
    veto: str = ""
    """Who does not want it touched, until when and why; empty if nobody said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Record):
    """What comes next in a story."""

    action: Action
    why: str


def stories(
    spans: Iterable[FindingSpan], events: Iterable[Event], silences: Sequence[Silence] = (), *, now: float
) -> list[FaultStory]:
    """All stories, in the order in which they began.

    Args:
        spans: In the order in which they began, of any machines.
        events: In order.
        silences: All.
        now: Seconds since the epoch.
    """
    by_story: dict[str, list[Event]] = {}
    for event in events:
        if event.kind in TRANSITIONS:
            by_story.setdefault(event.subject, []).append(event)
    chains = _Chains(by_story)
    for span in spans:
        chains.add(span)
    told = [_told(chain, chains.done[key], silences, now) for key, chain in chains.chains.items()]
    by_host: dict[int, list[FaultStory]] = {}
    for story in told:
        by_host.setdefault(story.host, []).append(story)
    return [replace(story, repeat=_repeat(story, by_host[story.host])) for story in told]


def next_step(story: FaultStory, *, fixable: bool) -> Step:
    """What comes next.

    Args:
        story: Of :func:`stories`.
        fixable: Whether there is a fix for its cause.
    """
    done = story.done
    if story.veto:
        return Step(action="wait", why=story.veto)
    if done.by_person and story.gone is None:
        return Step(action="wait", why="a person returned the host to work; it is theirs until the fault is gone")
    if done.doing:
        why = f"the {done.doing} was begun and nobody knows how it ended; the command looks first"
        return Step(action=done.doing, why=why)
    if done.returned is not None:
        return Step(action="nothing", why="repaired, proved, at work")
    if done.is_wrong:
        return Step(action="hand_over", why=WRONG)
    if story.gone is not None or done.proved:
        why = "the check no longer sees it"
        return Step(action="undrain", why=why) if done.is_drained else Step(action="nothing", why=why)
    if done.fixes and done.proved is None:
        return Step(action="prove", why="a fix was applied, the check was not asked since")
    if story.status == "fail" and not done.is_drained:
        return Step(action="drain", why="no job should start there")
    return _remedy(story, fixable=fixable)


def refusal_to_fix(story: FaultStory) -> str:
    """Why a fix must not be begun in a story; empty if nothing is against it."""
    if story.veto:
        return story.veto
    if story.done.is_wrong:
        return WRONG
    if story.repeat >= REPEATS:
        days = REPEAT_WINDOW_S / 86400
        return f"number {story.repeat} on this host in {days:g} days: hardware return, not another fix (health ticket)"
    if story.done.fixes >= FIX_BUDGET:
        return f"{story.done.fixes} fixes were begun and it is still there: hand it over (health ticket)"
    return ""


def _remedy(story: FaultStory, *, fixable: bool) -> Step:
    done = story.done
    refused = refusal_to_fix(story)
    if refused or not fixable:
        return Step(action="hand_over", why=refused or f"no fix is known: {story.owner or 'somebody'} acts")
    return Step(action="fix", why=f"a remedy is known; try {done.fixes + 1} of {FIX_BUDGET}")


class _Chains:
    """Sorts spans into chains; a chain knows what was done in it as soon as its first span gives it its id."""

    def __init__(self, events: Mapping[str, Sequence[Event]]) -> None:
        self._events = events
        self.chains: dict[str, list[FindingSpan]] = {}
        self.done: dict[str, Done] = {}
        self._latest: dict[tuple[int, str], str] = {}
        """By machine and serial number, or machine and place."""

    def add(self, span: FindingSpan) -> None:
        place = _place(span)
        key = self._latest.get((span.host, span.serial)) if span.serial else None
        key = key or self._latest.get((span.host, place))
        if key is None or not self._goes_on(key, span):
            key = digest("story", span.host, place, span.first, span.serial)
            self.chains[key] = []
            self.done[key] = _done(self._events.get(key, ()))
        self.chains[key].append(span)
        self._latest[(span.host, place)] = key
        if span.serial:
            self._latest[(span.host, span.serial)] = key

    def _goes_on(self, key: str, span: FindingSpan) -> bool:
        chain, done = self.chains[key], self.done[key]
        serials = {each.serial for each in chain if each.serial}
        if span.serial and serials and span.serial not in serials:
            return False  # another part in the same place
        if done.returned is not None and span.first >= done.returned:
            return False
        ends = [each.gone for each in chain]
        return any(end is None or span.first - end <= REJOIN_S for end in ends)


def _place(span: FindingSpan) -> str:
    """The part; of what is said of the host as a whole, which of its sides: clock and kernel break separately."""
    return span.part if span.part not in ("", "host") else f"host {span.check.partition('.')[0]}"


def _done(events: Iterable[Event]) -> Done:
    done = Done()
    for event in events:
        done = TRANSITIONS[event.kind](done, event.at)
        if done.since is None:
            done = replace(done, since=event.at)
    return done


def _told(chain: Sequence[FindingSpan], done: Done, silences: Sequence[Silence], now: float) -> FaultStory:
    there = [each for each in chain if each.gone is None]
    worst = min(reversed(there or chain[-1:]), key=lambda each: WORST_FIRST.index(each.status))
    first = chain[0]
    return FaultStory(
        id=digest("story", first.host, _place(first), first.first, first.serial),
        host=first.host,
        part=worst.part,
        serial=next((each.serial for each in reversed(chain) if each.serial), ""),
        findings=tuple(dict.fromkeys(each.id for each in chain)),
        finding=worst.id,
        check=worst.check,
        cause=worst.cause,
        owner=worst.owner,
        status=worst.status,
        first=first.first,
        gone=None if there else max(each.gone or 0.0 for each in chain),
        done=done,
        veto=_veto(there, silences, now),
    )


def _veto(there: Iterable[FindingSpan], silences: Sequence[Silence], now: float) -> str:
    found = [silent for each in there if (silent := silenced_by(each, silences, now)) is not None]
    if not found:
        return ""
    last = max(found, key=lambda silent: silent.end)
    return f"{last.by} said no (silence {last.id}: {last.reason})"


def _repeat(story: FaultStory, of_host: Iterable[FaultStory]) -> int:
    before = [
        each
        for each in of_host
        if each.id != story.id and each.done.since is not None
        and each.first <= story.first and story.first - each.first <= REPEAT_WINDOW_S
    ]  # fmt: skip
    return len(before) + 1
