"""Ethernet ports: down although in use, slower than their likes, errors and flaps as rates, frame size.

Judged are interfaces with a PCI device and bonds of them. In use is what a profile names (option ``nics``), what is in
a bond, and what had a link since boot; a port that never had one may be spare. Limits of rates are our own.
"""

from collections.abc import Iterator, Mapping

from wholestack.health.check import Cause, Check, Counter, Limit, Measure, Seen, Symptom, Trait
from wholestack.health.formats.ethernet import ETHERNET, Interface, looks_like_net, read_net
from wholestack.health.formats.sysfs import grep_failure
from wholestack.health.growth import Growth, Levels, Memory, hourly, scaled
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.health.siblings import all_but_one
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command

ETHERNET_PORTS = Probe(
    command=Command(
        name="ethernet",
        shell=(
            "cd /sys/class/net && grep -s . */operstate */speed */duplex */mtu */carrier_changes */type "
            "*/device/vendor */statistics/rx_errors */statistics/tx_errors */statistics/rx_crc_errors "
            "*/statistics/rx_dropped */statistics/tx_dropped */bonding/mii_status */bonding/slaves"
        ),
        max_bytes=400_000,
    ),
    formats=(Format(name="/sys/class/net (grep)", matches=looks_like_net, read=read_net),),
    failure=grep_failure,
)

CONSEQUENCES = ("nic.slow", "nic.error_rate", "nic.flapping", "nic.inactive", "optic.alarm", "kernel.link_flap")
DOWN = Cause(
    code="nic.down",
    says="Ethernet port is down",
    owner="data centre",
    remedy="reseat or swap cable and transceiver; if it stays down, let the network team look at the switch port",
    explains=(*CONSEQUENCES, "roce.error_rate"),
)
BOND_DOWN = Cause(
    code="nic.bond_down",
    says="bond of Ethernet ports is down",
    owner="data centre",
    remedy="see which of its ports has a link (/proc/net/bonding), then cables and switch ports",
    explains=("nic.down", *CONSEQUENCES),
)
MISSING = Cause(
    code="nic.missing",
    says="an expected Ethernet port is not there",
    owner="cluster team",
    remedy="look for its driver in the kernel log and for the card in lspci; correct the profile if it was renamed",
    explains=("nic.inactive",),
)
INACTIVE = Cause(
    code="nic.inactive",
    says="number of Ethernet ports with a link is not as expected",
    owner="data centre",
    remedy="compare with a host of the same kind: which port has no link; then its cable and switch port",
)
SLOW = Cause(
    code="nic.slow",
    says="Ethernet port runs below its speed",
    owner="data centre",
    remedy="swap cable and transceiver; compare with the speed that the switch port is set to",
    explains=("nic.error_rate", "nic.speed_differs", "kernel.link_flap"),
)
ERRORS = Cause(
    code="nic.error_rate",
    says="Ethernet port has errors at a high rate",
    owner="data centre",
    remedy="clean and reseat the transceiver, then swap the cable; if errors stay with the card, call the vendor",
)
FLAPPING = Cause(
    code="nic.flapping",
    says="Ethernet link went down and came back",
    owner="data centre",
    remedy="reseat, then swap cable and transceiver; look at the switch port's log",
    explains=("kernel.link_flap",),
)
FRAME = Cause(
    code="nic.mtu",
    says="Ethernet port has another frame size (MTU) than its likes",
    owner="cluster team",
    remedy="set the MTU as on the other ports and hosts; large frames to it are lost or cut",
    status="warn",
)
SPEED_DRIFT = Cause(
    code="nic.speed_differs",
    says="Ethernet port has another speed than on other hosts",
    owner="data centre",
    remedy="compare cable, transceiver and switch port with a host of the same kind",
    status="warn",
)

FLAPS = Limit(
    name="nic.flaps_per_day", default=3.0, about="losses of the link in a day that are a fail; one is a warning"
)
SCALE = Limit(name="nic.error_scale", default=1.0, about="factor on the limits of error counters, per hour")
LEAST = Limit(name="nic.least_mbs", default=1000.0, about="Ethernet ports in use that are slower (Mb/s) are a fail")
RATES: Mapping[str, Levels] = {
    "rx_crc_errors": hourly(10, fail=1000, timeless=1000),
    "rx_errors": hourly(100, fail=10_000, timeless=10_000),
    "tx_errors": hourly(100, fail=10_000, timeless=10_000),
}
"""Dropped packets are no errors: the kernel drops protocols that nobody listens to."""
TELLS_SPEED = ("0x15b3", "0x8086", "0x14e4")
"""Mellanox, Intel, Broadcom: their drivers give the speed of every port with a link."""
MARKER = "nic.carrier_changes"
ERRORS_MARKER = "nic.port_seen"
"""Kept of every port whose errors were read; of the errors only those that are not zero."""


def _real(seen: Seen) -> dict[str, Interface]:
    every = seen.of(ETHERNET_PORTS)
    return {
        name: one for name, one in every.items() if one.kind == ETHERNET and (one.vendor or _is_real_bond(one, every))
    }


def _is_real_bond(one: Interface, every: Mapping[str, Interface]) -> bool:
    return one.is_bond and any(every[name].vendor for name in one.slaves if name in every)


def _bond_of(name: str, ports: Mapping[str, Interface]) -> str:
    return next((bond.name for bond in ports.values() if name in bond.slaves), "")


def part_of(name: str, ports: Mapping[str, Interface]) -> Part:
    """A port as a part, within its bond."""
    bond = _bond_of(name, ports)
    return Part(kind="nic", key=name, label=f"in {bond}" if bond else "", within=(f"nic {bond}",) if bond else ())


def _named(seen: Seen) -> list[str]:
    return seen.expectation.options.get("nics", "").replace(",", " ").split()


def _judge_state(seen: Seen) -> Iterator[Symptom]:
    ports = _real(seen)
    for name in _named(seen):
        if name not in ports:
            yield Symptom(
                cause=MISSING, part=Part(kind="nic", key=name), evidence=(f"{name} is not in /sys/class/net",)
            )
    for name, port in ports.items():
        if not port.operstate:
            yield Symptom(cause=FIELD, part=part_of(name, ports), evidence=(f"{name}: operstate is missing",))
        elif not port.is_up and _in_use(port, ports, seen):
            told = f"{name}: {port.operstate}"
            told += f", mii_status {port.mii_status}" if port.mii_status else ""
            told += (
                f", {port.carrier_changes} changes of its link since boot" if port.carrier_changes is not None else ""
            )
            yield Symptom(cause=BOND_DOWN if port.is_bond else DOWN, part=part_of(name, ports), evidence=(told,))


def _in_use(port: Interface, ports: Mapping[str, Interface], seen: Seen) -> bool:
    if port.is_bond or _bond_of(port.name, ports) or port.name in _named(seen):
        return True
    # From no link to a link is the first change, so that two are a link that was lost.
    return (port.carrier_changes or 0) >= 2


def _judge_speed(seen: Seen) -> Iterator[Symptom]:
    ports = _real(seen)
    for name, port in ports.items():
        if port.operstate != "up":
            continue
        part = part_of(name, ports)
        if port.speed_mbs is None:
            if port.vendor in TELLS_SPEED:
                shown = port.garbled.get("speed", "")
                evidence = (f"{name}: speed is {shown!r}" if shown else f"{name} is up, but has no speed",)
                yield Symptom(cause=FIELD, part=part, evidence=evidence)
            continue
        usual = _usual(port, ports)
        if port.speed_mbs < seen.limit(LEAST) or port.duplex == "half":
            yield Symptom(cause=SLOW, part=part, evidence=(f"{name}: {port.speed_mbs} Mb/s, {port.duplex} duplex",))
        elif usual is not None and port.speed_mbs < usual:
            evidence = (f"{name}: {port.speed_mbs} Mb/s, its siblings run at {usual} Mb/s",)
            yield Symptom(cause=SLOW, part=part, evidence=evidence)


def _usual(port: Interface, ports: Mapping[str, Interface]) -> int | None:
    """Speed that a port should have by its siblings: the best in its bond, or of its vendor all others but one."""
    bond = _bond_of(port.name, ports)
    if bond:
        return max(ports[name].speed_mbs or 0 for name in ports[bond].slaves if name in ports)
    return all_but_one(one.speed_mbs for one in _likes(port, ports))


def _likes(port: Interface, ports: Mapping[str, Interface]) -> list[Interface]:
    return [
        one
        for one in ports.values()
        if one.vendor == port.vendor and one.operstate == "up" and not one.is_bond and not _bond_of(one.name, ports)
    ]


def _judge_mtu(seen: Seen) -> Iterator[Symptom]:
    ports = _real(seen)
    for name, port in ports.items():
        yield from _garbled("mtu", port, ports)
        usual = all_but_one(one.mtu for one in _likes(port, ports)) if not port.is_bond else None
        if port.operstate == "up" and usual is not None and port.mtu is not None and port.mtu != usual:
            evidence = (f"{name}: MTU {port.mtu}, its siblings have {usual}",)
            yield Symptom(cause=FRAME, part=part_of(name, ports), evidence=evidence)


def _growths(port: Interface, seen: Seen, memory: Memory) -> Iterator[Growth]:
    scale = seen.limit(SCALE)
    for name, levels in RATES.items():
        value = port.statistics.get(name, 0)
        counter = Counter(name=f"nic.{name}", value=value, part=f"nic {port.name}")
        if name in port.statistics and (value > 0 or (value == 0 and memory.knows(counter))):
            yield memory.growth(counter, scaled(levels, scale), marker=(ERRORS_MARKER, counter.part))


def _flaps(port: Interface, seen: Seen, memory: Memory) -> Growth:
    # One loss is two changes, down and up.
    counter = Counter(name=MARKER, value=max(port.carrier_changes or 0, 0), part=f"nic {port.name}")
    fail = 2 * seen.limit(FLAPS)
    levels = Levels(warn=2, fail=fail, window_h=24, quiet_h=24, boot_least=10, boot_total=20, timeless=20)
    return memory.growth(counter, levels)


def _garbled(field: str, port: Interface, ports: Mapping[str, Interface]) -> Iterator[Symptom]:
    if field in port.garbled:
        evidence = (f"{port.name}: {field} is {port.garbled[field]!r}",)
        yield Symptom(cause=FIELD, part=part_of(port.name, ports), evidence=evidence)


def _judge_errors(seen: Seen) -> Iterator[Symptom]:
    ports, memory = _real(seen), Memory(seen)
    for name, port in ports.items():
        for field in RATES:
            yield from _garbled(field, port, ports)
        for growth in _growths(port, seen, memory) if not port.is_bond else ():
            if growth.status != "ok":
                evidence = (f"{name}: {growth.says}",)
                yield Symptom(cause=ERRORS, part=part_of(name, ports), evidence=evidence, status=growth.status)


def _judge_flaps(seen: Seen) -> Iterator[Symptom]:
    ports, memory = _real(seen), Memory(seen)
    for name, port in ports.items():
        yield from _garbled("carrier_changes", port, ports)
        growth = _flaps(port, seen, memory)
        if growth.status != "ok" and not port.is_bond:
            evidence = (f"{name}: {growth.says}; a loss is two changes",)
            yield Symptom(cause=FLAPPING, part=part_of(name, ports), evidence=evidence, status=growth.status)


def _error_counters(seen: Seen) -> Iterator[Counter]:
    memory = Memory(seen)
    for port in (port for port in _real(seen).values() if not port.is_bond):
        yield Counter(name=ERRORS_MARKER, value=1, part=f"nic {port.name}")
        for growth in _growths(port, seen, memory):
            yield from growth.keep


def _flap_counters(seen: Seen) -> Iterator[Counter]:
    memory = Memory(seen)
    for port in _real(seen).values():
        yield from _flaps(port, seen, memory).keep if not port.is_bond else ()


def _error_measures(seen: Seen) -> Iterator[Measure]:
    ports, memory = _real(seen), Memory(seen)
    for name, port in ports.items() if seen.uptime_s is not None else ():
        if not port.is_bond and port.is_up:
            rate = sum((growth.delta or 0) / max(growth.hours, 1.0) for growth in _growths(port, seen, memory))
            part = part_of(name, ports)
            yield Measure(name="nic.errors_per_hour", value=rate, outlies=ERRORS, part=part, bad="high", least=10)


def _up_count(seen: Seen) -> Iterator[Trait]:
    up = sum(port.operstate == "up" and not port.is_bond for port in _real(seen).values())
    yield Trait(name="nic.up_count", value=up, differs=INACTIVE)


def _speeds(seen: Seen) -> Iterator[Trait]:
    ports = _real(seen)
    for name, port in ports.items():
        if port.operstate == "up" and port.speed_mbs is not None:
            yield Trait(name="nic.speed_mbs", value=port.speed_mbs, differs=SPEED_DRIFT, part=part_of(name, ports))


def _frames(seen: Seen) -> Iterator[Trait]:
    ports = _real(seen)
    for name, port in ports.items():
        if port.operstate == "up" and port.mtu is not None:
            yield Trait(name="nic.mtu", value=port.mtu, differs=FRAME, part=part_of(name, ports))


CHECKS = (
    Check(
        name="nic.state",
        about="Ethernet ports and bonds that are down although in use",
        probes=(ETHERNET_PORTS,),
        parts=("nic", "host"),
        causes=(DOWN, BOND_DOWN, MISSING, INACTIVE, FIELD),
        judge=_judge_state,
        traits=_up_count,
        trait_names=("nic.up_count",),
        options=("nics",),
    ),
    Check(
        name="nic.speed",
        about="Ethernet ports that are slower than their siblings, or half duplex",
        probes=(ETHERNET_PORTS,),
        parts=("nic",),
        causes=(SLOW, SPEED_DRIFT, FIELD),
        judge=_judge_speed,
        traits=_speeds,
        trait_names=("nic.speed_mbs",),
        limits=(LEAST,),
    ),
    Check(
        name="nic.errors",
        about="receive, transmit and checksum errors of Ethernet ports, as counts in an hour",
        probes=(ETHERNET_PORTS,),
        parts=("nic",),
        causes=(ERRORS, FIELD),
        judge=_judge_errors,
        counters=_error_counters,
        measures=_error_measures,
        limits=(SCALE,),
    ),
    Check(
        name="nic.flaps",
        about="Ethernet links that were lost and came back within a day",
        probes=(ETHERNET_PORTS,),
        parts=("nic",),
        causes=(FLAPPING, FIELD),
        judge=_judge_flaps,
        counters=_flap_counters,
        limits=(FLAPS,),
    ),
    Check(
        name="nic.mtu",
        about="frame size of Ethernet ports against their siblings and other hosts",
        probes=(ETHERNET_PORTS,),
        parts=("nic",),
        causes=(FRAME, FIELD),
        judge=_judge_mtu,
        traits=_frames,
        trait_names=("nic.mtu",),
    ),
)
