"""The file systems of a new host."""

from random import Random

from wholestack.health.simulator.machine import FileSystem, Machine

GIB_KIB = 1024 * 1024


def build_file_systems(machine: Machine, storage: str, shared: str, rng: Random) -> list[FileSystem]:
    """Root, boot, data, memory and shared file systems, in the order in which they are mounted."""
    memory_kib = sum(dimm.size_gib for dimm in machine.dimms) * GIB_KIB
    sata = any(drive.device == "/dev/sda" for drive in machine.drives)
    root = FileSystem(
        source="/dev/sda3" if sata else "/dev/mapper/vg0-root",
        type="ext4" if "Ubuntu" in machine.os_release["NAME"] or "Debian" in machine.os_release["NAME"] else "xfs",
        mount="/",
        options="rw,relatime,errors=remount-ro",
        size_kib=430 * GIB_KIB,
        used_kib=rng.randint(22, 190) * GIB_KIB,
        inodes=28_000_000,
        inodes_used=rng.randint(300_000, 2_200_000),
        busy_kib_per_s=0.5,
    )
    systems = [
        FileSystem(
            source="udev",
            type="devtmpfs",
            mount="/dev",
            options="rw,nosuid,relatime,size=1056718520k,mode=755",
            size_kib=memory_kib // 2,
            inodes=memory_kib // 8,
            inodes_used=1300,
            in_fstab=False,
        ),
        FileSystem(
            source="tmpfs",
            type="tmpfs",
            mount="/run",
            options="rw,nosuid,nodev,noexec,relatime,mode=755",
            size_kib=memory_kib // 10,
            used_kib=rng.randint(4_000, 60_000),
            inodes=memory_kib // 4,
            inodes_used=3_200,
            in_fstab=False,
        ),
        root,
        FileSystem(
            source="tmpfs",
            type="tmpfs",
            mount="/dev/shm",
            options="rw,nosuid,nodev",
            in_fstab=False,
            size_kib=memory_kib // 2,
            used_kib=rng.randint(0, 9_000_000),
            inodes=memory_kib // 4,
            inodes_used=rng.randint(1, 90),
        ),
        FileSystem(
            source="/dev/sda1" if sata else "/dev/nvme0n1p1",
            type="vfat",
            mount="/boot/efi",
            size_kib=523_248,
            used_kib=6_200,
            options="rw,relatime,fmask=0077,dmask=0077,codepage=437,iocharset=iso8859-1",
        ),
    ]
    systems += _data(machine, storage, rng)
    systems += _shared(shared, rng)
    return systems


def _data(machine: Machine, storage: str, rng: Random) -> list[FileSystem]:
    nvme = [drive for drive in machine.drives if drive.protocol == "NVMe"]
    if not nvme:
        return []
    size = nvme[0].capacity_bytes // 1024
    used = rng.uniform(0.1, 0.8)
    if storage == "zfs":
        size = int(size * (len(nvme) - 2) * 0.97)
        return [FileSystem(source="tank", type="zfs", mount="/tank", options="rw,noatime,xattr,noacl", size_kib=size,
                           used_kib=int(size * used), inodes=size * 2, inodes_used=4_000_000, in_fstab=False,
                           busy_kib_per_s=8.0)]  # fmt: skip
    source = "/dev/md0" if machine.arrays else f"{nvme[0].device}n1"
    return [FileSystem(source=source, type="xfs", mount="/local", options="rw,noatime,attr2,inode64,logbufs=8",
                       size_kib=size, used_kib=int(size * used), inodes=size // 8, inodes_used=int(size * used) // 90,
                       busy_kib_per_s=8.0)]  # fmt: skip


def _shared(shared: str, rng: Random) -> list[FileSystem]:
    if not shared:
        return []
    options = (
        "rw,relatime,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,nconnect=16,timeo=600,"
        f"retrans=2,sec=sys,clientaddr=10.1.{rng.randrange(256)}.{rng.randrange(256)},local_lock=none,addr=10.1.0.9"
    )
    size = 480_000 * GIB_KIB
    return [
        FileSystem(
            source="10.1.0.9:/home",
            type=shared,
            mount="/home",
            options=options,
            size_kib=size // 8,
            used_kib=size // 20,
        ),
        FileSystem(
            source="10.1.0.9:/shared", type=shared, mount="/shared", options=options, size_kib=size, used_kib=size // 2
        ),
    ]
