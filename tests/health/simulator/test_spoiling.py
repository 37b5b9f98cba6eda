"""What becomes of outputs."""

import pytest

from wholestack.health.simulator.machine import ToolEffect
from wholestack.health.simulator.spoiling import spoil

BODY = b"System time     : 0.002741000 seconds slow of NTP time\nSocket(s):  2\n" * 8


def spoilt(kind: str, amount: float = 0.5, body: bytes = BODY):
    return spoil(ToolEffect(kind=kind, amount=amount), body, exit_status=0, seconds=0.1, limit_s=7.0, max_bytes=3_000)


@pytest.mark.parametrize("kind", ["hung", "timed_out"])
def test_a_tool_that_does_not_end_takes_its_whole_limit(kind: str):
    result = spoilt(kind)
    assert (result.body, result.exit_status, result.ending, result.seconds) == (b"", None, kind, 7.0)


@pytest.mark.parametrize("body", [BODY, b"", b"x"])
def test_a_tool_that_never_stops_fills_all_that_is_listened_to(body: bytes):
    result = spoilt("endless", body=body)
    assert len(result.body) == 3_001
    assert (result.ending, result.seconds) == ("timed_out", 7.0)


def test_a_truncated_output_is_a_beginning():
    result = spoilt("truncated", 0.25)
    assert result.body == BODY[: len(BODY) // 4]
    assert result.exit_status == 0


def test_a_crash_ends_by_a_signal():
    assert spoilt("crashed").exit_status == 139


def test_nothing_is_nothing_and_yet_a_success():
    result = spoilt("empty")
    assert (result.body, result.exit_status) == (b"", 0)


def test_garbling_is_the_same_each_time_and_hits_often():
    once, again = spoilt("garbled", 0.1).body, spoilt("garbled", 0.1).body
    assert once == again != BODY
    assert spoilt("garbled", 0.2).body != once


def test_german_has_a_decimal_comma_and_other_words():
    text = spoilt("locale").body.decode()
    assert "0,002741000" in text
    assert "Sockel:" in text
