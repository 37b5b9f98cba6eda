"""Ethernet ports: those in use are judged, spare ones and what software makes are not."""

import pytest

from tests.health.network import NOW, look, moment, nic, nics, said, saved, verdict
from wholestack.health.check import Before, Expectation
from wholestack.health.checks.ethernet import CHECKS
from wholestack.remote.batch import Output

BY_NAME = {check.name: check for check in CHECKS}


def put(*more, uptime_h=200.0, **kwargs):
    return look(CHECKS, ethernet=nics(*more), moment=moment(uptime_s=uptime_h * 3600), **kwargs)


def test_a_host_with_spare_ports_and_virtual_interfaces_passes_everything():
    found = put()
    assert said(found) == []
    assert len(found.passed) == len(CHECKS)


def test_grep_ends_with_2_where_a_file_cannot_be_read():
    assert said(look(CHECKS, ethernet=Output(name="ethernet", stdout=nics().encode(), exit_status=2))) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"operstate": "down", "speed": None, "carrier_changes": 3}, "fail nic.down nic rail3"),
        ({"operstate": "lowerlayerdown", "speed": None, "carrier_changes": 3}, "fail nic.down nic rail3"),
        ({"speed": 100_000}, "fail nic.slow nic rail3"),
        ({"speed": 400_000, "duplex": "half"}, "fail nic.slow nic rail3"),
        ({"speed": 400_000, "mtu": 1500}, "warn nic.mtu nic rail3"),
        ({"speed": None}, "unknown telemetry.field nic rail3"),
        ({"speed": "foo"}, "unknown telemetry.field nic rail3"),
        ({"operstate": None, "speed": None}, "unknown telemetry.field nic rail3"),
        ({"speed": 400_000, "statistics/rx_crc_errors": 5000}, "warn nic.error_rate nic rail3"),
        ({"speed": 400_000, "statistics/rx_crc_errors": 500_000}, "fail nic.error_rate nic rail3"),
        ({"speed": 400_000, "statistics/rx_crc_errors": "x"}, "unknown telemetry.field nic rail3"),
        ({"speed": 400_000, "carrier_changes": "many"}, "unknown telemetry.field nic rail3"),
        ({"speed": 400_000, "mtu": "?"}, "unknown telemetry.field nic rail3"),
        ({"speed": 400_000, "carrier_changes": 90}, "fail nic.flapping nic rail3"),
        ({"speed": 400_000, "carrier_changes": 24}, "warn nic.flapping nic rail3"),
    ],
)
def test_one_bad_port_is_one_finding(fields, expected):
    assert said(put(nic("rail3", **fields))) == [expected]


def test_dropped_packets_are_no_errors():
    drops = {"statistics/rx_dropped": 10**9, "statistics/tx_dropped": 10**9}
    assert said(put(nic("rail3", speed=400_000, **drops))) == []


def test_a_port_that_is_down_takes_in_its_flaps_errors_and_the_count():
    lost = nic("rail3", operstate="down", speed=None, carrier_changes=91, **{"statistics/rx_crc_errors": 500_000})
    profile = Expectation(traits={"nic.up_count": 10})
    assert said(put(lost, profile=profile)) == ["fail nic.down nic rail3"]


def test_a_port_of_a_bond_that_is_down_is_named_and_a_dead_bond_takes_in_its_ports():
    slave = nic("eth1", operstate="down", speed=None, carrier_changes=1)
    assert said(put(slave)) == ["fail nic.down nic eth1"]
    dead = nic("bond0", operstate="down", speed=None, **{"device/vendor": None, "bonding/slaves": "eth0 eth1"})
    assert said(put(slave, dead, nic("eth0", operstate="down", speed=None))) == ["fail nic.bond_down nic bond0"]


def test_a_bond_that_calls_itself_up_without_a_port_is_down():
    fields = {"device/vendor": None, "bonding/slaves": "eth0 eth1", "bonding/mii_status": "down"}
    assert said(put(nic("bond0", speed=200_000, **fields))) == ["fail nic.bond_down nic bond0"]


def test_a_port_of_a_bond_that_is_slower_than_the_other_is_named():
    assert said(put(nic("eth1", speed=25_000))) == ["fail nic.slow nic eth1"]


def test_a_bond_of_virtual_ports_is_not_judged():
    lines = nic("bond7", operstate="down", speed=None, **{"device/vendor": None, "bonding/slaves": "veth12ab"})
    assert said(put(lines)) == []


def test_a_profile_names_ports_that_must_be_up():
    profile = Expectation(options={"nics": "eth0, eth9 eth77"})
    assert said(put(profile=profile)) == ["fail nic.missing nic eth77", "fail nic.down nic eth9"]


@pytest.mark.parametrize("speed", [None, -1, 4_294_967_295])
def test_drivers_of_virtual_machines_need_not_tell_a_speed(speed):
    assert said(put(nic("ens5", speed=speed, **{"device/vendor": "0x1d0f"}))) == []


def test_a_management_port_at_100_mb_is_slow():
    assert said(put(nic("eth0", speed=100, **{"device/vendor": "0x14e4"}))) == ["fail nic.slow nic eth0"]


def test_a_loss_of_the_link_since_the_last_look_is_a_warning_and_bringing_up_is_none():
    def again(changes):
        first = put(nic("rail3", speed=400_000, carrier_changes=5))
        before = Before(at=NOW - 3600, boot_id="b", counters=first.after.counters)
        return said(put(nic("rail3", speed=400_000, carrier_changes=changes), before=before))

    assert again(5) == []
    assert again(7) == ["warn nic.flapping nic rail3"]
    assert again(11) == ["fail nic.flapping nic rail3"]


def test_speeds_sizes_of_frames_and_the_count_are_traits():
    values = {(trait.name, trait.part.key): trait.value for trait in put().traits}
    assert values["nic.up_count", ""] == 10
    assert values["nic.speed_mbs", "rail0"] == 400_000
    assert values["nic.mtu", "eth0"] == 9000
    assert ("nic.mtu", "docker0") not in values


@pytest.mark.parametrize("text", ["", "\n", "hello\n", "eth0/operstate\n", "{}"])
def test_other_text_is_unknown(text):
    assert verdict(saved(BY_NAME["nic.state"], text)) == "unknown"
