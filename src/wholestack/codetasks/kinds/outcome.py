"""``outcome``: which exception is raised, or which handler answers?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import Family, Member, make_family
from wholestack.codetasks.grammar.chain import held_with, write_program
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Writer
from wholestack.codetasks.kinds.conditions import conditions_for
from wholestack.codetasks.kinds.forward import NO_RESULT, SAME, forward_draft, show
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import LOOKED_UP, Level
from wholestack.codetasks.running import Job, Run

FAILURES = {
    "KeyError": ("{}['size']", "{'low': 1}['high']", "{1: 'one'}[2]"),
    "IndexError": ("[][0]", "[1, 2][2]", "'no'[5]", "(4, 5)[3]"),
    "ValueError": ("int('two')", "[1, 2].index(5)", "int('')", "list('ab').remove('c')"),
    "TypeError": ("'a' + 1", "len(5)", "[1] + 2", "None + 1", "sum('ab')"),
    "AttributeError": ("None.upper()", "(1).append(2)", "'ab'.push('c')", "[].add(1)"),
    "ZeroDivisionError": ("1 // 0", "5 % 0", "7 // (2 - 2)"),
    "NameError": ("missing + 1", "unknown"),
}
"""Exceptions, and expressions that raise them in every version of Python."""

RAISES = "Which exception is raised?"
RAISED = ("KeyError", "IndexError", "ValueError", "TypeError", "RuntimeError")
"""Exceptions that people raise themselves."""
PARENTS = {"KeyError": "LookupError", "IndexError": "LookupError", "ZeroDivisionError": "ArithmeticError"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """See the module.

    Four programs calculate four numbers; a function then fails in another way for each of them. The order of its
    branches is drawn, so which number means which exception is even.
    """

    name: str = "outcome"
    scouts: bool = True

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        """A chain first; what is done with its last value is written when the four values are known."""
        if level.number < LOOKED_UP:
            return _few_branches(draws, level, self.read)
        written = write_program(draws, level, words=False, number=True)
        family = make_family(written.template(), written.sites, draws)
        if family is None:
            return None
        jobs = tuple(Job(member.source) for member in family.members)

        def ask(runs: Sequence[Sequence[Run]]) -> Question | str:
            printed = [run.printed.strip() if run.error is None else "" for (run,) in runs]
            if not all(each.lstrip("-").isdigit() for each in printed):
                return NO_RESULT
            values = [int(each) for each in printed]
            return SAME if len(set(values)) < len(values) else _ask(written, family, values, draws, level)

        return Draft(jobs, ask)

    def read(self, run: Run) -> str | None:
        """The exception that came out, or the line that was printed."""
        text = run.printed.rstrip("\n")
        return run.error or (text if text and "\n" not in text else None)


def _few_branches(draws: Draws, level: Level, read: Callable[[Run], str | None]) -> Draft | None:
    """A function with as many branches as the level lets choices be seen, each with an exception of its own."""
    w = Writer(draws, level)
    function, parameter = w.name("function"), w.name("int")
    errors = draws.some(RAISED, 4)
    tested = draws.some(range(*level.start), level.choices_shown)
    place = draws.below(level.choices_shown)
    held = w.slots("look_up", *(held_with(draws, each, errors, tested, place) for each in errors))
    with w.hoisted(), w.indented(f"def {function}({parameter}):"):
        for value, error in zip(tested[:-1], held[:-1], strict=True):
            with w.indented(f"if {parameter} == {value}:"):
                w.line(f"raise {error}({parameter})")
        w.line(f"raise {held[-1]}({parameter})")
    w.line(f"{function}({tested[place]})")
    family = make_family(w.template(), w.sites, draws)
    return forward_draft(family, draws, RAISES, read) if family else None


def _ask(written: Writer, family: Family, values: Sequence[int], draws: Draws, level: Level) -> Question:
    """Write the branches, and at higher levels sometimes the handlers, and show one of the four programs."""
    function, parameter = written.name("function"), written.name("int")
    order = draws.shuffled(tuple(values))
    conditions = conditions_for(parameter, values, draws)
    if level.choices_shown:
        conditions = {value: f"{parameter} == {value}" for value in values}
    head = [f"def {function}({parameter}):"]
    natural = not level.choices_shown and draws.chance(0.5)
    errors = draws.some(tuple(FAILURES) if natural else RAISED, len(values))
    for place, (value, error) in enumerate(zip(order, errors, strict=True)):
        done = f"return {draws.pick(FAILURES[error])}" if natural else f"raise {error}({parameter})"
        last = place == len(order) - 1
        head += [f"    {done}"] if last else [f"    if {conditions[value]}:", f"        {done}"]
    outcomes = dict(zip(order, errors, strict=True))
    tail, text = [f"{function}(VALUE)"], RAISES
    if level.number > LOOKED_UP + 1 and draws.chance(0.5):
        labels = dict(zip(errors, draws.some(NAMES["word"], len(errors)), strict=True))
        tail, text = ["try:", f"    {function}(VALUE)"], "What is printed?"
        for error in draws.shuffled(errors):
            tail += [f"except {_caught(error, errors, draws)}:", f"    print({labels[error]!r})"]
        outcomes = {value: labels[error] for value, error in outcomes.items()}
    results = tuple(outcomes[value] for value in values)
    jobs = [Job("\n".join(head) + "\n\n\n" + _with_call(member, tail)) for member in family.members]
    return show(family, jobs, results, draws, text)


def _caught(error: str, errors: Sequence[str], draws: Draws) -> str:
    """The exception itself, or its parent where no other of them has the same."""
    parent = PARENTS.get(error, error)
    alone = sum(PARENTS.get(each, each) == parent for each in errors) == 1
    return parent if alone and draws.chance(0.4) else error


def _with_call(member: Member, tail: Sequence[str]) -> str:
    """The member with the call in place of the print at its end."""
    *lines, last = member.source.rstrip("\n").split("\n")
    value = last.removeprefix("print(").removesuffix(")")
    return "\n".join((*lines, *(line.replace("VALUE", value) for line in tail))) + "\n"
