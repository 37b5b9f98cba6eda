"""``nvidia-smi -q -x`` is a well-formed document whose values are those of the host."""

from xml.etree import ElementTree

import pytest

from tests.health.simulator.hosts import GPU_KINDS, ask, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named


def document(fleet):
    return ElementTree.fromstring(said(fleet, "nvidia_smi"))


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_the_document_parses_and_has_every_gpu(kind: str):
    fleet = one_host(kind)
    machine, root = only(fleet), document(fleet)
    gpus = root.findall("gpu")
    assert root.findtext("driver_version") == machine.driver
    assert int(root.findtext("attached_gpus")) == len(gpus) == len(machine.gpus)
    assert [gpu.findtext("uuid") for gpu in gpus] == [gpu.uuid for gpu in machine.gpus]
    assert [gpu.get("id") for gpu in gpus] == [f"0000{gpu.pci}".upper() for gpu in machine.gpus]


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_memory_and_power_add_up(kind: str):
    for gpu in document(one_host(kind, seed=4)).findall("gpu"):
        memory = {name: int(gpu.findtext(f"fb_memory_usage/{name}").split()[0])
                  for name in ("total", "reserved", "used", "free")}  # fmt: skip
        assert memory["total"] == memory["reserved"] + memory["used"] + memory["free"]
        assert memory["free"] >= 0
        draw = next(each.text for each in gpu.iter() if each.tag in {"power_draw", "average_power_draw"})
        limit = next(each.text for each in gpu.iter() if each.tag in {"power_limit", "current_power_limit"})
        assert 0 < float(draw.split()[0]) <= float(limit.split()[0])


@pytest.mark.parametrize(
    ("kind", "dtd", "has", "lacks"),
    [
        ("a10-4", "v11", "clocks_throttle_reasons", "clocks_event_reasons"),
        ("h100-8-ndr", "v12", "clocks_event_reasons", "gpu_recovery_action"),
        ("l40s-8", "v12", "gpu_recovery_action", "channel_repair_pending"),
        ("b200-8-ndr", "v13", "ecc_errors/channel_repair_pending", "power_readings"),
        ("v100-8-edr", "v12", "ecc_errors/volatile/double_bit/total", "ecc_errors/volatile/dram_uncorrectable"),
        (
            "a100-8-hdr",
            "v12",
            "ecc_errors/volatile/sram_uncorrectable_secded",
            "ecc_errors/volatile/sram_uncorrectable",
        ),
    ],
)
def test_the_layout_goes_with_the_driver_and_the_product(kind: str, dtd: str, has: str, lacks: str):
    fleet = one_host(kind)
    assert f"nvsmi_device_{dtd}.dtd" in said(fleet, "nvidia_smi")
    gpu = document(fleet).find("gpu")
    assert gpu.find(has) is not None
    assert gpu.find(lacks) is None


def test_mig_devices_are_listed_and_rows_are_not():
    gpu = document(one_host("a100-4-mig")).find("gpu")
    assert len(gpu.findall("mig_devices/mig_device")) == 3
    assert gpu.findtext("remapped_rows") == "N/A"
    assert gpu.findtext("utilization/gpu_util") == "N/A"


def test_a_lost_gpu_has_no_values_but_keeps_its_address():
    fleet = one_host("l40s-8")
    fleet.inject("node0000", fault_named("gpu_off_bus_xid"), index=2)
    gpus = document(fleet).findall("gpu")
    assert gpus[2].findtext("temperature/gpu_temp") in {"GPU is lost", "Unknown Error"}
    assert gpus[2].findtext("pci/pci_bus_id") == "00000000:41:00.0"
    assert gpus[3].findtext("temperature/gpu_temp").endswith(" C")


def test_an_infoRom_warning_stands_behind_the_document():
    fleet = one_host("l40s-8")
    fleet.inject("node0000", fault_named("gpu_inforom_corrupt"), index=0)
    output = ask(fleet).outputs["nvidia_smi"]
    assert output.exit_status == 14
    assert output.text.endswith("</nvidia_smi_log>\nWARNING: infoROM is corrupted at gpu 0000:01:00.0\n")


def test_a_host_without_gpus_has_no_tool():
    output = ask(one_host("cpu-intel")).outputs["nvidia_smi"]
    assert (output.exit_status, output.stdout) == (127, b"")


def test_under_load_it_is_warmer_and_draws_more():
    fleet = one_host("h100-8-ndr", seed=2)
    machine = only(fleet)
    readings = []
    for intensity in (None, 1.0):
        if intensity is None:
            machine.job = None
        else:
            fleet.advance(1)
            while machine.job is None:
                fleet.advance(600)
            machine.job.intensity = intensity
        gpu = document(fleet).find("gpu")
        readings.append((int(gpu.findtext("temperature/gpu_temp").split()[0]),
                         float(gpu.findtext("gpu_power_readings/power_draw").split()[0]),
                         gpu.findtext("clocks_event_reasons/clocks_event_reason_gpu_idle")))  # fmt: skip
    idle, busy = readings
    assert busy[0] > idle[0] + 20
    assert busy[1] > 5 * idle[1]
    assert (idle[2], busy[2]) == ("Active", "Not Active")
