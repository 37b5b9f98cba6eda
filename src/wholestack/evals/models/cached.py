"""A causal model of transformers as the scorer and the writer use it: read with a cache, unembed where needed.

The classes of transformers differ in what they make of a mask and of positions that the caller gives (ALiBi ignores
positions, a recurrent layer ignores both), and in what stands between the last hidden state and the logits (caps,
scales). So nothing is assumed: :func:`wrap` tries each short cut on a short text and takes it only if the numbers are
those of the plain model. A mask of the caller replaces that of a sliding window, so texts longer than the window are
read without one.

Where only the keys and values of a text are wanted, the last layer owes nothing else: :class:`_Enough` leaves the
model there, before its attention and all that follows. Of a model of two layers that is nearly half of the work, of
one of thirty some two per cent.
"""

import inspect
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from wholestack.errors import InputError
from wholestack.evals.staged import row_mask

_ROUNDINGS = 64
"""Roundings of the largest number by which two ways to the same number may differ."""
_MOST_TOLERANCE_NATS = 0.25
"""Bound of that in half precision."""
_CONTEXT, _FIRST, _SECOND = (11, 7, 23, 42, 5, 31), (17, 3, 29), (2, 37, 13)
"""Tokens of the text that short cuts are tried on; taken modulo the vocabulary."""
_BREAKS = (TypeError, ValueError, RuntimeError, AttributeError, IndexError, NotImplementedError)
"""What a class raises that has no such arguments, or another kind of cache."""


@dataclass(frozen=True, kw_only=True)
class CachedTransformer:
    """See :class:`wholestack.evals.staged.CachedModel`."""

    model: Any
    """A causal language model of transformers in eval mode."""
    shared_tokens: int
    """Longest text for which it obeys masks and positions, 0 if it never does."""
    head_apart: bool
    """Whether logits are its head on its last hidden state and nothing else."""
    last_kept: int | None = None
    """Last layer that keeps keys and values, if reading may stop there."""

    def read(
        self,
        tokens: Tensor,
        *,
        past: Any = None,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        keep: bool = False,
    ) -> tuple[Tensor, Any]:
        """Hidden states (or logits, if the head is not apart) and the cache."""
        cache = DynamicCache() if keep and past is None else past
        given: dict[str, Any] = {"use_cache": cache is not None}
        if cache is not None:
            given[_cache_name(self.model)] = cache
        if positions is not None:
            given["position_ids"] = positions
        if mask is not None:
            given["attention_mask"] = _additive(mask, self.model.dtype)
        if self.head_apart:
            return self.model.base_model(tokens, **given).last_hidden_state, cache
        return self.model(tokens, **given).logits, cache

    def remember(self, tokens: Tensor) -> Any:
        """The cache alone."""
        if self.last_kept is None:
            return self.read(tokens, keep=True)[1]
        past = DynamicCache()
        with suppress(_Enough):
            self.read(tokens, past=_StoppingCache(past, self.last_kept))
        return past

    def repeated(self, past: Any, rows: int) -> Any:
        """A cache of one row as one of many."""
        copy = DynamicCache()
        for number, layer in enumerate(past.layers):
            copy.update(layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1), number)
        return copy

    def unembed(self, hidden: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.model.get_output_embeddings()(hidden) if self.head_apart else hidden
        return logits


class _Enough(Exception):
    """All that was wanted is in the cache: no error, the way out of a model of somebody else."""


class _StoppingCache(DynamicCache):
    """Fills another cache and leaves the model once its last layer is in."""

    def __init__(self, filled: DynamicCache, last: int) -> None:
        super().__init__()
        self.layers = filled.layers
        self._last = last

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any) -> Any:
        """Keep the keys and values of a layer."""
        found = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        if layer_idx == self._last:
            raise _Enough
        return found


def wrap(model: Any, *, name: str, context_tokens: int) -> CachedTransformer:
    """Find out which short cuts are exact for this model.

    Args:
        model: A causal language model of transformers.
        name: Named in errors.
        context_tokens: Longest text that it will be given.

    Raises:
        InputError: the model is not causal.
    """
    model.eval()
    context, first, second = (_tokens(each, model) for each in (_CONTEXT, _FIRST, _SECOND))
    with torch.inference_mode():
        rows = torch.stack((torch.cat((context, first)), torch.cat((context, second))))
        plain = model(rows, use_cache=False).logits.double().log_softmax(-1)
        if not bool(plain.isfinite().all()):
            return CachedTransformer(model=model, shared_tokens=0, head_apart=False)
        tolerance = min(_ROUNDINGS * torch.finfo(model.dtype).eps * float(plain.abs().max()), _MOST_TOLERANCE_NATS)
        places = len(_CONTEXT)
        if float((plain[0, :places] - plain[1, :places]).abs().max()) > tolerance:
            raise InputError(f"{name}: sees tokens ahead of it, so it is no causal language model")
        head_apart = _head_is_apart(model, rows, plain, tolerance)
        expected = torch.cat((plain[0, places - 2 :], plain[1, places:]))
        window = _window(model.config, context_tokens)
        for last_kept in (_last_kept(model), None):
            tried = CachedTransformer(model=model, shared_tokens=window, head_apart=head_apart, last_kept=last_kept)
            if _obeys(tried, expected, tolerance):
                return tried
    return CachedTransformer(model=model, shared_tokens=0, head_apart=head_apart)


def _tokens(tokens: tuple[int, ...], model: Any) -> Tensor:
    vocabulary = model.get_input_embeddings().weight.shape[0]
    return torch.tensor([token % vocabulary for token in tokens], device=model.device)


def _head_is_apart(model: Any, rows: Tensor, plain: Tensor, tolerance: float) -> bool:
    if model.get_output_embeddings() is None or model.base_model is model:
        return False
    apart = CachedTransformer(model=model, shared_tokens=0, head_apart=True)
    return _same(apart.unembed(apart.read(rows)[0]), plain, tolerance)


def _last_kept(model: Any) -> int | None:
    """The last layer that a cache has behind a text."""
    reader = CachedTransformer(model=model, shared_tokens=0, head_apart=False)
    try:
        return len(reader.read(_tokens(_CONTEXT, model)[None], keep=True)[1].layers) - 1
    except _BREAKS:
        return None


def _obeys(model: CachedTransformer, expected: Tensor, tolerance: float) -> bool:
    """Whether context and both choices in one row, the context remembered, give what two rows give."""
    context, first, second = (_tokens(each, model.model) for each in (_CONTEXT, _FIRST, _SECOND))
    cut, end = len(context) - 2, len(context)
    row = torch.cat((context, first, second))[None]
    behind_first, behind_second = end + len(first), end + len(first) + len(second)
    ends = [behind_second] * end + [behind_first] * len(first) + [behind_second] * len(second)
    positions = torch.tensor([[*range(end), *range(end, end + len(first)), *range(end, end + len(second))]])
    try:
        past = model.remember(row[:, :cut])
        behind, _ = model.read(
            row[:, cut:],
            past=model.repeated(past, 1),
            positions=positions[:, cut:].to(row.device),
            mask=row_mask(torch.tensor([ends], device=row.device), cut),
        )
    except _BREAKS:
        return False
    return _same(model.unembed(behind[0]), expected, tolerance)


def _same(logits: Tensor, log_p: Tensor, tolerance: float) -> bool:
    if logits.shape != log_p.shape:
        return False
    gap = (logits.double().log_softmax(-1) - log_p).abs().max()
    return bool(gap.isfinite()) and float(gap) <= tolerance


def _window(config: Any, context_tokens: int) -> int:
    """Longest text in which no sliding window or chunk ends."""
    text = config.get_text_config()
    sliding = getattr(text, "sliding_window", None) if getattr(text, "use_sliding_window", True) else None
    bounds = [each for each in (sliding, getattr(text, "attention_chunk_size", None)) if isinstance(each, int)]
    return min([context_tokens, *bounds])


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where allowed and very low elsewhere: every kind of attention takes it, and it is made once for all layers."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)


def _cache_name(model: Any) -> str:
    """transformers renamed the argument; both names are current at once."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
