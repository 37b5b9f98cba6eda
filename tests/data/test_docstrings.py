import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data.docstrings import LEAST_CHARACTERS, cut
from wholestack.data.python_library import PythonLibrary

LONG = "A docstring that is long enough to be taken as prose, because it says a good deal about the function."


def without_placeholders(source: str) -> str:
    """A ``pass`` that shares its body with other code is only the cut's filler."""

    class Drop(ast.NodeTransformer):
        def generic_visit(self, node):
            super().generic_visit(node)
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Pass):
                node.body = body[1:] or ([] if isinstance(node, ast.Module) else body)
            return node

    return ast.dump(Drop().visit(ast.parse(source)))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f'"""{LONG}"""\nimport os\n', "import os\n"),
        (f'def f():\n    """{LONG}"""\n    return 1\n', "def f():\n    return 1\n"),
        (f'def f():\n    """{LONG}"""\n', "def f():\n    pass\n"),
        (f'def f(): "{LONG}"\n', "def f(): pass\n"),
        (f'def f(): "{LONG}"; return 1\n', "def f(): pass; return 1\n"),
        (f'class A:\n    """{LONG}"""  # why\n    x = 1\n', "class A:\n    pass  # why\n    x = 1\n"),
        (f"def f():\n    ('{LONG}'\n     'more')\n    return 'é'\n", "def f():\n    return 'é'\n"),
        (f"def f():\n    é = 1; '{LONG}'\n", f"def f():\n    é = 1; '{LONG}'\n"),
        (f"if True:\n    '{LONG}'\n", f"if True:\n    '{LONG}'\n"),
        (f'async def é():\n    """{LONG}"""\n    await x', "async def é():\n    await x"),
        ('def f():\n    """Short."""\n', 'def f():\n    """Short."""\n'),
        (f"x = 1\n'{LONG}'\n", f"x = 1\n'{LONG}'\n"),
    ],
)
def test_a_docstring_goes_and_everything_else_stays(source, expected):
    assert cut(source).code == expected
    ast.parse(cut(source).code)


def test_docstrings_are_found_at_every_depth_in_the_order_of_the_file():
    source = f'''"""0 {LONG}"""
class A:
    """1 {LONG}"""
    if True:
        def f(self):
            """2 {LONG}"""
            try:
                pass
            except OSError:
                def g():
                    """3 {LONG}"""
            else:
                class B:
                    """4 {LONG}"""
    match 1:
        case 1:
            def h():
                """5 {LONG}"""
'''
    found = cut(source)
    assert [each[0] for each in found.docstrings] == list("012345")
    assert LONG not in found.code
    ast.parse(found.code)


def test_indentation_is_taken_off_the_prose():
    source = f'def f():\n    """{LONG}\n\n    flush\n        deeper\n    """\n'
    assert cut(source).docstrings == (f"{LONG}\n\nflush\n    deeper",)


def test_source_that_does_not_parse_is_an_error():
    with pytest.raises(SyntaxError):
        cut("def f(:\n")


@given(st.lists(st.sampled_from(["doc", "x = 1", "def", "class", "end"]), max_size=20))
def test_whatever_the_nesting_the_code_is_the_same_program_without_docstrings(parts):
    lines, depth = [], 0
    for part in parts:
        pad = "    " * depth
        if part == "doc":
            lines.append(f'{pad}"""{LONG}"""')
        elif part == "x = 1":
            lines.append(f"{pad}x = 1")
        elif part == "end":
            lines.append(f"{pad}pass")
            depth = max(0, depth - 1)
        else:
            lines.append(f"{pad}{part} f{'()' if part == 'def' else ''}:")
            depth += 1
            lines.append(f'{"    " * depth}"""{LONG}"""')
    source = "\n".join(lines) + "\n"
    assert without_placeholders(cut(source).code) == without_placeholders(ast.unparse(drop(ast.parse(source))))


def drop(tree):
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and len(ast.get_docstring(node) or "") >= LEAST_CHARACTERS:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


@pytest.mark.parametrize("name", ["argparse.py", "typing.py", "ast.py", "asyncio/events.py", "json/decoder.py"])
def test_real_modules_are_the_same_program_without_their_docstrings(name):
    library = PythonLibrary()
    source = (library.root / name).read_text(encoding="utf-8")
    expected = without_placeholders(ast.unparse(drop(ast.parse(source))))
    assert without_placeholders(cut(source).code) == expected
