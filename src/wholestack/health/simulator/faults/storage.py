"""Faults of drives, file systems, pools and arrays."""

from collections.abc import Callable

from wholestack.health.simulator.faults.fault import HOUR_S, Draw, Fault, again, fault, repeat_line
from wholestack.health.simulator.hardware import Drive
from wholestack.health.simulator.machine import FileSystem, Machine

NVME_SPEC = "NVM Express base specification, SMART / health log; smartctl(8)"
ATA = "smartmontools, ATA attributes; smartctl(8)"


def _drives(machine: Machine, protocol: str) -> list[Drive]:
    return [drive for drive in machine.drives if drive.protocol == protocol and drive.present]


def _names(drive: Drive) -> tuple[str, ...]:
    return (drive.device, drive.serial)


def _nvme(change: Callable[[Drive, Draw], None]) -> Callable[[Machine, Draw], tuple[str, ...]]:
    return _drive("NVMe", change)


def _ata(change: Callable[[Drive, Draw], None]) -> Callable[[Machine, Draw], tuple[str, ...]]:
    return _drive("ATA", change)


def _drive(protocol: str, change: Callable[[Drive, Draw], None]) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        drive = draw.one(_drives(machine, protocol))
        change(drive, draw)
        return _names(drive)

    return inject


def _spare_low(drive: Drive, draw: Draw) -> None:
    drive.spare = max(0, drive.spare_threshold - draw.whole(1, drive.spare_threshold))
    drive.critical_warning |= 1
    drive.passed = False


def _worn_out(drive: Drive, draw: Draw) -> None:
    drive.used_percent = draw.whole(100, 180)


def _read_only(drive: Drive, draw: Draw) -> None:
    drive.critical_warning |= 8
    drive.passed = False


def _unreliable(drive: Drive, draw: Draw) -> None:
    drive.critical_warning |= 4
    drive.passed = False


def _media_errors(drive: Drive, draw: Draw) -> None:
    drive.media_errors = draw.whole(8, 4_000)
    drive.error_entries += drive.media_errors


def _hot(drive: Drive, draw: Draw) -> None:
    drive.temperature_c = draw.whole(78, 90)
    drive.critical_warning |= 2
    drive.warning_temperature_minutes = draw.whole(30, 900)
    drive.passed = False


def _pending(drive: Drive, draw: Draw) -> None:
    drive.pending = draw.whole(4, 400)
    drive.uncorrectable = drive.pending // 2


def _reallocated(drive: Drive, draw: Draw) -> None:
    drive.reallocated = draw.whole(150, 3_000)


def _failed(drive: Drive, draw: Draw) -> None:
    drive.passed = False
    drive.reallocated = 3_900


def _crc(machine: Machine, draw: Draw) -> tuple[str, ...]:
    drive, per_hour = draw.one(_drives(machine, "ATA")), draw.between(60, 900)

    def add(host: Machine, count: int) -> None:
        drive.crc_errors += count

    add(machine, int(per_hour * min(12.0, machine.uptime_s / HOUR_S)) + 50)
    again(machine, HOUR_S / per_hour, add)
    return _names(drive)


def _missing(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """A drive that left: it is not listed, and what was built on it is degraded."""
    drive = draw.one(_drives(machine, "NVMe"))
    drive.present = False
    name = drive.device[5:]
    machine.say(f"nvme {name}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", level="warn",
                ago_s=draw.ago_s())  # fmt: skip
    machine.say(f"nvme {name}: Removing after probe failure status: -19", level="warn", ago_s=1.0)
    for pool in machine.pools or []:
        if f"{name}n1" in pool.devices:
            pool.states[f"{name}n1"] = "REMOVED"
    for array in machine.arrays:
        if f"{name}n1" in array.members:
            array.failed.add(f"{name}n1")
    return (*_names(drive), name, f"{name}n1", f"/dev/{name}n1", *((drive.pci,) if drive.pci else ()))


def _io_errors(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Reads fail in the kernel log; SMART still says that all is well."""
    drive = draw.one(_drives(machine, "NVMe"))
    name = f"{drive.device[5:]}n1"

    def say(host: Machine, count: int) -> None:
        sector = draw.rng.randrange(10**9)
        host.say(f"{name}: I/O Cmd(0x2) @ LBA {sector}, 8 blocks, I/O Error (sct 0x2 / sc 0x81) MORE", level="warn")
        host.say(f"critical medium error, dev {name}, sector {sector} op 0x0:(READ) flags 0x80700 phys_seg 1",
                 level="err")  # fmt: skip

    for _ in range(draw.whole(1, 6)):
        say(machine, 1)
    again(machine, HOUR_S, say)
    return (*_names(drive), name, f"/dev/{name}")


def _data(machine: Machine) -> list[FileSystem]:
    return [each for each in machine.file_systems if each.mount in {"/", "/local", "/tank"} and each.size_kib]


def _full(machine: Machine, draw: Draw) -> tuple[str, ...]:
    system = draw.one(_data(machine))
    system.used_kib = int(system.size_kib * (0.95 if system.type == "ext4" else 1.0) * draw.between(0.965, 1.0))
    system.crowded, system.busy_kib_per_s = True, 0.0
    return _mount_names(system)


def _inodes(machine: Machine, draw: Draw) -> tuple[str, ...]:
    system = draw.one([each for each in _data(machine) if each.type != "zfs"])
    system.inodes_used = int(system.inodes * draw.between(0.97, 1.0))
    return _mount_names(system)


def _mount_names(system: FileSystem) -> tuple[str, ...]:
    return (system.mount, system.source)


def _remounted(machine: Machine, draw: Draw) -> tuple[str, ...]:
    system = draw.one([each for each in _data(machine) if each.type in {"ext4", "xfs"}])
    system.options = system.options.replace("rw", "ro", 1)
    device = system.source.rsplit("/", 1)[1]
    if system.source.startswith("/dev/mapper/"):
        device = "dm-0"  # the name of the block device, which ext4 and XFS print, not of its link
    if system.type == "ext4":
        machine.say(f"EXT4-fs error (device {device}): ext4_journal_check_start:83: Detected aborted journal",
                    level="crit", ago_s=300)  # fmt: skip
        machine.say(f"EXT4-fs ({device}): Remounting filesystem read-only", level="crit", ago_s=299)
    else:
        machine.say(
            f"XFS ({device}): Log I/O Error (0x2) detected. Shutting down filesystem.", level="alert", ago_s=300
        )
        machine.say(
            f"XFS ({device}): Please unmount the filesystem and rectify the problem(s)", level="alert", ago_s=299
        )
    return _mount_names(system)


def _pool_degraded(machine: Machine, draw: Draw) -> tuple[str, ...]:
    pool = draw.one(machine.pools or [])
    device = draw.rng.choice(pool.devices)
    pool.states[device] = draw.rng.choice(("UNAVAIL", "FAULTED", "REMOVED"))
    return (pool.name, device, f"/dev/{device[:-2]}")


def _pool_errors(machine: Machine, draw: Draw) -> tuple[str, ...]:
    pool = draw.one(machine.pools or [])
    device = draw.rng.choice(pool.devices)
    pool.errors[device] = (draw.whole(0, 40), 0, draw.whole(3, 900))
    return (pool.name, device, f"/dev/{device[:-2]}")


def _array_degraded(machine: Machine, draw: Draw) -> tuple[str, ...]:
    array = draw.one(machine.arrays)
    member = draw.rng.choice(array.members)
    array.failed.add(member)
    machine.say(f"md/raid1:{array.name}: Disk failure on {member}, disabling device.", level="crit", ago_s=draw.ago_s())
    return (array.name, f"/dev/{array.name}", member, f"/dev/{member}", f"/dev/{member[:-2]}")


def _nfs_hung(machine: Machine, draw: Draw) -> tuple[str, ...]:
    system = draw.one([each for each in machine.file_systems if each.type.startswith("nfs")])
    system.hung = True
    server = system.source.split(":")[0]
    repeat_line(machine, f"nfs: server {server} not responding, still trying", level="notice", ago_s=draw.ago_s(),
                every_s=900)  # fmt: skip
    return (system.mount, system.source, server)


def _not_mounted(machine: Machine, draw: Draw) -> tuple[str, ...]:
    system = draw.one([each for each in machine.file_systems if each.remote and each.in_fstab])
    system.mounted = False
    return (system.mount, system.source)


def _has(protocol: str) -> Callable[[Machine], bool]:
    return lambda machine: bool(_drives(machine, protocol))


def _mutable(machine: Machine) -> bool:
    return any(each.type in {"ext4", "xfs"} for each in _data(machine))


def _pooled(machine: Machine) -> bool:
    return bool(machine.pools)


def _arrayed(machine: Machine) -> bool:
    return bool(machine.arrays)


def _shares(machine: Machine) -> bool:
    return any(each.type.startswith("nfs") for each in machine.file_systems)


FAULTS: tuple[Fault, ...] = (
    fault("nvme_spare_low", "drive", NVME_SPEC, _nvme(_spare_low), "vendor", "data centre", applies=_has("NVMe")),
    fault("nvme_worn_out", "drive", NVME_SPEC, _nvme(_worn_out), "vendor", "data centre", applies=_has("NVMe")),
    fault("nvme_read_only", "drive", NVME_SPEC, _nvme(_read_only), "vendor", "data centre", applies=_has("NVMe")),
    fault("nvme_reliability_degraded", "drive", NVME_SPEC, _nvme(_unreliable), "vendor", "data centre",
          applies=_has("NVMe")),
    fault("nvme_media_errors", "drive", NVME_SPEC, _nvme(_media_errors), "vendor", "data centre", applies=_has("NVMe")),
    fault("nvme_hot", "drive", NVME_SPEC, _nvme(_hot), "data centre", "vendor", applies=_has("NVMe")),
    fault("nvme_missing", "drive", "Linux, nvme driver: controller is down; will reset", _missing, "vendor",
          "data centre", applies=_has("NVMe")),
    fault("nvme_io_errors", "drive", "Linux, block layer: critical medium error", _io_errors, "vendor", "data centre",
          applies=_has("NVMe")),
    fault("sata_pending_sectors", "drive", ATA, _ata(_pending), "vendor", "data centre", applies=_has("ATA")),
    fault("sata_reallocated_sectors", "drive", ATA, _ata(_reallocated), "vendor", "data centre", applies=_has("ATA")),
    fault("sata_crc_errors", "drive", ATA, _crc, "data centre", "vendor", applies=_has("ATA"), by_rate=True),
    fault("sata_failed", "drive", ATA, _ata(_failed), "vendor", "data centre", applies=_has("ATA")),
    fault("file_system_full", "file system", "df(1)", _full, "cluster team", "job owner"),
    fault("file_system_out_of_inodes", "file system", "df(1)", _inodes, "cluster team", "job owner", applies=_mutable),
    fault("file_system_read_only", "file system", "Linux, ext4 and XFS error lines; proc(5)", _remounted,
          "vendor", "data centre", "cluster team", applies=_mutable),
    fault("pool_degraded", "drive", "zpool-status(8); recorded degraded pool (kellyjonbrazil/jc)", _pool_degraded,
          "vendor", "data centre", "cluster team", applies=_pooled),
    fault("pool_checksum_errors", "drive", "zpool-status(8)", _pool_errors, "vendor", "data centre", "cluster team",
          applies=_pooled),
    fault("array_degraded", "drive", "Linux, admin-guide/md; mdstat", _array_degraded, "vendor", "data centre",
          "cluster team", applies=_arrayed),
    fault("nfs_hung", "file system", "leptonai/gpud#1245; Linux, nfs: server not responding", _nfs_hung, "cluster team",
          "network", "data centre", applies=_shares),
    fault("mount_missing", "file system", "fstab(5), proc(5)", _not_mounted, "cluster team", applies=_shares),
)  # fmt: skip
