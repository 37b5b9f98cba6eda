"""Pace: the model finds what made the times, and one slow worker does not move it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.experiments.pace import Pace, Work, fit_pace, prior_pace

TRUTH = Pace(step_s=2e-3, layer_s=1e-3, rate_flops_s=3e10)
PRIOR = prior_pace(1e10)


def works(count: int, seed: int = 0) -> list[Work]:
    rng = np.random.default_rng(seed)
    return [
        Work(
            steps=int(rng.integers(20, 2000)),
            layers=int(rng.integers(1, 9)),
            cost_flops=float(10 ** rng.uniform(9, 12)),
        )
        for _ in range(count)
    ]


@given(st.integers(0, 1000))
def test_the_fit_finds_the_pace_that_made_the_times(seed: int) -> None:
    done = works(30, seed)
    rng = np.random.default_rng(seed)
    seconds = [TRUTH.seconds(work) * float(np.exp(rng.normal(0, 0.03))) for work in done]
    fitted = fit_pace(done, seconds, PRIOR)
    for work in works(10, seed + 1):
        assert fitted.seconds(work) == pytest.approx(TRUTH.seconds(work), rel=0.15)


def test_a_worker_at_a_third_of_its_speed_does_not_set_the_pace() -> None:
    done = works(24)
    seconds = [TRUTH.seconds(work) for work in done]
    seconds[3] *= 3
    fitted = fit_pace(done, seconds, PRIOR)
    assert seconds[3] / fitted.seconds(done[3]) == pytest.approx(3, rel=0.1)


def test_with_few_runs_the_prior_stands() -> None:
    done = works(5)
    assert fit_pace(done, [1.0] * 5, PRIOR) == PRIOR


@given(st.lists(st.floats(1e-3, 1e3), min_size=6, max_size=6))
def test_any_times_give_a_pace_that_is_positive_and_finite(seconds: list[float]) -> None:
    done = works(6)
    fitted = fit_pace(done, seconds, PRIOR)
    assert all(0 < fitted.seconds(work) < float("inf") for work in done)
