"""Lists: places, slices, copies and names for the same list, methods that change and functions that do not."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.writer import Var, Writer


def listed(w: Writer, x: Var) -> Var:
    """A list with the number in it."""
    xs = w.new("ints")
    values = [str(each) for each in w.draws.some(range(1, 20), w.turns() - 1)]
    values.insert(w.draws.below(len(values) + 1), x.name)
    w.line(f"{xs.name} = [{', '.join(values)}]")
    return xs


def aliased(w: Writer, x: Var) -> Var:
    """A second name for a list, or a copy of it; then the second is changed."""
    ys = w.new("ints")
    copy = w.draws.pick((f"{x.name}[:]", f"list({x.name})", f"{x.name}.copy()"))
    w.line(f"{ys.name} = {w.site('aliasing', x.name, copy)}")
    w.line(f"{ys.name}.{w.draws.pick((f'append({w.small()})', 'pop()', f'insert(0, {w.small()})'))}", watch=ys.name)
    return x if w.draws.chance(0.7) else joined(w, x, ys)


def joined(w: Writer, x: Var, y: Var) -> Var:
    """Two lists behind each other."""
    zs = w.new("ints")
    w.line(f"{zs.name} = {w.site('operand_order', f'{x.name} + {y.name}', f'{y.name} + {x.name}')}")
    return zs


def extended_alias(w: Writer, x: Var) -> Var:
    """A list is added to in place, which its other name sees, or made anew."""
    ys = w.new("ints")
    value = w.small()
    w.line(f"{ys.name} = {x.name}")
    w.line(w.site("aliasing", f"{ys.name} += [{value}]", f"{ys.name} = {ys.name} + [{value}]"), watch=ys.name)
    return x


def sliced(w: Writer, x: Var) -> Var:
    """A part of a list."""
    ys = w.new("ints")
    forms = w.draws.pick((("1:", ":-1"), (":2", "2:"), (":2", ":3"), ("1:", "2:"), ("::-1", ":")))
    misreading = "off_by_one" if forms in ((":2", ":3"), ("1:", "2:")) else "slice"
    w.line(f"{ys.name} = {x.name}[{w.site(misreading, *forms)}]")
    return ys


def sorted_or_not(w: Writer, x: Var) -> Var:
    """A result is kept or dropped."""
    function, method = w.draws.pick((("sorted", "sort"), ("reversed", "reverse")))
    dropped = f"{function}({x.name})"
    w.line(w.site("result_dropped", dropped, f"{x.name}.{method}()"))
    return x


def put_in(w: Writer, x: Var) -> Var:
    """A value goes to one end or the other."""
    value = w.operand("")
    w.line(f"{x.name}.{w.site('list_end', f'append({value})', f'insert(0, {value})')}", watch=x.name)
    return x


def taken_out(w: Writer, x: Var) -> Var:
    """A value is taken from one end or the other, and the rest goes on."""
    y = w.new("int")
    w.line(f"{y.name} = {x.name}.{w.site('list_end', 'pop()', 'pop(0)')}", watch=x.name)
    if w.draws.chance(0.5):
        w.line(f"{x.name}.append({y.name} + {w.small()})", watch=x.name)
        return x
    z = w.new("int")
    w.line(f"{z.name} = {y.name} * {w.draws.between(2, 3)} - sum({x.name})")
    return z


def filtered(w: Writer, x: Var) -> Var:
    """Values that pass a test, changed on the way."""
    ys, each = w.new("ints"), w.name("each")
    change = w.draws.pick((each, f"{each} + {w.small()}", f"{each} * 2"))
    before, *site, after = w.draws.pick(
        (
            ("% 2 == ", "parity", "0", "1", ""),
            ("", "comparison", ">", "<", f" {w.draws.between(5, 12)}"),
            ("", "boundary", ">", ">=", f" {x.name}[-1]"),
            (f"!= {x.name}[", "index", "0", "-1", "]"),
        )
    )
    w.line(f"{ys.name} = [{change} for {each} in {x.name} if {each} {before}{w.site(*site)}{after}]")
    return ys


def mapped(w: Writer, x: Var) -> Var:
    """Every value changed."""
    ys, each = w.new("ints"), w.name("each")
    step, factor = w.small(), w.draws.between(2, 3)
    term = w.site("precedence", f"{each} * {factor} + {step}", f"{each} * ({factor} + {step})")
    w.line(f"{ys.name} = [{term} for {each} in {x.name}]")
    return ys


def replaced(w: Writer, x: Var) -> Var:
    """One place gets another value, counted from the front or the back."""
    w.line(f"{x.name}[{w.site('index', '0', '-1')}] {w.site('accumulation', '+=', '=')} {w.small()}", watch=x.name)
    return x


def appended(w: Writer, x: Var) -> Var:
    """A list is added as its values or by its sum."""
    value, step = w.small(), w.small()
    w.line(f"{x.name}.extend([{w.site('operand_order', f'{value}, {step}', f'{step}, {value}')}])", watch=x.name)
    return x


def picked(w: Writer, x: Var) -> Var:
    """Two places together."""
    y = w.new("int")
    left, right = w.site("index", "0", "1"), w.site("index", "-1", "-2")
    w.line(f"{y.name} = {x.name}[{left}] {w.draws.pick('+-')} {x.name}[{right}] * {w.draws.between(2, 3)}")
    return y


def summed(w: Writer, x: Var) -> Var:
    """All values added, each with a change."""
    y, each = w.new("int"), w.name("each")
    w.line(f"{y.name} = {w.start()}")
    with w.indented(f"for {each} in {x.name}[{w.site('slice', '1:', ':-1')}]:"):
        w.line(f"{y.name} {w.site('wrong_operator', '+=', '-=')} {each}", watch=y.name)
    return y


def measured(w: Writer, x: Var) -> Var:
    """Sum and length, or sum and largest."""
    y = w.new("int")
    function = w.site("min_max", "min", "max")
    w.line(f"{y.name} = sum({x.name}) {w.draws.pick('+-')} {function}({x.name}) * {w.draws.pick((2, 3))}")
    return y


def shared_rows(w: Writer, x: Var) -> Var:
    """A grid whose rows are one list, or lists of their own."""
    grid, i = w.name("ints"), w.name("turn")
    rows = w.draws.between(2, 3)
    made = w.site("aliasing", f"[[0]] * {rows}", f"[[0] for {i} in range({rows})]")
    w.line(f"{grid} = {made}")
    value = w.small()
    w.line(f"{grid}[0].append({value})")
    w.line(f"{grid}[-1].append({w.small()})")
    w.line(f"{x.name} += {grid}[{w.draws.pick((0, 1))}]", watch=x.name)
    return x


BLOCKS = (
    Block(listed, "int", "ints", 7),
    Block(sliced, "ints", "ints", 7),
    Block(put_in, "ints", "ints", 7),
    Block(picked, "ints", "int", 7),
    Block(replaced, "ints", "ints", 7),
    Block(taken_out, "ints", "ints", 8),
    Block(summed, "ints", "int", 8),
    Block(measured, "ints", "int", 8),
    Block(sorted_or_not, "ints", "ints", 8),
    Block(appended, "ints", "ints", 8),
    Block(mapped, "ints", "ints", 8),
    Block(filtered, "ints", "ints", 9),
    Block(aliased, "ints", "ints", 9),
    Block(extended_alias, "ints", "ints", 9),
    Block(shared_rows, "ints", "ints", 10),
)
