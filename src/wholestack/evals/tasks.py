"""Tasks: what is asked of a model and how, so that two numbers of one task mean the same thing.

A task says for which of three purposes it is, which are never mixed in a report: ``base`` competence (a direct answer,
no reasoning text), ``reasoning`` inside a loop (the model writes, the answer is extracted), everyday ``usefulness`` (a
checker judges what was written). It holds the layout of the questions, the template, the delimiter and the few-shot
examples. All of it goes into the manifest of the item set, so a task with one word changed gives another metric.

Few-shot examples come from a file of the same layout (``wholestack.evals.shots``).
"""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from wholestack.errors import InputError
from wholestack.evals.backend import Writing
from wholestack.evals.items import PLAIN, Found, Item, ItemSet, Wording, find_items, seal_items
from wholestack.evals.layouts.catalog import LAYOUTS, Reading, layout_named, read_questions
from wholestack.evals.reading import read_file
from wholestack.evals.rows import Refusal
from wholestack.evals.shots import Example, Shots, put_in_front
from wholestack.record import Record, digest, from_builtins, from_json, to_builtins

Purpose = Literal["base", "reasoning", "usefulness"]
PURPOSES: dict[Purpose, str] = {
    "base": "base competence: a direct answer, no reasoning text",
    "reasoning": "reasoning inside a loop: written, then the answer is extracted",
    "usefulness": "everyday usefulness: written, then judged by a checker",
}
"""In the order and words of every report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Record):
    """What is asked and how."""

    SCHEMA: ClassVar[str] = "task/1"

    name: str
    """How reports call it."""
    purpose: Purpose = "base"
    """What a good score would say."""
    layout: str = ""
    """Layout of its files; empty to recognise it by the fields of the first row."""
    template: str = ""
    """The context, with a question's texts and ``options`` in braces; empty for the layout's own."""
    delimiter: str | None = None
    """Between context and choice; ``None`` for the row's own, else one space."""
    answers: Literal["texts", "letters"] = "texts"
    """Whether a choice is its text, or its letter among ``options``."""
    shots: Shots | None = None
    """Few-shot examples; ``None`` for none."""
    writing: Writing | None = None
    """How to write, where the model is to write and not to choose."""
    extraction: str = ""
    """Name of the rule that takes the answer out of what was written."""
    checker: str = ""
    """Name of what judges the answer."""

    @property
    def wording(self) -> Wording:
        """How its questions become items."""
        return replace(PLAIN, template=self.template, delimiter=self.delimiter, answers=self.answers)


_LETTERS = "{question}\n{options}\nAnswer:"

BUILT_IN: tuple[Task, ...] = (
    *(Task(name=layout.name, layout=layout.name) for layout in LAYOUTS),
    *(
        Task(name=f"{name}-letters", layout=name, template=_LETTERS, answers="letters")
        for name in ("arc", "mmlu", "openbookqa", "gsm8k-choices", "code-comprehension")
    ),
)
"""Every layout as it is asked by default, and the sets that are often asked by letter."""


def open_task(name: str) -> Task:
    """A task that is built in, or one from a ``.toml`` or ``.json`` file.

    Raises:
        InputError: there is none of this name, or the file cannot be read.
        RecordError: the file is no task; names the key.
    """
    for task in BUILT_IN:
        if task.name == name:
            return task
    path = Path(name)
    if path.suffix not in (".toml", ".json"):
        raise InputError(
            f"no task {name!r}",
            remedy=f"name a .toml or .json file, or one of: {', '.join(task.name for task in BUILT_IN)}",
        )
    raw = read_file(path)
    return _from_toml(raw, path) if path.suffix == ".toml" else from_json(Task, raw, where=str(path))


def pose(path: Path, task: Task, *, shots_from: Path | None = None, limit: int | None = None) -> ItemSet:
    """Items of a file, as a task puts them, sealed together with it.

    Args:
        path: JSONL file of questions.
        task: What is asked and how.
        shots_from: File of the few-shot examples, in the same layout.
        limit: At most so many questions, refused ones among them, those whose ids have the smallest hashes, in the
            order of the file; so which are taken does not depend on their order.

    Raises:
        InputError: a file cannot be read, no question can be used, or the examples do not suffice.
    """
    reading = read_questions(path, layout_named(task.layout) if task.layout else None)
    found = find_items(reading, task.wording)
    if not found.items:
        raise _nothing_usable(reading, found)
    items, refusals = (found.items, found.refusals) if limit is None else _drawn(found, limit, path)
    layout, files = reading.layout, {path: reading.sha256}
    task = replace(task, name=task.name or layout.name, layout=layout.name, template=task.template or layout.template)
    if task.shots is None or task.shots.count == 0:
        task = replace(task, shots=None)
    elif shots_from is None:
        raise InputError(f"task {task.name} shows {task.shots.count} examples", remedy="say --shots-from FILE")
    else:
        items, shots = _with_shots(items, task, task.shots, shots_from)
        task = replace(task, shots=shots)
        files[shots_from] = shots.file_sha256
    sealed = seal_items(
        items,
        kind="items from a file",
        passed_over=Counter(each.reason for each in refusals),
        task=to_builtins(task),
        kept={item.id: found.kept[item.id] for item in items if item.id in found.kept},
    )
    return replace(sealed, refusals=refusals, files=files)


def changed_files(item_set: ItemSet) -> tuple[Path, ...]:
    """Of the files that a set was read from, those that hold something else by now, or nothing."""
    return tuple(path for path, sha256 in item_set.files.items() if _sha256(path) != sha256)


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(read_file(path)).hexdigest()
    except InputError:
        return ""


def task_of(item_set: ItemSet) -> Task | None:
    """The task that a set was sealed with; ``None`` where there was none."""
    return from_builtins(Task, item_set.manifest.task) if item_set.manifest.task else None


def _with_shots(items: Sequence[Item], task: Task, shots: Shots, path: Path) -> tuple[tuple[Item, ...], Shots]:
    reading = read_questions(path, layout_named(task.layout))
    pool = find_items(reading, task.wording).items
    shown = put_in_front(
        [_example(item) for item in items], [_example(item) for item in pool], shots, path=path, sha256=reading.sha256
    )
    posed = tuple(replace(item, context=prompt) for item, prompt in zip(items, shown.prompts, strict=True))
    return posed, shown.shots


def _example(item: Item) -> Example:
    return Example(
        id=item.id,
        group=item.cluster,
        prompt=item.context,
        answer=f"{item.delimiter}{item.answer}",
        content=(item.context, frozenset(item.choices)),
    )


def _drawn(found: Found, limit: int, path: Path) -> tuple[tuple[Item, ...], tuple[Refusal, ...]]:
    """Some questions, usable or not, so that the share of refused ones stays honest."""
    if limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1")
    # By what stands there and not by its line; of those refused for the same words one is as good as another.
    keys = [digest("limit", item.id) for item in found.items]
    seen: Counter[tuple[str, str]] = Counter()
    for refusal in found.refusals:
        seen[words := (refusal.reason, refusal.detail)] += 1
        keys.append(digest("limit", words, seen[words]))
    drawn = set(sorted(range(len(keys)), key=lambda at: (keys[at], at))[:limit])
    items = tuple(item for at, item in enumerate(found.items) if at in drawn)
    if not items:
        raise InputError(f"{path}: none of the {limit} questions drawn can be used", remedy="raise --limit")
    return items, tuple(each for at, each in enumerate(found.refusals, start=len(found.items)) if at in drawn)


def _nothing_usable(reading: Reading, found: Found) -> InputError:
    if not found.refusals:
        return InputError(f"{reading.path}: holds no item", remedy="a file of items has one JSON object a line")
    first = found.refusals[0]
    counted = ", ".join(f"{count} {reason}" for reason, count in found.refused.items())
    return InputError(
        f"{reading.path}: no item can be used as layout {reading.layout.name} ({counted});"
        f" line {first.line}: {first.detail}",
        remedy="mend the file, or name another --layout",
    )


def _from_toml(raw: bytes, path: Path) -> Task:
    try:
        values: dict[str, Any] = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    return from_builtins(Task, {"schema": Task.SCHEMA, **values}, where=str(path))
