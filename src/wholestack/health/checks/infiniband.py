"""InfiniBand ports: are they there, up, and as fast and as wide as they should be? Firmware and place of the adapters.

RoCE ports (link layer Ethernet) are counted here and judged as Ethernet (:mod:`.ethernet`).
"""

import re
from collections import Counter as Tally
from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Identity, Limit, Seen, Symptom, Trait
from wholestack.health.checks.pci import INVENTORY
from wholestack.health.formats import infiniband as formats
from wholestack.health.formats.infiniband import Adapter, InfiniBand, Port
from wholestack.health.formats.sysfs import grep_failure, no_files, no_such_path
from wholestack.health.parts import Part, pci_key
from wholestack.health.probe import Format, NotThereError, Probe, UnreadableError
from wholestack.health.siblings import all_but_one
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command, Output

FOLDER = "/sys/class/infiniband"
NONE = "no InfiniBand device on this host"
SYSFS = Format(name="/sys/class/infiniband (grep)", matches=formats.looks_like_sysfs, read=formats.read_sysfs)
TAB = Format(name="/sys/class/infiniband (path TAB value)", matches=formats.looks_like_tab, read=formats.read_tab)
PERFQUERY = Format(name="perfquery", matches=formats.looks_like_perfquery, read=formats.read_perfquery)
IBSTAT = Format(name="ibstat", matches=formats.looks_like_ibstat, read=formats.read_ibstat)
IBSTATUS = Format(name="ibstatus", matches=formats.looks_like_ibstatus, read=formats.read_ibstatus)
INFINIBAND = Probe(
    command=Command(
        name="infiniband",
        shell=(
            "cd /sys/class/infiniband && grep -s . */fw_ver */board_id */hca_type */node_guid */device/numa_node "
            "*/ports/*/state */ports/*/phys_state */ports/*/rate */ports/*/link_layer */ports/*/counters/* "
            "*/ports/*/hw_counters/*"
        ),
        max_bytes=400_000,
    ),
    formats=(SYSFS, TAB, PERFQUERY, IBSTAT, IBSTATUS),
    absent=no_files(NONE, FOLDER),
    failure=grep_failure,
)


def _looks_like_links(text: str) -> bool:
    return " -> " in text[:1000]


def _no_links(output: Output) -> str:
    empty = output.exit_status == 0 and output.text.strip() == "total 0"
    return NONE if empty else no_such_path(NONE, FOLDER)(output)


def _read_addresses(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        before, arrow, target = line.rpartition(" -> ")
        path = target.split("/")
        if arrow and len(path) > 2 and path[-2] == "infiniband":
            found[before.rpartition(" ")[2]] = pci_key(path[-3])
    return found


ADDRESSES = Probe(
    command=Command(name="infiniband_pci", shell="ls -l /sys/class/infiniband", limit_s=5, max_bytes=40_000),
    formats=(Format(name="ls -l", matches=_looks_like_links, read=_read_addresses),),
    absent=_no_links,
)

CONSEQUENCES = (
    "ib.slow",
    "ib.narrow",
    "ib.error_rate",
    "ib.remote_error_rate",
    "ib.recovering",
    "ib.flapping",
    "ib.counter_full",
    "ib.inactive",
    "kernel.link_flap",
)

NO_LINK = Cause(
    code="ib.no_link",
    says="InfiniBand port has no link",
    owner="data centre",
    remedy="reseat or swap cable and transceiver at both ends; if it stays down, have the peer port looked at",
    explains=CONSEQUENCES,
)
DISABLED = Cause(
    code="ib.disabled",
    says="InfiniBand port is disabled",
    owner="network",
    remedy="find out who disabled it (fabric manager, ibportstate, mlxlink) and why, then enable it",
    explains=CONSEQUENCES,
)
NO_SUBNET_MANAGER = Cause(
    code="ib.no_subnet_manager",
    says="InfiniBand port has a link but is not brought up by the subnet manager",
    owner="network",
    remedy="look at the subnet manager (sminfo, its log); see whether it has the port's GUID and partition",
    explains=CONSEQUENCES,
)
ALL_DOWN = Cause(
    code="ib.all_down",
    says="no InfiniBand port of this kind of adapter is up",
    owner="data centre",
    remedy="connect them, or say in the profile how many ports are in use (ib.active_count)",
    status="warn",
)
SLOW = Cause(
    code="ib.slow",
    says="InfiniBand port runs below its speed",
    owner="data centre",
    remedy="swap cable and transceiver; compare with the speed that the switch port is set to",
    explains=("ib.error_rate", "kernel.link_flap"),
)
NARROW = Cause(
    code="ib.narrow",
    says="InfiniBand port runs with fewer lanes",
    owner="data centre",
    remedy="reseat, then swap cable and transceiver: a lane is broken; then try another switch port",
    explains=("ib.slow", "ib.error_rate", "kernel.link_flap"),
)
COUNT = Cause(
    code="ib.count",
    says="number of InfiniBand ports is not as expected",
    owner="cluster team",
    remedy="reload mlx5_core or reboot, which often heals it; if lspci misses an adapter, call the vendor",
    explains=("ib.inactive",),
)
INACTIVE = Cause(
    code="ib.inactive",
    says="number of active InfiniBand ports is not as expected",
    owner="data centre",
    remedy="see which port is down (ibstat), then its cable and its peer",
)
NO_DRIVER = Cause(
    code="ib.no_driver",
    says="an InfiniBand adapter is on the PCI bus but not in use",
    owner="cluster team",
    remedy="load mlx5_core and mlx5_ib; look for their lines in the kernel log; then reset the adapter or reboot",
    explains=("ib.count", "ib.inactive"),
)
FIRMWARE = Cause(
    code="ib.firmware",
    says="firmware of an InfiniBand adapter differs",
    owner="cluster team",
    remedy="burn the agreed firmware (mstflint, mlxfwmanager) and reset the adapter",
    status="warn",
)
BOARD = Cause(
    code="ib.board",
    says="an InfiniBand adapter is another model than expected",
    owner="vendor",
    remedy="compare with the order; replace it, or correct the profile",
    status="warn",
)
PLACE = Cause(
    code="ib.numa_node",
    says="an InfiniBand adapter is at another NUMA node than expected",
    owner="cluster team",
    remedy="compare slot and BIOS settings (sub-NUMA clustering) with its siblings",
    status="warn",
)

RATE = Limit(name="ib.rate_gbs", default=0.0, about="InfiniBand ports that are slower are a fail; 0: siblings decide")
LANES = Limit(name="ib.lanes", default=2.0, about="InfiniBand ports with fewer lanes are a fail")


def part_of(port: Port, seen: Seen) -> Part:
    """The port as a part, within its adapter."""
    address = (seen.maybe(ADDRESSES) or {}).get(port.device)
    within = (f"hca {port.device}", f"pci {address}") if address else (f"hca {port.device}",)
    return Part(kind="hca_port", key=port.key, label=f"PCI {address}" if address else "", within=within)


def adapter_part(adapter: Adapter, seen: Seen) -> Part:
    """The adapter as a part."""
    address = (seen.maybe(ADDRESSES) or {}).get(adapter.name)
    label = ", ".join(word for word in (f"PCI {address}" if address else "", adapter.kind) if word)
    return Part(kind="hca", key=adapter.name, label=label, within=(f"pci {address}",) if address else ())


def _require(told: bool, facts: InfiniBand, what: str) -> None:
    """Refuse a saved output of a tool that does not tell what a check needs."""
    if not told:
        raise UnreadableError(f"{facts.format} does not tell {what}")


def require_counters(facts: InfiniBand) -> None:
    """The same for error counters.

    Raises:
        UnreadableError: the format has none.
    """
    _require(facts.has_counters, facts, "error counters")


def unknown_field(port: Port, name: str, value: str, seen: Seen) -> Symptom:
    """A field that decides is missing or no value of its kind."""
    shown = f"{name} is {value!r}" if value else f"{name} is missing"
    return Symptom(cause=FIELD, part=part_of(port, seen), evidence=(f"{port.key}: {shown}",))


def _judge_state(seen: Seen) -> Iterator[Symptom]:
    facts = seen.of(INFINIBAND)
    _require(facts.has_state, facts, "the state of ports")
    ports = [port for port in facts.ports if port.is_infiniband]
    active = sum(port.state == "active" for port in ports)
    for port in ports:
        if port.state != "active":
            yield from _judge_inactive(
                port, facts, seen, in_use=active != seen.expectation.traits.get("ib.active_count")
            )


def _judge_inactive(port: Port, facts: InfiniBand, seen: Seen, *, in_use: bool) -> Iterator[Symptom]:
    line = (f"{port.key}: state {port.state or '?'}, physical state {port.phys_state or '?'}",)
    part = part_of(port, seen)
    if port.state in ("init", "armed"):
        yield Symptom(cause=NO_SUBNET_MANAGER, part=part, evidence=line)
    elif port.state not in ("down", "active_defer"):
        yield unknown_field(port, "state", port.state, seen)
    elif not in_use:
        return
    elif not _was_used(port, facts):
        if not _siblings_up(port, facts, same_number=False):
            yield Symptom(cause=ALL_DOWN, part=_board_part(port, facts), evidence=line)
    elif port.phys_state == "disabled":
        yield Symptom(cause=DISABLED, part=part, evidence=line)
    else:
        yield Symptom(cause=NO_LINK, part=part, evidence=line)


def _was_used(port: Port, facts: InfiniBand) -> bool:
    """Unused ports are no fault: those without traffic whose likes, the same port of the same model, are down too."""
    traffic = ("port_rcv_data", "port_xmit_data", "link_downed")
    return any(port.counters.get(name, 0) for name in traffic) or _siblings_up(port, facts, same_number=True)


def _siblings_up(port: Port, facts: InfiniBand, *, same_number: bool) -> bool:
    return any(
        other.state == "active" and (other.number == port.number or not same_number)
        for adapter in _same_model(port, facts)
        for other in adapter.ports
        if other.is_infiniband
    )


def _same_model(port: Port, facts: InfiniBand) -> list[Adapter]:
    own = next(adapter for adapter in facts.adapters if adapter.name == port.device)
    return [each for each in facts.adapters if (each.board, each.kind) == (own.board, own.kind)]


def _board_part(port: Port, facts: InfiniBand) -> Part:
    own = next(adapter for adapter in facts.adapters if adapter.name == port.device)
    return Part(kind="hca", key=own.board or own.kind or own.name)


def _active(facts: InfiniBand) -> list[Port]:
    return [port for port in facts.ports if port.is_infiniband and port.state == "active"]


def _judge_rate(seen: Seen) -> Iterator[Symptom]:
    facts = seen.of(INFINIBAND)
    _require(facts.has_state, facts, "the rate of ports")
    least = seen.limit(RATE)
    for port in _active(facts):
        rate = port.rate_gbs
        if rate is None:
            yield unknown_field(port, "rate", port.rate, seen)
            continue
        usual = all_but_one([other.rate_gbs for other in _peers(port, facts)])
        if rate < least:
            evidence = (f"{port.key}: {port.rate}, expected at least {least:g} Gb/s",)
            yield Symptom(cause=SLOW, part=part_of(port, seen), evidence=evidence)
        elif usual is not None and rate < usual:
            evidence = (f"{port.key}: {port.rate}, its siblings run at {usual:g} Gb/s",)
            yield Symptom(cause=SLOW, part=part_of(port, seen), evidence=evidence)


def _judge_width(seen: Seen) -> Iterator[Symptom]:
    facts = seen.of(INFINIBAND)
    _require(facts.has_state and facts.format != "ibstat", facts, "the width of ports")
    for port in _active(facts):
        lanes, usual = port.lanes, all_but_one([other.lanes for other in _peers(port, facts)])
        if lanes is not None and (lanes < seen.limit(LANES) or (usual is not None and lanes < usual)):
            beside = f", its siblings with {usual:g}" if usual is not None else ""
            evidence = (f"{port.key}: {port.rate}: {lanes} lanes{beside}",)
            yield Symptom(cause=NARROW, part=part_of(port, seen), evidence=evidence)
        elif lanes is None:
            yield unknown_field(port, "width", port.rate, seen)


def _peers(port: Port, facts: InfiniBand) -> list[Port]:
    return [
        other
        for adapter in _same_model(port, facts)
        for other in adapter.ports
        if other.is_infiniband and other.state == "active"
    ]


def _counts(seen: Seen) -> Iterator[Trait]:
    facts = _facts_or_none(seen)
    ports = list(facts.ports) if facts else []
    if facts and not facts.has_state:
        return
    ours = [port for port in ports if port.is_infiniband]
    yield Trait(name="ib.port_count", value=len(ours), differs=COUNT)
    yield Trait(name="ib.active_count", value=sum(port.state == "active" for port in ours), differs=INACTIVE)
    roce = [port for port in ports if port.link_layer == "Ethernet"]
    yield Trait(name="roce.port_count", value=len(roce), differs=COUNT)


def _facts_or_none(seen: Seen) -> InfiniBand | None:
    """No InfiniBand is a count of 0, so that a host that lost it stands out; unless a profile wants the check."""
    try:
        return seen.of(INFINIBAND)
    except NotThereError as absent:
        # Without the tool that counts, nothing was counted: that is no 0.
        if absent.reason == "not_installed" or "ib.count" in seen.expectation.checks:
            raise
        return None


def _judge_count(seen: Seen) -> Iterator[Symptom]:
    facts = _facts_or_none(seen)
    known = seen.maybe(ADDRESSES)
    devices = seen.maybe(INVENTORY)
    if devices is None or (known is None and facts is not None):
        return
    adapters = [device for device in devices if device.pci_class == "0207"]
    guest = all(device.virtual for device in adapters)
    for device in adapters:
        # On a host with physical adapters the virtual ones are for its guests.
        if device.key not in (known or {}).values() and (guest or not device.virtual):
            part = Part(kind="pci", key=device.key, label=device.name)
            yield Symptom(cause=NO_DRIVER, part=part, evidence=(device.line,))


def _rate_traits(seen: Seen) -> Iterator[Trait]:
    facts = seen.of(INFINIBAND)
    for port in _active(facts):
        if port.rate:
            yield Trait(name="ib.rate", value=port.rate, differs=SLOW, part=part_of(port, seen))


def _judge_firmware(seen: Seen) -> Iterator[Symptom]:
    facts = seen.of(INFINIBAND)
    by_board: dict[str, list[Adapter]] = {}
    for adapter in facts.adapters:
        if adapter.board and not adapter.firmware:
            evidence = (f"{adapter.name}: fw_ver is missing",)
            yield Symptom(cause=FIELD, part=adapter_part(adapter, seen), evidence=evidence)
        elif adapter.firmware:
            by_board.setdefault(adapter.board or adapter.kind, []).append(adapter)
    for adapters in by_board.values():
        usual, count = Tally(adapter.firmware for adapter in adapters).most_common(1)[0]
        for adapter in adapters:
            if adapter.firmware != usual and count > len(adapters) / 2:
                evidence = (f"{adapter.name}: {adapter.firmware}, {count} of its model have {usual}",)
                yield Symptom(cause=FIRMWARE, part=adapter_part(adapter, seen), evidence=evidence)


def _firmware_traits(seen: Seen) -> Iterator[Trait]:
    for adapter in seen.of(INFINIBAND).adapters:
        part = adapter_part(adapter, seen)
        if adapter.firmware:
            yield Trait(name="ib.firmware", value=adapter.firmware, differs=FIRMWARE, part=part)
        if adapter.board:
            yield Trait(name="ib.board", value=adapter.board, differs=BOARD, part=part)


def _identities(seen: Seen) -> Iterator[Identity]:
    for adapter in seen.of(INFINIBAND).adapters:
        yield Identity(part=adapter_part(adapter, seen), serial=adapter.guid, model=adapter.board)


def _numa_traits(seen: Seen) -> Iterator[Trait]:
    for adapter in seen.of(INFINIBAND).adapters:
        if re.fullmatch(r"-?\d{1,6}", adapter.numa_node):
            part = adapter_part(adapter, seen)
            yield Trait(name="ib.numa_node", value=int(adapter.numa_node), differs=PLACE, part=part)


CHECKS = (
    Check(
        name="ib.count",
        about="InfiniBand ports: how many there are, how many are up; adapters without a driver",
        probes=(INFINIBAND, ADDRESSES, INVENTORY),
        parts=("host", "pci"),
        causes=(COUNT, INACTIVE, NO_DRIVER),
        judge=_judge_count,
        traits=_counts,
        trait_names=("ib.port_count", "ib.active_count", "roce.port_count"),
    ),
    Check(
        name="ib.state",
        about="InfiniBand ports that are down, disabled, or not brought up by the subnet manager",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port", "hca"),
        causes=(NO_LINK, DISABLED, NO_SUBNET_MANAGER, ALL_DOWN, FIELD),
        judge=_judge_state,
    ),
    Check(
        name="ib.rate",
        about="active InfiniBand ports that are slower than the profile or all their siblings",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port",),
        causes=(SLOW, FIELD),
        judge=_judge_rate,
        traits=_rate_traits,
        trait_names=("ib.rate",),
        limits=(RATE,),
    ),
    Check(
        name="ib.width",
        about="active InfiniBand ports that lost lanes",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port",),
        causes=(NARROW, FIELD),
        judge=_judge_width,
        limits=(LANES,),
    ),
    Check(
        name="ib.firmware",
        about="firmware and model of InfiniBand adapters, within the host and over the fleet",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca",),
        causes=(FIRMWARE, BOARD, FIELD),
        judge=_judge_firmware,
        traits=_firmware_traits,
        identities=_identities,
        trait_names=("ib.firmware", "ib.board"),
    ),
    Check(
        name="ib.numa",
        about="NUMA node of each InfiniBand adapter",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca",),
        causes=(PLACE,),
        traits=_numa_traits,
        trait_names=("ib.numa_node",),
    ),
)
