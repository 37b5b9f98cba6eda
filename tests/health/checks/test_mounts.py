"""Mounts: read-only by fault or by design, missing, hung; swap."""

import pytest

from tests.health.looking import judged_file, look, recorded, said
from tests.health.shared_data import shared
from wholestack.health.checks.drives import CHECKS as DRIVES
from wholestack.health.checks.mounts import CHECKS
from wholestack.health.formats.mounts import read_mounts, unescaped
from wholestack.remote.batch import Output

READ_ONLY, EXPECTED, NFS, SWAP = CHECKS
MOUNTS, FSTAB = recorded("mounts", "proc_mounts.txt"), recorded("mounts", "fstab.txt")


def test_only_what_nothing_asked_to_be_read_only_is_a_fault():
    found = look([READ_ONLY], mounts=MOUNTS, fstab=FSTAB)
    assert said(found) == [("fail", "mount.readonly", "mount /archive")]
    assert found.symptoms[0].symptom.part.within == ("drive /dev/sdc",)


def test_the_root_that_turned_read_only_is_found_without_fstab_too():
    text = MOUNTS.replace("/ ext4 rw", "/ ext4 ro")
    for fstab in (FSTAB, Output(name="fstab", exit_status=1)):
        assert ("fail", "mount.readonly", "mount /") in said(look([READ_ONLY], mounts=text, fstab=fstab))


@pytest.mark.parametrize("option", ["shutdown", "emergency_ro"])
def test_a_file_system_that_gave_up_is_found_although_it_says_rw(option):
    text = MOUNTS.replace("xfs rw,relatime", f"xfs rw,{option},relatime", 1)
    assert ("fail", "mount.readonly", "mount /scratch") in said(look([READ_ONLY], mounts=text, fstab=FSTAB))


def test_the_drive_that_failed_takes_the_read_only_mount_in():
    text = MOUNTS.replace("/dev/sdc1 /archive", "/dev/sdb3 /archive").replace(
        "/data\\040sets ext4 ro", "/data\\040sets ext4 rw"
    )
    both = look((*DRIVES, READ_ONLY), smart=recorded("smartctl", "sata_failed.json"), mounts=text, fstab=FSTAB)
    assert said(both) == [("fail", "drive.failing", "drive /dev/sdb")]


def test_entries_of_fstab_that_should_be_mounted_and_are_not():
    assert look([EXPECTED], mounts=MOUNTS, fstab=FSTAB).passed == ("mount.expected",)
    lines = MOUNTS.splitlines(keepends=True)
    gone = "".join(line for line in lines if "/home" not in line and "/scratch" not in line)
    assert said(look([EXPECTED], mounts=gone, fstab=FSTAB)) == [
        ("warn", "mount.missing", "mount /scratch"),
        ("fail", "mount.missing", "mount /home"),
    ]


def test_an_fstab_of_comments_expects_nothing_and_none_at_all_is_skipped():
    assert look([EXPECTED], mounts=MOUNTS, fstab="# UNCONFIGURED FSTAB\n").passed == ("mount.expected",)
    none = Output(name="fstab", exit_status=1, stderr=b"cat: /etc/fstab: No such file or directory\n")
    assert look([EXPECTED], mounts=MOUNTS, fstab=none).skipped


def test_a_hung_and_a_stale_mount_are_told_apart_with_their_server():
    found = look([NFS], nfs="0 /ok\n137 /home\n1 /old\\040set\n", mounts=MOUNTS)
    assert said(found) == [("fail", "mount.hung", "mount /home"), ("fail", "mount.stale", "mount /old set")]
    assert "198.51.100.20:/export/home on /home" in found.symptoms[0].symptom.evidence[0]


def test_no_nfs_mount_is_skipped_and_strange_lines_are_unknown():
    assert look([NFS], nfs=Output(name="nfs")).skipped[0].check == "mount.nfs"
    assert said(look([NFS], nfs="0 /ok\nstat: what\n", mounts=MOUNTS))[0][0] == "unknown"


def test_swap_in_use_is_a_warning_in_both_layouts():
    assert look([SWAP], swap="Filename\t\t\tType\t\tSize\tUsed\tPriority\n").passed == ("swap.on",)
    text = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda3    partition\t8388604\t0\t-2\n"
    assert said(look([SWAP], swap=text)) == [("warn", "swap.on", "host")]
    assert said(judged_file(SWAP, shared("jc", "generic_swapon-all-v2.out").read_text())) == [
        ("warn", "swap.on", "host")
    ]


def test_a_line_that_is_no_mount_is_unknown():
    assert said(look([READ_ONLY], mounts=MOUNTS + "cut of", fstab=FSTAB))[0][0] == "unknown"
    assert unescaped("a\\040b\\011c") == "a b\tc"
    assert len(read_mounts(MOUNTS)) == MOUNTS.count("\n")
