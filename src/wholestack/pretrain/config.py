"""What is trained and how: plain Records, checked when they are made."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.record import Record

Precision = Literal["float32", "float64", "bfloat16"]
"""Arithmetic of a run. ``bfloat16`` keeps weights and optimizer in float32 and multiplies in bfloat16 (autocast)."""

Decay = Literal["cosine", "linear", "wsd"]
"""Shape of the learning rate after the warm-up; ``wsd`` holds it, then falls linearly over the last part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Record):
    """Shape of a decoder-only transformer: grouped-query attention, SwiGLU, RMSNorm, rotary positions.

    Raises:
        InputError: a value is out of its bounds, or the heads do not divide.
    """

    SCHEMA: ClassVar[str] = "model/1"

    vocab_size: int
    """Tokens in the vocabulary."""
    context: int
    """Longest sequence, in tokens."""
    layers: int
    """Blocks; each is attention and a gated MLP."""
    width: int
    """Size of the residual stream."""
    head_size: int
    """Size of one attention head, even; ``width`` is a multiple of it."""
    kv_heads: int
    """Key and value heads; divides the number of query heads ``width / head_size``."""
    mlp_ratio: float = 8 / 3
    """Hidden size of the gated MLP over ``width``; 8/3 costs as much as a plain MLP of ratio 4."""
    tied_embeddings: bool = False
    """Whether the output head uses the embedding matrix."""
    qk_norm: bool = True
    """RMSNorm of every query and key head before the rotation: bounds attention logits at high learning rates."""
    rope_base: float = 10_000.0
    """Base of the rotary wavelengths."""
    norm_epsilon: float = 1e-6
    """Added to the mean square in RMSNorm."""

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "layers", "width", "head_size", "kv_heads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.head_size % 2:
            raise InputError(f"head_size is {self.head_size}, must be even: rotary positions turn pairs")
        if self.width % self.head_size:
            raise InputError(f"width {self.width} is not a multiple of head_size {self.head_size}")
        if self.heads % self.kv_heads:
            raise InputError(f"kv_heads {self.kv_heads} does not divide the {self.heads} query heads")
        for name in ("mlp_ratio", "rope_base", "norm_epsilon"):
            _require_positive(name, getattr(self, name))

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.width // self.head_size

    @property
    def kv_width(self) -> int:
        """Size of all keys (or all values) of one position."""
        return self.kv_heads * self.head_size

    @property
    def mlp_width(self) -> int:
        """Hidden size of the gated MLP, rounded to the nearest multiple of 16 (one AVX-512 register of float32)."""
        return max(16, 16 * round(self.mlp_ratio * self.width / 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig(Record):
    """AdamW with parameter groups, a schedule, clipping, and the size of the run.

    Raises:
        InputError: a value is out of its bounds.
    """

    SCHEMA: ClassVar[str] = "optimizer/1"

    lr: float
    """Peak learning rate of a matrix in a model of width ``reference_width``; see :func:`group_lrs`."""
    batch_size: int
    """Sequences a step."""
    steps: int
    """Steps of the whole run; the schedule is laid over them."""
    weight_decay: float = 0.1
    """Decoupled decay of the matrices; a step multiplies them by 1 - lr * weight_decay."""
    warmup_fraction: float = 0.02
    """Part of the steps over which the learning rate rises linearly from zero."""
    decay: Decay = "linear"
    """Shape of the fall after the warm-up."""
    decay_fraction: float = 0.3
    """Part of the steps over which ``wsd`` falls; the other shapes do not use it."""
    final_lr_fraction: float = 0.0
    """Learning rate at the end over its peak."""
    beta1: float = 0.9
    """Memory of the first moment."""
    beta2: float = 0.95
    """Memory of the second moment."""
    epsilon: float = 1e-8
    """Added to the root of the second moment."""
    clip_norm: float = 1.0
    """Gradients are scaled down to this global L2 norm."""
    reference_width: int = 128
    """Width at which ``lr`` holds for matrices."""
    embedding_lr_ratio: float = 1.0
    """Learning rate of embeddings and gains over ``lr``; it does not change with the width."""

    def __post_init__(self) -> None:
        for name in ("lr", "epsilon", "clip_norm", "embedding_lr_ratio"):
            _require_positive(name, getattr(self, name))
        for name in ("batch_size", "steps", "reference_width"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, must be at least 1")
        for name in ("warmup_fraction", "decay_fraction", "final_lr_fraction", "beta1", "beta2"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(f"{name} is {getattr(self, name)}, must lie in [0, 1]")
        for name in ("beta1", "beta2"):
            if getattr(self, name) == 1.0:
                raise InputError(f"{name} is 1, must be below: a moment would never move")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise InputError(f"weight_decay is {self.weight_decay}, must be finite and at least 0")


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} is {value}, must be finite and above 0")
