"""Draws have the mean and the spread that they say."""

from random import Random

import pytest

from wholestack.health.simulator.chance import events, log_uniform


@pytest.mark.parametrize("expected", [0.05, 2.0, 25.0, 400.0])
def test_events_have_mean_and_variance_of_a_poisson_law(expected: float):
    rng = Random(5)
    drawn = [events(rng, expected) for _ in range(4_000)]
    mean = sum(drawn) / len(drawn)
    variance = sum((each - mean) ** 2 for each in drawn) / len(drawn)
    assert mean == pytest.approx(expected, rel=0.12)
    assert variance == pytest.approx(expected, rel=0.15)


def test_what_cannot_happen_does_not():
    assert events(Random(1), 0.0) == events(Random(1), -1.0) == 0


def test_log_uniform_puts_the_same_share_in_each_decade():
    rng = Random(2)
    drawn = [log_uniform(rng, 1, 1_000) for _ in range(3_000)]
    assert sum(each < 10 for each in drawn) == pytest.approx(1_000, rel=0.1)
    assert all(1 <= each <= 1_000 for each in drawn)
