"""The values of a batch."""

import pytest

from wholestack.errors import InputError
from wholestack.record import from_json, to_json
from wholestack.remote.batch import Command, Output


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "A"},
        {"name": "a b"},
        {"name": "a\n"},
        {"shell": "a\0b"},
        {"shell": "x" * 100_001},
        {"limit_s": 0.0},
        {"limit_s": float("inf")},
        {"limit_s": float("nan")},
        {"max_bytes": -1},
    ],
)
def test_a_command_out_of_bounds_is_refused(fields):
    with pytest.raises(InputError, match="command"):
        Command(**{"name": "a", "shell": "true"} | fields)


def test_a_command_survives_json():
    command = Command(name="a", shell="echo 'ä'", limit_s=2.5, needs_root=True)
    assert from_json(Command, to_json(command)) == command


def test_an_output_is_text_whatever_its_bytes():
    assert Output(name="a", stdout=b"a\r\n\xff\0b\r").text == "a\n\ufffd\0b\r"
