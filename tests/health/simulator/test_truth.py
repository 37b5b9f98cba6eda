"""The comparison is strict about part, owner and verdict."""

import pytest

from wholestack.health.simulator.truth import Found, Truth, compare, names_part

GPU = Truth(host="a", fault="xid_48", part="gpu", names=("0000:1b:00.0", "0000:1b:00", "1650001"), owners=("vendor",))
HUNG = Truth(host="a", fault="tool_smart_hung", part="tool", owners=("cluster team",), tool=True)
RIGHT = Found(status="fail", part="gpu 0000:1b:00.0 (GPU 0)", owner="vendor", check="gpu.xid", cause="Xid 48")


@pytest.mark.parametrize(
    ("name", "part", "right"),
    [
        ("/dev/nvme1", "drive /dev/nvme1", True),
        ("/dev/nvme1", "drive /dev/nvme10", False),
        ("mlx5_1/1", "hca_port mlx5_1/1", True),
        ("mlx5_1/1", "hca_port mlx5_1/10", False),
        ("mlx5_1", "hca mlx5_11", False),
        ("0000:1b:00", "gpu 0000:1B:00.0", True),
        ("0000:1b:00.0", "gpu 0000:1b:00.0/3", True),
        ("1b:00.0", "gpu 0000:1b:00.0", True),
        ("/", "mount /", True),
        ("/", "mount /local", False),
        ("A1", "dimm CPU_A1", False),
        ("A1", "dimm A1", True),
        ("A1", "dimm A10", False),
    ],
)
def test_a_part_is_named_by_a_whole_token(name: str, part: str, right: bool):
    assert names_part(Truth(host="a", fault="f", part="gpu", names=(name,)), part) is right


def test_a_right_finding_scores_in_full():
    result = compare([GPU], {"a": [RIGHT]})
    assert (result.injected, result.found, result.right_part, result.right_owner) == (1, 1, 1, 1)
    assert (result.false_alarms, result.extra, result.unknown) == (0, 0, 0)


def test_another_gpu_is_no_find():
    wrong = Found(status="fail", part="gpu 0000:3d:00.0", owner="vendor", check="gpu.xid")
    result = compare([GPU], {"a": [wrong]})
    assert (result.found, result.right_part, result.extra) == (0, 0, 1)


def test_the_host_as_a_whole_may_be_blamed_but_is_not_the_right_part():
    vague = Found(status="fail", part="host", owner="vendor", check="gpu.count", cause="a GPU is missing")
    result = compare([GPU], {"a": [vague]})
    assert (result.found, result.right_part) == (1, 0)


def test_what_evidence_quotes_is_not_what_a_finding_is_about():
    quoting = Found(status="warn", part="host", check="docker", cause="no such runtime", evidence=("nvidia gpu",))
    assert compare([GPU], {"a": [quoting]}).found == 0


@pytest.mark.parametrize(
    ("fault", "part", "finding", "found"),
    [
        ("nvswitch_missing", "nvswitch", ("host", "pci.inventory", "number of NVSwitches on the PCI bus"), 1),
        ("clock_offset", "clock", ("clock", "time.sync", "clock is off"), 1),
        ("clock_offset", "clock", ("bmc", "bmc.clock", "the BMC's clock is wrong"), 0),
        ("huge_pages_drift", "host", ("kernel", "kernel.parameters", "automatic NUMA balancing is on"), 0),
        ("peer_memory_missing", "service", ("gpu 0000:3d:00", "gpu.xid", "a program's error on the GPU"), 0),
        ("docker_dead", "service", ("container_runtime docker", "docker", "Docker does not answer"), 1),
    ],
)
def test_a_fault_without_names_is_found_by_its_own_words(fault, part, finding, found):
    said = Found(status="warn", part=finding[0], check=finding[1], cause=finding[2])
    assert compare([Truth(host="a", fault=fault, part=part)], {"a": [said]}).found == found


def test_the_wrong_owner_is_no_right_owner():
    result = compare([GPU], {"a": [Found(status="fail", part="gpu 1650001", owner="network", check="gpu.xid")]})
    assert (result.found, result.right_part, result.right_owner) == (1, 1, 0)


def test_unknown_is_a_miss_unless_a_tool_is_at_fault():
    vague = Found(status="unknown", part="gpu 0000:1b:00.0", owner="vendor", check="gpu.xid")
    missed = compare([GPU], {"a": [vague]})
    assert (missed.found, missed.unknown, missed.missed) == (0, 1, [GPU])
    silent = Found(status="unknown", part="probe smart", owner="cluster team", check="telemetry.smart")
    named = compare([HUNG], {"a": [silent]})
    assert (named.found, named.right_owner, named.unknown) == (1, 1, 0)


def test_a_finding_about_something_else_does_not_count():
    elsewhere = Found(status="fail", part="clock", owner="cluster team", check="time.offset", cause="not synchronised")
    result = compare([GPU], {"a": [elsewhere]})
    assert (result.found, result.extra) == (0, 1)


def test_one_finding_finds_one_fault():
    second = Truth(host="a", fault="gpu_hot", part="gpu", names=("0000:3d:00.0",), owners=("data centre",))
    result = compare([second, GPU], {"a": [RIGHT]})
    assert result.injected == 2
    assert result.found == 1


def test_a_host_that_was_not_heard_of_misses_its_fault():
    result = compare([GPU], {})
    assert (result.injected, result.found) == (1, 0)


def test_false_alarms_are_counted_by_host():
    alarm = Found(status="fail", part="gpu x", check="gpu.ecc")
    warning = Found(status="warn", part="gpu x", check="gpu.ecc")
    result = compare([], {"a": [alarm, alarm, warning], "b": [warning], "c": [], "d": [Found(status="ok")]})
    assert (result.false_alarms, result.false_warnings) == (1, 1)


def test_what_is_left_over_on_a_broken_host_is_extra():
    result = compare([GPU], {"a": [RIGHT, Found(status="warn", part="gpu 0000:3d:00.0", check="gpu.xid")]})
    assert (result.found, result.extra, result.false_alarms) == (1, 1, 0)


def test_the_finding_that_names_the_part_is_preferred():
    other = Found(status="fail", part="gpu 0000:3d:00.0", owner="vendor", check="gpu.xid")
    result = compare([GPU], {"a": [other, RIGHT]})
    assert result.right_part == 1
    assert result.matches[0].finding is RIGHT
