"""A program is a chain of blocks, from first values to the one that is asked about."""

from dataclasses import replace

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.grammar import classes, copying, exceptions, functions, lists, loops, numbers, tables, texts
from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Type, Var, Writer
from wholestack.codetasks.levels import LEVELS, Level

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
    named: bool = False,
    beyond: bool = False,
) -> Writer:
    """A program that prints one value: first values, a chain of blocks, and the print.

    Args:
        draws: Where every choice comes from.
        level: Its difficulty.
        words: Whether programs that copy may copy words.
        number: Whether the value must be a whole number.
        named: Whether the value must have one name in all members.
        beyond: Whether one more block follows on the chain, in which no site may stay open.
    """
    w = Writer(draws, level)
    shown = write_value(w, words=words, number=number, named=named, beyond=beyond)
    w.line(f"print({shown})", watch=shown if shown.isidentifier() else "")
    return w


def write_value(
    w: Writer, *, words: bool = True, number: bool = False, named: bool = False, beyond: bool = False
) -> str:
    """The program up to its last value: the name of that value, or the open site of four names."""
    if w.level.number <= 2:
        return _write_copying(w, words=words, copied=named or w.level.number == 2)
    for _ in range(3 if w.level.number == 3 else w.draws.between(1, 2)):
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
    low = replace(level, start=(2, 9)) if level.number <= 2 else level
    w = Writer(draws, low)
    shown = write_value(w, words=False, number=True)
    total = w.name("int")
    w.line(f"{total} = {draws.between(0, 9)}")
    if level.number <= 2:
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


def _write_copying(w: Writer, *, words: bool, copied: bool) -> str:
    """Four values, of which one is used; at level 2 it is copied while names are given other values."""
    texts = words and w.draws.chance(0.3)
    type: Type = "text" if texts else "int"
    low, high = w.level.start
    values = w.draws.some(NAMES["word"], 6) if texts else w.draws.some(range(low, high + 1), 6)
    names = [w.name(type) for _ in range(4)]
    for name in names:
        w.line(f"{name} = {values.pop()!r}")
    shown = w.site("wrong_name", *names)
    if not copied:
        return shown
    changed, copy = w.draws.some(names, 2), w.name(type)
    if w.level.number > 1 and w.draws.chance(0.7):
        w.line(f"{changed[0]} = {values.pop()!r}")
    w.line(f"{copy} = {shown}")
    if w.level.number > 1:
        w.line(f"{changed[1]} = {w.draws.pick((repr(values.pop()), copy))}", watch=copy)
    return copy
