"""Rows that grow by a token at a time, for the writer: with a cache where the model has one, read again where not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wholestack.evals.staged import CachedModel
from wholestack.evals.statistics import Floats


@dataclass(frozen=True, kw_only=True)
class CachedNext:
    """See :class:`wholestack.evals.models.writing.Next`."""

    model: CachedModel
    device: str

    def __call__(self, rows: Sequence[Sequence[int]], room: int) -> "CachedReading | RereadReading":
        """Read prompts behind which at most ``room`` tokens will be added."""
        longest = max(map(len, rows)) + room
        kind = CachedReading if longest <= self.model.shared_tokens else RereadReading
        return kind(self.model, rows, self.device)


class CachedReading:
    """Prompts padded on the right; what is written stands behind the padding, at the position of its own text."""

    def __init__(self, model: CachedModel, rows: Sequence[Sequence[int]], device: str) -> None:
        self._model = model
        self._lengths = torch.tensor([len(row) for row in rows], device=device)
        tokens = _padded(rows, device)
        self._width = tokens.shape[1]
        self._written = 0
        with torch.inference_mode():
            hidden, self._past = model.read(tokens, keep=True)
            self._last: Tensor = hidden[torch.arange(len(rows)), self._lengths - 1]

    @property
    def logits(self) -> Floats:
        """``[B, V]`` behind the last token of each row."""
        return _numbers(self._model, self._last)

    def add(self, tokens: Sequence[int]) -> None:
        """Read one more token in each row."""
        device = self._lengths.device
        keys = torch.arange(self._width + self._written + 1, device=device)
        mask = (keys < self._lengths[:, None]) | (keys >= self._width)
        with torch.inference_mode():
            hidden, self._past = self._model.read(
                torch.tensor([max(0, token) for token in tokens], device=device)[:, None],
                past=self._past,
                positions=(self._lengths + self._written)[:, None],
                mask=mask[:, None, None],
            )
        self._written += 1
        self._last = hidden[:, -1]


class RereadReading:
    """Every row read from its start each time, padded on the right, where a causal model does not see it."""

    def __init__(self, model: CachedModel, rows: Sequence[Sequence[int]], device: str) -> None:
        self._model, self._device = model, device
        self._rows = [list(row) for row in rows]

    @property
    def logits(self) -> Floats:
        """``[B, V]`` behind the last token of each row."""
        with torch.inference_mode():
            hidden: Any = self._model.read(_padded(self._rows, self._device))[0]
            ends = torch.tensor([len(row) - 1 for row in self._rows], device=self._device)
            return _numbers(self._model, hidden[torch.arange(len(self._rows)), ends])

    def add(self, tokens: Sequence[int]) -> None:
        """One more token in each row."""
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(max(0, token))


def _padded(rows: Sequence[Sequence[int]], device: str) -> Tensor:
    padded = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return torch.from_numpy(padded).to(device)


def _numbers(model: CachedModel, hidden: Tensor) -> Floats:
    with torch.inference_mode():
        numbers: Floats = model.unembed(hidden).double().cpu().numpy()
    return numbers
