"""What is rendered has the form of recorded outputs of real tools, where those lie beside the project."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.health.shared_data import shared
from tests.health.simulator.hosts import one_host, said
from wholestack.health.simulator.faults.table import FAULTS
from wholestack.health.simulator.fleet import Fleet

NEWER = {
    "platformInfo", "chassis_serial_number", "slot_number", "tray_index", "host_id", "peer_type", "module_id",
    "gpu_fabric_guid", "gpu_recovery_action", "average_power_draw", "instant_power_draw", "channel_repair_pending",
    "tpc_repair_pending", "sram_threshold_exceeded", "sram_uncorrectable_parity", "sram_uncorrectable_secded",
    "aggregate_uncorrectable_sram_sources", "sram_l2", "sram_sm", "sram_microcontroller", "sram_pcie", "sram_other",
    "gpu_temp_tlimit", "gpu_temp_max_tlimit_threshold", "gpu_temp_slow_tlimit_threshold",
    "gpu_temp_max_gpu_tlimit_threshold", "single_bit", "double_bit", "device_memory", "register_file", "l2_cache",
    "retired_page_address",
}  # fmt: skip
"""Tags of drivers and products that the recordings do not have (seen in public outputs of drivers 525 to 580)."""


def tags(text: str) -> set[str]:
    return {element.tag for element in ElementTree.fromstring(text).iter()}


@pytest.mark.parametrize("kind", ["a100-4-mig", "a10-4", "h100-8-ndr", "b200-8-ndr", "v100-8-edr"])
def test_tags_of_nvidia_smi_are_those_of_the_driver(kind: str):
    recorded = set.union(*(tags(path.read_text()) for path in sorted(shared("nvidia-smi-xml").glob("*.xml"))))
    assert tags(said(one_host(kind), "nvidia_smi")) - recorded - NEWER == set()


def keys(value: object, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {inner for key, each in value.items() for inner in {f"{path}/{key}"} | keys(each, f"{path}/{key}")}
    return set()


def test_keys_of_nvme_drives_are_those_of_smartctl():
    recorded: set[str] = set()
    for folder in ("smartctl_fleet", "smartctl/learn_good"):
        for path in sorted(shared(*folder.split("/")).glob("*.json")):
            recorded |= keys(json.loads(path.read_text()))
    body, _ = json.JSONDecoder().raw_decode(said(one_host("h100-8-ndr"), "smart"))
    assert keys(body) - recorded == set()


def test_counters_of_a_port_are_those_of_a_real_one():
    names = {line.split("\t")[0] for line in shared("ib_sysfs", "mlx5_0.tsv").read_text().splitlines()}
    text = said(one_host("h100-8-ndr"), "infiniband")
    ours = {line.split(":")[0].removeprefix("mlx5_0/") for line in text.splitlines() if line.startswith("mlx5_0/")}
    assert names - ours == set()


def masked(line: str) -> str:
    return re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", re.sub(r"NVIDIA [\w-]+( \w+)*", "NVIDIA", line.strip()))


@pytest.mark.parametrize(
    ("recorded", "kind", "tool"),
    [(("nvidia-smi", "nvlink_status_a100x8.txt"), "a100-8-hdr", "nvlink_status")],
)
def test_lines_have_the_form_of_recorded_lines(recorded: tuple[str, ...], kind: str, tool: str):
    path: Path = shared(*recorded)
    forms = {masked(re.sub(r"UUID: \S+\)", "UUID)", line)) for line in path.read_text().splitlines()}
    ours = {masked(re.sub(r"UUID: \S+\)", "UUID)", line)) for line in said(one_host(kind), tool).splitlines()}
    assert ours <= forms


def test_a_line_of_the_fabric_manager_starts_like_a_recorded_one():
    form = re.compile(r"^\[\w{3} \d\d \d{4} \d\d:\d\d:\d\d\] \[(INFO|ERROR)\] \[tid \d+\] \S")
    recorded = shared("fabricmanager", "fabricmanager.log").read_text().splitlines()
    assert any(form.match(line) for line in recorded)
    assert all(form.match(line) for line in said(one_host("h100-8-ndr"), "fabric_manager_log").splitlines())


def test_xid_lines_have_the_form_of_recorded_ones():
    form = re.compile(r"^NVRM: Xid \(PCI:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\): \d+, ")
    recorded = shared("dmesg", "xid_sxid_lines.txt").read_text().splitlines()
    assert sum(bool(form.match(line)) for line in recorded) > 30
    fleet = Fleet(200, seed=2)
    for fault in (each for each in FAULTS if each.name.startswith("xid_")):
        machine = next(machine for machine in fleet if fault.applies(machine))
        fleet.inject(machine.name, fault)
        code = fault.name.split("_")[1]
        assert any(form.match(line.text) and f"): {code}, " in line.text for line in machine.log.lines)
