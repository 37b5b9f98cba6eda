"""The BMC's log, sensors and clock."""

from datetime import UTC, datetime

import pytest

from tests.health.looking import NOW, look, moment, recorded, said
from wholestack.health.check import Expectation
from wholestack.health.checks.bmc import CHECKS
from wholestack.health.checks.memory import CHECKS as MEMORY
from wholestack.remote.batch import Output

SEL, SENSORS, CLOCK = CHECKS
LOG = recorded("ipmi", "sel_elist.txt")
HEALTHY, FAULTS = recorded("ipmi", "sdr_elist_healthy.txt"), recorded("ipmi", "sdr_elist_faults.txt")


def test_recent_events_that_were_not_taken_back_are_named_once_each():
    assert sorted(said(look([SEL], sel=LOG))) == [
        ("fail", "bmc.drive", "drive Drive 3"),
        ("fail", "bmc.pcie_fatal", "pci 0000:9b:00"),
        ("fail", "cpu.thermal_trip", "cpu CPU1"),
        ("fail", "fan.failed", "fan Fan3A"),
        ("fail", "memory.uncorrected", "dimm A1"),
        ("fail", "psu.input_lost", "psu PS1"),
        ("warn", "bmc.hot", "sensor Inlet Temp"),
        ("warn", "bmc.log_full", "bmc SEL"),
        ("warn", "bmc.watchdog", "host"),
    ]


def test_old_events_are_over():
    later = look([SEL], sel=LOG, moment=moment(now=NOW + 3 * 86_400))
    assert later.passed == ("bmc.sel",)


def test_the_layouts_of_lists_and_commas_say_the_same():
    commas = "\n".join(",".join(part.strip() for part in line.split("|")) for line in LOG.splitlines()) + "\n"
    short = LOG.replace("2026 |", "26 |").replace(":00 |", ":00 UTC |")
    for text in (commas, short):
        assert sorted(said(look([SEL], sel=text))) == sorted(said(look([SEL], sel=LOG)))


def test_a_number_is_looked_up_among_the_sensors():
    text = "   1 | 11/29/26 | 23:00:00 UTC | Power Supply #0x64 | Failure detected | Asserted\n"
    assert said(look([SEL], sel=text, sensors=HEALTHY)) == [("fail", "psu.failed", "psu PS2")]
    assert said(look([SEL], sel=text)) == [("fail", "psu.failed", "psu Power Supply #0x64")]


def test_one_broken_module_in_log_and_kernel_is_one_finding():
    edac = recorded("edac", "errors.txt").replace("mc0/dimm0/dimm_ce_count:52014", "mc0/dimm0/dimm_ce_count:0")
    edac = edac.replace("mc0/ce_count:52014", "mc0/ce_count:0")
    found = said(look((MEMORY[0], SEL), edac=edac, sel=LOG))
    assert [each for each in found if each[1].startswith("memory.")] == [
        ("fail", "memory.uncorrected", "dimm CPU_SrcID#0_MC#1_Chan#0_DIMM#0")
    ]


def test_a_log_ahead_of_the_host_is_moved_back_and_said():
    ahead = LOG.replace("11/29/2026", "12/24/2026")
    found = said(look([SEL], sel=ahead))
    assert ("warn", "bmc.clock", "bmc") in found
    assert ("fail", "psu.input_lost", "psu PS1") in found


def test_an_event_without_a_date_counts_as_old_as_the_next_dated_one():
    undated = "   1 |  Pre-Init  |0000000041| Power Supply PS1 Status | Failure detected | Asserted\n"
    dated = "   2 | 11/01/2026 | 08:00:00 | Power Supply PS2 Status | Presence detected | Asserted\n"
    assert said(look([SEL], sel=undated + dated)) == []
    assert said(look([SEL], sel=dated + undated)) == [("fail", "psu.failed", "psu PS1")]


def test_a_supply_that_was_pulled_out_is_missing():
    text = "   2 | 11/29/2026 | 20:00:00 | Power Supply PS2 Status | Presence detected | Deasserted\n"
    assert said(look([SEL], sel=text)) == [("fail", "psu.missing", "psu PS2")]


def test_an_empty_log_passes_a_missing_bmc_is_skipped_and_noise_is_unknown():
    assert look([SEL], sel="SEL has no entries\n").passed == ("bmc.sel",)
    gone = b"Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"
    for output in (Output(name="sel", exit_status=1, stdout=gone), Output(name="sel", exit_status=127)):
        assert look([SEL], sel=output).skipped
    assert said(look([SEL], sel="Get SEL Info command failed\n"))[0][0] == "unknown"


def test_complaints_between_entries_do_no_harm_and_ten_thousand_entries_are_one_finding():
    line = "{:4x} | 11/29/2026 | 20:00:00 | Power Supply PS1 Status | Failure detected | Asserted\n"
    text = "Get SDR 0000 command failed\n" + "".join(line.format(each) for each in range(10_000))
    found = look([SEL], sel=text)
    assert said(found) == [("fail", "psu.failed", "psu PS1")]
    assert len(found.symptoms[0].symptom.evidence) == 3


def test_sensors_beyond_limits_and_in_bad_states_are_named_by_part():
    assert look([SENSORS], sensors=HEALTHY).passed == ("bmc.sensors",)
    assert sorted(said(look([SENSORS], sensors=FAULTS))) == [
        ("fail", "bmc.drive", "drive Drive 0"),
        ("fail", "bmc.hot", "sensor Exhaust Temp"),
        ("fail", "fan.failed", "fan Fan3A"),
        ("fail", "psu.failed", "psu PS2"),
        ("fail", "psu.input_lost", "psu PS1"),
        ("warn", "bmc.battery", "sensor CMOS Battery"),
        ("warn", "bmc.hot", "sensor Inlet Temp"),
        ("warn", "bmc.silent", "fan Fan4A"),
    ]


def test_log_and_sensors_tell_of_one_supply_once():
    both = said(look([SEL, SENSORS], sel=LOG, sensors=FAULTS))
    assert both.count(("fail", "psu.input_lost", "psu PS1")) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sensor.txt", [("fail", "fan.failed", "fan Fan2A"), ("fail", "psu.input_lost", "psu PS2")]),
        ("sdr_csv.txt", [("fail", "fan.failed", "fan Fan2A"), ("fail", "psu.input_lost", "psu PS1")]),
    ],
)
def test_the_other_layouts(name, expected):
    assert said(look([SENSORS], sensors=recorded("ipmi", name))) == expected


def test_supplies_that_share_a_name_are_told_apart_by_their_place():
    text = recorded("ipmi", "sdr_unnamed_supplies.txt")
    log = "   1 | 11/29/2026 | 23:00:00 | Power Supply #0x63 | Power Supply AC lost | Asserted\n"
    expected = [("fail", "psu.input_lost", "psu PS2")]
    assert said(look([SENSORS], sensors=text)) == expected
    assert said(look([SEL, SENSORS], sensors=text, sel=log)) == expected


def test_states_behind_a_reading_count_and_a_disabled_sensor_does_not():
    assert sorted(said(look([SENSORS], sensors=recorded("ipmi", "sdr_readings_with_states.txt")))) == [
        ("fail", "psu.failed", "psu PS1"),
        ("warn", "memory.corrected", "dimm Memory"),
    ]


def test_single_corrected_errors_are_normal_and_many_of_one_module_are_not():
    line = "{:4x} | 11/29/26 | 04:50:09 PM UTC | Memory #0x02 | Correctable ECC (CE |  DIMMD7) | Asserted\n"
    assert look([SEL], sel="".join(line.format(each) for each in range(9))).passed == ("bmc.sel",)
    found = look([SEL], sel="".join(line.format(each) for each in range(10)))
    assert said(found) == [("warn", "memory.corrected", "dimm DIMMD7")]


def test_a_discrete_sensor_in_a_bad_state_is_told_with_the_state_alone():
    text = HEALTHY.replace(
        "PS2 Status       | 64h | ok  | 10.2 | Presence", "PS2 Status | 64h | cr | 10.2 | Failure detected, Presence"
    )
    assert said(look([SENSORS], sensors=text)) == [("fail", "psu.failed", "psu PS2")]


def test_a_fan_has_one_name_in_log_sensors_and_measures():
    text = "Fan 3 Tach | 32h | ok | 7.1 | 4000 RPM\nFan 4 Tach | 33h | cr | 7.1 | 100 RPM\n"
    log = "1 | 11/29/26 | 23:00:00 UTC | Fan Fan 4 Tach | Lower Critical going low | Asserted\n"
    both = look([SEL, SENSORS], sensors=text, sel=log)
    assert said(both) == [("fail", "fan.failed", "fan Fan 4")]
    assert [each.part.key for each in both.measures] == ["Fan 3", "Fan 4"]


def test_plain_sdr_has_three_columns():
    text = "\n".join(" | ".join((row[0], row[4], row[2])) for row in (line.split("|") for line in FAULTS.splitlines()))
    text += "\n"
    assert sorted(said(look([SENSORS], sensors=text))) == sorted(said(look([SENSORS], sensors=FAULTS)))


def test_empty_slots_are_silent_in_numbers_and_no_fault():
    assert "DIMM A2" in HEALTHY
    none = HEALTHY.replace("8640 RPM", "No Reading").replace("8520 RPM", "No Reading")
    assert look([SENSORS], sensors=none).passed == ("bmc.sensors",)


def test_one_empty_bay_among_filled_ones_is_a_warning_and_told_once():
    text = HEALTHY.replace("10.2 | Presence detected", "10.2 | ")
    assert said(look([SENSORS], sensors=text)) == [("warn", "psu.missing", "psu PS2")]
    assert [each.value for each in look([SENSORS], sensors=HEALTHY).traits] == [2]
    profile = Expectation(traits={"psu.count": 2})
    assert said(look([SENSORS], sensors=text, profile=profile)) == [("warn", "psu.missing", "psu PS2")]


def test_a_row_in_no_layout_is_unknown():
    assert said(look([SENSORS], sensors=HEALTHY + "Fan9 | what | is | this\n"))[0][0] == "unknown"


def test_inlet_and_fans_are_measured():
    measures = look([SENSORS], sensors=HEALTHY).measures
    assert [(each.name, each.value, str(each.part)) for each in measures if each.name == "bmc.inlet_c"] == [
        ("bmc.inlet_c", 23.0, "sensor Inlet Temp")
    ]
    assert sum(each.name == "fan.speed_rpm" for each in measures) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("11/30/26 00:00:20 UTC\n", []),
        ("11/29/2026 16:00:00\n", []),
        ("11/30/2026 00:10:00\n", ["bmc.clock"]),
        ("06/30/2024 00:00:00\n", ["bmc.clock"]),
        ("S+ 03:29:09\n", ["bmc.clock"]),
    ],
)
def test_the_bmcs_clock_may_live_in_another_time_zone_and_nothing_else(text, expected):
    assert [code for _, code, _ in said(look([CLOCK], bmc_time=text))] == expected


def at(seconds):
    """A moment as ipmitool prints it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%m/%d/%Y | %H:%M:%S")


def logged(seconds, number=1):
    return f"{number:4} | {at(seconds)} | Memory #0x53 | Uncorrectable ECC (UnCorrectable ECC |  DIMMA1) | Asserted\n"


@pytest.mark.parametrize("ahead_h", [-20_000, -26, -8, 0, 8, 26, 20_000])
@pytest.mark.parametrize(("age_h", "codes"), [(1 / 6, ["memory.uncorrected"]), (23, ["memory.uncorrected"]), (25, [])])
def test_events_are_dated_by_how_far_the_bmcs_clock_is_from_the_hosts(ahead_h, age_h, codes):
    now = NOW + ahead_h * 3600
    found = said(look([SEL], sel=logged(now - age_h * 3600), bmc_time=at(now).replace(" | ", " ") + "\n"))
    assert [code for _, code, _ in found if code != "bmc.clock"] == codes


def test_entries_from_before_the_bmc_lost_its_clock_keep_their_date():
    """Its battery died: it says 2000, counts from there, and older entries have true dates that lie ahead of it."""
    now = 946_684_800 + 5 * 86_400
    clock = at(now).replace(" | ", " ") + "\n"
    old, fresh = logged(NOW - 40 * 3600), logged(now - 600, number=2)
    assert said(look([SEL], sel=old, bmc_time=clock)) == []
    assert [code for _, code, _ in said(look([SEL], sel=old + fresh, bmc_time=clock))] == ["memory.uncorrected"]


def test_without_the_bmcs_clock_only_one_that_is_ahead_is_moved_back():
    event = logged(NOW - 26 * 3600)
    for silent in ("S+ 03:29:09\n", Output(name="bmc_time", exit_status=None, ending="timed_out")):
        assert said(look([SEL], sel=event, bmc_time=silent)) == []
