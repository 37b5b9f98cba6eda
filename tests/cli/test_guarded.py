"""Nothing that an item, a model or an endpoint is called steers the reader's terminal."""

import io
import json

import pytest

from wholestack.cli.guarded import GuardedStream, guarded

HOSTILE = [
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x1b[8mhidden",
    "\x1b[1A\x1b[2K",
    "\rover",
    "\x9b31m",
    "\u202egnirts",
    "\u2066",
    "\x00",
    "\x7f",
    "\U000e0041",
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_steering_text_is_shown_as_its_escape_and_a_json_reader_gets_it_back(text, stream):
    inner = stream()
    GuardedStream(inner, live=False).write(f'"{text}"\n')
    shown = inner.getvalue()
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert json.loads(shown) == text


def test_our_own_tables_keep_their_weight_on_a_terminal_and_plain_text_is_what_it_was():
    inner = Terminal()
    GuardedStream(inner, live=False).write("\x1b[1mtask\x1b[0m 1.5 ± 0.1\t東京\u00a0é\n")
    assert inner.getvalue() == "\x1b[1mtask\x1b[0m 1.5 ± 0.1\t東京\u00a0é\n"


def test_a_progress_line_is_drawn_on_the_stream_that_has_one():
    inner = Terminal()
    line = "\x1b[?25l\r\x1b[2K\x1b[1A\x1b[2K1 of 3 items"
    GuardedStream(inner, live=True).write(line + "\x07")
    assert inner.getvalue() == line + "\\u0007"


def test_a_message_is_free_of_styles_too():
    assert guarded("\x1b[31mred", styles=False) == "\\u001b[31mred"
