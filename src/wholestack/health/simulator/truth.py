"""What was injected, and how what a sweep found compares with it.

The comparison knows nothing of the checks: it takes plain values. It is strict, and its rules are these.

* A fault is **found** if a Finding of its host says ``fail`` or ``warn`` and is about that fault. ``unknown`` counts as
  found only for a fault of a tool or of the connection. It is about a fault with names if its part names the broken
  part, or if it blames the host or the kind of part as a whole and its check or cause has one of the words that go with
  the kind of part (:data:`WORDS`). A fault without names has words of its own (:data:`SAID`), which its check, cause or
  part must have. Evidence does not count: a warning of Docker may quote a driver. So neither another broken part of
  the same kind nor a false alarm elsewhere on the host counts as a find.
* The **right part** is named if the text of the Finding's part contains one of the names of the broken part (an
  address, a serial number, a port, a device, a mount, ...) as a whole token: ``/dev/nvme1`` is not in ``/dev/nvme10``.
  A fault whose part is the host as a whole has no names; any part is right then.
* The **right owner** is one of the owners of the fault, in the same Finding that names the right part (or that found
  it, if none does).
* Each Finding can find one fault only; what is left over on a broken host is counted as ``extra`` (one physical fault
  should give one Finding), what is there on a host without a fault is a **false alarm** if it says ``fail``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from wholestack.record import Record

WORDS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu", "xid", "nvidia", "nvlink", "ecc", "pcie", "vbios"),
    "nvlink": ("nvlink", "gpu", "xid"),
    "nvswitch": ("nvswitch", "sxid", "fabric", "nvlink"),
    "hca": ("hca", "mlx5", "infiniband", "roce", "rdma", "ib"),
    "nic": ("nic", "ethernet", "interface", "link", "network", "bond", "optic", "transceiver", "mtu", "port"),
    "drive": ("drive", "disk", "nvme", "smart", "ssd", "pool", "zpool", "raid", "md", "array"),
    "file system": ("file", "filesystem", "mount", "inode", "disk", "nfs", "df"),
    "memory": ("memory", "dimm", "edac", "mce", "ram"),
    "cpu": ("cpu", "processor", "core", "numa", "governor", "mce", "machine"),
    "power and cooling": ("power", "fan", "psu", "supply", "temperature", "bmc", "sel", "sensor", "dimm", "ipmi",
                          "inlet"),
    "service": ("service", "unit", "systemd", "docker", "containerd", "fabric", "driver", "module", "persistence",
                "container", "runtime", "peermem", "library", "nvidia", "gpu"),
    "clock": ("clock", "time", "ntp", "chrony", "synchronised", "synchronized"),
    "process": ("process", "processes", "zombie", "gpu"),
    "host": ("host", "kernel", "parameter", "sysctl", "numa", "huge", "transparent", "overcommit", "zone", "iommu",
             "command", "cmdline", "bios", "firmware", "tainted", "oops", "bug", "swap", "pcie", "aer", "version",
             "unreachable", "ssh", "login"),
    "tool": ("telemetry", "tool", "reading"),
}  # fmt: skip
"""Words that a Finding about such a part would use in check or cause, for :func:`compare`."""

SAID: Mapping[str, tuple[str, ...]] = {
    "gpu_not_enumerated": ("gpus",),
    "gpu_persistence_off": ("persistence",),
    "driver_library_mismatch": ("driver libraries", "driver library"),
    "driver_not_loaded": ("driver run", "driver loaded"),
    "driver_version_drift": ("driver version",),
    "nvswitch_missing": ("nvswitches",),
    "fabric_manager_dead": ("fabric manager",),
    "fabric_manager_inactive": ("fabric manager",),
    "fabric_manager_restarting": ("fabric manager",),
    "hca_missing": ("adapters number", "adapters missing"),
    "peer_memory_missing": ("peer memory", "peermem"),
    "memory_speed_low": ("memory speed",),
    "cpu_offline": ("cpus", "cpu count"),
    "cpu_throttled": ("cpu throttle", "cpus throttle", "cpu hot"),
    "machine_check": ("machine check", "machine checks"),
    "cpu_governor": ("governor",),
    "cpu_soft_lockup": ("cpu hung", "lockup"),
    "numa_balancing_on": ("numa balancing",),
    "zone_reclaim_on": ("zone reclaim",),
    "huge_pages_drift": ("huge pages", "hugepage"),
    "overcommit_drift": ("overcommit",),
    "command_line_drift": ("command line", "kernel options"),
    "kernel_drift": ("kernel version",),
    "bios_drift": ("bios version",),
    "kernel_oops": ("kernel crashed", "oops"),
    "clock_not_synchronised": ("time sync", "clock source"),
    "time_daemon_dead": ("time sync", "clock source", "chrony", "chronyd", "timesyncd", "ntp", "ntpd"),
    "clock_offset": ("time sync", "clock off"),
    "clock_jump": ("clock jump", "clock jumped"),
    "docker_dead": ("docker answer", "docker failed"),
    "containerd_dead": ("containerd answer", "containerd failed"),
    "docker_gpu_runtime_missing": ("docker runtime",),
    "docker_storage_driver": ("docker storage driver",),
    "docker_version_drift": ("docker version",),
    "swap_on": ("swap",),
    "zombies": ("processes dead", "zombies", "defunct"),
    "processes_blocked": ("processes blocked", "processes hang"),
    "host_unreachable": ("telemetry host",),
    "host_refuses_login": ("telemetry host",),
    "host_key_changed": ("telemetry host",),
    "host_lost_half_way": ("telemetry host",),
    "host_answers_too_late": ("telemetry host",),
}
"""Of faults without names: words, all of one entry, that a Finding about it has in check, cause or part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth(Record):
    """One injected fault."""

    SCHEMA: ClassVar[str] = "injected/1"

    host: str
    fault: str
    """Name in the table of faults."""
    part: str
    """Kind of the part."""
    names: tuple[str, ...] = ()
    """Each identifies the part; none: the host as a whole."""
    owners: tuple[str, ...] = ()
    tool: bool = False
    """Whether ``unknown`` is the right verdict."""
    by_rate: bool = False
    """Whether only a second sweep can be certain."""
    severity: float = 0.5
    since: float = 0.0
    """True time of the injection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One Finding that is not ok, as plain values."""

    status: str
    part: str = ""
    owner: str = ""
    cause: str = ""
    check: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What became of one injected fault."""

    truth: Truth
    finding: Found | None
    right_part: bool
    right_owner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Figures over a fleet."""

    injected: int
    found: int
    right_part: int
    right_owner: int
    false_alarms: int
    """Hosts without a fault that a Finding calls unfit."""
    false_warnings: int
    """Hosts without a fault that are warned of and not called unfit."""
    unknown: int
    """Findings ``unknown`` that no fault of a tool explains."""
    extra: int
    """Findings on broken hosts that no fault of theirs accounts for."""
    matches: tuple[Match, ...] = field(default=())

    @property
    def missed(self) -> list[Truth]:
        """Faults that nothing found."""
        return [match.truth for match in self.matches if match.finding is None]


def compare(truths: Sequence[Truth], findings: Mapping[str, Iterable[Found]]) -> Comparison:
    """Compare what a sweep found with what was injected.

    Args:
        truths: All injected faults.
        findings: By host, every Finding that is not ``ok``; hosts without any may be left out.
    """
    by_host: dict[str, list[Truth]] = {}
    for truth in truths:
        by_host.setdefault(truth.host, []).append(truth)
    matches: list[Match] = []
    false_alarms = false_warnings = unknown = extra = 0
    for host, found in findings.items():
        open_findings = [each for each in found if each.status != "ok"]
        injected = by_host.pop(host, [])
        matched = _match(injected, open_findings)
        matches += matched
        left = [each for each in open_findings if not any(each is match.finding for match in matched)]
        blind = any(truth.tool for truth in injected)
        unknown += sum(each.status == "unknown" for each in left if not blind)
        if injected:
            extra += sum(each.status in {"fail", "warn"} for each in left)
        elif any(each.status == "fail" for each in left):
            false_alarms += 1
        elif any(each.status == "warn" for each in left):
            false_warnings += 1
    matches += [_nothing(truth) for unseen in by_host.values() for truth in unseen]
    return Comparison(
        injected=len(truths),
        found=sum(match.finding is not None for match in matches),
        right_part=sum(match.right_part for match in matches),
        right_owner=sum(match.right_owner for match in matches),
        false_alarms=false_alarms,
        false_warnings=false_warnings,
        unknown=unknown,
        extra=extra,
        matches=tuple(matches),
    )


def _match(truths: Sequence[Truth], found: Sequence[Found]) -> list[Match]:
    """Give each fault the best of the Findings that are left."""
    free, matches = list(found), []
    for truth in truths:
        ranked = sorted((each for each in free if _about(truth, each)), key=lambda each: _rank(truth, each))
        if not ranked:
            matches.append(_nothing(truth))
            continue
        best = ranked[0]
        free = [each for each in free if each is not best]
        matches.append(
            Match(
                truth=truth,
                finding=best,
                right_part=names_part(truth, best.part),
                right_owner=best.owner in truth.owners,
            )
        )
    return matches


def _nothing(truth: Truth) -> Match:
    return Match(truth=truth, finding=None, right_part=False, right_owner=False)


def _about(truth: Truth, found: Found) -> bool:
    if found.status not in ({"fail", "warn", "unknown"} if truth.tool else {"fail", "warn"}):
        return False
    if not truth.names:
        said = _words(found.check, found.cause, found.part)
        entries = SAID.get(truth.fault) or WORDS.get(truth.part, ())
        return any(said.issuperset(entry.split()) for entry in entries)
    if names_part(truth, found.part):
        return True
    said = _words(found.check, found.cause)
    whole = " " not in found.part.partition(" (")[0]
    return whole and any(word in said or f"{word}s" in said for word in WORDS.get(truth.part, ()))


def _words(*texts: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", " ".join(texts).lower()))


def _rank(truth: Truth, found: Found) -> tuple[bool, bool, int]:
    order = ("fail", "unknown", "warn") if not truth.tool else ("unknown", "fail", "warn")
    return (
        not names_part(truth, found.part),
        found.owner not in truth.owners,
        order.index(found.status),
    )


def names_part(truth: Truth, part: str) -> bool:
    """Whether the text of a part names the broken part (always, if that is the host as a whole)."""
    if not truth.names:
        return True
    text = part.lower()
    return any(re.search(rf"(?<![0-9a-z_]){re.escape(name.lower())}(?![0-9a-z_])", text) for name in truth.names)
