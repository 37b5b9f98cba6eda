"""Processes that hold memory of a GPU although they are gone, dead or stuck, and memory that nobody holds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.checks.nvidia import NVIDIA_SMI, UNREADABLE, Reader, listed, unreliable
from wholestack.health.formats.nvidia_smi import Gpu, Process, reading
from wholestack.health.probe import Format, NotThereError, Probe, UnreadableError
from wholestack.remote.batch import Command

STALE = Cause(
    code="gpu.stale_process",
    says="a dead or stuck process holds memory of the GPU",
    owner="cluster team",
    remedy="end it and its parent (fuser -v /dev/nvidia*); in state D only a reset of the GPU or a reboot helps",
    explains=("gpu.orphaned_memory", "processes.blocked"),
)
LEFT_BEHIND = Cause(
    code="gpu.process_left_behind",
    says="a process that lost its parent holds memory of the GPU",
    owner="cluster team",
    remedy="ask its user, then end it (kill PID); see why the job's end did not",
    status="warn",
    explains=("gpu.orphaned_memory",),
)
ORPHANED = Cause(
    code="gpu.orphaned_memory",
    says="memory of an idle GPU is in use, but no living process holds it",
    owner="cluster team",
    remedy="look for it with fuser -v /dev/nvidia*; if there is none, reset the GPU (nvidia-smi --gpu-reset -i ID)",
    status="warn",
)
ORPHANED_MIB = Limit(
    name="gpu.orphaned_mib", default=2048, about="MiB in use on an idle GPU without a process that are a warning"
)
LEFT_HOURS = Limit(
    name="gpu.process_left_hours", default=6, about="age of a process without parent on an idle GPU that is a warning"
)
_IDLE = ("clocks_event_reasons/clocks_event_reason_gpu_idle", "clocks_throttle_reasons/clocks_throttle_reason_gpu_idle")
HELD_MIB = 200.0
"""Least memory that a process which ps does not know must hold: more than what a driver's context leaves behind."""
_LINE = re.compile(r"\s*(\d{1,10})\s+(\d{1,10})\s+([A-Za-z][^\s]{0,9})\s+(\d{1,10})\s+(\S{1,64})\s+(\S[^\n]{0,300})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One line of ``ps``."""

    pid: int
    stuck: bool
    """Dead (state Z), or waits in the kernel (D)."""
    waits: bool
    """In state D."""
    parentless: bool
    """A child of process 1."""
    age_s: int
    user: str
    line: str


def _read_processes(text: str) -> dict[int, Running]:
    """One table; perhaps a second, taken later, of all processes or of those in state D. What was in state D once only
    was reading, not stuck."""
    tables: list[dict[int, Running]] = []
    for line in text.splitlines():
        if line.lstrip().startswith("PID"):
            tables.append({})
        elif tables and (words := _LINE.fullmatch(line)) is not None:
            pid, state = int(words[1]), words[3][0]
            tables[-1][pid] = Running(
                pid=pid,
                stuck=state in "ZDX",
                waits=state == "D",
                parentless=words[2] == "1",
                age_s=int(words[4]),
                user=words[5],
                line=line.strip(),
            )
    if not tables or not tables[0]:
        raise UnreadableError("ps lists no process")
    last = tables[-1]
    return {
        pid: replace(each, stuck=pid in last and last[pid].waits) if each.waits else each
        for pid, each in tables[0].items()
    }


PROCESSES: Probe[dict[int, Running]] = Probe(
    command=Command(
        name="processes",
        shell=(
            "ps -eo pid,ppid,stat,etimes,user:32,comm; sleep 2; "
            "ps -eo pid,ppid,stat,etimes,user:32,comm | awk 'NR == 1 || $3 ~ /^D/'"
        ),
        limit_s=10,
        max_bytes=3_000_000,
    ),
    formats=(
        Format(
            name="ps -eo pid,ppid,stat,etimes,user,comm",
            matches=lambda text: text.lstrip().startswith("PID"),
            read=_read_processes,
        ),
    ),
)


def _judge(seen: Seen) -> Iterator[Symptom]:
    smi, running = listed(seen), _running(seen)
    for gpu in smi.gpus:
        dead = [said for each in gpu.processes if (said := _dead(each, running))]
        gone = [each for each in gpu.processes if running is not None and each.pid not in running]
        if dead:
            yield Symptom(cause=STALE, part=gpu.part, evidence=tuple(dead))
        elif left := [said for each in gpu.processes if (said := _left(gpu, each, running, seen))]:
            yield Symptom(cause=LEFT_BEHIND, part=gpu.part, evidence=tuple(left))
        elif len(gone) == len(gpu.processes):
            yield from _orphaned(gpu, gone, seen)
    yield from unreliable(smi)


def _running(seen: Seen) -> dict[int, Running] | None:
    """Read here and not by :meth:`Seen.of`, since another check reads the same output for other facts."""
    output = seen.outputs.get(PROCESSES.name)
    try:
        return PROCESSES.read(output) if output is not None else None
    except (NotThereError, UnreadableError):
        return None


def _dead(process: Process, running: dict[int, Running] | None) -> str:
    """What ps says of a process that is dead (Z, X) or stuck (D) and holds memory."""
    if running is None or process.pid not in running:
        return ""
    line = running[process.pid]
    return f"{line.line} holds {_mib(process.used_mib)}" if line.stuck else ""


def _left(gpu: Gpu, process: Process, running: dict[int, Running] | None, seen: Seen) -> str:
    """What ps says of a process that nobody waits for any more.

    It is old and its GPU does nothing, or works for a job with a parent; beside another user's job, age is no matter.
    """
    line = running.get(process.pid) if running is not None else None
    if running is None or line is None or not line.parentless or (process.used_mib or 0) < HELD_MIB:
        return ""
    others = [other for each in gpu.processes if (other := running.get(each.pid)) is not None and not other.parentless]
    old = line.age_s >= seen.limit(LEFT_HOURS) * 3600 and (bool(others) or _is_idle(gpu))
    foreign = any(other.user != line.user for other in others)
    return f"{line.line} holds {_mib(process.used_mib)}" if old or foreign else ""


def _is_idle(gpu: Gpu) -> bool:
    """By its utilisation; where that is not told, as under MIG, by why its clocks are low."""
    load = reading(gpu, "utilization/gpu_util")
    if load.kind == "number":
        return load.number == 0
    return reading(gpu, *_IDLE).text.lower() == "active"


def _mib(used: float | None) -> str:
    return "memory" if used is None else f"{used:g} MiB"


def _orphaned(gpu: Gpu, gone: list[Process], seen: Seen) -> Iterator[Symptom]:
    """Under MIG, and where memory is handed to virtual machines, processes are not listed with the GPU."""
    least = HELD_MIB if gone else seen.limit(ORPHANED_MIB)
    used, load = reading(gpu, "fb_memory_usage/used"), reading(gpu, "utilization/gpu_util")
    if used.kind != "number" or used.number < least or gpu.mig_devices:
        return
    reader = Reader(gpu)
    if reader.word("mig_mode/current_mig", required=False) == "Enabled" or load.number > 0 or _is_shared(gpu):
        return
    names = tuple(f"pid {each.pid} ({each.name}) is unknown to ps, holds {_mib(each.used_mib)}" for each in gone)
    yield Symptom(
        cause=ORPHANED, part=gpu.part, evidence=(f"{used.text} in use, utilisation {load.text or 'N/A'}", *names)
    )


def _is_shared(gpu: Gpu) -> bool:
    mode = gpu.fields.get("gpu_virtualization_mode/host_vgpu_mode", "")
    return mode not in ("", "N/A", "Non SR-IOV", "None")


CHECKS = (
    Check(
        name="gpu.processes",
        about="dead or stuck processes that hold a GPU, and memory in use that nobody holds",
        probes=(NVIDIA_SMI, PROCESSES),
        parts=("gpu",),
        causes=(STALE, LEFT_BEHIND, ORPHANED, UNREADABLE),
        limits=(ORPHANED_MIB, LEFT_HOURS),
        judge=_judge,
    ),
)
