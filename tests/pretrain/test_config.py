"""Configurations refuse what cannot be built, name the value, and survive JSON."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.pretrain import ModelConfig, OptimizerConfig
from wholestack.record import from_json, to_json

SHAPE = {"vocab_size": 64, "context": 16, "layers": 2, "width": 32, "head_size": 8, "kv_heads": 2}
SETTINGS = {"lr": 0.01, "batch_size": 4, "steps": 10}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"layers": 0}, "layers is 0"),
        ({"head_size": 12}, "not a multiple of head_size 12"),
        ({"head_size": 1}, "head_size is 1"),
        ({"kv_heads": 3}, "kv_heads 3 does not divide"),
        ({"kv_heads": 8}, "kv_heads 8 does not divide"),
        ({"mlp_ratio": 0.0}, "mlp_ratio is 0.0"),
        ({"rope_base": float("inf")}, "rope_base is inf"),
    ],
)
def test_a_model_that_cannot_be_built_is_refused_with_the_value(change, word):
    with pytest.raises(InputError, match=word):
        ModelConfig(**{**SHAPE, **change})


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"steps": 0}, "steps is 0"),
        ({"warmup_fraction": 1.5}, "warmup_fraction is 1.5"),
        ({"beta2": 1.0}, "beta2 is 1"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0"),
    ],
)
def test_settings_out_of_bounds_are_refused_with_the_value(change, word):
    with pytest.raises(InputError, match=word):
        OptimizerConfig(**{**SETTINGS, **change})


@settings(deadline=None)
@given(width=st.integers(1, 64).map(lambda n: 8 * n), ratio=st.floats(0.25, 8))
def test_the_hidden_size_is_near_its_ratio_and_fills_registers(width, ratio):
    config = ModelConfig(**{**SHAPE, "width": width, "kv_heads": 1, "mlp_ratio": ratio})
    assert config.mlp_width % 16 == 0
    assert config.mlp_width >= 16
    assert abs(config.mlp_width - ratio * width) <= 16


def test_configurations_come_back_from_json_unchanged():
    model, optimizer = ModelConfig(**SHAPE), OptimizerConfig(**SETTINGS)
    assert from_json(ModelConfig, to_json(model)) == model
    assert from_json(OptimizerConfig, to_json(optimizer)) == optimizer
