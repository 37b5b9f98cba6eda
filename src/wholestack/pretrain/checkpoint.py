"""Checkpoints: one file a step, by atomic rename, read back without running any code from it.

A file is a dict of tensors and plain values written by ``torch.save`` and read with ``weights_only=True``. Its
weights carry their own SHA-256, so damage of the disk is noticed; a write that was killed leaves only a file with
another name, which the next writer removes.
"""

import hashlib
import io
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wholestack.errors import RecordError, RunDirectoryError
from wholestack.journal import write_atomic
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.optimizer import OptimizerState
from wholestack.record import from_builtins, to_builtins

_NAME = re.compile(r"step-(\d{8})\.pt")
_FORMAT = "checkpoint/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All that a run needs to go on."""

    model_config: ModelConfig
    """Shape of the model."""
    optimizer_config: OptimizerConfig
    """Settings of the whole run."""
    seed: int
    """Seed of the run."""
    step: int
    """Steps done."""
    seconds: float
    """Wall time of training so far."""
    weights: dict[str, Tensor]
    """The model's state."""
    optimizer: OptimizerState
    """The optimizer's state."""
    rng_state: Tensor
    """State of the run's random generator."""
    losses_nats: tuple[float, ...]
    """Loss of every step so far."""
    gradient_norms: tuple[float, ...]
    """Gradient norm of every step so far."""


def weights_hash(weights: dict[str, Tensor]) -> str:
    """SHA-256 over name, type, shape and bytes of every tensor, in order of the names."""
    sha = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        sha.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, keep: int = 2) -> Path:
    """Write a checkpoint and remove all but the newest ``keep``.

    Returns:
        Its path, ``step-00000120.pt`` after 120 steps. It is on the disk.

    Raises:
        RunDirectoryError: the folder cannot be written, for instance a full disk; older checkpoints are as they were.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
    except OSError as error:
        raise RunDirectoryError(f"{folder}: cannot be written: {error.strerror}") from error
    buffer = io.BytesIO()
    torch.save(_to_plain(checkpoint), buffer)
    path = folder / f"step-{checkpoint.step:08d}.pt"
    write_atomic(path, buffer.getvalue())
    for old in list_checkpoints(folder)[: -max(1, keep)]:
        old.unlink(missing_ok=True)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def load_checkpoint(path: Path) -> Checkpoint:
    """Read one checkpoint onto the CPU.

    Raises:
        RecordError: missing, damaged, or of another format.
    """
    try:
        plain = torch.load(path, map_location="cpu", weights_only=True)
        checkpoint = _from_plain(plain, str(path))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except (RuntimeError, pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path}: is not a whole checkpoint", remedy="use an earlier one") from error
    if weights_hash(checkpoint.weights) != plain["weights_sha256"]:
        raise RecordError(f"{path}: the weights do not match their hash", remedy="use an earlier one")
    return checkpoint


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole, ``None`` if there is none at all.

    Raises:
        RecordError: there are checkpoints, and all are damaged: starting again in silence would hide it.
    """
    paths = list_checkpoints(folder)
    for path in reversed(paths):
        try:
            return load_checkpoint(path)
        except RecordError:
            if path == paths[0]:
                raise
    return None


def load_model(path: Path) -> Transformer:
    """The model of a checkpoint, ready for evaluation.

    Args:
        path: A checkpoint, or a folder whose newest whole one is taken.

    Raises:
        RecordError: there is none, or it is damaged.
    """
    checkpoint = latest_checkpoint(path) if path.is_dir() else load_checkpoint(path)
    if checkpoint is None:
        raise RecordError(f"{path}: holds no checkpoint")
    model = Transformer(checkpoint.model_config, dtype=checkpoint.weights["embedding"].dtype)
    model.load_state_dict(checkpoint.weights)
    return model.eval()


def _remove_unfinished(folder: Path) -> None:
    for path in folder.glob(".step-*.pt.*.tmp"):
        path.unlink(missing_ok=True)


def _to_plain(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "model_config": to_builtins(checkpoint.model_config),
        "optimizer_config": to_builtins(checkpoint.optimizer_config),
        "seed": checkpoint.seed,
        "step": checkpoint.step,
        "seconds": checkpoint.seconds,
        "weights": checkpoint.weights,
        "weights_sha256": weights_hash(checkpoint.weights),
        "optimizer_steps": checkpoint.optimizer.steps,
        "first": checkpoint.optimizer.first,
        "second": checkpoint.optimizer.second,
        "rng_state": checkpoint.rng_state,
        "losses_nats": torch.tensor(checkpoint.losses_nats, dtype=torch.float64),
        "gradient_norms": torch.tensor(checkpoint.gradient_norms, dtype=torch.float64),
    }


def _from_plain(plain: Any, where: str) -> Checkpoint:
    if not isinstance(plain, dict) or plain.get("format") != _FORMAT:
        raise RecordError(f"{where}: is not of the format {_FORMAT}")
    return Checkpoint(
        model_config=from_builtins(ModelConfig, plain["model_config"], where=where),
        optimizer_config=from_builtins(OptimizerConfig, plain["optimizer_config"], where=where),
        seed=plain["seed"],
        step=plain["step"],
        seconds=plain["seconds"],
        weights=plain["weights"],
        optimizer=OptimizerState(steps=plain["optimizer_steps"], first=plain["first"], second=plain["second"]),
        rng_state=plain["rng_state"],
        losses_nats=tuple(plain["losses_nats"].tolist()),
        gradient_norms=tuple(plain["gradient_norms"].tolist()),
    )
