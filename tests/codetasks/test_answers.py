"""Every gold answer against an oracle that shares nothing with the generator."""

from dataclasses import replace

import pytest

from tests.codetasks.oracle import wrong_answers
from wholestack.codetasks.item import CodeItem
from wholestack.codetasks.kinds.catalog import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_gold_choice_and_no_other_is_right(items: list[CodeItem], kind: str) -> None:
    asked = [item for item in items if item.kind == kind]
    assert len(asked) == 200
    assert [item.context for item in wrong_answers(asked)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_finds_a_wrong_answer(items: list[CodeItem], kind: str) -> None:
    wrong = [replace(item, gold=(item.gold + 1) % 4) for item in items if item.kind == kind][:20]
    assert wrong_answers(wrong) == wrong


@pytest.mark.parametrize("kind", ["eval", "trace", "outcome"])
def test_the_misreadings_of_the_other_choices_are_named(items: list[CodeItem], kind: str) -> None:
    for item in (each for each in items if each.kind == kind):
        assert item.misreadings[item.gold] is None
        assert all(each for at, each in enumerate(item.misreadings) if at != item.gold)
