"""Dates and columns of ipmitool."""

import calendar

import pytest

from wholestack.health.formats.ipmi import read_sel, read_sel_time, read_sensors
from wholestack.health.probe import UnreadableError

AT = calendar.timegm((2026, 11, 29, 20, 5, 6, 0, 0, 0))


@pytest.mark.parametrize(
    ("date", "clock", "expected"),
    [
        ("11/29/2026", "20:05:06", AT),
        ("11/29/26", "20:05:06 UTC", AT),
        ("01/01/1970", "00:00:10", None),
        ("Pre-Init", "0000000041", None),
        ("13/29/2026", "20:05:06", None),
        ("11/29/2026", "what", None),
    ],
)
def test_dates_in_both_layouts_and_clocks_that_were_never_set(date, clock, expected):
    for line in (f"   a | {date} | {clock} | Fan Fan1 | x | Asserted", f"a,{date},{clock},Fan Fan1,x,Asserted"):
        (event,) = read_sel(line + "\n")
        assert (event.at, event.sensor, event.what, event.asserted) == (expected, "Fan Fan1", "x", True)


def test_what_follows_the_direction_is_not_part_of_the_state():
    (event,) = read_sel("1 | 11/29/2026 | 20:05:06 | Fan Fan1 | Lower | Deasserted | Reading 9 > Threshold 6 RPM\n")
    assert (event.what, event.asserted) == ("Lower", False)
    (event,) = read_sel("1 | 11/29/2026 | 20:05:06 | Memory ECC | Uncorrectable ECC (x |  DIMM A1) | Asserted\n")
    assert event.what == "Uncorrectable ECC (x DIMM A1)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("11/29/2026 20:05:06", AT),
        ("11/29/26 20:05:06 UTC", AT),
        ("11/29/2026 08:05:06 PM UTC", AT),
        ("S+ 03:29:09", None),
    ],
)
def test_the_clock_of_the_log(text, expected):
    assert read_sel_time(text + "\n") == expected


def test_a_sensor_without_reading_is_silent_in_every_layout():
    for line in ("A1 Temp | 40h | ns | 32.1 | No Reading", "A1 Temp | no reading | ns", "A1 Temp,,,ns"):
        (sensor,) = read_sensors(line + "\n")
        assert (sensor.status, sensor.value, sensor.states) == ("ns", None, "")


def test_text_that_is_no_table_is_refused():
    with pytest.raises(UnreadableError):
        read_sensors("hello\n")
    with pytest.raises(UnreadableError):
        read_sel("hello | world\n")
