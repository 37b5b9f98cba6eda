"""Kernel parameters that change how fast or how safely a host trains.

Only two values are warned of by themselves, each with its source; all others are compared with profile or fleet:

* automatic NUMA balancing: "disable" (AMD Instinct system optimisation guides; NVIDIA Grace performance tuning guide);
* ``zone_reclaim_mode``: to be left disabled for file servers and workloads that gain from the page cache
  (Documentation/admin-guide/sysctl/vm.rst).

Bits of ``tainted``: Documentation/admin-guide/tainted-kernels.rst. Those of proprietary, out-of-tree and unsigned
modules and of plain warnings say nothing of the hardware.
"""

import re
from collections.abc import Iterator, Mapping

from wholestack.health import telemetry
from wholestack.health.check import Cause, Check, Seen, Symptom, Trait
from wholestack.health.formats.sysfs import grep_failure, number, read_tree
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command

PARAMETERS = Probe(
    command=Command(
        name="kernel_parameters",
        shell=(
            "grep -s . /proc/sys/kernel/numa_balancing /proc/sys/vm/zone_reclaim_mode "
            "/sys/kernel/mm/transparent_hugepage/enabled /proc/sys/vm/overcommit_memory /proc/sys/kernel/panic "
            "/proc/cmdline /proc/sys/kernel/tainted"
        ),
        limit_s=5,
        max_bytes=20_000,
    ),
    formats=(
        Format(
            name="kernel parameters",
            matches=lambda text: re.search(r"^/(?:proc|sys)/[\w/]+:", text[:1000], re.MULTILINE) is not None,
            read=read_tree,
        ),
    ),
    failure=grep_failure,
)


def _part(name: str) -> Part:
    """Each parameter is a part of its own: one that is known to be wrong explains no other."""
    return Part(kind="kernel", key=name)


DIFFERS = Cause(
    code="kernel.parameter_differs",
    says="kernel parameter differs",
    owner="cluster team",
    remedy="set it as on the other hosts (sysctl, or the kernel's command line and a reboot)",
    status="warn",
)
NUMA_BALANCING = Cause(
    code="kernel.numa_balancing",
    says="automatic NUMA balancing is on",
    owner="cluster team",
    remedy="sysctl kernel.numa_balancing=0, and in /etc/sysctl.d: it moves pages away under pinned training processes",
    status="warn",
    explains=("kernel.parameter_differs",),
)
ZONE_RECLAIM = Cause(
    code="kernel.zone_reclaim",
    says="zone reclaim is on",
    owner="cluster team",
    remedy="sysctl vm.zone_reclaim_mode=0, and in /etc/sysctl.d: allocations stall although other nodes have memory",
    status="warn",
    explains=("kernel.parameter_differs",),
)
TAINTED = Cause(
    code="kernel.tainted",
    says="the kernel met an error since boot",
    owner="cluster team",
    remedy="dmesg names it; drain and reboot the host; if it returns, the part that dmesg names is broken",
    status="warn",
)

BAD_TAINTS = ((4, "machine check"), (5, "bad page"), (7, "oops or BUG"), (14, "soft lock-up"))
COMPARED_NUMBERS = ("numa_balancing", "zone_reclaim_mode", "overcommit_memory", "panic")
COMPARED_OPTIONS = (
    "iommu", "intel_iommu", "amd_iommu", "mitigations", "numa_balancing", "nosmt", "isolcpus", "nohz_full", "pcie_aspm",
    "pci", "processor.max_cstate", "intel_idle.max_cstate", "intel_pstate", "amd_pstate", "hugepagesz", "hugepages",
    "default_hugepagesz", "transparent_hugepage", "idle", "tsc", "clocksource", "cgroup_no_v1",
    "systemd.unified_cgroup_hierarchy",
)  # fmt: skip
"""Of the command line; the rest (root, console, UUIDs) differs from host to host by right."""


def judge_parameters(seen: Seen) -> Iterator[Symptom]:
    """Two settings, and what the kernel noted of itself."""
    tree = seen.of(PARAMETERS)
    for name, cause in (("numa_balancing", NUMA_BALANCING), ("zone_reclaim_mode", ZONE_RECLAIM)):
        yield from _must_be_off(tree, name, cause)
    text = _value(tree, "tainted")
    taint = number(text)
    if text is not None and taint is None:
        yield Symptom(cause=telemetry.FIELD, part=_part("tainted"), evidence=(f"tainted: {text[:40]}",))
    reasons = [words for bit, words in BAD_TAINTS if (taint or 0) >> bit & 1]
    if reasons:
        yield Symptom(cause=TAINTED, evidence=(f"/proc/sys/kernel/tainted: {taint} ({', '.join(reasons)})",))


def _must_be_off(tree: Mapping[str, str], name: str, cause: Cause) -> Iterator[Symptom]:
    text = _value(tree, name)
    if text is None or text == "0":
        return
    known = number(text) is not None
    yield Symptom(cause=cause if known else telemetry.FIELD, part=_part(name), evidence=(f"{name}: {text[:40]}",))


def _value(tree: Mapping[str, str], name: str) -> str | None:
    return next((value.strip() for path, value in tree.items() if path.rsplit("/", 1)[-1] == name), None)


def _traits(seen: Seen) -> Iterator[Trait]:
    tree = seen.of(PARAMETERS)
    for name in COMPARED_NUMBERS:
        if (value := number(_value(tree, name))) is not None:
            yield Trait(name=f"kernel.{name}", value=value, differs=DIFFERS, part=_part(name))
    pages = re.search(r"\[(\w+)\]", _value(tree, "enabled") or "")
    if pages:
        yield Trait(
            name="kernel.transparent_hugepage", value=pages[1], differs=DIFFERS, part=_part("transparent_hugepage")
        )
    line = _value(tree, "cmdline")
    if line is not None:
        options = sorted(word for word in line.split() if word.partition("=")[0] in COMPARED_OPTIONS)
        yield Trait(name="kernel.options", value=" ".join(options), differs=DIFFERS, part=_part("options"))


CHECKS = (
    Check(
        name="kernel.parameters",
        about="NUMA balancing, huge pages, IOMMU and others; errors that the kernel noted since boot",
        probes=(PARAMETERS,),
        parts=("kernel", "host"),
        causes=(DIFFERS, NUMA_BALANCING, ZONE_RECLAIM, TAINTED),
        judge=judge_parameters,
        traits=_traits,
        trait_names=(
            *(f"kernel.{name}" for name in COMPARED_NUMBERS),
            "kernel.transparent_hugepage",
            "kernel.options",
        ),
    ),
)
