"""What else the kernel log tells: no memory, machine checks, drives, file systems, NFS, hangs, oopses, links, heat.

Events count within a window before the look and only since boot; a fault that only the log shows heals after that
window. What is about a whole boot (a PCIe link that came up narrow) counts for the whole boot.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.checks.nvidia import JOB_HOURS, KERNEL_LOG, QUIET_HOURS, recent
from wholestack.health.checks.pci import LINKS
from wholestack.health.formats.kernel_log import Line
from wholestack.health.parts import HOST, Part, PartKind, pci_key

OOM = Cause(
    code="kernel.oom",
    says="the kernel ended processes because memory ran out",
    owner="job owner",
    remedy="use less memory (data loader workers, caches), or ask for more; see which process in the evidence",
    status="warn",
)
MACHINE_CHECK = Cause(
    code="kernel.machine_check",
    says="uncorrected machine check",
    owner="vendor",
    remedy="drain; read BMC log and rasdaemon for DIMM or CPU; have the part replaced",
    explains=("kernel.machine_check_corrected",),
)
MACHINE_CHECK_CORRECTED = Cause(
    code="kernel.machine_check_corrected",
    says="corrected machine checks",
    owner="vendor",
    remedy="read BMC log and rasdaemon for DIMM or CPU; plan a replacement if they go on",
    status="warn",
)
IO_ERROR = Cause(
    code="kernel.io_error",
    says="drive fails to read or write",
    owner="vendor",
    remedy="read its SMART data (smartctl -a), copy what matters, have the drive replaced",
    explains=(
        "kernel.nvme",
        "kernel.ata",
        "kernel.readonly",
        "kernel.file_system",
        "mount.readonly",
        "drive.missing",
        "pci.nvme",
    ),
)
NVME = Cause(
    code="kernel.nvme",
    says="NVMe drive does not answer in time",
    owner="vendor",
    remedy="read its SMART data (smartctl -a) and firmware version; have the drive replaced if it goes on",
    status="warn",
)
ATA = Cause(
    code="kernel.ata",
    says="SATA drive or its link makes errors",
    owner="vendor",
    remedy="reseat drive and cable; read its SMART data (smartctl -a)",
    status="warn",
)
READ_ONLY = Cause(
    code="kernel.readonly",
    says="file system was made read-only after an error",
    owner="cluster team",
    remedy="drain; read SMART data of its drive; unmount, check (fsck, xfs_repair) and mount it again",
    explains=("mount.readonly", "kernel.file_system"),
)
FILE_SYSTEM = Cause(
    code="kernel.file_system",
    says="file system found errors in itself",
    owner="cluster team",
    remedy="drain; read SMART data of its drive; unmount, check (fsck, xfs_repair) and mount it again",
    status="warn",
)
NFS = Cause(
    code="kernel.nfs",
    says="NFS server does not answer",
    owner="cluster team",
    remedy="look at the server and the network to it; mount | grep nfs names what hangs; a hard mount waits for ever",
    explains=("kernel.hung_task", "processes.blocked"),
)
HUNG_TASK = Cause(
    code="kernel.hung_task",
    says="a task hangs in the kernel",
    owner="cluster team",
    remedy="look at its stack in dmesg for storage or driver; reboot the host if it stays",
    status="warn",
)
LOCKUP = Cause(
    code="kernel.lockup",
    says="a CPU hung in the kernel",
    owner="cluster team",
    remedy="drain and reboot; look at the stack in dmesg for the driver; to the vendor if it returns",
    explains=("kernel.hung_task",),
)
OOPS = Cause(
    code="kernel.oops",
    says="the kernel crashed in part",
    owner="cluster team",
    remedy="drain and reboot; look at the stack in dmesg for the driver",
    explains=("kernel.lockup", "kernel.hung_task", "kernel.tainted"),
)
LINK_FLAP = Cause(
    code="kernel.link_flap",
    says="network link goes down and up",
    owner="data centre",
    remedy="clean and reseat cable and transceiver at both ends; then replace them",
    status="warn",
)
MODULE = Cause(
    code="kernel.port_module",
    says="cable or transceiver reports an error",
    owner="data centre",
    remedy="read it with ethtool -m or mlxlink; reseat it, see to its air flow, then replace it",
    status="warn",
)
PCIE_LIMITED = Cause(
    code="kernel.pcie_limited",
    says="adapter has less PCIe bandwidth than it could",
    owner="vendor",
    remedy="power-cycle the host; reseat adapter, riser or cable",
    status="warn",
)
AER = Cause(
    code="kernel.pcie_error",
    says="uncorrected PCIe errors",
    owner="vendor",
    remedy="reseat the device or riser; have device or board replaced if errors return",
)
THROTTLED = Cause(
    code="kernel.thermal",
    says="CPU slowed down: too hot",
    owner="data centre",
    remedy="check fans, air flow, inlet temperature and heat sinks",
    status="warn",
    explains=("cpu.throttled",),
)
FLAPS = Limit(name="kernel.link_flaps", default=3, about="times that a link goes down within the quiet hours that warn")
CORRECTED = Limit(
    name="kernel.corrected_machine_checks", default=2, about="corrected machine checks in the quiet hours that warn"
)
TIMEOUTS = Limit(
    name="kernel.nvme_timeouts", default=2, about="time-outs of an NVMe drive in the quiet hours that warn"
)

_KILLED = re.compile(r"(?:out of memory: Kill(?:ed)? process|oom-kill:constraint|oom_reaper: reaped)", re.IGNORECASE)
_MODULE_ERROR = re.compile(r"mlx5_core ([0-9a-f:.]{7,16}): Port module event\[error\]: module (\d{1,4}),")
_MCE = re.compile(r"\[Hardware Error\]|machine check|mce: |EDAC MC\d{1,3}: \d{1,6} [UC]E ", re.IGNORECASE)
_MODULE = re.compile(r"EDAC MC\d{1,3}: \d{1,6} [UC]E [^\n]{0,80}? on (\S{1,80})")
_MCE_BANNER = re.compile(
    r"mce: (?:CPU supports|Using|CPU\d{1,5}: Thermal)|machine check (?:support|polling)|.{0,100}cpu clock throttled"
    r"|MCE support|BERT: Error records|(?:HEST|GHES|ERST|EINJ): ",
    re.IGNORECASE,
)
_UNCORRECTED = re.compile(
    r"uncorrect|\bfatal\b|panic|context corrupt|severity: (?:recoverable|fatal)|\bUE\b", re.IGNORECASE
)
_CORRECTED_WORDS = re.compile(r"corrected (?:error|event)|severity: corrected", re.IGNORECASE)
_CPU = re.compile(r"\bCPU:? ?(\d{1,5})\b", re.IGNORECASE)
_IO = re.compile(
    r"(?:(?:I/O|critical medium|timeout|protection) error,? (?:on )?dev(?:ice)? |"
    r"critical target error, dev (?=[a-zA-Z0-9_\-]{2,30}, sector \d{1,20}(?: op 0x[01]:|$))|"
    r"(?:Buffer )?I/O error on dev(?:ice)? )([a-zA-Z0-9_\-]{2,30})"
)
"""``blk_errors`` of Linux, block/blk-core.c, less those that do not blame the drive: full thin pools, reservations,
operations that it does not have (a discard that it refuses is a "critical target error" too), paths, zones."""
_NVME_MEDIA = re.compile(
    r"\b(nvme\d{1,4}(?:c\d{1,3})?n\d{1,4}): [^\n]{1,60} @ LBA \d{1,20}, .{1,80}\(sct 0x2 / sc 0x8[0-4]\)"
)
"""``nvme_log_error`` of Linux; status code type 2 of the NVMe base specification: media and data integrity, without
a failed compare, denied access and blocks never written."""
_NVME_DEAD = re.compile(
    r"nvme (nvme\d{1,4}):.{0,40}(?:controller is down|Removing after probe failure|Device not ready|Disabling device|"
    r"failed to set|reset failed|Abort status: 0x(?!0\b)[1-9a-f])",
    re.IGNORECASE,
)
_NVME_SLOW = re.compile(r"nvme (nvme\d{1,4}): I/O .{0,80}(?:timeout|timed out)", re.IGNORECASE)
_ATA = re.compile(r"\b(ata\d{1,4})(?:\.\d{1,3})?: .{0,40}Emask")
_READ_ONLY = re.compile(
    r"(?:EXT[234]-fs|XFS|BTRFS|F2FS)[^\n]{0,10}\((?:device )?([a-zA-Z0-9_\-/]{2,40})\)[^\n]{0,120}?"
    r"(?:Remounting filesystem read-only|forced readonly|Shutting down filesystem|remounting read-only)"
)
_FS_ERROR = re.compile(r"(?:EXT[234]-fs error|BTRFS error) \(device ([a-zA-Z0-9_\-/]{2,40})\)")
_NFS = re.compile(r"nfs: server (\S{1,200}?) (not responding|OK)")
_HUNG = re.compile(r"INFO: task (\S{1,80}?):(\d{1,10}) blocked for more than (\d{1,8}) seconds")
_LOCKUP = re.compile(
    r"soft lockup - CPU#?\s?\d{1,5} stuck|hard LOCKUP|rcu_?\w{0,20} (?:self-)?detected (?:expedited )?stalls?"
    r"|self-detected stall on CPU",
    re.IGNORECASE,
)
_OOPS = re.compile(r"Kernel panic - not syncing|BUG: unable to handle|kernel BUG at|\bOops: |general protection fault")
_USER_FAULT = re.compile(r"traps: |\bip:[0-9a-f]")
_HCA_DOWN = re.compile(r"mlx5_core [0-9a-f:.]{7,16} (mlx5_\d{1,3}): Port: (\d{1,2}) Link DOWN", re.IGNORECASE)
_NIC_DOWN = re.compile(
    r"(?:^|[\s:])(?!mlx5_\d)([a-z][a-zA-Z0-9]{1,14}(?:np\d|f\d){0,2}): (?:NIC )?Link (?:is )?down\b", re.IGNORECASE
)
_LIMITED = re.compile(
    r"mlx5_core ([0-9a-f:.]{7,16}): [\d.]{1,9} Gb/s available PCIe bandwidth, limited by", re.IGNORECASE
)
_ADDRESS = r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"
_AER = re.compile(_ADDRESS + r": AER: .{0,60}Uncorrect", re.IGNORECASE)
_SENDER = re.compile(r"(?:received|from):? " + _ADDRESS, re.IGNORECASE)
_HOT = re.compile(r"CPU(\d{1,5}): (?:Package|Core) temperature (?:is )?above threshold")
_HARMLESS_DRIVE = re.compile(r"(?:fd|sr|loop|ram|zram)\d")


def _grouped(lines: Iterable[Line], key: Callable[[Line], Part | None]) -> dict[str, tuple[Part, list[Line]]]:
    found: dict[str, tuple[Part, list[Line]]] = {}
    for line in lines:
        part = key(line)
        if part is not None:
            found.setdefault(part.identity, (part, []))[1].append(line)
    return found


def _said(lines: Sequence[Line]) -> tuple[str, ...]:
    """Number of lines, the first and the newest of them."""
    head = f"{len(lines)} lines; the last:" if len(lines) > 1 else ""
    shown = [line.text for line in lines[-3:][::-1]]
    return (head, *shown) if head else tuple(shown)


def _window(seen: Seen, *words: str) -> list[Line]:
    return recent(seen, seen.limit(QUIET_HOURS), *words)


def _judge_oom(seen: Seen) -> Iterator[Symptom]:
    dated = recent(seen, seen.limit(JOB_HOURS), "ut of memory", "oom-kill", "oom_reaper")
    lines = [line for line in dated if _KILLED.search(line.message)]
    if lines:
        yield Symptom(cause=OOM, evidence=_said(lines))


def _judge_machine_check(seen: Seen) -> Iterator[Symptom]:
    """Where EDAC names a memory module, the CPU that saw it is not to blame."""
    lines = [
        line
        for line in _window(seen, "achine check", "Hardware Error", "mce: ", "EDAC MC")
        if _MCE.search(line.message) and not _MCE_BANNER.search(line.message)
    ]
    module = next((found for line in lines[::-1] if (found := _MODULE.search(line.message))), None)
    part = Part(kind="dimm", key=module[1]) if module is not None else None
    bad = [line for line in lines if _UNCORRECTED.search(line.message) and not _CORRECTED_WORDS.search(line.message)]
    for blamed, of_part in _grouped(bad, lambda line: part or _cpu(line)).values():
        yield Symptom(cause=MACHINE_CHECK, part=blamed, evidence=_said(of_part))
    if not bad and len(lines) >= seen.limit(CORRECTED):
        cpus = {each.identity: each for line in lines if (each := _cpu(line)).kind == "cpu"}
        only = next(iter(cpus.values())) if len(cpus) == 1 else HOST
        yield Symptom(cause=MACHINE_CHECK_CORRECTED, part=part or only, evidence=_said(lines))


def _cpu(line: Line) -> Part:
    found = _CPU.search(line.message)
    return Part(kind="cpu", key=found[1]) if found else HOST


def _drive(name: str) -> Part:
    """``nvme0n1p2`` is on ``/dev/nvme0``, ``sda1`` on ``/dev/sda``."""
    whole = re.match(r"(nvme\d{1,4})(?:c\d{1,3})?(?:n\d{1,4})?|([shv]d[a-z]{1,3})\d{0,3}$", name)
    return Part(kind="drive", key=f"/dev/{(whole[1] or whole[2]) if whole else name}")


def _judge_io(seen: Seen) -> Iterator[Symptom]:
    lines = _window(seen, "I/O error", " error, dev ", "nvme", "Emask")
    failed = _grouped(lines, lambda line: _named_drive(line, _IO, _NVME_MEDIA, _NVME_DEAD))
    for part, of_part in failed.values():
        yield Symptom(cause=IO_ERROR, part=part, evidence=_said(of_part))
    for part, of_part in _grouped(lines, lambda line: _named_drive(line, _NVME_SLOW)).values():
        if len(of_part) >= seen.limit(TIMEOUTS):
            yield Symptom(cause=NVME, part=part, evidence=_said(of_part))
    for part, of_part in _grouped(lines, _ata).values():
        yield Symptom(cause=ATA, part=part, evidence=_said(of_part))


def _named_drive(line: Line, *patterns: re.Pattern[str]) -> Part | None:
    for pattern in patterns:
        found = pattern.search(line.message)
        if found is not None and not _HARMLESS_DRIVE.match(found[1]):
            return _drive(found[1])
    return None


def _ata(line: Line) -> Part | None:
    found = _ATA.search(line.message)
    return Part(kind="drive", key=found[1]) if found and "Emask 0x0 (" not in line.message else None


def _judge_read_only(seen: Seen) -> Iterator[Symptom]:
    """An error that the file system met says nothing of the drive; the drive's own errors do."""
    places = _mounted(seen)

    def part_of(pattern: re.Pattern[str], line: Line) -> Part | None:
        found = pattern.search(line.message)
        if found is None:
            return None
        device = found[1] if found[1].startswith("/") else f"/dev/{found[1]}"
        within = (_drive(device.removeprefix("/dev/")).identity,)
        place = places.get(device) or (_only_mapped(places) if re.fullmatch(r"/dev/dm-\d{1,4}", device) else None)
        return Part(kind="mount", key=place or device, label=device if place else "", within=within)

    lines = _window(seen, "ead-only", "readonly", "Shutting down filesystem", "EXT4-fs error")
    for pattern, cause in ((_READ_ONLY, READ_ONLY), (_FS_ERROR, FILE_SYSTEM)):
        for part, of_part in _grouped(lines, partial(part_of, pattern)).values():
            yield Symptom(cause=cause, part=part, evidence=_said(of_part))


def _mounted(seen: Seen) -> dict[str, str]:
    """Device or export to mount point, if the host told ``/proc/mounts``."""
    output = seen.outputs.get("mounts")
    text = output.text if output is not None and output.ending == "ended" else ""
    return {words[0]: words[1] for line in text.splitlines() if len(words := line.split(" ")) >= 4}


def _only_mapped(places: dict[str, str]) -> str | None:
    """The kernel says ``dm-0``, mounts say ``/dev/mapper/vg0-root``: that is clear where only one is mounted."""
    mapped = [place for device, place in places.items() if device.startswith("/dev/mapper/")]
    return mapped[0] if len(mapped) == 1 else None


def _judge_nfs(seen: Seen) -> Iterator[Symptom]:
    """A server that said OK later has come back."""
    last: dict[str, tuple[str, list[Line]]] = {}
    for line in _window(seen, "nfs: server"):
        found = _NFS.search(line.message)
        if found is not None:
            lines = last.get(found[1], ("", []))[1]
            last[found[1]] = (found[2], [] if found[2] == "OK" else [*lines, line])
    places = _mounted(seen)
    for server, (state, lines) in last.items():
        if state != "OK":
            mounts = [place for export, place in places.items() if export.startswith(f"{server}:")]
            part = Part(kind="mount", key=mounts[0], label=server) if len(mounts) == 1 else HOST
            yield Symptom(cause=NFS, part=part, evidence=(f"server {server}", *_said(lines)))


def _judge_hangs(seen: Seen) -> Iterator[Symptom]:
    hung = [line for line in _window(seen, "blocked for more than") if _HUNG.search(line.message)]
    if hung:
        yield Symptom(cause=HUNG_TASK, evidence=_said(hung))
    stuck = [line for line in _window(seen, "lockup", "LOCKUP", "stall") if _LOCKUP.search(line.message)]
    if stuck:
        yield Symptom(cause=LOCKUP, evidence=_said(stuck))


def _judge_oops(seen: Seen) -> Iterator[Symptom]:
    lines = [
        line
        for line in _window(seen, "BUG", "Oops", "Kernel panic", "general protection")
        if _OOPS.search(line.message) and not _USER_FAULT.search(line.message)
    ]
    if lines:
        yield Symptom(cause=OOPS, part=Part(kind="kernel"), evidence=_said(lines))


def _judge_links(seen: Seen) -> Iterator[Symptom]:
    lines = _window(seen, "mlx5_core", "Link is ")
    for part, of_part in _grouped(lines, _flapping).values():
        if len(of_part) >= seen.limit(FLAPS):
            yield Symptom(cause=LINK_FLAP, part=part, evidence=_said(of_part))
    for part, of_part in _grouped(lines, _module_of).values():
        yield Symptom(cause=MODULE, part=part, evidence=_said(of_part))


def _module_of(line: Line) -> Part | None:
    """``Port module event[error]: module 0, Cable error, High Temperature``: mlx5/core/events.c of Linux."""
    found = _MODULE_ERROR.search(line.message)
    if found is None:
        return None
    key = pci_key(found[1])
    return Part(kind="cable", key=key, label=f"module {found[2]} of {found[1]}", within=(f"pci {key}",))


def _flapping(line: Line) -> Part | None:
    if found := _HCA_DOWN.search(line.message):
        return Part(kind="hca_port", key=f"{found[1]}/{found[2]}", within=(f"hca {found[1]}",))
    found = _NIC_DOWN.search(line.message)
    return Part(kind="nic", key=found[1]) if found else None


def _judge_pcie(seen: Seen) -> Iterator[Symptom]:
    """Said once, when the driver starts: it holds until the next boot. Links that sysfs tells are judged there."""
    told = {link.slot for link in seen.maybe(LINKS) or ()}
    for line in recent(seen, inf, "mlx5_core"):
        found = _LIMITED.search(line.message)
        if found is not None and pci_key(found[1]).partition(".")[0] not in told:
            part = Part(kind="pci", key=pci_key(found[1]), label=found[1])
            yield Symptom(cause=PCIE_LIMITED, part=part, evidence=(line.text,))
    for part, of_part in _grouped(_window(seen, "AER: "), _aer).values():
        yield Symptom(cause=AER, part=part, evidence=_said(of_part))


def _aer(line: Line) -> Part | None:
    """The device that sent the error, where the port above it tells; a GPU off the bus takes its own in."""
    found = _AER.search(line.message)
    if found is None:
        return None
    sender = _SENDER.search(line.message)
    key = pci_key(sender[1] if sender is not None else found[1])
    return Part(kind="pci", key=key, label=sender[1] if sender is not None else found[1], within=(f"gpu {key}",))


def _judge_thermal(seen: Seen) -> Iterator[Symptom]:
    lines = [line for line in _window(seen, "throttled") if _HOT.search(line.message)]
    if lines:
        cpus = sorted({int(found[1]) for line in lines if (found := _HOT.search(line.message))})
        named = ", ".join(map(str, cpus[:8])) + (f" and {len(cpus) - 8} more" if len(cpus) > 8 else "")
        yield Symptom(cause=THROTTLED, part=Part(kind="cpu"), evidence=(f"CPUs {named}", *_said(lines)))


def _check(
    name: str,
    about: str,
    judge: Callable[[Seen], Iterator[Symptom]],
    causes: tuple[Cause, ...],
    parts: tuple[PartKind, ...],
    *limits: Limit,
) -> Check:
    return Check(
        name=name,
        about=about,
        probes=(KERNEL_LOG,),
        parts=parts,
        causes=causes,
        limits=(QUIET_HOURS, *limits),
        judge=judge,
    )


CHECKS = (
    _check("kernel.oom", "processes ended because memory ran out", _judge_oom, (OOM,), ("host",), JOB_HOURS),
    _check(
        "kernel.machine_check",
        "machine checks, corrected and not",
        _judge_machine_check,
        (MACHINE_CHECK, MACHINE_CHECK_CORRECTED),
        ("dimm", "cpu", "host"),
        CORRECTED,
    ),
    _check(
        "kernel.io_errors",
        "drives that fail or do not answer in time",
        _judge_io,
        (IO_ERROR, NVME, ATA),
        ("drive",),
        TIMEOUTS,
    ),
    _check(
        "kernel.readonly_remount",
        "file systems that met errors or were made read-only after one",
        _judge_read_only,
        (READ_ONLY, FILE_SYSTEM),
        ("mount",),
    ),
    _check("kernel.nfs_hang", "NFS servers that do not answer", _judge_nfs, (NFS,), ("mount", "host")),
    _check(
        "kernel.hung_task",
        "tasks and CPUs that hang in the kernel",
        _judge_hangs,
        (HUNG_TASK, LOCKUP),
        ("host",),
    ),
    _check("kernel.panic_oops", "crashes of the kernel", _judge_oops, (OOPS,), ("kernel",)),
    _check(
        "kernel.link_flaps",
        "network links that go down and up, cables that report an error",
        _judge_links,
        (LINK_FLAP, MODULE),
        ("hca_port", "nic", "cable"),
        FLAPS,
    ),
    _check(
        "kernel.pcie",
        "adapters with less PCIe bandwidth than they could have, uncorrected PCIe errors",
        _judge_pcie,
        (PCIE_LIMITED, AER),
        ("pci",),
    ),
    _check("kernel.thermal", "CPUs slowed down by heat", _judge_thermal, (THROTTLED,), ("cpu",)),
)
