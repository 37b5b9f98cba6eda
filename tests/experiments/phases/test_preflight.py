"""The preflight as a phase: what it writes into the run directory, and what it asks of the engine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.experiments import rehearsal
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.phases import preflight
from wholestack.experiments.planning import LARGE_ALONE, SMALL
from wholestack.experiments.preflight import EXACT_CHECKSUM, ProbeResult
from wholestack.experiments.progress import nobody
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import PLAN, RESULT, SKIPPED, Plan
from wholestack.experiments.stage import Stage
from wholestack.finding import Skipped
from wholestack.launch.job import Job
from wholestack.launch.simulated import Behaviour, SimulatedEngine
from wholestack.record import to_json
from wholestack.runs import RunDirectory

NOW = 1.8e9


def measured(job: Job) -> None:
    """A probe that ended well."""
    rates = {SMALL: 1e10, LARGE_ALONE: 2e10}
    result = ProbeResult(checksum=EXACT_CHECKSUM, expected_checksum=EXACT_CHECKSUM, rates_flops_s=rates, seconds=2.0)
    (job.folder / RESULT).write_bytes(to_json(result))


def stage_of(run: RunDirectory, recipe: Recipe, probe: Callable[[Job], None]) -> Stage:
    return Stage(
        run=run,
        recipe=recipe,
        seed=0,
        stop_if_off=False,
        clock=BudgetClock(run, 600.0, lambda: NOW),
        engine=SimulatedEngine(lambda job: Behaviour(effect=probe)),
        watch=nobody,
    )


@pytest.fixture
def run(tmp_path: Path):
    recipe = tiny_recipe(tmp_path / "text")
    with rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=NOW) as made:
        yield made


def test_a_check_that_does_not_apply_is_listed_as_skipped_once_and_is_no_finding(run, tmp_path: Path) -> None:
    stage = stage_of(run, tiny_recipe(tmp_path / "text"), measured)
    preflight.run(stage)
    preflight.run(stage)
    assert [(each.check, each.reason) for each in run.journal(SKIPPED, Skipped)] == [("machine.device", "not_expected")]
    assert "machine.device" not in {each.check for each in run.findings()}
    assert run.read(PLAN, Plan).rate_flops_s == 1e10
