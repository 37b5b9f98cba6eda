"""InfiniBand ports: down, slow, narrow, gone; and what of that is no fault."""

import pytest

from tests.health.network import adapter, addresses, host, look, port, recorded, said, saved, verdict
from wholestack.health.check import Expectation
from wholestack.health.checks.infiniband import CHECKS
from wholestack.health.checks.infiniband_errors import CHECKS as ERRORS
from wholestack.remote.batch import Output

BY_NAME = {check.name: check for check in CHECKS}
EVERY = (*CHECKS, *ERRORS)
DOWN = {"state": "1: DOWN", "phys_state": "2: Polling"}


def put(text, **kwargs):
    return look(EVERY, infiniband=text, infiniband_pci=addresses(), **kwargs)


def with_port(index=3, **fields):
    device = f"mlx5_{index}"
    return host({device: adapter(device, port(device, **fields))})


def test_a_host_with_eight_good_ports_passes_everything():
    found = put(host())
    assert said(found) == []
    assert set(found.passed) == {check.name for check in EVERY}


@pytest.mark.parametrize(
    ("fields", "code", "owner"),
    [
        (DOWN, "ib.no_link", "data centre"),
        ({"state": "1: DOWN", "phys_state": "4: PortConfigurationTraining"}, "ib.no_link", "data centre"),
        ({"state": "1: DOWN", "phys_state": "3: Disabled"}, "ib.disabled", "network"),
        ({"state": "2: INIT", "phys_state": "5: LinkUp"}, "ib.no_subnet_manager", "network"),
        ({"state": "3: ARMED", "phys_state": "5: LinkUp"}, "ib.no_subnet_manager", "network"),
        ({"rate": "100 Gb/sec (1X NDR)"}, "ib.narrow", "data centre"),
        ({"rate": "200 Gb/sec (2X NDR)"}, "ib.narrow", "data centre"),
        ({"rate": "100 Gb/sec (4X EDR)"}, "ib.slow", "data centre"),
    ],
)
def test_one_bad_port_is_one_finding_with_the_port_and_the_owner(fields, code, owner):
    found = put(with_port(**fields))
    assert said(found) == [f"fail {code} hca_port mlx5_3/1"]
    symptom = found.symptoms[0].symptom
    assert symptom.cause.owner == owner
    assert symptom.part.label == "PCI 0000:13:00"
    assert "mlx5_3/1" in symptom.evidence[0]


def test_a_port_that_is_down_takes_in_its_errors_and_flaps():
    counters = {"symbol_error": 9_000_000, "link_downed": 255, "port_rcv_errors": 65535}
    found = put(with_port(**DOWN, counters=counters))
    assert said(found) == ["fail ib.no_link hca_port mlx5_3/1"]


def test_an_active_count_below_the_profile_is_the_same_fault():
    found = put(with_port(**DOWN), profile=Expectation(traits={"ib.active_count": 8}))
    assert said(found) == ["fail ib.no_link hca_port mlx5_3/1"]


def test_the_second_port_of_cards_with_two_may_be_spare():
    spare = {
        f"mlx5_{i}": adapter(f"mlx5_{i}", port(f"mlx5_{i}"), port(f"mlx5_{i}", number=2, traffic=0, **DOWN))
        for i in (0, 1)
    }
    assert said(put(host(spare))) == []


def test_a_port_without_traffic_whose_siblings_are_up_has_lost_its_cable_at_boot():
    assert said(put(with_port(**DOWN, traffic=0))) == ["fail ib.no_link hca_port mlx5_3/1"]


def test_a_profile_tells_how_many_ports_are_in_use():
    text = with_port(**DOWN)
    assert said(put(text, profile=Expectation(traits={"ib.active_count": 7}))) == []


def test_adapters_that_never_had_a_link_are_a_warning_and_once():
    text = host({f"mlx5_{i}": adapter(f"mlx5_{i}", port(f"mlx5_{i}", traffic=0, **DOWN)) for i in range(8)})
    assert said(put(text)) == ["warn ib.all_down hca MT_0000000838"]


def test_a_host_without_infiniband_is_skipped_but_counted_as_none():
    for status in (1, 2):
        none = Output(name="infiniband", exit_status=status, stderr=b"sh: cd: can't cd to /sys/class/infiniband")
        found = look(EVERY, infiniband=none, infiniband_pci=none)
        assert said(found) == []
        assert "ib.state" in {each.check for each in found.skipped}
        assert {trait.name: trait.value for trait in found.traits}["ib.port_count"] == 0


def test_a_profile_that_counts_ports_notices_when_all_are_gone():
    none = Output(name="infiniband", exit_status=2)
    by_trait = look(CHECKS, infiniband=none, profile=Expectation(traits={"ib.port_count": 8}))
    assert said(by_trait) == ["fail ib.count host"]
    by_check = look(CHECKS, infiniband=none, profile=Expectation(checks=("ib.count",)))
    assert said(by_check) == ["fail telemetry.expected_missing host"]


def test_an_adapter_on_the_bus_without_a_driver_is_named():
    lines = [
        f"0000:1{i}:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]"
        for i in range(8)
    ]
    found = look(
        CHECKS,
        infiniband=host({"mlx5_3": None}),
        infiniband_pci=addresses().replace("0000:13", "0000:ff"),
        pci="\n".join(lines),
    )
    assert said(found) == ["fail ib.no_driver pci 0000:13:00"]
    assert said(look(CHECKS, infiniband=host(), infiniband_pci=addresses(), pci="\n".join(lines))) == []


def test_roce_ports_are_counted_but_judged_as_ethernet():
    text = host({"mlx5_3": adapter("mlx5_3", port("mlx5_3", link_layer="Ethernet", **DOWN, rate="40 Gb/sec (4X QDR)"))})
    found = put(text)
    assert said(found) == []
    traits = {trait.name: trait.value for trait in found.traits}
    assert (traits["ib.port_count"], traits["ib.active_count"], traits["roce.port_count"]) == (7, 7, 1)


def test_a_slow_roce_port_is_none_of_infiniband():
    slow = port("mlx5_3", link_layer="Ethernet", rate="25 Gb/sec (1X EDR)")
    assert said(put(host({"mlx5_3": adapter("mlx5_3", slow)}))) == []


def test_two_slower_ports_may_be_meant_so_and_are_left_to_the_fleet():
    slow = {f"mlx5_{i}": adapter(f"mlx5_{i}", port(f"mlx5_{i}", rate="200 Gb/sec (4X HDR)")) for i in (6, 7)}
    found = put(host(slow))
    assert said(found) == []
    rates = [trait for trait in found.traits if trait.name == "ib.rate" and trait.part.key == "mlx5_6/1"]
    assert [trait.value for trait in rates] == ["200 Gb/sec (4X HDR)"]


def test_a_profile_sets_the_least_rate():
    slow = {f"mlx5_{i}": adapter(f"mlx5_{i}", port(f"mlx5_{i}", rate="200 Gb/sec (4X HDR)")) for i in (6, 7)}
    found = put(host(slow), profile=Expectation(limits={"ib.rate_gbs": 400}))
    assert said(found) == ["fail ib.slow hca_port mlx5_6/1", "fail ib.slow hca_port mlx5_7/1"]


def test_two_lanes_are_no_fault_where_all_have_two():
    text = host({f"mlx5_{i}": adapter(f"mlx5_{i}", port(f"mlx5_{i}", rate="100 Gb/sec (2X HDR)")) for i in range(8)})
    assert said(put(text)) == []


def test_firmware_that_differs_from_the_siblings_is_a_warning_of_the_adapter():
    found = put(host({"mlx5_5": adapter("mlx5_5", firmware="28.39.1002")}))
    assert said(found) == ["warn ib.firmware hca mlx5_5"]
    mixed = host({"mlx5_5": adapter("mlx5_5", firmware="20.38.1002", board="MT_0000000223")})
    assert said(put(mixed)) == []


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"state": None}, "state"),
        ({"state": "7: WEIRD"}, "state"),
        ({"rate": None}, "rate"),
        ({"rate": "fast"}, "rate"),
        ({"counters": {"symbol_error": None}}, "symbol_error"),
        ({"counters": {"port_rcv_errors": "foo"}}, "port_rcv_errors"),
        ({"counters": {"link_downed": "???"}}, "link_downed"),
        ({"counters": {"local_link_integrity_errors": "bar"}}, "local_link_integrity_errors"),
    ],
)
def test_a_missing_or_garbled_field_is_unknown_and_never_ok(fields, name):
    found = put(with_port(**fields))
    assert said(found) == ["unknown telemetry.field hca_port mlx5_3/1"]
    assert any(name in line for symptom in found.symptoms for line in symptom.symptom.evidence)


@pytest.mark.parametrize("check", ["ib.state", "ib.rate", "ib.width"])
def test_a_tool_that_does_not_tell_what_is_asked_is_unknown(check):
    assert verdict(saved(BY_NAME[check], recorded("infiniband", "perfquery.txt"))) == "unknown"


def test_saved_outputs_of_other_tools_are_judged_alike():
    for name in ("ibstat.txt", "ibstatus.txt"):
        found = saved(BY_NAME["ib.state"], recorded("infiniband", name))
        assert said(found) == ["fail ib.no_subnet_manager hca_port mlx5_1/1"]
    assert verdict(saved(BY_NAME["ib.width"], recorded("infiniband", "ibstat.txt"))) == "unknown"
    assert verdict(saved(BY_NAME["ib.width"], recorded("infiniband", "ibstatus.txt"))) == "ok"


def test_places_and_models_are_traits_of_each_adapter():
    found = put(host({"mlx5_7": adapter("mlx5_7", numa=1)}))
    nodes = {trait.part.key: trait.value for trait in found.traits if trait.name == "ib.numa_node"}
    assert nodes["mlx5_0"] == 0
    assert nodes["mlx5_7"] == 1
