"""Transceivers: alarms of ports with a link; no module, copper and dark spare ports are no faults."""

import pytest

from tests.health.network import look, nics, recorded, said, saved, verdict
from wholestack.health.checks.optics import CHECKS
from wholestack.remote.batch import Output

(CHECK,) = CHECKS
TEXT = recorded("ethernet", "optics.txt")


def put(text, ethernet=None):
    return look(CHECKS, optics=text, ethernet=ethernet or nics())


def test_good_modules_copper_and_ports_without_a_module_pass():
    found = put(TEXT)
    assert said(found) == []
    values = {each.name: each.value for each in found.measures}
    assert values == {"optic.temperature_c": 41.21, "optic.rx_power_dbm": -0.55}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("low alarm   (Channel 2)    : Off", "low alarm   (Channel 2)    : On", "warn optic.alarm"),
        ("temperature high alarm             : Off", "temperature high alarm             : On", "warn optic.alarm"),
        ("temperature high warning           : Off", "temperature high warning           : On", "warn optic.warning"),
        ("41.21 degrees C", "foo degrees C", "unknown telemetry.field"),
        ("-0.36 dBm", "", "unknown telemetry.field"),
        ("low warning (Channel 1)    : Off", "low warning (Channel 1)    : ???", "unknown telemetry.field"),
    ],
)
def test_flags_and_readings_of_a_port_with_a_link_are_judged(old, new, code):
    assert old in TEXT
    assert said(put(TEXT.replace(old, new))) == [f"{code} nic eth0"]


def test_a_dark_port_without_a_link_is_not_judged():
    dark = TEXT.replace("low alarm   (Channel 1)    : Off", "low alarm   (Channel 1)    : On")
    down = nics().replace("eth0/operstate:up", "eth0/operstate:down")
    assert said(put(dark, down)) == []


def test_no_light_is_a_number():
    found = put(TEXT.replace("0.9204 mW / -0.36 dBm", "0.0000 mW / -inf dBm"))
    assert said(found) == []
    assert min(each.value for each in found.measures if each.name == "optic.rx_power_dbm") == -40.0


def test_a_module_that_cannot_be_read_is_unknown():
    broken = TEXT + "== rail0\nnetlink error: Input/output error\n"
    assert said(put(broken)) == ["unknown optic.unreadable nic rail0"]


def test_no_ethtool_or_no_module_at_all_is_skipped():
    absent = Output(name="optics", stdout=b"== eth0\nsh: 1: ethtool: not found\n", exit_status=127)
    for given in (absent, "== eth9\nnetlink error: Invalid argument\n"):
        found = put(given)
        assert said(found) == []
        assert [each.check for each in found.skipped] == ["nic.optics"]


@pytest.mark.parametrize("text", ["", "hello", "== eth0\nsomething else\n"])
def test_other_text_is_unknown(text):
    assert verdict(saved(CHECK, text)) == "unknown"
