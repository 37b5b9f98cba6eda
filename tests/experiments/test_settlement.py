"""Settling the pace: a worker is judged by its slowest stretch, and a resumed one by each of its sittings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiments.tiny import probed, tiny_recipe
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
        made.write(PLAN, make_plan(recipe, budget_s=600, used_s=0, probe=probed(rates)))
        claim = seal(MACHINE_PACE, "here", "steady", quantity="x", predicted=1.0, interval=(0.0, 2.0), sealed_at=1.0)
        made.seal(claim)
        yield made


def train(
    run: RunDirectory, tmp_path: Path, step_seconds: list[float], *,
    resumed_at: int | None = None, cpu_share: float = 1.0, queued_share: float = 0.0, name: str = "large-0000",
) -> float:  # fmt: skip
    """Acknowledge a run whose points lie so many times its modelled time apart; returns that time a point.

    The worker has the processor for ``cpu_share`` of the time and is in the queue for it for ``queued_share``.
    ``resumed_at`` is the point from which a new process counts its CPU time.
    """
    recipe = tiny_recipe(tmp_path / "text")
    params = {spec.name: spec.centre for spec in recipe.dimensions} | {"tokens": 64 * 4 * POINTS}
    plan = make_plan(recipe, budget_s=600, used_s=0, probe=probed({SMALL: 1e8, LARGE_ALONE: 1e8}))
    work = training_plan(recipe, params)
    assert work.optimizer.steps == POINTS
    point_s = expected_seconds(recipe, plan, pace_of(recipe, plan, []), params, 1) / POINTS
    seconds = cpu = 0.0
    folder = run.folder(f"jobs/{name}")
    with JournalWriter(folder / CURVE, CurvePoint) as curve:
        for number, times in enumerate(step_seconds, start=1):
            seconds += times * point_s
            cpu = point_s if number == resumed_at else cpu + cpu_share * times * point_s
            curve.append(
                CurvePoint(
                    step=number, tokens=256 * number, cost_flops=1.0, train_bpb=2.0, gradient_norm=1.0, lr=0.1,
                    seconds=seconds, cpu_seconds=cpu, queued_seconds=queued_share * seconds,
                )
            )  # fmt: skip
    run.append(
        TRIALS,
        TrialRecord(
            name=name, role="large" if name == "large-0000" else "search", number=0, params=params, seed=0,
            outcome="ok",
            cost_flops=work.cost_flops,
            parameters=1, tokens=work.tokens, seconds=seconds, train_seconds=seconds, cpu_seconds=cpu,
            queued_seconds=queued_share * seconds, peak_bytes=1,
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


def busy(run: RunDirectory, tmp_path: Path) -> None:
    """Small runs on a machine where other work has the processor for half of the time."""
    for number in range(8):
        train(run, tmp_path, [2.0] * POINTS, cpu_share=0.5, queued_share=0.5, name=f"search-{number:04}")


def test_a_stopped_worker_is_told_from_workers_that_all_wait_for_a_busy_processor(
    run: RunDirectory, tmp_path: Path
) -> None:
    busy(run, tmp_path)
    train(run, tmp_path, [4.0] * POINTS, cpu_share=0.25)
    found = pace(run)
    assert (found.status, found.part) == ("fail", "large-0000")
    assert "4.00 times the modelled time" in found.evidence[0]
    assert "it was stopped or waited for something else than a processor" in found.evidence[0]


def test_a_worker_that_waits_in_the_queue_as_all_do_keeps_its_pace(run: RunDirectory, tmp_path: Path) -> None:
    busy(run, tmp_path)
    train(run, tmp_path, [2.0] * POINTS, cpu_share=0.5, queued_share=0.5)
    assert pace(run).status == "ok"


def test_a_worker_beside_which_other_work_was_started_is_named_with_that_as_the_reason(
    run: RunDirectory, tmp_path: Path
) -> None:
    train(run, tmp_path, [4.0] * POINTS, cpu_share=0.25, queued_share=0.75)
    found = pace(run)
    assert (found.status, found.part) == ("fail", "large-0000")
    assert "other work had the processor for 75% of the time" in found.evidence[0]
