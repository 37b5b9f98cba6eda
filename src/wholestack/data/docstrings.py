"""Cut docstrings out of Python source, so that the same text does not serve as code and as prose.

A cut module still parses: where the docstring was all of a body, or shares a line with other code, ``pass`` takes
its place; elsewhere its lines go.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc

LEAST_CHARACTERS = 80
"""Shorter docstrings say too little to be prose; they stay in the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutModule:
    """A module in two parts."""

    code: str
    """The source without the docstrings below."""
    docstrings: tuple[str, ...]
    """The docstrings that were cut out, without their indentation, in order."""


def cut(source: str) -> CutModule:
    """Separate the docstrings of at least :data:`LEAST_CHARACTERS` characters from the code.

    Args:
        source: Python source, lines ending in ``\\n``.

    Raises:
        SyntaxError, ValueError: it does not parse with this version of Python.
    """
    lines = source.encode().split(b"\n")
    found = [(node, text) for node, text in _docstrings(ast.parse(source)) if len(text) >= LEAST_CHARACTERS]
    for body, _ in reversed(found):
        _remove(lines, body[0], only=len(body) == 1)
    return CutModule(code=b"\n".join(lines).decode(), docstrings=tuple(text for _, text in found))


def _docstrings(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], str]]:
    """Bodies that open with a docstring, in the order of the file, with the text of it."""
    bodies: list[tuple[bool, list[ast.stmt]]] = [(True, tree.body)]
    while bodies:
        documented, body = bodies.pop()
        first = body[0] if documented and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield body, cleandoc(first.value.value)
        inner = [each for statement in body for each in _bodies(statement)]
        bodies.extend(reversed(inner))


def _bodies(statement: ast.stmt) -> Iterator[tuple[bool, list[ast.stmt]]]:
    """The blocks inside one statement, and whether a string that opens them is a docstring."""
    documented = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield documented, block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield False, part.body


def _remove(lines: list[bytes], node: ast.stmt, *, only: bool) -> None:
    """Take one statement out of the lines; positions of earlier statements stay valid."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    alone = not before.strip(b" \t\f") and not after.strip()
    lines[first : last + 1] = [] if alone and not only else [before + b"pass" + after]
