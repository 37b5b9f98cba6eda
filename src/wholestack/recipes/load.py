"""Find a recipe by built-in name or in a user's Python file, and say clearly what is wrong with it."""

import difflib
import runpy
import traceback
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from wholestack.errors import InputError, WholestackError
from wholestack.experiments.recipe import DimensionSpec, Recipe, SourceSpec
from wholestack.recipes.gpu import gpu
from wholestack.recipes.laptop import laptop

BUILT_IN: dict[str, Callable[[], Recipe]] = {"laptop": laptop, "gpu": gpu}
FUNCTION = "recipe"


def load(name: str) -> Recipe:
    """The recipe of a built-in name, or what ``recipe()`` in a Python file returns.

    Raises:
        InputError: no such name or file, the file fails, or it returns something else; names file and line.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    path = Path(name)
    if not path.is_file():
        near = difflib.get_close_matches(name, BUILT_IN, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"built in are: {', '.join(BUILT_IN)}"
        raise InputError(f"no recipe {name!r}", remedy=f"{hint} or name a Python file")
    return _from_file(path)


def _from_file(path: Path) -> Recipe:
    try:
        found = runpy.run_path(str(path)).get(FUNCTION)
        made = found() if callable(found) else None
    except WholestackError as error:
        raise InputError(f"{path}: {error.message}", remedy=error.remedy) from error
    except (Exception, SystemExit) as error:  # the file is the user's: whatever it raises is his to mend
        raise InputError(f"{path}:{_line_of(path, error)}: {type(error).__name__}: {error}{_hint(error)}") from error
    if not callable(found):
        raise InputError(f"{path}: has no function {FUNCTION}()", remedy="see docs/adding/recipe.md")
    if not isinstance(made, Recipe):
        raise InputError(f"{path}: {FUNCTION}() returned {type(made).__name__}, not a Recipe")
    return made


def _line_of(path: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.lineno)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return str(lines[-1]) if lines else "?"


def _hint(error: BaseException) -> str:
    """A misspelt key is a TypeError of the dataclass; name the nearest right one."""
    if not isinstance(error, TypeError) or "unexpected keyword argument" not in str(error):
        return ""
    wrong = str(error).split("'")[1]
    known = [field.name for kind in (Recipe, DimensionSpec, SourceSpec) for field in fields(kind)]
    near = difflib.get_close_matches(wrong, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
