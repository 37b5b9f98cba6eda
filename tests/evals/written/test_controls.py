"""Every built-in way to grade accepts a right answer and refuses what answers nothing; its errors are measured."""

import json

import pytest
from scipy.stats import beta

from tests.evals.written.material import grader, question
from wholestack.errors import InputError
from wholestack.evals.written.controls import Labelled, measure_grader, read_labelled, try_controls
from wholestack.evals.written.extraction import BEYOND
from wholestack.evals.written.questions import QuestionSet

NUMBERS = [question(str(n * 7 + 3), prompt=f"{n} times 7 plus 3, below 1000?", id=str(n)) for n in range(20)]
COLOURS = ("red", "blue", "green", "grey")
CHOICES = [
    question("ABCD"[n % 4], prompt=f"{n}: A. red B. blue C. green D. grey", choices=COLOURS, id=str(n))
    for n in range(20)
]
UNEVEN = [
    question(
        chr(65 + n % many), prompt=f"{n}: which of {many}?", choices=[f"c{place}" for place in range(many)], id=str(n)
    )
    for n, many in enumerate((2, 4, 12, 3) * 5)
]
TOWNS = ("Paris", "Rome", "Oslo", "Bern", "Riga", "Kyiv", "Lima", "Cairo")
TEXTS = [
    question(TOWNS[n % 8], prompt=f"Which of {', '.join(TOWNS)}? ({n})", choices=TOWNS, id=str(n)) for n in range(20)
]
SCHEMAS = [{"type": "object", "properties": {"n": {"const": n}}, "required": ["n"]} for n in range(5)]
OBJECTS = [question(json.dumps(schema), prompt="Give n", id=str(n)) for n, schema in enumerate(SCHEMAS)]

WAYS = {
    "last number": (NUMBERS, "last_number", "number"),
    "marker": (NUMBERS, "marker:####", "number"),
    "marker, exact": (NUMBERS, "marker:Answer:", "exact"),
    "boxed": (NUMBERS, "boxed", "number:0.5"),
    "json": (NUMBERS, "json:answer", "number"),
    "letter": (CHOICES, "letter", "exact"),
    "letter, named": (CHOICES, "letter:ABCD", "exact"),
    "letter of few or many": (UNEVEN, "letter", "exact"),
    "exact text": (TEXTS, "text", "exact:casefold"),
    "contains": (TEXTS, "text", "contains"),
}


@pytest.mark.parametrize(("questions", "extract", "check"), WAYS.values(), ids=WAYS)
def test_right_answers_are_accepted_and_cheats_are_not(questions, extract, check):
    found = try_controls(questions, grader(extract, check))
    assert found.reference.times == found.reference.of == len(questions)
    assert {"nothing", "the prompt again", "the answer among many"} <= set(found.cheats)
    assert ("all choices" in found.cheats) == bool(questions[0].choices)
    for name, rate in found.cheats.items():
        most = max(sum(each.gold == gold for each in questions) for gold in {each.gold for each in questions})
        assert rate.times == (most if name.startswith("always") else 0), name


@pytest.mark.parametrize("extract", ["letter", "letter:ABCDEFGHIJ"])
def test_a_letter_beyond_the_choices_is_no_answer_and_never_a_wrong_one(extract):
    judge = grader(extract, "exact")
    graded = [judge.grade_text(CHOICES[0], f"The answer is {letter}.") for letter in "ABEJ"]
    assert [each.grade for each in graded] == ["right", "wrong", "unparsable", "unparsable"]
    assert {each.reason for each in graded[2:]} == {BEYOND}


def test_a_schema_refuses_what_is_not_the_object():
    judge = grader("text", "json_schema")
    for asked in OBJECTS:
        n = json.loads(asked.gold)["properties"]["n"]["const"]
        right = json.dumps((n and {"n": n}) or {"n": 0})
        cheats = ["", "{}", asked.prompt, '{"n": "all"}', str(list(range(5))), json.dumps([{"n": n}])]
        assert judge.accepts(asked, [right, *cheats]) == [True, *([False] * len(cheats))]


def test_a_pattern_refuses_a_list_that_holds_the_answer():
    asked = question(r"20\d\d", prompt="Which year?")
    assert grader("text", "regex").accepts(asked, ["2026", "", asked.prompt, "2025 2026", "19"]) == [True, *[False] * 4]


def test_a_grader_that_can_be_cheated_is_found_out():
    asked = [question("Paris", prompt=f"Paris or Rome? ({n})", id=str(n)) for n in range(10)]
    found = try_controls([*asked, *NUMBERS], grader("text", "regex"))
    careless = try_controls([question(".*", id=str(n)) for n in range(10)], grader("text", "regex"))
    assert found.cheats["the prompt again"].times == 0
    assert careless.cheats["the prompt again"].times == 10


def test_errors_on_labelled_answers_are_counted_with_exact_intervals():
    texts = [("#### 3", True), ("#### 3", True), ("it is 3", True), ("#### 4", False), ("#### 3", False), ("", False)]
    labelled = [Labelled(question=NUMBERS[0], text=text, right=right) for text, right in texts]
    found = measure_grader(labelled, grader("marker:####", "number"))
    assert (found.wrong_accepts.times, found.wrong_accepts.of) == (1, 3)
    assert (found.wrong_rejects.times, found.wrong_rejects.of) == (1, 3)
    interval = found.wrong_rejects.interval
    assert interval.low == pytest.approx(beta.ppf(0.025, 1, 3))
    assert interval.high == pytest.approx(beta.ppf(0.975, 2, 2))


def test_labelled_answers_are_read_by_the_id_of_their_question(tmp_path):
    questions = QuestionSet(questions=tuple(NUMBERS), sha256="")
    path = tmp_path / "labelled.jsonl"
    path.write_text('{"id": "3", "text": "#### 24", "right": true}\n\n{"id": 4, "text": "x", "right": false}\n')
    found = read_labelled(path, questions)
    assert [(each.question.id, each.right) for each in found] == [("3", True), ("4", False)]
    for bad in ('{"id": "99", "text": "", "right": true}', '{"id": "3", "text": "", "right": 1}', "[", '{"id": "3"}'):
        path.write_text(bad)
        with pytest.raises(InputError, match=r"labelled\.jsonl:1"):
            read_labelled(path, questions)


def test_nothing_to_measure_on_is_said():
    with pytest.raises(InputError):
        measure_grader([], grader("text", "exact"))
    with pytest.raises(InputError):
        try_controls([], grader("text", "exact"))
