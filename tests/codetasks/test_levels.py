"""What the lowest levels promise: how many of the four choices stand in the program, to be looked up."""

import re

import pytest

from wholestack.codetasks.item import CodeItem
from wholestack.codetasks.kinds.catalog import KINDS
from wholestack.codetasks.levels import LEVELS, LOOKED_UP


def stands(choice: str, program: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(choice.strip(chr(39)))}(?!\w)", program) is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", range(1, LOOKED_UP + 1))
def test_as_many_choices_stand_in_the_program_as_the_level_says(items: list[CodeItem], kind: str, level: int) -> None:
    found = [item for item in items if (item.kind, item.difficulty) == (kind, level)]
    assert found
    for item in found:
        seen = [each for each in item.choices if stands(each, item.program)]
        assert len(seen) == LEVELS[level].choices_shown
        assert item.choices[item.gold] in seen


def test_from_then_on_answers_must_be_worked_out(items: list[CodeItem]) -> None:
    printed = [item for item in items if item.kind == "eval" and item.difficulty > LOOKED_UP]
    seen = [stands(item.choices[item.gold], item.program) for item in printed]
    assert sum(seen) < len(seen) / 4
