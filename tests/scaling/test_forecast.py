"""Forecasts: they find known truths, refuse what cannot be known, and say what the reader must know."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.record import from_json, to_json
from wholestack.scaling.forecast import Forecast, fit_loss, forecast_loss
from wholestack.scaling.points import Refusal, RunPoint, table_of
from wholestack.scaling.scores import straight_line


def _power(cost):
    return 0.8 + 2.6 * (cost / 1e10) ** -0.17


def _runs(truth=_power, n=24, noise=0.005, seed=0, excess=0.0, decades=1.8):
    rng = np.random.default_rng(seed)
    cost = 10 ** (10 + decades * np.sort(rng.uniform(0, 1, n)))
    loss = truth(cost) * np.exp(noise * rng.standard_normal(n) + rng.exponential(excess or 1e-12, n))
    return [RunPoint(cost_flops=float(c), loss=float(x)) for c, x in zip(cost, loss, strict=True)]


def _sized(seed=0, n=40, ratio_decades=1.5):
    rng = np.random.default_rng(seed)
    params = 10 ** rng.uniform(7, 8.5, n)
    tokens = 20 * params * 10 ** rng.uniform(-ratio_decades / 2, ratio_decades / 2, n)
    loss = 1.7 + 400 * params**-0.34 + 410 * tokens**-0.28
    return [
        RunPoint(cost_flops=6 * a * b, loss=float(c * np.exp(0.003 * e)), params=a, tokens=b)
        for a, b, c, e in zip(params, tokens, loss, rng.standard_normal(n), strict=True)
    ]


def test_sixteen_times_the_cost_of_clean_runs_is_met():
    points = _runs(noise=0.001)
    goal = 16 * max(p.cost_flops for p in points)
    made = forecast_loss(points, goal, rng=np.random.default_rng(0))
    assert isinstance(made, Forecast)
    assert made.predicted == pytest.approx(_power(goal), rel=0.03)
    assert made.interval[0] <= _power(goal) <= made.interval[1]
    assert abs(straight_line(points, goal).predicted / _power(goal) - 1) > abs(made.predicted / _power(goal) - 1)


def test_size_and_tokens_law_is_met_at_another_ratio():
    made = forecast_loss(_sized(), 6 * 1e9 * 1e11, target_params=1e9, target_tokens=1e11, rng=np.random.default_rng(0))
    assert isinstance(made, Forecast)
    assert made.form in {"size_tokens", "tied"}
    assert made.predicted == pytest.approx(1.7 + 400 * 1e9**-0.34 + 410 * 1e11**-0.28, rel=0.015)


def test_same_points_and_rng_state_give_the_same_forecast_in_any_order():
    points = _runs()
    first = forecast_loss(points, 1e13, rng=np.random.default_rng(7))
    again = forecast_loss(points[::-1], 1e13, rng=np.random.default_rng(7))
    assert first == again


def test_one_fit_serves_many_targets_and_equals_the_short_form():
    points = _runs()
    law = fit_loss(points, rng=np.random.default_rng(7))
    assert not isinstance(law, Refusal)
    assert law.forecast(1e13) == forecast_loss(points, 1e13, rng=np.random.default_rng(7))
    assert law.forecast(1e13).predicted > law.forecast(1e14).predicted


def test_interval_widens_with_the_target_and_with_the_level():
    law = fit_loss(_runs(), rng=np.random.default_rng(0))
    assert not isinstance(law, Refusal)

    def width(cost, level):
        low, high = law.forecast(cost, level=level).interval
        return np.log(high / low)

    assert width(1e13, 0.9) > 1.5 * width(1e12, 0.9) > 0
    assert width(1e13, 0.9) > width(1e13, 0.5)


def test_the_gap_between_free_and_fixed_asymptote_widens_the_interval():
    law = fit_loss(_runs(noise=0.01, n=16), asymptote=0.1, rng=np.random.default_rng(0))
    assert not isinstance(law, Refusal)
    without = replace(law, by_cost=replace(law.by_cost, fixed=law.by_cost.free))
    wide, narrow = law.forecast(1e13), without.forecast(1e13)
    assert wide.fixed_asymptote < wide.free_asymptote
    assert np.ptp(wide.interval) > 1.05 * np.ptp(narrow.interval)


def test_a_known_asymptote_is_used_by_the_fixed_forecast():
    made = forecast_loss(_runs(noise=0.01, n=16), 1e13, asymptote=0.8, rng=np.random.default_rng(0))
    assert isinstance(made, Forecast)
    assert made.asymptote_fixed_at == pytest.approx(0.8)
    assert made.fixed_asymptote == pytest.approx(_power(1e13), rel=0.02)


def test_search_edge_is_not_pulled_up_by_bad_trials_nor_down_by_lucky_ones():
    edge = []
    for seed in range(6):
        points = _runs(n=80, noise=0.01, excess=0.04, seed=seed)
        law = fit_loss(points, scatter="search", noise=0.01, rng=np.random.default_rng(0))
        assert not isinstance(law, Refusal)
        edge.append(law.by_cost.free.at(_at(1e11)) - np.log(_power(1e11)))
    assert abs(np.mean(edge)) < 0.008


def _at(cost):
    return table_of([RunPoint(cost_flops=cost, loss=1.0)])


def test_too_few_runs_are_refused_with_both_numbers():
    made = forecast_loss(_runs(n=7), 1e13, rng=np.random.default_rng(0))
    assert isinstance(made, Refusal)
    assert "7" in made.reason
    assert "8" in made.reason


def test_less_than_a_decade_of_cost_is_refused():
    made = forecast_loss(_runs(decades=0.8), 1e13, rng=np.random.default_rng(0))
    assert isinstance(made, Refusal)
    assert "decades" in made.reason
    assert made.span_decades < 1


def test_no_runs_are_refused_not_crashed():
    assert isinstance(forecast_loss([], 1e13, rng=np.random.default_rng(0)), Refusal)


def test_constant_tokens_per_parameter_is_called_blind():
    made = forecast_loss(
        _sized(ratio_decades=0.1), 6e20, target_params=1e9, target_tokens=1e11, rng=np.random.default_rng(0)
    )
    assert isinstance(made, Forecast)
    assert any("blind to the horizon" in each for each in made.warnings)
    varied = forecast_loss(_sized(), 6e19, target_params=1e9, target_tokens=1e10, rng=np.random.default_rng(0))
    assert isinstance(varied, Forecast)
    assert not any("blind" in each for each in varied.warnings)


def test_a_target_outside_the_seen_tokens_per_parameter_is_pointed_out():
    made = forecast_loss(_sized(), 6e20, target_params=1e8, target_tokens=1e12, rng=np.random.default_rng(0))
    assert isinstance(made, Forecast)
    assert any("tokens per parameter" in each for each in made.warnings)


def test_a_forecast_survives_json():
    made = forecast_loss(_runs(), 1e13, rng=np.random.default_rng(0))
    assert isinstance(made, Forecast)
    assert from_json(Forecast, to_json(made)) == made


@pytest.mark.parametrize("field", ["cost_flops", "loss", "params", "tokens", "weight"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_point_names_the_field_that_is_not_a_positive_number(field, value):
    with pytest.raises(InputError, match=field):
        RunPoint(**({"cost_flops": 1.0, "loss": 1.0} | {field: value}))


def test_level_outside_zero_to_one_is_an_input_error():
    with pytest.raises(InputError, match="level"):
        forecast_loss(_runs(), 1e13, level=1.0, rng=np.random.default_rng(0))


@settings(max_examples=5, deadline=None)
@given(scale=st.floats(0.01, 100.0), cost_scale=st.floats(1e-6, 1e9))
def test_units_of_loss_and_cost_do_not_matter(scale, cost_scale):
    points = _runs(n=12)
    scaled = [RunPoint(cost_flops=p.cost_flops * cost_scale, loss=p.loss * scale) for p in points]
    first = forecast_loss(points, 1e13, rng=np.random.default_rng(1))
    second = forecast_loss(scaled, 1e13 * cost_scale, rng=np.random.default_rng(1))
    assert isinstance(first, Forecast)
    assert isinstance(second, Forecast)
    assert second.predicted / scale == pytest.approx(first.predicted, rel=2e-3)
    assert second.interval[0] / scale == pytest.approx(first.interval[0], rel=5e-3)


@pytest.mark.heavy
@pytest.mark.parametrize("truth", [_power, lambda c: 3 * (c / 1e10) ** -0.1], ids=["floor", "no floor"])
def test_ninety_percent_intervals_cover_eighty_to_a_hundred_percent(truth):
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        points = _runs(truth, n=16, seed=seed)
        goal = 16 * max(p.cost_flops for p in points)
        made = forecast_loss(points, goal, rng=rng)
        if isinstance(made, Refusal):
            assert made.span_decades < 1
            continue
        actual = truth(goal) * np.exp(0.005 * rng.standard_normal())
        inside.append(made.interval[0] <= actual <= made.interval[1])
    assert len(inside) >= 55
    assert np.mean(inside) >= 0.8
