"""ZFS pools and Linux software RAID: degraded, with the very device; rebuilding; data errors."""

from collections.abc import Iterator

from wholestack.finding import Status
from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.formats.md import (
    Array,
    looks_like_mdadm,
    looks_like_mdstat,
    read_mdadm,
    read_mdstat,
)
from wholestack.health.formats.smartctl import drive_key
from wholestack.health.formats.sysfs import no_such_path
from wholestack.health.formats.zpool import Device, Pool, looks_like_zpool, read_zpool
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command, Output


def _no_zfs(output: Output) -> str:
    """The words of OpenZFS's tools where the kernel has no ZFS: then nothing can be in use."""
    return "the ZFS module is not loaded" if b"modules are not loaded" in output.stdout + output.stderr else ""


ZPOOL = Probe(
    command=Command(name="zpool", shell="zpool status", limit_s=10, max_bytes=500_000),
    formats=(Format(name="zpool status", matches=looks_like_zpool, read=read_zpool),),
    absent=_no_zfs,
)
MDSTAT = Probe(
    command=Command(name="mdstat", shell="cat /proc/mdstat", limit_s=5, max_bytes=200_000),
    formats=(
        Format(name="/proc/mdstat", matches=looks_like_mdstat, read=read_mdstat),
        Format(name="mdadm --detail", matches=looks_like_mdadm, read=read_mdadm),
    ),
    absent=no_such_path("the kernel has no software RAID", "/proc/mdstat"),
)

EFFECTS = ("kernel.readonly", "mount.readonly", "kernel.io_error")

POOL_DEVICE = Cause(
    code="pool.device",
    says="ZFS pool degraded: a device is out of it",
    owner="vendor",
    remedy="look whether the drive is there (smartctl -a DEVICE); reseat or replace it, then zpool online or replace",
    explains=(
        "pool.degraded",
        "pool.errors",
        "pool.rebuilding",
        "pool.data_errors",
        "drive.missing",
        "pci.nvme",
        *EFFECTS,
    ),
)
POOL_ERRORS = Cause(
    code="pool.errors",
    says="a device of a ZFS pool returns errors",
    owner="vendor",
    remedy="zpool scrub POOL; if the counts grow: CKSUM alone is the cable or controller, else replace the drive",
    status="warn",
)
POOL_DEGRADED = Cause(
    code="pool.degraded",
    says="ZFS pool is not online",
    owner="cluster team",
    remedy="zpool status -v POOL names what is missing; bring it back (zpool online, zpool import)",
    explains=EFFECTS,
)
POOL_DATA = Cause(
    code="pool.data_errors",
    says="ZFS pool holds damaged files",
    owner="cluster team",
    remedy="zpool status -v POOL lists them: restore them, zpool clear, zpool scrub; then find the drive that did it",
)
POOL_REBUILDING = Cause(
    code="pool.rebuilding",
    says="ZFS pool is rebuilding",
    owner="cluster team",
    remedy="wait until zpool status says resilvered; expect slow storage until then",
    status="warn",
)
ARRAY_MEMBER = Cause(
    code="array.member",
    says="software RAID degraded: a member failed",
    owner="vendor",
    remedy="mdadm --remove it, replace the drive, mdadm --add the new one",
    explains=("array.degraded", "array.rebuilding", "drive.missing", "pci.nvme", *EFFECTS),
)
ARRAY_DEGRADED = Cause(
    code="array.degraded",
    says="software RAID runs with a member missing",
    owner="data centre",
    remedy="find the drive that is not there (lsblk, mdadm --detail); reseat it, mdadm --add it; else replace it",
    explains=("drive.missing", "pci.nvme", *EFFECTS),
)
ARRAY_DOWN = Cause(
    code="array.down",
    says="software RAID does not run",
    owner="cluster team",
    remedy="mdadm --detail and --examine its members; assemble it (mdadm --assemble), replace what is gone",
    explains=("array.degraded", "mount.missing", *EFFECTS),
)
ARRAY_REBUILDING = Cause(
    code="array.rebuilding",
    says="software RAID is rebuilding",
    owner="cluster team",
    remedy="wait until /proc/mdstat shows no progress line; expect slow storage until then",
    status="warn",
)

POOL_ERROR_LIMIT = Limit(
    name="pool.device_errors", default=1, about="read, write and checksum errors of one device that are a warning"
)

_OUT = ("FAULTED", "UNAVAIL", "OFFLINE", "REMOVED")


def judge_pools(seen: Seen) -> Iterator[Symptom]:
    """Every pool by its state, its devices, its data."""
    for pool in seen.of(ZPOOL):
        out = [device for device in pool.devices if device.leaf and device.state in _OUT]
        # What is seen of the whole pool is brought about by the devices that are out of it.
        part = Part(kind="pool", key=pool.name, within=tuple(_device_part(pool, device).identity for device in out))
        noisy = [device for device in pool.devices if _is_noisy(device, seen)]
        for device in out:
            yield Symptom(cause=POOL_DEVICE, part=_device_part(pool, device), evidence=(*pool.lines[:2], device.line))
        for device in noisy:
            yield _noisy(pool, device)
        if pool.state != "ONLINE" and not out:
            status: Status | None = "warn" if "in progress" in pool.scan else None
            yield Symptom(cause=POOL_DEGRADED, part=part, evidence=_why(pool), status=status)
        if not pool.errors.startswith("No known data errors"):
            yield Symptom(cause=POOL_DATA, part=part, evidence=(f"pool: {pool.name}", f"errors: {pool.errors}"))
        yield from _rebuilding(pool, part)


def _device_part(pool: Pool, device: Device) -> Part:
    key = drive_key(device.name if device.name.startswith("/") else f"/dev/{device.name}")
    return Part(kind="drive", key=key, label=f"pool {pool.name}", within=(f"pool {pool.name}",))


def _is_noisy(device: Device, seen: Seen) -> bool:
    counted = device.reads + device.writes + device.checksums
    return (
        device.leaf
        and device.state not in _OUT
        and (counted >= seen.limit(POOL_ERROR_LIMIT) or device.state == "DEGRADED")
    )


def _noisy(pool: Pool, device: Device) -> Symptom:
    """ZFS itself calls a device DEGRADED when its errors pass a rate that it does not accept."""
    status: Status | None = "fail" if device.state == "DEGRADED" else None
    return Symptom(
        cause=POOL_ERRORS, part=_device_part(pool, device), evidence=(*pool.lines[:2], device.line), status=status
    )


def _why(pool: Pool) -> tuple[str, ...]:
    rows = [device.line for device in pool.devices if device.state not in ("ONLINE", "AVAIL")]
    return (*pool.lines, *rows[:8])


def _rebuilding(pool: Pool, part: Part) -> Iterator[Symptom]:
    spares = [device.line for device in pool.devices if device.section == "spares" and device.state == "INUSE"]
    if "resilver in progress" in pool.scan or spares:
        yield Symptom(cause=POOL_REBUILDING, part=part, evidence=(f"pool: {pool.name}", f"scan: {pool.scan}", *spares))


def judge_arrays(seen: Seen) -> Iterator[Symptom]:
    """Every array by its members."""
    for array in seen.of(MDSTAT):
        within = tuple(f"drive {drive_key(member)}" for member in array.failed)
        part = Part(kind="array", key=array.name, within=within)
        if not array.running:
            yield Symptom(cause=ARRAY_DOWN, part=part, evidence=array.lines)
        for member in array.failed:
            yield _failed_member(array, member)
        if array.rebuilding:
            yield Symptom(cause=ARRAY_REBUILDING, part=part, evidence=(*array.lines, array.rebuilding))
        elif array.active < array.wanted and not array.failed:
            yield Symptom(cause=ARRAY_DEGRADED, part=part, evidence=array.lines)


def _failed_member(array: Array, member: str) -> Symptom:
    """A faulty member beside a full set of others was replaced already: then it only waits to be taken out."""
    part = Part(kind="drive", key=drive_key(member), label=f"{member} of {array.name}", within=(f"array {array.name}",))
    status: Status | None = "warn" if array.active >= array.wanted else None
    return Symptom(cause=ARRAY_MEMBER, part=part, evidence=array.lines, status=status)


CHECKS = (
    Check(
        name="zpool.state",
        about="ZFS pools that are degraded, rebuild, return errors or hold damaged files",
        probes=(ZPOOL,),
        parts=("pool", "drive"),
        causes=(POOL_DEVICE, POOL_ERRORS, POOL_DEGRADED, POOL_DATA, POOL_REBUILDING),
        limits=(POOL_ERROR_LIMIT,),
        judge=judge_pools,
    ),
    Check(
        name="md.state",
        about="software RAID arrays that are degraded, down or rebuilding",
        probes=(MDSTAT,),
        parts=("array", "drive"),
        causes=(ARRAY_MEMBER, ARRAY_DEGRADED, ARRAY_DOWN, ARRAY_REBUILDING),
        judge=judge_arrays,
    ),
)
