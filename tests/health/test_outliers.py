"""Who stands out, and how seldom anybody does who should not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wholestack.health.outliers import FEWEST, standing_out

ALPHA = 1e-4


def normal(count, seed=0, scale=2.0):
    return np.random.default_rng(seed).normal(60.0, scale, count)


def members(values, **kwargs):
    found = standing_out(np.asarray(values, dtype=float), **({"alpha": ALPHA} | kwargs))
    return sorted(found.members) if found else []


def test_one_value_far_above_the_bulk_stands_out_and_is_named_with_what_it_stands_above():
    values = normal(512)
    values[17] = 160.0
    found = standing_out(values, alpha=ALPHA)
    assert found.members == (17,)
    assert found.boundary == np.sort(values)[-2]
    assert found.median == np.median(values)
    assert found.chance < ALPHA


def test_several_that_stand_out_do_not_hide_each_other():
    values = normal(512)
    values[[3, 5, 8]] = 150.0, 170.0, 190.0
    assert members(values) == [3, 5, 8]


def test_more_than_two_percent_alike_are_another_kind_and_no_fault():
    values = normal(512)
    values[:20] += 200.0
    assert members(values) == []


def test_low_values_are_no_concern_of_the_high_side():
    values = normal(512)
    values[17] = -100.0
    assert members(values) == []


def test_a_difference_below_the_least_never_matters():
    values = np.full(64, 60.0) + normal(64, scale=0.001) - 60.0
    values[5] += 1.0
    assert members(values) == [5]
    assert members(values, least=2.0) == []


@pytest.mark.parametrize("count", range(FEWEST))
def test_few_values_are_silent_whatever_they_are(count):
    values = normal(count)
    if count:
        values[0] = 1e9
    assert members(values) == []


@given(st.integers(FEWEST, 200), st.floats(-1e9, 1e9))
def test_equal_values_never_stand_out(count, value):
    assert members(np.full(count, value)) == []


def test_one_count_more_than_none_is_nothing_but_hundreds_are():
    values = np.zeros(512)
    values[4] = 1.0
    assert members(values) == []
    values[4] = 500.0
    assert members(values) == [4]


def test_a_second_hump_is_no_fault():
    rng = np.random.default_rng(1)
    busy = rng.random(512) < 0.3
    assert members(np.where(busy, rng.normal(650, 20, 512), rng.normal(90, 5, 512))) == []


@given(st.integers(0, 50), st.permutations(range(64)))
def test_the_order_of_hosts_does_not_matter(seed, order):
    values = normal(64, seed)
    values[0] = 60 + 40 * (seed % 7)
    plain, shuffled = members(values), members(values[list(order)])
    assert plain == sorted(order[place] for place in shuffled)


@given(st.integers(0, 50), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_neither_unit_nor_zero_matters(seed, scale, shift):
    values = normal(64, seed)
    values[0] = 60 + 40 * (seed % 7)
    assert members(values) == members(values * scale + shift)


@given(st.integers(0, 200))
def test_farther_out_is_never_less_outlying(seed):
    values = normal(128, seed)
    values[0] = 120.0
    near = members(values)
    values[0] = 400.0
    assert set(near) <= set(members(values))


SHAPES = {
    "normal": lambda rng, n: rng.normal(60, 2, n),
    "whole degrees": lambda rng, n: np.round(rng.normal(60, 2, n)),
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "Student t, 3 degrees": lambda rng, n: rng.standard_t(3, n),
    "counts": lambda rng, n: rng.poisson(0.1, n).astype(float),
    "two humps": lambda rng, n: np.where(rng.random(n) < 0.5, rng.normal(650, 20, n), rng.normal(90, 5, n)),
    "drift": lambda rng, n: np.linspace(40, 80, n) + rng.normal(0, 2, n),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_healthy_fleets_are_named_no_more_often_than_is_stated(shape):
    """At a rate of one in fifty, so that a suite can count it; the benchmark counts the rate that sweeps use."""
    rng, rounds, alpha = np.random.default_rng(7), 400, 0.02
    alarms = sum(standing_out(SHAPES[shape](rng, 128), alpha=alpha) is not None for _ in range(rounds))
    assert alarms <= stats.binom.isf(1e-3, rounds, alpha)
