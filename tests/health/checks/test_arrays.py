"""ZFS pools and software RAID: the very device is named."""

import pytest

from tests.health.looking import judged_file, look, recorded, said
from tests.health.shared_data import shared
from wholestack.health.checks.arrays import CHECKS
from wholestack.health.checks.drives import CHECKS as DRIVES
from wholestack.remote.batch import Output

ZPOOL, MD = CHECKS


def test_a_faulted_device_is_named_with_its_pool_and_counts_and_the_pool_is_not_told_twice():
    found = look(CHECKS, zpool=recorded("zpool", "three_pools.txt"))
    assert said(found) == [("fail", "pool.device", "drive /dev/nvme2")]
    symptom = found.symptoms[0].symptom
    assert "scratch" in symptom.part.label
    assert symptom.evidence[-1] == "nvme2n1  FAULTED     21  1.2K     0  too many errors"


def test_checksum_errors_data_errors_and_a_resilver_are_told_apart():
    assert said(look(CHECKS, zpool=recorded("zpool", "checksum_and_data.txt"))) == [
        ("warn", "pool.errors", "drive /dev/sdb"),
        ("fail", "pool.data_errors", "pool data"),
        ("warn", "pool.rebuilding", "pool data"),
    ]


def test_no_pool_or_no_zfs_is_skipped():
    gone = Output(name="zpool", exit_status=1, stderr=b"The ZFS modules are not loaded.\nTry running 'modprobe zfs'\n")
    for nothing in ("no pools available\n", gone, Output(name="zpool", exit_status=127)):
        assert [each.check for each in look([ZPOOL], zpool=nothing).skipped] == ["zpool.state"]


@pytest.mark.parametrize("state", ["DEGRADED", "FAULTED", "UNAVAIL", "SUSPENDED", "OFFLINE", "REMOVED"])
def test_a_pool_that_is_not_online_is_a_fault_even_if_every_device_is(state):
    text = recorded("zpool", "three_pools.txt").replace(" state: ONLINE", f" state: {state}", 1)
    assert ("fail", "pool.degraded", "pool boot") in said(look(CHECKS, zpool=text))
    text = text.replace("sda3      ONLINE ", "sda3      SPLIT ")
    lines = next(each.symptom.evidence for each in look(CHECKS, zpool=text).symptoms if each.symptom.part.key == "boot")
    assert [line.split()[1] for line in lines if line.startswith(("sda3", "boot "))] == ["SPLIT"]


@pytest.mark.parametrize("word", ["errors:", "config:", " state:"])
def test_a_pool_without_a_line_that_decides_is_unknown(word):
    text = recorded("zpool", "checksum_and_data.txt").replace(word, "x", 1)
    assert [each.status for each in look([ZPOOL], zpool=text).symptoms] == ["unknown"]


def test_healthy_arrays_with_a_periodic_check_running_and_a_stripe_pass():
    assert look([MD], mdstat=recorded("md", "healthy.txt")).passed == ("md.state",)


def test_failed_missing_rebuilding_and_stopped_arrays_are_told_apart():
    assert said(look([MD], mdstat=recorded("md", "failed.txt"))) == [
        ("fail", "array.member", "drive /dev/sdb"),
        ("warn", "array.rebuilding", "array /dev/md5"),
        ("fail", "array.degraded", "array /dev/md7"),
        ("fail", "array.down", "array /dev/md9"),
    ]


def test_a_spare_that_is_being_filled_is_told_with_the_member_that_failed():
    text = recorded("md", "failed.txt").replace("sde1[4] sdd1[1]", "sde1[4] sdi1[2](F) sdd1[1]")
    assert said(look([MD], mdstat=text))[1] == ("fail", "array.member", "drive /dev/sdi")
    assert "array.rebuilding" not in [code for _, code, _ in said(look([MD], mdstat=text))]


def test_mdadm_says_the_same():
    found = judged_file(MD, recorded("md", "detail_failed.txt"))
    assert said(found) == [("fail", "array.member", "drive /dev/sdb")]
    assert "faulty /dev/sdb2" in found.symptoms[0].symptom.evidence


def test_a_members_own_record_of_a_missing_one_counts():
    found = judged_file(MD, recorded("md", "examine_missing.txt"))
    assert said(found) == [("fail", "array.degraded", "array node:0")]
    whole = recorded("md", "examine_missing.txt").replace(" A. (", " AA (")
    assert judged_file(MD, whole).passed == ("md.state",)


def test_a_pool_that_is_gone_with_its_device_and_its_files_is_one_finding():
    found = judged_file(ZPOOL, recorded("zpool", "no_replicas.txt"))
    assert said(found) == [("fail", "pool.device", "drive /dev/sdc")]


NO_MD = b"cat: /proc/mdstat: No such file or directory\n"


def test_no_array_is_skipped_and_half_a_file_is_unknown():
    empty = "Personalities : [raid1]\nunused devices: <none>\n"
    assert look([MD], mdstat=empty).skipped[0].check == "md.state"
    assert look([MD], mdstat=Output(name="mdstat", exit_status=1, stderr=NO_MD)).skipped
    cut = recorded("md", "healthy.txt")[:150]
    assert [each.status for each in look([MD], mdstat=cut).symptoms] == ["unknown"]


def test_the_drive_that_says_it_fails_is_the_head_of_the_array_that_lost_it():
    both = look((*DRIVES, *CHECKS), smart=recorded("smartctl", "sata_failed.json"), mdstat=recorded("md", "failed.txt"))
    drives = [each for each in said(both) if each[2] == "drive /dev/sdb"]
    assert drives == [("fail", "drive.failing", "drive /dev/sdb")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("generic_zpool-status-v.out", []),
        ("generic_zpool-status-spares.out", []),
        ("generic_zpool-status-v2.out", [("fail", "pool.device", "drive /dev/c1t1d0")]),
    ],
)
def test_the_shared_pools_are_judged_as_their_readme_says(name, expected):
    assert said(judged_file(ZPOOL, shared("jc", name).read_text())) == expected


def test_the_shared_array_is_healthy():
    assert judged_file(MD, shared("jc", "generic_mdadm-query-raid1-ok.out").read_text()).passed == ("md.state",)
