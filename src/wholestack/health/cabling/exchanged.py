"""Devices that have each other's places, or each other's names: one story, not one a cable."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from wholestack.health.cabling.matching import Matched
from wholestack.health.cabling.seen import Port, Seen

FEWEST = 3
"""Cables of a device that must say so: two swapped cables may be an accident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Devices in a ring: where the plan has one, the next is seen, and the first where it has the last."""

    devices: tuple[str, ...]
    """Keys; of two where two are exchanged."""
    evidence: tuple[str, ...]
    """A line a device."""


def exchanges(matched: Matched, seen: Seen) -> list[Exchange]:
    """Rings of devices at which more than half of the cables are in the same port of the next.

    Time and memory grow with the number of cables.
    """
    ports: dict[str, list[Port]] = {}
    for port in matched.planned:
        ports.setdefault(port[0], []).append(port)
    instead = {device: found for device, mine in ports.items() if (found := _instead(mine, matched, seen)) is not None}
    return [
        Exchange(
            devices=ring, evidence=tuple(_line(ports[device], *instead[device], ports, matched) for device in ring)
        )
        for ring in _rings({device: other for device, (other, _) in instead.items()})
    ]


def put_back(matched: Matched, found: list[Exchange]) -> Matched:
    """The plan on the ports as if the devices had the names that their places have in the plan."""
    if not found:
        return matched
    new = {device: there for each in found for device, there in zip(each.devices, _turned(each.devices), strict=True)}

    def moved(port: Port) -> Port:
        return new.get(port[0], port[0]), port[1]

    return replace(
        matched,
        planned={moved(a): moved(b) for a, b in matched.planned.items()},
        cables={moved(port): cable for port, cable in matched.cables.items()},
        ends={moved(port): end for port, end in matched.ends.items()},
        doubtful={moved(port) for port in matched.doubtful},
    )


def _instead(ports: list[Port], matched: Matched, seen: Seen) -> tuple[str, int] | None:
    """Which device is seen at the far ends of all these, and how often; none where it is the device itself."""
    there = ((port, seen.peers.get(matched.planned[port])) for port in ports)
    at = Counter(peer[0] for port, peer in there if peer is not None and peer[1] == port[1])
    if not at:
        return None
    [(device, count)] = at.most_common(1)
    return (device, count) if device != ports[0][0] and count >= FEWEST and 2 * count > len(ports) else None


def _rings(following: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    done: set[str] = set()
    for start in following:
        path: list[str] = []
        at = start
        while at in following and at not in done:
            done.add(at)
            path.append(at)
            at = following[at]
        if at in path:
            yield tuple(path[path.index(at) :])


def _turned(devices: tuple[str, ...]) -> tuple[str, ...]:
    return (*devices[1:], devices[0])


def _line(mine: list[Port], other: str, count: int, ports: Mapping[str, list[Port]], matched: Matched) -> str:
    here, there = (matched.ends[found[0]].device for found in (mine, ports[other]))
    return f"{count} of {len(mine)} cables of {here} are in the same port of {there}"
