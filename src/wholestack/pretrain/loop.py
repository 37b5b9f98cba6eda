"""The training loop: deterministic, resumable at any kill, ends early when it diverges.

The data are a function of the step, so a resumed run sees what an unbroken one would have seen. With one thread on
one machine the same seed gives the same weights to the last bit; more threads may sum in another order.

On CUDA the model is compiled and multiplies in bfloat16. That path is written, not tested: no such device was at
hand.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from wholestack.errors import InputError, RunDirectoryError
from wholestack.pretrain.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint, weights_hash
from wholestack.pretrain.config import ModelConfig, OptimizerConfig, Precision
from wholestack.pretrain.flops import training_flops
from wholestack.pretrain.kernels import mean_cross_entropy
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.optimizer import FlatAdamW
from wholestack.pretrain.schedule import lr_fraction
from wholestack.pretrain.stability import Stability, StepRecord, has_diverged, summarize
from wholestack.record import Record

Batches = Callable[[int], "np.ndarray[Any, np.dtype[Any]]"]
"""From a step (0 for the first) to its tokens, integers ``[batch, context + 1]``: the last column is only predicted."""

Status = Literal["completed", "diverged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSummary(Record):
    """How a run ended."""

    SCHEMA: ClassVar[str] = "train-summary/1"

    status: Status
    """``diverged``: ended early, see :mod:`wholestack.pretrain.stability`."""
    steps: int
    """Steps done."""
    tokens: int
    """Tokens trained on."""
    flops: float
    """By :func:`wholestack.pretrain.flops.training_flops`."""
    seconds: float
    """Wall time of training, over all resumptions, without the time between them."""
    final_loss_nats: float | None
    """Mean training loss of the last tenth of the steps, nats a token; ``None`` if it is not finite."""
    stability: Stability
    """Spikes, gradient norms."""
    weights_sha256: str
    """See :func:`wholestack.pretrain.checkpoint.weights_hash`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOutcome:
    """A trained model and how it went."""

    model: Transformer
    """In evaluation mode, on the device it was trained on."""
    summary: TrainSummary
    """What happened."""

    @property
    def diverged(self) -> bool:
        """Whether training ended early."""
        return self.summary.status == "diverged"


def train(
    model_config: ModelConfig,
    optimizer_config: OptimizerConfig,
    batches: Batches,
    *,
    seed: int,
    threads: int,
    initial: Mapping[str, Tensor] | None = None,
    checkpoint_folder: Path | None = None,
    checkpoint_every_s: float | None = None,
    checkpoint_every_steps: int | None = None,
    keep_checkpoints: int = 2,
    on_step: Callable[[StepRecord], None] | None = None,
    device: str = "cpu",
    precision: Precision | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TrainOutcome:
    """Train a model from scratch, or go on where the newest checkpoint of the folder stopped.

    Args:
        model_config: Shape.
        optimizer_config: Settings and length.
        batches: The data, a pure function of the step.
        seed: Of the initial weights.
        threads: Torch threads; set back afterwards.
        initial: Weights to begin with instead of random ones, by name, as a checkpoint has them (mid-training, fine
            tuning). The optimizer begins afresh, and so does the schedule of the learning rate.
        checkpoint_folder: With it a checkpoint is written at the end, and at the two intervals that are given.
        checkpoint_every_s: Seconds between checkpoints.
        checkpoint_every_steps: Steps between checkpoints.
        keep_checkpoints: How many to keep.
        on_step: Called after every step. After a kill, steps since the last checkpoint come a second time.
        device: ``cpu``, or one CUDA device.
        precision: Default float32 on the CPU, bfloat16 on CUDA.
        clock: Seconds, for the records.

    Returns:
        The model and a summary. A run that diverges is an outcome, not an error; it writes no checkpoint of the
        spoilt weights.

    Raises:
        InputError: a batch has another shape or holds tokens outside the vocabulary; threads or an interval below 1;
            initial weights of another shape.
        RunDirectoryError: the folder belongs to a run with other settings, or cannot be written.
    """
    for name, value in (("threads", threads), ("checkpoint_every_steps", checkpoint_every_steps)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}, must be at least 1")
    precision = precision or ("float32" if device == "cpu" else "bfloat16")
    with torch_settings(threads):
        run = _Run(model_config, optimizer_config, seed=seed, device=device, precision=precision, clock=clock)
        if initial is not None:
            run.begin_with(initial)
        saver = _Saver(checkpoint_folder, checkpoint_every_s, checkpoint_every_steps, keep_checkpoints, clock)
        if checkpoint_folder is not None:
            _resume(run, checkpoint_folder)
        while run.steps_done < optimizer_config.steps and not run.diverged:
            record = run.advance(batches(run.steps_done))
            if on_step is not None:
                on_step(record)
            if not run.diverged:
                saver.after_step(run)
        return run.outcome()


class _Run:
    """Everything that changes while a model trains."""

    def __init__(
        self,
        model_config: ModelConfig,
        optimizer_config: OptimizerConfig,
        *,
        seed: int,
        device: str,
        precision: Precision,
        clock: Callable[[], float],
    ) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        dtype = torch.float64 if precision == "float64" else torch.float32
        self.model = Transformer(model_config, generator=self.generator, dtype=dtype).to(device)
        self.optimizer = FlatAdamW(self.model, optimizer_config)
        self.model_config, self.optimizer_config, self.seed = model_config, optimizer_config, seed
        self.losses_nats: list[float] = []
        self.gradient_norms: list[float] = []
        self.diverged = False
        self._device = device
        self._autocast = precision == "bfloat16"
        self._predict: Callable[[Tensor], Tensor] = self.model if device == "cpu" else torch.compile(self.model)
        self._clock = clock
        self._started = clock()

    @property
    def steps_done(self) -> int:
        return len(self.losses_nats)

    @property
    def seconds(self) -> float:
        return self._clock() - self._started

    def advance(self, batch: "np.ndarray[Any, np.dtype[Any]]") -> StepRecord:
        """One step."""
        step = self.steps_done
        tokens = _as_tokens(batch, self.model_config, self.optimizer_config, step).to(self._device)
        self.optimizer.zero_gradients()
        with torch.autocast(torch.device(self._device).type, dtype=torch.bfloat16, enabled=self._autocast):
            logits = self._predict(tokens[:, :-1])
        loss = mean_cross_entropy(logits.flatten(0, 1).to(self.model.embedding.dtype), tokens[:, 1:].flatten())
        torch.autograd.backward(loss)
        norm = self.optimizer.step(step)
        self.losses_nats.append(float(loss.detach()))
        self.gradient_norms.append(float(norm))
        self.diverged = has_diverged(self.losses_nats, self.gradient_norms)
        return self._record()

    def snapshot(self) -> Checkpoint:
        """All that is needed to go on from here."""
        return Checkpoint(
            model_config=self.model_config,
            optimizer_config=self.optimizer_config,
            seed=self.seed,
            step=self.steps_done,
            seconds=self.seconds,
            weights=_weights(self.model),
            optimizer=self.optimizer.state(),
            rng_state=self.generator.get_state(),
            losses_nats=tuple(self.losses_nats),
            gradient_norms=tuple(self.gradient_norms),
        )

    def begin_with(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights of another run."""
        ours = self.model.state_dict()
        shapes = {name: tuple(tensor.shape) for name, tensor in ours.items()}
        theirs = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        if shapes != theirs:
            wrong = sorted(name for name in {*shapes, *theirs} if shapes.get(name) != theirs.get(name))
            raise InputError(
                f"the given weights are of another shape: {', '.join(wrong[:3])}",
                remedy="take layers, width, heads and vocabulary from their checkpoint",
            )
        with torch.no_grad():
            for name, tensor in ours.items():
                tensor.copy_(weights[name])

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from there."""
        with torch.no_grad():
            for name, tensor in self.model.state_dict().items():
                tensor.copy_(checkpoint.weights[name])
        self.optimizer.restore(checkpoint.optimizer)
        self.generator.set_state(checkpoint.rng_state)
        self.losses_nats = list(checkpoint.losses_nats)
        self.gradient_norms = list(checkpoint.gradient_norms)
        self._started = self._clock() - checkpoint.seconds

    def outcome(self) -> TrainOutcome:
        """The model, and the run summed up."""
        tokens = self._tokens()
        self.model.zero_grad(set_to_none=True)
        return TrainOutcome(
            model=self.model.eval(),
            summary=TrainSummary(
                status="diverged" if self.diverged else "completed",
                steps=self.steps_done,
                tokens=tokens,
                flops=training_flops(self.model_config, tokens),
                seconds=self.seconds,
                final_loss_nats=_finite(_tail_mean(self.losses_nats)),
                stability=summarize(self.losses_nats, self.gradient_norms, clip_norm=self.optimizer_config.clip_norm),
                weights_sha256=weights_hash(_weights(self.model)),
            ),
        )

    def _tokens(self) -> int:
        return self.steps_done * self.optimizer_config.batch_size * self.model_config.context

    def _record(self) -> StepRecord:
        return StepRecord(
            step=self.steps_done,
            tokens=self._tokens(),
            loss_nats=_finite(self.losses_nats[-1]),
            gradient_norm=_finite(self.gradient_norms[-1]),
            lr=self.optimizer_config.lr * lr_fraction(self.optimizer_config, self.steps_done - 1),
            seconds=self.seconds,
        )


class _Saver:
    """Decides when a checkpoint is due."""

    def __init__(
        self,
        folder: Path | None,
        every_s: float | None,
        every_steps: int | None,
        keep: int,
        clock: Callable[[], float],
    ) -> None:
        self._folder, self._every_s, self._every_steps, self._keep = folder, every_s, every_steps, keep
        self._clock = clock
        self._saved_at = clock()

    def after_step(self, run: _Run) -> None:
        """Save if an interval has passed or the run is at its end."""
        if self._folder is None:
            return
        ended = run.steps_done == run.optimizer_config.steps
        by_steps = self._every_steps is not None and run.steps_done % self._every_steps == 0
        by_time = self._every_s is not None and self._clock() - self._saved_at >= self._every_s
        if ended or by_steps or by_time:
            save_checkpoint(self._folder, run.snapshot(), keep=self._keep)
            self._saved_at = self._clock()


def _resume(run: _Run, folder: Path) -> None:
    checkpoint = latest_checkpoint(folder)
    if checkpoint is None:
        return
    theirs = (checkpoint.model_config, checkpoint.optimizer_config, checkpoint.seed)
    if theirs != (run.model_config, run.optimizer_config, run.seed):
        raise RunDirectoryError(
            f"{folder}: holds checkpoints of a run with other settings or another seed", remedy="choose another folder"
        )
    run.restore(checkpoint)


@contextmanager
def torch_settings(threads: int) -> Iterator[None]:
    """Threads for the time of a run, and denormal numbers as zero: they slow a CPU down tenfold and hold nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)


def _as_tokens(
    batch: "np.ndarray[Any, np.dtype[Any]]", model: ModelConfig, optimizer: OptimizerConfig, step: int
) -> Tensor:
    expected = (optimizer.batch_size, model.context + 1)
    if batch.shape != expected:
        raise InputError(f"batch of step {step} has shape {batch.shape}, expected {expected}")
    if not np.issubdtype(batch.dtype, np.integer):
        raise InputError(f"batch of step {step} holds {batch.dtype}, tokens are integers")
    low, high = int(batch.min()), int(batch.max())
    if low < 0 or high >= model.vocab_size:
        raise InputError(f"batch of step {step} holds tokens {low} to {high}, the vocabulary has {model.vocab_size}")
    return torch.from_numpy(batch.astype(np.int64))


def _weights(model: Transformer) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _tail_mean(losses_nats: list[float]) -> float:
    tail = losses_nats[-max(1, len(losses_nats) // 10) :]
    return sum(tail) / len(tail) if tail else float("nan")


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
