"""A recorded node against its manifest: PCIe devices and links, InfiniBand, Ethernet.

Judges saved states only. What deviates in one way on most of the ports is one Finding of the host, for it has one
reason: a firmware not rolled out, a switch set to another speed.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wholestack.health.check import Cause, Check, Seen, Symptom, Trait
from wholestack.health.checks.infiniband import NO_LINK, NO_SUBNET_MANAGER, SLOW
from wholestack.health.formats.infiniband import link_state
from wholestack.health.formats.manifest import (
    OPTION,
    Bound,
    EthernetSlot,
    Manifest,
    PciSlot,
    State,
    gts,
    looks_like_state,
    read_manifest,
    read_state,
)
from wholestack.health.parts import HOST, Part, pci_key
from wholestack.health.probe import Format, NotThereError, Probe, UnreadableError
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command

MAC = re.compile(r"(?:[0-9a-f]{2}[:-]){5,19}[0-9a-f]{2}")
STATE = Probe(
    command=Command(name="hardware_state", shell="cat hardware_state.json", max_bytes=4_000_000),
    formats=(Format(name="recorded state (JSON)", matches=looks_like_state, read=read_state),),
)

ABSENT = Cause(
    code="manifest.pci_missing",
    says="PCI device of the manifest is not there",
    owner="vendor",
    remedy="power-cycle the host; reseat the device; if it stays away, replace it",
    explains=("manifest.ib_missing", "manifest.nic_missing"),
)
DEGRADED = Cause(
    code="manifest.pci_degraded",
    says="PCIe link is below the manifest",
    owner="vendor",
    remedy="reseat the card or riser and reboot; if it stays, replace card, riser or board",
)
OTHER = Cause(
    code="manifest.pci_differs",
    says="PCI device is not as in the manifest",
    owner="cluster team",
    remedy="compare device and order of numbering with the manifest; correct the one that is wrong",
    status="warn",
)
IB_ABSENT = Cause(
    code="manifest.ib_missing",
    says="InfiniBand adapter of the manifest is not there",
    owner="cluster team",
    remedy="look for it in lspci: if it is there, load its driver; if not, power-cycle the host, then call the vendor",
)
MISBOUND = Cause(
    code="manifest.ib_misbound",
    says="InfiniBand interface is bound to the wrong device",
    owner="cluster team",
    remedy="correct naming rules (udev) or slots; jobs that pair GPUs and adapters by name take detours",
)
FIRMWARE = Cause(
    code="manifest.ib_firmware",
    says="firmware of InfiniBand adapters is not that of the manifest",
    owner="cluster team",
    remedy="burn the firmware of the manifest (mstflint, mlxfwmanager) and reset the adapters",
)
PROTOCOL = Cause(
    code="manifest.ib_protocol",
    says="port is not in InfiniBand mode",
    owner="cluster team",
    remedy="set LINK_TYPE to InfiniBand (mlxconfig) and reset the adapter",
)
INTERFACE_DOWN = Cause(
    code="manifest.ib_interface_down",
    says="IP interface of an active InfiniBand port is down",
    owner="cluster team",
    remedy="bring it up (ip link set IF up) and look at its configuration; if it does not come, at its partition key",
)
NIC_ABSENT = Cause(
    code="manifest.nic_missing",
    says="Ethernet interface of the manifest is missing",
    owner="cluster team",
    remedy="look for the card in lspci: if it is there, load its driver; if not, reseat or replace it",
    explains=("manifest.nic_down", "manifest.nic_slow"),
)
NIC_DOWN = Cause(
    code="manifest.nic_down",
    says="Ethernet interface of the manifest is down",
    owner="data centre",
    remedy="reseat or swap cable and transceiver; if it stays down, let the network team look at the switch port",
    explains=("manifest.nic_slow", "manifest.nic_mtu"),
)
NIC_SLOW = Cause(
    code="manifest.nic_slow",
    says="Ethernet interface is slower than in the manifest",
    owner="network",
    remedy="compare the speed set at the switch port; then cable and transceiver",
    status="warn",
    explains=("manifest.nic_slow",),
)
NIC_MTU = Cause(
    code="manifest.nic_mtu",
    says="Ethernet interface has another MTU than the manifest",
    owner="cluster team",
    remedy="set the MTU of the manifest on the host and see that the switch allows it",
    status="warn",
)
NIC_CONFIGURATION = Cause(
    code="manifest.nic_configuration",
    says="configuration of an Ethernet interface is of another card",
    owner="cluster team",
    remedy="write the card's own MAC address into its configuration; it was swapped or the configuration copied",
)


def _manifest(seen: Seen) -> Manifest:
    text = seen.expectation.options.get(OPTION)
    if text is None:
        raise NotThereError("not_expected", "no manifest to compare with (judge --expect MANIFEST)")
    return read_manifest(text)


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing at one part that is not as in the manifest."""

    cause: Cause
    part: Part
    line: str
    kind: str
    """What it has instead: equal on ports that deviate alike."""


def _grouped(found: Iterable[Deviation], total: int, unit: str) -> Iterator[Symptom]:
    """One symptom of the host for what most parts share, else one a part."""
    groups: dict[tuple[str, str], list[Deviation]] = {}
    for each in found:
        groups.setdefault((each.cause.code, each.kind), []).append(each)
    for members in groups.values():
        if total > 2 and len(members) > total / 2:
            head = f"{len(members)} of {total} {unit}: {members[0].kind}"
            yield Symptom(cause=members[0].cause, part=HOST, evidence=(head, *(each.line for each in members)))
        else:
            for each in members:
                yield Symptom(cause=each.cause, part=each.part, evidence=(each.line,))


def _pci_part(slot: PciSlot) -> Part:
    return Part(kind="pci", key=pci_key(slot.address), label=slot.slot)


def _judge_pci(seen: Seen) -> Iterator[Symptom]:
    manifest, state = _manifest(seen), seen.of(STATE)
    if not manifest.pci:
        raise NotThereError("not_expected", "the manifest names no PCI device")
    if not state.speeds and not state.is_empty:
        raise UnreadableError("no PCIe link is recorded in it")
    missing = [slot for slot in manifest.pci if _is_missing(slot, state)]
    lines = [
        Deviation(ABSENT, _pci_part(slot), f"{slot.slot} is not present at {slot.address}", "not present")
        for slot in missing
    ]
    critical = next((slot for slot in missing if slot.critical), None)
    if critical is not None and len(missing) <= len(manifest.pci) / 2:
        evidence = (f"{critical.slot} is not present at {critical.address}; without it others are renumbered",)
        others = tuple(each.line for each in lines)
        yield Symptom(cause=ABSENT, part=_pci_part(critical), evidence=evidence + others)
    else:
        yield from _grouped(lines, len(manifest.pci), "PCI devices")
    for slot in manifest.pci:
        if slot not in missing:
            yield from _judge_slot(slot, state)


def _is_missing(slot: PciSlot, state: State) -> bool:
    return slot.address not in state.speeds and slot.address not in state.widths and slot.address not in state.bound


def _judge_slot(slot: PciSlot, state: State) -> Iterator[Symptom]:
    part = _pci_part(slot)
    speed, width = state.speeds.get(slot.address, ""), state.widths.get(slot.address, "")
    rate = gts(speed)
    wanted = f"{' or '.join(f'{one:g}' for one in slot.speeds_gts)} GT/s x{slot.width}"
    line = f"{slot.slot} {slot.address}: {speed or '?'} x{width or '?'}, expected {wanted}"
    if rate is None or not width.isdigit():
        yield Symptom(cause=FIELD, part=part, evidence=(line,))
    elif int(width) < slot.width or (slot.speeds_gts and rate < min(slot.speeds_gts)):
        yield Symptom(cause=DEGRADED, part=part, evidence=(line,))
    elif int(width) != slot.width or (slot.speeds_gts and rate not in slot.speeds_gts):
        yield Symptom(cause=OTHER, part=part, evidence=(line,))
    drive = state.bound.get(slot.address, Bound()).drive
    if slot.kind == "nvme" and drive and drive != slot.device:
        evidence = (f"{slot.slot} {slot.address}: drive {drive}, expected {slot.device}",)
        yield Symptom(cause=OTHER, part=part, evidence=evidence)


def _judge_ib(seen: Seen) -> Iterator[Symptom]:
    manifest, state = _manifest(seen), seen.of(STATE)
    if not manifest.ib:
        raise NotThereError("not_expected", "the manifest names no InfiniBand adapter")
    if not state.is_empty and not state.bound and not state.speeds:
        raise UnreadableError("no InfiniBand adapter is recorded in it")
    found = [deviation for slot in manifest.ib for deviation in _ib_deviations(slot, manifest, state)]
    up = _ib_up(manifest, state)
    summary = f"{up} of {len(manifest.ib)} InfiniBand ports up"
    for symptom in _grouped(found, len(manifest.ib), "InfiniBand ports"):
        yield Symptom(
            cause=symptom.cause, part=symptom.part, evidence=(symptom.evidence[0], summary, *symptom.evidence[1:])
        )


def _ib_up(manifest: Manifest, state: State) -> int:
    """Ports that can be used as the manifest means them; another firmware does not stop them."""
    return sum(
        all(deviation.cause is FIRMWARE for deviation in _ib_deviations(slot, manifest, state)) for slot in manifest.ib
    )


def _ib_deviations(slot: PciSlot, manifest: Manifest, state: State) -> Iterator[Deviation]:
    bound = state.bound.get(slot.address)
    where = f"{slot.slot} {slot.address}"
    if bound is None or not (bound.adapter or bound.interface):
        yield Deviation(IB_ABSENT, _pci_part(slot), f"{where}: no adapter", "no adapter")
        return
    within = (_pci_part(slot).identity, f"hca {bound.adapter}")
    part = Part(kind="hca_port", key=f"{bound.adapter}/1", label=where, within=within)
    where = f"{where} ({bound.interface}, {bound.adapter})"
    adapter = manifest.ib_adapters.get(slot.device, bound.adapter)
    if bound.interface != slot.device or bound.adapter != adapter:
        line = f"{where}: expected {slot.device}, {adapter}"
        yield Deviation(MISBOUND, part, line, f"{bound.interface}, {bound.adapter}")
    firmware = bound.files.get("fw_ver", "")
    if manifest.ib_firmware and firmware not in manifest.ib_firmware:
        differs = f"firmware {firmware or '?'}, expected {' or '.join(manifest.ib_firmware)}"
        yield Deviation(FIRMWARE, part, f"{where}: {differs}", differs)
    yield from _ib_link(where, part, manifest, bound)


def _ib_link(where: str, part: Part, manifest: Manifest, bound: Bound) -> Iterator[Deviation]:
    files = bound.files
    state, phys, rate = (files.get(f"ports/1/{name}", "") for name in ("state", "phys_state", "rate"))
    layer, operstate = files.get("ports/1/link_layer", ""), files.get("operstate", "")
    if not (state and phys and rate and layer and operstate):
        yield Deviation(FIELD, part, f"{where}: state, rate, link layer or operstate is not recorded", "not recorded")
    elif layer != "InfiniBand":
        yield Deviation(PROTOCOL, part, f"{where}: link layer {layer}", layer)
    elif link_state(phys) != "linkup" or link_state(state) == "down":
        yield Deviation(NO_LINK, part, f"{where}: {state}, {phys}", f"{state}, {phys}")
    elif link_state(state) != "active":
        yield Deviation(NO_SUBNET_MANAGER, part, f"{where}: {state}, {phys}", state)
    else:
        if manifest.ib_rate and rate != manifest.ib_rate:
            yield Deviation(
                SLOW, part, f"{where}: {rate}, expected {manifest.ib_rate}", f"{rate}, expected {manifest.ib_rate}"
            )
        if operstate != "up":
            yield Deviation(INTERFACE_DOWN, part, f"{where}: {state}, but operstate {operstate}", operstate)


def _ib_traits(seen: Seen) -> Iterator[Trait]:
    manifest, state = _manifest(seen), seen.of(STATE)
    yield Trait(name="manifest.ib_up", value=_ib_up(manifest, state), differs=NO_LINK)


def _judge_ethernet(seen: Seen) -> Iterator[Symptom]:
    manifest, state = _manifest(seen), seen.of(STATE)
    if not manifest.ethernet:
        raise NotThereError("not_expected", "the manifest names no Ethernet interface")
    if state.interfaces is None and not state.is_empty:
        raise UnreadableError("no interface is recorded in it (intf_status)")
    found = [deviation for slot in manifest.ethernet for deviation in _nic_deviations(slot, manifest, state)]
    missing = [each for each in found if each.cause is NIC_ABSENT]
    yield from _grouped(missing, len(manifest.ethernet), "Ethernet interfaces")
    for each in _without_shadows(found, state):
        if each.cause is not NIC_ABSENT:
            yield Symptom(cause=each.cause, part=each.part, evidence=(each.line,))


def _bond_of(interface: str, state: State) -> str:
    own = (state.interfaces or {}).get(interface, {})
    return str(own.get("main") or own.get("master") or "")


def _without_shadows(found: list[Deviation], state: State) -> Iterator[Deviation]:
    """A bond that is slow since some of its ports are slow, missing or down is no second fault.

    Where all its ports are slow it is the bond that is: :data:`NIC_SLOW` takes in those of the parts within.
    """
    faulty = {each.part.key for each in found}
    for each in found:
        ports = [name for name in state.interfaces or {} if _bond_of(name, state) == each.part.key]
        if each.cause is NIC_SLOW and ports and 0 < len(faulty.intersection(ports)) < len(ports):
            continue
        yield each


def _nic_deviations(slot: EthernetSlot, manifest: Manifest, state: State) -> Iterator[Deviation]:
    own = (state.interfaces or {}).get(slot.interface)
    bond = _bond_of(slot.interface, state)
    part = Part(kind="nic", key=slot.interface, label=slot.slot, within=(f"nic {bond}",) if bond else ())
    where = f"{slot.slot} ({slot.interface})"
    if own is None:
        yield Deviation(NIC_ABSENT, part, f"{where} is missing", "missing")
        return
    report: Callable[[Cause, str], Deviation] = lambda cause, line: Deviation(cause, part, f"{where}: {line}", line)  # noqa: E731
    flags, operstate = own.get("flags"), own.get("operstate")
    if not isinstance(flags, list) or not isinstance(operstate, str):
        yield report(FIELD, "flags or operstate is not recorded")
        return
    lacking = [flag for flag in slot.flags if flag not in flags]
    if operstate != "UP" or lacking:
        yield report(NIC_DOWN, f"operstate {operstate}" + (f", without flags {', '.join(lacking)}" if lacking else ""))
    elif slot.mtu is not None and own.get("mtu") != slot.mtu:
        yield report(NIC_MTU, f"MTU {own.get('mtu')}, expected {slot.mtu}")
    yield from _nic_configuration(slot, state, report)
    yield from _nic_speed(slot, state, report)


def _nic_configuration(
    slot: EthernetSlot, state: State, report: Callable[[Cause, str], Deviation]
) -> Iterator[Deviation]:
    if not slot.physical or state.configured is None:
        return
    configured = state.configured.get(slot.interface)
    if not isinstance(configured, dict):
        yield report(NIC_ABSENT, "has no configuration")
        return
    wanted, real = str(configured.get("HWADDR", "")).lower(), state.addresses.get(slot.interface, "").lower()
    if not real or (wanted != real and not (MAC.fullmatch(wanted) and MAC.fullmatch(real))):
        yield report(FIELD, f"its MAC address is {real or 'not recorded'}, configured {wanted or 'none'}")
    elif wanted != real:
        yield report(NIC_CONFIGURATION, f"configured for {wanted}, is {real}")


def _nic_speed(slot: EthernetSlot, state: State, report: Callable[[Cause, str], Deviation]) -> Iterator[Deviation]:
    speed = state.speeds_mbs.get(slot.interface, "").strip()
    if slot.speed_mbs is None:
        return
    if not speed.isdigit() or len(speed) > 12:
        yield report(FIELD, f"speed is {speed or 'not recorded'}")
    elif int(speed) < slot.speed_mbs:
        yield report(NIC_SLOW, f"{speed} Mb/s, expected {slot.speed_mbs} Mb/s")


CHECKS = (
    Check(
        name="manifest.pcie",
        about="PCI devices of a recorded node against its manifest: there, and with full speed and width",
        probes=(STATE,),
        parts=("pci", "host"),
        causes=(ABSENT, DEGRADED, OTHER, FIELD),
        judge=_judge_pci,
        options=(OPTION,),
        passive=False,
    ),
    Check(
        name="manifest.ib",
        about="InfiniBand adapters of a recorded node against its manifest: binding, firmware, state, rate",
        probes=(STATE,),
        parts=("hca_port", "pci", "host"),
        causes=(IB_ABSENT, MISBOUND, FIRMWARE, PROTOCOL, NO_LINK, NO_SUBNET_MANAGER, SLOW, INTERFACE_DOWN, FIELD),
        judge=_judge_ib,
        traits=_ib_traits,
        trait_names=("manifest.ib_up",),
        options=(OPTION,),
        passive=False,
    ),
    Check(
        name="manifest.ethernet",
        about="Ethernet interfaces of a recorded node against its manifest: state, speed, MTU, configuration",
        probes=(STATE,),
        parts=("nic", "host"),
        causes=(NIC_ABSENT, NIC_DOWN, NIC_SLOW, NIC_MTU, NIC_CONFIGURATION, FIELD),
        judge=_judge_ethernet,
        options=(OPTION,),
        passive=False,
    ),
)
