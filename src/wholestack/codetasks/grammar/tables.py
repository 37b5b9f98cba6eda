"""Dicts: what a key has, which value wins, in which order keys come."""

from wholestack.codetasks.grammar.block import Block
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.grammar.writer import Var, Writer


def looked_up(w: Writer, x: Var) -> Var:
    """A value is found by key and added."""
    table, y = w.name("table"), w.new("int")
    keys = w.draws.some(NAMES["letters"], w.level.turns[0])
    pairs = ", ".join(f"{key!r}: {w.start()}" for key in keys)
    w.line(f"{table} = {{{pairs}}}")
    shown = w.site("wrong_key", *(repr(key) for key in w.draws.some(keys, 2)))
    w.line(f"{y.name} = {x.name} {w.draws.pick('+-')} {table}[{shown}]", watch=x.name)
    return y


def defaulted(w: Writer, x: Var) -> Var:
    """A key that is there, or the default."""
    table, y = w.name("table"), w.new("int")
    keys = w.draws.some(NAMES["letters"], 3)
    w.line(f"{table} = {{{keys[0]!r}: {w.start()}, {keys[1]!r}: {x.name}}}")
    asked = w.site("default", repr(keys[0]), repr(keys[2]))
    w.line(f"{y.name} = {table}[{keys[1]!r}] + {table}.get({asked}, {w.small()})")
    return y


def tabled(w: Writer, x: Var) -> Var:
    """A dict with the number in it."""
    table = w.new("table")
    keys = w.draws.some(NAMES["letters"], 2)
    values = w.draws.shuffled((x.name, str(w.start())))
    w.line(f"{table.name} = {{{', '.join(f'{key!r}: {value}' for key, value in zip(keys, values, strict=True))}}}")
    return table


def counted(w: Writer, x: Var) -> Var:
    """Values are added by key, or the last one wins."""
    each, value = w.name("each"), w.small()
    keys = w.draws.some(NAMES["letters"], 2)
    letters = [w.draws.pick(keys) for _ in range(w.level.turns[1])]
    keep = w.site("accumulation", f"{x.name}.get({each}, 0) + ", "")
    with w.indented(f"for {each} in {letters}:"):
        w.line(f"{x.name}[{each}] = {keep}{value}", watch="")
    return x


def set_default(w: Writer, x: Var) -> Var:
    """A key that is there keeps its value, or gets the new one."""
    keys = w.draws.some(NAMES["letters"], 2)
    value = w.small()
    w.line(f"{x.name}[{keys[0]!r}] = {w.operand('')}")
    key = w.draws.pick((keys[0], keys[0], keys[1]))
    w.line(w.site("overwrite", f"{x.name}.setdefault({key!r}, {value})", f"{x.name}[{key!r}] = {value}"))
    return x


def merged(w: Writer, x: Var) -> Var:
    """Two dicts are merged; the later one wins."""
    other, both = w.name("table"), w.new("table")
    keys = w.draws.some(NAMES["letters"], 2)
    w.line(f"{x.name}[{keys[0]!r}] = {w.small()}")
    w.line(f"{other} = {{{keys[0]!r}: {w.start()}, {keys[1]!r}: {w.small()}}}")
    forms = (f"{{**{x.name}, **{other}}}", f"{{**{other}, **{x.name}}}")
    w.line(f"{both.name} = {w.site('merge_order', *forms)}")
    return both


def totalled(w: Writer, x: Var) -> Var:
    """All values added, those of some keys with another sign."""
    y, key, value = w.new("int"), w.name("each"), w.name("each")
    bound = w.draws.pick(NAMES["letters"][:-1])
    w.line(f"{y.name} = {w.small()}")
    with w.indented(f"for {key}, {value} in {x.name}.items():"):
        with w.indented(f"if {key} {w.site('boundary', '<', '<=')} {bound!r}:"):
            w.line(f"{y.name} {w.site('wrong_operator', '+=', '-=')} {value}", watch=y.name)
        with w.indented("else:"):
            w.line(f"{y.name} += {value} * {w.draws.between(2, 3)}", watch=y.name)
    return y


def in_order(w: Writer, x: Var) -> Var:
    """The values in the order of their keys, or as they were put in."""
    ys, key = w.new("ints"), w.name("each")
    order = w.site("key_order", x.name, f"sorted({x.name})")
    w.line(f"{ys.name} = [{x.name}[{key}] for {key} in {order}]")
    return ys


BLOCKS = (
    Block(looked_up, "int", "int", 7),
    Block(defaulted, "int", "int", 8),
    Block(tabled, "int", "table", 8),
    Block(counted, "table", "table", 8),
    Block(totalled, "table", "int", 8),
    Block(set_default, "table", "table", 9),
    Block(merged, "table", "table", 9),
    Block(in_order, "table", "ints", 9),
)
