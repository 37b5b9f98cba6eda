"""What one model gave to every choice of an item set, with the content of the items, wherever it was scored.

Two results are joined by content: the hash of everything the model read and was scored on (each pair of context and
delimiter + choice, and which one is right). So results of different programs meet, and an item whose text was changed
under the same id does not. Content that occurs more than once in a set is numbered as it comes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.scores import ItemScores
from wholestack.record import digest

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
    """The scores of one model with what the items say; make it with :func:`assemble`."""

    name: str
    """Of the model."""
    path: str
    """Where the result lies."""
    scores: ItemScores
    """The numbers; items in the order of ``keys``."""
    keys: tuple[str, ...]
    """``[items]``, hash of the content."""
    contexts: tuple[str, ...] = field(repr=False)
    """``[items]``, end of the context, on one line."""
    answers: tuple[str, ...] = field(repr=False)
    """``[items]``, beginning of the right choice, on one line."""
    counts_tokens: bool
    """Whether scored tokens are known; without them nothing can be taken per token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Several results over the same items in the same order."""

    results: tuple[ScoredItems, ...]
    """One a model, items aligned: equal ids, sources, clusters and item set."""
    left_out: tuple[int, ...]
    """For each model its items that another one does not have."""


def assemble(name: str, path: str, rows: Sequence[ScoredRow], *, item_set: str = "") -> ScoredItems:
    """Put rows together.

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
    seen: Counter[str] = Counter()
    keys = []
    for row in rows:
        content = digest([list(pair) for pair in row.requests], row.gold)
        keys.append(f"{content}.{seen[content]}" if seen[content] else content)
        seen[content] += 1
    return ScoredItems(
        name=name,
        path=path,
        scores=_item_scores(rows, item_set or digest(sorted(keys))),
        keys=tuple(keys),
        contexts=tuple(_end(row.requests[max(row.gold, 0)][0]) for row in rows),
        answers=tuple(_begin(row.requests[max(row.gold, 0)][1]) for row in rows),
        counts_tokens=all(row.tokens for row in rows if not row.reason),
    )


def match_items(results: Sequence[ScoredItems], *, common: bool = False) -> Matched:
    """Bring several results to the same items in the same order, that of the content's hashes.

    Args:
        results: Two or more.
        common: Also where the item sets differ: what is in only some of them is left out and counted.

    Raises:
        InputError: the item sets differ and ``common`` is false, or they have nothing in common.
    """
    shared = set(results[0].keys).intersection(*(each.keys for each in results[1:]))
    odd = next((each for each in results[1:] if set(each.keys) != set(results[0].keys)), None)
    if not shared and odd:
        raise InputError(f"{results[0].path} and {odd.path} have no item in common", remedy=_no_common_remedy(results))
    if odd and not common:
        raise InputError(
            f"{results[0].path} ({len(results[0].keys):,} items) and {odd.path} ({len(odd.keys):,} items)"
            f" were scored on different items, {len(shared):,} in common",
            remedy="score both on the same items, or add --common to compare those in common",
        )
    item_set = results[0].scores.item_set if not odd else digest(sorted(shared))
    order = sorted(shared)
    taken = [_take(each, order) for each in results]
    # The coarser clusters hold for all: a program that knows none must not make the error smaller.
    coarse = min(taken, key=lambda each: len(np.unique(each.scores.clusters)))
    first = taken[0].scores
    aligned = tuple(
        replace(
            each,
            scores=replace(
                each.scores,
                item_set=item_set,
                item_ids=first.item_ids,
                sources=first.sources,
                clusters=coarse.scores.clusters,
            ),
        )
        for each in taken
    )
    return Matched(results=aligned, left_out=tuple(len(each.keys) - len(shared) for each in results))


def _take(result: ScoredItems, order: Sequence[str]) -> ScoredItems:
    place = {key: number for number, key in enumerate(result.keys)}
    places = [place[key] for key in order]
    return replace(
        result,
        scores=result.scores.take(np.array(places, dtype=np.int64)),
        keys=tuple(order),
        contexts=tuple(result.contexts[at] for at in places),
        answers=tuple(result.answers[at] for at in places),
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


def _end(text: str) -> str:
    """The last characters of a text on one line."""
    line = " ".join(text[-4 * SHOWN_CHARACTERS :].split())
    return line if len(line) <= SHOWN_CHARACTERS else f"...{line[3 - SHOWN_CHARACTERS :]}"


def _begin(text: str) -> str:
    """The first characters of a text on one line."""
    line = " ".join(text[: 4 * SHOWN_CHARACTERS].split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 3]}..."


def _no_common_remedy(results: Sequence[ScoredItems]) -> str:
    ids = [set(each.scores.item_ids.tolist()) for each in results]
    same_ids = len(ids[0].intersection(*ids[1:]))
    if same_ids:
        return f"{same_ids:,} ids are the same, but not the text: another prompt, other choices or another answer"
    return "score both on the same items"
