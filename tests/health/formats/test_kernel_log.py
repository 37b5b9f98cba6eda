"""The kernel log in every dress."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.health.checks.xid import LOG_CUT
from wholestack.health.formats.kernel_log import ZONE_SLACK_HOURS, looks_like_kernel_log, read_kernel_log
from wholestack.health.judging import judge
from wholestack.health.probe import UnreadableError

XID = "NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=nvidia-smi, Timeout"


@pytest.mark.parametrize(
    ("head", "clock"),
    [
        ("kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ", "epoch"),
        ("2025-01-21T04:41:44,283302+00:00 ", "epoch"),
        ("2025-01-21T04:41:44+0000 gpu001 kernel: ", "epoch"),
        ("2025-01-21T04:41:44.123456+00:00 gpu001 kernel: [  12.345678] ", "epoch"),
        ("[Sun Feb 23 16:24:18 2025] ", "naive"),
        ("[Sun Feb  2 06:24:18 2025] ", "naive"),
        ("[131453.740743] ", "uptime"),
        ("[    0.000000] ", "uptime"),
        ("<4>[  131.740743] ", "uptime"),
        ("kern  :warn  : [  131.740743] ", "uptime"),
        ("4,3964,206764307,-;", "uptime"),
        ("Feb 14 05:03:41 gpu001 kernel: ", "yearly"),
        ("", "none"),
        ("[...] ", "none"),
    ],
)
def test_a_line_is_dated_and_undressed(head, clock):
    text = head + XID + "\n"
    assert looks_like_kernel_log(text)
    (line,) = read_kernel_log(text).holding("NVRM")
    assert line.clock == clock
    assert line.message.endswith(XID)


def test_ages_are_counted_from_the_newest_line_or_from_the_look():
    def log(*stamps):
        return read_kernel_log("".join(f"[{stamp:.6f}] {XID}\n" for stamp in stamps))

    first, last = log(3600.0, 3600.0 * 11).holding("NVRM")
    found = log(3600.0, 3600.0 * 11)
    assert found.age_hours(first, now=None, uptime_s=None) == pytest.approx(10)
    assert found.age_hours(first, now=0.0, uptime_s=3600.0 * 31) == pytest.approx(30)
    assert found.age_hours(last, now=None, uptime_s=None) == 0


def test_a_time_without_zone_is_taken_to_be_younger_by_what_a_zone_can_do():
    found = read_kernel_log("[Sun Feb 23 16:00:00 2025] " + XID)
    (line,) = found.holding("NVRM")
    assert found.age_hours(line, now=line.at + 10 * 3600, uptime_s=1e6) == 0
    assert found.age_hours(line, now=line.at + 40 * 3600, uptime_s=1e6) == pytest.approx(26)


def test_a_date_without_year_counts_a_leap_day_only_in_a_leap_year():
    lines = [f"{day} gpu001 kernel: {XID}\n" for day in ("Feb 28 22:00:00", "Feb 29 12:00:00", "Mar  1 10:00:00")]
    first = read_kernel_log(lines[0]).holding("NVRM")[0]
    assert read_kernel_log(lines[0] + lines[2]).age_hours(first, now=None, uptime_s=None) == pytest.approx(12)
    assert read_kernel_log("".join(lines)).age_hours(first, now=None, uptime_s=None) == pytest.approx(36)
    found = read_kernel_log(lines[0])
    for year, hours in ((2027, 36), (2028, 60)):
        now = datetime(year, 3, 2, 10, tzinfo=UTC).timestamp()
        assert found.age_hours(first, now=now, uptime_s=1e9) == pytest.approx(hours - ZONE_SLACK_HOURS)


def test_an_old_fault_heals_and_a_young_one_does_not_over_the_end_of_february():
    xid = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE"
    young = f"Feb 28 22:00:00 h kernel: {xid}\nMar  1 10:00:00 h kernel: ok\n"
    old = f"Feb 27 22:00:00 h kernel: {xid}\nMar  1 10:00:00 h kernel: ok\n"
    assert [judge("gpu.xid", text, now=0).status for text in (young, old)] == ["fail", "ok"]


def flood(count, *, first="", code=31):
    lines = (f"[{200 + n}.0] NVRM: Xid (PCI:0000:af:00): {code}, pid={n}, MMU fault\n" for n in range(count))
    return first + "".join(lines)


DOUBLE_BIT = "[  100.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=1, An uncorrectable double bit error\n"


@pytest.mark.parametrize("count", [10, 499, 500, 600, 5000])
def test_a_flood_of_one_event_does_not_hide_another(count):
    found = judge("gpu.xid", flood(count, first=DOUBLE_BIT), now=0)
    assert found.status == "fail"
    assert any("double bit" in line for each in found.findings for line in each.evidence)


def test_of_a_flood_the_first_and_the_last_line_of_each_older_event_are_kept():
    other = "[150.0] NVRM: Xid (PCI:0000:3c:00): 48, pid=2, x\n"
    log = read_kernel_log(DOUBLE_BIT + other + DOUBLE_BIT + DOUBLE_BIT.replace("100", "160") + flood(600))
    old = [line.text for line in log.holding("NVRM")[:5]]
    assert old == [DOUBLE_BIT.strip(), other.strip(), DOUBLE_BIT.replace("100", "160").strip(), *old[3:]]
    assert "NVRM" in log.flooded
    assert log.cut is None
    assert read_kernel_log(flood(500)).flooded == frozenset()


def test_too_many_different_events_are_told():
    lines = (f"[{n}.0] NVRM: event {chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n // 676}\n" for n in range(4000))
    text = "".join(lines)
    assert judge("gpu.xid", text, now=0).status == "unknown"
    assert judge("gpu.xid", text[: len(text) // 2], now=0).status == "ok"


@pytest.mark.parametrize(
    ("step_s", "begins", "status"),
    [(1, "middle", "unknown"), (60, "middle", "ok"), (1, "line", "ok"), (1, "boot", "ok"), (1, "short", "ok")],
)
def test_a_log_cut_within_the_quiet_hours_is_told(step_s, begins, status):
    """Lines one a second fill the log with five hours, lines one a minute with two weeks."""
    text = "".join(f"[{10**6 + n * step_s}.000000] usb 1-1: new device {'x' * 40}\n" for n in range(20_000))
    before = {"middle": "device xxxx\n", "line": "", "short": "device xxxx\n"}
    if begins == "boot":
        text = f"evice\n[    0.000000] Linux version 6.8.0\n{text}"
    text = before.get(begins, "") + (text[:100_000] if begins == "short" else text)
    found = judge("gpu.xid", text, now=0)
    assert found.status == status
    assert [each.cause for each in found.findings if each.status == "unknown"] == (
        [LOG_CUT.says] if status == "unknown" else []
    )


def test_a_date_without_year_is_of_this_or_the_last_year():
    def age(text, now):
        found = read_kernel_log(f"{text} gpu001 kernel: {XID}\n")
        (line,) = found.holding("NVRM")
        return found.age_hours(line, now=now, uptime_s=1e6)

    now = datetime(2025, 1, 2, 12, tzinfo=UTC).timestamp()
    assert age("Jan  2 11:00:00", now) == 0
    assert age("Jan  1 12:00:00", now) == pytest.approx(24 - ZONE_SLACK_HOURS)
    assert age("Dec 31 12:00:00", now) == pytest.approx(48 - ZONE_SLACK_HOURS)
    assert age("Mar 01 12:00:00", now) > 7000


@pytest.mark.parametrize(
    "boot",
    [
        "[    0.000000] Linux version 5.15.0-112-generic (buildd@host)\n",
        "-- Boot 3f1c2d4e5f6a7b8c9d0e1f2a3b4c5d6e --\n",
        "-- Reboot --\n",
        "Feb 14 05:03:41 gpu001 kernel: Linux version 5.15.0\n",
    ],
)
def test_only_the_last_boot_counts(boot):
    text = f"[100.000000] {XID}\n{boot}[5.000000] {XID} again\n"
    assert len(read_kernel_log(text).holding("NVRM")) == 1


def test_a_line_that_only_mentions_a_version_is_no_boot():
    text = f"[1.000000] {XID}\n[2.000000] foo: built for Linux version 5.15\n"
    assert len(read_kernel_log(text).holding("NVRM")) == 1


def test_a_binary_is_refused_and_an_empty_log_is_unknown():
    with pytest.raises(UnreadableError):
        read_kernel_log("[1.0] a\x00b")
    assert judge("gpu.xid", "", now=0).status == "unknown"
    assert judge("gpu.xid", "hello world", now=0).status == "unknown"


@settings(max_examples=200)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UnreadableError):
        read_kernel_log("NVRM: " + text)


@settings(max_examples=100)
@given(st.data())
def test_no_mutation_of_a_log_crashes_a_check(data):
    text = (
        f"kern  :warn  : 2025-01-21T04:41:44,283302+00:00 {XID}\n[131453.740743] nvidia-nvswitch0: "
        f"SXid (PCI:0000:00:00.0): "
        "20034, Fatal, Link 30 LTSSM Fault Up\n[Sun Feb 23 16:24:18 2025] nfs: server a not responding\n"
    )
    position = data.draw(st.integers(0, len(text)))
    changed = text[:position] + data.draw(st.text(max_size=10)) + text[position + data.draw(st.integers(0, 20)) :]
    for name in ("gpu.xid", "gpu.sxid", "kernel.nfs_hang", "kernel.io_errors"):
        assert judge(name, changed, now=0).status in ("ok", "warn", "fail", "unknown")
