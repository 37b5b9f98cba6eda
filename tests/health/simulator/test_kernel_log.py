"""The ring buffer in the three forms of ``dmesg``."""

from wholestack.health.simulator.kernel_log import CAPACITY_LINES, KernelLog

EPOCH = 1_793_577_600.0  # 2 November 2026, a Monday


def log() -> KernelLog:
    made = KernelLog()
    made.add(3_661.25, "warn", "second")
    made.add(60.0, "info", "first")
    return made


def test_iso_has_facility_level_comma_and_zone():
    text = log().render("iso", booted_clock_s=EPOCH, utc_offset_h=-5)
    assert text == (
        "kern  :info  : 2026-11-01T19:01:00,000000-05:00 first\n"
        "kern  :warn  : 2026-11-01T20:01:01,250000-05:00 second\n"
    )


def test_ctime_is_local_and_names_no_zone():
    text = log().render("ctime", booted_clock_s=EPOCH, utc_offset_h=1)
    assert text == "[Mon Nov  2 01:01:00 2026] first\n[Mon Nov  2 02:01:01 2026] second\n"


def test_seconds_count_from_boot():
    assert log().render("seconds", booted_clock_s=EPOCH, utc_offset_h=0) == (
        "[   60.000000] first\n[ 3661.250000] second\n"
    )


def test_further_lines_of_a_message_are_indented_by_the_prefix():
    made = KernelLog()
    made.add(1.0, "err", "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: fallen off the bus")
    first, second = made.render("ctime", booted_clock_s=EPOCH, utc_offset_h=0).splitlines()
    assert second == " " * (first.index("NVRM")) + "NVRM: fallen off the bus"


def test_the_oldest_fall_out():
    made = KernelLog()
    for second in range(CAPACITY_LINES + 5):
        made.add(float(second), "info", "x")
    assert len(made.lines) == CAPACITY_LINES
    assert made.lines[0].at_s == 5.0


def test_a_new_message_or_another_clock_is_rendered_anew():
    made = log()
    before = made.render("iso", booted_clock_s=EPOCH, utc_offset_h=0)
    made.add(4_000.0, "info", "third")
    assert made.render("iso", booted_clock_s=EPOCH, utc_offset_h=0).startswith(before)
    assert made.render("iso", booted_clock_s=EPOCH + 9, utc_offset_h=0)[:40] != before[:40]
