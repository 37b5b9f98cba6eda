"""Resuming at the seams: a phase that was done but not yet marked as ended is done again and doubles nothing."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.experiments import rehearsal
from wholestack.experiments.records import (
    OUTCOME,
    PHASE_ORDER,
    PHASES,
    SUGGESTIONS,
    TRIALS,
    Outcome,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.processes import marked_processes
from wholestack.report.rehearsal import write_report
from wholestack.runs import CLAIMS, RunReader

pytestmark = pytest.mark.heavy


def cut_after(folder: Path, phase: str) -> None:
    """Leave the phase begun and not ended, and nothing after it marked."""
    lines = (folder / PHASES).read_bytes().splitlines(keepends=True)
    kept = []
    for line in lines:
        record = json.loads(line)
        if (record["phase"], record["event"]) == (phase, "ended"):
            break
        kept.append(line)
    (folder / PHASES).write_bytes(b"".join(kept))


@pytest.mark.parametrize("phase", PHASE_ORDER)
def test_a_phase_cut_off_at_its_very_end_is_done_again_and_doubles_nothing(
    finished: Path, tmp_path: Path, phase: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    before = RunReader(folder)
    trials, outcome = before.journal(TRIALS, TrialRecord), before.read(OUTCOME, Outcome)
    cut_after(folder, phase)
    with rehearsal.resume(folder) as run:
        again = rehearsal.rehearse(run)
    after = RunReader(folder)
    names = [claim.name for claim in after.claims()]
    assert len(names) == len(set(names))
    assert after.journal(TRIALS, TrialRecord) == trials
    assert (again.predicted, again.actual, again.claims) == (outcome.predicted, outcome.actual, outcome.claims)


@pytest.mark.parametrize("kept", [0, 3, 7])
def test_a_kill_between_two_claims_or_steps_of_the_ladder_leaves_none_out(
    finished: Path, tmp_path: Path, kept: int
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    names = [claim.name for claim in RunReader(folder).claims()]
    lines = (folder / CLAIMS).read_bytes().splitlines(keepends=True)
    (folder / CLAIMS).write_bytes(b"".join(lines[: 1 + kept]))
    drop(folder / SUGGESTIONS, lambda record: record["role"] in ("rung", "large") or ladder_from(record, kept))
    drop(folder / TRIALS, lambda record: record["role"] in ("rung", "large") or ladder_from(record, kept))
    cut_after(folder, "preflight")
    with rehearsal.resume(folder) as run:
        rehearsal.rehearse(run)
    after = RunReader(folder)
    assert sorted({claim.name for claim in after.claims()}) == sorted(set(names))
    ladder = [each for each in after.journal(SUGGESTIONS, SuggestionRecord) if each.role == "ladder"]
    assert sorted(each.number for each in ladder) == list(range(10))


def ladder_from(record: dict, kept: int) -> bool:
    return record["role"] == "ladder" and record["number"] >= kept


def drop(path: Path, unwanted) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if not unwanted(json.loads(line))))


def test_a_machine_that_cannot_hold_the_run_stops_it_before_any_trial(tmp_path: Path) -> None:
    recipe = tiny_recipe(tmp_path / "text", workers=1000)
    with rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=time.time()) as run:
        outcome = rehearsal.rehearse(run)
        assert run.journal(TRIALS, TrialRecord) == []
    assert outcome.exit_code == 1
    assert "machine.cores failed" in outcome.reason


def test_without_a_prediction_stop_if_off_ends_before_the_large_run(tmp_path: Path) -> None:
    recipe = tiny_recipe(tmp_path / "text", max_trials=2)
    with rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, stop_if_off=True, at=time.time()) as run:
        outcome = rehearsal.rehearse(run)
    assert outcome.exit_code == 3
    assert (outcome.predicted, outcome.interval, outcome.inside, outcome.relative_error) == (None,) * 4
    assert outcome.go is False
    assert not (tmp_path / "run" / "jobs" / "large-0000").exists()


def test_a_large_run_for_which_no_time_is_left_is_not_started_and_the_reason_is_in_outcome_and_report(
    finished: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    for name in (SUGGESTIONS, TRIALS):
        drop(folder / name, lambda record: record["role"] == "large")
    drop(folder / CLAIMS, lambda record: record["name"].startswith("large."))
    cut_after(folder, "large")
    with rehearsal.resume(folder) as run:
        outcome = rehearsal.rehearse(run, budget_s=1.0)
    assert (outcome.predicted, outcome.actual) == (None, None)
    assert re.search(r"the large run: not trained: it needs \d+ s and -\d+ s are left", outcome.reason)
    assert "budget.left" in {each.check for each in RunReader(folder).findings()}
    page = write_report(folder).read_text()
    assert "The large run was not trained" in page
    assert re.search(r"it needs \d+ s and -\d+ s are left", page)


# Whoever starts the tests in the background has them ignore SIGINT, and a child inherits that.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from wholestack.cli.main import main
main(sys.argv[1:])
"""


def test_ctrl_c_says_how_to_go_on_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from pathlib import Path\nfrom tests.experiments.tiny import tiny_recipe\n"
        f"def recipe():\n    return tiny_recipe(Path({str(tmp_path / 'text')!r}))\n"
    )
    run = tmp_path / "run"
    command = [sys.executable, "-c", COMMAND, "rehearse", str(tmp_path / "mine.py"), "--out", str(run)]
    owner = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert owner.stderr is not None
    for line in owner.stderr:
        if "search" in line:
            break
    owner.send_signal(signal.SIGINT)
    said = owner.stderr.read()
    assert owner.wait() == 130
    assert f"--resume {run}" in said
    assert "Traceback" not in said
    assert marked_processes(rehearsal.token_of(RunReader(run))) == []
