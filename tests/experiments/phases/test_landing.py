"""Landing: a long run that was not started is told with its reason, in the outcome and on the page."""

from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from tests.report.reading import read
from wholestack.experiments import rehearsal
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.phases import landing
from wholestack.experiments.progress import nobody
from wholestack.experiments.records import OUTCOME, Outcome, PhaseName
from wholestack.experiments.stage import Stage
from wholestack.launch.simulated import SimulatedEngine
from wholestack.report.rehearsal import write_report

NOW = 1.8e9
LATE = "not trained: it needs 80 s and 20 s are left"


def land(folder: Path, notes: dict[PhaseName, str]) -> tuple[Outcome, str]:
    """The outcome, and the words of the page, of a run whose phases ended with these notes and nothing else."""
    recipe = tiny_recipe(folder / "text")
    with rehearsal.create(folder / "run", recipe, budget_s=600, seed=0, at=NOW) as run:
        clock = BudgetClock(run, 600.0, lambda: NOW)
        for phase, note in notes.items():
            clock.began(phase)
            clock.ended(phase, note)
        landing.run(
            Stage(
                run=run,
                recipe=recipe,
                seed=0,
                stop_if_off=False,
                clock=clock,
                engine=SimulatedEngine(),
                watch=nobody,
            )
        )
        return run.read(OUTCOME, Outcome), read(write_report(folder / "run", now=NOW).read_text()).words()


def test_a_large_run_for_which_no_time_was_left_says_so(tmp_path: Path) -> None:
    outcome, page = land(tmp_path, {"rung": "reached 2.000; go: inside", "large": LATE})
    assert outcome.reason == f"the large run: {LATE}; there was no prediction for the rung"
    assert "The large run was not trained" in page
    assert LATE.removeprefix("not trained: ") in page
    assert "No prediction was made" not in page


def test_a_rung_that_was_not_started_says_so_too(tmp_path: Path) -> None:
    outcome, page = land(tmp_path, {"rung": LATE, "large": "not trained: corrupted data: code-000.bin"})
    assert outcome.reason == f"the large run: not trained: corrupted data: code-000.bin; the rung was {LATE}"
    assert "corrupted data: code-000.bin" in page
    assert f"the rung was {LATE}" in page


@pytest.mark.parametrize("before", ["", "not trained: no-go, the rung was "])
def test_a_reason_is_not_said_twice(tmp_path: Path, before: str) -> None:
    note = "not run: machine.device failed (no CUDA device)"
    outcome, _ = land(tmp_path, {"rung": note, "large": before + note})
    assert outcome.reason == f"the large run: {before}{note}"
