"""Units and processes."""

from tests.health.looking import judged_file, look, recorded, said
from tests.health.shared_data import shared
from wholestack.health.check import Expectation
from wholestack.health.checks.mounts import CHECKS as MOUNTS
from wholestack.health.checks.services import CHECKS
from wholestack.remote.batch import Output

UNITS, DEFUNCT, BLOCKED = CHECKS


def test_failed_units_are_named_and_those_that_no_run_needs_only_warn():
    assert said(look([UNITS], systemd=recorded("systemd", "failed.txt"))) == [
        ("warn", "service.failed", "service motd-news"),
        ("fail", "service.failed", "service nvidia-persistenced"),
        ("fail", "service.failed", "service mnt-data\\x2dset.mount"),
    ]
    assert look([UNITS], systemd=recorded("systemd", "none.txt")).passed == ("systemd.failed",)


def test_marks_before_units_and_units_that_are_only_not_found():
    assert said(look([UNITS], systemd=recorded("systemd", "marked.txt"))) == [
        ("fail", "service.failed", "service slurmd")
    ]


def test_a_profile_allows_units_by_name_or_pattern():
    profile = Expectation(options={"failed_units_allowed": "nvidia-persistenced, mnt-*.mount"})
    found = look([UNITS], systemd=recorded("systemd", "failed.txt"), profile=profile)
    assert said(found) == [("warn", "service.failed", "service motd-news")]


def test_a_listing_that_is_shorter_than_it_says_is_unknown():
    text = recorded("systemd", "failed.txt")
    cut = "\n".join(line for line in text.splitlines() if "nvidia" not in line)
    for broken in (
        cut,
        text[: text.index("LOAD   =")],
        recorded("systemd", "none.txt").replace("0 loaded", "1 loaded"),
    ):
        assert [status for status, *_ in said(look([UNITS], systemd=broken))] == ["unknown"]


def test_the_missing_mount_takes_its_unit_in():
    fstab = "/dev/sdb1 /mnt/data-set ext4 defaults 0 2\n"
    both = look(
        (UNITS, *MOUNTS[:2]), systemd=recorded("systemd", "failed.txt"), fstab=fstab, mounts="proc /proc proc rw 0 0\n"
    )
    codes = [(code, part) for _, code, part in said(both)]
    assert ("mount.missing", "mount /mnt/data-set") in codes
    assert ("service.failed", "service mnt-data\\x2dset.mount") not in codes


def test_no_systemd_is_skipped():
    absent = Output(
        name="systemd", exit_status=1, stderr=b"System has not been booted with systemd as init system (PID 1).\n"
    )
    assert look([UNITS], systemd=absent).skipped


def test_the_shared_listing_has_no_failed_unit():
    assert judged_file(UNITS, shared("jc", "ubuntu-18.04_systemctl.out").read_text()).passed == ("systemd.failed",)


def test_old_processes_that_hang_are_named_and_young_ones_and_the_kernels_own_are_not():
    found = look([BLOCKED], processes=recorded("ps", "blocked.txt"))
    assert said(found) == [("warn", "processes.blocked", "host")]
    lines = found.symptoms[0].symptom.evidence
    assert lines[0] == "in state D: 1 x python, 1 x umount"
    assert len(lines) == 3


def test_of_two_looks_only_what_hangs_in_both_counts():
    first = recorded("ps", "blocked.txt")
    second = first.replace("4001    4000 D ", "4001    4000 S ")
    found = look([BLOCKED], processes=first + second)
    assert found.symptoms[0].symptom.evidence[0] == "in state D: 1 x umount"
    healed = second.replace(" D+ ", " S+ ")
    assert look([BLOCKED], processes=first + healed).passed == ("processes.blocked",)


def test_many_dead_processes_are_told_with_their_parent():
    assert look([DEFUNCT], processes=recorded("ps", "blocked.txt")).passed == ("processes.defunct",)
    many = "".join(
        f"   {5000 + each}    4000 Z       1900 alice      pt_data_worker <defunct>\n" for each in range(120)
    )
    found = look([DEFUNCT], processes=recorded("ps", "blocked.txt") + many)
    assert said(found) == [("warn", "processes.defunct", "host")]
    assert "4000 1 Sl 20000 alice python" in found.symptoms[0].symptom.evidence


def test_a_line_that_is_no_process_is_unknown():
    assert said(look([BLOCKED], processes=recorded("ps", "blocked.txt") + "ps: cut"))[0][0] == "unknown"


def test_a_tool_that_hangs_takes_in_the_process_that_hangs():
    hung = Output(name="systemd", ending="hung", exit_status=None)
    found = look([UNITS, BLOCKED], systemd=hung, processes=recorded("ps", "blocked.txt"))
    assert said(found) == [("unknown", "telemetry.hung", "probe systemd")]
