"""The pure function; among others one test a defect of the reference that could come back here."""

import math
import random

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.search import Budget, Categorical, Linear, Log, Space, Suggestion, Trial, carbs, models, suggest
from wholestack.search.carbs import Settings
from wholestack.search.models import Memory

SPACE = Space(
    [
        Log("n", centre=1e3, low=10, high=1e6, integer=True),
        Linear("x", centre=0.0, low=-2.0, high=2.0),
        Categorical("c", choices=("a", "b"), centre="a"),
    ]
)


def cost_of(params):
    return params["n"] / 100.0


def loss_of(params):
    return 1.0 + 20.0 / params["n"] ** 0.4 + 0.3 * (params["x"] - 0.5) ** 2 + 0.1 * (params["c"] == "a")


def run(steps, *, space=SPACE, seed=0, loss=loss_of, cost=cost_of, fails=lambda p: False, **given):
    history, memory = [], Memory()
    for k in range(steps):
        asked = suggest(
            space,
            history,
            [],
            given.get("budget", Budget()),
            np.random.default_rng([seed, k]),
            memory=memory,
            **{key: value for key, value in given.items() if key != "budget"},
        )
        if fails(asked.params):
            history.append(Trial(number=k, params=asked.params, status="failed", kind="diverged"))
        else:
            output, price = float(loss(asked.params)), float(cost(asked.params))
            history.append(Trial(number=k, params=asked.params, status="ok", output=output, cost=price))
    return history


def ask(history, pending=(), budget=None, seed=0, space=SPACE, **given):
    return suggest(space, history, list(pending), budget or Budget(), np.random.default_rng(seed), **given)


def ok(number, params, output, cost):
    return Trial(number=number, params=params, status="ok", output=output, cost=cost)


def failed(number, params):
    return Trial(number=number, params=params, status="failed", kind="diverged")


def test_the_first_suggestion_is_the_centre():
    asked = ask([])
    assert asked.params == SPACE.centre()
    assert asked.origin == "start"


def test_same_arguments_give_the_same_suggestion_with_and_without_memory_and_nothing_is_changed():
    history = run(14)
    before = list(history)
    pending = [Suggestion(number=14, params={"n": 77, "x": 0.1, "c": "b"}, origin="model")]
    memory = Memory()
    first = ask(history, pending, memory=memory)
    assert first == ask(history, pending, memory=memory) == ask(history, pending)
    assert history == before


def test_no_global_random_state_is_read_or_changed():
    history = run(8)
    np.random.seed(1)
    random.seed(1)
    state, mine = np.random.get_state()[1].tobytes(), random.getstate()
    first = ask(history)
    assert np.random.get_state()[1].tobytes() == state
    assert random.getstate() == mine
    np.random.seed(2)
    assert ask(history) == first


def test_the_search_finds_the_front_over_decades_of_cost():
    history = run(40, budget=Budget(max_cost=300.0))
    for limit in (10.0, 100.0, 300.0):
        best = min(t.output for t in history if t.cost <= limit)
        floor = 1.0 + 20.0 / (100.0 * limit) ** 0.4
        assert best < 1.06 * floor


def test_maximise_mirrors_minimise():
    up = run(16, loss=lambda p: -loss_of(p), direction="maximise")
    down = run(16)
    assert [t.params for t in up] == [t.params for t in down]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_observations_are_enough(count):
    history = run(count)
    assert ask(history, settings=Settings(starts=1)).origin in ("model", "resample")


def test_when_everything_fails_the_search_moves_away_and_says_so():
    history = [failed(0, SPACE.centre())]
    for k in range(1, 12):
        asked = ask(history, seed=k)
        history.append(failed(k, asked.params))
    assert "none of 11 trials succeeded" in asked.note
    assert all(trial.params != asked.params for trial in history[:-1])
    x = SPACE.encode([trial.params for trial in history])
    assert np.linalg.norm(x[8:, :2], axis=1).mean() > np.linalg.norm(x[1:4, :2], axis=1).mean()


def test_one_success_among_failures_is_enough():
    history = [failed(k, {"n": 1000 + k, "x": 1.0, "c": "a"}) for k in range(6)]
    history.append(ok(6, {"n": 500, "x": -0.5, "c": "a"}, 2.0, 5.0))
    asked = ask(history)
    assert asked.origin == "model"
    assert asked.success_probability > 0.4


def test_failures_are_learnt_and_not_suggested_again():
    history = run(40, fails=lambda p: p["x"] > 0.3, budget=Budget(max_cost=100.0))
    late = history[15:]
    assert sum(t.status == "failed" for t in late) <= 0.4 * len(late)
    assert min(t.output for t in late if t.status == "ok" and t.cost < 100) < 1.6


@pytest.mark.parametrize("shift", [0.0, -50.0])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_huge_and_tiny_outputs_and_costs_work(scale, shift):
    history = run(9, loss=lambda p: scale * (loss_of(p) + shift), cost=lambda p: scale * cost_of(p))
    asked = ask(history)
    assert asked.origin in ("model", "resample")
    assert math.isfinite(asked.expected_cost)


def test_constant_outputs_and_identical_trials_work():
    constant = run(12, loss=lambda p: 1.0)
    assert ask(constant).origin in ("model", "resample")
    same = [ok(k, SPACE.centre(), 2.0, 3.0) for k in range(8)]
    asked = ask(same)
    assert asked.origin == "model"
    assert asked.params != SPACE.centre()


def test_no_suggestion_is_expected_above_the_cap_and_few_land_there():
    history = run(35, budget=Budget(max_cost=30.0))
    assert sum(t.cost > 30.0 for t in history) <= 2


def test_a_known_cost_replaces_the_model_and_makes_the_cap_strict():
    history = run(15, budget=Budget(max_cost=30.0), cost=cost_of)
    memory = Memory()
    for k in range(15, 22):
        asked = suggest(
            SPACE, history, [], Budget(max_cost=30.0), np.random.default_rng(k), cost=cost_of, memory=memory, number=k
        )
        assert cost_of(asked.params) <= 30.0
        assert asked.expected_cost == pytest.approx(cost_of(asked.params))


def test_a_known_cost_that_is_not_positive_is_refused_with_the_params():
    with pytest.raises(InputError, match=r"cost function gave 0.0 for \{'n'"):
        ask([], cost=lambda p: 0.0)


def test_a_centre_above_the_cap_is_avoided_or_refused_with_the_cheapest_cost():
    asked = ask([], budget=Budget(max_cost=2.0), cost=cost_of)
    assert cost_of(asked.params) <= 2.0
    with pytest.raises(InputError, match=r"no params near the centre cost at most 0\.001"):
        ask([], budget=Budget(max_cost=0.001), cost=cost_of)


def test_a_suggestion_fits_into_what_is_left_of_the_total_and_a_spent_budget_is_said():
    history = run(8)
    total = sum(t.cost for t in history) + 5.0
    for seed in range(3):
        asked = ask(history, budget=Budget(total_cost=total), cost=cost_of, seed=seed, number=20 + seed)
        assert cost_of(asked.params) <= 5.0
    with pytest.raises(InputError, match="is spent"):
        ask(history, budget=Budget(total_cost=total - 5.0))
    pending = [Suggestion(number=8, params=SPACE.centre(), origin="model", expected_cost=5.0)]
    with pytest.raises(InputError, match="taken by pending"):
        ask(history, pending, budget=Budget(total_cost=total))


def test_when_every_start_cost_too_much_the_search_goes_towards_cheaper_params_and_says_so():
    history = [ok(k, {"n": 10**5 + k, "x": 0.0, "c": "a"}, 2.0, 1000.0 + k * 10.0) for k in range(2)]
    history += [ok(k, {"n": 10**4 + k, "x": 0.1 * k, "c": "a"}, 2.5, 100.0 + k) for k in (2, 3)]
    asked = ask(history, budget=Budget(max_cost=5.0), number=5)
    assert asked.origin == "fallback"
    assert "towards cheaper" in asked.note
    assert asked.params["n"] < 10**4


def test_pending_points_are_not_suggested_again_and_sixteen_of_them_differ():
    history, pending, memory = run(20), [], Memory()
    for k in range(16):
        asked = suggest(SPACE, history, pending, Budget(), np.random.default_rng([5, k]), memory=memory)
        pending.append(asked)
    x = SPACE.encode([each.params for each in pending])
    far = np.linalg.norm(x[:, None] - x[None, :], axis=2) + 10 * np.eye(16)
    assert far.min() > 0.05 * 0.3


def test_pending_trials_count_as_starts():
    pending = [Suggestion(number=k, params={"n": 900 + k, "x": 0.0, "c": "a"}, origin="start") for k in range(3)]
    assert ask([ok(3, SPACE.centre(), 1.0, 1.0)], pending, number=5).origin == "model"


def test_abandoned_trials_change_nothing_but_the_count():
    history = run(10)
    lost = Trial(number=10, params={"n": 5, "x": 1.9, "c": "b"}, status="abandoned", kind="worker_killed")
    plain = models.gather(SPACE, history, "minimise", Memory())
    with_lost = models.gather(SPACE, [*history, lost], "minimise", Memory())
    assert (plain.tried == with_lost.tried).all()


def test_numerical_trouble_falls_back_with_the_reason(monkeypatch):
    def broken(*_, **__):
        raise np.linalg.LinAlgError("singular on purpose")

    history = run(8)
    monkeypatch.setattr(carbs, "make_models", broken)
    asked = ask(history)
    assert asked.origin == "fallback"
    assert "singular on purpose" in asked.note
    assert "local step" in asked.note


def test_a_programming_error_is_not_swallowed(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    history = run(8)
    monkeypatch.setattr(carbs, "make_models", broken)
    with pytest.raises(ZeroDivisionError):
        ask(history)


def test_a_space_that_is_used_up_is_said():
    tiny = Space([Linear("k", centre=1, low=0, high=2, integer=True)])
    history = [ok(k, {"k": k % 3}, 1.0 + k % 3, 1.0 + k % 3) for k in range(6)]
    asked = ask(history, space=tiny, number=6)
    assert asked.origin == "fallback"
    assert "not tried before" in asked.note


@pytest.mark.heavy
def test_noise_makes_the_search_run_front_points_again_and_no_noise_does_not():
    rng = np.random.default_rng(0)
    noisy = run(40, loss=lambda p: loss_of(p) + 0.4 * rng.standard_normal(), budget=Budget(max_cost=100.0))
    plain = run(40, budget=Budget(max_cost=100.0))
    repeats = [len(h) - len({tuple(t.params.items()) for t in h}) for h in (noisy, plain)]
    assert repeats[0] >= 2
    assert repeats[1] == 0


@pytest.mark.heavy
def test_both_ends_of_the_cost_range_get_their_trials():
    history = run(45, budget=Budget(max_cost=300.0), cost=cost_of)
    costs = np.array([t.cost for t in history])
    assert costs[costs > 100.0].sum() > 0.3 * costs.sum()
    for limit in (10.0, 30.0, 100.0, 300.0):
        best = min(t.output for t in history if t.cost <= limit)
        assert best < 1.08 * (1.0 + 20.0 / (100.0 * limit) ** 0.4)


@pytest.mark.heavy
def test_a_number_of_trials_spreads_the_total_cost_over_about_so_many():
    counts = {}
    for wanted in (15, 40):
        history, memory, budget = [], Memory(), Budget(max_cost=100.0, total_cost=800.0, max_trials=wanted)
        for k in range(60):
            try:
                asked = suggest(SPACE, history, [], budget, np.random.default_rng(k), cost=cost_of, memory=memory)
            except InputError:
                break
            if cost_of(asked.params) + sum(t.cost for t in history) > 800.0:
                break
            history.append(ok(k, asked.params, loss_of(asked.params), cost_of(asked.params)))
        counts[wanted] = len(history)
    assert counts[15] < counts[40]
    assert 8 <= counts[15] <= 30


def test_integers_reach_both_bounds_in_a_search():
    space = Space([Linear("k", centre=5, low=1, high=9, integer=True), Linear("x", centre=0.0, low=-1.0, high=1.0)])
    for best in (1, 9):
        history = run(25, space=space, loss=lambda p, b=best: abs(p["k"] - b) + p["x"] ** 2, cost=lambda p: 1.0)
        assert any(t.params["k"] == best for t in history)


def test_a_trial_that_does_not_fit_the_space_is_named():
    with pytest.raises(InputError, match="'z'"):
        ask([ok(0, {"n": 10, "x": 0.0, "c": "a", "z": 1}, 1.0, 1.0)])
    with pytest.raises(InputError, match=r"'x'.*3.0"):
        ask([ok(0, {"n": 10, "x": 3.0, "c": "a"}, 1.0, 1.0)])
