"""What a rehearsal hands to a training worker, and what it gets back. Needs no torch."""

from dataclasses import dataclass
from typing import ClassVar

from wholestack.experiments.recipe import Device, Precision
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureStretch(Record):
    """A part of a training run with one mixture."""

    first_sequence: int
    """Number of its first sequence, counted over the whole run."""
    weights: dict[str, float]
    """Share of sequences of each source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutProbe(Record):
    """A look at held-out text, before and after training: what was forgotten."""

    mixture: dict[str, float]
    """Weight by source of the text that is looked at."""
    windows: int
    """Windows of one context each."""
    seed: int
    """Chooses the windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec(Record):
    """Everything that a training worker needs."""

    SCHEMA: ClassVar[str] = "training-spec/1"

    name: str
    corpus: str
    """Folder of the corpus."""
    items: str
    """File of the prepared items."""
    model: ModelConfig
    optimizer: OptimizerConfig
    mixture: dict[str, float]
    """Weight by source over the whole run."""
    seed: int
    threads: int
    checkpoints: bool
    """Whether to write checkpoints, and to go on from the last one."""
    device: Device = "cpu"
    precision: Precision = "float32"
    bytes_per_token: dict[str, float]
    """Mean UTF-8 bytes of a token of each source: turns nats per token into bits per byte."""
    schedule: tuple[MixtureStretch, ...] = ()
    """Where the mixture changes on the way, its stretches; ``mixture`` is then what they come to together."""
    initial: str = ""
    """Checkpoint whose weights training begins with; empty: random ones."""
    keep_items: bool = False
    """Whether to leave what was given to every item in ``scores.npz``, for paired comparisons."""
    held_out: HeldOutProbe | None = None
    """Held-out text to look at before and after, left in ``held-out.npz``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult(Record):
    """What a training worker leaves behind."""

    SCHEMA: ClassVar[str] = "training-result/1"

    diverged: bool
    detail: str
    metrics: dict[str, float]
    errors: dict[str, float]
    stability: dict[str, float]
    train_seconds: float
    score_seconds: float
    cpu_seconds: float
    queued_seconds: float = 0.0
    """Of the training steps of this process, as in `TrialRecord`."""
    weights_sha256: str
