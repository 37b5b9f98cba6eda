"""Numbers keep their value to the digits shown, and text of a run cannot steer a terminal or a page."""

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.report import quantities


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.9344, "1.934"),
        (0.05, "0.05000"),
        (12345.6, "12,346"),
        (4.2e11, "4.2e11"),
        (2e-5, "2e-5"),
        (0, "0"),
        (412, "412"),
    ],
)
def test_numbers_show_four_digits(value, shown):
    assert quantities.number(value) == shown


@given(st.floats(min_value=1e-12, max_value=1e18), st.sampled_from([-1, 1]))
def test_a_shown_number_is_within_half_a_digit_of_the_value(size, sign):
    value = size * sign
    for show, tolerance in ((quantities.number, 6e-3), (quantities.short, 6e-2)):
        assert math.isclose(float(show(value).replace(",", "")), value, rel_tol=tolerance)
    assert math.isclose(float(quantities.flops(value).removesuffix(" FLOPs")), value, rel_tol=0.051)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.84, "1.8 s"), (42.4, "42 s"), (59.6, "1 min 00 s"), (462, "7 min 42 s"), (7500, "2 h 05 min"), (0, "0.0 s")],
)
def test_durations(seconds, shown):
    assert quantities.duration(seconds) == shown


def test_flops_sizes_percentages_and_moments():
    assert quantities.flops(4.23e11) == "4.2e11 FLOPs"
    assert quantities.size(12_345_678) == "12.3 MB"
    assert quantities.size(12) == "12 B"
    assert quantities.percent(0.0123) == "+1.2 %"
    assert quantities.percent(-0.0123) == "-1.2 %"
    assert quantities.moment(0.0) == "1970-01-01 00:00:00 UTC"
    assert quantities.moment(1e300) == "1e+300 s since the epoch"


@given(st.text())
def test_printable_text_holds_no_control_and_no_direction_characters(text):
    shown = quantities.printable(text)
    assert len(shown) <= 600
    assert not any(unicodedata.category(each) == "Cc" for each in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")


def test_printable_keeps_ordinary_text_and_marks_what_it_cut():
    assert quantities.printable("naïve 数 ü\n\tx") == "naïve 数 ü  x"
    assert quantities.printable("a" * 10, limit=5) == "aaaa…"
    assert quantities.printable("a\x1b[31mb") == "a\ufffd[31mb"


def test_settings_are_shown_by_kind():
    assert quantities.setting(3) == "3"
    assert quantities.setting(0.00123) == "0.00123"
    assert quantities.setting("silu") == "silu"
    assert quantities.setting(True) == "True"
