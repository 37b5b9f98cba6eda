"""What the fabric says of itself: health of unmanaged switches, and the graph of links. Judges saved outputs only."""

from collections import Counter as Tally
from collections.abc import Iterator
from statistics import median

from wholestack.finding import Status
from wholestack.health.check import Cause, Check, Limit, Seen, Symptom, Trait
from wholestack.health.formats.ibnetdiscover import (
    SPEEDS,
    End,
    Fabric,
    looks_like_ports,
    looks_like_topology,
    read_ports,
    read_topology,
)
from wholestack.health.formats.ibswinfo import Item, Switch, looks_like_ibswinfo, read_ibswinfo
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command

SWITCH = Probe(
    command=Command(name="ibswinfo", shell="ibswinfo -d lid-$LID", limit_s=30, max_bytes=100_000),
    formats=(Format(name="ibswinfo", matches=looks_like_ibswinfo, read=read_ibswinfo),),
)
GRAPH = Probe(
    command=Command(name="ibnetdiscover", shell="ibnetdiscover -p", limit_s=120, max_bytes=16_000_000),
    formats=(
        Format(name="ibnetdiscover -p", matches=looks_like_ports, read=read_ports),
        Format(name="ibnetdiscover", matches=looks_like_topology, read=read_topology),
    ),
)

FAN = Cause(
    code="switch.fan",
    says="fan of a switch is faulty",
    owner="vendor",
    remedy="replace the fan tray; until then watch the switch's temperature",
)
SUPPLY = Cause(
    code="switch.psu",
    says="power supply of a switch is faulty",
    owner="data centre",
    remedy="check its feed and cord; if both are good, have the vendor replace the power supply",
)
FIRMWARE = Cause(
    code="switch.firmware",
    says="firmware of a switch differs from its likes",
    owner="network",
    remedy="burn the agreed firmware (flint) in a maintenance window",
    status="warn",
)
HOT = Cause(
    code="switch.hot",
    says="switch is hot",
    owner="data centre",
    remedy="look at air flow: blanks, direction of fans, inlet temperature",
)
TWINS = Cause(
    code="fabric.duplicate_guid",
    says="two devices of the fabric have one GUID",
    owner="network",
    remedy="burn a GUID of its own into one of them (flint sg) and reset it; until then routes are wrong",
)
SLOW_LINK = Cause(
    code="fabric.slow_link",
    says="link of the fabric runs below its likes",
    owner="network",
    remedy="reseat, then swap cable and transceivers; look at the errors of both ports",
    status="warn",
)
NARROW_LINK = Cause(
    code="fabric.narrow_link",
    says="link of the fabric lost lanes",
    owner="network",
    remedy="reseat, then swap cable and transceivers: a lane is broken",
    explains=("fabric.slow_link",),
)
HALF_SEEN = Cause(
    code="fabric.half_seen",
    says="a link is seen from one end only",
    owner="network",
    remedy="discover again; if it stays, one end answers wrongly: look at that port and its device",
    status="warn",
)

WARM_C = Limit(name="switch.warm_c", default=80.0, about="temperature of a switch (C) that is a warning")
HOT_C = Limit(name="switch.hot_c", default=95.0, about="temperature of a switch (C) that is a fail")
SLOW_FAN = Limit(
    name="switch.fan_share", default=0.5, about="speed of a fan by the median of its switch that is a fail"
)

BAD = ("ERROR", "FAIL", "FAILED", "FAULT", "FAULTY", "BAD", "NOT OK", "CRITICAL", "ABSENT", "NOT PRESENT")
NOT_TOLD = ("N/A", "NA", "-", "[N/A]")


def _part(item: Item, switch: Switch) -> Part:
    guid = switch.guid or "switch"
    if item.supply:
        return Part(kind="psu", key=f"{guid}/{item.supply}", within=(f"switch {guid}",))
    if item.name.startswith("fan"):
        name = item.name.partition(" (")[0] if "#" in item.name else "fans"
        return Part(
            kind="fan", key=f"{guid}/{name}", label=switch.product, within=(f"switch {guid}", f"fan {guid}/fans")
        )
    return Part(kind="switch", key=guid, label=switch.product)


def _judge_switch(seen: Seen) -> Iterator[Symptom]:
    switch = seen.of(SWITCH)
    slow = _slow_fans(switch, seen)
    for item in switch.statuses:
        cause = SUPPLY if item.supply else FAN
        if item.value.upper() in BAD:
            # The status of all fans says less than the one that does not turn.
            parts = [_part(fan, switch) for fan in slow] if slow and cause is FAN else [_part(item, switch)]
            for part in parts:
                yield Symptom(cause=cause, part=part, evidence=(item.line,))
        elif item.value.upper() not in ("OK", *NOT_TOLD):
            yield Symptom(cause=FIELD, part=_part(item, switch), evidence=(item.line,))
    if not switch.statuses:
        part = Part(kind="switch", key=switch.guid)
        yield Symptom(cause=FIELD, part=part, evidence=("no status of fans or power supplies is in it",))
    for fan in slow:
        yield Symptom(cause=FAN, part=_part(fan, switch), evidence=(fan.line,))
    for item in switch.readings:
        yield from _judge_reading(item, switch, seen)


def _slow_fans(switch: Switch, seen: Seen) -> list[Item]:
    fans = {item: item.number for item in switch.readings if item.name.startswith("fan#")}
    known = [rpm for rpm in fans.values() if rpm is not None]
    least = max(seen.limit(SLOW_FAN) * median(known), 1.0) if known else 0.0
    return [fan for fan, rpm in fans.items() if rpm is not None and rpm < least]


def _judge_reading(item: Item, switch: Switch, seen: Seen) -> Iterator[Symptom]:
    value, part = item.number, _part(item, switch)
    if value is None:
        if item.value.upper() not in NOT_TOLD:
            yield Symptom(cause=FIELD, part=part, evidence=(item.line,))
    elif item.name == "temperature (C)" and value >= seen.limit(WARM_C):
        status: Status = "fail" if value >= seen.limit(HOT_C) else "warn"
        yield Symptom(cause=HOT, part=part, evidence=(item.line,), status=status)


def _switch_traits(seen: Seen) -> Iterator[Trait]:
    switch = seen.of(SWITCH)
    if switch.firmware:
        part = Part(kind="switch", key=switch.guid, label=switch.product)
        yield Trait(name="switch.firmware", value=switch.firmware, differs=FIRMWARE, part=part)


def _cable(end: End) -> Part:
    guid, port = end.key
    return Part(kind="cable", key=f"{guid}/{port}", label=str(end).rpartition(":")[0], within=(f"switch {guid}",))


def _judge_graph(seen: Seen) -> Iterator[Symptom]:
    fabric = seen.of(GRAPH)
    yield from _twins(fabric)
    yield from _slow(fabric)
    yield from _half_seen(fabric)


def _twins(fabric: Fabric) -> Iterator[Symptom]:
    names: dict[str, list[str]] = {}
    for node in fabric.nodes:
        names.setdefault(node.guid, []).append(f"{node.kind} {node.name}")
    for guid, who in names.items():
        if len(who) > 1:
            evidence = (f"GUID 0x{guid.zfill(16)}: {'; '.join(who[:6])}",)
            yield Symptom(cause=TWINS, part=Part(kind="switch", key=guid), evidence=evidence)


def _slow(fabric: Fabric) -> Iterator[Symptom]:
    """Links to hosts and links between switches are two kinds; at least four and more than half must agree."""
    adapters = fabric.adapters
    kinds: dict[bool, list[End]] = {}
    for end in fabric.links:
        to_host = end.node.kind == "CA" or (end.peer is not None and end.peer[0] in adapters)
        kinds.setdefault(to_host, []).append(end)
    for links in kinds.values():
        usual, count = Tally((end.width, end.speed) for end in links).most_common(1)[0]
        known = count >= 4 and count > len(links) / 2
        for end in links:
            yield from _judge_link(end, usual if known else None)


def _judge_link(end: End, usual: tuple[str, str] | None) -> Iterator[Symptom]:
    lanes = int(end.width.rstrip("x"))
    if end.speed not in SPEEDS:
        yield Symptom(cause=FIELD, part=_cable(end), evidence=(str(end),))
    elif usual is not None and lanes < int(usual[0].rstrip("x")):
        yield Symptom(cause=NARROW_LINK, part=_cable(end), evidence=(f"{end}; most are {usual[0]} {usual[1]}",))
    elif usual is not None and usual[1] in SPEEDS and SPEEDS.index(end.speed) < SPEEDS.index(usual[1]):
        yield Symptom(cause=SLOW_LINK, part=_cable(end), evidence=(f"{end}; most are {usual[0]} {usual[1]}",))


def _half_seen(fabric: Fabric) -> Iterator[Symptom]:
    """Only where the other node was asked too. Aggregation nodes sit inside switches and share what others have."""
    peers = {end.key: end.peer for end in fabric.ends}
    asked = {end.node.guid for end in fabric.ends}
    for end in fabric.ends:
        virtual = "Aggregation Node" in end.peer_name or "Aggregation Node" in end.node.name
        if end.peer is not None and end.peer[0] in asked and peers.get(end.peer) != end.key and not virtual:
            yield Symptom(cause=HALF_SEEN, part=_cable(end), evidence=(f"{end}; not the other way",))


def _graph_traits(seen: Seen) -> Iterator[Trait]:
    fabric = seen.of(GRAPH)
    switches = {node.guid for node in fabric.nodes if node.kind == "SW"}
    counts = (("switches", len(switches)), ("adapters", len(fabric.adapters)), ("links", len(fabric.links)))
    for name, value in counts:
        yield Trait(name=f"fabric.{name}", value=value, differs=HALF_SEEN, drifts=False)


CHECKS = (
    Check(
        name="switch.health",
        about="fans, power supplies and temperature of an InfiniBand switch",
        probes=(SWITCH,),
        parts=("switch", "fan", "psu"),
        causes=(FAN, SUPPLY, HOT, FIRMWARE, FIELD),
        judge=_judge_switch,
        traits=_switch_traits,
        trait_names=("switch.firmware",),
        limits=(WARM_C, HOT_C, SLOW_FAN),
        passive=False,
    ),
    Check(
        name="fabric.graph",
        about="links of an InfiniBand fabric: slow, narrow, half seen; GUIDs used twice",
        probes=(GRAPH,),
        parts=("cable", "switch", "host"),
        causes=(TWINS, SLOW_LINK, NARROW_LINK, HALF_SEEN, FIELD),
        judge=_judge_graph,
        traits=_graph_traits,
        trait_names=("fabric.switches", "fabric.adapters", "fabric.links"),
        passive=False,
    ),
)
