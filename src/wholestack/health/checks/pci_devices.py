"""What the PCI bus shows: how many GPUs, NVSwitches and RDMA adapters, and devices that no longer answer."""

from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Seen, Symptom, Trait
from wholestack.health.checks.nvidia import PCI
from wholestack.health.formats.lspci import Device
from wholestack.health.parts import Part

DEAD = Cause(
    code="pci.dead",
    says="a device on the PCI bus does not answer",
    owner="vendor",
    remedy="drain and power-cycle the host; if it stays dead, reseat or replace the device",
    explains=("pci.count", "nvlink.inactive", "nvlink.all_inactive", "fabric_manager.down", "gpu.fabric"),
)
COUNT = Cause(
    code="pci.count",
    says="another number of NVSwitches or RDMA adapters on the PCI bus than expected",
    owner="vendor",
    remedy="compare lspci with a host of the same kind; power-cycle the host; have the missing device reseated or replaced",
)
_COUNTED = (
    ("pci.nvswitches", lambda device: device.is_nvswitch),
    ("pci.infiniband_adapters", lambda device: device.class_code == "0207"),
)


def _judge(seen: Seen) -> Iterator[Symptom]:
    """A GPU that does not answer is the matter of ``gpu.off_bus``."""
    for device in seen.of(PCI):
        if device.gone and not device.is_gpu:
            evidence = (f"lspci: {device.line} (revision ff)",)
            yield Symptom(cause=DEAD, part=_part(device), evidence=evidence)


def _part(device: Device) -> Part:
    kind = "nvswitch" if device.is_nvswitch else "hca" if device.is_hca else "pci"
    return Part(kind="nvswitch", key=device.key) if kind == "nvswitch" else Part(kind="pci", key=device.key)


def _traits(seen: Seen) -> Iterator[Trait]:
    devices = seen.of(PCI)
    for name, counts in _COUNTED:
        yield Trait(name=name, value=sum(1 for device in devices if counts(device)), differs=COUNT)


CHECKS = (
    Check(
        name="pci.devices",
        about="number of NVSwitches and InfiniBand adapters on the PCI bus, devices that do not answer",
        probes=(PCI,),
        parts=("host", "pci", "nvswitch"),
        causes=(DEAD, COUNT),
        judge=_judge,
        traits=_traits,
    ),
)
