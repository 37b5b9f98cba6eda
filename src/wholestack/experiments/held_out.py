"""Loss on windows of held-out text, one number a window, so that before and after can be paired."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch.nn import functional

from wholestack.data.loader import Loader
from wholestack.evals.arrays import npz_bytes, read_npz
from wholestack.evals.statistics import Floats
from wholestack.journal import write_atomic
from wholestack.pretrain.model import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutLosses:
    """Losses of one run on the same windows before and after it."""

    before_bpb: Floats | None
    """``[windows]``, bits per byte; ``None`` where training began with random weights."""
    after_bpb: Floats
    """``[windows]``."""

    def save(self, path: Path) -> None:
        """Write as ``.npz`` by atomic rename.

        Raises:
            RunDirectoryError: the file cannot be written.
        """
        before = np.empty(0) if self.before_bpb is None else self.before_bpb
        write_atomic(path, npz_bytes({"before_bpb": before, "after_bpb": self.after_bpb}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            InputError: the file is missing, damaged or something else.
        """
        arrays = read_npz(path, ["before_bpb", "after_bpb"])
        before, after = (arrays[name].astype(np.float64) for name in ("before_bpb", "after_bpb"))
        return cls(before_bpb=before if len(before) else None, after_bpb=after)


def window_losses(model: Transformer, loader: Loader, windows: int) -> Floats:
    """Mean loss of each window in nats a token, ``[windows]``.

    Args:
        model: In evaluation mode.
        loader: Over held-out text; its first sequences are the windows.
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
            found.append(losses.double().mean(1).cpu().numpy())
    return np.asarray(np.concatenate(found)[:windows], dtype=np.float64)
