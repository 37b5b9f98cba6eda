"""Mounts: turned read-only, missing, hung; swap in use."""

import re
from collections.abc import Iterator

from wholestack.finding import Status
from wholestack.health.check import Cause, Check, Seen, Symptom
from wholestack.health.formats.mounts import (
    Answer,
    Mount,
    Swap,
    looks_like_answers,
    looks_like_fstab,
    looks_like_mounts,
    looks_like_swaps,
    read_answers,
    read_fstab,
    read_mounts,
    read_swaps,
)
from wholestack.health.formats.sysfs import no_such_path
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command, Output

MOUNTS = Probe(
    command=Command(name="mounts", shell="cat /proc/mounts", limit_s=5, max_bytes=1_000_000),
    formats=(Format(name="/proc/mounts", matches=looks_like_mounts, read=read_mounts),),
)


def _no_fstab(output: Output) -> str:
    """None, or one that was read and is empty."""
    empty = output.exit_status == 0 and not (output.stdout + output.stderr).strip()
    return "/etc/fstab is empty" if empty else no_such_path("no /etc/fstab", "/etc/fstab")(output)


def _no_nfs(output: Output) -> str:
    """The table of mounts was read (else the command ends with 2), and the loop had nothing to do."""
    done = output.exit_status == 0 and not (output.stdout + output.stderr).strip()
    return "no NFS mount" if done else ""


FSTAB = Probe(
    command=Command(name="fstab", shell="cat /etc/fstab", limit_s=5, max_bytes=200_000),
    formats=(Format(name="/etc/fstab", matches=looks_like_fstab, read=read_fstab),),
    absent=_no_fstab,
)
NFS = Probe(
    command=Command(
        name="nfs",
        # Side by side, so that many dead mounts cost no more time than one.
        shell=(
            "places=$(awk '$3 ~ /^nfs/ {print $2}' /proc/mounts) || exit 2; for m in $places; do "
            '(timeout -s KILL 3 stat -f "$(printf %b "$m")" >/dev/null 2>&1; echo "$? $m") & done; wait'
        ),
        limit_s=10,
        max_bytes=200_000,
    ),
    formats=(Format(name="exit status of stat -f, mount point", matches=looks_like_answers, read=read_answers),),
    absent=_no_nfs,
)
SWAP: Probe[list[Swap]] = Probe(
    command=Command(name="swap", shell="cat /proc/swaps", limit_s=5, max_bytes=50_000),
    formats=(Format(name="/proc/swaps", matches=looks_like_swaps, read=read_swaps),),
)

READ_ONLY = Cause(
    code="mount.readonly",
    says="file system turned read-only",
    owner="cluster team",
    remedy="dmesg names the error below it; drain the host, unmount, fsck; if the drive gave it, replace the drive",
    explains=("kernel.readonly", "kernel.file_system"),
)
MISSING = Cause(
    code="mount.missing",
    says="a mount of /etc/fstab is missing",
    owner="cluster team",
    remedy="mount it (mount PLACE), read what it says; systemctl status of its .mount unit says why not at boot",
    explains=("service.failed",),
)
HUNG = Cause(
    code="mount.hung",
    says="NFS mount does not answer",
    owner="cluster team",
    remedy="see whether its server answers other hosts (rpcinfo -t SERVER nfs); if so, umount -f -l and mount again",
    explains=("processes.blocked", "telemetry.hung", "kernel.hung_task", "kernel.nfs"),
)
STALE = Cause(
    code="mount.stale",
    says="NFS mount answers with an error",
    owner="cluster team",
    remedy="umount -l and mount it again; if that fails, see whether the server still exports it (showmount -e SERVER)",
)
SWAPPING = Cause(
    code="swap.on",
    says="swap is on",
    owner="cluster team",
    remedy="swapoff -a, and take it out of /etc/fstab: a job that swaps stalls all others",
    status="warn",
)

JUDGED_KINDS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")
BROKEN_OPTIONS = frozenset(("shutdown", "emergency_ro"))
"""ext4 and XFS print these once they have given up."""
BY_DESIGN = re.compile(
    r"/(?:usr|boot|efi|oem|sysroot|ostree|nix/store|snap|cdrom|media|run/media|run/initramfs|mnt/cdrom)(?:/|$)"
)
"""Where image-based systems and removable media are read-only; anywhere else fstab has to ask for it."""
NEVER_MOUNTED = ("swap", "ignore", "none")


def mount_part(mount: Mount) -> Part:
    """A mount, within the drive that it is on."""
    within = (mount.drive,) if mount.drive else ()
    return Part(kind="mount", key=mount.place, label=mount.device, within=within)


def judge_read_only(seen: Seen) -> Iterator[Symptom]:
    """Read-only in all its places, and nothing asked for it.

    A device that is writable in another place is only bound read-only here, as containers do.
    """
    mounts = [mount for mount in seen.of(MOUNTS) if mount.kind in JUDGED_KINDS]
    writable = {mount.device for mount in mounts if "rw" in mount.options}
    wanted = {entry.place: entry.options for entry in seen.maybe(FSTAB) or ()}
    told: set[str] = set()
    for mount in mounts:
        turned = (
            "ro" in mount.options and mount.device not in writable and not _by_design(mount, wanted.get(mount.place))
        )
        if (turned or mount.options & BROKEN_OPTIONS) and mount.device not in told:
            told.add(mount.device)
            yield Symptom(cause=READ_ONLY, part=mount_part(mount), evidence=(mount.line,))


def _by_design(mount: Mount, asked: frozenset[str] | None) -> bool:
    if asked is not None:
        return "ro" in asked
    if "errors=remount-ro" in mount.options:
        return False
    return BY_DESIGN.match(mount.place) is not None or mount.device.startswith(("/dev/loop", "/dev/sr"))


def judge_missing(seen: Seen) -> Iterator[Symptom]:
    """Every entry of fstab that should be mounted at boot."""
    entries = [entry for entry in seen.of(FSTAB) if _at_boot(entry)]
    places = {mount.place for mount in seen.of(MOUNTS)}
    for entry in entries:
        if entry.place not in places:
            status: Status = "warn" if "nofail" in entry.options else "fail"
            yield Symptom(cause=MISSING, part=mount_part(entry), evidence=(f"fstab: {entry.line}",), status=status)


def _at_boot(entry: Mount) -> bool:
    return entry.kind not in NEVER_MOUNTED and entry.place.startswith("/") and "noauto" not in entry.options


def judge_nfs(seen: Seen) -> Iterator[Symptom]:
    """Every NFS mount by whether it answers."""
    answers = seen.of(NFS)
    devices = {mount.place: mount for mount in seen.maybe(MOUNTS) or ()}
    for answer in answers:
        if answer.exit_status:
            yield _no_answer(answer, devices.get(answer.place))


def _no_answer(answer: Answer, mount: Mount | None) -> Symptom:
    silent = answer.exit_status in (124, 137)
    words = "no answer to stat -f within 3 s" if silent else f"stat -f failed with {answer.exit_status}"
    server = f"{mount.device} on {answer.place}" if mount else answer.place
    part = mount_part(mount) if mount else Part(kind="mount", key=answer.place)
    return Symptom(cause=HUNG if silent else STALE, part=part, evidence=(f"{server}: {words}",))


def judge_swap(seen: Seen) -> Iterator[Symptom]:
    """Any swap area."""
    areas = seen.of(SWAP)
    if areas:
        yield Symptom(cause=SWAPPING, evidence=tuple(area.line for area in areas))


CHECKS = (
    Check(
        name="mount.readonly",
        about="local file systems that the kernel turned read-only after an error",
        probes=(MOUNTS, FSTAB),
        parts=("mount",),
        causes=(READ_ONLY,),
        judge=judge_read_only,
    ),
    Check(
        name="mount.expected",
        about="entries of /etc/fstab that are not mounted",
        probes=(FSTAB, MOUNTS),
        parts=("mount",),
        causes=(MISSING,),
        judge=judge_missing,
    ),
    Check(
        name="mount.nfs",
        about="NFS mounts that hang or are stale",
        probes=(NFS, MOUNTS),
        parts=("mount",),
        causes=(HUNG, STALE),
        judge=judge_nfs,
    ),
    Check(
        name="swap.on",
        about="whether swap is in use",
        probes=(SWAP,),
        parts=("host",),
        causes=(SWAPPING,),
        judge=judge_swap,
    ),
)
