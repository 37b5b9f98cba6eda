"""Every layout keeps the rules of the suite, and reads its rows as they mean."""

import json
from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.evals.items import SAME_CHOICES, SAME_ITEM, find_items
from wholestack.evals.layouts.catalog import LAYOUTS, layout_named, read_questions, recognise
from wholestack.evals.layouts.layout import index_of_label
from wholestack.evals.layouts.template import render
from wholestack.evals.rows import NOT_JSON
from wholestack.testing.evals_layout import broken_rules

from .rows import ROWS, WITHOUT_GOLD

MMLU_REDUX = Path(__file__).parents[3].parent / "shared/data/evals/mmlu_redux.jsonl"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def items_of(name, tmp_path, rows=None):
    found = find_items(read_questions(write(tmp_path / "rows.jsonl", rows or ROWS[name])))
    assert found.refusals == ()
    return found.items


def test_every_layout_has_rows_here():
    assert {layout.name for layout in LAYOUTS} == set(ROWS) == set(WITHOUT_GOLD)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_it_keeps_the_rules(layout):
    assert broken_rules(layout, ROWS[layout.name], without_gold=WITHOUT_GOLD[layout.name]) == []


GOLD_ANSWERS = {
    "own": ["four", "white", "c"],
    "boolq": ["yes", "no"],
    "anli": ["True", "False"],
    "arc": ["heat", "light"],
    "openbookqa": ["warmth", "water"],
    "hellaswag": ["beats it.", "the soup."],
    "race": ["Ann", "Ben", "old"],
    "winogrande": ["shelf was loose.", "Ann thanked Ben for his help."],
    "socialiqa": ["grateful", "sad"],
    "multirc": ["yes", "yes", "no", "yes", "yes"],
    "ethics": ["yes", "no", "yes", "yes", "I ate a fresh pear."],
    "gsm8k-choices": ["5", "4"],
    "mmlu": ["4", "6", "2"],
    "code-comprehension": ["3"],
}


@pytest.mark.parametrize("name", GOLD_ANSWERS)
def test_the_gold_answer_is_the_one_that_the_row_means(name, tmp_path):
    assert [item.answer for item in items_of(name, tmp_path)] == GOLD_ANSWERS[name]


@pytest.mark.parametrize(
    ("name", "groups"),
    [("boolq", 1), ("anli", 1), ("race", 2), ("multirc", 2), ("winogrande", 2), ("mmlu", 3), ("own", 3)],
)
def test_questions_of_one_passage_are_one_group(name, groups, tmp_path):
    assert len({item.cluster for item in items_of(name, tmp_path)}) == groups


def test_what_the_model_reads_of_winogrande_is_the_sentence_itself(tmp_path):
    for item, row in zip(items_of("winogrande", tmp_path), ROWS["winogrande"], strict=True):
        read = [f"{item.context}{item.delimiter}{choice}" for choice in item.choices]
        assert read == [row["sentence"].replace("_", row[option]) for option in ("option1", "option2")]


def test_twins_of_winogrande_are_one_group(tmp_path):
    rows = [
        {"qID": f"P-{n}", "sentence": f"The _ is {n}.", "option1": "a", "option2": "b", "answer": "1"} for n in (1, 2)
    ]
    assert len({item.cluster for item in items_of("winogrande", tmp_path, rows)}) == 1


def test_the_place_of_the_pleasant_day_tells_nothing(tmp_path):
    rows = [{"baseline": f"I won {n} pears.", "less_pleasant": f"I lost {n} pears."} for n in range(200)]
    first = sum(item.gold == 0 for item in items_of("ethics", tmp_path, rows))
    assert 70 < first < 130


def test_the_question_mark_of_boolq_is_not_doubled(tmp_path):
    assert [item.context.count("?") for item in items_of("boolq", tmp_path)] == [1, 1]


def test_subjects_of_mmlu_are_sources(tmp_path):
    assert [item.source for item in items_of("mmlu", tmp_path)][:2] == ["arithmetic", "arithmetic"]


def test_a_row_of_no_layout_is_one_line_that_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="has the fields of no known layout") as caught:
        read_questions(write(tmp_path / "a.jsonl", [{"prompt": "p", "completion": "c"}]))
    assert "completion, prompt" in str(caught.value)
    assert "--layout" in str(caught.value)


def test_a_row_of_two_layouts_is_not_guessed():
    both = {**ROWS["boolq"][0], **ROWS["winogrande"][0], "answer": True}
    with pytest.raises(InputError, match="fits boolq and winogrande"):
        recognise(both, where="x:1")


def test_a_layout_that_is_named_is_used_whatever_the_fields_say(tmp_path):
    nested = [ROWS["arc"][0]]
    assert read_questions(write(tmp_path / "a.jsonl", nested), layout_named("openbookqa")).layout.name == "openbookqa"
    with pytest.raises(InputError, match="no layout 'nonsense'"):
        layout_named("nonsense")


def test_a_bad_row_in_the_middle_spoils_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [json.dumps(row) for row in ROWS["boolq"]]
    path.write_text("\n".join([rows[0], "{", '{"passage": 1, "question": "q", "answer": true}', rows[1]]))
    reading = read_questions(path)
    assert [line for line, _ in reading.questions] == [1, 4]
    assert [(each.line, each.reason) for each in reading.refusals] == [
        (2, NOT_JSON),
        (3, "the row does not follow the layout"),
    ]


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_one_clear_line(content, tmp_path):
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(InputError, match="holds no item"):
        read_questions(tmp_path / "a.jsonl")


def test_a_file_that_is_no_jsonl_is_one_clear_line(tmp_path):
    (tmp_path / "a.csv").write_text("question,answer\nwhat,that\n")
    with pytest.raises(InputError, match="is no JSONL file; line 1"):
        read_questions(tmp_path / "a.csv")


@pytest.mark.parametrize("template", ["{a.b}", "{a[0]}", "{a!r}", "{a:>10}", "{0}", "{}", "{a"])
def test_a_template_is_names_in_braces_and_nothing_else(template):
    with pytest.raises(InputError):
        render(template, {"a": "x"})


def test_text_that_looks_like_a_template_is_put_in_as_it_is():
    assert render("{a} {{b}} {c}", {"a": "{c}", "c": "{a}"}) == "{c} {b} {a}"


def test_a_place_without_text_is_named():
    with pytest.raises(InputError, match=r"\{b\}") as caught:
        render("{a}{b}", {"a": "x", "c": "y"})
    assert "a, c" in str(caught.value)


@pytest.mark.skipif(not MMLU_REDUX.exists(), reason="the shared data are not here")
def test_mmlu_redux_is_read_and_its_faults_are_counted():
    reading = read_questions(MMLU_REDUX)
    found = find_items(reading)
    rows = [json.loads(line) for line in MMLU_REDUX.read_text().split("\n") if line]
    assert reading.layout.name == "mmlu"
    assert len(found.items) + len(found.refusals) == len(rows)
    golds = {row["id"]: row["choices"][int(row["gold"])] for row in rows}
    assert all(item.answer == golds[item.id] for item in found.items)
    assert set(found.refused) <= {SAME_ITEM, SAME_CHOICES}
    assert {found.kept[item.id]["error_type"] for item in found.items} > {"ok", "wrong_groundtruth"}


def test_labels_of_ethics_may_be_digits_as_tables_have_them_and_reasons_for_one_claim_are_a_group(tmp_path):
    said = [("1", "I no longer greet him because he moved away."), ("0", "I no longer greet him because it is blue.")]
    items = items_of("ethics", tmp_path, [{"label": label, "scenario": scenario} for label, scenario in said])
    assert [item.choices[item.gold] for item in items] == ["yes", "no"]
    assert len({item.cluster for item in items}) == 1


def test_a_label_of_thousands_of_digits_is_no_index():
    assert index_of_label("9" * 5000) is None
    assert index_of_label("12", first=1) == 11
