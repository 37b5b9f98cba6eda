"""Fifty and more mutations of rows, wording, examples and weights: every one changes the key, none finds an old result.

The model is the one in memory, whose weights, width and context length are its own. Mutations of tokenizers, templates,
weights and rules of models of tokens are in ``tests/evals/models/test_model_keys.py``.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from wholestack.evals import items as items_module
from wholestack.evals import results as results_module
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import key_of, score_into
from wholestack.evals.shots import Shots
from wholestack.evals.tasks import Task, pose

from .keys import Watched, scored_anew

TEXT = b"Tin is a metal. Water is wet. A stone sinks in water and a cork swims on it. " * 3


def made(first, last):
    return [
        {"id": f"q{n}", "passage": f"Passage {n} says {n * 7}.", "question": f"is {n} said", "answer": n % 2 == 0}
        for n in range(first, last)
    ]


@dataclass(frozen=True)
class Setup:
    """Everything that is asked, and of what."""

    rows: tuple = tuple(made(0, 6))
    examples: tuple = tuple(made(100, 110))
    task: Task = field(default_factory=lambda: Task(name="t", layout="boolq", shots=Shots(count=2, seed=1)))
    text: bytes = TEXT
    model: dict[str, Any] = field(default_factory=dict)
    limit: int | None = None


def row(number, **changes):
    def mutate(setup):
        changed = tuple({**each, **changes} if at == number else each for at, each in enumerate(setup.rows))
        return replace(setup, rows=changed)

    return mutate


def examples(change):
    return lambda setup: replace(setup, examples=tuple(change(list(setup.examples))))


def task(**changes):
    return lambda setup: replace(setup, task=replace(setup.task, **changes))


def shots(**changes):
    return lambda setup: replace(setup, task=replace(setup.task, shots=replace(setup.task.shots, **changes)))


def model(**changes):
    return lambda setup: replace(setup, model=changes)


def ordered(change):
    return lambda setup: replace(setup, rows=tuple(change(list(setup.rows))))


def own(**changes):
    """The same questions in our own layout, where choices, delimiter and source can be changed."""

    def mutate(setup):
        plain = [
            {"id": each["id"], "context": each["passage"], "choices": ["no", "yes"], "gold": int(each["answer"])}
            for each in setup.rows
        ]
        plain[2] |= changes
        return replace(setup, rows=tuple(plain), task=Task(name="t", layout="own"))

    return mutate


OWN = own()
MUTATIONS: dict[str, Callable[[Setup], Setup]] = {
    "one letter of a passage": row(3, passage="Passage 3 says 22."),
    "a space behind a passage": row(3, passage="Passage 3 says 21. "),
    "a letter that looks the same": row(3, passage="Pаssage 3 says 21."),
    "a composed letter": row(3, passage="Pa\u0301ssage 3 says 21."),
    "the question": row(0, question="is 0 not said"),
    "capitals of the question": row(0, question="Is 0 said"),
    "the gold answer": row(1, answer=True),
    "the id of an item": row(5, id="q5b"),
    "two items swapped": ordered(lambda given: [given[1], given[0], *given[2:]]),
    "all items turned round": ordered(lambda given: given[::-1]),
    "one item fewer": ordered(lambda given: given[:-1]),
    "one item more": ordered(lambda given: [*given, *made(50, 51)]),
    "an item that cannot be used beside them": ordered(lambda given: [*given, {**given[0], "id": "z", "answer": None}]),
    "a limit": lambda setup: replace(setup, limit=4),
    "another limit": lambda setup: replace(setup, limit=5),
    "our own layout": OWN,
    "the order of choices": own(choices=["yes", "no"], gold=0),
    "a choice's text": own(choices=["no", "yes."]),
    "one choice more": own(choices=["no", "yes", "maybe"]),
    "the delimiter of an item": own(delimiter="\n"),
    "no delimiter of an item": own(delimiter=""),
    "the group of an item": own(group="g"),
    "the source of an item": own(source="other"),
    "gold in our own layout": own(gold=0),
    "an empty context": own(context=""),
    "the template": task(template="{passage}\nQ: {question}?\nA:"),
    "a space behind the template": task(template="{passage}\nQuestion: {question}?\nAnswer: "),
    "the template without the passage": task(template="Question: {question}?\nAnswer:"),
    "the delimiter of the task": task(delimiter="\n"),
    "no delimiter": task(delimiter=""),
    "letters for texts": task(template="{passage} {question}?\n{options}\nAnswer:", answers="letters"),
    "texts for letters": task(template="{passage} {question}?\n{options}\nAnswer:"),
    "the purpose": task(purpose="reasoning"),
    "the name of the task": task(name="u"),
    "the extraction": task(extraction="last number"),
    "the checker": task(checker="exact"),
    "no examples": task(shots=None),
    "one example": shots(count=1),
    "three examples": shots(count=3),
    "the seed of the examples": shots(seed=2),
    "what separates examples": shots(separator="\n"),
    "the text of every example": examples(
        lambda given: [{**each, "question": each["question"] + " here"} for each in given]
    ),
    "an answer of every example": examples(lambda given: [{**each, "answer": not each["answer"]} for each in given]),
    "an example that nobody is shown": examples(lambda given: [*given, {**given[0], "id": "q199", "passage": "x"}]),
    "the order of the examples' file": examples(lambda given: given[::-1]),
    "another file of examples": examples(lambda given: made(200, 210)),
    "one byte of the weights": lambda setup: replace(setup, text=setup.text[:-1] + b"!"),
    "a weight more": lambda setup: replace(setup, text=setup.text + b" "),
    "no weights": lambda setup: replace(setup, text=b""),
    "the width of the model": model(order=3),
    "a constant of the model": model(strength=0.5),
    "the context length": model(context_bytes=64),
    "a context length one longer": model(context_bytes=65),
}


def posed(setup, folder: Path):
    """What a set-up says on the disk; its model and item set."""
    folder.mkdir(exist_ok=True)
    for name, given in (("rows", setup.rows), ("examples", setup.examples)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in given))
    shown = folder / "examples.jsonl" if setup.task.shots else None
    item_set = pose(folder / "rows.jsonl", setup.task, shots_from=shown, limit=setup.limit)
    return MemoryBackend(setup.text, **setup.model), item_set


@pytest.fixture
def before(tmp_path):
    return score_into(*posed(Setup(), tmp_path), tmp_path / "out")


def test_there_are_fifty_mutations_or_more_and_no_two_are_one(tmp_path):
    assert len(MUTATIONS) >= 50
    keys = {}
    for name, mutate in MUTATIONS.items():
        backend, item_set = posed(mutate(Setup()), tmp_path)
        keys.setdefault(key_of(backend.identity, item_set), []).append(name)
    assert [names for names in keys.values() if len(names) > 1] == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_has_another_key_and_is_scored_anew(name, before, tmp_path):
    scored_anew(*posed(MUTATIONS[name](Setup()), tmp_path), tmp_path / "out", before)


def found_again(setup, folder, before):
    """Nothing was asked of the model, and the result is that from before."""
    backend, item_set = posed(setup, folder)
    watched = Watched(backend)
    return score_into(watched, item_set, folder / "out").plan.key == before.plan.key and watched.asked == []


def test_without_a_mutation_the_result_is_found(before, tmp_path):
    assert found_again(Setup(), tmp_path, before)


def test_the_rules_of_tokens_prompt_and_scoring_are_in_the_key(before, tmp_path, monkeypatch):
    keys = {before.plan.key}
    for module, name in ((items_module, "TOKEN_RULE"), (items_module, "PROMPT"), (results_module, "RULES")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, "another")
            keys.add(scored_anew(*posed(Setup(), tmp_path), tmp_path / "out", before).plan.key)
    assert len(keys) == 4


def test_what_does_not_reach_the_model_changes_nothing(before, tmp_path):
    """Unknown keys of a row, and the order of its keys."""
    assert found_again(Setup(rows=tuple({**each, "note": "seen"} for each in Setup().rows)), tmp_path, before)
    assert found_again(
        replace(Setup(), rows=tuple(dict(reversed(each.items())) for each in Setup().rows)), tmp_path, before
    )
