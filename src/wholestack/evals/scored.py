"""What one model gave to every item of a set, with the content of the items, wherever it was scored.

Two results are matched **by content**: the hash of everything that the model read and was judged by (each pair of
context and delimiter + choice and which one is right; of written answers the prompt and the right answer). So results
of different programs meet, and an item whose text was changed under the same id does not. Content that occurs more than
once in a set is numbered as it comes.

Where it is asked for they are matched **by id** instead: the prompts may differ (with examples in front and without,
another template), what is asked may not: items of the same id must have the same choices, as they are scored, and the
same right answer. How many prompts differ is counted, and how texts were written is said.

Never matched are results of different purposes (a score over given choices says nothing beside one of written answers)
and verdicts by different rules or checkers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.comparable import CHOOSING, ItemNumbers, MetricFamily, relabelled
from wholestack.evals.scores import ItemScores
from wholestack.evals.tasks import PURPOSES, Purpose
from wholestack.record import digest

By = Literal["content", "id"]
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One item as some program scored it."""

    id: str
    """Within its result."""
    source: str
    """Task or part of the set."""
    cluster: str
    """Items of equal clusters are not independent."""
    requests: tuple[tuple[str, str], ...]
    """``[choices]``, context and delimiter + choice."""
    gold: int
    """Index of the right choice; -1 if unknown, with a reason."""
    nll_nats: tuple[float, ...] = ()
    """``[choices]``; empty where there is a reason."""
    tokens: tuple[int, ...] = ()
    """``[choices]``, scored tokens; empty where there is a reason or nobody says."""
    reason: str = ""
    """Why it could not be scored; empty if it was."""
    truncated: bool = False
    """Whether the context was cut on the left."""
    spanning: bool = False
    """Whether a token spans the join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredItems:
    """The scores of one model with what the items say; make it with :func:`assemble` or from written answers."""

    name: str
    """Of the model."""
    path: str
    """Where the result lies."""
    scores: ItemNumbers
    """The numbers; items in the order of ``keys``."""
    keys: tuple[str, ...]
    """``[items]``, hash of the content: everything that was read and judged by."""
    asked: tuple[str, ...]
    """``[items]``, hash of what is asked, whatever the prompt: the choices and the right answer."""
    contexts: tuple[str, ...] = field(repr=False)
    """``[items]``, end of the context, on one line."""
    answers: tuple[str, ...] = field(repr=False)
    """``[items]``, beginning of the right answer, on one line."""
    given: tuple[str, ...] = field(repr=False)
    """``[items]``, beginning of what the model answered, on one line; of choices all empty."""
    counts_tokens: bool
    """Whether scored tokens are known; without them nothing can be taken per token."""
    purpose: Purpose = "base"
    """Results of different purposes are never compared."""
    family: MetricFamily = CHOOSING
    """What can be compared of it."""
    judged_by: str = ""
    """The rule and checker of written answers; empty where it chose."""
    written_with: str = ""
    """How the texts were written; empty where it chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Several results over the same items in the same order."""

    results: tuple[ScoredItems, ...]
    """One a model, items aligned: equal ids, sources, clusters and item set."""
    left_out: tuple[int, ...]
    """For each model its items that another one does not have."""
    prompts_differ: int
    """Items whose prompt is not the same in all results; 0 unless they were matched by id."""
    written_with: tuple[str, ...]
    """The ways in which texts were written, where they differ; empty unless they were matched by id."""


def assemble(name: str, path: str, rows: Sequence[ScoredRow], *, item_set: str = "") -> ScoredItems:
    """Put rows of choices together.

    Args:
        name: Of the model.
        path: Where they were read.
        rows: One an item.
        item_set: Digest of the set; default the digest of the content, whatever its order.

    Raises:
        InputError: there are none.
    """
    if not rows:
        raise InputError(f"{path}: holds no scored item")
    keys = numbered([digest([list(pair) for pair in row.requests], row.gold) for row in rows])
    return ScoredItems(
        name=name,
        path=path,
        scores=_item_scores(rows, item_set or digest(sorted(keys))),
        keys=keys,
        asked=tuple(digest([continuation for _, continuation in row.requests], row.gold) for row in rows),
        contexts=tuple(end_of(row.requests[max(row.gold, 0)][0]) for row in rows),
        answers=tuple(begin_of(row.requests[max(row.gold, 0)][1]) for row in rows),
        given=("",) * len(rows),
        counts_tokens=all(row.tokens for row in rows if not row.reason),
    )


def numbered(keys: Sequence[str]) -> tuple[str, ...]:
    """Keys as they are, and those that were there before with a number behind them."""
    seen: Counter[str] = Counter()
    found = []
    for key in keys:
        found.append(f"{key}.{seen[key]}" if seen[key] else key)
        seen[key] += 1
    return tuple(found)


def match_items(results: Sequence[ScoredItems], *, by: By = "content", common: bool = False) -> Matched:
    """Bring several results to the same items in the same order, that of the content's hashes or of the ids.

    Args:
        results: Two or more.
        by: ``content``, or ``id`` where the prompts may differ and what is asked may not.
        common: Also where the item sets differ: what is in only some of them is left out and counted.

    Raises:
        InputError: the purposes or the ways to judge differ, the item sets differ and ``common`` is false, they have
            nothing in common, or items of one id ask for different things.
    """
    if by not in get_args(By):
        raise InputError(f"no way to match items: {by!r}", remedy="by content or by id")
    require_one_way(results)
    contents = [dict(zip(each.scores.item_ids.tolist(), each.keys, strict=True)) for each in results]
    if by == "id":
        results = [_keyed_by_id(each) for each in results]
    shared = set(results[0].keys).intersection(*(each.keys for each in results[1:]))
    odd = next((each for each in results[1:] if set(each.keys) != set(results[0].keys)), None)
    if not shared and odd:
        raise InputError(f"{results[0].path} and {odd.path} have no item in common", remedy=_remedy(results))
    if odd and not common:
        raise InputError(
            f"{results[0].path} ({len(results[0].keys):,} items) and {odd.path} ({len(odd.keys):,} items)"
            f" were scored on different items, {len(shared):,} in common",
            remedy=f"{_remedy(results)}, or add --common to compare those in common",
        )
    if by == "id":
        _require_same_questions(results)
    else:
        _require_same_writing(results)
    order = sorted(shared)
    differ = sum(len({keys[key] for keys in contents}) > 1 for key in order) if by == "id" else 0
    item_set = results[0].scores.item_set if not odd and not differ else digest(by, order)
    taken = [_take(each, order) for each in results]
    # The coarser clusters hold for all: a program that knows none must not make the error smaller.
    coarse = min(taken, key=lambda each: len(np.unique(each.scores.clusters)))
    first = taken[0].scores
    aligned = tuple(
        replace(
            each,
            scores=relabelled(
                each.scores,
                item_set=item_set,
                item_ids=first.item_ids,
                sources=first.sources,
                clusters=coarse.scores.clusters,
            ),
        )
        for each in taken
    )
    ways = list(dict.fromkeys(each.written_with for each in results))
    return Matched(
        results=aligned,
        left_out=tuple(len(each.keys) - len(shared) for each in results),
        prompts_differ=differ,
        written_with=tuple(ways) if len(ways) > 1 else (),
    )


def require_one_way(results: Sequence[ScoredItems]) -> None:
    """Whether results may stand beside each other at all.

    Raises:
        InputError: their purposes or the ways in which answers were judged differ; names two.
    """
    first = results[0]
    for each in results[1:]:
        if each.purpose != first.purpose:
            raise InputError(
                f"{first.path} is for {PURPOSES[first.purpose]}; {each.path} is for {PURPOSES[each.purpose]}:"
                " these are different measures and never compared",
                remedy="compare results of one purpose",
            )
        if each.judged_by != first.judged_by:
            raise InputError(
                f"{first.path} was judged by {first.judged_by}, {each.path} by {each.judged_by}",
                remedy="judge both alike with wholestack evals write: the texts are kept and not written again",
            )


def _require_same_writing(results: Sequence[ScoredItems]) -> None:
    for each in results[1:]:
        if each.written_with != results[0].written_with:
            raise InputError(
                f"{results[0].path} was written with {results[0].written_with}; {each.path} with {each.written_with}",
                remedy="write both alike, or compare them as they are with --by id",
            )


def _keyed_by_id(result: ScoredItems) -> ScoredItems:
    ids = tuple(result.scores.item_ids.tolist())
    twice = next((name for name, times in Counter(ids).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{result.path}: id {twice!r} is there twice, so items cannot be matched by it")
    return replace(result, keys=ids)


def _require_same_questions(results: Sequence[ScoredItems]) -> None:
    """Items of one id may differ in their prompts and in nothing else."""
    first = dict(zip(results[0].keys, results[0].asked, strict=True))
    for each in results[1:]:
        odd = [key for key, asked in zip(each.keys, each.asked, strict=True) if first.get(key, asked) != asked]
        if odd:
            raise InputError(
                f"{results[0].path} and {each.path} ask for different things under {len(odd):,} ids, for instance"
                f" {odd[0]!r}: other choices, another delimiter or another right answer",
                remedy="only prompts may differ between items of one id",
            )


def _take(result: ScoredItems, order: Sequence[str]) -> ScoredItems:
    place = {key: number for number, key in enumerate(result.keys)}
    places = [place[key] for key in order]
    return replace(
        result,
        scores=result.scores.take(np.array(places, dtype=np.int64)),
        keys=tuple(order),
        asked=tuple(result.asked[at] for at in places),
        contexts=tuple(result.contexts[at] for at in places),
        answers=tuple(result.answers[at] for at in places),
        given=tuple(result.given[at] for at in places),
    )


def _item_scores(rows: Sequence[ScoredRow], item_set: str) -> ItemScores:
    _, clusters = np.unique([row.cluster for row in rows], return_inverse=True)
    texts = [continuation for row in rows for _, continuation in row.requests]
    sizes = [len(row.requests) for row in rows]

    def of_choices(name: str) -> list[float]:
        return [number for row in rows for number in getattr(row, name) or [0] * len(row.requests)]

    return ItemScores(
        item_set=item_set,
        item_ids=np.array([row.id for row in rows]),
        sources=np.array([row.source for row in rows]),
        clusters=clusters.astype(np.int64),
        gold=np.array([max(row.gold, 0) for row in rows], dtype=np.int64),
        reasons=np.array([row.reason for row in rows]),
        truncated=np.array([row.truncated for row in rows]),
        spanning=np.array([row.spanning for row in rows]),
        choice_offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        nll_nats=np.array(of_choices("nll_nats"), dtype=np.float64),
        answer_bytes=np.array([len(text.encode()) for text in texts], dtype=np.int64),
        answer_chars=np.array([len(text) for text in texts], dtype=np.int64),
        answer_tokens=np.array(of_choices("tokens"), dtype=np.int64),
        positions=0,
    )


def end_of(text: str) -> str:
    """The last characters of a text on one line."""
    line = " ".join(text[-4 * SHOWN_CHARACTERS :].split())
    return line if len(line) <= SHOWN_CHARACTERS else f"...{line[3 - SHOWN_CHARACTERS :]}"


def begin_of(text: str) -> str:
    """The first characters of a text on one line."""
    line = " ".join(text[: 4 * SHOWN_CHARACTERS].split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 3]}..."


def _remedy(results: Sequence[ScoredItems]) -> str:
    """What to do about results of different items."""
    ids = [set(each.scores.item_ids.tolist()) for each in results]
    same_ids = len(ids[0].intersection(*ids[1:]))
    if same_ids and any(set(each.keys) != names for each, names in zip(results, ids, strict=True)):
        return (
            f"{same_ids:,} ids are the same, but not the text: another prompt, other choices or another answer;"
            " --by id compares them where only the prompts differ"
        )
    return "score both on the same items"
