"""The guesser finds what gives answers away, and finds nothing where there is nothing."""

import random
from dataclasses import replace

import pytest

from wholestack.codetasks.guessing import guess, guess_by_cell
from wholestack.codetasks.item import CodeItem
from wholestack.errors import InputError


def made(count: int, choose, seed: int = 1) -> list[CodeItem]:
    """Questions whose choices and gold a function draws."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        choices, gold, question = choose(rng)
        made.append(
            CodeItem(
                id=str(number), kind="eval", difficulty=1, seed=number, version="1", program="", question=question,
                context="", choices=tuple(map(str, choices)), gold=gold, misreadings=(None,) * 4, program_hash="",
                trace={}, hash="",
            )
        )  # fmt: skip
    return made


def even(rng):
    return rng.sample(range(10, 100), 4), rng.randrange(4), "What is printed?"


def test_even_questions_are_at_chance():
    for features in ("form", "context"):
        found = guess(made(8000, even), features=features)
        assert found.verdict == "chance"
        assert found.low <= 0.25 <= found.high


def first_more_often(rng):
    choices, gold, question = even(rng)
    return choices, 0 if rng.random() < 0.2 else gold, question


def largest(rng):
    choices, gold, question = even(rng)
    return choices, choices.index(max(choices)) if rng.random() < 0.3 else gold, question


def middle(rng):
    gold = rng.randrange(20, 90)
    choices = [gold, gold + rng.randrange(1, 4), gold - rng.randrange(1, 4), gold + rng.randrange(4, 9)]
    rng.shuffle(choices)
    return choices, choices.index(gold), "What is printed?"


def longer(rng):
    choices, gold, question = even(rng)
    if rng.random() < 0.3:
        choices[gold] += 1000
    return choices, gold, question


def another_type(rng):
    choices, gold, question = even(rng)
    return [f"'{each}'" if place != gold else each for place, each in enumerate(choices)], gold, question


@pytest.mark.parametrize("choose", [first_more_often, largest, middle, longer, another_type])
def test_what_form_gives_away_is_found(choose):
    found = guess(made(2000, choose), features="form")
    assert found.verdict == "given away"
    assert found.accuracy > 0.3


def nearest_to_the_question(rng):
    choices, gold, _ = even(rng)
    return choices, gold, f"For which argument is the result {choices[gold] + rng.randrange(-2, 3)}?"


def most_like_the_others(rng):
    gold = [rng.randrange(10) for _ in range(4)]
    choices = [gold, *([*gold[:place], gold[place] + 10, *gold[place + 1 :]] for place in range(3))]
    rng.shuffle(choices)
    return choices, choices.index(gold), "What is printed?"


@pytest.mark.parametrize("choose", [nearest_to_the_question, most_like_the_others])
def test_what_the_question_or_the_other_choices_give_away_is_found(choose):
    assert guess(made(2000, choose), features="context").verdict == "given away"


def test_few_questions_are_unknown_and_never_chance():
    assert guess(made(100, even)).verdict == "unknown"
    with pytest.raises(InputError, match="too few"):
        guess_by_cell(made(49, even))


def test_there_is_a_row_for_every_group_and_none_twice():
    items = [replace(item, difficulty=1 + number % 2) for number, item in enumerate(made(400, even))]
    rows = guess_by_cell(items).rows
    assert [(row.kind, row.difficulty, row.features, row.items) for row in rows] == [
        ("eval", 0, "form", 400), ("eval", 0, "context", 400), ("eval", 1, "form", 200), ("eval", 1, "context", 200),
        ("eval", 2, "form", 200), ("eval", 2, "context", 200),
    ]  # fmt: skip


def test_what_is_generated_gives_nothing_away_that_this_many_would_show(items):
    for features in ("form", "context"):
        found = guess(items, features=features)
        assert found.low <= 0.25 + 0.02


def test_several_kinds_have_a_row_of_all():
    items = [replace(item, kind=("eval", "trace")[number % 2]) for number, item in enumerate(made(200, even))]
    assert {(row.kind, row.items) for row in guess_by_cell(items).rows} == {("eval", 100), ("trace", 100), ("all", 200)}


def test_a_group_that_cannot_be_guessed_is_left_out_by_name_and_makes_all_unknown():
    kinds = ["eval"] * 8000 + ["cloze"] * 49
    items = [replace(item, kind=kind) for kind, item in zip(kinds, made(len(kinds), even), strict=True)]
    found = guess_by_cell(items[:8000])
    assert (found.verdict, found.left_out) == ("chance", ())
    found = guess_by_cell(items)
    assert (found.verdict, found.left_out) == ("unknown", ("cloze 1: 49 questions, 50 are needed",))
    odd = replace(items[0], choices=("1", "2", "3"), gold=0)
    assert guess_by_cell([*items[:100], odd, *(replace(item, kind="trace") for item in items[:60])]).left_out == (
        "eval 1: [3, 4] choices",
        "all all: [3, 4] choices",
    )
