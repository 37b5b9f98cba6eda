"""Laws of settings: found where losses show them, at their prior where they do not, never outside the bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.scaling.allocation import allocate, solve_tokens
from wholestack.scaling.points import Refusal
from wholestack.scaling.setting import Setting, SettingTrial
from wholestack.scaling.settings import SettingsLaw, fit_settings


def _cost(values):
    return 6 * values["params"] * values["tokens"]


def _best(cost):
    params = 3e5 * (cost / 1e11) ** 0.5
    tokens = cost / (6 * params)
    return {"params": params, "tokens": tokens, "lr": 6e-3 * (tokens / 6e4) ** -0.3, "mix": 0.35}


def _excess(values):
    best = _best(_cost(values))
    lr = 6e-3 * (values["tokens"] / 6e4) ** -0.3
    off = {"params": values["params"] / best["params"], "lr": values["lr"] / lr}
    mix = math.log(values["mix"] / (1 - values["mix"]) / (0.35 / 0.65))
    return 0.01 * math.log(off["params"]) ** 2 + 0.02 * math.log(off["lr"]) ** 2 + 0.05 * mix**2


def _search(seed=0, n=80, noise=0.007, spread=0.5):
    """Trials scattered round the best, biased at the start as a search's centre would be."""
    rng = np.random.default_rng(seed)
    trials = []
    for cost in 10 ** rng.uniform(10, 11.8, n):
        best, z = _best(cost), spread * rng.standard_normal(4) + 0.15
        params = best["params"] * math.exp(z[0])
        values = {"params": params, "tokens": cost / (6 * params), "lr": best["lr"] * math.exp(z[1])}
        values["mix"] = 1 / (1 + math.exp(-(math.log(0.35 / 0.65) + z[2])))
        loss = (0.8 + 2.6 * (cost / 1e10) ** -0.17) * math.exp(_excess(values) + noise * z[3])
        trials.append(SettingTrial(cost_flops=float(cost), loss=loss, settings=values))
    return trials


SETTINGS = (
    Setting(name="params", prior_slope=0.5),
    Setting(name="tokens", prior_slope=0.5),
    Setting(name="lr", prior_axis="tokens", prior_slope=-0.3),
    Setting(name="mix", transform="logit", low=0.05, high=0.95),
)


def _law(trials, settings=SETTINGS):
    law = fit_settings(trials, settings, rng=np.random.default_rng(0))
    assert isinstance(law, SettingsLaw)
    return law


def test_settings_at_sixteen_times_the_cost_beat_the_best_small_trials_scaled():
    wins, regrets = 0, []
    for seed in range(5):
        trials = _search(seed)
        goal = 16 * max(each.cost_flops for each in trials)
        lucky = min(trials, key=lambda each: each.loss)
        grow = math.sqrt(goal / lucky.cost_flops)
        scaled = dict(lucky.settings) | {k: lucky.settings[k] * grow for k in ("params", "tokens")}
        ours = allocate(_law(trials), goal, _cost).settings
        regrets.append(_excess(ours))
        wins += _excess(ours) <= _excess(scaled)
    assert wins >= 4
    assert np.mean(regrets) < 0.01


def test_a_slope_that_losses_show_overrides_a_wrong_prior():
    settings = [
        Setting(name="params", prior_slope=0.5),
        Setting(name="tokens", prior_slope=0.5),
        Setting(name="lr", prior_axis="tokens", prior_slope=0.3, prior_slope_sd=0.5),
        Setting(name="mix", transform="logit"),
    ]
    law = _law(_search(1, n=200, noise=0.001), settings)
    low, high = law.at(1e11, tokens=3e4)["lr"].value, law.at(1e11, tokens=1.2e5)["lr"].value
    assert math.log(high / low) / math.log(4) == pytest.approx(-0.3, abs=0.12)


def test_a_setting_that_does_not_matter_stays_near_its_trials():
    rng = np.random.default_rng(3)
    trials = [
        SettingTrial(
            cost_flops=t.cost_flops, loss=t.loss, settings=dict(t.settings) | {"idle": 0.1 * 2 ** rng.normal()}
        )
        for t in _search(2)
    ]
    law = _law(trials, [*SETTINGS, Setting(name="idle")])
    assert 0.05 < law.at(16e12)["idle"].value < 0.2


def test_intervals_contain_the_value_and_widen_with_cost():
    law = _law(_search(0))
    near, far = law.at(1e11), law.at(1e14)
    for name, each in far.items():
        assert each.interval[0] <= each.value * (1 + 1e-9)
        assert each.value <= each.interval[1] * (1 + 1e-9)
        if name != "mix":
            assert np.ptp(np.log(each.interval)) > np.ptp(np.log(near[name].interval))


def test_extrapolation_stays_inside_bounds_rounds_and_says_so():
    settings = [
        Setting(name="params", prior_slope=0.5, high=4e5, rounding=1000),
        *SETTINGS[1:],
    ]
    made = _law(_search(0), settings).at(1e14)["params"]
    assert made.value == 4e5
    assert made.at_bound
    assert made.interval[1] <= 4e5


def test_regret_is_zero_at_the_law_and_grows_away_from_it():
    law = _law(_search(0))
    best = {name: each.value for name, each in law.at(1e12).items()}
    assert law.regret(1e12, best) == pytest.approx(0, abs=1e-9)
    assert law.regret(1e12, best | {"lr": best["lr"] * 10}) > law.regret(1e12, best | {"lr": best["lr"] * 2}) > 0


def test_same_trials_in_any_order_give_the_same_laws():
    trials = _search(0)
    assert _law(trials).at(1e13) == _law(trials[::-1]).at(1e13)


def test_allocation_meets_the_cost_after_rounding_sizes():
    settings = [Setting(name="params", prior_slope=0.5, rounding=50_000), Setting(name="tokens", prior_slope=0.5)]
    settings += SETTINGS[2:]
    made = allocate(_law(_search(0), settings), 1e13, _cost)
    assert made.settings["params"] % 50_000 == 0
    assert made.cost_flops == pytest.approx(1e13, rel=1e-9)
    assert made.warnings == ()


def test_allocation_says_when_a_bound_of_tokens_forbids_the_cost():
    settings = [SETTINGS[0], Setting(name="tokens", prior_slope=0.5, high=2e5), *SETTINGS[2:]]
    made = allocate(_law(_search(0), settings), 1e13, _cost)
    assert made.relative_miss < -0.02
    assert any("misses the target" in each for each in made.warnings)


@given(params=st.floats(1e3, 1e9), target=st.floats(1e9, 1e20))
def test_solved_tokens_cost_what_was_asked(params, target):
    tokens = solve_tokens({"params": params}, Setting(name="tokens"), target, _cost)
    assert 6 * params * tokens == pytest.approx(target, rel=1e-9) or tokens == pytest.approx(1.0)


def test_too_few_trials_are_refused():
    assert isinstance(fit_settings(_search(0, n=11), SETTINGS, rng=np.random.default_rng(0)), Refusal)
    assert isinstance(fit_settings([], SETTINGS, rng=np.random.default_rng(0)), Refusal)


def test_a_trial_without_a_setting_is_named():
    with pytest.raises(InputError, match="warm"):
        fit_settings(_search(0), [*SETTINGS, Setting(name="warm")], rng=np.random.default_rng(0))


def test_a_law_along_tokens_without_tokens_is_an_input_error():
    with pytest.raises(InputError, match="lr"):
        fit_settings(_search(0), [SETTINGS[2]], rng=np.random.default_rng(0))


@given(value=st.floats(0.001, 0.999), transform=st.sampled_from(["linear", "log", "logit"]))
def test_transforms_are_inverted(value, transform):
    each = Setting(name="x", transform=transform)
    assert each.backward(each.forward(value)) == pytest.approx(value, rel=1e-9)


@given(value=st.floats(0.01, 1000.0), step=st.sampled_from([1.0, 8.0, 64.0]))
def test_rounded_values_are_allowed_multiples(value, step):
    each = Setting(name="x", low=step, high=20 * step, rounding=step)
    rounded = each.round(each.clip(value))
    assert rounded % step == 0
    assert step <= rounded <= 20 * step
    assert abs(rounded - each.clip(value)) <= step
