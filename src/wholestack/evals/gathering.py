"""Numbers of several models or checkpoints, from the tables and result folders that a user names.

Scores and written answers of the same model come from two folders and stand in one row: the folders of ``evals score``
give its losses and choices, those of ``evals write`` its share of right answers. Numbers of different items are no
ranking and no curve, so all folders of one purpose must be of the same items (:func:`require_same_items`), or of the
same questions under other prompts where that is asked for. What a table says is taken as it stands.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.measured import MeasuredOn, Numbers, read_numbers
from wholestack.evals.scored import By
from wholestack.evals.tasks import Purpose

KNOWN_X = ("tokens", "flops", "cost_flops", "parameters", "steps", "step", "x")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """What a curve is made of."""

    rows: tuple[Numbers, ...]
    """One a checkpoint, with ``x`` among its values."""
    x: str
    """Name of the value that they are ordered by."""


def read_models(inputs: Sequence[str], *, by: By = "content") -> list[Numbers]:
    """Rows of tables, and one row for each model of result folders.

    Args:
        inputs: Tables, result folders, or ``MODEL=FOLDER`` for a folder under another name.
        by: How items must agree, see :func:`require_same_items`.

    Raises:
        InputError: nothing is named, something cannot be read, or folders are of different items.
    """
    rows = [row for text in inputs for row in _named(text)]
    if not rows:
        raise InputError("no table and no result folder is named", remedy="name them: wholestack evals proxy TABLE")
    require_same_items(rows, by=by)
    return _together(rows, [row.model for row in rows])


def read_checkpoints(inputs: Sequence[str], *, x: str | None = None, by: By = "content") -> Checkpoints:
    """Rows of tables, or one row for each place at which result folders stand.

    Args:
        inputs: Tables, or ``X=FOLDER`` for each result folder, such as ``10M=results/step-100``.
        x: What they are ordered by; default the first column of :data:`KNOWN_X`.
        by: How items must agree, see :func:`require_same_items`.

    Raises:
        InputError: nothing is named, something cannot be read, x is not known, or folders are of different items.
    """
    if not inputs:
        raise InputError(
            "no table and no result folder is named", remedy="name a table, or X=FOLDER for each checkpoint"
        )
    pairs = [text.partition("=") for text in inputs if "=" in text and not Path(text).exists()]
    if pairs:
        if len(pairs) != len(inputs):
            raise InputError("tables and X=FOLDER do not go together", remedy="give one kind")
        places = [_place(at) for at, _, _ in pairs]
        rows = [read_numbers(Path(folder))[0] for _, _, folder in pairs]
        require_same_items(rows, by=by)
        name = x or "x"
        placed = [replace(row, values=row.values | {name: at}) for row, at in zip(rows, places, strict=True)]
        return Checkpoints(rows=tuple(_together(placed, places, shared=name)), x=name)
    rows = [row for text in inputs for row in read_numbers(Path(text))]
    columns = dict.fromkeys(name for row in rows for name in row.values)
    name = x or next((each for each in KNOWN_X if each in columns), "")
    if x and x not in columns:
        raise InputError(f"there is no column {x!r}", remedy=f"known are: {', '.join(columns)}")
    if not name:
        raise InputError("what are the checkpoints ordered by?", remedy=f"say --x with one of: {', '.join(columns)}")
    return Checkpoints(rows=tuple(rows), x=name)


def require_same_items(rows: Sequence[Numbers], *, by: By = "content") -> None:
    """Whether numbers of result folders may stand beside each other: those of one purpose are of the same items.

    Args:
        rows: Numbers; those of tables say nothing of items and pass.
        by: ``content`` for all that was read and judged by, ``id`` for the questions alone, whatever the prompts.

    Raises:
        InputError: two are of different items; names both.
    """
    first: dict[Purpose, tuple[Numbers, MeasuredOn]] = {}
    for row in rows:
        for found in row.measured_on:
            before, wanted = first.setdefault(found.purpose, (row, found))
            if (found.asked if by == "id" else found.content) == (wanted.asked if by == "id" else wanted.content):
                continue
            if found.asked == wanted.asked:
                raise InputError(
                    f"{before.where} and {row.where} ask the same in other prompts or were written in another way",
                    remedy="use the same for all, or take them as they are with --by id",
                )
            raise InputError(
                f"{before.where} and {row.where} are of different items", remedy="use the same items for all"
            )


def _named(text: str) -> list[Numbers]:
    model, equals, folder = text.partition("=")
    if not equals or Path(text).exists():
        return read_numbers(Path(text))
    return [replace(row, model=model) for row in read_numbers(Path(folder))[:1]]


def _place(at: str) -> float:
    found = re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)([KMBGT]?)", at.strip())
    try:
        value = float(found[1]) * _SCALE[found[2]] if found else None
    except ValueError:
        value = None
    if value is None:
        raise InputError(f"{at!r} is no place on the x axis", remedy="write for instance 1e9=FOLDER or 350M=FOLDER")
    return value


def _together(rows: Sequence[Numbers], keys: Sequence[object], *, shared: str = "") -> list[Numbers]:
    """One row for the folders of one key, where they have no number in common but ``shared``."""
    found: list[tuple[object, Numbers]] = []
    for row, key in zip(rows, keys, strict=True):
        fits = (
            at
            for at, (other, before) in enumerate(found)
            if other == key
            and row.measured_on
            and before.measured_on
            and not (row.values.keys() & before.values.keys()) - {shared}
        )
        place = next(fits, None)
        if place is None:
            found.append((key, row))
        else:
            found[place] = (key, _merged(found[place][1], row))
    return [row for _, row in found]


def _merged(first: Numbers, second: Numbers) -> Numbers:
    return Numbers(
        model=first.model,
        values=first.values | second.values,
        errors=first.errors | second.errors,
        where=f"{first.where} and {second.where}",
        measured_on=(*first.measured_on, *second.measured_on),
    )
