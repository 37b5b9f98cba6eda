"""The batched fit against scipy, and Jacobians against finite differences."""

import numpy as np
import pytest
from scipy.optimize import minimize

from wholestack.scaling.fit import Problem, best_of, minimise
from wholestack.scaling.forms import COST_FORMS, POWER, SIZE_FORMS, frame_of, prior_of
from wholestack.scaling.points import RunPoint, table_of
from wholestack.scaling.residuals import Edge, Huber
from wholestack.scaling.surface import Design, evaluate


def _table(seed=0, n=30, noise=0.01):
    rng = np.random.default_rng(seed)
    params, tokens = 10 ** rng.uniform(5, 7, n), 10 ** rng.uniform(6, 8, n)
    loss = (1.2 + 30 * params**-0.3 + 40 * tokens**-0.25) * np.exp(noise * rng.standard_normal(n))
    return table_of(
        [
            RunPoint(cost_flops=6 * a * b, loss=c, params=a, tokens=b)
            for a, b, c in zip(params, tokens, loss, strict=True)
        ]
    )


def _numeric(function, theta, step=1e-6):
    columns = []
    for index in range(len(theta)):
        ahead, behind = theta.copy(), theta.copy()
        ahead[index] += step
        behind[index] -= step
        columns.append((function(ahead) - function(behind)) / (2 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("form", [*COST_FORMS, *SIZE_FORMS], ids=lambda each: each.name)
def test_jacobian_of_a_form_is_its_numerical_derivative(form):
    table = _table()
    law = form.law(frame_of(table).features(table))
    theta = prior_of(form, frame_of(table)).draw(1, np.random.default_rng(1))[0]
    numeric = _numeric(lambda each: law(each[None, :]).value[0], theta)
    np.testing.assert_allclose(law(theta[None, :]).jacobian[0], numeric, rtol=1e-5, atol=1e-7)


def test_jacobian_of_the_surface_is_its_numerical_derivative():
    rng = np.random.default_rng(2)
    t, axes, z = rng.normal(size=9), rng.normal(size=(9, 3)), rng.normal(size=(9, 3))
    # Ends inside the data, so both branches of the tangent square are met.
    design = Design(t=t, axes=axes, z=z, t_end=0.2, axis_end=np.full(3, 0.1))
    theta = rng.normal(size=3 + 4 * 3)
    numeric = _numeric(lambda each: evaluate(each[None, :], design).value[0], theta)
    np.testing.assert_allclose(evaluate(theta[None, :], design).jacobian[0], numeric, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("error", [Huber(scale=0.01), Edge(noise=0.01, excess=0.03)], ids=["huber", "edge"])
def test_slope_of_a_penalty_is_its_numerical_derivative(error):
    r = np.linspace(-0.06, 0.2, 41)
    numeric = (error.penalty(r + 1e-7).rho - error.penalty(r - 1e-7).rho) / 2e-7
    np.testing.assert_allclose(error.penalty(r).psi, numeric, rtol=1e-4, atol=1e-4)


def test_edge_is_the_density_of_normal_plus_exponential():
    rng = np.random.default_rng(3)
    sample = 0.01 * rng.standard_normal(400_000) + rng.exponential(0.03, 400_000)
    counts, bins = np.histogram(sample, bins=np.linspace(-0.02, 0.1, 25))
    middle = 0.5 * (bins[1:] + bins[:-1])
    density = np.exp(-Edge(noise=0.01, excess=0.03).penalty(middle).rho)
    np.testing.assert_allclose(counts / len(sample) / np.diff(bins), density, rtol=0.05)


def test_a_run_absurdly_far_below_the_edge_is_never_likely():
    rho = Edge(noise=0.01, excess=0.03).penalty(-np.logspace(-1, 15, 60)).rho
    assert np.all(np.diff(rho) > 0)


def test_scales_of_an_edge_are_recovered():
    rng = np.random.default_rng(4)
    residuals = 0.01 * rng.standard_normal(3000) + rng.exponential(0.04, 3000)
    found = Edge(noise=0.02, excess=0.02).refit(residuals, np.ones(3000), 3)
    assert found.noise == pytest.approx(0.01, rel=0.15)
    assert found.excess == pytest.approx(0.04, rel=0.1)


@pytest.mark.parametrize("form", [POWER, *SIZE_FORMS], ids=lambda each: each.name)
@pytest.mark.parametrize("error", [Huber(scale=0.01), Edge(noise=0.01, excess=0.03)], ids=["huber", "edge"])
def test_fit_reaches_the_minimum_that_scipy_finds(form, error):
    table = _table()
    frame = frame_of(table)
    prior = prior_of(form, frame)
    law = form.law(frame.features(table))
    problem = Problem(law=law, targets=table.log_loss, weights=table.weight, error=error, prior=prior)

    def objective(theta):
        rho = error.penalty(table.log_loss - law(theta[None, :]).value[0]).rho
        return rho.sum() + 0.5 * np.sum(((theta - prior.mean) / prior.sd) ** 2)

    starts = prior.draw(8, np.random.default_rng(5))
    ours = minimise(problem, starts)
    theirs = min(minimize(objective, start, method="BFGS", options={"gtol": 1e-7}).fun for start in starts)
    assert objective(best_of(ours)) == pytest.approx(ours.objective.min(), rel=1e-12)
    assert ours.objective.min() <= theirs + 1e-4


def test_a_gross_outlier_hardly_moves_a_robust_fit():
    table = _table(noise=0.003)
    frame, error = frame_of(table), Huber(scale=0.003)
    law, prior = POWER.law(frame.features(table)), prior_of(POWER, frame)
    spoilt = table.log_loss.copy()
    spoilt[10] += 3.0
    fits = [
        best_of(
            minimise(
                Problem(law=law, targets=each, weights=table.weight, error=error, prior=prior), prior.mean[None, :]
            )
        )
        for each in (table.log_loss, spoilt)
    ]
    shift = law(fits[0][None, :]).value - law(fits[1][None, :]).value
    assert np.abs(shift).max() < 0.02
