"""PCI: how many devices of the kinds that matter, and links below what they can. GPUs' own links: the GPU checks.

A link has two ends and is judged at the lower one only: what a root or downstream port can beyond the device below
it is not missing. Where at least three devices of one model all run alike, the slots are made so; the profile or the
fleet will tell. GPUs clock their link down when idle, so that only its width says something.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom, Trait
from wholestack.health.formats.pci import (
    Link,
    looks_like_links,
    looks_like_lspci,
    looks_like_verbose,
    read_links,
    read_lspci,
    read_verbose,
)
from wholestack.health.formats.sysfs import grep_failure, no_files
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command

LSPCI = Format(name="lspci -nn", matches=looks_like_lspci, read=read_lspci)
VERBOSE = Format(name="lspci -vvv", matches=looks_like_verbose, read=read_verbose)
FILES = Format(name="/sys/bus/pci/devices (grep)", matches=looks_like_links, read=read_links)


INVENTORY = Probe(command=Command(name="pci", shell="lspci -Dnn", max_bytes=200_000), formats=(LSPCI,))
LINKS = Probe(
    command=Command(
        name="pci_links",
        shell=(
            "cd /sys/bus/pci/devices && grep -s . */vendor */device */class */current_link_speed "
            "*/current_link_width */max_link_speed */max_link_width */numa_node"
        ),
        max_bytes=400_000,
    ),
    formats=(FILES, VERBOSE),
    absent=no_files("no PCI bus on this host", "/sys/bus/pci/devices"),
    failure=grep_failure,
)
_ADAPTER = re.compile(r" (\S{1,40}) -> [^\n]{0,300}/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-7]/infiniband/")
"""A line of ``ls -l /sys/class/infiniband``."""
ACS = Probe(
    command=Command(name="pci_verbose", shell="lspci -vvv", max_bytes=4_000_000, needs_root=True), formats=(VERBOSE,)
)

DEGRADED = Cause(
    code="pci.degraded",
    says="PCIe link runs below what it can",
    owner="vendor",
    remedy="reseat card or riser and reboot; if it stays, replace card, riser or board; see the BIOS' link settings",
    explains=("kernel.pcie_limited", "pci.link_differs"),
)
CHANGED = Cause(
    code="pci.link_differs",
    says="PCIe link is not as on its likes",
    owner="vendor",
    remedy="reseat the card or riser and reboot; if it stays, replace it",
    status="warn",
    explains=("kernel.pcie_limited",),
)
FEWER_GPUS = Cause(
    code="pci.gpus",
    says="number of GPUs on the PCI bus is not as expected",
    owner="vendor",
    remedy="power-cycle the host (not only reboot); if a GPU stays away, replace it",
    explains=("gpu.count",),
)
FEWER_SWITCHES = Cause(
    code="pci.nvswitches",
    says="number of NVSwitches on the PCI bus is not as expected",
    owner="vendor",
    remedy="power-cycle the host; if a switch stays away, replace the baseboard",
)
FEWER_ADAPTERS = Cause(
    code="pci.ib_adapters",
    says="number of InfiniBand adapters on the PCI bus is not as expected",
    owner="vendor",
    remedy="power-cycle the host; reseat the adapter; if it stays away, replace it",
    explains=("ib.count", "ib.inactive", "pci.network_adapters"),
)
FEWER_DRIVES = Cause(
    code="pci.nvme",
    says="number of NVMe drives on the PCI bus is not as expected",
    owner="vendor",
    remedy="reseat the drive; see whether it or its slot is dead by swapping with a neighbour",
    explains=("drive.missing",),
)
FEWER_NICS = Cause(
    code="pci.network_adapters",
    says="number of Ethernet controllers on the PCI bus is not as expected",
    owner="vendor",
    remedy="power-cycle the host; reseat the adapter; if it stays away, replace it",
)
ACS_ON = Cause(
    code="pci.acs",
    says="access control services are on: traffic between PCIe devices takes the way over the root",
    owner="cluster team",
    remedy="switch ACS off (BIOS, or setpci on bridges above GPUs and adapters) unless virtual machines need it",
    status="warn",
)

SLOWEST = Limit(
    name="pci.least_gts",
    default=32.0,
    about="links that could carry less than this (GT/s times lanes) are not judged in a sweep",
)


def _inventory(seen: Seen) -> Iterator[Trait]:
    devices = seen.of(INVENTORY)
    counts = (
        (
            "pci.gpus",
            [one for one in devices if one.is_gpu],
            FEWER_GPUS,
        ),
        (
            "pci.nvswitches",
            [one for one in devices if one.is_nvswitch],
            FEWER_SWITCHES,
        ),
        ("pci.ib_adapters", [one for one in devices if one.pci_class == "0207"], FEWER_ADAPTERS),
        ("pci.nvme", [one for one in devices if one.pci_class == "0108"], FEWER_DRIVES),
        ("pci.network_adapters", [one for one in devices if one.pci_class == "0200"], FEWER_NICS),
    )
    for name, found, differs in counts:
        yield Trait(name=name, value=len(found), differs=differs)


def _judge_inventory(seen: Seen) -> Iterator[Symptom]:
    """A device that reads all ones is listed, but gone: ``(rev ff)``."""
    for device in seen.of(INVENTORY):
        if device.gone and not device.is_gpu:
            part = Part(kind="pci", key=device.key, label=device.name)
            yield Symptom(cause=GONE, part=part, evidence=(device.line,))


GONE = Cause(
    code="pci.gone",
    says="PCI device does not answer (revision ff)",
    owner="vendor",
    remedy="power-cycle the host; if it stays, replace the device",
    explains=(
        "pci.degraded",
        "pci.link_differs",
        "kernel.pcie_limited",
        "kernel.pcie_error",
        "ib.no_driver",
        "ib.count",
        "ib.inactive",
        "nic.down",
    ),
)


def _judge_links(seen: Seen) -> Iterator[Symptom]:
    links = seen.of(LINKS)
    told = any(link.is_verbose for link in links)
    adapters = _adapters(seen)
    models: dict[str, list[Link]] = {}
    for link in links:
        if not link.faces_down and (told or not link.is_gpu) and _judged(link, seen, everything=told):
            models.setdefault(link.name, []).append(link)
    for alike in models.values():
        for link in alike:
            yield from _judge_link(link, alike, _part(link, adapters), told=told)


def _judged(link: Link, seen: Seen, *, everything: bool) -> bool:
    if link.most_gts is None or link.most_width is None or link.most_width > 32:
        return everything
    return everything or link.most_gts * link.most_width >= seen.limit(SLOWEST)


def _adapters(seen: Seen) -> dict[str, str]:
    """Names of InfiniBand and RoCE adapters by slot, if the host told: what people call the card that sits there."""
    output = seen.outputs.get("infiniband_pci")
    text = output.text if output is not None and output.ending == "ended" else ""
    found: dict[str, list[str]] = {}
    for name, address in _ADAPTER.findall(text):
        found.setdefault(address, []).append(name)
    return {slot: ", ".join(sorted(names)[:4]) for slot, names in found.items()}


def _part(link: Link, adapters: dict[str, str]) -> Part:
    label = ", ".join(filter(None, (adapters.get(link.slot), link.name[:60])))
    return Part(kind="pci", key=link.slot, label=label)


def _judge_link(link: Link, alike: list[Link], part: Part, *, told: bool) -> Iterator[Symptom]:
    known = (link.speed_gts, link.width, link.most_gts, link.most_width)
    if None in known:
        if link.most_gts is not None or link.speed_gts is not None:
            yield Symptom(cause=FIELD, part=part, evidence=(link.line,))
    elif _below(link):
        usual, count = Tally((other.speed_gts, other.width) for other in alike).most_common(1)[0]
        slots = len({other.slot for other in alike})
        if (link.speed_gts, link.width) != usual and count > len(alike) / 2:
            evidence = (link.line, f"{count} of its model: {usual[0]:g} GT/s x{usual[1]}")
            yield Symptom(cause=DEGRADED, part=part, evidence=evidence)
        elif told or slots < 3:
            yield Symptom(cause=DEGRADED, part=part, evidence=(link.line,), status="warn")


def _below(link: Link) -> bool:
    slow = (link.speed_gts or 0) < (link.most_gts or 0) and not link.is_gpu
    return slow or (link.width or 0) < (link.most_width or 0)


def _link_traits(seen: Seen) -> Iterator[Trait]:
    adapters = _adapters(seen)
    for link in seen.of(LINKS):
        if not link.faces_down and not link.is_gpu and link.speed_gts and _judged(link, seen, everything=False):
            part = _part(link, adapters)
            value = f"{link.speed_gts:g} GT/s x{link.width}"
            yield Trait(name="pci.link", value=value, differs=CHANGED, part=part)


def _acs_on(seen: Seen) -> list[Link]:
    return [link for link in seen.of(ACS) if "+" in link.acs and link.faces_down]


def _judge_acs(seen: Seen) -> Iterator[Symptom]:
    found = _acs_on(seen)
    if found:
        evidence = (
            f"on at {len(found)} bridges",
            *(f"{link.key} {link.name[:60]}: ACSCtl {link.acs}" for link in found),
        )
        yield Symptom(cause=ACS_ON, evidence=evidence)


CHECKS = (
    Check(
        name="pci.inventory",
        about="GPUs, NVSwitches, InfiniBand and Ethernet adapters and NVMe drives on the PCI bus",
        probes=(INVENTORY,),
        parts=("host", "pci"),
        causes=(FEWER_GPUS, FEWER_SWITCHES, FEWER_ADAPTERS, FEWER_DRIVES, FEWER_NICS, GONE),
        judge=_judge_inventory,
        traits=_inventory,
        trait_names=("pci.gpus", "pci.nvswitches", "pci.ib_adapters", "pci.nvme", "pci.network_adapters"),
    ),
    Check(
        name="pci.links",
        about="PCIe links of adapters and drives that are slower or narrower than they could be",
        probes=(LINKS,),
        parts=("pci",),
        causes=(DEGRADED, CHANGED, FIELD),
        judge=_judge_links,
        traits=_link_traits,
        trait_names=("pci.link",),
        limits=(SLOWEST,),
    ),
    Check(
        name="pci.acs",
        about="bridges with access control services on, which slow traffic between devices",
        probes=(ACS,),
        parts=("host",),
        causes=(ACS_ON,),
        judge=_judge_acs,
        traits=lambda seen: iter((Trait(name="pci.acs_bridges", value=len(_acs_on(seen)), differs=ACS_ON),)),
        trait_names=("pci.acs_bridges",),
        passive=False,
    ),
)
