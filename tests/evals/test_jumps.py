"""The test for jumps: calibrated on smooth curves of any form, and awake on curves that take off."""

import itertools

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from wholestack.evals.jumps import _Test, detectable_jump, jump_test, rising

X = np.geomspace(1e7, 1e10, 12)
U = np.log(X / X[0]) / np.log(X[-1] / X[0])
P = 0.5 + 0.48 * U
"""Probability of each token of an answer, rising steadily along the logarithmic axis."""

SMOOTH = {
    "line": 0.3 + 0.5 * U,
    "power law": 1.8 + 2 * (X / 1e7) ** -0.3,
    "token loss": -np.log(P),
    "saturating": 1 - np.exp(-4 * U),
}


def _judge(values, errors, rng, **more):
    return jump_test(X, values, errors, axis="logarithmic", rng=rng, **({"simulations": 299} | more))


def _noisy(truth, error, rng):
    return truth + error * rng.normal(size=len(truth))


@pytest.mark.parametrize("known", [True, False])
def test_on_a_straight_line_the_p_value_is_uniform(known):
    """The least favourable smooth curve: here the false-positive rate is the level itself, not less."""
    rng = np.random.default_rng(1)
    errors = np.linspace(0.01, 0.03, 12) if known else np.full(12, 0.02)
    found = [_judge(_noisy(SMOOTH["line"], errors, rng), errors if known else None, rng).p_value for _ in range(150)]
    for level in (0.05, 0.2, 0.5):
        rate = np.mean(np.array(found) < level)
        assert abs(rate - level) <= 3.2 * np.sqrt(level * (1 - level) / 150), (level, rate)


@pytest.mark.parametrize("name", ["power law", "token loss", "saturating"])
@pytest.mark.parametrize("error", [0.003, 0.03])
def test_a_smooth_curve_is_hardly_ever_called_anything_else(name, error):
    """At a level of 0.05 in 60 draws; at 0.01, the command's own level, rarer still."""
    rng = np.random.default_rng(2)
    errors = np.full(12, error)
    shapes = [_judge(_noisy(SMOOTH[name], errors, rng), errors, rng, alpha=0.05).shape for _ in range(60)]
    assert sum(shape in {"jumps", "accelerates"} for shape in shapes) <= 6


@pytest.mark.parametrize("tokens", [10, 20])
def test_exact_match_of_many_tokens_jumps_while_the_loss_of_the_same_models_does_not(tokens):
    """Schaeffer et al. 2023: exact match is p^k, the loss -ln p; 400 questions a checkpoint."""
    rng = np.random.default_rng(3)
    exact, loss = [], []
    for _ in range(40):
        share = rng.binomial(400, P**tokens) / 400
        errors = np.sqrt(np.maximum(share * (1 - share), 1 / 400) / 400)
        exact.append(_judge(share, errors, rng))
        loss.append(_judge(_noisy(-np.log(P), 0.01, rng), np.full(12, 0.01), rng))
    assert sum(each.shape == "jumps" for each in exact) >= 36
    assert all(each.begin > 1e8 for each in exact if each.shape == "jumps")
    assert sum(each.shape == "smooth" for each in loss) >= 38


def test_a_step_is_found_where_it_is():
    errors = np.full(12, 0.02)
    found = _judge(np.where(X > 5e8, 0.9, 0.1) + 0.01 * np.sin(X), errors, np.random.default_rng(4))
    assert found.shape == "jumps"
    assert found.share > 0.9
    assert found.begin < 5e8 < found.end


def test_a_loss_that_falls_off_a_cliff_jumps_too_whatever_the_direction():
    errors = np.full(12, 0.02)
    found = _judge(np.where(X > 5e8, 1.0, 3.0), errors, np.random.default_rng(5))
    assert found.shape == "jumps"


def test_noise_alone_is_no_change():
    rng = np.random.default_rng(6)
    errors = np.full(12, 0.02)
    shapes = [_judge(_noisy(np.full(12, 0.25), errors, rng), errors, rng).shape for _ in range(40)]
    assert shapes.count("no change") >= 37


def test_the_axis_decides_what_steady_means():
    """Steady along x is taking off along its logarithm."""
    values, errors = X / 1e10, np.full(12, 0.01)
    rng = np.random.default_rng(7)
    assert jump_test(X, values, errors, axis="linear", rng=rng).shape == "smooth"
    assert jump_test(X, values, errors, axis="logarithmic", rng=rng).shape == "jumps"


def test_four_points_are_too_few():
    found = jump_test(X[:4], U[:4], np.full(4, 0.01), axis="linear", rng=np.random.default_rng(8))
    assert (found.shape, found.p_value) == ("unknown", None)


def test_values_without_any_noise_are_judged():
    rng = np.random.default_rng(9)
    assert _judge(SMOOTH["line"], None, rng).shape in {"smooth", "no change"}
    assert _judge(np.full(12, 0.5), None, rng).shape == "no change"


def test_the_distance_is_that_of_the_nearest_concave_curve():
    """Against a general solver: the statistic behind the p-value is what the module says it is."""
    rng = np.random.default_rng(10)
    t, errors, y = U, rng.uniform(0.02, 0.05, 12), P**8 + 0.03 * rng.normal(size=12)
    rows = np.zeros((10, 12))
    for row, (left, right) in enumerate(itertools.pairwise(np.diff(t))):
        rows[row, row : row + 3] = [1 / left, -1 / left - 1 / right, 1 / right]
    solved = minimize(
        lambda f: np.sum(((y - f) / errors) ** 2),
        np.polyval(np.polyfit(t, y, 1), t),
        jac=lambda f: -2 * (y - f) / errors**2,
        constraints=[LinearConstraint(rows, -np.inf, 0)],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert _Test(t, errors)._statistics(y)[1] == pytest.approx(solved.fun, rel=1e-4)


def test_rising_pools_neighbours_that_fall():
    assert rising(np.array([1.0, 3.0, 2.0, 4.0])).tolist() == [1.0, 2.5, 2.5, 4.0]
    assert rising(np.array([3.0, 1.0]), np.array([1.0, 3.0])).tolist() == [1.5, 1.5]


@pytest.mark.parametrize(("known", "base"), [(True, "power law"), (True, "line"), (False, "line")])
def test_a_jump_of_the_size_said_to_be_seen_is_seen_four_times_in_five_and_a_third_of_it_is_not(known, base):
    rng = np.random.default_rng(12)
    errors = np.linspace(0.01, 0.03, 12) if known else np.full(12, 0.02)
    form = rising(P**20)
    form = (form - form[0]) / (form[-1] - form[0])
    truth = SMOOTH[base] if base == "line" else -SMOOTH[base]
    values = _noisy(truth, errors, rng)
    found = detectable_jump(
        X, values, errors if known else None, form, like="exact", axis="logarithmic", rng=rng, alpha=0.05
    )
    assert found.share == found.size / np.ptp(values)

    def seen(size, start):
        curves = [_noisy(start + size * form, errors, rng) for _ in range(60)]
        judged = [_judge(each, errors if known else None, rng, alpha=0.05, simulations=499) for each in curves]
        return np.mean([each.shape in {"jumps", "accelerates"} for each in judged])

    test = _Test(U, errors if known else None)
    assert 0.6 <= seen(found.size, test.nearest(values)) <= 0.97
    assert seen(found.size / 3, test.nearest(values)) <= 0.45


def test_the_nearest_curve_is_concave_and_at_the_distance_of_the_test():
    rng = np.random.default_rng(13)
    errors, y = rng.uniform(0.02, 0.05, 12), P**8 + 0.03 * rng.normal(size=12)
    test = _Test(U, errors)
    nearest = test.nearest(y)
    assert (np.diff(np.diff(nearest) / np.diff(U)) <= 1e-9).all()
    assert np.sum(((y - nearest) / errors) ** 2) == pytest.approx(test._statistics(y)[1])
