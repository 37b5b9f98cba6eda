"""Clean because of what the curve follows, or because of its axes: constructed cases both ways."""

import numpy as np
import pytest

from wholestack.evals.straightness import straightness

X = np.geomspace(1e6, 1e9, 10)


def _judge(x, values, errors=None, seed=0):
    return straightness(x, values, errors, rng=np.random.default_rng(seed))


def _noisy(values, relative, seed=0):
    errors = relative * values
    return values + errors * np.random.default_rng(seed).normal(size=len(values)), errors


def _line(found, axes):
    return next(each for each in found.lines if each.axes == axes)


def test_a_power_law_over_three_decades_is_clean_on_log_log_alone():
    values, errors = _noisy(5 * (X / 1e6) ** -0.25, 0.01)
    found = _judge(X, values, errors)
    assert found.look == "clean"
    assert _line(found, "logarithmic both").reasons == ()
    assert _line(found, "logarithmic both").slope == pytest.approx(-0.25, abs=0.01)


def test_power_laws_are_rarely_accused():
    accused = 0
    for seed in range(60):
        values, errors = _noisy(5 * (X / 1e6) ** -0.25, 0.01, seed)
        accused += bool(_line(_judge(X, values, errors, seed), "logarithmic both").reasons)
    assert accused <= 5


def test_a_line_in_log_x_is_clean_there():
    values = 0.2 + 0.1 * np.log10(X / 1e6) + 0.003 * np.random.default_rng(1).normal(size=10)
    found = _judge(X, values, np.full(10, 0.003))
    assert _line(found, "logarithmic x").reasons == ()
    assert found.look in {"clean", "clean in several ways"}


def test_two_regimes_that_look_straight_on_log_log_are_owed_to_the_axes():
    """The exponent changes in the middle; R² on log-log is still above 0.95, the errors say otherwise."""
    knee = np.where(X < 3e7, (X / 3e7) ** -0.35, (X / 3e7) ** -0.2)
    values, errors = _noisy(3 * knee, 0.005)
    found = _judge(X, values, errors)
    line = _line(found, "logarithmic both")
    assert line.r_squared > 0.95
    assert found.look == "clean by its axes only"
    assert any("times their errors" in reason for reason in line.reasons)


def test_a_bend_is_seen_without_any_errors_by_the_order_of_the_residuals():
    x = np.geomspace(1e6, 1e9, 16)
    values = 3 * np.where(x < 3e7, (x / 3e7) ** -0.35, (x / 3e7) ** -0.2)
    line = _line(_judge(x, values), "logarithmic both")
    assert line.misfit is None
    assert any("residuals bend" in reason for reason in line.reasons)


def test_a_line_that_fails_on_the_linear_scale_is_owed_to_the_axes():
    """Six decades of y: the logarithm hides that the largest value is missed by far more than all others weigh."""
    factors = np.array([1.5, 0.7, 1.3, 0.8, 1.2, 1.4, 0.6, 1.3, 1.2, 0.35])
    values = (X / 1e6) ** 2 * factors
    found = _judge(X, values)
    line = _line(found, "logarithmic both")
    assert line.r_squared > 0.98
    assert line.linear_r_squared < 0.8
    assert found.look == "clean by its axes only"
    assert any("linear scale" in reason for reason in line.reasons)


def test_a_range_cut_short_makes_every_curve_straight():
    """A power law and an offset that bends over four decades, seen over half of one."""
    whole = np.geomspace(1e6, 1e10, 12)
    cut = np.geomspace(1e8, 4e8, 12)

    def curve(x):
        return 1 + 3 * (x / 1e6) ** -0.4

    assert not _line(_judge(whole, curve(whole)), "logarithmic both").looks_clean
    found = _judge(cut, curve(cut) + 1e-3 * np.random.default_rng(2).normal(size=12), np.full(12, 1e-3))
    assert found.look == "clean by its axes only"
    assert all(any("factor of 4" in reason for reason in line.reasons) for line in found.lines if line.looks_clean)


def test_a_power_law_that_hardly_falls_leaves_several_forms_open():
    looks = [_judge(X, *_noisy(5 * (X / 1e6) ** -0.05, 0.01, seed)).look for seed in range(10)]
    assert looks.count("clean in several ways") >= 7


def test_scattered_points_look_clean_nowhere():
    found = _judge(X, np.random.default_rng(4).uniform(1, 2, 10))
    assert found.look == "not clean"
    assert all(line.reasons == () for line in found.lines)


def test_a_value_of_zero_has_no_logarithm():
    found = _judge(X, np.linspace(0, 1, 10))
    assert [line.axes for line in found.lines] == ["linear", "logarithmic x"]


def test_too_few_points_or_a_constant_are_unknown():
    assert _judge(X[:4], np.arange(4.0)).look == "unknown"
    assert _judge(X, np.ones(10)).look == "unknown"
