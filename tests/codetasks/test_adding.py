"""The guide to adding a kind of question is run, and its suite notices kinds that break the rules."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.kinds.catalog import KINDS
from wholestack.codetasks.kinds.eval import Eval
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import Level
from wholestack.sandbox import Sandbox
from wholestack.testing.code_questions import broken_rules

GUIDE = (Path(__file__).parents[2] / "docs/adding/code-question.md").read_text()


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = {"__name__": "guide"}
    for code in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(code, there)
    assert len(Path("lines.jsonl").read_bytes().splitlines()) == 50


@pytest.mark.parametrize("name", KINDS)
def test_the_kinds_keep_the_rules(name: str, sandbox: Sandbox) -> None:
    assert broken_rules(KINDS[name], sandbox.run, each=15) == []


@dataclass(frozen=True)
class Changed(Eval):
    """Questions as ``eval`` asks them, changed before they are used."""

    def change(self, question: Question) -> Question | str:
        return question

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        made = Eval().draft(draws, level)
        if made is None:
            return None

        def ask(runs):
            question = made.ask(runs)
            return question if isinstance(question, str) else self.change(question)

        return Draft(made.jobs, ask)


class GoldFirst(Changed):
    def change(self, question):
        order = sorted(range(4), key=lambda at: at != question.gold)
        return replace(
            question,
            choices=tuple(question.choices[at] for at in order),
            misreadings=tuple(question.misreadings[at] for at in order),
            gold=0,
        )


class OnlyTheLargest(Changed):
    """Uses a family only where the right answer sorts last."""

    def change(self, question):
        return question if max(question.choices) == question.choices[question.gold] else "not the largest"


class Forgetful(Changed):
    def change(self, question):
        return replace(question, results=question.results[::-1])


class Hurried(Changed):
    drafts = 0

    def draft(self, draws, level):
        type(self).drafts += 1
        return super().draft(Draws(self.drafts), level)


class EasyOnly(Changed):
    def draft(self, draws, level):
        return super().draft(draws, level) if level.number < 9 else None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (GoldFirst(), "gold is not even by place"),
        (OnlyTheLargest(), "gold is not even by rank"),
        (Forgetful(), "do not always do again"),
        (Hurried(), "the same draws give two drafts"),
        (EasyOnly(), "level 10 gives 0 items"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Eval) else "",
)
def test_a_kind_that_breaks_a_rule_is_told_which(kind: Eval, said: str, sandbox: Sandbox) -> None:
    assert any(said in rule for rule in broken_rules(kind, sandbox.run, each=12))
