"""What the backward kinds share: a function, its results for many arguments, and which argument was it.

The function is run first for :data:`CANDIDATES` arguments. From their results a question is made in which the choices
(the arguments) and all that the question says are fixed, and what differs between the four possible right answers is
one detail of the program. So here too each choice is gold equally often, whatever the question says: who does not
follow the program cannot tell whether its result is far from the argument or near.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import settle_all
from wholestack.codetasks.grammar.chain import to_number, write_chain
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Type, Writer
from wholestack.codetasks.kinds.kind import Draft, Question
from wholestack.codetasks.levels import LOOKED_UP, Level
from wholestack.codetasks.running import Job, Run

CANDIDATES = 12
FEW = "too few arguments with different results"
END = "\x02"
"""Stands in a function's source where its end depends on its results."""


@dataclass(frozen=True, slots=True)
class Scouted:
    """A function of one argument, up to its last lines."""

    source: str
    """Its text, with :data:`END` for the last lines, indented as they must be."""
    name: str
    """As it is called."""
    result: str
    """Variable that holds its result before the last lines."""
    arguments: tuple[str, ...]
    """Arguments to try, as they are written."""
    writer: Writer
    """For names that the function does not use."""

    def job(self) -> Job:
        """Calls it with every argument; it gives back its result."""
        return Job(self.ending(f"return {self.result}"), tuple(self.call(each) for each in self.arguments))

    def call(self, argument: str) -> str:
        """The call with one argument."""
        return f"{self.name}({argument})"

    def ending(self, *lines: str) -> str:
        """The function with its last lines."""
        return self.source.replace(END, "\n    ".join(lines))


@dataclass(frozen=True, slots=True)
class Reached:
    """An argument and the number that the function makes of it."""

    argument: str
    value: int


def write_lookup(draws: Draws, level: Level, gold: int) -> tuple[Scouted, tuple[str, ...]]:
    """A function that finds a number by a word, and the numbers of four words; for the levels of looking up.

    As many of the words stand in its table as the level lets be seen, the one at ``gold`` among them; the others give
    another number. At the last of these levels the number goes through a second variable while the first gets another.
    """
    w = Writer(draws, level)
    name, parameter, table = w.name("function"), w.name("text"), w.name("table")
    keys = tuple(map(repr, draws.some(NAMES["word"], 4)))
    *values, other = map(str, draws.some(range(*level.start), 5))
    held = draws.shuffled([gold, *draws.some([each for each in range(4) if each != gold], level.choices_shown - 1)])
    found = f"[{parameter}]" if level.choices_shown == len(keys) else f".get({parameter}, {other})"
    with w.hoisted(), w.indented(f"def {name}({parameter}):"):
        w.line(f"{table} = {{{', '.join(f'{keys[each]}: {values[each]}' for each in held)}}}")
        x = w.name("int")
        w.line(f"{x} = {table}{found}")
        if level.number == LOOKED_UP:
            first, x = x, w.name("int")
            w.line(f"{x} = {first}")
            w.line(f"{first} = {other}")
        w.line(END)
    results = tuple(value if each in held else other for each, value in enumerate(values))
    return Scouted(w.template().rstrip("\n") + "\n", name, x, keys, w), results


def write_function(draws: Draws, level: Level) -> Scouted:
    """A function that makes a number of its argument, in as many steps as the level says, with its arguments."""
    w = Writer(draws, level)
    type = _parameter_type(draws, level)
    name, parameter = w.name("function"), w.new(type)
    with w.hoisted(), w.indented(f"def {name}({parameter.name}):"):
        x = write_chain(w, parameter, max(0, draws.between(*level.steps) - 1), inside=True)
        x = to_number(w, x)
        w.line(END)
    source = settle_all(w.template().rstrip("\n") + "\n", w.sites, draws)
    arguments = _arguments(draws, level, type)
    return Scouted(source, name, x.name, arguments, w)


def scouted_draft(scouted: Scouted, number: int, ask: Callable[[list[Reached]], Question | str]) -> Draft:
    """Find out what a function makes of its arguments, then ask.

    Args:
        scouted: The function.
        number: How many arguments with different results the question needs.
        ask: Makes the question of them, or says why there is none.
    """

    def after(runs: Sequence[Sequence[Run]]) -> Question | str:
        found = reached(scouted, runs[0], number)
        return found if isinstance(found, str) else ask(found)

    return Draft((scouted.job(),), after)


def reached(scouted: Scouted, runs: Sequence[Run], number: int) -> list[Reached] | str:
    """The first arguments whose results are different whole numbers of moderate size, or why they are too few."""
    found: dict[int, Reached] = {}
    for argument, run in zip(scouted.arguments, runs, strict=True):
        if run.error is None and run.value is not None and run.value.lstrip("-").isdigit() and len(run.value) < 5:
            found.setdefault(int(run.value), Reached(argument, int(run.value)))
    return list(found.values())[:number] if len(found) >= number else FEW


def _parameter_type(draws: Draws, level: Level) -> Type:
    types: tuple[Type, ...] = ("int", "int", "ints", "text") if level.number >= 8 else ("int",)
    return draws.pick(types)


def _arguments(draws: Draws, level: Level, type: Type) -> tuple[str, ...]:
    if type == "int":
        return tuple(map(str, draws.some(range(1, max(20, level.start[1] // 2)), CANDIDATES)))
    if type == "text":
        length = draws.between(3, 6)
        words = ["".join(draws.pick("abcdefgh") for _ in range(length - draws.below(2))) for _ in range(CANDIDATES)]
        return tuple(map(repr, dict.fromkeys(words)))
    length = draws.between(*level.turns)
    lists = [str([draws.between(1, 12) for _ in range(length)]) for _ in range(CANDIDATES)]
    return tuple(dict.fromkeys(lists))
