"""A command that failed has not found that there is nothing: what it looks for is unknown."""

import pytest

from tests.health.looking import look
from wholestack.health import catalog
from wholestack.health.checks.infiniband import ADDRESSES, INFINIBAND
from wholestack.health.checks.mounts import FSTAB
from wholestack.health.formats.sysfs import grep_failure, no_files, no_such_path
from wholestack.health.probe import NotThereError
from wholestack.remote.batch import Output

FAILURES = [
    (b"sh: 1: Cannot fork\n", 2),
    (b"grep: mlx5_0/fw_ver: Input/output error\n", 2),
    (b"cat: /etc/fstab: Permission denied\n", 1),
    (b"Killed\n", 137),
    (b"", 137),
    (b"", 1),
    (b"", 139),
    (b"bash: fork: retry: Resource temporarily unavailable\n", 254),
    (b"cat: /etc/ld.so.cache: No such file or directory\n", 1),
]
OF_THE_MOMENT = {"kernel.version", "clock.jump"}
"""Checks that rest on the probe of that name alone."""


def answered(stderr, status, stdout=b""):
    """Every check put to a host all of whose probes but one ended like this."""
    probes = [probe.name for probe in catalog.probes_of(catalog.chosen()) if probe.name != "moment"]
    outputs = {name: Output(name=name, stdout=stdout, stderr=stderr, exit_status=status) for name in probes}
    return look(catalog.chosen(), **outputs)


@pytest.mark.parametrize(("stderr", "status"), FAILURES)
def test_no_check_passes_or_is_skipped_after_a_command_that_failed(stderr, status):
    found = answered(stderr, status)
    assert set(found.passed) <= OF_THE_MOMENT
    assert {each.status for each in found.symptoms} == {"unknown"}
    assert [each for each in found.skipped if each.reason != "not_supported"] == []


def test_after_nothing_at_all_only_an_empty_file_or_list_is_one():
    assert {each.check for each in answered(b"", 0).skipped} == {"mount.expected", "mount.nfs"}
    assert set(answered(b"", 0).passed) <= OF_THE_MOMENT


@pytest.mark.parametrize(
    "line",
    [
        "sh: 1: cd: can't cd to /sys/x",
        "sh: line 1: cd: /sys/x: No such file or directory",
        "cat: /sys/x: No such file or directory",
        "ls: cannot access '/sys/x': No such file or directory",
        "tail: cannot open '/sys/x' for reading: No such file or directory",
    ],
)
def test_a_shell_or_tool_that_names_the_missing_path_is_believed(line):
    absent = no_such_path("none", "/sys/x")
    assert absent(Output(name="a", stderr=f"{line}\n".encode(), exit_status=1)) == "none"
    for other in (line.replace("/sys/x", "/sys/xy"), f"{line}\nKilled", line + " (Permission denied)"):
        assert absent(Output(name="a", stderr=other.encode(), exit_status=1)) == ""
    assert absent(Output(name="a", stderr=line.encode(), exit_status=137)) == ""
    assert absent(Output(name="a", stderr=line.encode(), stdout=b"x", exit_status=1)) == ""


def test_a_grep_that_ended_by_itself_without_a_word_found_no_files():
    absent = no_files("none", "/sys/x")
    assert [absent(Output(name="a", exit_status=status)) for status in (0, 1, 2, 137)] == ["", "", "none", ""]
    assert absent(Output(name="a", stderr=b"sh: 1: Cannot fork", exit_status=2)) == ""
    assert [bool(grep_failure(Output(name="a", exit_status=status))) for status in (0, 1, 2, 137)] == [
        False, False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("probe", "output"),
    [
        (INFINIBAND, Output(name="infiniband", exit_status=2)),
        (ADDRESSES, Output(name="infiniband_pci", stdout=b"total 0\n")),
        (FSTAB, Output(name="fstab")),
    ],
)
def test_an_empty_folder_or_file_is_there_and_holds_nothing(probe, output):
    with pytest.raises(NotThereError):
        probe.read(output)
