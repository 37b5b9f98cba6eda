"""The tiny model of ``evals context``: pretrained on episodes, scored as any backend, tuned on demonstrations.

Pretraining goes from short episodes to long ones: looking back is learnt cheaply on short rows, and the last stages
only stretch it over the whole context. Tuning continues the pretrained weights on the demonstrations themselves, one a
row, so that afterwards the model answers a key with nothing in front of it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from wholestack.errors import InputError
from wholestack.evals.backend import Expense, Generation, ItemScore, ModelIdentity, Writing
from wholestack.evals.items import TOKEN_RULE, Item, seal_items
from wholestack.evals.prepared import prepare_items
from wholestack.evals.scores import ItemScores
from wholestack.evals.scoring import score_items
from wholestack.experiments.in_context_plan import Stage, TinyModel, Tuning
from wholestack.experiments.in_context_task import Episode, TableTask, training_rows
from wholestack.pretrain.checkpoint import weights_hash
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.loop import Batches, train
from wholestack.pretrain.model import Transformer

ROWS_AT_A_TIME = 2
"""A row is a whole context; attention with a mask holds the square of it."""
WEIGHT_DECAY = 0.01


@dataclass(frozen=True, slots=True)
class CharacterTokenizer:
    """One token a character of the task."""

    vocabulary: str

    def encode(self, text: str) -> list[int]:
        """Token ids of a text.

        Raises:
            InputError: a character that the task does not have.
        """
        unknown = sorted(set(text) - set(self.vocabulary))
        if unknown:
            raise InputError(f"the tiny model does not know {unknown[0]!r}", remedy="use the template {key}{label}")
        return [self.vocabulary.index(character) for character in text]


class TableModel:
    """A pretrained model of a task behind the protocol of an evaluated model.

    Args:
        task: Gives the tokens.
        model: Trained on it.
        name: How to call it.
    """

    def __init__(self, task: TableTask, model: Transformer, name: str = "tiny") -> None:
        self.task = task
        self.model = model.eval()
        self._name = name

    @property
    def weights(self) -> dict[str, Tensor]:
        """By name."""
        return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    @property
    def identity(self) -> ModelIdentity:
        """Weights, vocabulary, context length and token rule."""
        return ModelIdentity(
            kind="table",
            name=self._name,
            parts={
                "weights": weights_hash(self.weights),
                "vocabulary": self.task.vocabulary,
                "context_tokens": str(self.model.config.context),
                "token_rule": TOKEN_RULE,
                "dtype": str(self.model.embedding.dtype),
            },
            parameters=sum(tensor.numel() for tensor in self.model.parameters()),
        )

    def expense(self, items: Sequence[Item], prompts: Sequence[str] = (), writing: Writing | None = None) -> Expense:
        """One request an item, one token a character."""
        read = sum(len(item.context) + len(item.choices) for item in items)
        return Expense(requests=len(items) + len(prompts), prompt_tokens=read, basis="one token a character")

    def score(self, items: Sequence[Item], *, done: Collection[str] = ()) -> Iterator[ItemScore]:
        """Score all items together; hand over those that are not done."""
        prepared = prepare_items(
            seal_items(items, kind="items from a file"),
            CharacterTokenizer(self.task.vocabulary),
            context_tokens=self.model.config.context,
        )
        found = _each(score_items(self.model, prepared, batch_size=ROWS_AT_A_TIME))
        yield from (score for score in found if score.id not in done)

    def generate(self, prompts: Sequence[str], writing: Writing) -> Iterator[Generation]:
        """It only scores.

        Raises:
            InputError: always.
        """
        raise InputError("the tiny model of the context comparison only scores", remedy="give a --model that writes")


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
) -> TableModel:
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
    return TableModel(task, model)


def tune(model: TableModel, episode: Episode, tuning: Tuning, *, seed: int) -> TableModel:
    """Continue the weights on the demonstrations of an episode, one a row, in an order of the seed.

    Args:
        model: Pretrained; not changed.
        episode: Its demonstrations are all that is seen.
        tuning: Rate and length.
        seed: Of the order.
    """
    rows = np.stack([episode.keys, model.task.keys + episode.labels], 1).astype(np.int64)
    batch = min(tuning.rows, len(rows))

    def batches(step: int) -> npt.NDArray[np.int64]:
        numbers = np.arange(step * batch, (step + 1) * batch)
        epochs, places = np.divmod(numbers, len(rows))
        orders = {int(epoch): np.random.default_rng([seed, int(epoch)]).permutation(len(rows)) for epoch in set(epochs)}
        return np.stack([rows[orders[int(epoch)][place]] for epoch, place in zip(epochs, places, strict=True)])

    config = model.model.config
    shape = TinyModel(layers=config.layers, width=config.width, head_size=config.head_size)
    outcome = train(
        config_of(model.task, shape, 1),
        OptimizerConfig(
            lr=tuning.lr, batch_size=batch, steps=tuning.steps, weight_decay=WEIGHT_DECAY, warmup_fraction=0.1
        ),
        batches,
        seed=seed,
        threads=1,
        initial=model.weights,
    )
    if outcome.diverged:
        return model
    tuned = Transformer(config)
    tuned.load_state_dict(outcome.model.state_dict())
    return TableModel(model.task, tuned, "tiny, fine-tuned")


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


def _each(scores: ItemScores) -> Iterator[ItemScore]:
    for number, item_id in enumerate(scores.item_ids.tolist()):
        first, end = scores.choice_offsets[number : number + 2].tolist()
        reason = str(scores.reasons[number])
        yield ItemScore(
            id=item_id,
            reason=reason,
            nll_nats=() if reason else tuple(scores.nll_nats[first:end].tolist()),
            tokens=() if reason else tuple(scores.answer_tokens[first:end].tolist()),
            truncated=bool(scores.truncated[number]),
            spanning=bool(scores.spanning[number]),
        )
