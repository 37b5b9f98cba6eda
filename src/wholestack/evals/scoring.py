"""The scorer: the log-likelihood of every choice under a torch model, the context of an item computed once.

One row holds an item: its context, then all its choices, each attending to the context and to itself only
(``prepared.py``). Padding attends to nothing but padding and is attended by nothing. So padding, batch size,
padding side, order of items and sharing of contexts change no number beyond rounding: at most 1e-5 nats a scored
token in float32 and 1e-9 in float64.

A model that takes only tokens gets one row a choice, padded on the right, where a causal model cannot see it.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from wholestack.errors import InputError
from wholestack.evals.comparable import Texts
from wholestack.evals.prepared import PreparedItems, Rows, lay_out
from wholestack.evals.scores import ItemScores, Scores, summarise
from wholestack.evals.statistics import ASSUMED_PAIRED_SD_BPB, Floats, Ints

Padding = Literal["right", "left"]
ContextUse = Literal["auto", "shared", "per choice"]

NOT_FINITE = "the model's numbers are not finite"
_PADDING_SEGMENT = -1


class LanguageModel(Protocol):
    """A causal model that takes its positions and its attention mask from the caller.

    A row may be longer than the model's context; its positions never are.
    """

    def __call__(self, tokens: Tensor, *, positions: Tensor, mask: Tensor) -> Tensor:
        """Logits ``[B, T, V]`` of tokens ``[B, T]``, positions ``[B, T]``, mask ``[B, T, T]`` (True: may attend)."""


class TokensOnlyModel(Protocol):
    """A causal model that takes tokens and nothing else."""

    def __call__(self, tokens: Tensor) -> Tensor:
        """Logits ``[B, T, V]`` of tokens ``[B, T]``."""


@runtime_checkable
class SplitModel(Protocol):
    """A :class:`LanguageModel` in two steps, so that logits are computed only at the places that are scored."""

    def hidden(self, tokens: Tensor, *, positions: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states ``[B, T, D]``, final norm included."""

    def unembed(self, hidden: Tensor) -> Tensor:
        """Logits ``[..., V]`` of hidden states ``[..., D]``."""


Model = LanguageModel | TokensOnlyModel | SplitModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Some rows padded to a rectangle, and what is scored in them."""

    tokens: Ints
    """``[B, T]``."""
    positions: Ints
    """``[B, T]``."""
    segments: Ints
    """``[B, T]``."""
    order: Ints
    """``[B]``, number of each row among all."""
    rows: Ints
    """``[N]``, row of each scored token."""
    places: Ints
    """``[N]``, place in the row whose logits predict it."""
    scored: Ints
    """``[N]``, its index among all scored tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceScores:
    """What a model gave to prepared items."""

    nll_nats: Floats
    """``[choices]``, minus log-likelihood; 0 for those of an item without scores."""
    reasons: Texts
    """``[items]``, why the item has no scores; empty if it has."""
    positions: Ints
    """``[items]``, positions computed for each, padding included."""


def score(
    model: Model | nn.Module,
    prepared: PreparedItems,
    *,
    batch_size: int = 8,
    device: str | torch.device = "cpu",
    paired_sd_bpb: float = ASSUMED_PAIRED_SD_BPB,
) -> Scores:
    """All metrics of one pass over the items; see :func:`score_items` for the numbers of each item.

    Example:
        >>> # scores = score(model, PreparedItems.load(path)); scores.answer_bpb
    """
    return summarise(score_items(model, prepared, batch_size=batch_size, device=device), paired_sd_bpb=paired_sd_bpb)


def score_items(
    model: Model | nn.Module,
    prepared: PreparedItems,
    *,
    batch_size: int = 8,
    device: str | torch.device = "cpu",
    padding: Padding = "right",
    context_use: ContextUse = "auto",
) -> ItemScores:
    """Log-likelihood of every choice.

    Args:
        model: A causal language model; a ``torch.nn.Module`` is put into eval mode and back.
        prepared: The items, tokenised for this model.
        batch_size: Rows a batch.
        device: Where the model is.
        padding: Side on which short rows are filled up.
        context_use: ``shared`` computes the context of an item once, ``per choice`` once for each choice; ``auto``
            shares if the model takes ``positions`` and ``mask``.

    Returns:
        The scores; items for which the model gives numbers that are not finite are unscorable.

    Raises:
        InputError: the model cannot do what was asked, does not know a token, or returns another shape.
    """
    return _collect(
        prepared,
        score_choices(model, prepared, batch_size=batch_size, device=device, padding=padding, context_use=context_use),
    )


def score_choices(
    model: Model | nn.Module,
    prepared: PreparedItems,
    *,
    batch_size: int = 8,
    device: str | torch.device = "cpu",
    padding: Padding = "right",
    context_use: ContextUse = "auto",
) -> ChoiceScores:
    """What :func:`score_items` computes, without what the items say of themselves; arguments as there."""
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}, must be at least 1")
    steerable = _is_split(model) or _takes_positions_and_mask(model)
    if not steerable and (context_use == "shared" or padding == "left"):
        raise InputError("shared contexts and left padding need a model that takes positions and mask")
    share = steerable if context_use == "auto" else context_use == "shared"
    rows = lay_out(prepared, share_context=share)
    logits_at = _logits_at(model, steerable)
    nll_nats = np.zeros(len(rows.targets))
    item_of_row = _item_of_row(prepared, rows)
    positions = np.zeros(len(prepared.gold), np.int64)
    with _evaluating(model), torch.inference_mode():
        for batch in _batches(rows, batch_size, padding):
            np.add.at(positions, item_of_row[batch.order], batch.tokens.shape[1])
            nll_nats[batch.scored] = _nll_of_batch(logits_at, batch, rows.targets[batch.scored], torch.device(device))
    return collect_choices(prepared, rows.choices, nll_nats, positions)


def _item_of_row(prepared: PreparedItems, rows: Rows) -> Ints:
    """``[rows]``."""
    row_of_query = np.searchsorted(rows.offsets, rows.queries, side="right") - 1
    item_of_row = np.zeros(len(rows.lengths), np.int64)
    item_of_row[row_of_query] = np.searchsorted(prepared.choice_offsets, rows.choices, side="right") - 1
    return item_of_row


LogitsAt = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def _logits_at(model: Any, steerable: bool) -> LogitsAt:
    """A function of (tokens, positions, segments, rows, places) that gives logits ``[N, V]`` where they are scored."""

    def split(tokens: Tensor, positions: Tensor, segments: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        hidden = model.hidden(tokens, positions=positions, mask=_mask(segments))
        return _checked(model.unembed(_checked(hidden, tokens)[rows, places]))

    def whole(tokens: Tensor, positions: Tensor, segments: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        return _checked(model(tokens, positions=positions, mask=_mask(segments)), tokens)[rows, places]

    def plain(tokens: Tensor, positions: Tensor, segments: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        return _checked(model(tokens), tokens)[rows, places]

    if not steerable:
        return plain
    return split if _is_split(model) else whole


def _checked(output: Tensor, tokens: Tensor | None = None) -> Tensor:
    """A cache that returns a part of the rows would give wrong scores in silence; so look at the shape."""
    if tokens is not None and (output.ndim != 3 or output.shape[:2] != tokens.shape):
        raise InputError(f"the model returned {tuple(output.shape)} for tokens {tuple(tokens.shape)}, not [B, T, ...]")
    return output


def _mask(segments: Tensor) -> Tensor:
    """``[B, T, T]``: earlier or same place, and the key is context or of the same choice."""
    places = torch.arange(segments.shape[1], device=segments.device)
    causal = places[:, None] >= places[None, :]
    keys, queries = segments[:, None, :], segments[:, :, None]
    shared_with_query = (keys == 0) & (queries != _PADDING_SEGMENT)
    return causal & ((keys == queries) | shared_with_query)


def _nll_of_batch(logits_at: LogitsAt, batch: _Batch, targets: Ints, device: torch.device) -> Floats:
    """Minus log-likelihood in nats of each scored token of a batch, float64."""
    tensors = [
        torch.from_numpy(array).to(device)
        for array in (batch.tokens, batch.positions, batch.segments, batch.rows, batch.places)
    ]
    try:
        logits = logits_at(*tensors)
    except IndexError as error:
        raise InputError(
            f"the model does not know a token or position (tokens up to {int(batch.tokens.max())},"
            f" positions up to {int(batch.positions.max())}): {error}",
            remedy="prepare the items with the model's own tokenizer and context length",
        ) from error
    if int(targets.max()) >= logits.shape[-1]:
        raise InputError(
            f"token {int(targets.max())} is not among the model's {logits.shape[-1]}",
            remedy="prepare the items with the model's own tokenizer",
        )
    precise = logits if logits.dtype == torch.float64 else logits.float()
    nll = functional.cross_entropy(precise, torch.from_numpy(targets).to(device), reduction="none")
    return nll.double().cpu().numpy()


def _batches(rows: Rows, batch_size: int, padding: Padding) -> Iterator[_Batch]:
    """Rows sorted by length, longest first, so that little is padded and memory is at its most at once."""
    order = np.argsort(-rows.lengths, kind="stable")
    row_of_query = np.searchsorted(rows.offsets, rows.queries, side="right") - 1
    by_row = np.argsort(row_of_query, kind="stable")
    query_offsets = np.searchsorted(row_of_query[by_row], np.arange(len(order) + 1))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        lengths = rows.lengths[chosen]
        width = int(lengths.max())
        shifts = width - lengths if padding == "left" else np.zeros_like(lengths)
        within = np.arange(width)[None, :] - shifts[:, None]
        real = (within >= 0) & (within < lengths[:, None])
        source = np.where(real, rows.offsets[chosen][:, None] + within, 0)
        scored = np.concatenate([by_row[query_offsets[row] : query_offsets[row + 1]] for row in chosen])
        row = np.repeat(np.arange(len(chosen)), np.diff(query_offsets)[chosen])
        yield _Batch(
            tokens=np.where(real, rows.tokens[source], 0),
            positions=np.where(real, rows.positions[source], 0),
            segments=np.where(real, rows.segments[source], _PADDING_SEGMENT),
            order=chosen,
            rows=row,
            places=rows.queries[scored] - rows.offsets[chosen][row] + shifts[row],
            scored=scored,
        )


def collect_choices(prepared: PreparedItems, choices: Ints, nll_nats: Floats, positions: Ints) -> ChoiceScores:
    """Sum over the tokens of each choice; an item with any number that is not finite is unscorable.

    Args:
        prepared: The items.
        choices: ``[scored tokens]``, choice of each over all items.
        nll_nats: ``[scored tokens]``.
        positions: ``[items]``, positions computed for each.
    """
    count = int(prepared.choice_offsets[-1])
    finite = np.isfinite(nll_nats)
    bad_choices = np.bincount(choices[~finite].astype(np.int64), minlength=count) > 0
    bad_items = np.add.reduceat(bad_choices.astype(np.int64), prepared.choice_offsets[:-1]) > 0
    totals: Floats = np.zeros(count)
    np.add.at(totals, choices[finite].astype(np.int64), nll_nats[finite])
    totals[np.repeat(bad_items, np.diff(prepared.choice_offsets))] = 0
    return ChoiceScores(nll_nats=totals, reasons=np.where(bad_items, NOT_FINITE, prepared.reasons), positions=positions)


def _collect(prepared: PreparedItems, found: ChoiceScores) -> ItemScores:
    return ItemScores(
        item_set=prepared.item_set,
        item_ids=prepared.item_ids,
        sources=prepared.sources,
        clusters=prepared.clusters,
        gold=prepared.gold,
        reasons=found.reasons,
        truncated=prepared.truncated,
        spanning=prepared.spanning,
        choice_offsets=prepared.choice_offsets,
        nll_nats=found.nll_nats,
        answer_bytes=prepared.answer_bytes,
        answer_chars=prepared.answer_chars,
        answer_tokens=prepared.answer_tokens,
        positions=int(found.positions.sum()),
    )


def _is_split(model: Any) -> bool:
    return isinstance(model, SplitModel) and _takes_positions_and_mask(model.hidden)


def _takes_positions_and_mask(model: Any) -> bool:
    call = model.forward if isinstance(model, nn.Module) else model
    return {"positions", "mask"} <= set(inspect.signature(call).parameters)


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Eval mode for the time of scoring: dropout would make every pass another number."""
    training = isinstance(model, nn.Module) and model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()
