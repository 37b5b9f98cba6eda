"""Lines of somebody's file: each usable, or refused by itself with its line and a reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.evals.rows import KEY_TWICE, Refusal, Row, read_rows
from wholestack.evals.tasks import Task, open_task, pose

PLAIN = {"id": "a", "context": "c", "choices": ["x", "y"], "gold": 0}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "line",
    [
        '{"gold": 0, "gold": 1}',
        '{"gold": 0, "g\\u006fld": 1}',
        '{"gold": 0, "kept": [{"a": {"b": 1, "b": 1}}]}',
        '{"": 1, "": 2}',
        '{"gold": ' + "9" * 300 + ', "gold": 1e5}',
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_line(line):
    first, second = read_rows(f"{{}}\n{line}\n".encode())
    assert isinstance(first, Row)
    assert isinstance(second, Refusal)
    assert (second.line, second.reason) == (2, KEY_TWICE)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_an_object_without_a_repeated_key_is_a_row_as_it_stands(values):
    (found,) = read_rows(json.dumps(values).encode())
    assert isinstance(found, Row)
    assert found.values == values


def test_the_same_key_in_two_objects_of_a_row_is_no_fault():
    (found,) = read_rows(b'{"a": {"x": 1}, "b": [{"x": 1}, {"x": 2}], "x": 3}')
    assert isinstance(found, Row)


def test_the_command_counts_it(tmp_path):
    path = tmp_path / "items.jsonl"
    twice = json.dumps(PLAIN)[:-1] + ', "gold": 1}'
    path.write_text(f"{json.dumps(PLAIN)}\n{twice}\n")
    posed = pose(path, open_task("own"))
    assert posed.manifest.passed_over == {KEY_TWICE: 1}
    assert [(each.line, each.detail) for each in posed.refusals] == [(2, "key 'gold' stands twice in one object")]


def test_choices_that_are_a_text_are_named_as_that_wherever_they_stand(tmp_path):
    path = tmp_path / "items.jsonl"
    lines = [json.dumps(PLAIN), json.dumps({**PLAIN, "id": "b", "choices": "b"})]
    for at, both in enumerate((lines[::-1], lines), start=1):
        path.write_text("\n".join(both))
        (refusal,) = pose(path, Task(name="")).refusals
        assert (refusal.line, refusal.detail) == (at, "choices is str, not a list of texts")
