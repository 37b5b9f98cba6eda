"""File systems, NFS, ZFS and md: ``df``, ``/proc/mounts``, ``/etc/fstab``, ``zpool status``, ``/proc/mdstat``.

Sources: ``df(1)`` of coreutils, ``proc(5)``, ``zpool-status(8)``, the kernel's ``md`` documentation.
"""

from collections.abc import Sequence

from wholestack.health.simulator.machine import Array, FileSystem, Machine, Pool
from wholestack.health.simulator.tools.answer import Answer, not_found


def _local(machine: Machine) -> list[FileSystem]:
    return [each for each in machine.file_systems if each.mounted and not each.remote and each.size_kib]


def df_bytes(machine: Machine) -> Answer:
    """``df -lPk``."""
    rows = [("Filesystem", "1024-blocks", "Used", "Available", "Capacity", "Mounted on")]
    for each in _local(machine):
        usable = int(each.size_kib * (0.95 if each.type == "ext4" else 1.0))
        free = max(0, usable - each.used_kib)
        share = -(-100 * each.used_kib // max(1, each.used_kib + free))
        rows.append((each.source, str(each.size_kib), str(each.used_kib), str(free), f"{share}%", each.mount))
    return Answer(stdout=_table(rows))


def df_inodes(machine: Machine) -> Answer:
    """``df -lPi``."""
    rows = [("Filesystem", "Inodes", "IUsed", "IFree", "IUse%", "Mounted on")]
    for each in _local(machine):
        share = f"{-(-100 * each.inodes_used // each.inodes)}%" if each.inodes else "-"
        rows.append(
            (
                each.source,
                str(each.inodes),
                str(each.inodes_used),
                str(each.inodes - each.inodes_used),
                share,
                each.mount,
            )
        )
    return Answer(stdout=_table(rows))


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}", *(f"{row[column]:>{widths[column]}}" for column in range(1, 5)), row[5]]
        lines.append(" ".join(cells) + "\n")
    return "".join(lines)


def mounts(machine: Machine) -> Answer:
    """``/proc/mounts``."""
    text = "".join(
        f"{each.source} {each.mount} {each.type} {each.options} 0 0\n" for each in machine.file_systems if each.mounted
    )
    base = (
        "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0\n"
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
        "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n"
    )
    return Answer(stdout=base + text)


def fstab(machine: Machine) -> Answer:
    """``/etc/fstab``."""
    lines = [
        f"{each.source}\t{each.mount}\t{each.type}\t{_fstab_options(each)}\t0\t{1 if each.mount == '/' else 0}\n"
        for each in machine.file_systems
        if each.in_fstab
    ]
    swaps = [f"{name}\tnone\tswap\tsw\t0\t0\n" for name, *_ in machine.swaps]
    return Answer(stdout="# <file system> <mount point>   <type>  <options>       <dump>  <pass>\n" + "".join(
        lines + swaps))  # fmt: skip


def _fstab_options(each: FileSystem) -> str:
    return "vers=4.1,hard,nconnect=16,_netdev" if each.remote else "defaults"


def nfs(machine: Machine) -> Answer:
    """The exit status of ``stat -f`` under a time limit, for each NFS mount: 124 where it hangs."""
    remote = [each for each in machine.file_systems if each.mounted and each.type.startswith("nfs")]
    text = "".join(f"{124 if each.hung else 0} {each.mount}\n" for each in remote)
    return Answer(stdout=text, seconds=0.02 + 3.0 * sum(each.hung for each in remote))


def zpool(machine: Machine) -> Answer:
    """``zpool status``."""
    if machine.pools is None:
        return not_found("zpool")
    if not machine.pools:
        return Answer(stdout="no pools available\n")
    return Answer(stdout="\n".join(_pool(pool) for pool in machine.pools), seconds=0.1)


def _pool(pool: Pool) -> str:
    degraded, erring = bool(pool.states), bool(pool.errors)
    state = "DEGRADED" if degraded else "ONLINE"
    text = f"  pool: {pool.name}\n state: {state}\n"
    if degraded:
        text += (
            "status: One or more devices could not be used because the label is missing or\n"
            "\tinvalid.  Sufficient replicas exist for the pool to continue\n\tfunctioning in a degraded state.\n"
            "action: Replace the device using 'zpool replace'.\n"
            "   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-4J\n"
        )
    elif erring:
        text += (
            "status: One or more devices has experienced an unrecoverable error.  An\n"
            "\tattempt was made to correct the error.  Applications are unaffected.\n"
            "action: Determine if the device needs to be replaced, and clear the errors\n"
            "\tusing 'zpool clear' or replace the device with 'zpool replace'.\n"
            "   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-9P\n"
        )
    text += "  scan: scrub repaired 0B in 03:14:15 with 0 errors on Sun Oct 11 03:38:16 2026\nconfig:\n\n"
    width = max(len(name) for name in (*pool.devices, pool.group)) + 4
    text += f"\t{'NAME':<{width}}  STATE     READ WRITE CKSUM\n"
    text += f"\t{pool.name:<{width}}  {state:<8}     0     0     0\n"
    text += f"\t  {pool.group:<{width - 2}}  {state:<8}     0     0     0\n"
    for device in pool.devices:
        read, write, checksum = pool.errors.get(device, (0, 0, 0))
        status = pool.states.get(device, "ONLINE")
        text += f"\t    {device:<{width - 4}}  {status:<8} {read:5d} {write:5d} {checksum:5d}\n"
    return text + "\nerrors: No known data errors\n"


def mdstat(machine: Machine) -> Answer:
    """``/proc/mdstat``."""
    personalities = "Personalities : [raid1] \n" if machine.arrays else "Personalities : \n"
    return Answer(stdout=personalities + "".join(map(_array, machine.arrays)) + "unused devices: <none>\n")


def _array(array: Array) -> str:
    members = " ".join(
        f"{member}[{index}]{'(F)' if member in array.failed else ''}" for index, member in enumerate(array.members)
    )
    working = len(array.members) - len(array.failed)
    marks = "".join("_" if member in array.failed else "U" for member in array.members)
    check = ""
    if array.checking_percent is not None:
        done = int(array.blocks * array.checking_percent / 100)
        check = (
            f"      [{'=' * int(array.checking_percent / 5)}>{'.' * (19 - int(array.checking_percent / 5))}]  "
            f"check = {array.checking_percent:.1f}% ({done}/{array.blocks}) finish=88.1min speed=203211K/sec\n"
        )
    return (
        f"{array.name} : active raid1 {members}\n"
        f"      {array.blocks} blocks super 1.2 [{len(array.members)}/{working}] [{marks}]\n{check}"
        f"      bitmap: 2/14 pages [8KB], 65536KB chunk\n\n"
    )
