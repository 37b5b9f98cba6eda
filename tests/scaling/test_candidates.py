"""Validation towards larger cost: an error that noise explains is no lack of fit, a bend that a form lacks is."""

import numpy as np

from wholestack.scaling.candidates import Validation, validate
from wholestack.scaling.forms import LINE
from wholestack.scaling.points import RunPoint, table_of
from wholestack.scaling.residuals import Huber


def validated(bend: float, *, seed: int) -> Validation:
    rng = np.random.default_rng(seed)
    log_cost = np.linspace(0.0, 4.0, 24)
    log_loss = 1.0 - 0.2 * log_cost + bend * log_cost**2 + 0.01 * rng.standard_normal(24)
    table = table_of(
        [RunPoint(cost_flops=1e10 * np.exp(c), loss=np.exp(y)) for c, y in zip(log_cost, log_loss, strict=True)]
    )
    # The scatter is that of a repeated run, as where it was measured: a fit would take the bend for noise.
    return validate(LINE, table, Huber(scale=0.01), rng)


def test_the_error_of_a_true_form_is_explained_by_noise_and_the_uncertainty_of_its_parameters():
    true = [validated(0.0, seed=seed) for seed in range(8)]
    assert np.mean([each.error for each in true]) > 0.01
    assert np.mean([each.lack_of_fit for each in true]) < 0.3 * np.mean([each.error for each in true])


def test_a_bend_that_the_form_lacks_is_left_over():
    bent = [validated(0.03, seed=seed) for seed in range(4)]
    assert min(each.lack_of_fit / each.error for each in bent) > 0.8
