"""The tiny model of ``evals context``: pretrained on episodes, scored as any other model in this process.

Pretraining goes from short episodes to long ones: looking back is learnt cheaply on short rows, and the last stages
only stretch it over the whole context.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from wholestack.errors import InputError
from wholestack.evals.backend import Opening
from wholestack.evals.models.local import LocalBackend
from wholestack.evals.models.pretrained import backend_of
from wholestack.experiments.in_context_plan import Stage, TinyModel
from wholestack.experiments.in_context_task import TableTask, training_rows
from wholestack.pretrain.checkpoint import weights_hash
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.loop import Batches, train
from wholestack.pretrain.model import Transformer
from wholestack.record import digest

ROWS_AT_A_TIME = 2
"""A row is a whole context; attention with a mask holds the square of it."""
WEIGHT_DECAY = 0.01
"""Of pretraining."""


@dataclass(frozen=True, slots=True)
class CharacterTokens:
    """One token a character of the task, and no special ones."""

    vocabulary: str
    prefix_token: int | None = None
    empty_context_token: int | None = None
    end_tokens: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """The vocabulary itself."""
        return self.vocabulary

    def encode(self, text: str) -> list[int]:
        """Token ids of a text.

        Raises:
            InputError: a character that the task does not have.
        """
        unknown = sorted(set(text) - set(self.vocabulary))
        if unknown:
            raise InputError(f"the tiny model does not know {unknown[0]!r}", remedy="use the template {key}{label}")
        return [self.vocabulary.index(character) for character in text]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens."""
        return "".join(self.vocabulary[token] for token in tokens)


def table_model(task: TableTask, model: Transformer) -> LocalBackend:
    """A pretrained model of a task behind the interface of every model.

    Args:
        task: Gives the tokens.
        model: Trained on it.
    """
    return backend_of(
        model,
        kind="table",
        name="tiny",
        tokens=CharacterTokens(task.vocabulary),
        content={"weights": weights_hash(model.state_dict()), "config": digest(model.config)},
        opening=Opening(batch_size=ROWS_AT_A_TIME),
    )


def seconds_a_step(*, seed: int, steps: int = 30) -> float:
    """Wall seconds of one pretraining step on short rows, on this machine as it is now."""
    task, stage = TableTask(keys=16), Stage(context=64, rows=16, steps=steps, lr=1e-3)
    ends: list[float] = []
    train(
        config_of(task, TinyModel(), stage.context),
        OptimizerConfig(lr=stage.lr, batch_size=stage.rows, steps=steps),
        _episodes(task, stage, seed=seed, number=0),
        seed=seed,
        threads=1,
        on_step=lambda record: ends.append(record.seconds),
    )
    return (ends[-1] - ends[steps // 3]) / (steps - 1 - steps // 3)


def pretrain(
    task: TableTask, shape: TinyModel, stages: Sequence[Stage], *, seed: int, folder: Path, threads: int = 1
) -> LocalBackend:
    """Train from short to long episodes; goes on from the checkpoints of an interrupted session.

    Args:
        task: What episodes are.
        shape: Of the model.
        stages: Context, rows and steps of each.
        seed: Of weights and episodes.
        folder: For checkpoints, one folder a stage.
        threads: Torch threads.
    """
    weights: dict[str, Tensor] | None = None
    model: Transformer | None = None
    for number, stage in enumerate(stages):
        outcome = train(
            config_of(task, shape, stage.context),
            OptimizerConfig(
                lr=stage.lr,
                batch_size=stage.rows,
                steps=stage.steps,
                weight_decay=WEIGHT_DECAY,
                warmup_fraction=0.05,
            ),
            _episodes(task, stage, seed=seed, number=number),
            seed=seed,
            threads=threads,
            initial=weights,
            checkpoint_folder=folder / f"stage-{number}",
            checkpoint_every_s=15.0,
        )
        if outcome.diverged:
            raise InputError(
                f"pretraining diverged in its stage of {stage.context} tokens", remedy="try another --seed"
            )
        model = outcome.model
        weights = model.state_dict()
    if model is None:
        raise InputError("no stage to pretrain in")
    return table_model(task, model)


def config_of(task: TableTask, shape: TinyModel, context: int) -> ModelConfig:
    """The model's shape at a context; its weights do not depend on the context.

    Without the norm of queries and keys: it bounds how sharply a head may look, and so many demonstrations dilute it.
    """
    return ModelConfig(
        vocab_size=len(task.vocabulary),
        context=context,
        layers=shape.layers,
        width=shape.width,
        head_size=shape.head_size,
        kv_heads=shape.width // shape.head_size,
        mlp_ratio=2.0,
        qk_norm=False,
    )


def _episodes(task: TableTask, stage: Stage, *, seed: int, number: int) -> Batches:
    def batch(step: int) -> npt.NDArray[np.int64]:
        rng = np.random.default_rng([seed, number, step])
        return training_rows(task, rows=stage.rows, tokens=stage.context + 1, rng=rng)

    return batch
