"""NVLink, RDMA, Ethernet, memory, processors and the BMC as their tools print them."""

import re

import pytest

from tests.health.simulator.hosts import ALL_KINDS, GPU_KINDS, ask, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_nvlink_lists_every_link_with_rate_and_three_counters(kind: str):
    fleet = one_host(kind)
    links = sum(len(gpu.links) for gpu in only(fleet).gpus)
    assert len(re.findall(r"^\t Link \d+: [\d.]+ GB/s$", said(fleet, "nvlink_status"), re.MULTILINE)) == links
    errors = re.findall(r"^\t Link \d+: (Replay|Recovery|CRC) Errors: \d+$", said(fleet, "nvlink_errors"), re.MULTILINE)
    assert len(errors) == 3 * links


def test_an_inactive_link_has_no_rate():
    fleet = one_host("h100-8-ndr")
    fleet.inject("node0000", fault_named("nvlink_inactive"), index=4)
    assert said(fleet, "nvlink_status").count("<inactive>") == 1


def test_rdma_files_are_grouped_and_complete():
    fleet = one_host("h100-8-ndr")
    lines = said(fleet, "infiniband").splitlines()
    assert len(lines) == 8 * (5 + 4 + 21 + 30)
    assert lines[0].startswith("mlx5_0/fw_ver:")
    assert sum("/state:4: ACTIVE" in line for line in lines) == 8
    assert sum("/rate:400 Gb/sec (4X NDR)" in line for line in lines) == 8


def test_without_adapters_there_is_no_folder():
    outputs = ask(one_host("l40s-8")).outputs
    assert outputs["infiniband"].exit_status == 2
    assert b"can't cd to /sys/class/infiniband" in outputs["infiniband"].stderr
    assert outputs["infiniband_pci"].exit_status == 2


def test_the_links_of_the_adapters_name_their_addresses():
    fleet = one_host("h200-8-roce")
    found = re.findall(r"(mlx5_\d) -> \S+/(0000:\S+?)/infiniband", said(fleet, "infiniband_pci"))
    assert found == [(hca.name, hca.pci) for hca in only(fleet).hcas]


def test_loopback_gives_neither_speed_nor_duplex():
    text = said(one_host("l40s-8"), "ethernet")
    assert "lo/operstate:unknown" in text
    assert "lo/speed" not in text
    assert "lo/duplex" not in text
    assert "bond0/bonding/slaves:ens10f0np0 ens11f1np1" in text


def test_an_optic_with_too_little_light_raises_its_alarm():
    fleet = one_host("h200-8-roce")
    alarm = re.compile(r"Laser rx power low alarm +\(Channel \d\) +: On")
    assert not alarm.search(said(fleet, "optics"))
    fleet.inject("node0000", fault_named("optic_low_power"), severity=0.9)
    assert alarm.search(said(fleet, "optics"))


def test_intel_shows_modules_and_amd_only_controllers():
    assert said(one_host("h100-8-ndr"), "edac").count("dimm_label:") == 32
    amd = said(one_host("l40s-8"), "edac")
    assert "mc1/ce_count:" in amd
    assert "dimm" not in amd


def test_a_missing_module_is_less_memory_everywhere():
    fleet = one_host("h100-8-ndr")

    def total() -> int:
        return int(re.search(r"MemTotal: +(\d+)", said(fleet, "meminfo")).group(1))

    before = total()
    fleet.inject("node0000", fault_named("memory_module_missing"), index=0)
    assert before - total() == pytest.approx(64 * 1024 * 1024, rel=0.05)
    assert said(fleet, "dmi_memory").count("No Module Installed") == 1
    assert said(fleet, "edac").count("dimm_label:") == 31


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_processors_of_all_nodes_are_all_processors(kind: str):
    fleet = one_host(kind)
    text = said(fleet, "lscpu")
    count = int(re.search(r"^CPU\(s\): +(\d+)", text, re.MULTILINE).group(1))
    seen: set[int] = set()
    for ranges in re.findall(r"^NUMA node\d+ CPU\(s\): +(\S+)", text, re.MULTILINE):
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            numbers = set(range(int(first), int(last or first) + 1))
            assert not seen & numbers
            seen |= numbers
    assert seen == set(range(count))
    governor = said(fleet, "governor")
    assert governor == "" or int(governor.split()[0]) == count


def test_processors_that_are_off_are_named():
    fleet = one_host("h100-8-ndr")
    fleet.inject("node0000", fault_named("cpu_offline"), severity=0.0)
    assert re.search(r"^Off-line CPU\(s\) list: +\d+$", said(fleet, "lscpu"), re.MULTILINE)


def test_only_intel_counts_throttling():
    assert said(one_host("h100-8-ndr"), "cpu_throttle").count("package_throttle_count") == 224
    assert said(one_host("l40s-8"), "cpu_throttle") == ""


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_bmc_is_calm_on_a_healthy_host(kind: str):
    fleet = one_host(kind)
    sensors = [line.split("|") for line in said(fleet, "sensors").splitlines()]
    assert all(len(cells) == 5 for cells in sensors)
    assert {cells[2].strip() for cells in sensors} <= {"ok", "ns"}
    assert all(line.count("|") == 5 for line in said(fleet, "sel").splitlines())


def test_a_failed_supply_is_in_the_log_and_the_sensors():
    fleet = one_host("h100-8-ndr")
    fleet.inject("node0000", fault_named("power_supply_failed"), severity=1.0, index=2)
    assert re.search(r"Power Supply PS3 Status \| (Failure detected|Power Supply AC lost) \| Asserted",
                     said(fleet, "sel"))  # fmt: skip
    assert re.search(r"^PS3 Status +\| \w+ \| cr ", said(fleet, "sensors"), re.MULTILINE)
