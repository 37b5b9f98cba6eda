import numpy as np
import pytest

from wholestack.search import kernel
from wholestack.search.surrogate import Work, condition_on, fit

ORDERED = np.array([True, True, False])


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 2] = rng.integers(0, 3, n)
    y = np.sin(2 * x[:, 0]) + 0.5 * (x[:, 2] == 1) + 0.1 * rng.normal(size=n)
    return x, (y - y.mean()) / max(y.std(), 1e-9)


def test_extending_a_posterior_is_the_same_as_making_it_of_all_points():
    x, y = data(30)
    theta = kernel.default_prior(ORDERED).mean
    whole = condition_on(x, y, ORDERED, theta)
    grown = condition_on(x[:20], y[:20], ORDERED, theta).extended(x[20:], y[20:])
    points, _ = data(9, seed=3)
    assert grown.predict(points).mean == pytest.approx(whole.predict(points).mean, abs=1e-6)
    assert grown.predict(points).deviation == pytest.approx(whole.predict(points).deviation, abs=1e-6)


def test_a_posterior_of_nothing_is_the_prior():
    theta = kernel.default_prior(ORDERED).mean
    points, _ = data(5)
    found = condition_on(np.zeros((0, 3)), np.zeros(0), ORDERED, theta).predict(points)
    assert found.mean == pytest.approx(np.zeros(5))
    assert found.deviation**2 == pytest.approx(kernel.variance(theta, points, ORDERED))


def test_samples_have_the_mean_and_covariance_of_what_would_be_observed():
    x, y = data(12)
    gp = condition_on(x, y, ORDERED, kernel.default_prior(ORDERED, noise=0.1).mean)
    points, _ = data(3, seed=8)
    rng = np.random.default_rng(0)
    draws = np.array([gp.sample(points, rng) for _ in range(4000)])
    expected = gp.predict(points)
    assert draws.mean(axis=0) == pytest.approx(expected.mean, abs=0.06)
    assert draws.var(axis=0) == pytest.approx(expected.deviation**2 + kernel.noise_variance(gp.theta), rel=0.12)


def test_a_fit_finds_the_noise_and_which_columns_matter():
    x, y = data(80)
    prior = kernel.default_prior(ORDERED)
    found = fit(x, y, ORDERED, prior)
    value, gradient = kernel.negative_log_likelihood(found.theta, x, y, ORDERED)
    assert found.objective == pytest.approx(value + prior.penalty(found.theta))
    assert np.abs(gradient + prior.gradient(found.theta)).max() < 0.5
    assert found.theta[0] < found.theta[1]
    assert 0.003 < kernel.noise_variance(found.theta) < 0.08
    assert found.trouble == ""


def test_a_warm_start_needs_fewer_evaluations_and_reaches_the_same_place():
    x, y = data(60)
    prior, cold, warm = kernel.default_prior(ORDERED), Work(), Work()
    first = fit(x, y, ORDERED, prior, work=cold)
    again = fit(x, y, ORDERED, prior, start=first.theta, work=warm)
    assert again.objective <= first.objective + 1e-9
    assert warm.likelihoods < cold.likelihoods


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_points_can_be_fitted(n):
    x, _ = data(n)
    assert np.isfinite(fit(x, np.zeros(n), ORDERED, kernel.default_prior(ORDERED)).theta).all()


def test_a_covariance_that_cannot_be_factorised_is_said():
    x, y = data(10)
    x[0, 0] = np.nan
    found = fit(x, y, ORDERED, kernel.default_prior(ORDERED))
    assert "not positive definite" in found.trouble
