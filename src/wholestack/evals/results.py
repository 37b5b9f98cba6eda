"""Results by key: what a model gave to every item of a set, kept where nothing stale can be found.

The key is the hash of the model's identity, the item set's digest and the version of these rules; it names the folder
and binds every line of the journal, so a line of another scoring, or one with a digit changed, is never taken. A
folder, ``<items>-<model>-<first 8 digits of the key>/``, holds

``result.json``                   what was scored, with what (:class:`ScoringPlan`); written first
``items.jsonl``, ``manifest.json``  the sealed items, as the model read them
``scores.jsonl``                  one :class:`SealedScore` an item, on the disk before it counts; a killed scoring
                                  goes on behind its last line
``metrics.json``                  the numbers; no times in it, so two runs of one scoring are equal to the bit
``per_item.jsonl``                items, what was kept of their rows, and their scores; again a file of items

The last two follow from the others and are written when every item has its line.
"""

import math
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from wholestack import __version__
from wholestack.errors import InputError, RecordError, RunDirectoryError
from wholestack.evals.backend import Backend, ItemScore, ModelIdentity
from wholestack.evals.items import Item, ItemSet, own_lines
from wholestack.evals.scores import ItemScores, Scores, summarise
from wholestack.evals.tasks import Task, task_of
from wholestack.journal import JournalWriter, iterate_journal, write_atomic
from wholestack.record import Record, digest, from_json, to_builtins, to_json
from wholestack.runs import lock_folder

RULES = "scoring/1"
"""Version of everything between a backend's numbers and the metrics; part of every key."""

RESULT_FILE = "result.json"
SCORES_FILE = "scores.jsonl"
METRICS_FILE = "metrics.json"
PER_ITEM_FILE = "per_item.jsonl"

NOT_FINITE = "the model's numbers are not finite"
NOT_YET = "not scored yet"

Watch = Callable[[int, int], None]
"""Told how many items have their line, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringPlan(Record):
    """What a folder is the scoring of."""

    SCHEMA: ClassVar[str] = "scoring-plan/1"

    key: str
    """Hash of model, items and rules."""
    model: ModelIdentity
    """What scores."""
    item_set: str
    """Digest of the item set; its manifest holds the task."""
    rules: str
    """Version of the rules."""
    versions: dict[str, str]
    """Versions of Python and wholestack that began it; not in the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedScore(ItemScore):
    """One line of the journal: a score, and what binds it to its scoring."""

    check: str
    """Hash of the score and the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFile(Record):
    """What ``metrics.json`` holds."""

    SCHEMA: ClassVar[str] = "metrics/1"

    key: str
    """Of the scoring."""
    task: str
    """Name of the task; empty if there was none."""
    purpose: str
    """What a good score would say; never compared across purposes."""
    items: int
    """Items and refused questions of the file."""
    scored: int
    """Items with a score."""
    unscorable: dict[str, int]
    """The others, counted by reason."""
    metrics: dict[str, float]
    """Flat, name to number; names without the item set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A scoring as it stands in its folder."""

    folder: Path
    """Where."""
    plan: ScoringPlan
    """What was scored with what."""
    item_set: ItemSet
    """The items."""
    scores: ItemScores
    """What the model gave; items without a line are unscorable for :data:`NOT_YET`."""
    complete: bool
    """Whether every item has its line."""

    @property
    def identity(self) -> ModelIdentity:
        """The model."""
        return self.plan.model

    @property
    def items(self) -> tuple[Item, ...]:
        """The items in order."""
        return self.item_set.items

    @property
    def task(self) -> Task | None:
        """How the items were put, where a task did."""
        return task_of(self.item_set)

    @property
    def summary(self) -> Scores:
        """All numbers."""
        return summarise(self.scores)

    @property
    def unscorable(self) -> dict[str, int]:
        """By reason, refused questions of the file included."""
        counted = Counter(self.item_set.manifest.passed_over)
        counted.update(self.scores.reasons[self.scores.reasons != ""].tolist())
        return dict(sorted(counted.items()))

    @property
    def metrics(self) -> MetricsFile:
        """What ``metrics.json`` holds."""
        summary, task = self.summary, self.task
        return MetricsFile(
            key=self.plan.key,
            task=task.name if task else "",
            purpose=task.purpose if task else "",
            items=len(self.items) + sum(self.item_set.manifest.passed_over.values()),
            scored=summary.scored,
            unscorable=self.unscorable,
            metrics=flat_metrics(summary),
        )


def key_of(identity: ModelIdentity, item_set: ItemSet) -> str:
    """The key of a scoring: everything that reaches a number."""
    return digest(RULES, identity.digest, item_set.digest)


def folder_of(out: Path, stem: str, identity: ModelIdentity, item_set: ItemSet) -> Path:
    """Where a scoring lies.

    Args:
        out: Folder of results.
        stem: How the items are called, for instance the name of their file.
        identity: The model.
        item_set: The items.
    """
    return out / f"{_plain(stem)}-{_plain(identity.name)}-{key_of(identity, item_set)[:8]}"


def score_into(
    backend: Backend, item_set: ItemSet, out: Path, *, stem: str = "items", watch: Watch | None = None
) -> Result:
    """Score items, or go on with a scoring that was interrupted; a scoring that is complete is only read.

    Args:
        backend: The model.
        item_set: The items.
        out: Folder of results; the scoring gets a folder in it, named by its key.
        stem: How the items are called.
        watch: Told at the beginning and whenever an item has its line.

    Raises:
        RunBusyError: a live process is at work in the folder.
        RecordError: a line of the journal is damaged or from another scoring; names it.
        InputError: the model cannot score at all, or does not keep to the items it was given.
    """
    identity = backend.identity
    key = key_of(identity, item_set)
    with _held(folder_of(out, stem, identity, item_set)) as folder:
        _begin(folder, identity, item_set, key)
        there = {score.id for score in _scores_in(folder, key, item_set)}
        left = [item for item in item_set.items if item.id not in there]
        if watch:
            watch(len(there), len(item_set.items))
        if left:
            with JournalWriter(folder / SCORES_FILE, SealedScore) as journal:
                for done, score in enumerate(_checked(left, backend.score(left)), start=len(there) + 1):
                    journal.append(_sealed(score, key))
                    if watch:
                        watch(done, len(item_set.items))
        result = read_result(folder)
        write_atomic(folder / METRICS_FILE, to_json(result.metrics, indent=2))
        write_atomic(folder / PER_ITEM_FILE, own_lines(item_set, _beside(result)))
    return result


def read_result(folder: Path) -> Result:
    """A scoring, complete or not.

    Raises:
        InputError: the folder holds none, or its items are not those that were sealed.
        RecordError: a line or file is damaged or from another scoring; names it.
    """
    if not (folder / RESULT_FILE).is_file():
        raise InputError(
            f"{folder}: not a result of wholestack evals score (no {RESULT_FILE})", remedy="name its folder"
        )
    plan = from_json(ScoringPlan, _read(folder / RESULT_FILE), where=str(folder / RESULT_FILE))
    item_set = ItemSet.load(folder)
    if key_of(plan.model, item_set) != plan.key or item_set.digest != plan.item_set or plan.rules != RULES:
        raise RecordError(
            f"{folder}: items, model and key do not belong together", remedy="score again into a new --out"
        )
    found = _scores_in(folder, plan.key, item_set)
    return Result(
        folder=folder,
        plan=plan,
        item_set=item_set,
        scores=item_scores(item_set, found),
        complete=len(found) == len(item_set.items),
    )


def item_scores(item_set: ItemSet, scores: Iterable[ItemScore]) -> ItemScores:
    """Scores of single items in any order, as the arrays of which every metric is made.

    An item without a score is unscorable for :data:`NOT_YET`.
    """
    by_id = {score.id: score for score in scores}
    found = [by_id.get(item.id) or ItemScore(id=item.id, reason=NOT_YET) for item in item_set.items]
    pairs = list(zip(item_set.items, found, strict=True))
    texts = [item.delimiter + choice for item in item_set.items for choice in item.choices]
    _, clusters = np.unique([item.cluster for item in item_set.items], return_inverse=True)
    return ItemScores(
        item_set=item_set.digest,
        item_ids=np.array([item.id for item in item_set.items]),
        sources=np.array([item.source for item in item_set.items]),
        clusters=clusters.astype(np.int64),
        gold=np.array([item.gold for item in item_set.items], np.int64),
        reasons=np.array([score.reason for score in found]),
        truncated=np.array([score.truncated for score in found]),
        spanning=np.array([score.spanning for score in found]),
        choice_offsets=np.cumsum([0, *(len(item.choices) for item in item_set.items)]),
        nll_nats=np.array([nll for item, score in pairs for nll in score.nll_nats or _none(item, 0.0)], np.float64),
        answer_bytes=np.array([len(text.encode()) for text in texts], np.int64),
        answer_chars=np.array([len(text) for text in texts], np.int64),
        answer_tokens=np.array([count for item, score in pairs for count in score.tokens or _none(item, 0)], np.int64),
        positions=sum(score.positions for score in found),
    )


def flat_metrics(summary: Scores) -> dict[str, float]:
    """All numbers of a summary under flat names: a metric's own, its error with ``_se``, others with their path."""
    flat: dict[str, float] = {}
    for metric in summary.metrics:
        flat[metric.name] = metric.value
        if metric.standard_error is not None:
            flat[f"{metric.name}_se"] = metric.standard_error
    known = ("schema", "item_set", "metrics", "items", "scored", "unscorable", "positions")
    for name, value in to_builtins(summary).items():
        if name not in known:
            flat.update(_numbers(name, value))
    return flat


def _numbers(path: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(f"{path}.{name}", inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _numbers(f"{path}.{inner.get('name', index) if isinstance(inner, Mapping) else index}", inner)
    elif isinstance(value, int | float):
        yield path, value


@contextmanager
def _held(folder: Path) -> Iterator[Path]:
    """The folder, made if it is missing, and no other process in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"{folder}: cannot be made: {error.strerror}", remedy="choose another --out") from error
    handle = lock_folder(folder)
    try:
        yield folder
    finally:
        os.close(handle)


def _begin(folder: Path, identity: ModelIdentity, item_set: ItemSet, key: str) -> None:
    """Write what is to be done, or see that the folder is about just that."""
    path = folder / RESULT_FILE
    if path.exists():
        there = from_json(ScoringPlan, _read(path), where=str(path))
        if there.key != key:
            raise RunDirectoryError(f"{folder}: is the scoring {there.key}, not {key}", remedy="choose another --out")
        return
    if (folder / SCORES_FILE).exists():
        raise RunDirectoryError(
            f"{folder}: has scores and no {RESULT_FILE}", remedy="move it away or choose another --out"
        )
    item_set.save(folder)
    plan = ScoringPlan(
        key=key,
        model=identity,
        item_set=item_set.digest,
        rules=RULES,
        versions={"python": platform.python_version(), "wholestack": __version__},
    )
    write_atomic(path, to_json(plan, indent=2))


def _scores_in(folder: Path, key: str, item_set: ItemSet) -> list[ItemScore]:
    """The acknowledged scores, each bound to this scoring, to an item of it, and there once."""
    items = {item.id: item for item in item_set.items}
    path = folder / SCORES_FILE
    found: dict[str, ItemScore] = {}
    for number, line in enumerate(iterate_journal(path, SealedScore), start=1):
        score = _unsealed(line)
        sound = _sealed(score, key).check == line.check and line.id in items and line.id not in found
        if not sound or _misfit(items[line.id], score):
            raise RecordError(
                f"{path}:{number}: is damaged, doubled, or from another scoring",
                remedy=f"remove that line, and its item is scored again: sed -i {number}d {path}",
            )
        found[score.id] = score
    return list(found.values())


def _checked(items: Sequence[Item], scores: Iterable[ItemScore]) -> Iterator[ItemScore]:
    """Scores as they come, each that of the next item; what is no number is a reason and never zero."""
    coming = iter(scores)
    for item in items:
        score = next(coming, None)
        if score is None or score.id != item.id:
            got = "nothing" if score is None else f"a score of {score.id!r}"
            raise InputError(
                f"the model gave {got} for item {item.id!r}", remedy="see wholestack.testing.evals_backend"
            )
        misfit = _misfit(item, score)
        yield ItemScore(id=item.id, reason=misfit, positions=score.positions) if misfit else score


def _misfit(item: Item, score: ItemScore) -> str:
    """Why a score is none of this item; nothing if it is one."""
    wanted = 0 if score.reason else len(item.choices)
    if len(score.nll_nats) != wanted or len(score.tokens) != wanted:
        return f"the model gave {len(score.nll_nats)} numbers where {wanted} were due"
    return "" if all(map(math.isfinite, score.nll_nats)) else NOT_FINITE


def _sealed(score: ItemScore, key: str) -> SealedScore:
    plain = to_builtins(score)
    return SealedScore(**{**plain, "nll_nats": score.nll_nats, "tokens": score.tokens}, check=digest(key, plain))


def _unsealed(line: SealedScore) -> ItemScore:
    return ItemScore(
        id=line.id,
        reason=line.reason,
        nll_nats=line.nll_nats,
        tokens=line.tokens,
        truncated=line.truncated,
        spanning=line.spanning,
        positions=line.positions,
    )


def _beside(result: Result) -> dict[str, dict[str, Any]]:
    """What stands beside each item in ``per_item.jsonl``."""
    lines = _scores_in(result.folder, result.plan.key, result.item_set)
    return {score.id: {name: value for name, value in to_builtins(score).items() if name != "id"} for score in lines}


def _none(item: Item, nothing: Any) -> list[Any]:
    return [nothing] * len(item.choices)


def _plain(name: str) -> str:
    """A name as part of a folder's name: the last part of a path, letters that every file system takes."""
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:48] or "model"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
