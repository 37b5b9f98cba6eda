"""The rehearsal, for real and small: it ends, can be killed anywhere, loses nothing, and says what went wrong."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.errors import RunBusyError
from wholestack.experiments import rehearsal
from wholestack.experiments.budget import used_before
from wholestack.experiments.records import (
    OUTCOME,
    PHASES,
    PLAN,
    RESULT,
    SUGGESTIONS,
    TRIALS,
    Outcome,
    PhaseRecord,
    Plan,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.experiments.scheduling import next_suggestion
from wholestack.experiments.settlement import recipe_of
from wholestack.experiments.specs import TrainingResult
from wholestack.processes import marked_processes
from wholestack.record import from_json
from wholestack.runs import RunReader

pytestmark = pytest.mark.heavy

SCRIPT = """
import sys, time
from pathlib import Path
from wholestack.experiments import rehearsal
with rehearsal.resume(Path(sys.argv[1])) as run:
    rehearsal.rehearse(run, watch=lambda moment: print(moment.phase, moment.done, flush=True))
"""


def test_it_ends_with_every_run_trained_and_every_claim_settled_or_named(finished: Path) -> None:
    run = RunReader(finished)
    outcome = run.read(OUTCOME, Outcome)
    trials = run.journal(TRIALS, TrialRecord)
    roles = [trial.role for trial in trials]
    assert (roles.count("search"), roles.count("rung"), roles.count("large")) == (14, 1, 1)
    assert roles.count("random") >= 1
    assert outcome.trials + sum(outcome.failures.values()) == 14
    assert outcome.target_cost_flops >= 16 * outcome.largest_trial_cost_flops
    assert outcome.actual == next(trial for trial in trials if trial.role == "large").metrics["answer_bpb"]
    assert [claim.status for claim in outcome.claims if claim.name in ("machine.exact", "data.sources")] == ["held"] * 2
    if outcome.predicted is None:
        assert (outcome.interval, outcome.inside, outcome.relative_error) == (None, None, None)
        assert outcome.exit_code in (1, 3)
        assert "no prediction" in outcome.reason
    else:
        assert outcome.relative_error == pytest.approx(outcome.actual / outcome.predicted - 1)


def test_the_cost_of_every_run_is_what_was_planned(finished: Path) -> None:
    run = RunReader(finished)
    plan = run.read(PLAN, Plan)
    for trial in run.journal(TRIALS, TrialRecord):
        if trial.role in ("search", "random"):
            assert trial.cost_flops <= plan.max_trial_cost_flops
    costs = {trial.role: trial.cost_flops for trial in run.journal(TRIALS, TrialRecord)}
    assert costs["rung"] == pytest.approx(plan.rung_cost_flops, rel=0.05)
    assert costs["large"] == pytest.approx(plan.target_cost_flops, rel=0.05)


def test_training_a_trial_again_gives_the_same_weights_and_metrics(finished: Path, tmp_path: Path) -> None:
    from wholestack.experiments.worker import train_and_score

    before = from_json(TrainingResult, (finished / "jobs/search-0005" / RESULT).read_bytes())
    (tmp_path / "spec.json").write_bytes((finished / "jobs/search-0005/spec.json").read_bytes())
    train_and_score(str(tmp_path))
    after = from_json(TrainingResult, (tmp_path / RESULT).read_bytes())
    assert after.weights_sha256 == before.weights_sha256
    assert after.metrics == before.metrics


def test_every_suggestion_follows_from_the_journal_before_it(finished: Path) -> None:
    check_follows(finished)


@pytest.mark.parametrize("moment", ["search 3", "rung", "large"])
def test_killed_it_leaves_no_process_and_goes_on_without_loss_or_double(moment: str, tmp_path: Path) -> None:
    run = start(tmp_path)
    phase, _, at_least = moment.partition(" ")
    owner = subprocess.Popen([sys.executable, "-c", SCRIPT, str(run)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    for line in owner.stdout:
        now, done = line.split()
        if now == phase and int(done) >= int(at_least or 0):
            break
    time.sleep(random.Random(moment).random())  # a random moment, not one between two lines
    with pytest.raises(RunBusyError):
        rehearsal.resume(run)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    acknowledged = (run / TRIALS).read_bytes().rpartition(b"\n")[0]
    until = time.monotonic() + 10
    token = rehearsal.token_of(RunReader(run))
    while marked_processes(token) and time.monotonic() < until:
        os.sched_yield()
    assert marked_processes(token) == []
    known, killed = RunReader(run).journal(PHASES, PhaseRecord), used_before(RunReader(run))
    with rehearsal.resume(run) as resumed:
        rehearsal.rehearse(resumed)
    assert (run / TRIALS).read_bytes().startswith(acknowledged)
    check_complete(run)
    check_follows(run)
    began = RunReader(run).journal(PHASES, PhaseRecord)[len(known)]
    assert began.used_s >= killed >= known[-1].used_s
    assert began.used_s - known[-1].used_s <= began.at - known[-1].at


def start(folder: Path, **changes: object) -> Path:
    """A new, not yet started rehearsal."""
    run = folder / "run"
    rehearsal.create(run, tiny_recipe(folder / "text", **changes), budget_s=600, seed=3, at=time.time()).close()
    return run


def check_follows(folder: Path) -> None:
    """Bit-equal: made again from exactly what was acknowledged then, each suggestion is the one on the disk."""
    run = RunReader(folder)
    recipe, plan, seed = recipe_of(run), run.read(PLAN, Plan), run.manifest.seed
    suggestions = [each for each in run.journal(SUGGESTIONS, SuggestionRecord) if each.role in ("search", "random")]
    trials = run.journal(TRIALS, TrialRecord)
    for index, made in enumerate(suggestions):
        assert (made.after is None) == (made.role == "random")
        known = made.after or 0
        assert next_suggestion(recipe, plan, suggestions[:index], trials[:known], seed=seed) == made
        if made.role == "search":
            assert index - recipe.workers < known <= index, "all but what was still running is known"


def check_complete(folder: Path) -> None:
    """Every suggestion has exactly one trial, with the settings suggested; every phase ended once."""
    run = RunReader(folder)
    suggestions = run.journal(SUGGESTIONS, SuggestionRecord)
    trials = run.journal(TRIALS, TrialRecord)
    assert sorted(each.name for each in suggestions) == sorted(each.name for each in trials)
    assert len({each.name for each in trials}) == len(trials)
    by_name = {each.name: each for each in trials}
    assert all(by_name[each.name].params == each.params for each in suggestions)
    ended = [each.phase for each in run.journal(PHASES, PhaseRecord) if each.event == "ended"]
    assert sorted(ended) == sorted(set(ended))
    assert len(ended) == 8
    assert json.loads((folder / OUTCOME).read_text())["trials"] > 0
