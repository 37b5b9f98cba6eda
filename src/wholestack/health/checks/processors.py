"""Processors: number, throttling by heat, frequency governor; NUMA nodes.

Sources: lscpu(1), Documentation/admin-guide/pm/cpufreq.rst and mm/numa.rst of the Linux kernel.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wholestack.health import telemetry
from wholestack.health.check import Cause, Check, Counter, Limit, Seen, Symptom, Trait
from wholestack.health.formats.proc import cpu_count, looks_like_counted, looks_like_lscpu, read_counted, read_lscpu
from wholestack.health.formats.sysfs import grep_failure, no_files, no_such_path, number, read_tree
from wholestack.health.growth import Growth, Levels, Memory
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe, UnreadableError
from wholestack.remote.batch import Command

LSCPU = Probe(
    command=Command(name="lscpu", shell="lscpu", limit_s=5, max_bytes=50_000),
    formats=(Format(name="lscpu", matches=looks_like_lscpu, read=read_lscpu),),
)
THROTTLE = Probe(
    command=Command(
        name="cpu_throttle",
        shell=(
            "cd /sys/devices/system/cpu && grep -s . cpu*/thermal_throttle/core_throttle_count "
            "cpu*/thermal_throttle/package_throttle_count"
        ),
        limit_s=5,
        max_bytes=500_000,
    ),
    formats=(
        Format(name="throttle counts in /sys", matches=lambda text: "throttle_count:" in text[:500], read=read_tree),
    ),
    absent=no_files(
        "the kernel counts no throttling (virtual machine, or another architecture)", "/sys/devices/system/cpu"
    ),
    failure=grep_failure,
)
GOVERNOR = Probe(
    command=Command(
        name="governor",
        shell="cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | sort | uniq -c",
        limit_s=5,
        max_bytes=10_000,
    ),
    formats=(Format(name="governors, counted", matches=looks_like_counted, read=read_counted),),
    absent=no_such_path(
        "the kernel scales no frequency (virtual machine, or set by the firmware)",
        "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One NUMA node."""

    name: str
    cpus: int
    memory_gib: float | None
    """``None`` if it is no number."""
    line: str


def read_nodes(text: str) -> list[Node]:
    """Every node of ``node*/cpulist`` and ``node*/meminfo``.

    Raises:
        UnreadableError: no node, or one without its CPUs.
    """
    tree = {re.sub(r"^.*/(?=node\d{1,4}/)", "", path): value for path, value in read_tree(text).items()}
    names = dict.fromkeys(path.partition("/")[0] for path in tree if path.startswith("node"))
    if not names:
        raise UnreadableError("no node")
    return [_node(name, tree) for name in names]


def _node(name: str, tree: Mapping[str, str]) -> Node:
    total = re.search(r"MemTotal:\s+(\d{1,18}) kB", tree.get(f"{name}/meminfo", ""))
    # grep prints no line for an empty file: a node of memory alone has no cpulist.
    cpus = tree.get(f"{name}/cpulist", "").strip()
    gib = int(total[1]) / 2**20 if total else None
    words = f"{gib:.1f} GiB" if gib is not None else "no MemTotal"
    return Node(
        name=name, cpus=cpu_count(cpus) if cpus else 0, memory_gib=gib, line=f"{name}: CPUs {cpus or 'none'}, {words}"
    )


NUMA = Probe(
    command=Command(
        name="numa",
        shell="cd /sys/devices/system/node && grep -s . node*/cpulist node*/meminfo",
        limit_s=5,
        max_bytes=500_000,
    ),
    formats=(
        Format(
            name="NUMA nodes in /sys",
            matches=lambda text: re.search(r"node\d+/", text[:500]) is not None,
            read=read_nodes,
        ),
    ),
    absent=no_files("the kernel knows no NUMA nodes", "/sys/devices/system/node"),
    failure=grep_failure,
)

CPU = Part(kind="cpu")
MEMORY = Part(kind="memory")

FEWER = Cause(
    code="cpu.count",
    says="number of CPUs differs",
    owner="vendor",
    remedy="compare lscpu with a good host: a socket or cores are disabled; reset the firmware, else replace the CPU",
    explains=("numa.nodes_differ",),
)
OTHER_CPU = Cause(
    code="cpu.model_differs",
    says="model of the CPUs differs",
    owner="cluster team",
    remedy="correct the inventory, or have the right CPU put in",
    status="warn",
)
THREADS = Cause(
    code="cpu.threads_differ",
    says="hyper-threading is set differently",
    owner="cluster team",
    remedy="set it in the firmware (or nosmt in the kernel's command line) as on the other hosts",
    status="warn",
    explains=("cpu.count",),
)
OFFLINE = Cause(
    code="cpu.offline",
    says="CPUs are off-line",
    owner="cluster team",
    remedy="echo 1 > /sys/devices/system/cpu/cpuN/online; if the kernel took them off after an error, replace the CPU",
    status="warn",
)
THROTTLED = Cause(
    code="cpu.throttled",
    says="CPUs throttle by heat",
    owner="data centre",
    remedy="check airflow, fans and inlet temperature; if they are right, have the vendor renew the heat sink's paste",
    status="warn",
    explains=("kernel.thermal", "kernel.machine_check_corrected"),
)
GOVERNED = Cause(
    code="cpu.governor",
    says="frequency governor saves power",
    owner="cluster team",
    remedy="cpupower frequency-set -g performance, and make it last (tuned-adm profile throughput-performance)",
    status="warn",
)
NODES = Cause(
    code="numa.nodes_differ",
    says="number of NUMA nodes differs",
    owner="cluster team",
    remedy="set NUMA nodes per socket (NPS, SNC) in the firmware as on the other hosts",
    status="warn",
)
NO_MEMORY = Cause(
    code="numa.no_memory",
    says="a NUMA node with CPUs has no memory",
    owner="data centre",
    remedy="dmidecode -t memory: reseat the DIMMs of that socket, then have the vendor replace what stays away",
)
UNBALANCED = Cause(
    code="numa.unbalanced",
    says="NUMA nodes have unequal memory",
    owner="data centre",
    remedy="dmidecode -t memory: a DIMM of the smaller node is missing or disabled; reseat it, else replace it",
    status="warn",
)

THROTTLE_RATE = Limit(
    name="cpu.throttles_per_hour", default=10, about="throttling events of one CPU an hour, a warning"
)
BALANCE = Limit(name="numa.balance_share", default=0.9, about="smallest over largest node below which is a warning")


def judge_count(seen: Seen) -> Iterator[Symptom]:
    """CPUs that are there and off-line, unless hyper-threading was turned off that way."""
    cpus = seen.of(LSCPU)
    threads_off = cpus.threads_per_core == 1 and 2 * cpus.offline_count == cpus.count
    if cpus.offline_count and not threads_off:
        yield Symptom(cause=OFFLINE, part=CPU, evidence=(f"Off-line CPU(s) list: {cpus.offline}",))


def _cpu_traits(seen: Seen) -> Iterator[Trait]:
    cpus = seen.of(LSCPU)
    found = (
        ("cpu.count", cpus.count, FEWER),
        ("cpu.sockets", cpus.sockets, FEWER),
        ("cpu.threads_per_core", cpus.threads_per_core, THREADS),
        ("cpu.model", cpus.model, OTHER_CPU),
    )
    for name, value, cause in found:
        if value:
            yield Trait(name=name, value=value, differs=cause, part=CPU)


def judge_throttle(seen: Seen) -> Iterator[Symptom]:
    """The core and the package that throttled most, by their rate."""
    tree = seen.of(THROTTLE)
    wrong = [f"{path}:{value}" for path, value in tree.items() if number(value) is None]
    if wrong:
        yield Symptom(cause=telemetry.FIELD, part=CPU, evidence=tuple(wrong[:4]))
    for counter in _throttles(tree):
        growth = _growth(counter, seen)
        if growth.status != "ok":
            evidence = f"{counter.part}: {growth.says}"
            yield Symptom(cause=THROTTLED, part=_throttled(tree, counter), evidence=(evidence,))


def _growth(counter: Counter, seen: Seen) -> Growth:
    return Memory(seen).growth(counter, Levels(warn=seen.limit(THROTTLE_RATE)))


def _counters(seen: Seen) -> Iterator[Counter]:
    for counter in _throttles(seen.of(THROTTLE)):
        yield from _growth(counter, seen).keep


def _throttles(tree: Mapping[str, str]) -> Iterator[Counter]:
    """The highest count of a core and of a package; each CPU repeats that of its package."""
    for part in ("core", "package"):
        counts = [number(text) for path, text in tree.items() if path.endswith(f"/{part}_throttle_count")]
        highest = max((count for count in counts if count is not None), default=None)
        if highest is not None:
            yield Counter(name="cpu.throttles", value=highest, part=part)


def _throttled(tree: Mapping[str, str], counter: Counter) -> Part:
    """The first CPU that shows that count."""
    name = f"/{counter.part}_throttle_count"
    shown = [path for path, text in tree.items() if path.endswith(name) and number(text) == counter.value]
    numbers = [int(found[1]) for path in shown if (found := re.search(r"cpu([0-9]{1,5})/", path))]
    return Part(kind="cpu", key=str(min(numbers))) if numbers else CPU


def judge_governor(seen: Seen) -> Iterator[Symptom]:
    """Governors that do not hold the frequency up."""
    counts = seen.of(GOVERNOR)
    saving = {name: count for name, count in counts.items() if name in ("powersave", "ondemand", "conservative")}
    if saving:
        shown = ", ".join(f"{count} CPUs {name}" for name, count in counts.items())
        yield Symptom(cause=GOVERNED, part=CPU, evidence=(shown,))


def _governor(seen: Seen) -> Iterator[Trait]:
    counts = seen.of(GOVERNOR)
    yield Trait(name="cpu.governor", value="+".join(sorted(counts)), differs=GOVERNED, part=CPU)


def judge_numa(seen: Seen) -> Iterator[Symptom]:
    """Nodes with CPUs should have equal memory; nodes of memory alone (expanders, GPUs) are not judged."""
    nodes = [node for node in seen.of(NUMA) if node.cpus]
    lines = tuple(node.line for node in nodes[:10])
    for node in nodes:
        if node.memory_gib is None:
            yield Symptom(cause=telemetry.FIELD, part=MEMORY, evidence=(node.line,))
        elif node.memory_gib < 0.1:
            yield Symptom(cause=NO_MEMORY, part=MEMORY, evidence=(node.line,))
    sizes = [node.memory_gib for node in nodes if node.memory_gib is not None and node.memory_gib >= 0.1]
    if sizes and min(sizes) < seen.limit(BALANCE) * max(sizes):
        yield Symptom(cause=UNBALANCED, part=MEMORY, evidence=lines)


def _nodes(seen: Seen) -> Iterator[Trait]:
    count = sum(1 for node in seen.of(NUMA) if node.cpus)
    yield Trait(name="numa.nodes", value=count, differs=NODES)


CHECKS = (
    Check(
        name="cpu.count",
        about="number and model of CPUs, sockets, threads; CPUs off-line",
        probes=(LSCPU,),
        parts=("cpu",),
        causes=(FEWER, OTHER_CPU, THREADS, OFFLINE),
        judge=judge_count,
        traits=_cpu_traits,
        trait_names=("cpu.count", "cpu.sockets", "cpu.threads_per_core", "cpu.model"),
    ),
    Check(
        name="cpu.throttle",
        about="CPUs that throttle by heat, by rate",
        probes=(THROTTLE,),
        parts=("cpu",),
        causes=(THROTTLED,),
        limits=(THROTTLE_RATE,),
        judge=judge_throttle,
        counters=_counters,
    ),
    Check(
        name="cpu.governor",
        about="frequency governors that save power",
        probes=(GOVERNOR,),
        parts=("cpu",),
        causes=(GOVERNED,),
        judge=judge_governor,
        traits=_governor,
        trait_names=("cpu.governor",),
    ),
    Check(
        name="numa.nodes",
        about="NUMA nodes: number, memory of each",
        probes=(NUMA,),
        parts=("memory", "host"),
        causes=(NODES, NO_MEMORY, UNBALANCED),
        limits=(BALANCE,),
        judge=judge_numa,
        traits=_nodes,
        trait_names=("numa.nodes",),
    ),
)
