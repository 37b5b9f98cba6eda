"""Time: followed source, offset, jumps."""

import pytest

from tests.health.looking import NOW, judged_file, look, moment, recorded, said
from tests.health.shared_data import shared
from wholestack.health.check import Before
from wholestack.health.checks.bmc import CHECKS as BMC
from wholestack.health.checks.clock import CHECKS
from wholestack.health.checks.services import CHECKS as SERVICES
from wholestack.health.examine import examine
from wholestack.health.formats.time_sync import duration_s
from wholestack.health.probe import UnreadableError
from wholestack.remote.batch import Output

SYNC = CHECKS[0]
UNSYNCHRONISED = [("warn", "time.unsynchronised", "clock")]


def chrony(**changed):
    text = recorded("time_sync", "chrony.txt")
    for old, new in changed.items():
        text = text.replace(*new) if isinstance(new, tuple) else text.replace(old, new)
    return text


@pytest.mark.parametrize("name", ["chrony.txt", "ntpq.txt"])
def test_a_clock_that_follows_a_source_passes(name):
    assert look([SYNC], time_sync=recorded("time_sync", name)).passed == ("time.sync",)


@pytest.mark.parametrize("name", ["chrony_none.txt", "timesync_none.txt"])
def test_a_clock_that_follows_none_is_a_warning(name):
    assert said(look([SYNC], time_sync=recorded("time_sync", name))) == UNSYNCHRONISED


def test_no_selected_peer_or_only_the_local_clock_is_not_synchronised():
    text = recorded("time_sync", "ntpq.txt")
    assert said(look([SYNC], time_sync=text.replace("*198", " 198"))) == UNSYNCHRONISED
    assert said(look([SYNC], time_sync=text.replace("203.0.113.1 ", ".LOCL.      "))) == UNSYNCHRONISED
    assert said(look([SYNC], time_sync="No association ID's returned\n")) == UNSYNCHRONISED
    assert said(look([SYNC], time_sync=chrony(a=("C6336407 (198.51.100.7)", "7F7F0101 ()")))) == UNSYNCHRONISED


@pytest.mark.parametrize(("seconds", "status"), [("0.099", None), ("0.101", "warn"), ("7.5", "fail")])
def test_the_offset_has_two_limits(seconds, status):
    found = said(look([SYNC], time_sync=chrony(a=("0.000006523", seconds))))
    assert found == ([(status, "time.offset", "clock")] if status else [])


def test_ntpq_counts_in_milliseconds_and_systemd_in_what_it_says():
    found = look([SYNC], time_sync=recorded("time_sync", "ntpq.txt"))
    assert found.measures[0].value == pytest.approx(0.002805)
    assert duration_s("-5.224ms") == pytest.approx(0.005224)
    assert duration_s("+1min 2.5s") == 62.5
    assert duration_s("12us") == pytest.approx(12e-6)
    with pytest.raises(UnreadableError):
        duration_s("5 parsecs")


def test_a_source_not_heard_for_long_is_a_warning():
    assert said(look([SYNC], time_sync=chrony(a=("Nov 29 23:49", "Nov 29 11:49")))) == [("warn", "time.stale", "clock")]


def test_a_dead_service_is_a_fault_and_three_missing_tools_are_none():
    dead = "506 Cannot talk to daemon\nsh: 1: ntpq: not found\nno time service answers\n"
    assert said(look([SYNC], time_sync=dead)) == UNSYNCHRONISED
    missing = (
        "sh: 1: chronyc: not found\nsh: 1: timedatectl: not found\nsh: 1: ntpq: not found\nno time service answers\n"
    )
    assert look([SYNC], time_sync=missing).skipped[0].reason == "not_installed"


def test_the_unit_of_the_dead_service_is_told_with_the_clock():
    unit = "chronyd.service loaded failed failed NTP client\n1 loaded units listed.\n"
    both = look([SYNC, *SERVICES], time_sync="506 Cannot talk to daemon\nno time service answers\n", systemd=unit)
    assert said(both) == UNSYNCHRONISED


def test_what_failed_before_the_tool_that_answered_does_no_harm():
    text = "506 Cannot talk to daemon\n" + shared("jc", "generic_timedatectl-timesync-status.out").read_text()
    found = look([SYNC], time_sync=text)
    assert found.passed == ("time.sync",)
    assert found.measures[0].value == pytest.approx(0.005224)


@pytest.mark.parametrize("line", ["Leap status     : Normal", "System time     : 0.000006523 seconds slow of NTP time"])
def test_a_missing_line_that_decides_is_unknown(line):
    assert said(look([SYNC], time_sync=chrony(a=(line, ""))))[0][0] == "unknown"


def test_the_shared_outputs_are_judged_as_their_readme_says():
    assert said(judged_file(SYNC, shared("jc", "centos-7.7_ntpq-p.out").read_text())) == UNSYNCHRONISED
    good = judged_file(SYNC, shared("jc", "generic_timedatectl-timesync-status.out").read_text())
    assert good.passed == ("time.sync",)


def test_an_empty_output_is_unknown():
    assert said(look([SYNC], time_sync=Output(name="time_sync", exit_status=1)))[0][0] == "unknown"


JUMP = CHECKS[1]
JUMPED = [("fail", "clock.jump", "clock")]


def jumps(*, host=NOW, ours=NOW, round_trip_s=5.0, before=None, **outputs):
    given = {"moment": Output(name="moment", stdout=moment(now=host).encode())} | outputs
    return said(examine(given, [JUMP], before=before, now=ours, round_trip_s=round_trip_s))


def test_a_clock_of_another_year_has_jumped_whoever_asks():
    assert jumps(host=1_000_000_000, round_trip_s=None) == JUMPED
    assert jumps(host=NOW) == []


@pytest.mark.parametrize(("host", "expected"), [(NOW - 64, []), (NOW + 59, []), (NOW - 70, JUMPED), (NOW + 61, JUMPED)])
def test_only_what_the_round_trip_cannot_explain_is_skew(host, expected):
    assert jumps(host=host) == expected
    assert jumps(host=host, round_trip_s=None) == []


def test_a_clock_that_went_back_since_the_last_look_has_jumped_unless_the_host_booted():
    later = Before(at=NOW + 3600, boot_id="b", counters=())
    assert jumps(before=later) == JUMPED
    assert jumps(before=Before(at=NOW + 3600, boot_id="other", counters=())) == []


def test_the_kernels_log_cannot_be_ahead_of_the_clock():
    log = Output(name="kernel_log", stdout=b"kern  :info  : 2026-12-24T00:00:00,000000+00:00 hello\n")
    assert jumps(kernel_log=log) == JUMPED
    log = Output(name="kernel_log", stdout=b"kern  :info  : 2026-11-30T01:00:00,000000+01:00 hello\n")
    assert jumps(kernel_log=log) == []


def test_a_jump_takes_in_the_offset():
    outputs = {
        "moment": Output(name="moment", stdout=moment(now=NOW - 7200).encode()),
        "time_sync": Output(name="time_sync", stdout=chrony(a=("0.000006523", "7200.0")).encode()),
    }
    assert said(examine(outputs, CHECKS, now=NOW, round_trip_s=1.0)) == JUMPED


@pytest.mark.parametrize("name", ["bmc_time", "sel"])
def test_a_jump_takes_in_what_seems_to_be_wrong_with_the_bmcs_clock(name):
    told = {
        "bmc_time": "11/30/26 00:00:00 UTC\n",
        "sel": "1 | 11/29/26 | 23:00:00 UTC | Button #0x1 | Power Button pressed | Asserted\n",
    }
    checks = [JUMP, *(check for check in BMC if check.probes[0].name == name)]
    outputs = {
        "moment": Output(name="moment", stdout=moment(now=NOW - 90 * 86_400).encode()),
        name: Output(name=name, stdout=told[name].encode()),
    }
    assert said(examine(outputs, checks, now=NOW, round_trip_s=1.0)) == JUMPED


@pytest.mark.parametrize("now", ["nan", "inf", "-5", "9" * 12, "9" * 40, ""])
def test_a_moment_that_is_no_number_is_unknown(now):
    given = {"moment": Output(name="moment", stdout=moment().replace(str(NOW), now).encode())}
    assert [status for status, *_ in said(examine(given, [JUMP], now=NOW))] == ["unknown"]
