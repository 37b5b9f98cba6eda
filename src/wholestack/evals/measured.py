"""Numbers of models or checkpoints, from a table (CSV, TSV, JSONL) or a result folder of ``evals score`` or ``write``.

A table has one row a model. The column ``NAME_se`` holds the standard errors of the column ``NAME``; an empty cell
is a missing number; columns of text are kept out. What a table does not say is never guessed.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from wholestack.errors import InputError
from wholestack.evals.comparable import SHARE_RIGHT
from wholestack.evals.goals import Better
from wholestack.evals.loading import scored_items, written_items
from wholestack.evals.reading import read_file
from wholestack.evals.results import read_result
from wholestack.evals.scored import ScoredItems
from wholestack.evals.tasks import Purpose
from wholestack.evals.written.judging import holds_written, read_judged
from wholestack.record import Record, digest

ERROR = "_se"
_SMALLEST, _LARGEST = 1e-100, 1e100

_LOWER = ("answer_bpb", "answer_nll", "choice_nll", "brier", "ece", "loss", "nll", "perplexity", "bits", "error_rate")
_HIGHER = ("accuracy", "acc", "exact_match", "f1", "pass_at", "score", "choice_p", "share_right")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOn(Record):
    """The items behind the numbers of a result folder."""

    purpose: Purpose
    """What they are for."""
    content: str
    """Digest of all that was read, written with and judged by, whatever the order of the items."""
    asked: str
    """Digest of ids, choices and right answers and of what judges, whatever the prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers(Record):
    """What is known of one model, setting or checkpoint."""

    model: str
    """Its name; empty where the table has none."""
    values: dict[str, float]
    """By name of the metric."""
    errors: dict[str, float]
    """Standard errors, where they are known."""
    where: str
    """File and line, or folder."""
    measured_on: tuple[MeasuredOn, ...] = ()
    """The items of each result folder that they are from; none for a table, which does not say."""


def better_of(metric: str, *, higher: Iterable[str] = (), lower: Iterable[str] = ()) -> Better:
    """Direction of a metric: as the user says, else by the beginning of its name.

    Raises:
        InputError: the name says nothing, or the user says both.
    """
    bare = metric.partition("[")[0]
    said_higher, said_lower = {metric, bare} & set(higher), {metric, bare} & set(lower)
    if said_higher and said_lower:
        raise InputError(f"{metric} is said to be better both higher and lower", remedy="say one of them")
    if said_higher or (not said_lower and bare.startswith(_HIGHER)):
        return "higher"
    if said_lower or bare.startswith(_LOWER):
        return "lower"
    raise InputError(f"which way is {metric} better?", remedy=f"say --higher {bare} or --lower {bare}")


def directions_of(
    rows: Iterable[Numbers],
    *,
    wanted: Sequence[str] = (),
    higher: Sequence[str] = (),
    lower: Sequence[str] = (),
    aside: str | None = None,
) -> dict[str, Better]:
    """Metrics to look at, with their direction, in the order of the table.

    Args:
        rows: What is known.
        wanted: Only these; default all.
        higher: Metrics that the user says are better when higher.
        lower: Metrics that the user says are better when lower.
        aside: Something that is no metric here, for instance the x axis.

    Raises:
        InputError: a name is not among them, or a direction is not known.
    """
    known = [name for name in dict.fromkeys(name for row in rows for name in row.values) if name != aside]
    for name in (*wanted, *higher, *lower):
        if name not in known:
            raise InputError(f"no metric {name!r}", remedy=f"known are: {', '.join(known) or 'none'}")
    return {name: better_of(name, higher=higher, lower=lower) for name in (wanted or known)}


def read_numbers(path: Path) -> list[Numbers]:
    """Rows of a table, or the one row of a result folder.

    Raises:
        InputError: it cannot be read, is neither, or holds a number that is none.
    """
    if holds_written(path):
        return [read_written_numbers(path)]
    if path.is_dir():
        return [read_result_numbers(path)]
    try:
        text = read_file(path, remedy="name a table or result folder").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8", remedy="save the table as UTF-8") from error
    rows = _json_rows(path, text) if text.lstrip().startswith("{") else _csv_rows(path, text)
    if not rows:
        raise InputError(f"{path}: holds no row", remedy="write one row a model under a line of column names")
    return _numbers(path, rows)


def read_result_numbers(folder: Path) -> Numbers:
    """Metrics of a result folder that have a standard error, with the model's name.

    They are made anew of the scores, each of which is bound to this model and these items; a ``metrics.json`` that was
    copied there or changed decides nothing.

    Raises:
        InputError: the folder holds no scoring, one that has not ended, or no number with an error.
        RecordError: a file of it does not decode.
    """
    result = read_result(folder)
    if not result.complete:
        raise InputError(
            f"{folder}: its scoring has not ended", remedy="let the same wholestack evals score go on to its end"
        )
    known = [each for each in result.summary.metrics if each.standard_error is not None]
    if not known:
        raise InputError(f"{folder}: holds no metric with a standard error", remedy="score more items")
    return Numbers(
        model=result.identity.name,
        values={each.name: each.value for each in known},
        errors={each.name: each.standard_error or 0.0 for each in known},
        where=str(folder),
        measured_on=(_measured_on(scored_items(result)),),
    )


def read_written_numbers(path: Path) -> Numbers:
    """The share of right answers of a folder of ``evals write``, made anew of its verdicts.

    Raises:
        InputError: the folder holds no verdicts, several ways to judge, a writing that has not ended, or no error.
        RecordError: a file of it does not decode, or a line is from elsewhere.
    """
    judged = read_judged(path)
    scores = judged.scores
    if scores.share_right is None or scores.standard_error is None:
        raise InputError(f"{path}: holds no share of right answers with a standard error", remedy="ask more questions")
    return Numbers(
        model=judged.written.plan.model.name,
        values={SHARE_RIGHT: scores.share_right},
        errors={SHARE_RIGHT: scores.standard_error},
        where=str(path),
        measured_on=(_measured_on(written_items(judged, path)),),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRight:
    """A share of right answers as a target: with its error, or with what the error of a count follows from."""

    value: float
    """The share."""
    error: float | None
    """Standard error; ``None`` where it follows from ``n``."""
    n: int | None
    """Independent answers; ``None`` where the error is given."""


def read_share_right(path: Path) -> ShareRight:
    """The share of right answers of a folder of ``evals write``, to be measured as a goal.

    Where all answers are alike their spread says nothing of the error, and it is left to follow from their number.

    Raises:
        InputError: the folder holds no verdicts, several ways to judge, or no text with a verdict.
        RecordError: a file of it does not decode, or a line is from elsewhere.
    """
    scores = read_judged(path).scores
    if scores.share_right is None:
        raise InputError(f"{path}: no text of it has a verdict", remedy="look at the reasons it gives")
    if scores.standard_error:
        return ShareRight(value=scores.share_right, error=scores.standard_error, n=None)
    return ShareRight(value=scores.share_right, error=None, n=scores.groups)


def _measured_on(found: ScoredItems) -> MeasuredOn:
    ids = found.scores.item_ids.tolist()
    return MeasuredOn(
        purpose=found.purpose,
        content=digest(sorted(found.keys), found.judged_by, found.written_with),
        asked=digest(sorted(zip(ids, found.asked, strict=True)), found.judged_by),
    )


def _json_rows(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise InputError(f"{path}:{number}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}:{number}: no object", remedy="write one object of columns a line")
            rows.append((number, row))
    return rows


def _csv_rows(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    first = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter="\t" if "\t" in first else ",")
    try:
        head = [name.strip() for name in next(reader, [])]
        rows = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(head):
                raise InputError(
                    f"{path}:{reader.line_num}: {len(cells)} cells under {len(head)} columns",
                    remedy="give every row a cell for every column",
                )
            rows.append((reader.line_num, dict(zip(head, (cell.strip() for cell in cells), strict=True))))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV: {error}") from error
    if len(set(head)) != len(head):
        raise InputError(f"{path}:1: a column name stands twice", remedy="name every column differently")
    return rows


def _numbers(path: Path, rows: Sequence[tuple[int, dict[str, Any]]]) -> list[Numbers]:
    columns = dict.fromkeys(name for _, row in rows for name in row)
    # A column none of whose cells is a number is text, for instance a note or a family.
    numeric = [name for name in columns if name != "model" and any(_as_number(row.get(name)) for _, row in rows)]
    return [_one(f"{path}:{line}", row, numeric) for line, row in rows]


def _one(where: str, row: Mapping[str, Any], numeric: Sequence[str]) -> Numbers:
    found: dict[str, float] = {}
    for name in numeric:
        cell = row.get(name)
        if cell is None or cell == "":
            continue
        parsed = _as_number(cell)
        if parsed is None:
            raise InputError(f"{where}: {name} is {cell!r}, no finite number", remedy="leave a missing number empty")
        if parsed[0] and not _SMALLEST <= abs(parsed[0]) <= _LARGEST:
            raise InputError(
                f"{where}: {name} is {cell!r}, outside what squares can be taken of", remedy="take another unit"
            )
        found[name] = parsed[0]
    errors = {name.removesuffix(ERROR): value for name, value in found.items() if _is_error(name, numeric)}
    for name, value in errors.items():
        if value < 0:
            raise InputError(f"{where}: {name}{ERROR} is {value:g}, must be a standard error of 0 or more")
    return Numbers(
        model=str(row.get("model", "")).strip(),
        values={name: value for name, value in found.items() if not _is_error(name, numeric)},
        errors=errors,
        where=where,
    )


def _is_error(name: str, known: Iterable[str]) -> bool:
    return name.endswith(ERROR) and name.removesuffix(ERROR) in known


def _as_number(cell: object) -> tuple[float] | None:
    """The number in a tuple of its own, so that zero is not taken for nothing."""
    if not _is_number(cell) and not isinstance(cell, str):
        return None
    try:
        value = float(cell.replace("_", "x") if isinstance(cell, str) else cell)  # type: ignore[arg-type]  # a number
    except (ValueError, OverflowError):
        return None
    return (value,) if math.isfinite(value) else None


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
