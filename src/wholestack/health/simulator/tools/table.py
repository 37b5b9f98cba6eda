"""The plain table of tools: which words of a shell command mean which tool, and what answers it.

The first line all of whose words are in the command wins. A command that no line knows is not installed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools import (
    bmc,
    drives,
    ethernet,
    memory,
    nvlink,
    pci,
    processor,
    rdma,
    services,
    smi_query,
    storage,
    system,
)
from wholestack.health.simulator.tools.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    words: tuple[str, ...]
    """All in the shell text."""
    answer: Callable[[Machine], Answer]
    still: bool = False
    """Whether its output changes only when the host does, not with the time: then it is kept."""


TOOLS: tuple[Tool, ...] = (
    Tool(name="container_gpu", words=("docker run", "nvidia-smi"), answer=services.container_gpu),
    Tool(name="nvidia_smi", words=("nvidia-smi -q -x",), answer=smi_query.query),
    Tool(name="nvlink_status", words=("nvidia-smi nvlink -s",), answer=nvlink.status, still=True),
    Tool(name="nvlink_errors", words=("nvidia-smi nvlink -e",), answer=nvlink.errors),
    Tool(name="nvidia_list", words=("nvidia-smi -L",), answer=nvlink.listing, still=True),
    Tool(name="moment", words=("/proc/sys/kernel/random/boot_id",), answer=system.moment),
    Tool(name="kernel_log", words=("dmesg",), answer=system.kernel_log),
    Tool(name="pci", words=("lspci",), answer=pci.listing, still=True),
    Tool(name="pci_links", words=("/sys/bus/pci/devices", "current_link_speed"), answer=pci.links),
    Tool(name="driver_version", words=("/proc/driver/nvidia/version",), answer=system.driver_version, still=True),
    Tool(name="modules", words=("/proc/modules",), answer=system.modules, still=True),
    Tool(name="fabric_manager_log", words=("fabricmanager.log",), answer=system.fabric_log),
    Tool(
        name="fabric_manager",
        words=("systemctl show", "nvidia-fabricmanager"),
        answer=system.fabric_manager,
        still=True,
    ),
    Tool(name="infiniband_pci", words=("ls -l /sys/class/infiniband",), answer=rdma.addresses, still=True),
    Tool(name="infiniband", words=("/sys/class/infiniband", "fw_ver"), answer=rdma.attributes),
    Tool(name="optics", words=("ethtool -m",), answer=ethernet.optics),
    Tool(name="ethernet", words=("/sys/class/net", "operstate"), answer=ethernet.attributes),
    Tool(name="smart", words=("smartctl",), answer=drives.smart),
    Tool(name="df_inodes", words=("df -lPi",), answer=storage.df_inodes),
    Tool(name="df", words=("df -",), answer=storage.df_bytes),
    Tool(name="nfs", words=("stat -f", "nfs"), answer=storage.nfs, still=True),
    Tool(name="mounts", words=("/proc/mounts",), answer=storage.mounts, still=True),
    Tool(name="fstab", words=("/etc/fstab",), answer=storage.fstab, still=True),
    Tool(name="zpool", words=("zpool status",), answer=storage.zpool, still=True),
    Tool(name="mdstat", words=("/proc/mdstat",), answer=storage.mdstat, still=True),
    Tool(name="edac", words=("/sys/devices/system/edac",), answer=memory.edac),
    Tool(name="meminfo", words=("/proc/meminfo",), answer=memory.meminfo),
    Tool(name="dmi_memory", words=("dmidecode", "memory"), answer=memory.modules, still=True),
    Tool(name="dmi_system", words=("dmidecode", "system"), answer=memory.firmware, still=True),
    Tool(name="lscpu", words=("lscpu",), answer=processor.lscpu, still=True),
    Tool(name="cpu_throttle", words=("thermal_throttle",), answer=processor.throttles),
    Tool(name="governor", words=("scaling_governor",), answer=processor.governor, still=True),
    Tool(name="numa", words=("/sys/devices/system/node", "cpulist"), answer=processor.numa),
    Tool(name="kernel_parameters", words=("numa_balancing",), answer=system.kernel_parameters, still=True),
    Tool(name="time_sync", words=("chronyc",), answer=services.time_sync),
    Tool(name="docker", words=("docker info",), answer=services.docker),
    Tool(name="containerd", words=("ctr version",), answer=services.containerd, still=True),
    Tool(name="systemd", words=("systemctl --failed",), answer=system.failed_units, still=True),
    Tool(name="os_release", words=("/etc/os-release",), answer=system.os_release, still=True),
    Tool(name="machine_id", words=("/etc/machine-id",), answer=system.machine_id, still=True),
    Tool(name="swap", words=("/proc/swaps",), answer=system.swap, still=True),
    Tool(name="processes", words=("ps -eo",), answer=system.processes),
    Tool(name="sel_time", words=("ipmitool sel time get",), answer=bmc.clock),
    Tool(name="sel", words=("ipmitool", "sel"), answer=bmc.event_log),
    Tool(name="sensors", words=("ipmitool", "sdr"), answer=bmc.sensors, still=True),
)


def tool_of(shell: str) -> Tool | None:
    """The tool that a shell command asks for."""
    for tool in TOOLS:
        if all(word in shell for word in tool.words):
            return tool
    return None
