"""Plan against view: Findings, one a story, and the work order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wholestack.finding import Finding, Status, finding, worst, worst_first
from wholestack.health.cabling.causes import (
    ABSENT,
    CONFLICT,
    DOWN,
    EXCHANGED,
    MISSING,
    NAMES,
    NOT_SEEN,
    PLAN,
    REDUCED,
    RENAMED,
    STRANGER,
    UNREADABLE,
)
from wholestack.health.cabling.components import Component, components
from wholestack.health.cabling.exchanged import Exchange, exchanges, put_back
from wholestack.health.cabling.matching import Unmatched, match
from wholestack.health.cabling.plan import Cable, Plan
from wholestack.health.cabling.seen import Port, Seen
from wholestack.health.cabling.stories import Ground, Move, Story, misplaced, state_line, unplanned
from wholestack.health.cabling.work_order import Row, rows_of
from wholestack.health.cleaning import printable
from wholestack.health.formats.ibnetdiscover import SPEEDS
from wholestack.health.names import fold
from wholestack.record import Record

MOST_LINES = 40
"""Of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Record):
    """What a view says of a plan."""

    SCHEMA: ClassVar[str] = "health-cabling/1"

    status: Status
    planned: int
    """Cables."""
    right: int
    """As planned."""
    unknown: int
    """That could not be looked at, or whose names could not be matched."""
    moves: int
    """Plugs to move, cables to plug in or take out, places to look at."""
    findings: tuple[Finding, ...]
    """Worst first."""
    work_order: tuple[Row, ...]
    """By rack and unit."""
    unmatched: tuple[Unmatched, ...]
    """Names of the plan."""
    notes: tuple[str, ...]


def judge_cabling(plan: Plan, seen: Seen, *, unreadable: Iterable[tuple[str, str]] = (), now: float) -> Judged:
    """Compare.

    Args:
        plan: Of the wiring.
        seen: All outputs.
        unreadable: Outputs that could not be read, and why.
        now: Seconds since the epoch.

    Raises:
        InputError: two ends of the plan are one port.
    """
    matched = match(plan, seen)
    exchanged = exchanges(matched, seen)
    matched = put_back(matched, exchanged)
    ground = Ground(plan, seen, matched)
    judge = _Judge(ground, exchanged)
    stories = judge.stories()
    findings = [_finding(story, ground, now) for story in stories]
    findings += [_unreadable(source, why, now) for source, why in unreadable]
    findings += [_unmatched(each, now) for each in matched.unmatched]
    if judge.right and not findings:
        line = f"{judge.right} of {len(plan.cables)} cables are as planned"
        findings.append(finding(printable(plan.name), PLAN, "ok", evidence=(line,), at=now))
    rows = rows_of(stories, ground)
    return Judged(
        status=worst(findings),
        planned=len(plan.cables),
        right=judge.right,
        unknown=len(judge.unknown),
        moves=len(rows),
        findings=tuple(worst_first(findings)),
        work_order=rows,
        unmatched=tuple(matched.unmatched),
        notes=tuple(_notes(ground)),
    )


class _Judge:
    """Sorts pieces in which plan and view differ."""

    def __init__(self, ground: Ground, exchanged: Sequence[Exchange]) -> None:
        self.ground = ground
        self.exchanged = exchanged
        self.seen, self.matched = ground.seen, ground.matched
        self.right = 0
        self.unknown: set[Cable] = set()
        self.renamed = self._renamings()
        self.alone: list[tuple[Port, Port]] = []
        self.strangers: dict[str, list[tuple[Port, Port]]] = {}

    def stories(self) -> list[Story]:
        stories = list(self._exchanges())
        differing = {cable for story in stories for cable in story.cables}
        for piece in components(self.matched.planned, self.seen.peers):
            differing.update(self.matched.cables[a] for a, _ in piece.links("plan"))
            stories += self._of(piece)
        stories += [*self._lone_cables(), *self._devices(), *self._conflicts()]
        right = {cable for cable in self.matched.cables.values() if cable not in differing}
        self.right = len(right)
        return [*stories, *self._reduced(right)]

    def _of(self, piece: Component[Port]) -> Iterator[Story]:
        planned, links = piece.links("plan"), piece.links("seen")
        if any(self._is_doubtful(port) for port in piece.ports):
            self.unknown.update(self.matched.cables[a] for a, _ in planned)
        elif not links:
            self.alone += planned
        elif planned:
            yield misplaced(piece, self.ground)
        else:
            [(a, b)] = links
            stranger = next((port for port in (a, b) if port[0] not in self.ground.ends_of), None)
            if stranger is None:
                yield unplanned(piece, self.ground)
            else:
                self.strangers.setdefault(stranger[0], []).append((a, b))

    def _is_doubtful(self, port: Port) -> bool:
        return port in self.matched.doubtful or port in self.seen.conflicts or port[0] in self.renamed

    def _renamings(self) -> dict[str, str]:
        """Devices of the plan that are not seen, where all their cables go to one device that is in no plan."""
        found: dict[str, str] = {}
        for device in self.matched.unseen:
            ports = self.ground.ends_of[device]
            there = [self.seen.peers.get(self.matched.planned[port]) for port in ports]
            others = {port[0] for port in there if port is not None}
            if len(others) == 1 and not others & set(self.ground.ends_of) and 2 * sum(map(bool, there)) > len(ports):
                found[device] = next(iter(others))
        return found

    def _lone_cables(self) -> Iterator[Story]:
        """Planned cables with a link at neither end: one Finding a device that is not there, else one a cable."""
        absent = self._absent()
        lost: list[Cable] = []
        for a, b in self.alone:
            cable = self.matched.cables[a]
            if a[0] in absent or b[0] in absent:
                continue
            if not (self.seen.is_asked(a) or self.seen.is_asked(b)):
                lost.append(cable)
                continue
            lines = tuple(line for line in (state_line(a, self.ground), state_line(b, self.ground)) if line)
            only = next((port for port in (a, b) if port[0] in self.matched.unseen), None)
            if only is not None:
                lines += (f"{self.ground.name(only[0])} is not seen at all: it may be off",)
            is_down = any(self.seen.state(port) for port in (a, b))
            yield Story(
                cause=DOWN if is_down else MISSING, cables=(cable,), evidence=lines, moves=self._mend(a, b, is_down)
            )
        for device, cables in absent.items():
            yield self._absent_story(device, cables)
        if lost:
            self.unknown.update(lost)
            devices = fold({end.device for cable in lost for end in cable.ends})
            lines = (f"{len(lost)} cables of {devices}", *map(str, lost))
            yield Story(cause=NOT_SEEN, cables=tuple(lost), evidence=lines, moves=())

    def _mend(self, a: Port, b: Port, is_down: bool) -> tuple[Move, ...]:
        first = a if self.seen.state(a) or not self.seen.state(b) else b
        other = b if first is a else a
        action = Move(action="look" if is_down else "plug in", at=first, other=other, cable=self.matched.cables[a])
        return (action,)

    def _absent(self) -> dict[str, list[Cable]]:
        """Devices of several cables of which none is seen, though the other end of one at least was looked at."""
        lone = {port for link in self.alone for port in link}
        found: dict[str, list[Cable]] = {}
        for device in self.matched.unseen:
            ports = self.ground.ends_of[device]
            if len(ports) > 1 and any(
                port in lone and self.seen.is_asked(self.matched.planned[port]) for port in ports
            ):
                found[device] = [self.matched.cables[port] for port in ports if port in lone]
        return found

    def _absent_story(self, device: str, cables: Sequence[Cable]) -> Story:
        ports = self.ground.ends_of[device]
        others = [self.matched.planned[port] for port in ports]
        asked = [port for port in others if self.seen.is_asked(port) and port not in self.seen.peers]
        name = self.ground.name(device)
        lines = [
            f"{name} is not seen; {len(asked)} of its {len(ports)} planned cables were looked at from the other end",
            *(line for line in (state_line(port, self.ground) for port in asked) if line),
        ]
        return Story(
            cause=ABSENT, cables=tuple(cables), evidence=tuple(lines), moves=(Move(action="look", at=ports[0]),),
            device=device,
        )  # fmt: skip

    def _exchanges(self) -> Iterator[Story]:
        for each in self.exchanged:
            ports = [self.ground.ends_of[device] for device in each.devices]
            cables = tuple(dict.fromkeys(self.matched.cables[port] for mine in ports for port in mine))
            moves = tuple(Move(action="look", at=mine[0]) for mine in ports)
            # The second now has the name that the plan gives to the place of the first, whose line is the first.
            yield Story(cause=EXCHANGED, cables=cables, evidence=each.evidence, moves=moves, device=each.devices[1])

    def _devices(self) -> Iterator[Story]:
        for device, other in self.renamed.items():
            ports = self.ground.ends_of[device]
            links = [(self.matched.planned[port], port) for port in ports]
            taken = sum(self.seen.peers.get(there, ("", ""))[0] == other for there, _ in links)
            name = self.seen.shown.get(other, other)
            line = f"{taken} of {len(ports)} cables of {self.ground.name(device)} go to {name}, which is in no plan"
            yield Story(cause=RENAMED, cables=(), evidence=(line,), moves=(), device=device)
        for device, links in self.strangers.items():
            lines = tuple(f"{self.ground.show(a)} goes to {self.ground.show(b)}" for a, b in links)
            yield Story(cause=STRANGER, cables=(), evidence=lines, moves=(), device=device)

    def _conflicts(self) -> Iterator[Story]:
        for port, said in self.seen.conflicts.items():
            if len(said) > 1:
                line = f"{self.ground.show(port)} goes to {' and to '.join(said[:4])}"
                yield Story(cause=CONFLICT, cables=(), evidence=(line,), moves=(), device=port[0])

    def _reduced(self, right: set[Cable]) -> Iterator[Story]:
        for port, cable in self.matched.cables.items():
            if cable in right and self.matched.ends[port] is cable.a:
                lines = [line for each in (port, self.matched.planned[port]) if (line := self._below(each, cable))]
                if lines:
                    yield Story(
                        cause=REDUCED, cables=(cable,), evidence=tuple(lines),
                        moves=(Move(action="look", at=port, other=self.matched.planned[port], cable=cable),),
                    )  # fmt: skip

    def _below(self, port: Port, cable: Cable) -> str:
        detail = self.seen.details.get(port)
        if detail is None:
            return ""
        speed, want = detail.speed.upper(), cable.speed.upper()
        is_slow = speed in SPEEDS and want in SPEEDS and SPEEDS.index(speed) < SPEEDS.index(want)
        is_narrow = bool(cable.width and detail.width) and _lanes(detail.width) < _lanes(cable.width)
        if not (is_slow or is_narrow or detail.could_be):
            return ""
        should = detail.could_be or f"should be {cable.width} {cable.speed}".rstrip()
        return f"{self.ground.show(port)} runs {detail.width} {detail.speed}: {should}"


def _lanes(width: str) -> int:
    digits = width.lower().rstrip("x")
    return int(digits) if digits.isdecimal() and len(digits) < 4 else 0


def _finding(story: Story, ground: Ground, now: float) -> Finding:
    cause = story.cause
    device = ground.name(story.device) if story.device else story.cables[0].a.device
    part = ", ".join(f"cable {each.a} - {each.b}" for each in story.cables[:2])
    if len(story.cables) > 2:
        part += f" and {len(story.cables) - 2} more"
    if story.device and story.cause.code != "cabling.unplanned":
        part = ""
    elif story.device:
        part = story.evidence[0].partition(";")[0]
    if cause is NOT_SEEN:
        device, part = "plan", ""
    more = len(story.evidence) - MOST_LINES
    lines = (*story.evidence[:MOST_LINES], *([f"and {more} more"] if more > 0 else []))
    evidence = tuple(printable(line) for line in lines)
    return cause.finding(printable(device), cause.code, part=printable(part), evidence=evidence, at=now)


def _unreadable(source: str, why: str, now: float) -> Finding:
    return UNREADABLE.finding(printable(source), UNREADABLE.code, evidence=(printable(why),), at=now)


def _unmatched(each: Unmatched, now: float) -> Finding:
    return NAMES.finding(printable(each.name), NAMES.code, evidence=(printable(each.why),), at=now)


def _notes(ground: Ground) -> Iterator[str]:
    count = ground.matched.without_domain
    if count:
        yield f"{count} device{'s' if count != 1 else ''} matched without the domain of the name"
    unseen: Mapping[str, str] = ground.matched.unseen
    if unseen:
        yield f"{len(unseen)} devices of the plan are named by no output: {fold(unseen.values())}"
