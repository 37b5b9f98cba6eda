"""The interval score is proper, and the baseline is textbook least squares."""

import numpy as np
import pytest
from scipy.stats import linregress, norm

from wholestack.errors import FitError, InputError
from wholestack.scaling.points import RunPoint, pareto_points
from wholestack.scaling.scores import interval_score, straight_line


def test_the_true_central_interval_scores_best_on_average():
    sample = np.random.default_rng(0).standard_normal(4000)

    def mean_score(factor):
        half = factor * norm.ppf(0.95)
        return np.mean([interval_score(x, (-half, half), 0.9) for x in sample])

    assert mean_score(1.0) < min(mean_score(0.7), mean_score(1.4))


def test_score_of_a_hit_is_the_width_and_of_a_miss_adds_twenty_times_the_distance():
    assert interval_score(1.5, (1.0, 2.0), 0.9) == pytest.approx(1.0)
    assert interval_score(2.1, (1.0, 2.0), 0.9) == pytest.approx(1.0 + 20 * 0.1)
    with pytest.raises(InputError):
        interval_score(1.0, (2.0, 1.0), 0.9)


def test_straight_line_is_least_squares_in_logs():
    rng = np.random.default_rng(1)
    cost = 10 ** rng.uniform(9, 11, 20)
    loss = 3 * cost**-0.1 * np.exp(0.01 * rng.standard_normal(20))
    points = [RunPoint(cost_flops=c, loss=y) for c, y in zip(cost, loss, strict=True)]
    oracle = linregress(np.log(cost), np.log(loss))
    made = straight_line(points, 1e13)
    assert made.slope == pytest.approx(oracle.slope, rel=1e-8)
    assert np.log(made.predicted) == pytest.approx(oracle.intercept + oracle.slope * np.log(1e13), rel=1e-8)


def test_straight_line_covers_nine_of_ten_when_the_line_is_true():
    inside = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        cost = 10 ** rng.uniform(9, 11, 10)
        points = [RunPoint(cost_flops=c, loss=3 * c**-0.1 * np.exp(0.01 * rng.standard_normal())) for c in cost]
        low, high = straight_line(points, 1e12, level=0.9).interval
        inside += low <= 3 * 1e12**-0.1 * np.exp(0.01 * rng.standard_normal()) <= high
    assert 0.85 <= inside / 300 <= 0.95


def test_a_line_through_two_points_is_refused():
    with pytest.raises(FitError):
        straight_line([RunPoint(cost_flops=1.0, loss=1.0), RunPoint(cost_flops=2.0, loss=1.0)], 4.0)


def test_no_front_member_is_beaten_by_a_cheaper_run():
    rng = np.random.default_rng(2)
    points = [RunPoint(cost_flops=c, loss=y) for c, y in rng.uniform(1, 2, (50, 2))]
    front = pareto_points(points)
    for each in front:
        assert not any(p.cost_flops <= each.cost_flops and p.loss < each.loss for p in points)
    assert min(p.loss for p in points) == front[-1].loss
