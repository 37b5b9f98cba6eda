"""Exceptions: what is skipped, what is handled where, what runs in any case."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Var, Writer


def handled(w: Writer, x: Var) -> Var:
    """A key that is there, or the handler."""
    table = w.name("table")
    keys = w.draws.some(NAMES["letters"], 3)
    w.line(f"{table} = {{{keys[0]!r}: {w.start()}, {keys[1]!r}: {w.start()}}}")
    asked = w.site("exception_path", repr(keys[0]), repr(keys[2]))
    with w.indented("try:"):
        w.line(f"{x.name} += {table}[{asked}]")
        if w.draws.chance(0.5):
            w.line(f"{x.name} += {w.small()}", watch=x.name)
    with w.indented("except KeyError:"):
        w.line(f"{x.name} -= {w.small()}", watch=x.name)
    return x


def ended(w: Writer, x: Var) -> Var:
    """What runs where nothing was raised, and what runs always."""
    text, y = w.new("text"), w.new("int")
    good = str(w.start())
    bad = repr("x" + good[1:])
    always = w.draws.chance(0.5)
    w.line(f"{text.name} = {w.site('exception_path', repr(good), bad) if always else bad}")
    w.line(f"{y.name} = {x.name}")
    with w.indented("try:"):
        w.line(f"{y.name} += int({text.name})")
    with w.indented("except ValueError:"):
        w.line(f"{y.name} -= {w.small()}")
    with w.indented("finally:" if always else w.site("else_finally", "else:", "finally:")):
        w.line(f"{y.name} += {w.small()}", watch=y.name)
    return y


def last_word(w: Writer, x: Var) -> Var:
    """A change before the line that raises, or behind it."""
    values, y = w.new("ints"), w.new("int")
    numbers = w.draws.some(range(1, 20), w.level.turns[0])
    w.line(f"{values.name} = {numbers}")
    place = len(numbers)
    risky, safe = f"    {x.name} += {values.name}[{place}]", f"    {x.name} += {w.small()}"
    w.either("exception_order", ("try:", safe, risky), ("try:", risky, safe))
    with w.indented("except IndexError:"):
        w.line(f"{x.name} {w.site('wrong_operator', '+=', '-=')} {w.start()}", watch=x.name)
    w.line(f"{y.name} = {x.name} - {values.name}[{w.site('index', '0', '-1')}]")
    return y


def which_handler(w: Writer, x: Var) -> Var:
    """The first handler that fits is taken; a base class fits all below it."""
    text = w.new("text")
    letters = w.draws.pick(NAMES["word"])[:3]
    w.line(f"{text.name} = {letters!r}")
    first = w.site("handler_order", "ValueError", "KeyError")
    with w.indented("try:"):
        w.line(f"{x.name} += int({text.name})")
    with w.indented(f"except {first}:"):
        w.line(f"{x.name} += {w.small()}", watch="")
    with w.indented("except Exception:"):
        w.line(f"{x.name} -= {w.small()}", watch="")
    return x


def raised_within(w: Writer, x: Var) -> Var:
    """A function raises for some values; the caller handles it."""
    function, value, y = w.name("function"), w.new("int"), w.new("int")
    with w.hoisted(), w.indented(f"def {function}({value.name}):"):
        with w.indented(f"if {value.name} {w.site('comparison', '>', '<')} {w.start()}:"):
            w.line(f"raise ValueError({value.name})", watch="")
        w.line(f"return {value.name} {w.draws.pick('+-')} {w.small()}")
    with w.indented("try:"):
        w.line(f"{y.name} = {function}({x.name})")
    with w.indented("except ValueError:"):
        w.line(f"{y.name} = {x.name} * 2 - {w.small()}")
    return y


def in_loop(w: Writer, x: Var) -> Var:
    """An exception ends one turn, or the whole loop."""
    each = w.name("each")
    numbers = w.draws.some(range(1, 10), w.turns())
    numbers[w.draws.below(len(numbers) - 1)] = 0
    total = w.draws.pick((12, 24, 36, 60))
    turn, change, remedy = (
        f"for {each} in {numbers}:",
        f"{x.name} += {total} // {each}",
        f"{x.name} -= {w.small()}",
    )
    error = "except ZeroDivisionError:"
    w.either(
        "exception_scope",
        ("try:", f"    {turn}", f"        {change}", error, f"    {remedy}"),
        (turn, "    try:", f"        {change}", f"    {error}", f"        {remedy}"),
    )
    return x


BLOCKS = (
    Block(handled, "int", "int", 9),
    Block(ended, "int", "int", 9),
    Block(last_word, "int", "int", 9),
    Block(which_handler, "int", "int", 9),
    Block(raised_within, "int", "int", 9),
    Block(in_loop, "int", "int", 10),
)
