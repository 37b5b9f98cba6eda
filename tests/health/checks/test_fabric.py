"""Switches and the graph of a fabric."""

import pytest

from tests.health.network import recorded, said, saved, verdict
from wholestack.health.check import Expectation
from wholestack.health.checks.fabric import CHECKS, GRAPH

SWITCH, FABRIC = CHECKS
OUTPUT = recorded("fabric", "ibswinfo.txt")
PORTS, TOPOLOGY = recorded("fabric", "ibnetdiscover_p.txt"), recorded("fabric", "ibnetdiscover.txt")
GUID = "0x0200000000000099"


def changed(old, new, count=-1, text=OUTPUT):
    assert old in text
    return text.replace(old, new, count)


def test_a_good_switch_passes():
    found = saved(SWITCH, OUTPUT)
    assert verdict(found) == "ok"
    assert [(trait.name, trait.value) for trait in found.traits] == [("switch.firmware", "31.2012.1024")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("\nfan status         | OK", "\nfan status         | ERROR", f"fail switch.fan fan {GUID}/fans"),
        ("PSU1 status        | OK", "PSU1 status        | ERROR", f"fail switch.psu psu {GUID}/PSU1"),
        ("DC power      | OK", "DC power      | ERROR", f"fail switch.psu psu {GUID}/PSU0"),
        ("     fan status    | OK", "     fan status    | ERROR", f"fail switch.psu psu {GUID}/PSU0"),
        ("| 6125", "| 0", f"fail switch.fan fan {GUID}/fan#1"),
        ("| 6125", "| 2000", f"fail switch.fan fan {GUID}/fan#1"),
        ("| 6125", "| foo", f"unknown telemetry.field fan {GUID}/fan#1"),
        ("| 154", "| foo", f"unknown telemetry.field psu {GUID}/PSU0"),
        ("| 53", "| foo", f"unknown telemetry.field switch {GUID}"),
        ("| 53", "| 85", f"warn switch.hot switch {GUID}"),
        ("| 53", "| 99", f"fail switch.hot switch {GUID}"),
        ("PSU1 status        | OK", "PSU1 status        | ??", f"unknown telemetry.field psu {GUID}/PSU1"),
        ("PSU1 status        | OK", "PSU1 status        |", f"unknown telemetry.field psu {GUID}/PSU1"),
    ],
)
def test_one_bad_part_is_one_finding(old, new, expected):
    assert said(saved(SWITCH, changed(old, new, 1))) == [expected]


def test_the_fan_that_stands_still_is_named_rather_than_all_of_them():
    text = changed("\nfan status         | OK", "\nfan status         | ERROR")
    assert said(saved(SWITCH, changed("| 6125", "| 0", text=text))) == [f"fail switch.fan fan {GUID}/fan#1"]


def test_what_a_switch_does_not_have_is_no_fault():
    assert verdict(saved(SWITCH, changed("| 154", "| N/A"))) == "ok"


def test_a_profile_moves_the_limits():
    hot = Expectation(limits={"switch.warm_c": 50, "switch.hot_c": 52})
    assert said(saved(SWITCH, OUTPUT, profile=hot)) == [f"fail switch.hot switch {GUID}"]


@pytest.mark.parametrize("text", ["", "hello", OUTPUT[: OUTPUT.index("temperature")], OUTPUT[: OUTPUT.index("fan#1")]])
def test_a_cut_output_is_unknown(text):
    assert verdict(saved(SWITCH, text)) == "unknown"


def test_both_layouts_give_the_graph():
    ports, topology = GRAPH.read_text(PORTS), GRAPH.read_text(TOPOLOGY)
    assert (len(ports.nodes), len(ports.links), ports.unconnected, len(ports.adapters)) == (6, 6, 2, 5)
    assert (len(topology.nodes), len(topology.links), len(topology.adapters)) == (3, 2, 2)
    assert str(topology.ends[-1]) == "host2 mlx5_0 port 1 to MF0;leaf1:MQM9700/U1 port 2: 4x NDR"


@pytest.mark.parametrize("text", [PORTS, TOPOLOGY])
def test_a_good_fabric_passes_with_its_unused_ports_and_the_peers_that_were_not_asked(text):
    assert verdict(saved(FABRIC, text)) == "ok"


def test_a_slow_link_is_named_once_although_both_ends_tell_it():
    slow = PORTS.replace("0x0200000000000012 4x NDR", "0x0200000000000012 4x EDR")
    slow = slow.replace("SW   101  2 0x0200000000000101 4x NDR", "SW   101  2 0x0200000000000101 4x EDR")
    found = saved(FABRIC, slow)
    assert said(found) == ["warn fabric.slow_link cable 200000000000012/1"]
    assert "host2 mlx5_0 port 1 to leaf1 port 2" in found.symptoms[0].symptom.evidence[0]


def test_a_link_that_lost_lanes_fails():
    narrow = PORTS.replace("0x0200000000000012 4x NDR", "0x0200000000000012 1x NDR")
    assert said(saved(FABRIC, narrow)) == ["fail fabric.narrow_link cable 200000000000012/1"]


def test_a_connected_port_of_unknown_speed_is_unknown():
    text = PORTS.replace("0x0200000000000012 4x NDR", "0x0200000000000012 4x ???")
    assert said(saved(FABRIC, text)) == ["unknown telemetry.field cable 200000000000012/1"]


def test_links_between_switches_are_not_compared_with_those_to_hosts():
    assert "4x HDR - SW" in PORTS
    assert verdict(saved(FABRIC, PORTS)) == "ok"


def test_two_devices_with_one_guid_are_named():
    twin = (
        PORTS + "CA    19  1 0x0200000000000011 4x NDR - SW   101  9 0x0200000000000101 ( 'host9 mlx5_0' - 'leaf1' )\n"
    )
    found = saved(FABRIC, twin)
    assert "fail fabric.duplicate_guid switch 200000000000011" in said(found)
    evidence = next(each.symptom.evidence[0] for each in found.symptoms if each.status == "fail")
    assert "host1" in evidence
    assert "host9" in evidence


def test_a_link_that_only_one_end_sees_is_a_warning_if_the_other_was_asked():
    half = "\n".join(line for line in PORTS.splitlines() if not line.startswith("SW   101  2 ")) + "\n"
    assert said(saved(FABRIC, half)) == ["warn fabric.half_seen cable 200000000000012/1"]


@pytest.mark.parametrize("text", ["", "hello", PORTS[:-30], TOPOLOGY[:-60], "vendid=0x2c9\n"])
def test_a_cut_fabric_is_unknown(text):
    assert verdict(saved(FABRIC, text)) == "unknown"
