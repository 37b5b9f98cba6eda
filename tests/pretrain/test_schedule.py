"""The learning rate rises once, then never again."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.pretrain import OptimizerConfig
from wholestack.pretrain.schedule import lr_fraction

shapes = st.sampled_from(["cosine", "linear", "wsd"])


@settings(deadline=None)
@given(steps=st.integers(1, 300), warmup=st.floats(0, 1), shape=shapes, final=st.floats(0, 1), cool=st.floats(0, 1))
def test_it_rises_once_and_never_again_and_stays_within_bounds(steps, warmup, shape, final, cool):
    config = OptimizerConfig(
        lr=1.0,
        batch_size=1,
        steps=steps,
        warmup_fraction=warmup,
        decay=shape,
        final_lr_fraction=final,
        decay_fraction=cool,
    )
    values = [lr_fraction(config, step) for step in range(steps)]
    assert all(0 <= value <= 1 + 1e-12 for value in values)
    peak = values.index(max(values))
    assert values[: peak + 1] == sorted(values[: peak + 1])
    assert all(later <= earlier + 1e-12 for earlier, later in zip(values[peak:], values[peak + 1 :], strict=False))


@pytest.mark.parametrize("shape", ["cosine", "linear", "wsd"])
def test_the_first_step_moves_and_the_end_is_the_final_fraction(shape):
    config = OptimizerConfig(
        lr=1.0, batch_size=1, steps=100, warmup_fraction=0.1, decay=shape, final_lr_fraction=0.2, decay_fraction=0.5
    )
    assert lr_fraction(config, 0) == pytest.approx(0.1)
    assert lr_fraction(config, 9) == 1.0
    assert lr_fraction(config, 100) == pytest.approx(0.2)
    middle = {
        "linear": 0.2 + 0.8 * 0.5,
        "cosine": 0.2 + 0.8 * (0.5 + math.cos(math.pi / 2) / 2),
        "wsd": 0.2 + 0.8 * 0.9,
    }
    assert lr_fraction(config, 55) == pytest.approx(middle[shape])
