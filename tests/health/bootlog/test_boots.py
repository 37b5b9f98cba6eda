"""Boots of a log, in every dress and in bad shape."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.health.bootlog.written import STYLES, dressed, read, written
from wholestack.health.bootlog import boots as module
from wholestack.health.bootlog.boots import MOST_LINES, read_boots
from wholestack.health.probe import UnreadableError


@pytest.mark.parametrize("style", STYLES)
def test_every_dress_holds_the_same_messages(style):
    (boot,) = read(dressed(written(1), style))
    assert boot.messages == written(1)
    assert boot.kernel == "5.15.0-91-generic"
    assert boot.begun
    assert not boot.unfinished
    assert not boot.jumps


def test_a_boot_is_the_same_boot_in_another_dress_and_another_one_is_not():
    found = {read(dressed(written(1), style))[0].identity for style in STYLES}
    assert len(found) == 1
    assert read(dressed(written(2)))[0].identity not in found


@pytest.mark.parametrize("style", ["short", "short-iso", "short-monotonic", "kern.log"])
def test_syslog_and_journal_name_the_host(style):
    assert read(dressed(written(1), style, host="gpu-9"))[0].host == "gpu-9"


@pytest.mark.parametrize("style", STYLES)
def test_two_boots_in_one_file_are_two(style):
    text = dressed(written(1), style) + dressed(written(2), style, start=1_738_900_000.0)
    assert [boot.messages for boot in read(text)] == [written(1), written(2)]


def test_a_line_of_the_journal_between_boots_is_no_line_of_a_boot():
    mark = "-- Boot 0123456789abcdef0123456789abcdef --\n"
    text = f"-- Logs begin at Mon --\n{dressed(written(1), 'short')}{mark}{dressed(written(2)[3:], 'short')}"
    first, second = read(text)
    assert first.messages == written(1)
    assert second.messages == written(2)[3:]
    assert not second.begun


def test_seconds_that_fall_back_to_the_start_are_another_boot():
    text = dressed(written(1)) + "[  900.000000] usb 1-2: reset\n" + dressed(written(2)[1:])
    assert [len(boot.messages) for boot in read(text)] == [len(written(1)), len(written(2)) - 1]


@pytest.mark.parametrize("style", ["dmesg", "dmesg -T", "short-iso"])
def test_what_comes_after_the_first_minutes_is_not_of_the_boot(style):
    late = dressed(["usb 1-2: reset", "usb 1-2: again"], style, start=1_738_000_000.0 + 4000)
    late = late.replace("[    0.0", "[ 4000.0")
    (boot,) = read(dressed(written(1), style) + late)
    assert boot.messages == written(1)
    assert boot.later == 2


def test_a_clock_that_jumps_is_said_and_ends_no_boot():
    lines = written(1)
    text = dressed(lines[:20], "short-iso", start=1_000_000_000.0) + dressed(lines[20:], "short-iso")
    back = dressed(lines[:20], "short-iso") + dressed(lines[20:], "short-iso", start=1_000_000_000.0)
    zone = dressed(lines[:20], "short-iso") + dressed(lines[20:], "short-iso", start=1_738_000_000.0 + 7200)
    for each in (text, back, zone):
        (boot,) = read(each)
        assert boot.messages == lines
        assert boot.jumps == [lines[20]]


def test_lines_of_other_programs_are_left_out_and_counted():
    text = dressed(written(1), "short")
    other = "Jan 27 17:46:40 node7 sshd[812]: Accepted publickey\n"
    head, tail = text[: text.index("\n") + 1], text[text.index("\n") + 1 :]
    (boot,) = read(head + other + tail)
    assert boot.messages == written(1)
    assert boot.others == 1


def test_escapes_carriage_returns_and_broken_characters_do_not_matter():
    text = dressed(written(1)).replace("[ ", "\x1b[32m[ ").replace("] ", "]\x1b[0m ", 5).replace("\n", "\r\n")
    assert read(text)[0].messages == written(1)
    (boot,) = read(dressed(written(1)).encode().replace(b"pnp: PnP", b"pnp: \xff\xfe"))
    assert any("\ufffd" in message for message in boot.messages)
    assert len(boot.messages) == len(written(1))


def test_a_file_that_ends_within_a_line_is_unfinished():
    assert read(dressed(written(1))[:-5])[0].unfinished
    assert not read(dressed(written(1)))[0].unfinished


@pytest.mark.parametrize(
    "line",
    [
        "net_ratelimit: 15 callbacks suppressed",
        "printk: 12 messages suppressed.",
        "systemd-journald[400]: Missed 31 kernel messages",
        "systemd-journald[400]: /dev/kmsg buffer overrun, some messages lost.",
    ],
)
def test_lines_that_say_that_others_were_dropped_are_known(line):
    (boot,) = read(dressed([*written(1), line]))
    assert boot.suppressed == [line]


def test_what_is_no_kernel_log_is_refused():
    for data in (b"", b"\n\n", b"a\x00b\n"):
        with pytest.raises(UnreadableError):
            list(read_boots(io.BytesIO(data)))


def test_memory_is_bounded_whatever_the_file(monkeypatch):
    """Of a boot so many lines are kept, of a line so many characters, and pieces are read one by one."""
    monkeypatch.setattr(module, "PIECE_BYTES", 1 << 16)
    text = "".join(f"[    1.{place % 1000000:06d}] line\n" for place in range(MOST_LINES + 500))
    (boot,) = read(text)
    assert len(boot.messages) == MOST_LINES
    assert boot.full
    (long,) = read("[    1.000000] " + "x" * 1_000_000)
    assert max(map(len, long.messages)) <= 1000
    assert len(long.messages) < 100


def test_pieces_do_not_cut_lines(monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 97)
    assert read(dressed(written(1)))[0].messages == written(1)


@given(st.binary(max_size=400))
def test_no_bytes_are_too_strange(data):
    try:
        for boot in read_boots(io.BytesIO(data)):
            assert all(isinstance(message, str) for message in boot.messages)
    except UnreadableError:
        pass
