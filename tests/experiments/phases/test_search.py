"""A machine that became slower makes the runs ahead smaller; it does not end a search that hardly began."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.tiny import probed, tiny_recipe
from wholestack.experiments import rehearsal
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.pace import Pace
from wholestack.experiments.phases import search
from wholestack.experiments.planning import LARGE_ALONE, SAFETY, SMALL, make_plan
from wholestack.experiments.progress import nobody
from wholestack.experiments.records import PLAN, SUGGESTIONS, TRIALS, Plan, TrialRecord
from wholestack.experiments.scheduling import suggestion_record
from wholestack.experiments.settings import training_plan
from wholestack.experiments.stage import Stage
from wholestack.launch.simulated import SimulatedEngine
from wholestack.recipes.laptop import laptop

NOW = 1.8e9


def smaller(
    folder: Path, recipe, *, slowdown: float, trials: int, queued_at_first: float = 0.0
) -> tuple[Plan, Plan, list[float]]:
    """The plan before and after a search that found no time, and the costs of the trials.

    The machine is slow because other work has the processor; a part of the time it had it during the preflight too.
    """
    plan = make_plan(
        laptop(), budget_s=480, used_s=10, probe=probed({SMALL: 2e10, LARGE_ALONE: 3e10}, queued_share=queued_at_first)
    )
    pace = Pace(step_s=0.0, layer_s=0.0, rate_flops_s=plan.rate_flops_s * SAFETY)
    with rehearsal.create(folder / "run", tiny_recipe(folder / "text"), budget_s=480, seed=0, at=NOW) as run:
        run.write(PLAN, plan)
        for number in range(trials):
            varied = {
                "tokens": 20_000 + 2_000 * (number % 9),
                "width": (32, 48, 64)[number % 3],
                "batch_size": 4 + number % 5,
            }
            params = {spec.name: spec.centre for spec in laptop().dimensions} | varied
            asked = suggestion_record(laptop(), "search", number, params, seed=0, origin="test")
            work = training_plan(laptop(), params).work
            seconds = slowdown * pace.seconds(work)
            run.append(SUGGESTIONS, asked)
            run.append(
                TRIALS,
                TrialRecord(
                    name=asked.name, role="search", number=number, params=params, seed=0, outcome="ok",
                    cost_flops=asked.cost_flops, parameters=1, tokens=60_000, seconds=seconds + 1,
                    train_seconds=seconds, cpu_seconds=seconds / slowdown,
                    queued_seconds=seconds - (1 - queued_at_first) * seconds / slowdown,
                    peak_bytes=1, threads=1, started_at=NOW, ended_at=NOW,
                ),
            )  # fmt: skip
        stage = Stage(
            run=run, recipe=recipe, seed=0, stop_if_off=False, clock=BudgetClock(run, 480.0, lambda: NOW),
            engine=SimulatedEngine(), watch=nobody,
        )  # fmt: skip
        search.make_smaller(stage)
        return plan, run.read(PLAN, Plan), [each.cost_flops for each in stage.suggestions]


def test_costs_are_divided_by_the_slowdown_and_keep_their_multiples(tmp_path: Path) -> None:
    before, after, costs = smaller(tmp_path, laptop(), slowdown=2.5, trials=12)
    assert after.slowdown == pytest.approx(2.5, rel=0.05)
    assert after.max_trial_cost_flops == pytest.approx(before.max_trial_cost_flops / after.slowdown)
    assert after.target_cost_flops / after.max_trial_cost_flops == pytest.approx(
        before.target_cost_flops / before.max_trial_cost_flops
    )
    assert after.seconds["large"] == pytest.approx(before.seconds["large"] / after.slowdown)
    assert after.seconds["data"] == before.seconds["data"]
    assert after.max_trial_cost_flops >= max(costs)


def test_work_that_the_preflight_had_beside_it_already_does_not_count_twice(tmp_path: Path) -> None:
    _, after, _ = smaller(tmp_path, laptop(), slowdown=2.0, trials=12, queued_at_first=0.5)
    assert after.slowdown == pytest.approx(2.0, rel=0.1)


def test_never_below_what_a_trial_cost_already(tmp_path: Path) -> None:
    _, after, costs = smaller(tmp_path, laptop(), slowdown=500.0, trials=12)
    assert after.max_trial_cost_flops == pytest.approx(max(costs))


@pytest.mark.parametrize(
    ("recipe", "slowdown", "trials"),
    [
        (laptop(), 1.0, 12),
        (laptop(), 3.0, search.ENOUGH_TRIALS),
        (laptop(), 3.0, search.FEWEST_FOR_PACE - 1),
        (replace(laptop(), max_trial_cost_flops=1e12), 3.0, 12),
    ],
)
def test_not_on_a_machine_as_measured_nor_late_nor_early_nor_where_the_recipe_fixes_the_cost(
    tmp_path: Path, recipe, slowdown: float, trials: int
) -> None:
    before, after, _ = smaller(tmp_path, recipe, slowdown=slowdown, trials=trials)
    assert after == before
