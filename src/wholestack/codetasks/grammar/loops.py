"""Loops: how often, over what, and what stands within them."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.copying import fresh_number
from wholestack.codetasks.grammar.numbers import other_number
from wholestack.codetasks.grammar.writer import Var, Writer


def ranged(w: Writer, x: Var) -> Var:
    """The turns of a range are added up."""
    i, turns = w.name("turn"), w.turns() + 1
    stop = w.site(
        *w.draws.pick(
            (
                ("off_by_one", f"{turns}", f"{turns + 1}"),
                ("range_start", f"{turns}", f"1, {turns}"),
                ("off_by_one", f"1, {turns}", f"1, {turns + 1}"),
            )
        )
    )
    added = w.draws.pick((f"{i} + 1", str(w.small()), f"{i} * {w.draws.between(2, 3)} + 1"))
    with w.indented(f"for {i} in range({stop}):"):
        w.line(f"{x.name} {w.draws.pick(('+=', '-='))} {added}", watch=x.name)
    return x


def counted_down(w: Writer, x: Var) -> Var:
    """A loop with a condition, whose last turn may count."""
    left = w.new("int")
    step = w.draws.between(2, 4)
    w.line(f"{left.name} = {step * w.turns()}")
    with w.indented(f"while {left.name} {w.site('off_by_one', '>', '>=')} {w.draws.pick((0, step))}:"):
        w.line(f"{x.name} += {w.draws.pick((left.name, str(w.small())))}", watch=x.name)
        w.line(f"{left.name} -= {step}", watch=left.name)
    return x


def after_loop(w: Writer, x: Var) -> Var:
    """The last statement stands within the loop or after it."""
    i, step, late = w.name("turn"), w.operand(x.name), w.small()
    head = f"for {i} in range({w.turns()}):"
    first = f"    {x.name} += {w.draws.pick((step, i))}"
    last = f"{x.name} = {x.name} * 2" if w.draws.chance(0.2) else f"{x.name} -= {late}"
    w.either("indentation", (head, first, f"    {last}"), (head, first, last))
    return x


def left_early(w: Writer, x: Var) -> Var:
    """One turn is skipped, or the loop ends there."""
    each, values = w.name("each"), _numbers(w)
    stop = values[w.draws.below(len(values) - 1)]
    with w.indented(f"for {each} in {values}:"):
        with w.indented(f"if {each} == {stop}:"):
            w.line(w.site("break_continue", "break", "continue"))
        w.line(f"{x.name} {w.draws.pick(('+=', '-='))} {each}", watch=x.name)
    return x


def bounded(w: Writer, x: Var) -> Var:
    """Numbers up to a bound are added, with or without the bound itself."""
    each, values = w.name("each"), _numbers(w)
    sign = w.site("boundary", *w.draws.pick((("<", "<="), (">", ">="))))
    with w.indented(f"for {each} in {values}:"), w.indented(f"if {each} {sign} {w.draws.pick(values)}:"):
        w.line(f"{x.name} += {w.draws.pick((each, str(w.small())))}", watch=x.name)
    return x


def nested(w: Writer, x: Var) -> Var:
    """A loop whose length depends on the outer one."""
    i, j = w.name("turn"), w.name("turn")
    inner = w.site(*w.draws.pick((("off_by_one", i, f"{i} + 1"), ("inner_range", i, f"{i}, {w.draws.between(3, 4)}"))))
    with w.indented(f"for {i} in range({w.turns()}):"):
        with w.indented(f"for {j} in range({inner}):"):
            w.line(f"{x.name} += {w.draws.pick((i, j, f'{i} + {j}', str(w.small())))}", watch=x.name)
        if w.draws.chance(0.4):
            w.line(f"{x.name} -= {w.draws.pick((i, '1'))}", watch=x.name)
    return x


def nested_after(w: Writer, x: Var) -> Var:
    """A statement stands in the inner loop or in the outer one."""
    i, j = w.name("turn"), w.name("turn")
    step = w.small()
    heads = (f"for {i} in range({w.turns()}):", f"    for {j} in range({w.draws.between(2, 3)}):")
    added = f"        {x.name} += {w.draws.pick((i, j))}"
    last = f"{x.name} += {step}"
    w.either("indentation", (*heads, added, f"        {last}"), (*heads, added, f"    {last}"))
    return x


def carried(w: Writer, x: Var) -> Var:
    """The sum starts anew in each turn, or goes on."""
    total = fresh_number(w)
    w.others.remove(total)
    each, values = w.name("each"), _numbers(w)
    with w.indented(f"for {each} in {values}:"):
        w.line(f"{total.name} {w.site('accumulation', '=', '+=')} {x.name} + {each}", watch=total.name)
    return total


def counted_turns(w: Writer, x: Var) -> Var:
    """Places are counted from 0 or from 1."""
    i, each, values = w.name("turn"), w.name("each"), _numbers(w)
    start = w.site("off_by_one", "", ", 1")
    with w.indented(f"for {i}, {each} in enumerate({values}{start}):"):
        w.line(f"{x.name} += {i} * {each}", watch=x.name)
    return x


def alternating(w: Writer, x: Var) -> Var:
    """Even turns do one thing, odd turns another."""
    i, turns = w.name("turn"), w.turns() + 2
    even = w.site("parity", "0", "1")
    with w.indented(f"for {i} in range({turns}):"):
        with w.indented(f"if {i} % 2 == {even}:"):
            w.line(f"{x.name} += {w.operand(x.name)}", watch=x.name)
        with w.indented("else:"):
            w.line(f"{x.name} -= {i}", watch=x.name)
    return x


def collected(w: Writer, x: Var) -> Var:
    """A loop that makes a list."""
    found, i = w.new("ints"), w.name("turn")
    other = other_number(w, x).name
    turns = w.turns()
    stop = w.site("off_by_one", str(turns), str(turns - 1))
    w.line(f"{found.name} = []")
    with w.indented(f"for {i} in range({stop}):"):
        w.line(f"{found.name}.append({x.name} + {i} * {w.draws.pick((other, str(w.small())))})", watch=found.name)
    return found


def _numbers(w: Writer) -> list[int]:
    return w.draws.some(range(1, 10), w.turns() + 1)


BLOCKS = (
    Block(ranged, "int", "int", 7),
    Block(after_loop, "int", "int", 7),
    Block(left_early, "int", "int", 7),
    Block(bounded, "int", "int", 7),
    Block(counted_down, "int", "int", 7),
    Block(carried, "int", "int", 7),
    Block(counted_turns, "int", "int", 8),
    Block(alternating, "int", "int", 8),
    Block(collected, "int", "ints", 8),
    Block(nested, "int", "int", 9),
    Block(nested_after, "int", "int", 9),
)
