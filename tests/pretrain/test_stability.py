"""Spikes are found where they were planted, and nowhere else."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.pretrain.stability import has_diverged, spike_heights, summarize


def falling_curve(steps=400, seed=0, noise=0.05):
    """A power law with the noise of small batches."""
    rng = np.random.default_rng(seed)
    return (2 + 4 * (1 + np.arange(steps)) ** -0.4 + rng.normal(0, noise, steps)).tolist()


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_noisy_falling_curve_has_no_spikes(seed):
    assert spike_heights(falling_curve(seed=seed)) == []


@settings(deadline=None)
@given(st.sets(st.integers(5, 24), max_size=5).map(lambda s: [16 * x for x in sorted(s)]))
def test_planted_spikes_are_counted_once_each_with_their_height(where):
    losses = falling_curve()
    for step in where:
        for after in range(3):
            losses[step + after] += 2.0 / (1 + after)
    heights = spike_heights(losses)
    assert len(heights) == len(where)
    assert all(height == pytest.approx(2.0, abs=0.4) for height in heights)


def test_a_run_that_is_worse_than_knowing_nothing_has_diverged():
    losses = [5.0, *falling_curve(50), *[6.5] * 8]
    assert not has_diverged(losses, [1.0] * len(losses))
    losses += [6.5] * 8
    assert has_diverged(losses, [1.0] * len(losses))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_or_gradient_that_is_not_finite_has_diverged(bad):
    assert has_diverged([5.0, bad], [1.0, 1.0])
    assert has_diverged([5.0, 4.0], [1.0, bad])
    assert not has_diverged([], [])


def test_the_summary_holds_finite_numbers_only():
    summary = summarize([5.0, 4.0, math.nan], [3.0, 0.5, math.inf], clip_norm=1.0)
    assert summary.diverged
    assert summary.largest_gradient_norm == 3.0
    assert summary.clipped_fraction == 0.5
    assert summarize([], [], clip_norm=1.0).largest_gradient_norm is None
