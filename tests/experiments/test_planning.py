"""Planning: shares add up to the budget, the target is sixteen trials, and a short budget says so."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.tiny import probed, tiny_recipe
from wholestack.errors import InputError
from wholestack.experiments.planning import LARGE, LARGE_ALONE, SMALL, ladder_costs, make_plan
from wholestack.recipes.laptop import laptop

TWO_THREADS = replace(laptop(), large_threads=2)
RATES = {SMALL: 2e10, LARGE_ALONE: 3e10, LARGE: 5e10}


@given(st.floats(150, 1e5), st.floats(4e10, 1e13), st.floats(0.2, 4))
def test_the_plan_keeps_to_the_budget_and_to_the_multiples(budget_s: float, rate: float, gain: float) -> None:
    rates = {SMALL: rate, LARGE_ALONE: rate, LARGE: gain * rate}
    plan = make_plan(TWO_THREADS, budget_s=budget_s, used_s=10.0, probe=probed(rates))
    assert sum(plan.seconds.values()) <= budget_s + 1e-6
    assert plan.target_cost_flops >= 16 * plan.max_trial_cost_flops * (1 - 1e-12)
    assert plan.rung_cost_flops == pytest.approx(4 * plan.max_trial_cost_flops)
    assert plan.seconds["search"] > plan.seconds["rung"]


def test_threads_that_only_wait_for_each_other_are_not_used() -> None:
    crowded = make_plan(TWO_THREADS, budget_s=480, used_s=10, probe=probed({**RATES, LARGE: 1e10}))
    assert (crowded.large_threads, crowded.speed_up) == (1, 1.0)
    idle = make_plan(TWO_THREADS, budget_s=480, used_s=10, probe=probed(RATES))
    assert (idle.large_threads, idle.speed_up) == (2, pytest.approx(5 / 3))


def test_a_budget_too_short_is_refused_with_what_to_give() -> None:
    with pytest.raises(InputError, match="at least 90 s"):
        make_plan(laptop(), budget_s=20, used_s=0, probe=probed(RATES))


def test_a_machine_too_slow_for_the_search_s_centre_is_refused_with_both_costs() -> None:
    with pytest.raises(InputError, match="the search starts at"):
        make_plan(laptop(), budget_s=100, used_s=0, probe=probed({SMALL: 1e8, LARGE_ALONE: 1e8}))


def test_the_ladder_spans_a_good_decade_up_to_the_largest_trial() -> None:
    plan = make_plan(laptop(), budget_s=480, used_s=0, probe=probed(RATES))
    costs = ladder_costs(plan)
    assert max(costs) <= plan.max_trial_cost_flops
    assert max(costs) / min(costs) > 10
    assert len(costs) >= 8


def test_a_fixed_largest_cost_holds_whatever_the_speed(tmp_path) -> None:
    plan = make_plan(tiny_recipe(tmp_path), budget_s=30, used_s=0, probe=probed(RATES))
    assert plan.max_trial_cost_flops == 2e9
