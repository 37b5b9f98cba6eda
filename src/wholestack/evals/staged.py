"""The scorer for models with a key-value cache: what several texts have in common is read once.

A row is an item: its context, then its choices as a tree, in which what several choices begin with stands once; each
place sees the context and the places between. A batch of rows is read in up to three stages: what all contexts of a
group begin with (few-shot examples), once; then as much context as every row of the batch has, with plain causal
attention, which needs no mask; then the rest with a mask of [rest, row]. So padding stands only at the end of a row,
and no mask grows with the square of a long context. Logits are computed once for each place that predicts something,
however many choices it predicts.

A model that ignores the caller's masks or positions reads one row a choice instead.

Shapes: B rows, T places of a row, D width, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from wholestack.errors import InputError
from wholestack.evals.prepared import PreparedItems
from wholestack.evals.scoring import ChoiceScores, collect_choices
from wholestack.evals.statistics import Floats, Ints

LEAST_COMMON_TOKENS = 48
"""A common beginning of contexts is read once if it is at least so long; copying its keys costs something too."""
MOST_PLACES = 16_384
"""Most places of a batch, common beginning included: bounds memory at long contexts."""
MOST_PLACES_CPU = 2_048
"""The same on a CPU, where more at once is no faster: what is computed leaves the caches, and memory comes new."""
LEAST_UNMASKED_PLACES = 96
"""Contexts are read before the choices from this length on; below it one pass with a small mask is faster."""
_MOST_LOGITS = 1 << 19
"""Most numbers in one piece of logits, unless a vocabulary is so large that the piece would have too few rows; what is
larger leaves the caches before it is summed."""
_LEAST_ROWS_OF_LOGITS = 128
"""Fewer rows at once read the weights of the head too often."""


class CachedModel(Protocol):
    """A causal model with a key-value cache."""

    @property
    def shared_tokens(self) -> int:
        """Longest text for which it obeys masks and positions; a longer one is read alone, from its start."""

    def read(
        self,
        tokens: Tensor,
        *,
        past: Any = None,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        keep: bool = False,
    ) -> tuple[Tensor, Any]:
        """Hidden states ``[B, T, D]`` of tokens ``[B, T]``, and the cache with them added; ``past`` is used up.

        Args:
            tokens: What is read.
            past: What was read before, from an earlier call.
            positions: ``[B, T]``; default 0, 1, 2, ...
            mask: ``[B, 1, T, past + T]``, true where attention is allowed; default causal.
            keep: Whether a cache is wanted, to read on behind these tokens.
        """

    def remember(self, tokens: Tensor) -> Any:
        """The cache of tokens ``[B, T]``, of which nothing else is wanted; as ``read`` with ``keep`` makes it."""

    def repeated(self, past: Any, rows: int) -> Any:
        """A copy of a cache of one row with so many rows, which leaves the original as it is."""

    def unembed(self, hidden: Tensor) -> Tensor:
        """Logits ``[N, V]`` of hidden states ``[N, D]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """One row: a context, and what is read behind it."""

    item: int
    context: Ints
    """Tokens, those of the common beginning left out."""
    answers: Sequence[Ints]
    """Scored tokens of each choice."""
    tree: "_Tree"
    """Their places behind the context."""
    first_choice: int
    """Number of the first choice over all items."""

    @property
    def size(self) -> int:
        """Places of the row."""
        return len(self.context) + len(self.tree.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """The choices of an item without their last tokens, which predict nothing that is scored; a place is a node.

    Whatever stands below a node comes behind it without a gap, so what a node is seen by is a range.
    """

    tokens: Ints
    """``[nodes]``."""
    depths: Ints
    """``[nodes]``, 0 for the first token of a choice."""
    ends: Ints
    """``[nodes]``, the first node behind it that does not stand below it."""
    paths: Sequence[Ints]
    """For each choice the nodes that its tokens but the last are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Rows whose contexts begin alike."""

    common: Ints
    rows: Sequence[_Texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Some rows as a rectangle, and what is scored in them."""

    tokens: Ints
    """``[B, T]``."""
    positions: Ints
    """``[B, T]``, counted from the start of the whole context."""
    ends: Ints
    """``[B, T]``, the first place behind each that does not see it."""
    places: Ints
    """``[N]``, which of the B x T places predicts each scored token."""
    targets: Ints
    """``[N]``, the scored tokens."""
    choices: Ints
    """``[N]``, number of the choice over all items."""


def score_choices(
    model: CachedModel, prepared: PreparedItems, *, batch_size: int = 8, device: str | torch.device = "cpu"
) -> ChoiceScores:
    """Minus log-likelihood of every choice of every item that can be scored.

    Args:
        model: The model, in eval mode.
        prepared: The items, tokenised for it.
        batch_size: Most rows a batch.
        device: Where the model is.

    Raises:
        InputError: ``batch_size`` is below 1.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}, must be at least 1")
    tally = _Tally(choices=[], nll_nats=[], positions=np.zeros(len(prepared.gold), np.int64))
    short, long = _rows(prepared, model.shared_tokens)
    with torch.inference_mode():
        for group in _groups(short):
            past = None
            if len(group.common):
                past = model.remember(_tensor(group.common[None], device))
                tally.positions[group.rows[0].item] += len(group.common)
            for rows in _batches(group.rows, batch_size, len(group.common), device):
                block = _lay_out(rows, len(group.common))
                tally.add(rows, block, model, _read(model, block, past, _shortest(rows), device))
        for rows in _batches(long, batch_size, 0, device):
            block = _lay_out(rows, 0)
            tally.add(rows, block, model, _Read(states=model.read(_tensor(block.tokens, device))[0], first=0))
    return collect_choices(prepared, _joined(tally.choices), _joined(tally.nll_nats), tally.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Hidden states of the places of some rows that may predict something."""

    states: Tensor
    """``[B, T - first, D]``."""
    first: int
    """Place of a row that they begin with."""

    def at(self, places: Ints, width: int) -> Tensor:
        """``[N, D]`` at some of the B x T places."""
        rows, columns = np.divmod(places, width)
        return self.states[_tensor(rows, self.states.device), _tensor(columns - self.first, self.states.device)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """What was found so far."""

    choices: list[Ints]
    nll_nats: list[Floats]
    positions: Ints

    def add(self, rows: Sequence[_Texts], block: _Block, model: CachedModel, read: _Read) -> None:
        self.nll_nats.append(_nll_of(model, read, block))
        self.choices.append(block.choices)
        np.add.at(self.positions, [row.item for row in rows], block.tokens.shape[1])


def _rows(prepared: PreparedItems, shared_tokens: int) -> tuple[list[_Texts], list[_Texts]]:
    """One row an item; and for items with a text too long for sharing, one row a choice."""
    contexts = np.split(prepared.contexts, prepared.context_offsets[1:-1])
    answers = np.split(prepared.answers, prepared.answer_offsets[1:-1])
    short: list[_Texts] = []
    long: list[_Texts] = []
    for item in np.flatnonzero(prepared.reasons == "").tolist():
        first, end = prepared.choice_offsets[item : item + 2].tolist()
        context, choices = contexts[item], answers[first:end]
        if len(context) + max(map(len, choices)) - 1 <= shared_tokens:
            short.append(_texts(item, context, choices, first))
        else:
            long += [_texts(item, context, [answer], first + nth) for nth, answer in enumerate(choices)]
    return short, long


def _texts(item: int, context: Ints, answers: Sequence[Ints], first_choice: int) -> _Texts:
    return _Texts(item=item, context=context, answers=answers, tree=_tree(answers), first_choice=first_choice)


def _tree(answers: Sequence[Ints]) -> _Tree:
    inner: list[list[int]] = [answer[:-1].tolist() for answer in answers]
    tokens: list[int] = []
    depths: list[int] = []
    ends: list[int] = []
    paths: list[list[int]] = [[] for _ in inner]
    path: list[int] = []
    for choice in sorted(range(len(inner)), key=inner.__getitem__):
        # Sorted, a choice shares most with the one before it.
        shared = 0
        while shared < min(len(path), len(inner[choice])) and tokens[path[shared]] == inner[choice][shared]:
            shared += 1
        for node in path[shared:]:
            ends[node] = len(tokens)
        path = [*path[:shared], *range(len(tokens), len(tokens) + len(inner[choice]) - shared)]
        paths[choice] = path
        tokens += inner[choice][shared:]
        depths += range(shared, len(inner[choice]))
        ends += [0] * (len(inner[choice]) - shared)
    for node in path:
        ends[node] = len(tokens)
    return _Tree(
        tokens=np.array(tokens, np.int64),
        depths=np.array(depths, np.int64),
        ends=np.array(ends, np.int64),
        paths=[np.array(path, np.int64) for path in paths],
    )


def _groups(rows: Sequence[_Texts]) -> Iterator[_Group]:
    """Rows by what their contexts begin with; those that begin like no other come last, together."""
    alone: list[_Texts] = []
    for group in _neighbours(sorted(rows, key=lambda row: row.context.tolist())):
        common = min(_common_length(group[0].context, group[-1].context), _shortest(group) - 1)
        if len(group) > 1 and common >= LEAST_COMMON_TOKENS:
            yield _Group(common=group[0].context[:common], rows=[_without(row, common) for row in group])
        else:
            alone += group
    if alone:
        yield _Group(common=np.zeros(0, np.int64), rows=alone)


def _shortest(rows: Sequence[_Texts]) -> int:
    return min(len(row.context) for row in rows)


def _neighbours(rows: Sequence[_Texts]) -> Iterator[list[_Texts]]:
    """Runs of sorted rows in which each shares with the first at least half of what the first two share."""
    run: list[_Texts] = []
    shared = 0
    for row in rows:
        common = _common_length(run[0].context, row.context) if run else 0
        if run and common >= LEAST_COMMON_TOKENS and 2 * common >= shared:
            shared = shared or common
            run.append(row)
        else:
            if run:
                yield run
            run, shared = [row], 0
    if run:
        yield run


def _common_length(left: Ints, right: Ints) -> int:
    length = min(len(left), len(right))
    different = np.flatnonzero(left[:length] != right[:length])
    return int(different[0]) if len(different) else length


def _without(row: _Texts, common: int) -> _Texts:
    return replace(row, context=row.context[common:])


def _batches(
    rows: Sequence[_Texts], batch_size: int, common: int, device: str | torch.device
) -> Iterator[Sequence[_Texts]]:
    """Rows of similar size, longest first, so that little is padded and memory is at its most at once."""
    ordered = sorted(rows, key=lambda row: (-row.size, -len(row.context)))
    most = MOST_PLACES_CPU if torch.device(device).type == "cpu" else MOST_PLACES
    start = 0
    while start < len(ordered):
        longest = max(1, common + ordered[start].size)
        end = start + max(1, min(batch_size, most // longest))
        yield ordered[start:end]
        start = end


def _lay_out(rows: Sequence[_Texts], common: int) -> _Block:
    """Each context with its choices one behind the other, and which place predicts which token."""
    width = max(row.size for row in rows)
    tokens, positions = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
    ends = np.tile(np.arange(1, width + 1), (len(rows), 1))
    places: list[Ints] = []
    for number, row in enumerate(rows):
        context, size = len(row.context), row.size
        tokens[number, :size] = np.concatenate((row.context, row.tree.tokens))
        positions[number, :size] = common + np.concatenate((np.arange(context), context + row.tree.depths))
        ends[number, :context], ends[number, context:size] = size, context + row.tree.ends
        places += [number * width + context + np.concatenate(([-1], path)) for path in row.tree.paths]
    answers = [answer for row in rows for answer in row.answers]
    numbers = [row.first_choice + nth for row in rows for nth in range(len(row.answers))]
    return _Block(
        tokens=tokens,
        positions=positions,
        ends=ends,
        places=np.concatenate(places),
        targets=np.concatenate(answers),
        choices=np.repeat(numbers, [len(answer) for answer in answers]),
    )


def _read(model: CachedModel, block: _Block, past: Any, contexts: int, device: str | torch.device) -> _Read:
    """Rows behind what was read before, each of whose contexts has so many places."""
    tokens, positions, ends = (_tensor(each, device) for each in (block.tokens, block.positions, block.ends))
    first = 0
    if past is not None:
        common = int(positions[0, 0])
        behind = functional.pad(ends + common, (common, 0), value=common + tokens.shape[1])
        past, mask = model.repeated(past, len(tokens)), row_mask(behind, common)
    elif contexts > LEAST_UNMASKED_PLACES:
        first = contexts - 1
        past, mask = model.remember(tokens[:, :first]), row_mask(ends, first)
    else:
        mask = row_mask(ends, 0)
    states, _ = model.read(tokens[:, first:], past=past, positions=positions[:, first:], mask=mask)
    return _Read(states=states, first=first)


def row_mask(ends: Tensor, first: int) -> Tensor:
    """What the places of a row from ``first`` on may attend to: themselves, and what is seen up to them.

    Args:
        ends: ``[B, T]``, the first place behind each that does not see it.
        first: First place that asks.

    Returns:
        ``[B, 1, T - first, T]``, true where attention is allowed.
    """
    places = torch.arange(ends.shape[1], device=ends.device)
    asking = places[first:, None]
    return ((asking >= places) & (asking < ends[:, None]))[:, None]


def _nll_of(model: CachedModel, read: _Read, block: _Block) -> Floats:
    """Logits once for each place, however many tokens it predicts; in pieces, for the memory."""
    found, which = np.unique(block.places, return_inverse=True)
    wanted = read.at(found, block.tokens.shape[1])
    pairs = [_tensor(each, wanted.device) for each in (which, block.targets)]
    nll = torch.zeros(len(which), dtype=torch.float64, device=wanted.device)
    step = max(_LEAST_ROWS_OF_LOGITS, _MOST_LOGITS // model.unembed(wanted[:1]).shape[-1])
    for start in range(0, len(found), step):
        logits = model.unembed(wanted[start : start + step])
        precise = logits if logits.dtype == torch.float64 else logits.float()
        inside = (pairs[0] >= start) & (pairs[0] < start + step)
        row = pairs[0][inside] - start
        nll[inside] = -precise.log_softmax(-1)[row, pairs[1][inside]].double()
    return nll.cpu().numpy()


def _tensor(array: Ints, device: str | torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def _joined(arrays: Sequence[Any]) -> Any:
    return np.concatenate(arrays) if arrays else np.zeros(0)
