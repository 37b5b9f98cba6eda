"""PCI: devices counted by class, links judged at their lower end and against their likes."""

import pytest

from tests.health.network import look, recorded, said, saved, verdict
from wholestack.health.check import Expectation
from wholestack.health.checks.pci import CHECKS
from wholestack.remote.batch import Output

BY_NAME = {check.name: check for check in CHECKS}
INVENTORY, VERBOSE = recorded("pci", "lspci_nn.txt"), recorded("pci", "lspci_vvv.txt")


def device(address, *, kind="0x020700", model="0x15b3 0x1021", now="32.0 GT/s PCIe x16", most="32.0 GT/s PCIe x16"):
    """Lines of a device below /sys/bus/pci/devices."""
    (vendor, number), (speed, width), (top, widest) = model.split(), now.split(" x"), most.split(" x")
    files = {
        "vendor": vendor, "device": number, "class": kind, "current_link_speed": speed, "current_link_width": width,
        "max_link_speed": top, "max_link_width": widest, "numa_node": 0,
    }  # fmt: skip
    return [f"{address}/{name}:{value}" for name, value in files.items()]


def links(*changed):
    """Eight adapters, four drives, a bridge, a GPU at rest, a slow management port; later lines win."""
    lines = [line for i in range(8) for line in device(f"0000:1{i}:00.0")]
    drive = {"kind": "0x010802", "model": "0x144d 0xa80a"}
    lines += [
        line
        for i in range(4)
        for line in device(f"0000:2{i}:00.0", now="16.0 GT/s PCIe x4", most="16.0 GT/s PCIe x4", **drive)
    ]
    lines += device("0000:00:01.0", kind="0x060400", model="0x8086 0x352a", now="2.5 GT/s PCIe x0")
    lines += device("0000:30:00.0", kind="0x030200", model="0x10de 0x2330", now="2.5 GT/s PCIe x16")
    lines += device(
        "0000:01:00.0", kind="0x020000", model="0x14e4 0x165f", now="5.0 GT/s PCIe x1", most="5.0 GT/s PCIe x2"
    )
    lines += ["0000:00:1f.0/vendor:0x8086", "0000:00:1f.0/class:0x060100", "0000:00:1f.0/numa_node:-1"]
    return "\n".join([*lines, *(line for each in changed for line in each)]) + "\n"


def test_devices_are_counted_by_class_and_maker():
    found = look([BY_NAME["pci.inventory"]], pci=INVENTORY)
    assert {trait.name: trait.value for trait in found.traits} == {
        "pci.gpus": 2, "pci.nvswitches": 2, "pci.ib_adapters": 1, "pci.nvme": 1, "pci.network_adapters": 2,
    }  # fmt: skip
    assert said(found) == []


def test_a_profile_that_counts_more_gpus_fails():
    found = look([BY_NAME["pci.inventory"]], pci=INVENTORY, profile=Expectation(traits={"pci.gpus": 8}))
    assert said(found) == ["fail pci.gpus host"]


def test_a_device_that_reads_all_ones_is_gone_although_it_is_listed():
    text = INVENTORY.replace("[15b3:1021]", "[15b3:1021] (rev ff)")
    assert said(look([BY_NAME["pci.inventory"]], pci=text)) == ["fail pci.gone pci 0000:18:00"]


@pytest.mark.parametrize("text", ["", "no device\n", INVENTORY.replace(" [10de:2330]", "", 1), INVENTORY[:-20]])
def test_a_list_without_numbers_or_cut_is_unknown(text):
    assert verdict(saved(BY_NAME["pci.inventory"], text)) == "unknown"


def put(*changed, **kwargs):
    return look([BY_NAME["pci.links"]], pci_links=links(*changed), **kwargs)


def test_a_host_at_full_width_passes_with_its_bridge_its_resting_gpu_and_its_slow_management_port():
    found = put()
    assert said(found) == []
    assert {trait.part.key for trait in found.traits} == {
        *(f"0000:1{i}:00" for i in range(8)),
        *(f"0000:2{i}:00" for i in range(4)),
    }


@pytest.mark.parametrize("now", ["32.0 GT/s PCIe x8", "16.0 GT/s PCIe x16", "8.0 GT/s PCIe x4", "2.5 GT/s PCIe x0"])
def test_an_adapter_below_its_siblings_fails(now):
    assert said(put(device("0000:13:00.0", now=now))) == ["fail pci.degraded pci 0000:13:00"]


def test_a_link_names_the_adapter_behind_it():
    target = "../../devices/pci0000:10/0000:13:00.0/infiniband/mlx5_3"
    names = f"lrwxrwxrwx 1 root root 0 Nov  1 10:00 mlx5_3 -> {target}\n"
    found = put(device("0000:13:00.0", now="32.0 GT/s PCIe x8"), infiniband_pci=names)
    assert [str(each.symptom.part).split(",")[0] for each in found.symptoms] == ["pci 0000:13:00 (mlx5_3"]


def test_two_functions_share_one_link_and_one_finding():
    two = [*device("0000:13:00.0", now="32.0 GT/s PCIe x8"), *device("0000:13:00.1", now="32.0 GT/s PCIe x8")]
    assert said(put(two)) == ["fail pci.degraded pci 0000:13:00"]


def test_drives_that_all_run_alike_sit_in_slots_that_are_made_so():
    drive = {"kind": "0x010802", "model": "0x144d 0xa80a", "now": "8.0 GT/s PCIe x4", "most": "16.0 GT/s PCIe x4"}
    found = put(*(device(f"0000:2{i}:00.0", **drive) for i in range(4)))
    assert said(found) == []
    assert {trait.value for trait in found.traits if trait.part.key.startswith("0000:2")} == {"8 GT/s x4"}


def test_a_single_device_below_what_it_can_is_a_warning():
    lone = device("0000:40:00.0", model="0x15b3 0xa2dc", now="16.0 GT/s PCIe x16")
    assert said(put(lone)) == ["warn pci.degraded pci 0000:40:00"]


@pytest.mark.parametrize("now", ["Unknown x16", "32.0 GT/s PCIe xfoo", " x "])
def test_a_link_that_does_not_tell_is_unknown(now):
    assert said(put(device("0000:13:00.0", now=now))) == ["unknown telemetry.field pci 0000:13:00"]


def test_a_virtual_machine_tells_nothing_of_its_links():
    assert said(put(device("0000:13:00.0", now="Unknown x0", most="Unknown x255"))) == []


def test_no_pci_bus_is_skipped():
    found = look([BY_NAME["pci.links"]], pci_links=Output(name="pci_links", exit_status=2))
    assert said(found) == []
    assert found.skipped


def test_lspci_tells_both_ends_and_only_the_lower_one_is_judged():
    check = BY_NAME["pci.links"]
    assert verdict(saved(check, VERBOSE)) == "ok"
    narrow = VERBOSE.replace("16GT/s (ok), Width x4 (ok)", "16GT/s (ok), Width x2 (downgraded)").replace(
        "16GT/s (downgraded), Width x4 (ok)", "16GT/s (downgraded), Width x2 (downgraded)"
    )
    assert said(saved(check, narrow)) == ["warn pci.degraded pci 0000:18:00"]
    upstream = VERBOSE.replace("Speed 32GT/s (ok), Width x16 (ok)", "Speed 16GT/s (downgraded), Width x16 (ok)")
    assert said(saved(check, upstream)) == ["warn pci.degraded pci 0000:16:00"]


def test_a_gpu_at_rest_is_slow_but_not_narrow():
    narrow = VERBOSE.replace("2.5GT/s (downgraded), Width x16", "2.5GT/s (downgraded), Width x8")
    assert said(saved(BY_NAME["pci.links"], narrow)) == ["warn pci.degraded pci 0000:19:00"]


def test_lspci_without_root_is_unknown():
    text = "18:00.0 Non-Volatile memory controller: Micron\n\tCapabilities: <access denied>\n"
    found = saved(BY_NAME["pci.links"], text)
    assert said(found) == ["unknown telemetry.needs_root probe pci_links"]


def test_access_control_on_bridges_is_a_warning_where_it_is_asked_for():
    found = saved(BY_NAME["pci.acs"], VERBOSE)
    assert said(found) == ["warn pci.acs host"]
    assert "0000:17:00" in found.symptoms[0].symptom.evidence[1]
    off = VERBOSE.replace("SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+", "SrcValid- TransBlk- ReqRedir-")
    assert verdict(saved(BY_NAME["pci.acs"], off)) == "ok"
    assert not BY_NAME["pci.acs"].passive
