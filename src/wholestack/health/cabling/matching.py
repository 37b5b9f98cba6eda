"""Ends of the plan as ports of the view, by the rules of :mod:`wholestack.health.cabling.naming`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from wholestack.errors import InputError
from wholestack.health.cabling import naming
from wholestack.health.cabling.plan import Cable, Plan, PlanEnd
from wholestack.health.cabling.seen import Port, Seen
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched(Record):
    """A name of the plan that is none of the view, or several."""

    name: str
    """Device, or device and port."""
    why: str


@dataclass(slots=True)
class Matched:
    """The plan on the ports of the view."""

    planned: dict[Port, Port] = field(default_factory=dict)
    """The other end, both ways."""
    cables: dict[Port, Cable] = field(default_factory=dict)
    """At each planned port."""
    ends: dict[Port, PlanEnd] = field(default_factory=dict)
    """As the plan writes it."""
    doubtful: set[Port] = field(default_factory=set)
    """Ports of names that could not be matched: nothing is said of them."""
    unseen: dict[str, str] = field(default_factory=dict)
    """Devices that no output names: name in the plan by key."""
    unmatched: list[Unmatched] = field(default_factory=list)
    """Names that are ambiguous or not understood."""
    without_domain: int = 0
    """Devices that were found without their domain only."""


def match(plan: Plan, seen: Seen) -> Matched:
    """Find the port of every end.

    Raises:
        InputError: two ends of the plan are one port.
    """
    found = Matched()
    by_device: dict[str, list[PlanEnd]] = {}
    for cable in plan.cables:
        for end in cable.ends:
            by_device.setdefault(end.device.casefold(), []).append(end)
    seen_labels = _labels_by_device(seen)
    ports: dict[tuple[str, str], Port] = {}
    for name, ends in by_device.items():
        keys = _ports_of(name, ends, seen, seen_labels, found)
        ports.update(((name, end.port.casefold()), key) for end, key in zip(ends, keys, strict=True))
    for cable in plan.cables:
        a, b = (ports[end.device.casefold(), end.port.casefold()] for end in cable.ends)
        for port, other, end in ((a, b, cable.a), (b, a, cable.b)):
            earlier = found.cables.get(port)
            if earlier is not None:
                there = "its other end" if earlier is cable else f"an end of {earlier.where}"
                raise InputError(f"{plan.name}: {cable.where}: {end} is the same port as {there}: {found.ends[port]}")
            found.planned[port], found.cables[port], found.ends[port] = other, cable, end
    return found


def _ports_of(
    name: str, ends: list[PlanEnd], seen: Seen, seen_labels: dict[str, set[str]], found: Matched
) -> list[Port]:
    """Of one device; all its ends together, since how a host calls its ports is judged by all of them."""
    guid = naming.guid_of(name)
    if guid is not None and guid in seen.adapters:
        host, adapter = seen.adapters[guid]
        return [(host, _numbered(adapter, end.port)) for end in ends]
    keys = {f"0x{guid}"} & set(seen.shown) if guid is not None else _devices(name, seen, found)
    if not keys:
        found.unseen[f"plan {name}"] = ends[0].device
        return [(f"plan {name}", end.port.casefold()) for end in ends]
    if len(keys) > 1:
        shown = ", ".join(sorted(seen.shown.get(key, key) for key in keys)[:4])
        found.unmatched.append(Unmatched(name=ends[0].device, why=f"{len(keys)} devices have that name: {shown}"))
        return _set_aside(((f"plan {name}", end.port.casefold()) for end in ends), found)
    [key] = keys
    if key in seen.switches:
        return [_switch_port(key, end, found) for end in ends]
    return _host_ports(key, ends, seen, seen_labels.get(key, set()), found)


def _devices(name: str, seen: Seen, found: Matched) -> set[str]:
    exact = seen.names.get(name)
    if exact:
        return set(exact)
    short = naming.without_domain(name)
    near = seen.names.get(short) if short != name else seen.short_names.get(name)
    found.without_domain += bool(near)
    return set(near or ())


def _switch_port(key: str, end: PlanEnd, found: Matched) -> Port:
    number = naming.switch_port(end.port)
    if number is not None:
        return key, number
    found.unmatched.append(Unmatched(name=str(end), why="no number of a port, and no label of a cage"))
    [port] = _set_aside([(key, f"plan {end.port.casefold()}")], found)
    return port


def _host_ports(key: str, ends: list[PlanEnd], seen: Seen, there: set[str], found: Matched) -> list[Port]:
    """A host whose ports are all called otherwise than the plan does is not understood; one of its ports may be."""
    ports: list[Port] = []
    for end in ends:
        label = end.port.casefold()
        adapter = naming.planned_adapter_port(label)
        ports.append((key, adapter if adapter in there else seen.labels.get((key, label), label)))
        if ports[-1][1] == label and naming.is_infiniband(adapter):
            ports[-1] = (key, adapter)
    styles = {_style(label) for label in there}
    if there and not any(label in there or _style(label) in styles for _, label in ports):
        shown = ", ".join(sorted(there)[:4])
        ours = ", ".join(end.port for end in ends[:4])
        found.unmatched.append(
            Unmatched(name=ends[0].device, why=f"its ports are called {shown}; the plan says {ours}")
        )
        return _set_aside(((device, f"plan {label}") for device, label in ports), found)
    return ports


def _set_aside(ports: Iterable[Port], found: Matched) -> list[Port]:
    kept = list(ports)
    found.doubtful.update(kept)
    return kept


def _numbered(adapter: str, label: str) -> str:
    number = naming.switch_port(label)
    return naming.adapter_port(adapter, int(number)) if number else adapter


def _style(label: str) -> str:
    return re.sub(r"\d+", "#", label)


def _labels_by_device(seen: Seen) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for device, label in (*seen.peers, *seen.conflicts, *seen.details):
        if device not in seen.switches:
            found.setdefault(device, set()).add(label)
    return found
