"""``cloze``: which argument makes the function return what is stated?"""

from collections.abc import Sequence
from dataclasses import dataclass

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.kinds.backward import FEW, Reached, Scouted, scouted_draft, write_function, write_lookup
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import Level
from wholestack.codetasks.running import Job, Run

LARGEST_STEP = 60
"""Of the number that is added last."""


@dataclass(frozen=True, slots=True)
class Cloze:
    """See the module.

    The last line adds a number. With the choices and the stated result fixed, there is one such number for each choice
    that makes it the right one; which of the four is written is drawn.
    """

    name: str = "cloze"
    scouts: bool = True

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        """A table where the answer is looked up, a function that calculates where it is not."""
        if level.choices_shown:
            return _lookup(draws, level)
        scouted = write_function(draws, level)
        return scouted_draft(scouted, 4, lambda four: _ask(scouted, four, draws))

    def read(self, run: Run) -> str | None:
        """What the call gives."""
        return run.value


def _ask(scouted: Scouted, four: Sequence[Reached], draws: Draws) -> Question | str:
    values = sorted(each.value for each in four)
    stated = draws.between(values[1] - 9, values[2] + 9)
    if stated in values or max(abs(stated - each) for each in values) > LARGEST_STEP:
        return FEW
    gold = draws.below(len(four))
    step = stated - four[gold].value
    source = scouted.ending(f"return {scouted.result} {'+' if step > 0 else '-'} {abs(step)}")
    results = tuple(str(each.value + step) for each in four)
    return _question(source, scouted.name, [each.argument for each in four], gold, results)


def _lookup(draws: Draws, level: Level) -> Draft:
    gold = draws.below(4)
    scouted, values = write_lookup(draws, level, gold)
    source = scouted.ending(f"return {scouted.result}")
    question = _question(source, scouted.name, scouted.arguments, gold, values)
    return Draft(question.jobs, lambda runs: question)


def _question(source: str, name: str, arguments: Sequence[str], gold: int, results: Sequence[str]) -> Question:
    return Question(
        program=source,
        text=f"Which argument makes {name}(...) return {results[gold]}?",
        choices=tuple(arguments),
        gold=gold,
        misreadings=tuple(None if at == gold else f"gives {each}" for at, each in enumerate(results)),
        jobs=(Job(source, tuple(f"{name}({each})" for each in arguments)),),
        results=tuple(results),
        shown=None,
    )
