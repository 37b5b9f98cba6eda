"""The budget's clock counts work up to the last thing on the disk, whatever was killed, and never a pause."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiments.test_scheduling import trained
from wholestack.experiments.budget import BudgetClock, used_before
from wholestack.experiments.records import CURVE, SUGGESTIONS, TRIALS, CurvePoint, SuggestionRecord
from wholestack.journal import JournalWriter
from wholestack.runs import RunDirectory, RunManifest


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    manifest = RunManifest(kind="rehearsal", created_at=1000.0, seed=0, config={}, versions={})
    with RunDirectory.create(tmp_path / "run", manifest) as made:
        yield made


def begin(run: RunDirectory, role: str, watch: Watch) -> SuggestionRecord:
    """The rung or large run starts at 1050, 50 s into the rehearsal."""
    clock = BudgetClock(run, 480.0, watch)
    watch.now = 1050.0
    clock.began(role)  # type: ignore[arg-type]
    made = SuggestionRecord(name=f"{role}-0000", role=role, number=0, params={"lr": 0.1}, seed=0, cost_flops=1e9)  # type: ignore[arg-type]
    run.append(SUGGESTIONS, made)
    return made


def write_curve(run: RunDirectory, name: str, moments: list[float]) -> None:
    with JournalWriter(run.folder(f"jobs/{name}") / CURVE, CurvePoint) as curve:
        for step, at in enumerate(moments, start=1):
            curve.append(
                CurvePoint(
                    step=step, tokens=step, cost_flops=1.0, train_bpb=3.0, gradient_norm=1.0, lr=0.1, seconds=1.0,
                    cpu_seconds=1.0, at=at,
                )
            )  # fmt: skip


@pytest.mark.parametrize("role", ["search", "rung", "large"])
def test_a_killed_run_has_used_the_time_up_to_its_last_curve_point_and_the_pause_is_free(
    run: RunDirectory, role: str
) -> None:
    watch = Watch()
    begin(run, role, watch)
    write_curve(run, f"{role}-0000", [1060.0, 1130.0])
    watch.now = 9000.0
    resumed = BudgetClock(run, 480.0, watch)
    assert resumed.used_s == 130.0
    assert resumed.left_s == 350.0
    watch.now = 9010.0
    assert resumed.used_s == 140.0


def test_time_of_an_earlier_session_is_counted_once_however_often_it_is_killed(run: RunDirectory) -> None:
    watch = Watch()
    begin(run, "large", watch)
    write_curve(run, "large-0000", [1100.0])
    watch.now = 5000.0
    BudgetClock(run, 480.0, watch).began("large")
    assert used_before(run) == 100.0
    write_curve(run, "large-0000", [5030.0])
    assert used_before(run) == 130.0


def test_a_run_that_has_ended_counts_by_its_end_and_not_by_its_curve(run: RunDirectory) -> None:
    watch = Watch()
    suggestion = begin(run, "rung", watch)
    write_curve(run, "rung-0000", [1060.0, 1130.0])
    run.append(TRIALS, trained(suggestion, 2.0))
    assert used_before(run) == 50.0  # its end, at 1 s, lies before its phase began


def test_curves_of_older_runs_do_not_tell_when_they_were_written_and_move_nothing(run: RunDirectory) -> None:
    begin(run, "large", Watch())
    write_curve(run, "large-0000", [0.0, 0.0])
    assert used_before(run) == 50.0


def test_before_anything_has_begun_nothing_is_used(run: RunDirectory) -> None:
    assert used_before(run) == 0.0
