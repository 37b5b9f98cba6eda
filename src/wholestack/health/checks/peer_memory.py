"""GPUDirect RDMA: adapters and GPUs can exchange data without a detour through the host's memory.

Needs the module ``nvidia_peermem``, or dma-buf: an open kernel module of NVIDIA and Linux 5.12 or later (NVIDIA,
"GPUDirect RDMA"). Only where there are GPUs and RDMA adapters.
"""

import re
from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Seen, Symptom, Trait
from wholestack.health.checks.gpu_inventory import MODULE_VERSION
from wholestack.health.checks.pci import INVENTORY as PCI
from wholestack.health.parts import HOST
from wholestack.health.probe import Format, NotThereError, Probe
from wholestack.health.telemetry import MOMENT
from wholestack.remote.batch import Command

ABSENT = Cause(
    code="gpu.peer_memory",
    says="InfiniBand adapters cannot reach the GPUs' memory directly",
    owner="cluster team",
    remedy="modprobe nvidia_peermem and load it at boot (/etc/modules-load.d), or use the open kernel modules",
    status="warn",
)
DIFFERS = Cause(
    code="gpu.peer_memory_differs",
    says="nvidia_peermem is loaded here and not on the other hosts, or the reverse",
    owner="cluster team",
    remedy="make the modules that are loaded at boot (/etc/modules-load.d) the same on all hosts of the kind",
    status="warn",
)
_PEERMEM = ("nvidia_peermem", "nv_peer_mem")
_RDMA = ("mlx5_ib", "mlx4_ib", "ib_uverbs", "ib_core")


def _read_modules(text: str) -> frozenset[str]:
    return frozenset(line.split(None, 1)[0] for line in text.splitlines() if line.strip() and line[0] != " ")


MODULES: Probe[frozenset[str]] = Probe(
    command=Command(name="modules", shell="cat /proc/modules", limit_s=5, max_bytes=200_000),
    formats=(
        Format(
            name="/proc/modules, lsmod",
            matches=lambda text: re.match(r"Module\s+Size|\w{1,80} \d{1,12} -?\d{1,6} ", text) is not None,
            read=_read_modules,
        ),
    ),
)


def _needed(seen: Seen) -> frozenset[str]:
    """Modules of a host that has both GPUs and RDMA adapters in use.

    Raises:
        NotThereError: it has not.
    """
    devices, modules = seen.of(PCI), seen.of(MODULES)
    if not any(device.is_gpu for device in devices):
        raise NotThereError("not_expected", "no NVIDIA GPU on the PCI bus")
    infiniband = any(device.pci_class == "0207" for device in devices)
    roce = any(device.vendor == "15b3" for device in devices) and "mlx5_ib" in modules
    if not infiniband and not roce:
        raise NotThereError("not_expected", "no RDMA adapter on the PCI bus")
    return modules


def _judge(seen: Seen) -> Iterator[Symptom]:
    modules = _needed(seen)
    if any(name in modules for name in _PEERMEM) or _has_dma_buf(seen):
        return
    loaded = ", ".join(sorted(name for name in modules if name.startswith("nvidia") or name in _RDMA))
    yield Symptom(cause=ABSENT, part=HOST, evidence=(f"nvidia_peermem is not loaded; loaded are: {loaded}",))


def _has_dma_buf(seen: Seen) -> bool:
    driver, moment = seen.maybe(MODULE_VERSION), seen.maybe(MOMENT)
    version = re.match(r"(\d{1,3})\.(\d{1,3})", moment.kernel) if moment is not None else None
    recent = version is not None and (int(version[1]), int(version[2])) >= (5, 12)
    return driver is not None and driver[1] and recent


def _traits(seen: Seen) -> Iterator[Trait]:
    modules = _needed(seen)
    loaded = any(name in modules for name in _PEERMEM)
    yield Trait(name="gpu.peermem_loaded", value=loaded, differs=DIFFERS)


CHECKS = (
    Check(
        name="gpu.peer_memory",
        about="adapters reach the GPUs' memory directly (nvidia_peermem or dma-buf), where both are there",
        probes=(MODULES, PCI, MODULE_VERSION),
        parts=("host",),
        causes=(ABSENT, DIFFERS),
        judge=_judge,
        traits=_traits,
        trait_names=("gpu.peermem_loaded",),
    ),
)
