"""A program is a chain of blocks, from first values to the one that is asked about."""

from collections.abc import Sequence
from dataclasses import replace

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.grammar import classes, copying, exceptions, functions, lists, loops, numbers, tables, texts
from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Type, Var, Writer
from wholestack.codetasks.levels import LEVELS, LOOKED_UP, Level

BLOCKS: tuple[Block, ...] = (
    *copying.BLOCKS,
    *numbers.BLOCKS,
    *texts.BLOCKS,
    *loops.BLOCKS,
    *functions.BLOCKS,
    *lists.BLOCKS,
    *tables.BLOCKS,
    *exceptions.BLOCKS,
    *classes.BLOCKS,
)
"""Every block; a new one is a line in the table of its file."""

NEW_WEIGHT = 3.0
"""How much more often a block is taken at the level at which it joins and at the next one."""


def _table(level: int, needs: Type, *, inside: bool) -> tuple[list[Block], list[float]]:
    found = [each for each in BLOCKS if each.level <= level and each.needs == needs and (each.inside or not inside)]
    return found, [NEW_WEIGHT if level - each.level <= 1 else 1.0 for each in found]


_TABLES = {
    (level, needs, inside): _table(level, needs, inside=inside)
    for level in LEVELS
    for needs in ("int", "text", "ints", "table")
    for inside in (False, True)
}


def write_chain(w: Writer, x: Var, steps: int, *, inside: bool = False) -> Var:
    """Write ``steps`` blocks behind each other; the last variable depends on the first.

    Args:
        w: The program.
        x: The variable that the first block takes.
        steps: How many blocks.
        inside: Within a function.
    """
    for _ in range(steps):
        blocks, weights = _TABLES[w.level.number, x.type, inside]
        w.mark(x)
        x = w.draws.weighted(blocks, weights).write(w, x)
    return x


def write_program(
    draws: Draws,
    level: Level,
    *,
    words: bool = True,
    number: bool = False,
    beyond: bool = False,
) -> Writer:
    """A program that prints one value: first values, a chain of blocks, and the print.

    Args:
        draws: Where every choice comes from.
        level: Its difficulty.
        words: Whether programs that copy may copy words.
        number: Whether the value must be a whole number.
        beyond: Whether one more block follows on the chain, in which no site may stay open.
    """
    w = Writer(draws, level)
    shown = write_value(w, words=words, number=number, beyond=beyond)
    w.line(f"print({shown})", watch=shown)
    return w


def write_value(w: Writer, *, words: bool = True, number: bool = False, beyond: bool = False) -> str:
    """The program up to its last value: the name of that value."""
    if w.level.choices_shown:
        return _write_copying(w, words=words) if w.level.number == LOOKED_UP else _write_held(w, words=words)
    for _ in range(3 if w.level.number == LOOKED_UP + 1 else w.draws.between(1, 2)):
        copying.fresh_number(w)
    x = w.draws.pick(w.others)
    w.others.remove(x)
    x = write_chain(w, x, w.draws.between(*w.level.steps))
    if beyond:
        w.may_open = slice(len(w.sites))
        x = write_chain(w, x, 1)
    return (to_number(w, x) if number else x).name


def write_counting(draws: Draws, level: Level) -> Writer:
    """A program that ends in a loop whose turns depend on the chain before it, or on sites of its own."""
    low = replace(level, start=(2, 9)) if level.choices_shown else level
    w = Writer(draws, low)
    shown = write_value(w, words=False, number=True)
    if level.number < LOOKED_UP:
        _turn(w, f"for {w.name('turn')} in range({shown}):", f"print({draws.pick(NAMES['word'])!r})")
        return w
    total = w.name("int")
    w.line(f"{total} = {draws.between(0, 9)}")
    if level.choices_shown:
        _turn(w, f"for {w.name('turn')} in range({shown}):", f"{total} += {w.small()}")
    elif draws.chance(0.5):
        step = draws.between(2, 5)
        _turn(
            w,
            f"while {shown} {w.site('off_by_one', '>', '>=')} {w.small()}:",
            f"{shown} -= {step}",
            f"{total} += {shown}",
        )
    else:
        i, j = w.name("turn"), w.name("turn")
        outer = draws.between(*level.turns)
        inner = draws.pick((("2", "3"), ("3", "4"), (i, f"{i} + 1"), (f"{i} + 1", f"{i} + 2")))
        w.may_open = slice(len(w.sites), None)
        with w.indented(f"for {i} in range({w.site('off_by_one', str(outer), str(outer + 1))}):"):
            _turn(w, f"for {j} in range({w.site('inner_range', *inner)}):", f"{total} += {j}")
    w.line(f"print({total})")
    return w


def _turn(w: Writer, head: str, *lines: str) -> None:
    with w.indented(head):
        for line in lines:
            w.line(line, watch="")


def to_number(w: Writer, x: Var) -> Var:
    """A list, text or dict is made a number in the way in which people do it; a number stays."""
    if x.type == "int":
        return x
    y = w.new("int")
    forms = {
        "ints": ("sum({0})", "{0}[0] * 2 + {0}[-1]", "sum({0}) - max({0})", "sum({0}) + len({0})"),
        "text": (
            "len({0}) * 3 + {0}.count({0}[0])",
            "ord({0}[0]) - ord('a') + len({0})",
            "len({0}) + ord({0}[-1]) % 10",
        ),
        "table": ("sum({0}.values())", "sum({0}.values()) - len({0})"),
    }[x.type]
    w.line(f"{y.name} = {w.draws.pick(forms).format(x.name)}")
    return y


def _write_held(w: Writer, *, words: bool) -> str:
    """As many values as the level lets be seen, each under a name; the members differ in which values these are."""
    type, values = _values(w, words=words)
    names = [w.name(type) for _ in range(w.level.choices_shown)]
    place = w.draws.below(len(names))
    held = w.slots("look_up", *(held_with(w.draws, each, values[:4], names, place) for each in values[:4]))
    for name, value in zip(names, held, strict=True):
        w.line(f"{name} = {value}")
    return names[place]


def held_with(draws: Draws, gold: str, four: Sequence[str], holders: Sequence[object], place: int) -> tuple[str, ...]:
    """``gold`` at a place, and others of the four beside it: as many as there are holders."""
    held = draws.some([each for each in four if each != gold], len(holders) - 1)
    held.insert(place, gold)
    return tuple(held)


def _write_copying(w: Writer, *, words: bool) -> str:
    """Four values, of which one is copied while names are given other values."""
    type, values = _values(w, words=words)
    names = [w.name(type) for _ in range(4)]
    for name in names:
        w.line(f"{name} = {values.pop()}")
    shown, changed, copy = w.site("wrong_name", *names), w.draws.some(names, 2), w.name(type)
    if w.draws.chance(0.7):
        w.line(f"{changed[0]} = {values.pop()}")
    w.line(f"{copy} = {shown}")
    w.line(f"{changed[1]} = {w.draws.pick((values.pop(), copy))}", watch=copy)
    return copy


def _values(w: Writer, *, words: bool) -> tuple[Type, list[str]]:
    """Six different values of one type, as a program writes them."""
    if words and w.draws.chance(0.3):
        return "text", list(map(repr, w.draws.some(NAMES["word"], 6)))
    low, high = w.level.start
    return "int", list(map(str, w.draws.some(range(low, high + 1), 6)))
