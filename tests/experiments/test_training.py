"""Training runs: what an outside kill, a crash and a missing result become, and which limits a retry gets."""

from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.experiments import rehearsal
from wholestack.experiments.records import RESULT
from wholestack.experiments.scheduling import search_space, suggestion_record
from wholestack.experiments.specs import TrainingResult
from wholestack.experiments.training import MAX_STARTS, TrainingRuns
from wholestack.launch.job import Job, JobState
from wholestack.record import to_json
from wholestack.runs import RunDirectory


class ScriptedEngine:
    """An engine whose jobs end as the test says."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.ends: list[JobState] = []

    def start(self, job: Job) -> str:
        self.jobs.append(job)
        return str(len(self.jobs))

    def end(self, outcome: str, **more: object) -> None:
        number = str(len(self.jobs))
        self.ends.append(
            JobState(id=number, name="x", outcome=outcome, stdout="", stderr="", wall_s=3.0, cpu_s=3.0, **more)  # type: ignore[arg-type]
        )

    def poll(self, timeout_s: float) -> list[JobState]:
        ends, self.ends = self.ends, []
        return ends

    def cancel(self, job_id: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def started(tmp_path: Path):
    recipe = tiny_recipe(tmp_path / "text")
    engine = ScriptedEngine()
    run: RunDirectory = rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=1.0)
    runs = TrainingRuns(
        run, recipe, engine, bytes_per_token={"notes": 1.0, "tales": 1.0}, large_threads=1, clock=lambda: 9.0
    )
    suggestion = suggestion_record(recipe, "search", 0, search_space(recipe).centre(), seed=0, origin="start")
    runs.start(suggestion, expected_s=120.0)
    with run:
        yield runs, engine, run.path / "jobs" / "search-0000"


def test_a_worker_that_was_killed_from_outside_starts_again_with_the_limits_it_had(started) -> None:
    runs, engine, _ = started
    engine.end("killed")
    assert runs.collect(0.0) == []
    assert [job.limits.wall_s for job in engine.jobs] == [960.0, 960.0]


def test_killed_too_often_it_is_abandoned_and_says_nothing_about_its_settings(started) -> None:
    runs, engine, _ = started
    for _ in range(MAX_STARTS - 1):
        engine.end("killed")
        assert runs.collect(0.0) == []
    engine.end("lost", detail="supervisor gone")
    (trial,) = runs.collect(0.0)
    assert trial.outcome == "abandoned"
    assert "supervisor gone" in trial.detail
    assert trial.metrics == {}


@pytest.mark.parametrize("outcome", ["out_of_memory", "timeout"])
def test_limits_are_outcomes(started, outcome: str) -> None:
    runs, engine, _ = started
    engine.end(outcome, detail="over its limit")
    (trial,) = runs.collect(0.0)
    assert (trial.outcome, trial.detail) == (outcome, "over its limit")


def test_a_good_end_without_a_result_is_a_failure_and_not_ok(started) -> None:
    runs, engine, _ = started
    engine.end("done")
    (trial,) = runs.collect(0.0)
    assert trial.outcome == "failed"
    assert "no readable result" in trial.detail


def test_a_result_of_a_worker_that_crashed_afterwards_does_not_count(started) -> None:
    runs, engine, folder = started
    write_result(folder)
    engine.end("failed", detail="exit code 1: ValueError")
    (trial,) = runs.collect(0.0)
    assert (trial.outcome, trial.metrics) == ("failed", {})


@pytest.mark.parametrize(("diverged", "outcome"), [(False, "ok"), (True, "diverged")])
def test_the_result_of_a_good_end_is_taken_over(started, diverged: bool, outcome: str) -> None:
    runs, engine, folder = started
    write_result(folder, diverged=diverged)
    engine.end("done")
    (trial,) = runs.collect(0.0)
    assert trial.outcome == outcome
    assert trial.metrics == ({} if diverged else {"answer_bpb": 2.0})


def write_result(folder: Path, *, diverged: bool = False) -> None:
    result = TrainingResult(
        diverged=diverged, detail="", metrics={"answer_bpb": 2.0}, errors={}, stability={}, train_seconds=2.0,
        score_seconds=0.5, cpu_seconds=2.5, weights_sha256="00",
    )  # fmt: skip
    (folder / RESULT).write_bytes(to_json(result))
