"""A checker says right, wrong or that it cannot tell, with its evidence; it never guesses and never runs an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.written.material import question
from wholestack.errors import InputError
from wholestack.evals.patterns import TOO_SLOW
from wholestack.evals.written.checkers import CHECKERS, checker_named, problem_with_json, unknown_keyword

SCHEMA = json.dumps(
    {
        "type": "object",
        "required": ["name", "age"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
    }
)


@pytest.mark.parametrize(
    ("name", "gold", "answer", "outcome"),
    [
        ("exact", "New York", " New  York ", "right"),
        ("exact", "New York", "new york", "wrong"),
        ("exact:casefold", "Straße", "STRASSE", "right"),
        ("exact", "é", "e\u0301", "right"),
        ("number", "1234.5", "$1,234.50", "right"),
        ("number", "1234.5", "1234.6", "wrong"),
        ("number", "18", "18 dollars", "right"),
        ("number", "18", "18 or 19", "wrong"),
        ("number", "18", "eighteen", "wrong"),
        ("number", "many", "18", "unknown"),
        ("number:0.01", "3.14", "3.15", "right"),
        ("number:0.01", "3.14", "3.1501", "wrong"),
        ("number:1%", "200", "202", "right"),
        ("number:1%", "-200", "-202.1", "wrong"),
        ("contains", "Paris", "It is paris.", "right"),
        ("contains", "Paris", "Parisian life", "wrong"),
        ("contains", "Paris", "Rome", "wrong"),
        ("contains:20", "Paris", "Paris, of course, what else", "wrong"),
        ("contains", "Paris", "Paris or Rome", "wrong"),
        ("regex", r"\d{4}-\d{2}", "2026-11", "right"),
        ("regex", r"\d{4}-\d{2}", "on 2026-11", "wrong"),
        ("regex", "(", "x", "unknown"),
        ("regex", "((a{1000}){1000}){1000}", "x", "unknown"),
        ("json_schema", SCHEMA, '{"name": "Ann", "age": 30}', "right"),
        ("json_schema", SCHEMA, '```json\n{"name": "Ann", "age": 30, "tags": ["a"]}\n```', "right"),
        ("json_schema", SCHEMA, '{"name": "Ann"}', "wrong"),
        ("json_schema", SCHEMA, '{"name": "Ann", "age": true}', "wrong"),
        ("json_schema", SCHEMA, '{"name": "Ann", "age": 30, "x": 1}', "wrong"),
        ("json_schema", SCHEMA, '{"name": "ann", "age": 30}', "wrong"),
        ("json_schema", SCHEMA, '{"name": "Ann", "age": 30, "tags": ["c"]}', "wrong"),
        ("json_schema", SCHEMA, "not json", "wrong"),
        ("json_schema", '{"oneOf": []}', "{}", "unknown"),
        ("json_schema", "{", "{}", "unknown"),
        ("python:tests.evals.written.material:even", "x", "4", "right"),
        ("python:tests.evals.written.material:even", "x", "5", "wrong"),
        ("python:tests.evals.written.material:even", "x", "hm", "unknown"),
        ("python:tests.evals.written.material:even", "x", "break", "unknown"),
    ],
)
def test_a_checker_judges(name, gold, answer, outcome):
    verdict = checker_named(name)(answer, question(gold, choices=("Paris", "Rome") if gold == "Paris" else ()))
    assert verdict.outcome == outcome
    assert verdict.evidence


def test_a_users_function_sees_the_whole_row():
    check = checker_named("python:tests.evals.written.material:even")
    assert check("5", question("x", rest=1)).outcome == "right"
    assert "ZeroDivisionError: on purpose" in check("break", question("x")).evidence


def test_what_repeats_the_prompt_is_not_an_answer():
    asked = question("Paris", prompt="Is it Paris, or is it Rome?")
    check = checker_named("contains")
    assert check(asked.prompt, asked).outcome == "wrong"
    assert check(f"{asked.prompt}\nIt is Paris.", asked).outcome == "right"


@pytest.mark.parametrize(
    "name",
    ["none", "exact:loosely", "number:x", "number:-1", "contains:x", "regex:x", "json_schema:x", "python:",
     "python:no.such.module:f", "python:json:none", "python:nobody",
     "python:tests.evals.written.material:NOT_CALLABLE"],
)  # fmt: skip
def test_a_checker_that_is_not_there_is_one_clear_line(name):
    with pytest.raises(InputError):
        checker_named(name)


def test_a_checker_of_another_package_is_found_by_its_name(tmp_path, monkeypatch):
    folder = tmp_path / "evens-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: evens\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[wholestack.evals_checkers]\neven = tests.evals.written.material:even\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [checker_named("python:even")(text, question("x")).outcome for text in "45"] == ["right", "wrong"]


def test_a_checker_that_would_run_an_answer_waits_for_the_sandbox():
    with pytest.raises(InputError, match="no sandbox yet") as caught:
        checker_named("code")
    assert caught.value.remedy


@given(answer=st.text(max_size=60), gold=st.text(min_size=1, max_size=20))
@pytest.mark.parametrize("name", [name for name in CHECKERS if name != "python"])
def test_any_text_gets_a_verdict(name, answer, gold):
    assert checker_named(name)(answer, question(gold)).outcome in ("right", "wrong", "unknown")


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (1, {"type": "number"}, True),
        (True, {"type": "number"}, False),
        (1.0, {"type": "integer"}, True),
        (1.5, {"type": "integer"}, False),
        (None, {"type": ["null", "string"]}, True),
        (True, {"const": 1}, False),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, False),
        ({"a": 1}, {"properties": {"a": False}}, False),
        ([1, 2, 3], {"minItems": 4}, False),
        ("abc", {"maxLength": 2}, False),
        (5, {"maximum": 4}, False),
        ([[1], ["x"]], {"items": {"items": {"type": "integer"}}}, False),
        ("anything", True, True),
    ],
)
def test_the_schema_subset_is_that_of_json_schema(value, schema, fits):
    assert unknown_keyword(schema) == ""
    assert (problem_with_json(value, schema, lambda: 1.0) == "") is fits


def test_a_schema_beyond_the_subset_is_named_however_deep():
    assert unknown_keyword({"properties": {"a": {"items": {"anyOf": []}}}}) == "'anyOf'"
    assert unknown_keyword({"type": "text"}) == "type 'text'"
    assert unknown_keyword(3)


@pytest.mark.parametrize(
    ("name", "gold"),
    [
        ("regex", "(a|aa)+b?$"),
        ("json_schema", '{"type": "string", "pattern": "^(a|aa)+$"}'),
        ("json_schema", '{"items": {"pattern": "^(a|aa)+$"}}'),
    ],
)
def test_a_gold_pattern_that_backtracks_without_end_is_no_verdict(name, gold, monkeypatch):
    monkeypatch.setattr("wholestack.evals.patterns.MOST_SECONDS", 0.05)
    text = "a" * 60 + "!"
    answer = text if name == "regex" else json.dumps([text] if "items" in gold else text)
    verdict = checker_named(name)(answer, question(gold))
    assert (verdict.outcome, verdict.evidence) == ("unknown", TOO_SLOW)


def test_an_answer_in_a_fence_of_blank_lines_is_judged_at_once():
    assert checker_named("json_schema")("```" + "\n" * 60_000 + "x", question("{}")).outcome == "wrong"


@pytest.mark.parametrize("value", ["x", 1, [1], {"a": 1}, None, 1e308], ids=repr)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"type": [{}]},
        {"type": {}},
        {"properties": 5},
        {"properties": {"a": {"required": 5}}},
        {"required": 5},
        {"required": [1]},
        {"items": 5},
        {"items": {"pattern": "("}},
        {"additionalProperties": 5},
        {"enum": 5},
        {"minimum": "a"},
        {"maximum": None},
        {"minLength": "x"},
        {"maxLength": 1.5},
        {"minItems": True},
        {"maxItems": None},
        {"pattern": "("},
        {"pattern": "((a{1000}){1000}){1000}"},
        {"pattern": 5},
    ],
    ids=json.dumps,
)
def test_a_schema_that_is_none_is_no_verdict_on_any_answer(schema, value):
    verdict = checker_named("json_schema")(json.dumps(value), question(json.dumps(schema)))
    assert verdict.outcome == "unknown"


@pytest.mark.parametrize("where", [".:x", "../x:y", ":", ":x", "a..b:c"])
def test_a_function_at_no_place_is_one_clear_line(where):
    with pytest.raises(InputError, match="cannot be loaded"):
        checker_named(f"python:{where}")
