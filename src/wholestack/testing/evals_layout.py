"""What every layout of questions must do, as a list of the rules that one breaks.

Use it in a test of your own layout, with rows that you wrote from its documentation::

    def test_my_layout_keeps_the_rules():
        assert broken_rules(MyLayout(), rows=[{...}, {...}], without_gold=[{...}]) == []
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wholestack.errors import InputError
from wholestack.evals.items import NO_GOLD, Found, find_items
from wholestack.evals.layouts.catalog import LAYOUTS, Reading
from wholestack.evals.layouts.layout import Layout, Question

Row = Mapping[str, Any]

_OTHER_VALUES: tuple[Any, ...] = (
    None,
    7,
    -1,
    0.5,
    True,
    "",
    "_",
    [],
    [1],
    [[]],
    {},
    {"text": 1},
    [{}],
    [{"text": None}],
)
_STRANGER = "a key that nobody knows"


def broken_rules(layout: Layout, rows: Sequence[Row], *, without_gold: Sequence[Row] = ()) -> list[str]:
    """The rules that a layout breaks, each as one sentence; empty when it keeps them all.

    Args:
        layout: The layout.
        rows: Usable rows, at least one, as its documentation describes them.
        without_gold: Rows such as those of a test split, whose answers are not published.
    """
    if not rows:
        return ["no row to try"]
    return [
        *_of_name(layout),
        *(rule for row in rows for rule in _of_recognition(layout, row)),
        *(rule for row in rows for rule in _of_reading(layout, row)),
        *(rule for row in (*rows, *without_gold) for rule in _of_damage(layout, row)),
        *_of_items(layout, rows),
        *_of_missing_gold(layout, without_gold),
    ]


def _of_name(layout: Layout) -> Iterator[str]:
    if not layout.name or layout.name != layout.name.lower() or not layout.name.replace("-", "").isalnum():
        yield f"the name {layout.name!r} is not small letters, digits and hyphens"
    if not layout.template.strip():
        yield "the template is empty"


def _of_recognition(layout: Layout, row: Row) -> Iterator[str]:
    if not layout.recognises(row):
        yield f"a row with {', '.join(row)} is not recognised"
    if layout.recognises({}):
        yield "a row without any field is recognised"
    for other in LAYOUTS:
        if other.name != layout.name and other.recognises(row):
            yield f"a row with {', '.join(row)} is also recognised as {other.name}"


def _of_reading(layout: Layout, row: Row) -> Iterator[str]:
    before = copy.deepcopy(row)
    found = list(layout.questions(row))
    if row != before:
        yield "reading changes the row"
    if not found:
        yield f"a row with {', '.join(row)} gives no question"
    if found != list(layout.questions(row)):
        yield "reading a row twice gives two answers"
    strange = list(layout.questions({**row, _STRANGER: 1}))
    if [_without_kept(each) for each in strange] != [_without_kept(each) for each in found]:
        yield "an unknown key changes a question"
    if any(_STRANGER not in each.kept for each in strange):
        yield "an unknown key is not kept"


def _of_damage(layout: Layout, row: Row) -> Iterator[str]:
    """Whatever stands in a field, the answer is a question or an InputError."""
    damaged = [{name: value for name, value in row.items() if name != gone} for gone in row]
    damaged += [{**row, name: other} for name in row for other in _OTHER_VALUES]
    for each in damaged:
        try:
            layout.recognises(each)
            if not all(map(_is_text, layout.questions(each))):
                yield "a damaged row gives a question with something that is not text"
        except InputError:
            continue
        except Exception as error:  # noqa: BLE001  # the very point: no other exception may come out
            changed = next((name for name in row if each.get(name) != row[name] or name not in each), "")
            yield f"{changed} = {each.get(changed)!r} raises {type(error).__name__}, not InputError"


def _of_items(layout: Layout, rows: Sequence[Row]) -> Iterator[str]:
    try:
        found = _items(layout, rows)
    except InputError as error:
        yield f"the template does not fit the questions: {error.message}"
        return
    for refusal in found.refusals:
        yield f"row {refusal.line} gives a question that is no item: {refusal.detail}"


def _of_missing_gold(layout: Layout, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        try:
            found = _items(layout, [row])
        except InputError as error:
            yield f"a row without gold answer gives no question: {error.message}"
            continue
        if found.items or not all(refusal.reason == NO_GOLD for refusal in found.refusals):
            yield f"a row without gold answer is not refused for that: {found.refused or 'it gives an item'}"


def _items(layout: Layout, rows: Sequence[Row]) -> Found:
    questions = tuple((number, each) for number, row in enumerate(rows, start=1) for each in layout.questions(row))
    if not all(_is_text(question) for _, question in questions):
        raise InputError("a question has something that is not text")
    return find_items(Reading(path=Path("rows.jsonl"), layout=layout, questions=questions, refusals=()))


def _is_text(question: Question) -> bool:
    parts = (*question.texts.values(), *question.choices, question.id, question.group, question.source)
    return all(isinstance(part, str) for part in parts) and isinstance(question.delimiter, str | None)


def _without_kept(question: Question) -> tuple[object, ...]:
    return (question.texts, question.choices, question.gold, question.id, question.group, question.delimiter)
