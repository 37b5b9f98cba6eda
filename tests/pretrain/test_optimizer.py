"""The flat optimizer against torch's AdamW with torch's clipping, parameter by parameter."""

import math

import pytest
import torch

from wholestack.pretrain import ModelConfig, OptimizerConfig
from wholestack.pretrain.kernels import mean_cross_entropy
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.optimizer import FlatAdamW
from wholestack.pretrain.schedule import lr_fraction


def settings(**change):
    return OptimizerConfig(
        **{"lr": 0.02, "batch_size": 2, "steps": 10, "weight_decay": 0.3, "embedding_lr_ratio": 0.5, **change}
    )


def model_of(width=64, *, tied=False):
    config = ModelConfig(
        vocab_size=37, context=16, layers=2, width=width, head_size=8, kv_heads=2, tied_embeddings=tied
    )
    return Transformer(config, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def backward(model, step):
    tokens = torch.randint(0, 37, (2, 17), generator=torch.Generator().manual_seed(step))
    mean_cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("clip_norm", [0.05, 1000.0])
def test_ten_steps_are_those_of_torchs_adamw_on_separate_tensors(tied, clip_norm):
    config = settings(clip_norm=clip_norm)
    ours, theirs = model_of(tied=tied), model_of(tied=tied)
    flat = FlatAdamW(ours, config)

    def group(parameters, lr, decay):
        return {"params": parameters, "lr": lr, "peak": lr, "weight_decay": decay}

    names = dict(theirs.named_parameters())
    gains = [p for n, p in names.items() if n.endswith(("norm", "gain"))]
    matrices = [p for n, p in names.items() if not n.endswith(("norm", "gain", "embedding"))]
    reference = torch.optim.AdamW(
        [
            group(matrices, 0.02 * 128 / 64, 0.3),
            group([theirs.embedding], 0.02 * 128 / 64 if tied else 0.02 * 0.5, 0.0),
            group(gains, 0.02 * 0.5, 0.0),
        ],
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
    )
    for step in range(10):
        flat.zero_gradients()
        backward(ours, step)
        norm = flat.step(step)
        reference.zero_grad()
        backward(theirs, step)
        expected_norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), clip_norm)
        for part in reference.param_groups:
            part["lr"] = part["peak"] * lr_fraction(config, step)
        reference.step()
        # torch adds 1e-6 to the norm when it clips, hence not to the last digit.
        torch.testing.assert_close(norm, expected_norm, rtol=1e-6, atol=0)
    for (name, ours_p), theirs_p in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours_p, theirs_p, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_nothing_and_is_reported(bad):
    model = model_of()
    optimizer = FlatAdamW(model, settings())
    backward(model, 0)
    model.norm.grad[3] = bad
    before = [p.clone() for p in model.parameters()]
    assert not torch.isfinite(optimizer.step(0))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert optimizer.state().steps == 0


def test_decay_shrinks_matrices_only():
    model = model_of()
    optimizer = FlatAdamW(model, settings(warmup_fraction=0.0))
    before = {name: p.clone() for name, p in model.named_parameters()}
    optimizer.zero_gradients()
    optimizer.step(0)
    for name, parameter in model.named_parameters():
        shrunk = parameter.dim() == 2 and name != "embedding"
        factor = 1 - 0.02 * 2 * 0.3 if shrunk else 1.0
        torch.testing.assert_close(parameter, factor * before[name], rtol=1e-12, atol=0, msg=name)


def test_a_restored_optimizer_goes_on_to_the_last_bit():
    models = [model_of(), model_of()]
    first, second = (FlatAdamW(model, settings()) for model in models)
    for step in range(3):
        first.zero_gradients()
        backward(models[0], step)
        first.step(step)
    models[1].load_state_dict(models[0].state_dict())
    second.restore(first.state())
    for step in range(3, 6):
        for model, optimizer in zip(models, (first, second), strict=True):
            optimizer.zero_gradients()
            backward(model, step)
            optimizer.step(step)
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))


def test_the_best_rate_of_matrices_falls_as_their_fan_in_grows():
    moved = []
    for width in (32, 64, 128):
        model = model_of(width)
        optimizer = FlatAdamW(model, settings(weight_decay=0.0, warmup_fraction=0.0))
        before = model.blocks[0].down.detach().clone()
        backward(model, 0)
        optimizer.step(0)
        moved.append(float((model.blocks[0].down.detach() - before).abs().median()))
    assert moved[0] / moved[1] == pytest.approx(2, rel=0.01)
    assert moved[1] / moved[2] == pytest.approx(2, rel=0.01)
