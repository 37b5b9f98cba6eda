"""What this machine has free, as its kernel says. Source: proc_meminfo(5), cgroup v2 (memory.max, memory.current)."""

from pathlib import Path

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")


def available_memory_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int | None:
    """Memory that can be had without swapping: the kernel's estimate, or what the control group's limit leaves if less.

    Args:
        proc: Where the kernel tells of itself.
        cgroup: Folder of this process's control group.

    Returns:
        Bytes; ``None`` where neither is said.
    """
    known = [bound for bound in (_estimate(proc), _left_in_group(cgroup)) if bound is not None]
    return min(known, default=None)


def _estimate(proc: Path) -> int | None:
    for line in _text(proc / "meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable" and value.split()[:1] and value.split()[0].isdigit():
            return int(value.split()[0]) * 1024
    return None


def _left_in_group(cgroup: Path) -> int | None:
    limit, used = (_text(cgroup / name).strip() for name in ("memory.max", "memory.current"))
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
