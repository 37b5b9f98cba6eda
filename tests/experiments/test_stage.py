"""What the phases share: how long a run will train, from what has ended so far."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.test_scheduling import trained
from tests.experiments.tiny import probed, tiny_recipe
from wholestack.experiments import rehearsal
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.planning import LARGE, LARGE_ALONE, SMALL, make_plan
from wholestack.experiments.progress import nobody
from wholestack.experiments.records import PLAN
from wholestack.experiments.scheduling import search_space, suggestion_record
from wholestack.experiments.stage import Stage, training_seconds
from wholestack.launch.simulated import SimulatedEngine


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A rehearsal after its preflight, on a machine where two threads are twice as fast as one."""
    recipe = tiny_recipe(tmp_path / "text", large_threads=2)
    with rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=1.0) as run:
        rates = {SMALL: 1e9, LARGE_ALONE: 1e9, LARGE: 2e9}
        run.write(PLAN, make_plan(recipe, budget_s=600, used_s=0, probe=probed(rates)))
        yield Stage(
            run=run,
            recipe=recipe,
            seed=0,
            stop_if_off=False,
            clock=BudgetClock(run, 600.0, lambda: 1.0),
            engine=SimulatedEngine(),
            watch=nobody,
        )


def acknowledge_rung(stage: Stage, *, times: float, outcome: str = "ok") -> None:
    """A rung that took so many times what was expected of it."""
    params = search_space(stage.recipe).centre()
    rung = suggestion_record(stage.recipe, "rung", 0, params, seed=0, origin="laws")
    seconds = times * training_seconds(stage, "rung", params)
    stage.acknowledge(replace(trained(rung, 2.0, outcome), train_seconds=seconds, threads=2))


def test_a_long_run_has_all_threads_and_a_trial_has_one(stage: Stage) -> None:
    params = search_space(stage.recipe).centre()
    alone = training_seconds(stage, "search", params)
    assert training_seconds(stage, "ladder", params) == training_seconds(stage, "random", params) == alone
    assert training_seconds(stage, "rung", params) == training_seconds(stage, "large", params)
    assert training_seconds(stage, "large", params) == pytest.approx(alone / 2)


def test_the_large_run_is_expected_to_keep_to_its_time_as_the_rung_did(stage: Stage) -> None:
    params = search_space(stage.recipe).centre()
    alone, before = training_seconds(stage, "search", params), training_seconds(stage, "large", params)
    acknowledge_rung(stage, times=3.0)
    assert training_seconds(stage, "large", params) == pytest.approx(3 * before)
    assert training_seconds(stage, "search", params) == alone


def test_a_rung_that_failed_says_nothing_about_time(stage: Stage) -> None:
    params = search_space(stage.recipe).centre()
    before = training_seconds(stage, "large", params)
    acknowledge_rung(stage, times=3.0, outcome="diverged")
    assert training_seconds(stage, "large", params) == before
