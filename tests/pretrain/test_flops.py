"""The formulas against the model itself and torch's own counter."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from wholestack.pretrain import ModelConfig, parameter_count, training_flops
from wholestack.pretrain.flops import forward_flops_per_token
from wholestack.pretrain.kernels import mean_cross_entropy
from wholestack.pretrain.model import Transformer

SHAPES = [
    ModelConfig(vocab_size=61, context=12, layers=1, width=16, head_size=8, kv_heads=2),
    ModelConfig(vocab_size=256, context=32, layers=3, width=48, head_size=8, kv_heads=2, mlp_ratio=4.0),
    ModelConfig(vocab_size=100, context=20, layers=2, width=64, head_size=16, kv_heads=1, tied_embeddings=True),
    ModelConfig(vocab_size=40, context=64, layers=4, width=32, head_size=32, kv_heads=1, qk_norm=False),
]


@pytest.mark.parametrize("config", SHAPES)
def test_training_flops_are_those_that_torch_counts(config):
    model = Transformer(config)
    tokens = torch.zeros(3, config.context, dtype=torch.long)
    # The counter sees through the plain attention; the fused one recomputes scores in its backward pass.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        mean_cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    assert counter.get_total_flops() == training_flops(config, tokens.numel())


@pytest.mark.parametrize("config", SHAPES)
def test_forward_flops_are_those_that_torch_counts_at_any_length(config):
    model, length = Transformer(config), config.context // 2
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(torch.zeros(2, length, dtype=torch.long))
    assert counter.get_total_flops() == 2 * length * forward_flops_per_token(config, sequence_tokens=length)


@pytest.mark.parametrize("config", SHAPES)
def test_parameters_are_counted_as_the_model_has_them(config):
    model = Transformer(config)
    count = parameter_count(config)
    assert count.total == sum(p.numel() for p in model.parameters())
    embeddings = {"embedding", "head"}
    assert count.without_embeddings == sum(p.numel() for n, p in model.named_parameters() if n not in embeddings)
    assert count.gains == sum(p.numel() for p in model.parameters() if p.dim() == 1)


def test_cost_is_proportional_to_tokens():
    assert training_flops(SHAPES[0], 1000) == 1000 * training_flops(SHAPES[0], 1)
