"""Nothing but the program tells which choice is right: gold is even whatever the choices are ordered by."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import make_family
from wholestack.codetasks.grammar.chain import BLOCKS, write_program
from wholestack.codetasks.item import CodeItem
from wholestack.codetasks.kinds.eval import Eval
from wholestack.codetasks.kinds.forward import forward_draft
from wholestack.codetasks.kinds.kind import Question
from wholestack.codetasks.levels import LEVELS
from wholestack.codetasks.running import run_jobs
from wholestack.sandbox import Sandbox

UNLIKELY = 16.3
"""Chi-square with 3 degrees of freedom that even draws exceed once in a thousand; the seed of the items is fixed."""


def number(text: str) -> float:
    found = re.search(r"-?\d+", text)
    return float(found[0]) if found else 0.0


def closeness(item: CodeItem, at: int) -> float:
    """To the middle of the others, where a distractor made from the right answer would leave it."""
    others = [number(each) for place, each in enumerate(item.choices) if place != at]
    return abs(number(item.choices[at]) - sum(others) / 3)


ORDERS: dict[str, Callable[[CodeItem, int], object]] = {
    "place": lambda item, at: at,
    "text": lambda item, at: item.choices[at],
    "size": lambda item, at: (number(item.choices[at]), item.choices[at]),
    "length": lambda item, at: (len(item.choices[at]), item.choices[at]),
    "closeness": lambda item, at: (closeness(item, at), at),
    "nearness to the question": lambda item, at: (abs(number(item.choices[at]) - number(item.question)), at),
    "letters of the question": lambda item, at: (len(set(item.choices[at]) & set(item.question)), at),
}


@pytest.mark.parametrize("order", ORDERS)
def test_gold_is_even_in_every_order_of_the_choices(items: list[CodeItem], order: str) -> None:
    ranks = Counter(sorted(range(4), key=lambda at: ORDERS[order](item, at)).index(item.gold) for item in items)
    expected = len(items) / 4
    assert sum((ranks[rank] - expected) ** 2 / expected for rank in range(4)) < UNLIKELY, ranks


@pytest.mark.parametrize("kind", ["cloze", "branch"])
def test_backward_kinds_hide_the_answer_from_who_compares_it_with_the_question(
    items: list[CodeItem], kind: str
) -> None:
    asked = [item for item in items if item.kind == kind and item.choices[0].isdigit()]
    ranks = Counter(
        sorted(range(4), key=lambda at: ORDERS["nearness to the question"](item, at)).index(item.gold) for item in asked
    )
    expected = len(asked) / 4
    assert expected > 20
    assert sum((ranks[rank] - expected) ** 2 / expected for rank in range(4)) < UNLIKELY, ranks


def test_both_forms_of_every_misreading_run_and_are_shown(sandbox: Sandbox) -> None:
    families, drafts = [], []
    for seed in range(700):
        draws = Draws(seed)
        written = write_program(draws, LEVELS[7 + seed % 4])
        family = make_family(written.template(), written.sites, draws)
        if family is not None:
            families.append(family)
            drafts.append(forward_draft(family, draws, "?", Eval().read))
    runs = iter(run_jobs([job for each in drafts for job in each.jobs], sandbox.run, hash_seed=1))
    shown: dict[str, list[int]] = {}
    for family, each in zip(families, drafts, strict=True):
        of_members = [next(runs) for _ in each.jobs]
        question = each.ask(of_members)
        if not isinstance(question, Question):
            continue
        assert all(run.error is None for (run,) in of_members)
        for site, form in zip(family.sites, family.members[question.shown].forms, strict=True):
            shown.setdefault(site.misreading, []).append(form)
    often = {name: forms for name, forms in shown.items() if len(forms) >= 8}
    assert len(often) >= 20
    assert {name: forms for name, forms in often.items() if set(forms) != {0, 1}} == {}


def test_every_block_of_the_grammar_is_used(items: list[CodeItem]) -> None:
    """By what only it writes, where that can be told from the text; the others by construction of the table."""
    assert len({block.write for block in BLOCKS}) == len(BLOCKS) >= 60
    text = "\n".join(item.program for item in items if item.difficulty >= 8)
    for construct in ("class ", "super()", "try:", "finally:", "lambda", "for ", "while ", "def ", ".items()", "break"):
        assert construct in text
