"""Texts: places, slices, and methods whose result must be kept."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Var, Writer


def worded(w: Writer, x: Var) -> Var:
    """A text with the number behind a word."""
    y = w.new("text")
    word = w.draws.pick(NAMES["word"])
    w.line(f"{y.name} = {w.draws.pick((f'{word[:3]!r} + str({x.name})', f'str({x.name}) + {word[:3]!r}'))}")
    return y


def joined(w: Writer, x: Var) -> Var:
    """Another part in front or behind."""
    y = w.new("text")
    part = repr(w.draws.pick(NAMES["word"])[: w.draws.between(1, 3)])
    w.line(f"{y.name} = {w.site('operand_order', f'{x.name} + {part}', f'{part} + {x.name}')}")
    return y


def sliced(w: Writer, x: Var) -> Var:
    """A part of a text."""
    y = w.new("text")
    forms = w.draws.pick((("1:", ":-1"), ("::-1", ":"), ("1:", "2:"), (":-1", ":-2")))
    misreading = "slice" if forms in (("1:", ":-1"), ("::-1", ":")) else "off_by_one"
    w.line(f"{y.name} = {x.name}[{w.site(misreading, *forms)}]")
    return y


def called(w: Writer, x: Var) -> Var:
    """A method's result is kept or dropped: texts do not change."""
    call = f"{x.name}.{w.draws.pick(('upper()', 'capitalize()', 'title()'))}"
    w.line(w.site("result_dropped", call, f"{x.name} = {call}"))
    return x


def mixed(w: Writer, x: Var) -> Var:
    """Letters from the two ends."""
    y = w.new("text")
    first, last = w.site("index", "0", "1"), w.site("index", "-1", "-2")
    w.line(f"{y.name} = {x.name}[{last}] + {x.name} + {x.name}[{first}]")
    return y


def spelled(w: Writer, x: Var) -> Var:
    """Letter by letter, each in front of the last or behind it."""
    y, each = w.new("text"), w.name("each")
    w.line(f"{y.name} = ''")
    order = w.site("operand_order", f"{y.name} + {each}", f"{each} + {y.name}")
    with w.indented(f"for {each} in {x.name}{w.site('slice', '', '[1:]')}:"):
        w.line(f"{y.name} = {order}", watch=y.name)
    return y


def measured(w: Writer, x: Var) -> Var:
    """A text's length in a sum."""
    y = w.new("int")
    part = w.site("off_by_one", "", " - 1")
    sign = w.site("wrong_operator", "+", "-")
    w.line(f"{y.name} = {w.start()} {sign} len({x.name}){part} * {w.draws.between(2, 3)}")
    return y


BLOCKS = (
    Block(worded, "int", "text", 7),
    Block(joined, "text", "text", 7),
    Block(sliced, "text", "text", 7),
    Block(called, "text", "text", 7),
    Block(mixed, "text", "text", 7),
    Block(spelled, "text", "text", 8),
    Block(measured, "text", "int", 9),
)
