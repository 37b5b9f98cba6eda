"""Results by key: what a model gave to every item of a set, kept where nothing stale can be found.

The key is the hash of the model's identity, the item set's digest and the version of these rules; it names the folder
and binds every line of the journal, so a line of another scoring, or one with a digit changed, is never taken. A
folder, ``<items>-<model>-<first 8 digits of the key>/``, holds

``result.json``                   what was scored, with what (:class:`ScoringPlan`); written first
``items.jsonl``, ``manifest.json``  the sealed items, as the model read them
``scores.jsonl``                  one sealed :class:`ItemScore` an item, on the disk before it counts; a killed
                                  scoring goes on behind its last line
``metrics.json``                  the numbers; no times in it, so two runs of one scoring are equal to the bit
``per_item.jsonl``                items, what was kept of their rows, and their scores; again a file of items

The last two follow from the others and are written when every item has its line.
"""

import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from wholestack import __version__
from wholestack.errors import InputError, RecordError
from wholestack.evals.backend import Backend, ItemScore, ModelIdentity, not_done
from wholestack.evals.items import Item, ItemSet, own_lines
from wholestack.evals.keyed import held, keyed_folder
from wholestack.evals.scores import ItemScores, Scores, summarise
from wholestack.evals.sealed import SealedKind, Watch
from wholestack.evals.tasks import Task, task_of
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, to_json

RULES = "scoring/1"
"""Version of everything between a backend's numbers and the metrics; part of every key."""

RESULT_FILE = "result.json"
SCORES_FILE = "scores.jsonl"
METRICS_FILE = "metrics.json"
PER_ITEM_FILE = "per_item.jsonl"

NOT_FINITE = "the model's numbers are not finite"
NOT_YET = "not scored yet"


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


SCORING = SealedKind(
    plan_file=RESULT_FILE,
    plan=ScoringPlan,
    lines_file=SCORES_FILE,
    line=ItemScore,
    called="scoring",
    holds="scores",
    again="its item is scored again",
    command="wholestack evals score",
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A scoring as it stands in its folder."""

    folder: Path
    """Where."""
    plan: ScoringPlan
    """What was scored with what."""
    item_set: ItemSet
    """The items."""
    by_item: tuple[ItemScore, ...]
    """What the model gave, in the order in which it did."""

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
    def complete(self) -> bool:
        """Whether every item has its line."""
        return len(self.by_item) == len(self.items)

    @cached_property
    def scores(self) -> ItemScores:
        """What the model gave as arrays; items without a line are unscorable for :data:`NOT_YET`."""
        return item_scores(self.item_set, self.by_item)

    @cached_property
    def summary(self) -> Scores:
        """All numbers; questions of the file that are no items count as unscorable."""
        found, refused = summarise(self.scores, thorough=True), self.item_set.manifest.passed_over
        counted = Counter(found.unscorable) + Counter(refused)
        # Positions depend on how many rows were computed at a time, which is no part of what was asked.
        return replace(
            found, items=found.items + sum(refused.values()), unscorable=dict(sorted(counted.items())), positions=0
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
    return keyed_folder(out, stem, identity.name, key_of(identity, item_set))


def score_into(
    backend: Backend,
    item_set: ItemSet,
    out: Path,
    *,
    stem: str = "items",
    watch: Watch | None = None,
    keep_every_s: float = 0.5,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Score items, or go on with a scoring that was interrupted; a scoring that is complete is only read.

    Args:
        backend: The model.
        item_set: The items.
        out: Folder of results; the scoring gets a folder in it, named by its key.
        stem: How the items are called.
        watch: Told at the beginning and whenever items have their lines.
        keep_every_s: Scores that come faster share one write to the disk; a kill costs at most so much work.
        clock: Seconds that only grow.

    Raises:
        RunBusyError: a live process is at work in the folder.
        RecordError: a line of the journal is damaged or from another scoring; names it.
        InputError: the model cannot score at all, or does not keep to the items it was given.
    """
    identity = backend.identity
    key = key_of(identity, item_set)
    with held(folder_of(out, stem, identity, item_set)) as folder:
        plan = ScoringPlan(
            key=key,
            model=identity,
            item_set=item_set.digest,
            rules=RULES,
            versions={"python": platform.python_version(), "wholestack": __version__},
        )
        SCORING.begin(folder, plan, save=lambda: item_set.save(folder))
        there = {score.id for score in _scores_in(folder, key, item_set)}
        left = not_done(item_set.items, there)
        if watch:
            watch(len(there), len(item_set.items))
        if left:
            done = len(there)
            coming = backend.score(item_set.items, done=there)
            with SCORING.writer(folder, key) as append:
                for together in _gathered(_checked(left, coming), keep_every_s, clock):
                    append(together)
                    done += len(together)
                    if watch:
                        watch(done, len(item_set.items))
        result = read_result(folder)
        write_atomic(folder / METRICS_FILE, to_json(result.summary, indent=2))
        write_atomic(folder / PER_ITEM_FILE, own_lines(item_set, _beside(result.by_item)))
    return result


def items_left(out: Path, stem: str, identity: ModelIdentity, item_set: ItemSet) -> tuple[Item, ...]:
    """What a scoring with these arguments has still to ask the model for.

    Raises:
        RecordError: a line of the journal is damaged or from another scoring; names it.
    """
    folder = folder_of(out, stem, identity, item_set)
    if not SCORING.is_in(folder):
        return item_set.items
    there = {score.id for score in _scores_in(folder, key_of(identity, item_set), item_set)}
    return tuple(not_done(item_set.items, there))


def read_result(folder: Path) -> Result:
    """A scoring, complete or not.

    Raises:
        InputError: the folder holds none, or its items are not those that were sealed.
        RecordError: a line or file is damaged or from another scoring; names it.
    """
    plan = SCORING.read_plan(folder)
    item_set = ItemSet.load(folder)
    if key_of(plan.model, item_set) != plan.key or item_set.digest != plan.item_set or plan.rules != RULES:
        raise RecordError(
            f"{folder}: items, model and key do not belong together", remedy="score again into a new --out"
        )
    return Result(folder=folder, plan=plan, item_set=item_set, by_item=tuple(_scores_in(folder, plan.key, item_set)))


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


def _scores_in(folder: Path, key: str, item_set: ItemSet) -> list[ItemScore]:
    """The acknowledged scores, each that of an item of the set."""
    items = {item.id: item for item in item_set.items}
    return SCORING.read_lines(
        folder, key, lambda score: score.id if score.id in items and not _misfit(items[score.id], score) else None
    )


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


def _gathered(
    scores: Iterable[ItemScore], every_s: float, clock: Callable[[], float]
) -> Iterator[tuple[ItemScore, ...]]:
    """Scores in the parts in which they are written; what is there when the model fails or is interrupted, too."""
    part: list[ItemScore] = []
    last = clock()
    try:
        for score in scores:
            part.append(score)
            if clock() - last >= every_s:
                yield tuple(part)
                part, last = [], clock()
    except (Exception, KeyboardInterrupt):
        # Nothing is handled here: what was computed, and perhaps paid for, is kept before the error goes on.
        if part:
            yield tuple(part)
        raise
    if part:
        yield tuple(part)


def _misfit(item: Item, score: ItemScore) -> str:
    """Why a score is none of this item; nothing if it is one."""
    wanted = 0 if score.reason else len(item.choices)
    if len(score.nll_nats) != wanted or len(score.tokens) != wanted:
        return f"the model gave {len(score.nll_nats)} numbers where {wanted} were due"
    return "" if all(map(math.isfinite, score.nll_nats)) else NOT_FINITE


def _beside(scores: Iterable[ItemScore]) -> dict[str, dict[str, Any]]:
    """What stands beside each item in ``per_item.jsonl``."""
    said = ("reason", "nll_nats", "tokens", "truncated", "spanning")
    return {score.id: {name: getattr(score, name) for name in said} for score in scores}


def _none(item: Item, nothing: Any) -> list[Any]:
    return [nothing] * len(item.choices)
