import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from wholestack.search import Categorical, Linear, Space
from wholestack.search.acquisition import (
    Bases,
    along_front,
    local_candidates,
    log_below,
    log_expected_improvement,
    log_search_prior,
    maximise,
)

PLANE = Space([Linear("x", centre=0.0), Linear("y", centre=0.0)])


@settings(deadline=None)
@given(st.floats(-3, 3), st.floats(0.05, 3), st.floats(-3, 3))
def test_expected_improvement_is_the_integral(mean, deviation, target):
    low = min(target, mean) - 12 * deviation
    expected, _ = quad(lambda f: (target - f) * norm.pdf(f, mean, deviation), low, target, points=[min(mean, target)])
    found = math.exp(log_expected_improvement(np.array([mean]), np.array([deviation]), target)[0])
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_hopeless_candidates_can_still_be_told_apart():
    means = np.array([5.0, 50.0, 500.0, 5e3, 5e5])
    found = log_expected_improvement(means, np.ones(5), 0.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
    # Mills ratio: h(-z) -> phi(z) / z^2
    assert found[1] == pytest.approx(norm.logpdf(50.0) - 2 * math.log(50.0), abs=2e-3)
    either_side = log_expected_improvement(np.array([0.999999, 1.000001, 999.9, 1000.1]), np.ones(4), 0.0)
    assert either_side[0] == pytest.approx(either_side[1], abs=1e-5)
    assert either_side[2] - either_side[3] == pytest.approx(200.0, rel=1e-3)


def test_probability_of_being_below_a_limit():
    found = log_below(np.array([0.0, 1.0]), np.array([1.0, 0.5]), 0.5)
    assert np.exp(found) == pytest.approx(norm.cdf([0.5, -1.0]))


def test_the_search_prior_takes_the_nearest_origin_and_one_step_in_every_dimension_costs_half_a_nat():
    origins = np.array([[0.0, 0.0], [10.0, 0.0]])
    points = np.array([[0.0, 0.0], [0.3, 0.3], [10.3, -0.3], [5.0, 0.0]])
    found = log_search_prior(points, origins, PLANE.ordered, 0.3)
    assert found[:3] == pytest.approx([0.0, -0.5, -0.5])
    assert found[3] < -50


def test_another_choice_costs_one_step_of_the_search_prior():
    ordered = np.array([True, False])
    found = log_search_prior(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0]]), ordered, 0.3)
    assert found == pytest.approx([-0.25, 0.0])


def test_candidates_stay_near_their_bases_and_are_allowed():
    space = Space(
        [Linear("x", centre=0, low=-3, high=3, integer=True), Categorical("c", choices=("a", "b"), centre="a")]
    )
    found = local_candidates(
        space, np.array([[0.0, 0.0]]), np.ones(1), count=300, radius=0.3, rng=np.random.default_rng(0)
    )
    assert np.allclose(space.snap(found), found)
    assert {space.decode(row)["c"] for row in found} == {"a", "b"}
    assert np.abs(found[:, 0]).max() < 5


def test_candidates_follow_the_front_beyond_its_end():
    cost = np.linspace(0.0, 5.0, 12)
    bases = Bases(x=np.stack([0.5 * cost, -0.2 * cost], axis=1), log_cost=cost)
    found = along_front(PLANE, bases, 7.0, count=400, radius=0.1, rng=np.random.default_rng(0))
    assert np.median(found, axis=0) == pytest.approx([3.5, -1.4], abs=0.05)
    one = Bases(x=np.zeros((1, 2)), log_cost=np.zeros(1))
    assert len(along_front(PLANE, one, 0.0, count=5, radius=0.1, rng=np.random.default_rng(0))) == 0


def test_bases_near_a_cost_are_preferred_and_none_is_starved():
    weight = Bases(x=np.zeros((3, 2)), log_cost=np.array([0.0, 5.0, 10.0])).near(5.0)
    assert weight.sum() == pytest.approx(1.0)
    assert weight[1] > 0.8
    assert weight.min() > 0.03


def test_maximise_climbs_far_beyond_its_candidates_and_says_when_all_is_forbidden():
    peak = np.array([1.5, -1.0])
    rng = np.random.default_rng(0)
    start = PLANE.move(np.zeros((100, 2)), np.full(100, 0.3), np.ones(100), rng)
    found = maximise(PLANE, lambda x: -((x - peak) ** 2).sum(axis=1), start, rng, radius=0.6)
    assert found.x == pytest.approx(peak, abs=0.15)
    assert maximise(PLANE, lambda x: np.full(len(x), -np.inf), start, rng, radius=0.6).score == -math.inf
