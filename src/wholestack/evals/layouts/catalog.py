"""The table of all layouts, and how a file of questions is read with one of them."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.layouts.anli import ANLI
from wholestack.evals.layouts.boolq import BoolQ
from wholestack.evals.layouts.code_comprehension import CodeComprehension
from wholestack.evals.layouts.ethics import ETHICS
from wholestack.evals.layouts.hellaswag import HellaSwag
from wholestack.evals.layouts.layout import Layout, Question, Values
from wholestack.evals.layouts.mmlu import MMLU
from wholestack.evals.layouts.multirc import MultiRC
from wholestack.evals.layouts.numbered import GSM8KChoices
from wholestack.evals.layouts.own import Own
from wholestack.evals.layouts.race import RACE
from wholestack.evals.layouts.science import ARC, OpenBookQA
from wholestack.evals.layouts.socialiqa import SocialIQa
from wholestack.evals.layouts.winogrande import WinoGrande
from wholestack.evals.reading import read_file
from wholestack.evals.rows import NOT_JSON, Refusal, Row, read_rows
from wholestack.plugins import Plugin, installed

ENTRY_POINTS = "wholestack.evals_layouts"
WRONG_LAYOUT = "the row does not follow the layout"

LAYOUTS: tuple[Layout, ...] = (
    ANLI(),
    ARC(),
    BoolQ(),
    CodeComprehension(),
    ETHICS(),
    GSM8KChoices(),
    HellaSwag(),
    MMLU(),
    MultiRC(),
    OpenBookQA(),
    Own(),
    RACE(),
    SocialIQa(),
    WinoGrande(),
)
"""Built in; no row is recognised by two of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What stands in a file: questions, and what could not be used."""

    path: Path
    """The file."""
    layout: Layout
    """How it was read."""
    questions: tuple[tuple[int, Question], ...]
    """With the line of each, counted from 1."""
    refusals: tuple[Refusal, ...]
    """Lines without a question."""
    sha256: str = ""
    """Hash of the bytes that were read; empty where they are from no file."""


def known_layouts(extra: Iterable[Layout] | None = None) -> tuple[Layout, ...]:
    """Built-in layouts and those that installed packages offer under the entry points ``wholestack.evals_layouts``.

    Args:
        extra: In place of what is installed.
    """
    offered = map(_made, installed(ENTRY_POINTS)) if extra is None else extra
    return (*LAYOUTS, *offered)


def _made(plugin: Plugin) -> Layout:
    with plugin.blamed("cannot be made"):
        layout: Layout = plugin.load()()
    return layout


def layout_named(name: str) -> Layout:
    """One layout.

    Raises:
        InputError: there is none of this name.
    """
    layouts = known_layouts()
    for layout in layouts:
        if layout.name == name:
            return layout
    raise InputError(f"no layout {name!r}", remedy=f"known are: {', '.join(each.name for each in layouts)}")


def read_questions(path: Path, layout: Layout | None = None) -> Reading:
    """Read a JSONL file of questions.

    Args:
        path: The file.
        layout: How its rows are written; without one, it is recognised by the first row's fields.

    Raises:
        InputError: the file cannot be read, holds no JSON object at all, or its layout is not recognised.
    """
    raw = read_file(path)
    rows = list(read_rows(raw))
    objects = [row for row in rows if isinstance(row, Row)]
    if layout is None:
        if not objects:
            raise _no_rows(path, [row for row in rows if isinstance(row, Refusal)])
        layout = recognise(objects[0].values, where=f"{path}:{objects[0].line}")
    questions: list[tuple[int, Question]] = []
    refusals = []
    for row in rows:
        found = row if isinstance(row, Refusal) else _questions(row, layout)
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            questions.extend((row.line, question) for question in found)
    return Reading(
        path=path,
        layout=layout,
        questions=tuple(questions),
        refusals=tuple(refusals),
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def recognise(values: Values, *, where: str) -> Layout:
    """The layout whose documented fields a row has.

    Raises:
        InputError: none or several; names them.
    """
    layouts = known_layouts()
    found = [layout for layout in layouts if layout.recognises(values)]
    if len(found) == 1:
        return found[0]
    said = f"fits {' and '.join(layout.name for layout in found)}" if found else "has the fields of no known layout"
    fields = ", ".join(sorted(values)[:12]) or "none"
    names = ", ".join(layout.name for layout in layouts)
    remedy = f"name it with --layout: {names}; rows without choices are for wholestack evals write"
    raise InputError(f"{where}: a row with {fields} {said}", remedy=remedy)


def _questions(row: Row, layout: Layout) -> Sequence[Question] | Refusal:
    """All questions of a row or none: half a row would be another row."""
    try:
        found = list(layout.questions(row.values))
    except InputError as error:
        return Refusal(line=row.line, reason=WRONG_LAYOUT, detail=error.message)
    return found or Refusal(line=row.line, reason=WRONG_LAYOUT, detail="holds no question")


def _no_rows(path: Path, refusals: Sequence[Refusal]) -> InputError:
    if not refusals:
        return InputError(f"{path}: holds no item", remedy="a file of items has one JSON object a line")
    first = refusals[0]
    what = "is no JSONL file" if all(each.reason == NOT_JSON for each in refusals) else "holds no usable line"
    return InputError(f"{path}: {what}; line {first.line}: {first.detail}", remedy="write one JSON object a line")
