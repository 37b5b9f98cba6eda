from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from wholestack.errors import InputError
from wholestack.evals.layouts.layout import Question
from wholestack.testing.evals_layout import broken_rules

ROW = {"ask": "q", "right": "a", "wrong": "b"}


@dataclass
class Fake:
    """A layout that keeps every rule, until a test breaks one."""

    name: str = "fake"
    template: str = "{ask}"

    def recognises(self, values) -> bool:
        return "ask" in values

    def questions(self, values) -> Iterator[Question]:
        if not all(isinstance(values.get(key), str) for key in ("ask", "wrong")):
            raise InputError("not text")
        right = values.get("right")
        yield Question(
            texts={"ask": values["ask"]},
            choices=(right or "none", values["wrong"]) if isinstance(right, str | None) else ("x", "y"),
            gold=right,
            kept={key: value for key, value in values.items() if key not in ROW},
        )


class NotRecognising(Fake):
    def recognises(self, values):
        return False


class RecognisingAll(Fake):
    def recognises(self, values):
        return True


class ReadingUnguarded(Fake):
    def questions(self, values):
        yield Question(texts={"ask": values["ask"]}, choices=(values["right"], values["wrong"]), gold=0)


class Guessing(Fake):
    def questions(self, values):
        for each in Fake.questions(self, values):
            yield Question(texts=each.texts, choices=each.choices, gold=0, kept=each.kept)


class Mutating(Fake):
    def questions(self, values):
        found = list(Fake.questions(self, values))
        values["more"] = 1
        return iter(found)


class ReadingStrangers(Fake):
    def questions(self, values):
        for each in Fake.questions(self, values):
            yield Question(texts={"ask": each.texts["ask"] * len(values)}, choices=each.choices, gold=each.gold)


def test_a_good_layout_breaks_no_rule():
    assert broken_rules(Fake(), [ROW], without_gold=[{**ROW, "right": None}]) == []


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (Fake(name="My Layout"), "small letters"),
        (Fake(template=" "), "template is empty"),
        (Fake(template="{question}"), "template does not fit"),
        (NotRecognising(), "is not recognised"),
        (RecognisingAll(), "without any field is recognised"),
        (ReadingUnguarded(), "raises KeyError"),
        (ReadingUnguarded(), "is not kept"),
        (Guessing(), "not refused for that"),
        (Mutating(), "reading changes the row"),
        (ReadingStrangers(), "unknown key changes"),
    ],
)
def test_each_broken_rule_is_named(layout, said):
    broken = broken_rules(layout, [dict(ROW)], without_gold=[{**ROW, "right": None}])
    assert any(said in each for each in broken), broken


def test_a_row_that_another_layout_takes_too_is_named():
    row = {**ROW, "sentence": "a _ b", "option1": "c", "option2": "d", "answer": "1"}
    assert any("also recognised as winogrande" in each for each in broken_rules(Fake(), [row]))


def test_a_question_that_is_no_item_is_named():
    assert any("two choices are the same" in each for each in broken_rules(Fake(), [{**ROW, "wrong": "a"}]))
