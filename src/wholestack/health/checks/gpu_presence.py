"""Are the GPUs there: counted against the bus, off the bus, never come up.

A GPU that fell off the bus shows in many places at once: an Xid 79 or, with newer drivers, only a text over several
lines (leptonai/gpud#1209); ``GPU is lost`` or ``Unable to determine the device handle`` instead of readings; a hung
``nvidia-smi``; a count that is one short; links of its neighbours that are down. All are one Finding of that GPU.
"""

import re
from collections.abc import Iterable, Iterator

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom, Trait
from wholestack.health.checks.nvidia import (
    KERNEL_LOG,
    NVIDIA_SMI,
    QUIET_HOURS,
    SILENT_TOOLS,
    UNREADABLE,
    gpu_part,
    listed,
    recent,
    unreliable,
)
from wholestack.health.checks.pci import INVENTORY as PCI
from wholestack.health.formats.kernel_log import Line
from wholestack.health.formats.nvidia_smi import Smi, lost_of
from wholestack.health.formats.pci import Device
from wholestack.health.parts import HOST, Part, pci_key
from wholestack.health.probe import NotThereError, UnreadableError

OFF_BUS = Cause(
    code="gpu.off_bus",
    says="GPU has fallen off the bus",
    owner="vendor",
    remedy="drain the host and power-cycle it (a warm reboot often does not bring it back); if it happens again, "
    "reseat or replace the GPU",
    explains=(
        "gpu.xid_memory", "gpu.xid_reset", "gpu.xid_gsp", "gpu.xid_hardware", "gpu.xid_nvlink", "gpu.xid_application",
        "gpu.xid_contained", "gpu.xid_remap", "gpu.xid_wear", "gpu.xid_unknown", "gpu.xid_power_cable",
        "gpu.xid_repeated", "gpu.recovery_action", "gpu.row_remap_pending", "gpu.row_remap_failure",
        "gpu.ecc_uncorrected", "gpu.init_failed", "gpu.not_listed", "gpu.none_listed", "gpu.count", "gpu.unreadable",
        "gpu.miscount",
        "gpu.silent", "gpu.inforom_corrupted", "container.gpu", "container.fewer_gpus",
        "gpu.pcie_width", "gpu.pcie_speed", "gpu.fabric", "gpu.stale_process", "nvlink.inactive",
        "nvlink.errors", "nvlink.slow", "nvlink.unlisted", "telemetry.field",
        *SILENT_TOOLS,
        "kernel.hung_task", "kernel.lockup", "kernel.pcie_error", "pci.gpus", "processes.blocked",
        "gpu.orphaned_memory",
    ),
)  # fmt: skip
INIT_FAILED = Cause(
    code="gpu.init_failed",
    says="the driver could not bring the GPU up",
    owner="vendor",
    remedy="drain and power-cycle the host; if the adapter fails again, have the GPU replaced",
    explains=("gpu.not_listed", "gpu.count", "gpu.none_listed", "gpu.xid_reset", "gpu.unreadable", "gpu.fabric"),
)
NOT_LISTED = Cause(
    code="gpu.not_listed",
    says="GPU is on the PCI bus, but nvidia-smi does not list it",
    owner="vendor",
    remedy="look for its address in dmesg (NVRM); power-cycle the host; if it stays away, have the GPU replaced",
    explains=("gpu.count", "nvlink.unlisted", "gpu.miscount"),
)
NONE_LISTED = Cause(
    code="gpu.none_listed",
    says="GPUs are on the PCI bus, but nvidia-smi lists none",
    owner="cluster team",
    remedy="load or reinstall the driver (modprobe nvidia; dmesg | grep NVRM), then reboot",
    explains=("gpu.count", "gpu.unreadable", "gpu.not_listed"),
)
NO_DRIVER = Cause(
    code="driver.missing",
    says="GPUs are on the PCI bus, but the NVIDIA driver's tools are not installed",
    owner="cluster team",
    remedy="install the driver of this kind of host",
    explains=("gpu.count",),
)
COUNT = Cause(
    code="gpu.count",
    says="another number of GPUs than expected",
    owner="vendor",
    remedy="compare nvidia-smi -L with lspci; power-cycle the host; have the missing GPU reseated or replaced",
)
MISCOUNT = Cause(
    code="gpu.miscount",
    says="nvidia-smi describes another number of GPUs than it counts",
    owner="cluster team",
    remedy="run nvidia-smi -q -x again by hand; a GPU that comes and goes is about to fall off the bus",
    status="unknown",
)
_FELL = re.compile(r"fallen off the bus", re.IGNORECASE)
_INIT = re.compile(r"RmInitAdapter failed|rm_init_adapter failed|probe routine failed", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?", re.IGNORECASE)
OFF_BUS_HOURS = Limit(
    name="gpu.off_bus_hours", default=QUIET_HOURS.default, about="hours without a sign of it after which a GPU is back"
)


def gpus_on_bus(seen: Seen) -> tuple[Device, ...]:
    """NVIDIA GPUs that lspci lists; none if it could not be read."""
    return tuple(device for device in seen.maybe(PCI) or () if device.is_gpu)


def _judge_off_bus(seen: Seen) -> Iterator[Symptom]:
    yield from _told_by_kernel(seen)
    yield from _told_by_bus(seen)
    smi = _smi_or_none(seen) if _was_asked(seen) else None
    if smi is not None:
        yield from _told_by_smi(seen, smi)
        yield from unreliable(smi)
    elif _was_asked(seen) and not gpus_on_bus(seen):
        seen.of(NVIDIA_SMI)  # neither the tool nor the bus: says why there is nothing to judge


def _was_asked(seen: Seen) -> bool:
    """Of a saved log or lspci nobody asked nvidia-smi; then that log speaks alone."""
    return NVIDIA_SMI.name in seen.outputs


def _smi_or_none(seen: Seen) -> Smi | None:
    try:
        return seen.of(NVIDIA_SMI)
    except NotThereError:
        return None


def _told_by_kernel(seen: Seen) -> Iterator[Symptom]:
    try:
        lines = recent(seen, seen.limit(OFF_BUS_HOURS), "NVRM")
    except (NotThereError, UnreadableError):
        return
    for line, key, cause in gone(lines):
        yield Symptom(cause=cause, part=gpu_part(seen, key), evidence=(line.text,))


def gone(lines: Iterable[Line]) -> Iterator[tuple[Line, str, Cause]]:
    """Lines that tell of a GPU that fell off the bus or did not come up, its address, and which of the two."""
    for line in lines:
        cause = OFF_BUS if _FELL.search(line.message) else INIT_FAILED if _INIT.search(line.message) else None
        address = _ADDRESS.search(line.message)
        if cause is not None and address is not None and "NVRM" in line.message:
            yield line, pci_key(address[0]), cause


def _told_by_bus(seen: Seen) -> Iterator[Symptom]:
    for device in gpus_on_bus(seen):
        if device.gone:
            evidence = (f"lspci: {device.line} (revision ff: it does not answer)",)
            yield Symptom(cause=OFF_BUS, part=gpu_part(seen, device.key), evidence=evidence)


def _told_by_smi(seen: Seen, smi: Smi) -> Iterator[Symptom]:
    on_bus = {device.key for device in gpus_on_bus(seen)}
    unlisted = sorted(on_bus - {gpu.key for gpu in smi.gpus})
    for lost in lost_of(smi):
        key = lost.key
        if ":" not in key and len(unlisted) == 1:
            key = unlisted[0]
        part = gpu_part(seen, key or "not named")
        yield Symptom(cause=OFF_BUS, part=part, evidence=(f"nvidia-smi: {lost.line}",))
    if on_bus:
        for gpu in smi.gpus:
            if ":" in gpu.key and gpu.key not in on_bus:
                evidence = (f"nvidia-smi lists {gpu.key}, lspci does not",)
                yield Symptom(cause=OFF_BUS, part=gpu.part, evidence=evidence)


def lost_keys(seen: Seen) -> tuple[str, ...]:
    """Addresses of GPUs that are off the bus by any sign."""
    try:
        return tuple(dict.fromkeys(each.part.key for each in _judge_off_bus(seen) if each.cause is OFF_BUS))
    except (NotThereError, UnreadableError):
        return tuple(dict.fromkeys(each.part.key for each in _told_by_kernel(seen) if each.cause is OFF_BUS))


def _judge_count(seen: Seen) -> Iterator[Symptom]:
    on_bus = gpus_on_bus(seen)
    if not _was_asked(seen):
        seen.of(PCI)
        return
    smi = _smi_or_none(seen)
    if smi is None:
        compute = [device for device in on_bus if device.pci_class == "0302"]
        if not compute:
            seen.of(NVIDIA_SMI)
        yield Symptom(cause=NO_DRIVER, evidence=tuple(device.line for device in compute))
        return
    if smi.trouble == "none_found" and not on_bus:
        listed(seen)
    yield from unreliable(smi) if smi.trouble != "none_found" else ()
    if smi.miscount:
        yield Symptom(cause=MISCOUNT, evidence=(smi.miscount,))
    if not smi.gpus and on_bus:
        yield Symptom(cause=NONE_LISTED, evidence=(*smi.notes[:3], *(device.line for device in on_bus)))
    elif ":" in "".join(gpu.key for gpu in smi.gpus):
        known = {gpu.key for gpu in smi.gpus}
        for device in on_bus:
            if device.key not in known:
                evidence = (f"lspci: {device.line}", f"nvidia-smi lists {len(known)} GPUs, not this one")
                yield Symptom(cause=NOT_LISTED, part=Part(kind="gpu", key=device.key), evidence=evidence)


def _count(seen: Seen) -> Iterable[Trait]:
    smi = _smi_or_none(seen) if _was_asked(seen) else None
    if smi is not None and (smi.source != "message" or smi.trouble == "none_found"):
        yield Trait(name="gpu.count", value=len(smi.gpus), differs=COUNT, part=HOST)
    elif not _was_asked(seen):
        yield Trait(name="gpu.count", value=len(gpus_on_bus(seen)), differs=COUNT, part=HOST)


CHECKS = (
    Check(
        name="gpu.off_bus",
        about="GPUs that fell off the bus or did not come up, with or without an Xid",
        probes=(NVIDIA_SMI, KERNEL_LOG, PCI),
        parts=("gpu",),
        causes=(OFF_BUS, INIT_FAILED, UNREADABLE),
        limits=(OFF_BUS_HOURS,),
        judge=_judge_off_bus,
    ),
    Check(
        name="gpu.count",
        about="as many GPUs as expected, as on the PCI bus and as the tool itself says",
        probes=(NVIDIA_SMI, PCI),
        parts=("host", "gpu"),
        causes=(COUNT, NOT_LISTED, NONE_LISTED, NO_DRIVER, MISCOUNT, UNREADABLE),
        judge=_judge_count,
        traits=_count,
        trait_names=("gpu.count",),
    ),
)
