from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from wholestack.search import Linear, Log, Space, Suggestion, Trial
from wholestack.search import models as m
from wholestack.search.kernel import default_prior, noise_variance
from wholestack.search.surrogate import Work

SPACE = Space([Log("n", centre=1e3, low=10, high=1e6), Linear("x", centre=0.0, low=-2.0, high=2.0)])


def trials(count, seed=0, fails=0.0):
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        params = {"n": float(10 ** rng.uniform(1.5, 5)), "x": float(rng.uniform(-2, 2))}
        if params["x"] > 2.0 - 4.0 * fails:
            found.append(Trial(number=k, params=params, status="failed", kind="diverged", cost=1.0))
            continue
        loss = 1.0 + 20.0 / params["n"] ** 0.4 + 0.3 * (params["x"] - 0.5) ** 2 + 0.003 * rng.standard_normal()
        found.append(Trial(number=k, params=params, status="ok", output=float(loss), cost=params["n"] / 10))
    return found


def built(history, memory=None):
    memory = memory or m.Memory()
    evidence = m.gather(SPACE, history, "minimise", memory)
    return m.make_models(evidence, m.hyperparameters(SPACE, history, "minimise", memory), memory.work)


def test_the_warp_rises_is_smooth_at_the_best_and_has_the_stated_slope():
    outputs = np.array([2.0, 2.1, 3.0, 8.0, 1e4])
    warp = m.make_warp(outputs, 0.3)
    grid = np.linspace(-5, 1e4, 100001)
    assert (np.diff(warp(grid)) > 0).all()
    step = 1e-6
    slopes = (warp(outputs + step) - warp(outputs - step)) / (2 * step)
    unit = len(outputs) * np.log(warp.unit)
    assert warp.log_slope(outputs) - unit == pytest.approx(np.log(slopes).sum(), abs=1e-2)


@pytest.mark.parametrize("scale", [1e-280, 1e-12, 1.0, 1e12, 1e290])
@pytest.mark.parametrize("outputs", [[1.0, 2.0, 4.0], [1.0, 1.0, 1.0], [-3.0, 0.0, 5.0], [0.0, 0.0]])
def test_the_warp_gives_targets_of_unit_size_at_every_scale(scale, outputs):
    outputs = scale * np.array(outputs)
    targets = m.make_warp(outputs, 1.0)(outputs)
    assert np.isfinite(targets).all()
    assert targets.mean() == pytest.approx(0.0, abs=1e-9)
    assert np.ptp(outputs) == 0 or targets.std() == pytest.approx(1.0)


def test_milestones_grow_by_a_quarter():
    sizes = m.milestones(1000)
    assert sizes[0] == 3
    assert all(b <= max(a + 1, np.ceil(1.25 * a)) for a, b in pairwise(sizes))
    assert len(sizes) < 30
    assert m.milestones(2) == []


def test_hyperparameters_are_the_same_with_and_without_memory_bit_by_bit():
    history, memory = trials(40, fails=0.2), m.Memory()
    for count in range(3, 41):
        warm = m.hyperparameters(SPACE, history[:count], "minimise", memory)
    cold = m.hyperparameters(SPACE, history, "minimise", m.Memory())
    for name in ("output", "cost", "failure"):
        assert getattr(warm, name).tobytes() == getattr(cold, name).tobytes()
    assert warm.shift == cold.shift
    assert len(memory.fits) <= 4


def test_memory_of_another_direction_or_history_is_not_used():
    memory = m.Memory()
    up = m.hyperparameters(SPACE, trials(12), "maximise", memory)
    assert (m.hyperparameters(SPACE, trials(12), "minimise", memory).output != up.output).any()
    assert (m.hyperparameters(SPACE, trials(12, seed=1), "maximise", memory).output != up.output).any()


def test_models_predict_what_was_not_seen():
    models = built(trials(60))
    later = m.gather(SPACE, trials(40, seed=9), "minimise", m.Memory())
    assert models.output.predict(later.x).mean == pytest.approx(models.warp(later.loss), abs=0.15)
    assert models.log_cost(later.x).mean == pytest.approx(later.log_cost, abs=0.01)


def test_success_is_a_probit_by_the_standard_deviation_not_the_variance():
    models = built(trials(40, fails=0.3))
    points = SPACE.encode([{"n": 1e3, "x": x} for x in (-1.0, 0.5, 0.9, 1.5)])
    found = models.failure.predict(points)
    deviation = np.sqrt(found.deviation**2 + noise_variance(models.failure.theta))
    assert models.success(points) == pytest.approx(norm(found.mean, deviation).cdf(0.0))
    assert models.success(points)[0] > 0.9
    assert models.success(points)[3] < 0.2


def test_success_is_calibrated_where_trials_fail_at_random():
    rng = np.random.default_rng(3)
    history = [
        Trial(number=k, params={"n": float(10 ** rng.uniform(2, 4)), "x": 0.0}, status="failed", kind="k")
        if k % 4 == 0
        else Trial(number=k, params={"n": float(10 ** rng.uniform(2, 4)), "x": 0.0}, status="ok", output=1.0, cost=1.0)
        for k in range(80)
    ]
    assert built(history).success(np.zeros((1, 2)))[0] == pytest.approx(0.75, abs=0.08)


def test_pending_points_narrow_every_model():
    models = built(trials(25, fails=0.25))
    pending = SPACE.encode([{"n": 5e5, "x": -1.9}, {"n": 12.0, "x": 1.2}])
    after = models.with_pending(pending, np.random.default_rng(1))
    assert len(after.failure.x) == len(models.failure.x) + 2
    assert len(after.output.x) == len(after.cost.x) > len(models.output.x)
    added = after.output.x[len(models.output.x) :]
    for name in ("output", "cost", "failure"):
        before, now = getattr(models, name), getattr(after, name)
        assert (now.predict(added).deviation < before.predict(added).deviation).all()


def test_fantasies_fail_as_often_as_the_failure_model_says():
    models = built(trials(40, fails=0.3))
    point = SPACE.encode([{"n": 1e3, "x": 0.8}])
    rng = np.random.default_rng(0)
    count = sum(len(models.with_pending(point, rng).output.x) > len(models.output.x) for _ in range(400))
    assert count / 400 == pytest.approx(models.success(point)[0], abs=0.08)


def test_a_large_history_is_thinned_to_near_recent_and_spread_ones_deterministically():
    evidence = m.gather(SPACE, trials(500), "minimise", m.Memory())
    few = m.choose(evidence, 90)
    assert len(few.x) == len(few.loss) == len(few.log_cost) == 90
    assert len(few.tried) == 90
    rows = {row.tobytes() for row in few.x}
    assert {row.tobytes() for row in evidence.x[-20:]} <= rows
    best = evidence.x[np.argmin(evidence.loss)]
    assert best.tobytes() in rows
    assert (m.choose(evidence, 90).x == few.x).all()
    assert m.choose(evidence, 500).x is not None
    assert len(m.choose(evidence, 501).x) == 500


def test_singular_covariance_is_repaired_loudly():
    x = np.zeros((40, 2))
    theta = default_prior(SPACE.ordered).mean.copy()
    theta[-1] = -60.0
    theta[2:4] = 30.0
    x[:, 0] = np.linspace(0, 1, 40)
    try:
        gp, note = m._condition("output model", x, x[:, 0], SPACE.ordered, theta=theta, work=Work())
    except np.linalg.LinAlgError:
        return
    assert np.isfinite(gp.mean(x)).all()
    assert note == "" or "noise raised" in note


def test_work_of_fits_grows_with_the_logarithm_of_a_history_beyond_the_cap(monkeypatch):
    """Counted operations of all fits up to n trials; doubling n adds the milestones of one doubling, all capped."""
    monkeypatch.setattr(m, "FIT_POINTS", 40)
    totals = []
    for count in (80, 160, 320):
        memory = m.Memory()
        m.hyperparameters(SPACE, trials(count), "minimise", memory)
        totals.append(memory.work.factorised_flops)
    fits = 4 * 5  # four fits a milestone (three warps, cost), at most five milestones a doubling
    most = fits * 60 * 5.0 * 40.0**3 / 3.0
    assert totals[1] - totals[0] < most
    assert totals[2] - totals[1] < most


def test_posteriors_of_a_long_history_cost_no_more_than_the_cap():
    memory = m.Memory()
    evidence = m.gather(SPACE, trials(1600), "minimise", memory)
    mean = default_prior(SPACE.ordered).mean
    m.make_models(evidence, m.Hyperparameters(output=mean, cost=mean, failure=mean, shift=2), memory.work)
    assert memory.work.factorised_flops <= 2 * 2.0 * m.MODEL_POINTS**3 / 3.0


def test_suggestion_needs_no_outcome_to_be_encoded_twice():
    memory = m.Memory()
    pending = [Suggestion(number=0, params={"n": 100.0, "x": 0.5}, origin="start")]
    first = memory.encode(SPACE, [each.params for each in pending])
    assert (memory.encode(SPACE, [each.params for each in pending]) == first).all()
    assert len(memory.coordinates) == 1
