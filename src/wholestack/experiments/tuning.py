"""Fine-tuning of a causal model in this process on demonstrations, whatever library it is of.

One small loop for the tiny model that is pretrained here and for models from elsewhere: AdamW (Loshchilov and Hutter
2019) with one learning rate for all weights, a short warm-up and a straight fall, over the demonstrations in an order
of the seed. What is minimised is what is measured later: the loss of an item's right answer, by the same tokens.
Weights are changed in place and put back, so there is one copy of them besides the optimizer's two and the gradients.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from wholestack.errors import InputError
from wholestack.evals.backend import Backend
from wholestack.evals.items import Item
from wholestack.evals.models.local import LocalBackend
from wholestack.evals.prepared import PreparedItems
from wholestack.experiments.in_context_plan import Tuning
from wholestack.pretrain.config import OptimizerConfig
from wholestack.pretrain.loop import torch_settings
from wholestack.pretrain.schedule import lr_fraction
from wholestack.record import digest, to_builtins

WEIGHT_DECAY = 0.01
BETAS = (0.9, 0.95)
WARMUP = 0.1
CLIP_NORM = 1.0
_SMALL = 5_000_000
"""Weights of a model that more than one thread makes slower."""


@contextmanager
def tuned(model: LocalBackend, demonstrations: Sequence[Item], tuning: Tuning, *, seed: int) -> Iterator[Backend]:
    """The model with its weights continued on demonstrations; behind the block they are as they were.

    Args:
        model: Its weights are changed in place meanwhile.
        demonstrations: The right answer of each is trained on, behind its context.
        tuning: Rate and length. Where the loss is no number any more, the weights stay those that were given.
        seed: Of the order.

    Raises:
        InputError: none of the demonstrations can be scored by this model.
    """
    module: nn.Module = model.module
    rows = _rows(model.prepare(demonstrations))
    if not rows:
        raise InputError("none of the demonstrations has a token to train on", remedy="choose another --template")
    before = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    try:
        if not _train(module, rows, tuning, seed=seed):
            module.load_state_dict(before)
        told = digest([[each.tokens, each.answer] for each in rows], to_builtins(tuning), seed)
        identity = replace(
            model.identity, name=f"{model.identity.name}, fine-tuned", parts={**model.identity.parts, "tuned": told}
        )
        yield replace(model, identity=identity)
    finally:
        module.load_state_dict(before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One demonstration."""

    tokens: list[int]
    """Context and answer."""
    answer: int
    """How many of the last ones are trained on."""


def _rows(prepared: PreparedItems) -> list[_Row]:
    """Those that can be scored."""
    found = []
    for number in np.flatnonzero(prepared.reasons == "").tolist():
        choice = int(prepared.choice_offsets[number] + prepared.gold[number])
        context = prepared.contexts[prepared.context_offsets[number] : prepared.context_offsets[number + 1]]
        answer = prepared.answers[prepared.answer_offsets[choice] : prepared.answer_offsets[choice + 1]]
        found.append(_Row(tokens=[*context.tolist(), *answer.tolist()], answer=len(answer)))
    return found


def _train(module: nn.Module, rows: Sequence[_Row], tuning: Tuning, *, seed: int) -> bool:
    """Whether the loss stayed a number."""
    parameters = list(module.parameters())
    batch = min(tuning.rows, len(rows))
    schedule = OptimizerConfig(lr=tuning.lr, batch_size=batch, steps=tuning.steps, warmup_fraction=WARMUP)
    threads = 1 if sum(each.numel() for each in parameters) < _SMALL else torch.get_num_threads()
    with torch_settings(threads), torch.enable_grad():
        optimizer = torch.optim.AdamW(parameters, lr=tuning.lr, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)
        tokens, scored = _padded(rows, parameters[0].device)
        for step in range(tuning.steps):
            for group in optimizer.param_groups:
                group["lr"] = tuning.lr * lr_fraction(schedule, step)
            optimizer.zero_grad(set_to_none=True)
            places = _places(step, batch, len(rows), seed)
            loss = _loss(module, tokens[places], scored[places])
            if not math.isfinite(float(loss.detach())):
                return False
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return all(bool(each.isfinite().all()) for each in parameters)


def _places(step: int, batch: int, rows: int, seed: int) -> list[int]:
    """Rows of a step: every epoch all of them, in an order of its own."""
    epochs, places = np.divmod(np.arange(step * batch, (step + 1) * batch), rows)
    orders = {epoch: np.random.default_rng([seed, epoch]).permutation(rows) for epoch in set(epochs.tolist())}
    return [int(orders[epoch][place]) for epoch, place in zip(epochs.tolist(), places.tolist(), strict=True)]


def _padded(rows: Sequence[_Row], device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens ``[rows, places]``, padded on the right, where nothing is scored; and which but the first are scored."""
    width = max(len(row.tokens) for row in rows)
    tokens = torch.tensor([row.tokens + [0] * (width - len(row.tokens)) for row in rows], device=device)
    ends = torch.tensor([len(row.tokens) for row in rows], device=device)[:, None]
    answers = torch.tensor([row.answer for row in rows], device=device)[:, None]
    places = torch.arange(1, width, device=device)[None]
    return tokens, (places < ends) & (places >= ends - answers)


def _loss(module: Any, tokens: Tensor, scored: Tensor) -> Tensor:
    """Mean over rows of the loss of an answer in nats."""
    output = module(tokens[:, :-1])
    logits: Tensor = output if isinstance(output, Tensor) else output.logits
    losses = functional.cross_entropy(logits.float().transpose(1, 2), tokens[:, 1:], reduction="none")
    return (losses * scored).sum() / len(tokens)
