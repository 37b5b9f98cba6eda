"""The preflight as a phase: what it writes into the run directory, and what it asks of the engine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.tiny import probed, tiny_recipe
from wholestack.experiments import rehearsal
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.phases import preflight
from wholestack.experiments.planning import LARGE_ALONE, SMALL
from wholestack.experiments.preflight import ProbeResult
from wholestack.experiments.progress import nobody
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import PLAN, RESULT, SKIPPED, Plan
from wholestack.experiments.stage import Stage, unfit
from wholestack.finding import Skipped
from wholestack.launch.job import Job
from wholestack.launch.simulated import Behaviour, SimulatedEngine
from wholestack.record import from_json, to_json
from wholestack.runs import RunDirectory

NOW = 1.8e9


def measured(job: Job) -> None:
    """A probe that ended well."""
    (job.folder / RESULT).write_bytes(to_json(probed({SMALL: 1e10, LARGE_ALONE: 2e10})))


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


def on_cuda(folder: Path) -> Recipe:
    return tiny_recipe(folder / "text", device="cuda", precision="bfloat16")


def finds(device: str | None) -> Callable[[Job], None]:
    """A probe that found this device."""

    def probe(job: Job) -> None:
        measured(job)
        result = from_json(ProbeResult, (job.folder / RESULT).read_bytes())
        rates = result.rates_flops_s if device else {}
        (job.folder / RESULT).write_bytes(to_json(replace(result, device=device, rates_flops_s=rates)))

    return probe


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, ("cpu", "float32")),
        ({"precision": "bfloat16"}, ("cpu", "bfloat16")),
        ({"device": "cuda", "precision": "bfloat16"}, ("cuda", "bfloat16")),
    ],
)
def test_the_probe_is_asked_for_the_recipe_s_device_and_precision(
    run, tmp_path: Path, changes: dict, asked: tuple[str, str]
) -> None:
    jobs: list[Job] = []

    def probe(job: Job) -> None:
        jobs.append(job)
        measured(job)

    preflight.run(stage_of(run, tiny_recipe(tmp_path / "text", **changes), probe))
    assert [(job.arguments["device"], job.arguments["precision"]) for job in jobs] == [asked]


def test_the_device_that_is_there_is_named_in_a_finding_and_nothing_is_skipped(run, tmp_path: Path) -> None:
    preflight.run(stage_of(run, on_cuda(tmp_path), finds("Some Device 80GB")))
    (found,) = (each for each in run.findings() if each.check == "machine.device")
    assert (found.status, found.evidence) == ("ok", ("CUDA device Some Device 80GB",))
    assert run.journal(SKIPPED, Skipped) == []
    assert run.read(PLAN, Plan).rate_flops_s == 1e10


def test_without_the_device_there_is_a_finding_no_plan_and_nothing_may_run(run, tmp_path: Path) -> None:
    note = preflight.run(stage_of(run, on_cuda(tmp_path), finds(None)))
    (found,) = (each for each in run.findings() if each.check == "machine.device")
    assert (found.status, found.cause) == ("fail", "no CUDA device")
    assert "recipe for the CPU" in found.remedy
    assert unfit(run) == [found]
    assert run.read_optional(PLAN, Plan) is None
    assert "machine.speed" not in {each.check for each in run.findings()}
    assert "no CUDA device" in note
