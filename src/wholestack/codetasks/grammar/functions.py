"""Functions: arguments, returns, names within and without, defaults, recursion."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.copying import fresh_number
from wholestack.codetasks.grammar.numbers import other_number
from wholestack.codetasks.grammar.writer import Var, Writer


def two_arguments(w: Writer, x: Var) -> Var:
    """Which argument is which parameter."""
    function, y = w.name("function"), w.new("int")
    left, right = w.new("int"), w.new("int")
    with w.hoisted(), w.indented(f"def {function}({left.name}, {right.name}):"):
        forms = (
            f"{left.name} - {right.name} * 2",
            f"({left.name} - {right.name}) * 2",
            f"{left.name} * 2 - {right.name}",
        )
        w.line(f"return {w.site('precedence', *w.draws.pick((forms[:2], forms[1:])))}")
    other = other_number(w, x).name
    given = w.site("argument_order", f"{x.name}, {other}", f"{other}, {x.name}")
    w.line(f"{y.name} = {function}({given})")
    return y


def defaulted(w: Writer, x: Var) -> Var:
    """A parameter is given, or has its default."""
    function, y = w.name("function"), w.new("int")
    value, step = w.new("int"), w.new("int")
    usual, given = w.draws.some(range(1, 10), 2)
    with w.hoisted(), w.indented(f"def {function}({value.name}, {step.name}={usual}):"):
        w.line(f"return {value.name} {w.site('wrong_operator', '+', '-')} {step.name}")
    w.line(f"{y.name} = {function}({x.name}{w.site('default', '', f', {given}')})")
    return y


def early_return(w: Writer, x: Var) -> Var:
    """The return stands in the loop or after it."""
    function, y = w.name("function"), w.new("int")
    value, each = w.new("int"), w.name("each")
    numbers = w.draws.some(range(1, 10), w.turns())
    with w.hoisted(), w.indented(f"def {function}({value.name}):"):
        head = f"for {each} in {numbers}:"
        change = f"    {value.name} {w.draws.pick(('+=', '-='))} {each}"
        last = f"return {value.name}"
        w.either("early_return", (head, change, f"    {last}"), (head, change, last))
    w.line(f"{y.name} = {function}({x.name}) {w.site('wrong_operator', '+', '-')} {w.small()}")
    return y


def first_found(w: Writer, x: Var) -> Var:
    """The first value that passes a test is returned."""
    function, y = w.name("function"), w.new("int")
    bound, each = w.new("int"), w.name("each")
    numbers = w.draws.some(range(1, 30), w.turns() + 1)
    limit = w.draws.pick(
        [each for at, each in enumerate(numbers) if max(numbers[: at + 1]) == each < max(numbers)] or numbers
    )
    with w.hoisted(), w.indented(f"def {function}({bound.name}):"):
        with (
            w.indented(f"for {each} in {numbers}:"),
            w.indented(f"if {each} {w.site('boundary', '>', '>=')} {bound.name}:"),
        ):
            w.line(f"return {each}", watch="")
        w.line("return 0")
    w.line(f"{y.name} = {x.name} {w.site('wrong_operator', '+', '-')} {function}({limit})")
    return y


def shadowed(w: Writer, x: Var) -> Var:
    """A function sets a name of the module, or one of its own."""
    function, y = w.name("function"), w.new("int")
    shared = fresh_number(w)
    w.others.remove(shared)
    step = w.small()
    with w.hoisted(), w.indented(f"def {function}({y.name}):"):
        own = w.draws.pick(("change", "local", "inner"))
        target, said = w.slots("shadowing", (shared.name, "global " + shared.name), (own, f"{own} = 0"))
        w.line(said)
        w.line(f"{target} = {y.name} + {step}")
        w.line(f"return {target} * 2" if w.draws.chance(0.5) else f"return {target}")
    z = w.new("int")
    w.line(f"{z.name} = {function}({x.name}) {w.draws.pick('+-')} {w.small()}")
    w.line(f"{z.name} += {shared.name}", watch=z.name)
    return z


def unchanged(w: Writer, x: Var) -> Var:
    """A function that changes its own number changes nothing outside, unless its result is kept."""
    function, value = w.name("function"), w.new("int")
    with w.hoisted(), w.indented(f"def {function}({value.name}):"):
        w.line(f"{value.name} {w.site('wrong_operator', '+=', '-=')} {w.small()}")
        w.line(f"return {value.name}")
    call = f"{function}({x.name})"
    w.line(w.site("result_dropped", call, f"{x.name} = {call}"))
    y = w.new("int")
    w.line(f"{y.name} = {function}({x.name}) + {x.name}")
    return y


def mutable_default(w: Writer, x: Var) -> Var:
    """A default list is one list for all calls, if it is changed in place."""
    function, y = w.name("function"), w.new("ints")
    value, kept = w.new("int"), w.new("ints")
    with w.hoisted(), w.indented(f"def {function}({value.name}, {kept.name}=[]):"):
        w.line(
            w.site(
                "mutable_default", f"{kept.name}.append({value.name})", f"{kept.name} = {kept.name} + [{value.name}]"
            )
        )
        w.line(f"return {kept.name}")
    w.line(f"{function}({w.small()})")
    w.line(f"{y.name} = {function}({x.name}) + [{w.small()}]")
    return y


def recursive(w: Writer, x: Var) -> Var:
    """A function that calls itself."""
    function, y = w.name("function"), w.new("int")
    value = w.new("int")
    with w.hoisted(), w.indented(f"def {function}({value.name}):"):
        with w.indented(f"if {value.name} {w.site('off_by_one', '<=', '<')} 1:"):
            w.line(f"return {w.small()}", watch="")
        step = w.draws.pick((value.name, f"{value.name} * 2", "3"))
        w.line(f"return {step} {w.site('wrong_operator', '+', '-')} {function}({value.name} - 1)", watch=value.name)
    w.line(f"{y.name} = {x.name} + {function}({w.turns()})")
    return y


def closed_over(w: Writer, x: Var) -> Var:
    """Functions made in a loop see its last value, or each its own."""
    functions, i, y = w.name("ints"), w.name("turn"), w.new("int")
    turns = w.turns()
    late = w.site("late_binding", "lambda:", f"lambda {i}={i}:")
    w.line(f"{functions} = []")
    with w.indented(f"for {i} in range({turns}):"):
        w.line(f"{functions}.append({late} {i} * {w.draws.between(2, 9)})")
    w.line(
        f"{y.name} = {x.name} + {functions}[{w.draws.pick((0, 1))}]() {w.site('wrong_operator', '+', '-')} {w.small()}"
    )
    return y


def changed_list(w: Writer, x: Var) -> Var:
    """A function changes the list that it is given, or one of its own."""
    function, ys = w.name("function"), w.new("ints")
    values = w.new("ints")
    with w.hoisted(), w.indented(f"def {function}({values.name}):"):
        w.line(
            w.site("aliasing", f"{values.name}.append({w.small()})", f"{values.name} = {values.name} + [{w.small()}]")
        )
        w.line(f"return {values.name}[{w.site('slice', '1:', ':-1')}]")
    w.line(f"{ys.name} = {function}({x.name})")
    w.line(f"{x.name} += {ys.name}", watch=x.name)
    return x


BLOCKS = (
    Block(two_arguments, "int", "int", 7),
    Block(defaulted, "int", "int", 7),
    Block(early_return, "int", "int", 7),
    Block(unchanged, "int", "int", 8),
    Block(first_found, "int", "int", 8),
    Block(shadowed, "int", "int", 8, inside=False),
    Block(recursive, "int", "int", 9),
    Block(changed_list, "ints", "ints", 9),
    Block(mutable_default, "int", "ints", 9),
    Block(closed_over, "int", "int", 10),
)
