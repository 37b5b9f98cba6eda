"""``branch``: one call runs one branch; which argument makes another line run?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Writer
from wholestack.codetasks.kinds.backward import END, Reached, Scouted, scouted_draft, write_function
from wholestack.codetasks.kinds.conditions import conditions_for
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import LOOKED_UP, Level
from wholestack.codetasks.running import Job, Run, Watch

BRANCHES = 5
"""Four for the choices, one for the call that is given."""


@dataclass(frozen=True, slots=True)
class Branch:
    """See the module.

    Five arguments take five branches whose conditions exclude each other, so the order in which they stand in the
    program means nothing and is drawn: with the choices and the line that is asked for fixed, each choice takes that
    line in as many orders.
    """

    name: str = "branch"
    scouts: bool = True

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        """A function whose last lines are five branches on what it has calculated."""
        if level.choices_shown:
            return _on_words(draws, level)
        scouted = write_function(draws, level)

        def ask(five: list[Reached]) -> Question | str:
            conditions = conditions_for(scouted.result, [each.value for each in five], draws)
            chosen = {each.argument: conditions[each.value] for each in five}
            return _ask(scouted, chosen, draws.shuffled(tuple(chosen)), draws)

        return scouted_draft(scouted, BRANCHES, ask)

    def read(self, run: Run) -> str | None:
        """Which of the branches ran, if it was just one."""
        ran = [place for place, times in enumerate(run.watched) if times != "0"]
        return f"branch {ran[0] + 1}" if len(ran) == 1 and run.error is None else None


def _on_words(draws: Draws, level: Level) -> Draft:
    """Branches on a word, for as many of the choices as the level lets be seen; the others take the last branch.

    At the last of these levels the word goes through a second variable while the first gets another one.
    """
    w = Writer(draws, level)
    name, tested = w.name("function"), w.name("text")
    given, *choices, other = (repr(each) for each in draws.some(NAMES["word"], BRANCHES + 1))
    with w.hoisted(), w.indented(f"def {name}({tested}):"):
        if level.number == LOOKED_UP:
            first, tested = tested, w.name("text")
            w.line(f"{tested} = {first}")
            w.line(f"{first} = {other}")
        w.line(END)
    scouted = Scouted(w.template().rstrip("\n") + "\n", name, tested, (given, *choices), w)
    conditions = {word: f"{tested} == {word}" for word in scouted.arguments}
    branches = [*draws.some(choices, level.choices_shown), given]
    question = _ask(scouted, conditions, branches, draws)
    return Draft(question.jobs, lambda runs: question)


def _ask(scouted: Scouted, conditions: Mapping[str, str], branches: Sequence[str], draws: Draws) -> Question:
    """Write the branches and ask for one that a choice has of its own.

    Args:
        scouted: The function up to them.
        conditions: Condition that each of five arguments alone fulfils; the first argument is the call that is given.
        branches: Arguments that have branches, in their order; the last branch is also for all that have none.
        draws: Draw labels and the line that is asked for.
    """
    given, *choices = conditions
    target = scouted.writer.name("text")
    taken = "".join((scouted.source, *conditions))
    labels = [repr(each) for each in draws.some([word for word in NAMES["word"] if word not in taken], len(branches))]
    lines = []
    for place, (argument, label) in enumerate(zip(branches, labels, strict=True)):
        head = "else:" if place == len(branches) - 1 else f"{'elif' if place else 'if'} {conditions[argument]}:"
        lines += [head, f"    {target} = {label}"]
    source = scouted.ending(*lines, f"return {target}")
    texts = source.split("\n")
    at = [texts.index(f"        {target} = {label}") + 1 for label in labels]
    line_of = dict.fromkeys(conditions, at[-1]) | dict(zip(branches, at, strict=True))

    def shown(argument: str) -> str:
        return f"line {line_of[argument]} ({texts[line_of[argument] - 1].strip()})"

    gold = draws.pick([place for place, each in enumerate(choices) if each in branches])
    calls = tuple(scouted.call(argument) for argument in (*choices, given))
    return Question(
        program=source,
        text=f"{calls[-1]} runs {shown(given)}. Which argument makes {shown(choices[gold])} run?",
        choices=tuple(choices),
        gold=gold,
        misreadings=tuple(None if at == gold else f"runs line {line_of[each]}" for at, each in enumerate(choices)),
        jobs=(Job(source, calls, watches=tuple(Watch(line) for line in at)),),
        results=tuple(f"branch {at.index(line_of[argument]) + 1}" for argument in (*choices, given)),
        shown=None,
    )
