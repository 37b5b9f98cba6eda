"""One difference, one story: what happened, and the fewest moves that mend it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wholestack.health.cabling.causes import (
    DISPLACED,
    RING,
    SHIFTED,
    SWAPPED,
    UNPLANNED,
    WRONG_DEVICE,
    WRONG_PORT,
    WRONG_RAIL,
)
from wholestack.health.cabling.components import Component
from wholestack.health.cabling.matching import Matched
from wholestack.health.cabling.plan import Cable, Plan
from wholestack.health.cabling.seen import Port, Seen
from wholestack.health.check import Cause

Action = Literal["move", "plug in", "take out", "look"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one pair of hands does."""

    action: Action
    at: Port
    """Where the plug is, or where to look."""
    to: Port | None = None
    """Where it goes."""
    other: Port | None = None
    """The other end of the cable, which stays."""
    cable: Cable | None = None
    """That it is by the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What a Finding tells."""

    cause: Cause
    cables: tuple[Cable, ...]
    """Planned ones that are concerned."""
    evidence: tuple[str, ...]
    moves: tuple[Move, ...]
    device: str = ""
    """Key of the device that it is about, where it is about one."""


class Ground:
    """Where everything is: racks, rails, names for a person."""

    def __init__(self, plan: Plan, seen: Seen, matched: Matched) -> None:
        self.seen = seen
        self.matched = matched
        self._places: dict[str, tuple[str, str]] = {}
        self._rails: dict[str, set[str]] = {}
        self.ends_of: dict[str, list[Port]] = {}
        for port, end in matched.ends.items():
            place = plan.places.get(end.device.casefold())
            if place is not None:
                self._places[port[0]] = place
            if matched.cables[port].rail:
                self._rails.setdefault(port[0], set()).add(matched.cables[port].rail)
            self.ends_of.setdefault(port[0], []).append(port)

    def place(self, port: Port) -> tuple[str, str]:
        """Rack and unit; empty where the plan does not say."""
        return self._places.get(port[0], ("", ""))

    def rail(self, port: Port) -> str:
        """Of the cable planned there; else of the device, where all its cables are of one."""
        if port in self.matched.cables:
            return self.matched.cables[port].rail
        rails = self._rails.get(port[0], set())
        return next(iter(rails)) if len(rails) == 1 else ""

    def show(self, port: Port) -> str:
        """As the plan writes it; as it is seen where it is in no plan."""
        return str(self.matched.ends[port]) if port in self.matched.ends else self.seen.show(port)

    def name(self, device: str) -> str:
        """Of a device, for a person."""
        ports = self.ends_of.get(device)
        return self.matched.ends[ports[0]].device if ports else self.seen.shown.get(device, device)


def misplaced(piece: Component[Port], ground: Ground) -> Story:
    """The story of a piece with at least one planned and one seen link."""
    planned, links = piece.links("plan"), piece.links("seen")
    cables = tuple(ground.matched.cables[port] for port, _ in planned)
    moves = min(_ways(piece, ground), key=lambda way: _walking(way, ground))
    rails = [(ground.rail(a), ground.rail(b)) for a, b in links]
    crossing = sorted({rail for pair in rails if all(pair) and pair[0] != pair[1] for rail in pair})
    evidence = [_link_line(a, b, ground) for a, b in links]
    if crossing:
        evidence.append(f"crosses rails {', '.join(crossing)}")
    for a, b in planned:
        if not piece.is_ring and (a not in ground.seen.peers or b not in ground.seen.peers):
            evidence.append(
                f"planned {ground.show(a)} - {ground.show(b)}: {state_line(a, ground) or state_line(b, ground)}"
            )
    cause = _cause(piece, moves, bool(crossing))
    return Story(cause=cause, cables=cables, evidence=tuple(evidence), moves=moves)


def _cause(piece: Component[Port], moves: Sequence[Move], is_crossing: bool) -> Cause:
    planned, links = len(piece.links("plan")), len(piece.links("seen"))
    if piece.is_ring:
        return SWAPPED if planned == 2 else RING
    if links == 1 and is_crossing:
        return WRONG_RAIL
    if links == 1 and planned == 2:
        return DISPLACED
    if links == 1:
        [move] = moves
        return WRONG_PORT if move.to is not None and move.at[0] == move.to[0] else WRONG_DEVICE
    return SHIFTED


def _ways(piece: Component[Port], ground: Ground) -> list[tuple[Move, ...]]:
    """Each seen link is taken for the planned one before it, or each for the one behind it."""
    planned, links = piece.links("plan"), piece.links("seen")
    if piece.is_ring:
        # Walked from the first planned link: before the first seen link comes the first planned one.
        return [_moves(planned, links, ground), _moves(_turned([*planned[1:], planned[0]]), _turned(links), ground)]
    starts_planned, ends_planned = piece.first == "plan", len(planned) + (piece.first == "seen") > len(links)
    ways = []
    if starts_planned or not ends_planned:
        ways.append(
            _moves(planned, links if starts_planned else links[1:], ground, left=links[: 0 if starts_planned else 1])
        )
    if ends_planned or not starts_planned:
        last = len(links) if ends_planned else len(links) - 1
        after = planned[len(planned) - last :]
        ways.append(_moves(_turned(after), _turned(links[:last]), ground, planned[: len(planned) - last], links[last:]))
    return ways


def _turned(links: Sequence[tuple[Port, Port]]) -> list[tuple[Port, Port]]:
    return [(b, a) for a, b in links]


def _moves(
    planned: Sequence[tuple[Port, Port]],
    links: Sequence[tuple[Port, Port]],
    ground: Ground,
    also: Sequence[tuple[Port, Port]] = (),
    left: Sequence[tuple[Port, Port]] = (),
) -> tuple[Move, ...]:
    """Moves that make each seen link the planned one that it shares its first port with.

    Args:
        planned: ``(to, stays)``; those beyond the number of links are missing.
        links: ``(stays, at)``.
        ground: Where everything is.
        also: Planned links that are missing too.
        left: Seen links that are too many.
    """
    cables = ground.matched.cables
    out = [Move(action="take out", at=a, other=b) for a, b in left]
    moved = [
        Move(action="move", at=at, to=to, other=stays, cable=cables[to])
        for (to, _), (stays, at) in zip(planned, links, strict=False)
    ]
    lacking = [*planned[len(links) :], *also]
    return (*out, *moved, *(Move(action="plug in", at=a, other=b, cable=cables[a]) for a, b in lacking))


def _walking(moves: Sequence[Move], ground: Ground) -> tuple[int, int, int]:
    """How far one goes: plugs that leave their device, racks, devices."""
    ports = [port for move in moves if move.action == "move" for port in (move.at, move.to) if port is not None]
    leaving = sum(move.to is not None and move.at[0] != move.to[0] for move in moves)
    return leaving, len({ground.place(port)[0] for port in ports}), len({port[0] for port in ports})


def _link_line(a: Port, b: Port, ground: Ground) -> str:
    want = ground.matched.planned
    for here, there in ((a, b), (b, a)):
        if here in want:
            return f"{ground.show(here)} goes to {ground.show(there)}, planned {ground.show(want[here])}"
    return f"{ground.show(a)} goes to {ground.show(b)}, which is in no plan"


def state_line(port: Port, ground: Ground) -> str:
    """Why there is no link at a port; empty where there is one."""
    if port in ground.seen.peers:
        return ""
    state = ground.seen.state(port)
    return (
        f"{ground.show(port)} is {state}"
        if state
        else (
            f"no link at {ground.show(port)}"
            if ground.seen.is_asked(port)
            else f"{ground.show(port)} could not be seen"
        )
    )


def unplanned(piece: Component[Port], ground: Ground) -> Story:
    """The story of a seen link between two ports of planned devices that have no cable in the plan."""
    a, b = piece.ports
    line = f"{ground.show(a)} goes to {ground.show(b)}; neither port has a cable in the plan"
    return Story(
        cause=UNPLANNED, cables=(), evidence=(line,), moves=(Move(action="take out", at=a, other=b),), device=a[0]
    )
