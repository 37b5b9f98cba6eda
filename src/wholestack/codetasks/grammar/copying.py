"""Copies and reassignments: which name has which value when."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.writer import Var, Writer


def copied_before(w: Writer, x: Var) -> Var:
    """A copy is taken before or after the original changes."""
    y = w.new(x.type)
    value = w.start()
    w.either(
        "assignment_order",
        (f"{y.name} = {x.name}", f"{x.name} = {value}"),
        (f"{x.name} = {value}", f"{y.name} = {x.name}"),
    )
    w.others.append(x)
    return y


def copied_late(w: Writer, x: Var) -> Var:
    """A number is added before or after a copy is taken."""
    y = w.new(x.type)
    step = w.small()
    copy, change = f"{y.name} = {x.name}", f"{x.name} = {x.name} + {step}"
    w.either("assignment_order", (copy, change), (change, copy))
    w.others.append(x)
    return y


def swapped(w: Writer, x: Var) -> Var:
    """Two names change at once, or one after the other."""
    y = fresh_number(w)
    w.others.remove(y)
    step = w.small()
    w.either(
        "simultaneous_assignment",
        (f"{x.name}, {y.name} = {y.name}, {x.name} + {step}",),
        (f"{x.name} = {y.name}", f"{y.name} = {x.name} + {step}"),
    )
    w.line(f"{y.name} = {y.name} - {x.name}" if w.draws.chance(0.5) else f"{y.name} += {x.name}", watch=y.name)
    return y


def fresh_number(w: Writer) -> Var:
    """A variable that a line gives a number."""
    y = w.new("int")
    w.line(f"{y.name} = {w.start()}")
    w.others.append(y)
    return y


BLOCKS = (
    Block(copied_before, "int", "int", 6),
    Block(copied_late, "int", "int", 6),
    Block(swapped, "int", "int", 7),
)
