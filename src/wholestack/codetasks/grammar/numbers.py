"""Whole numbers: operators, their order, conditions."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.copying import fresh_number
from wholestack.codetasks.grammar.writer import Var, Writer


def added(w: Writer, x: Var) -> Var:
    """A sum or a difference."""
    y = w.new("int")
    w.line(f"{y.name} = {x.name} {w.site('wrong_operator', '+', '-')} {w.operand(x.name)}", watch=x.name)
    return y


def precedence(w: Writer, x: Var) -> Var:
    """A product within a sum, with brackets or without."""
    y = w.new("int")
    other, factor = w.operand(x.name), w.draws.between(2, 4)
    forms = (
        (f"{x.name} + {other} * {factor}", f"({x.name} + {other}) * {factor}")
        if w.draws.chance(0.5)
        else (f"{factor} * {x.name} + {other}", f"{factor} * ({x.name} + {other})")
    )
    w.line(f"{y.name} = {w.site('precedence', *forms)}")
    return y


def subtracted_twice(w: Writer, x: Var) -> Var:
    """A chain of minus signs, with brackets or without."""
    y = w.new("int")
    other, step = other_number(w, x).name, w.small()
    w.line(f"{y.name} = {w.site('precedence', f'{x.name} - {other} - {step}', f'{x.name} - ({other} - {step})')}")
    return y


def accumulated(w: Writer, x: Var) -> Var:
    """A variable that is added to, or replaced."""
    y = fresh_number(w)
    w.others.remove(y)
    w.line(f"{y.name} {w.site('accumulation', '+=', '=')} {x.name}")
    return y


def divided(w: Writer, x: Var) -> Var:
    """The quotient or the remainder."""
    other = other_number(w, x)
    y = w.new("int")
    w.line(f"{y.name} = {x.name} + {other.name} {w.site('division', '//', '%')} {w.draws.between(2, 5)}")
    return y


def extreme(w: Writer, x: Var) -> Var:
    """The smaller or the larger of two."""
    other = other_number(w, x)
    y = w.new("int")
    w.line(f"{y.name} = {x.name} + {w.site('min_max', 'min', 'max')}({other.name}, {w.start()})")
    return y


def compared(w: Writer, x: Var) -> Var:
    """One branch or the other."""
    y = w.new("int")
    sign = w.site("comparison", *w.draws.pick(((">", "<"), ("<", ">"))))
    with w.indented(f"if {x.name} {sign} {w.start()}:"):
        w.line(f"{y.name} = {x.name} + {w.small()}")
    with w.indented("else:"):
        w.line(f"{y.name} = {x.name} - {w.small()}")
    return y


def raised(w: Writer, x: Var) -> Var:
    """A variable changes within the branch or after it."""
    bound, step = w.start() + w.level.start[1] // 2, w.small()
    head = f"if {x.name} > {bound}:"
    w.either(
        "indentation",
        (head, f"    {x.name} -= {step}", f"{x.name} += {step + 2}"),
        (head, f"    {x.name} -= {step}", f"    {x.name} += {step + 2}"),
    )
    return x


def connected(w: Writer, x: Var) -> Var:
    """Both conditions or one of them."""
    other = other_number(w, x)
    word = w.site("and_or", "and", "or")
    with w.indented(f"if {x.name} > {w.start()} {word} {other.name} > {w.start()}:"):
        w.line(f"{x.name} += {w.small()}", watch=x.name)
    return x


def negated(w: Writer, x: Var) -> Var:
    """A flag that is set, and what it decides."""
    y = w.new("int")
    other = other_number(w, x)
    flag = w.draws.pick(("ready", "open", "full", "high"))
    w.line(f"is_{flag} = {x.name} > {other.name}")
    with w.indented(f"if {w.site('negation', '', 'not ')}is_{flag}:"):
        w.line(f"{x.name} += {w.small()}")
    w.line(f"{y.name} = {x.name} {w.draws.pick('+-')} {other.name}", watch=x.name)
    return y


def other_number(w: Writer, x: Var) -> Var:
    """A number beside the one of the chain, made if there is none."""
    at_hand = [each for each in w.others if each.type == "int" and each.name != x.name]
    return w.draws.pick(at_hand) if at_hand and w.draws.chance(0.7) else fresh_number(w)


BLOCKS = (
    Block(added, "int", "int", 5),
    Block(precedence, "int", "int", 5),
    Block(subtracted_twice, "int", "int", 5),
    Block(accumulated, "int", "int", 6),
    Block(extreme, "int", "int", 6),
    Block(compared, "int", "int", 6),
    Block(divided, "int", "int", 7),
    Block(raised, "int", "int", 7),
    Block(connected, "int", "int", 7),
    Block(negated, "int", "int", 7),
)
