import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.search import Trial, pareto_front
from wholestack.search.pareto import model_front


def ok(number, output, cost, x=None):
    return Trial(number=number, params={"x": float(number if x is None else x)}, status="ok", output=output, cost=cost)


points = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6)), min_size=1, max_size=40)


@settings(deadline=None)
@given(points)
def test_the_plain_front_is_the_brute_force_front(raw):
    trials = [ok(k, output, cost) for k, (output, cost) in enumerate(raw)]
    front = pareto_front(trials, min_cost_fraction=0.0)
    for point in front:
        assert not any(t.cost <= point.cost and t.output < point.output for t in trials)
    for trial in trials:
        assert any(p.cost <= trial.cost and p.output <= trial.output for p in front)
    assert [p.cost for p in front] == sorted({p.cost for p in front})


@settings(deadline=None)
@given(points)
def test_maximise_is_minimise_of_the_negative(raw):
    up = pareto_front([ok(k, o, c) for k, (o, c) in enumerate(raw)], direction="maximise")
    down = pareto_front([ok(k, -o, c) for k, (o, c) in enumerate(raw)])
    assert [(p.trials, p.cost) for p in up] == [(p.trials, p.cost) for p in down]
    assert [p.output for p in up] == [-p.output for p in down]


def test_a_single_run_must_beat_the_luckiest_run_of_the_member_before_and_a_repeated_one_only_its_mean():
    member = [ok(0, 1.0, 1.0, x=0), ok(1, 0.6, 1.0, x=0)]  # mean 0.8, luckiest 0.6
    assert [p.trials for p in pareto_front([*member, ok(2, 0.7, 2.0)], min_cost_fraction=0.0)] == [(0, 1)]
    twice = [ok(2, 0.7, 2.0, x=2), ok(3, 0.7, 2.0, x=2)]
    assert [p.trials for p in pareto_front([*member, *twice], min_cost_fraction=0.0)] == [(0, 1), (2, 3)]


def test_the_cheapest_fifth_gives_one_member_and_repeated_params_come_first():
    cheap = [ok(0, 9.0, 1.0), ok(1, 5.0, 1.1), ok(2, 6.0, 1.2, x=2), ok(3, 6.0, 1.2, x=2)]
    dear = [ok(k, 4.0 - 0.1 * k, float(k)) for k in range(4, 20)]
    front = pareto_front([*cheap, *dear])
    assert front[0].trials == (2, 3)
    assert len(front) == 17


def test_failed_and_abandoned_trials_are_passed_over():
    lost = [
        Trial(number=k, params={"x": 1.0}, status=s, kind="k", cost=0.1) for k, s in enumerate(["failed", "abandoned"])
    ]
    assert pareto_front(lost) == ()
    assert [p.trials for p in pareto_front([*lost, ok(5, 1.0, 1.0)])] == [(5,)]


def test_a_fraction_outside_the_unit_interval_is_refused():
    with pytest.raises(InputError, match=r"-0\.1"):
        pareto_front([], min_cost_fraction=-0.1)


@settings(deadline=None)
@given(points)
def test_the_front_model_never_rises_with_cost_and_never_lies_above_a_point_it_contains(raw):
    value, log_cost = np.array([o for o, _ in raw]), np.log([c for _, c in raw])
    front = model_front(log_cost, value)
    grid = np.linspace(log_cost.min() - 1, log_cost.max() + 1, 200)
    at = [front.at(u) for u in grid]
    assert (np.diff(at) <= 1e-9 * np.abs(value).max()).all()
    assert all(front.at(u) <= v + 1e-9 * abs(v) for u, v in zip(log_cost, value, strict=True))
    assert all(front.slope(u) >= 0 for u in grid)
    assert front.at(log_cost.max() + 5) == pytest.approx(value.min())
