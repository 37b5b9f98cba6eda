"""Settling the pace: a worker is judged by its slowest stretch, and a resumed one by each of its sittings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.claim import seal
from wholestack.experiments import rehearsal
from wholestack.experiments.planning import LARGE_ALONE, SMALL, make_plan
from wholestack.experiments.records import CURVE, PLAN, TRIALS, CurvePoint, TrialRecord
from wholestack.experiments.settings import training_plan
from wholestack.experiments.settlement import settle
from wholestack.experiments.stage import MACHINE_PACE, expected_seconds, pace_of
from wholestack.finding import Finding
from wholestack.journal import JournalWriter
from wholestack.runs import RunDirectory

POINTS = 100


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    recipe = tiny_recipe(tmp_path / "text")
    with rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=1.0) as made:
        rates = {SMALL: 1e8, LARGE_ALONE: 1e8}
        made.write(PLAN, make_plan(recipe, budget_s=600, used_s=0, rates_flops_s=rates))
        claim = seal(MACHINE_PACE, "here", "steady", quantity="x", predicted=1.0, interval=(0.0, 2.0), sealed_at=1.0)
        made.seal(claim)
        yield made


def train(run: RunDirectory, tmp_path: Path, step_seconds: list[float], *, resumed_at: int | None = None) -> float:
    """Acknowledge a large run whose points lie so many times its modelled time apart; returns that time a point.

    The worker always has the processor. ``resumed_at`` is the point from which a new process counts its CPU time.
    """
    recipe = tiny_recipe(tmp_path / "text")
    params = {spec.name: spec.centre for spec in recipe.dimensions} | {"tokens": 64 * 4 * POINTS}
    plan = make_plan(recipe, budget_s=600, used_s=0, rates_flops_s={SMALL: 1e8, LARGE_ALONE: 1e8})
    work = training_plan(recipe, params)
    assert work.optimizer.steps == POINTS
    point_s = expected_seconds(recipe, plan, pace_of(recipe, plan, []), params, 1) / POINTS
    seconds = cpu = 0.0
    folder = run.folder("jobs/large-0000")
    with JournalWriter(folder / CURVE, CurvePoint) as curve:
        for number, times in enumerate(step_seconds, start=1):
            seconds += times * point_s
            cpu = point_s if number == resumed_at else cpu + times * point_s
            curve.append(
                CurvePoint(
                    step=number, tokens=256 * number, cost_flops=1.0, train_bpb=2.0, gradient_norm=1.0, lr=0.1,
                    seconds=seconds, cpu_seconds=cpu,
                )
            )  # fmt: skip
    run.append(
        TRIALS,
        TrialRecord(
            name="large-0000", role="large", number=0, params=params, seed=0, outcome="ok", cost_flops=work.cost_flops,
            parameters=1, tokens=work.tokens, seconds=cpu, train_seconds=seconds, cpu_seconds=cpu, peak_bytes=1,
            threads=1, metrics={"answer_bpb": 2.0}, started_at=1.0, ended_at=2.0,
        ),
    )  # fmt: skip
    return point_s


def pace(run: RunDirectory) -> Finding:
    (found,) = (each for each in settle(run, at=9.0) if each.check == MACHINE_PACE)
    return found


def test_a_stretch_at_a_third_of_the_pace_is_named_with_its_steps(run: RunDirectory, tmp_path: Path) -> None:
    point_s = train(run, tmp_path, [1.0] * 40 + [3.0] * 30 + [1.0] * 30)
    assert 20 * point_s > 3, "too short a stretch to be judged"
    found = pace(run)
    assert (found.status, found.part) == ("fail", "large-0000")
    assert "3.00 times the modelled time in steps" in found.evidence[0]
    assert "it had the processor" in found.evidence[0]


@pytest.mark.parametrize("resumed_at", [6, 50, 96])
def test_a_resumed_worker_whose_cpu_counter_starts_again_keeps_its_pace(
    run: RunDirectory, tmp_path: Path, resumed_at: int
) -> None:
    """However long it took from the checkpoint to the first point after it: no stretch goes across a resume."""
    times = [1.0] * POINTS
    times[resumed_at - 1] = 40.0
    train(run, tmp_path, times, resumed_at=resumed_at)
    found = pace(run)
    assert found.status == "ok"
    assert "1.39 times the modelled time" in found.evidence[0]


def test_a_slow_stretch_after_a_resume_is_found_all_the_same(run: RunDirectory, tmp_path: Path) -> None:
    train(run, tmp_path, [1.0] * 60 + [2.5] * 40, resumed_at=50)
    found = pace(run)
    assert found.status == "fail"
    assert "2.50 times the modelled time" in found.evidence[0]
    assert "(1.00 CPU s a second and thread: it had the processor)" in found.evidence[0]
