"""Questions are read as they are written, and a bad line is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.evals.written.extraction import extraction_named
from wholestack.evals.written.questions import read_questions


def file(tmp_path, *rows):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_both_spellings_are_read_and_other_keys_kept_for_a_checker(tmp_path):
    path = file(
        tmp_path,
        {"id": 7, "question": "2 + 2?", "answer": 4, "source": "x"},
        "",
        {"prompt": "Capital of France?", "gold": "Paris", "group": "capitals", "choices": ["Paris", "Rome"]},
    )
    first, second = read_questions(path).questions
    assert (first.id, first.group, first.prompt, first.gold) == ("7", "7", "2 + 2?", "4")
    assert first.row["source"] == "x"
    assert (second.group, second.choices) == ("capitals", ("Paris", "Rome"))
    assert len(second.id) == 16


def test_a_gold_answer_is_taken_out_of_a_worked_solution(tmp_path):
    path = file(tmp_path, {"prompt": "?", "answer": "2 + 2 = 4\n#### 4"})
    assert read_questions(path, gold=extraction_named("marker:####")).questions[0].gold == "4"
    with pytest.raises(InputError, match=r"questions\.jsonl:1: its answer holds no"):
        read_questions(path, gold=extraction_named("marker:Answer:"))


def test_a_gold_letter_is_one_of_the_choices(tmp_path):
    line = {"prompt": "?", "answer": "The answer is C.", "choices": ["x", "y", "z"]}
    letter = extraction_named("letter")
    assert read_questions(file(tmp_path, line), gold=letter).questions[0].gold == "C"
    with pytest.raises(InputError, match="its answer says a letter beyond the choices"):
        read_questions(file(tmp_path, line | {"choices": ["x", "y"]}), gold=letter)


@given(text=st.text(alphabet="{}promtquesinc \\", min_size=1).filter(str.strip))
def test_braces_in_a_question_stay_what_they_are(tmp_path, text):
    path = file(tmp_path, {"prompt": text, "answer": "1", "choices": [text]})
    posed = read_questions(path, template="Q: {prompt} {choices} {other} {prompt}").questions[0].prompt
    assert posed == f"Q: {text} A. {text} {{other}} {text}"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("{", "not JSON"),
        ("[1]", "expected an object"),
        ({"answer": "1"}, "'prompt'"),
        ({"prompt": "?"}, "'answer'"),
        ({"prompt": " ", "answer": "1"}, "prompt is no text"),
        ({"prompt": "?", "answer": None}, "NoneType"),
        ({"prompt": "?", "answer": True}, "bool"),
        ({"prompt": "?", "answer": ""}, "empty"),
        ({"prompt": "?", "answer": "1", "choices": [1]}, "choices"),
        ('{"prompt": "\\ud800", "answer": "1"}', "surrogate"),
    ],
)
def test_a_bad_line_is_named(tmp_path, row, what):
    path = file(tmp_path, {"prompt": "fine?", "answer": "1"}, row)
    with pytest.raises(InputError, match=what) as caught:
        read_questions(path)
    assert "questions.jsonl:2" in str(caught.value)


def test_an_id_that_comes_twice_is_named(tmp_path):
    path = file(tmp_path, {"id": "a", "prompt": "1", "answer": "1"}, {"id": "a", "prompt": "2", "answer": "1"})
    with pytest.raises(InputError, match="was on line 1"):
        read_questions(path)


def test_a_limit_takes_the_same_ones_whatever_their_order(tmp_path):
    rows = [{"id": str(n), "prompt": f"{n}?", "answer": "1"} for n in range(30)]
    some = {each.id for each in read_questions(file(tmp_path, *rows), limit=7).questions}
    backwards = {each.id for each in read_questions(file(tmp_path, *rows[::-1]), limit=7).questions}
    assert some == backwards
    assert len(some) == 7
    assert some != {str(n) for n in range(7)}


def test_the_key_of_prompts_is_blind_to_answers_and_the_other_is_not(tmp_path):
    one = read_questions(file(tmp_path, {"id": "a", "prompt": "?", "answer": "1"}))
    other = read_questions(file(tmp_path, {"id": "a", "prompt": "?", "answer": "2"}))
    assert one.prompts_digest == other.prompts_digest
    assert one.digest != other.digest


@pytest.mark.parametrize(("template", "rows"), [("no slot", [{"prompt": "?", "answer": "1"}]), ("{prompt}", [])])
def test_nothing_to_ask_is_said(tmp_path, template, rows):
    with pytest.raises(InputError):
        read_questions(file(tmp_path, *rows), template=template)
    with pytest.raises(InputError, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")


@pytest.mark.parametrize("key", ["id", "group"])
def test_half_a_character_in_a_name_is_a_bad_line(key, tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"prompt": "a", "answer": "b", key: "\ud800"}))
    with pytest.raises(InputError, match="surrogate"):
        read_questions(path)


def test_an_id_that_nobody_gave_stays_the_same_under_another_template_and_rule_for_the_right_answer(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"question": "2 + 2?", "answer": "two and two\\n#### 4"}\n{"question": "2 + 3?", "answer": "#### 5"}'
    )
    plain = read_questions(path)
    worded = read_questions(path, template="Q: {prompt} A:", gold=extraction_named("marker:####"))
    assert [each.id for each in plain.questions] == [each.id for each in worded.questions]
    assert len({each.id for each in plain.questions}) == 2
    assert plain.prompts_digest != worded.prompts_digest
