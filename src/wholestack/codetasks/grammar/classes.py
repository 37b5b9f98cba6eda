"""Classes: whose attribute it is, whose method is called, what an object keeps between calls."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.numbers import other_number
from wholestack.codetasks.grammar.writer import Var, Writer


def kept(w: Writer, x: Var) -> Var:
    """An object keeps a number between calls."""
    kind, method, field = w.name("class"), w.name("method"), w.name("int")
    thing, y = w.name("object"), w.new("int")
    change = w.name("int")
    with w.hoisted(), w.indented(f"class {kind}:"):
        with w.indented(f"def __init__(self, {field}):"):
            w.line(f"self.{field} = {field}")
        w.line("")
        with w.indented(f"def {method}(self, {change}):"):
            w.line(f"self.{field} {w.site('accumulation', '+=', '=')} {change}")
            w.line(f"return self.{field} {w.site('wrong_operator', '+', '-')} {change}")
    w.line(f"{thing} = {kind}({x.name})")
    w.line(f"{thing}.{method}({w.small()})")
    w.line(f"{y.name} = {thing}.{method}({other_number(w, x).name}) + {x.name}")
    return y


def class_or_object(w: Writer, x: Var) -> Var:
    """A number that all objects share, or each has its own."""
    kind, method, field = w.name("class"), w.name("method"), w.name("int")
    first, second, y = w.name("object"), w.name("object"), w.new("int")
    change = w.name("int")
    owner = w.site("class_attribute", kind, "self")
    with w.hoisted(), w.indented(f"class {kind}:"):
        w.line(f"{field} = {w.small()}")
        w.line("")
        with w.indented(f"def {method}(self, {change}):"):
            w.line(f"{owner}.{field} {w.site('wrong_operator', '+=', '-=')} {change}")
    w.line(f"{first} = {kind}()")
    w.line(f"{second} = {kind}()")
    w.line(f"{first}.{method}({x.name})")
    w.line(f"{second}.{method}({w.small()})")
    w.line(f"{y.name} = {w.draws.pick((first, second))}.{field} + {w.small()}")
    return y


def overridden(w: Writer, x: Var) -> Var:
    """Which class's method is called."""
    base, child, method = w.name("class"), w.name("class"), w.name("method")
    thing, y, value = w.name("object"), w.new("int"), w.name("int")
    with w.hoisted():
        with w.indented(f"class {base}:"), w.indented(f"def {method}(self, {value}):"):
            w.line(f"return {value} {w.site('wrong_operator', '+', '-')} {w.small()}")
        w.line("")
        w.line("")
        with w.indented(f"class {child}({base}):"), w.indented(f"def {method}(self, {value}):"):
            inner = w.draws.pick((f"super().{method}({value}) * 2", f"super().{method}({value}) - {w.small()}"))
            w.line(f"return {inner}")
    w.line(f"{thing} = {w.site('override', base, child)}()")
    w.line(f"{y.name} = {thing}.{method}({x.name})")
    return y


def hook(w: Writer, x: Var) -> Var:
    """A method of the base calls one that the child has too."""
    base, child = w.name("class"), w.name("class")
    method, inner = w.name("method"), w.name("method")
    thing, y, value = w.name("object"), w.new("int"), w.name("int")
    low, high = w.draws.some(range(1, 10), 2)
    named = w.site("override", inner, f"{inner}_all")
    with w.hoisted():
        with w.indented(f"class {base}:"):
            with w.indented(f"def {inner}(self):"):
                w.line(f"return {low}")
            w.line("")
            with w.indented(f"def {method}(self, {value}):"):
                w.line(f"return {value} {w.site('wrong_operator', '+', '-')} self.{inner}()")
        w.line("")
        w.line("")
        with w.indented(f"class {child}({base}):"), w.indented(f"def {named}(self):"):
            w.line(f"return {high}")
    w.line(f"{thing} = {child}()")
    w.line(f"{y.name} = {thing}.{method}({x.name})")
    return y


def shared_list(w: Writer, x: Var) -> Var:
    """A list of the class, or one of each object."""
    kind, method, field = w.name("class"), w.name("method"), w.name("ints")
    first, second, ys, value = w.name("object"), w.name("object"), w.new("ints"), w.name("int")
    with w.hoisted(), w.indented(f"class {kind}:"):
        w.line(f"{field} = []")
        w.line("")
        with w.indented(f"def {method}(self, {value}):"):
            changed = (f"self.{field}.append({value})", f"self.{field} = self.{field} + [{value}]")
            w.line(w.site("class_attribute", *changed))
    w.line(f"{first} = {kind}()")
    w.line(f"{second} = {kind}()")
    w.line(f"{first}.{method}({w.small()})")
    w.line(f"{second}.{method}({x.name})")
    w.line(f"{ys.name} = {second}.{field} + [{w.small()}]")
    return ys


BLOCKS = (
    Block(kept, "int", "int", 9),
    Block(class_or_object, "int", "int", 9),
    Block(overridden, "int", "int", 9),
    Block(hook, "int", "int", 10),
    Block(shared_list, "int", "ints", 10),
)
