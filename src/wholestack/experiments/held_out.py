"""Loss on held-out text by document, so that before and after can be paired and documents be drawn anew.

Windows of one document are not independent: what is forgotten of one page is forgotten of the next. So a window is cut
where a document ends, and every **piece** knows which document its tokens are of. Near-duplicates and documents of a
group count as one, as they do in the split.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch.nn import functional

from wholestack.data.corpus import Corpus
from wholestack.data.loader import Loader
from wholestack.evals.arrays import npz_bytes, read_npz
from wholestack.evals.statistics import Floats, Ints
from wholestack.journal import write_atomic
from wholestack.pretrain.model import Transformer

_ARRAYS = ("before_bpb", "after_bpb", "tokens", "documents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Windows of held-out text, cut where documents end."""

    starts: Ints
    """``[pieces]``, place of the first token among all targets of all windows, one behind the other."""
    tokens: Ints
    """``[pieces]``, targets in it."""
    documents: Ints
    """``[pieces]``; equal numbers are one document, or documents that are nearly the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutLosses:
    """Losses of one run on the same pieces before and after it."""

    before_bpb: Floats | None
    """``[pieces]``, mean bits per byte; ``None`` where training began with random weights."""
    after_bpb: Floats
    """``[pieces]``."""
    tokens: Ints
    """``[pieces]``."""
    documents: Ints
    """``[pieces]``."""

    def save(self, path: Path) -> None:
        """Write as ``.npz`` by atomic rename.

        Raises:
            RunDirectoryError: the file cannot be written.
        """
        before = np.empty(0) if self.before_bpb is None else self.before_bpb
        values = (before, self.after_bpb, self.tokens, self.documents)
        write_atomic(path, npz_bytes(dict(zip(_ARRAYS, values, strict=True))))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            InputError: the file is missing, damaged or something else.
        """
        arrays = read_npz(path, _ARRAYS)
        before, after = (arrays[name].astype(np.float64) for name in _ARRAYS[:2])
        tokens, documents = (arrays[name].astype(np.int64) for name in _ARRAYS[2:])
        return cls(before_bpb=before if len(before) else None, after_bpb=after, tokens=tokens, documents=documents)


def pieces_of(corpus: Corpus, loader: Loader, windows: int) -> Pieces:
    """Cut the first windows of held-out text where documents end.

    Args:
        corpus: What the loader reads.
        loader: Over held-out text.
        windows: How many.
    """
    starts: list[int] = []
    names: list[str] = []
    for number in range(windows):
        step, row = divmod(number, loader.batch_size)
        place = loader.places(step)[row]
        length = len(corpus.stream("held_out", place.source))
        done = 0
        while done < loader.context:
            # The first token of a window is only read, never predicted.
            token = (place.first_token + 1 + done) % length
            entry = corpus.where(place.source, "held_out", token)
            starts.append(number * loader.context + done)
            names.append(entry.cluster)
            done += entry.first_token + entry.tokens - token
    _, documents = np.unique(names, return_inverse=True)
    firsts = np.array(starts, dtype=np.int64)
    tokens = np.diff(firsts, append=windows * loader.context)
    return Pieces(starts=firsts, tokens=tokens, documents=documents.astype(np.int64))


def piece_losses(model: Transformer, loader: Loader, pieces: Pieces, windows: int) -> Floats:
    """Mean loss of each piece in nats a token, ``[pieces]``.

    Args:
        model: In evaluation mode.
        loader: Over held-out text; its first sequences are the windows.
        pieces: Of these windows.
        windows: How many.
    """
    device = model.embedding.device
    steps = -(-windows // loader.batch_size)
    found = []
    with torch.inference_mode():
        for step in range(steps):
            tokens = torch.from_numpy(loader.batch(step)).to(device)
            logits = model(tokens[:, :-1]).float()
            losses = functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
            found.append(losses.double().cpu().numpy())
    by_token = np.concatenate(found)[:windows].ravel()
    return np.asarray(np.add.reduceat(by_token, pieces.starts) / pieces.tokens, dtype=np.float64)
