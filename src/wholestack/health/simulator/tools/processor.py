"""Processors: ``lscpu``, throttle counters, governor, NUMA nodes.

Source: kernel documentation, ABI/testing/sysfs-devices-system-cpu.
``thermal_throttle`` exists on Intel only; without a frequency driver there is no ``cpufreq`` folder at all.
"""

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer, grep
from wholestack.health.simulator.tools.memory import total_kib, used_share


def lscpu(machine: Machine) -> Answer:
    """``lscpu`` of util-linux 2.37."""
    cpu = machine.cpu
    online = [number for number in range(cpu.count) if number not in cpu.offline]
    rows = [
        ("Architecture", "x86_64"),
        ("CPU op-mode(s)", "32-bit, 64-bit"),
        ("Address sizes", "52 bits physical, 57 bits virtual"),
        ("Byte Order", "Little Endian"),
        ("CPU(s)", str(cpu.count)),
        ("On-line CPU(s) list", _ranges(online)),
    ]
    if cpu.offline:
        rows.append(("Off-line CPU(s) list", _ranges(sorted(cpu.offline))))
    rows += [
        ("Vendor ID", cpu.vendor),
        ("Model name", cpu.model),
        ("CPU family", str(cpu.family)),
        ("Model", str(cpu.model_number)),
        ("Thread(s) per core", str(cpu.threads_per_core)),
        ("Core(s) per socket", str(cpu.cores_per_socket)),
        ("Socket(s)", str(cpu.sockets)),
        ("Stepping", str(cpu.stepping)),
        ("Frequency boost", "enabled"),
        ("CPU max MHz", f"{cpu.max_mhz:.4f}"),
        ("CPU min MHz", f"{cpu.min_mhz:.4f}"),
        ("BogoMIPS", "4000.00"),
        ("Flags", "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2"),
        ("Virtualization", "VT-x" if cpu.vendor == "GenuineIntel" else "AMD-V"),
        ("NUMA node(s)", str(cpu.nodes)),
    ]
    rows += [(f"NUMA node{node} CPU(s)", _ranges(_online(machine, node))) for node in range(cpu.nodes)]
    rows += [("Vulnerability Meltdown", "Not affected"), ("Vulnerability Spectre v1", "Mitigation; usercopy/swapgs")]
    return Answer(stdout="".join(f"{name + ':':<33}{value}\n" for name, value in rows))


def _online(machine: Machine, node: int) -> list[int]:
    return [number for number in machine.cpu.of_node(node) if number not in machine.cpu.offline]


def _ranges(numbers: list[int]) -> str:
    out: list[str] = []
    start = previous = None
    for number in [*sorted(numbers), None]:
        if start is not None and previous is not None and number != previous + 1:
            out.append(str(start) if start == previous else f"{start}-{previous}")
            start = None
        if start is None:
            start = number
        previous = number
    return ",".join(out)


def throttles(machine: Machine) -> Answer:
    """Counters of thermal throttling of each core and its package."""
    cpu = machine.cpu
    if cpu.vendor != "GenuineIntel":
        return Answer(exit_status=2)
    cores = cpu.sockets * cpu.cores_per_socket
    online = sorted((number for number in range(cpu.count) if number not in cpu.offline), key=str)
    values = [
        (f"cpu{number}/thermal_throttle/core_throttle_count", str(cpu.core_throttles.get(number % cores, 0)))
        for number in online
    ]
    values += [
        (
            f"cpu{number}/thermal_throttle/package_throttle_count",
            str(cpu.package_throttles.get(number % cores // cpu.cores_per_socket, 0)),
        )
        for number in online
    ]
    return grep(values)


def governor(machine: Machine) -> Answer:
    """How many processors run which frequency governor (``sort | uniq -c``)."""
    cpu = machine.cpu
    if cpu.governor is None:
        path = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
        return Answer(stderr=f"cat: '{path}': No such file or directory\n")
    counts: dict[str, int] = {}
    for number in range(cpu.count):
        if number not in cpu.offline:
            name = cpu.odd_governors.get(number, cpu.governor)
            counts[name] = counts.get(name, 0) + 1
    return Answer(stdout="".join(f"{count:7d} {name}\n" for name, count in sorted(counts.items())))


def numa(machine: Machine) -> Answer:
    """Processors and memory of each node."""
    nodes = range(machine.cpu.nodes)
    values = [(f"node{node}/cpulist", _ranges(_online(machine, node))) for node in nodes]
    for node in nodes:
        total = total_kib(machine, node)
        used = int(total * used_share(machine))
        values += [
            (f"node{node}/meminfo", f"Node {node} {name + ':':<15}{value:>9} kB")
            for name, value in (("MemTotal", total), ("MemFree", total - used), ("MemUsed", used), ("Active", used))
        ]
    return grep(values)
