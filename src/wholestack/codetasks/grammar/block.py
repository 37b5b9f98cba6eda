"""A block: a few lines that take one variable and give another, the link of a chain."""

from collections.abc import Callable
from dataclasses import dataclass

from wholestack.codetasks.grammar.writer import Type, Var, Writer


@dataclass(frozen=True, slots=True)
class Block:
    """One kind of link."""

    write: Callable[[Writer, Var], Var]
    """Writes the lines; the answer depends on the variable that it is given."""
    needs: Type
    """Type that it takes."""
    gives: Type
    """Type that it gives."""
    level: int
    """First level that has it."""
    inside: bool = True
    """Whether it may stand within a function; one that needs a variable of the module may not."""
