"""A run that could not predict says so in claims that nothing can make held, and names no laws that it did not have."""

import math
from pathlib import Path

import pytest

from tests.experiments.tiny import probed, tiny_recipe
from wholestack.claim import is_genuine, seal
from wholestack.cli.claims import ready, why
from wholestack.experiments import claims, rehearsal
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.laws import fit_laws
from wholestack.experiments.phases.landing import make_outcome
from wholestack.experiments.phases.landing import run as land
from wholestack.experiments.phases.long_runs import go_or_no_go
from wholestack.experiments.planning import LARGE_ALONE, SMALL, make_plan
from wholestack.experiments.progress import nobody
from wholestack.experiments.records import LAWS_RUNG, LAWS_SEARCH, PLAN, Laws, Params, Role, TrialRecord
from wholestack.experiments.stage import Stage, claim_named
from wholestack.finding import EXIT_UNKNOWN, finding
from wholestack.launch.simulated import SimulatedEngine

NOW = 1.8e9


def trained(role: Role, number: int, params: Params, cost: float) -> TrialRecord:
    return TrialRecord(
        name=f"{role}-{number:04d}", role=role, number=number, params=params, seed=0, outcome="ok", cost_flops=cost,
        parameters=1000, tokens=1000, seconds=1.0, train_seconds=1.0, cpu_seconds=1.0, peak_bytes=1, threads=1,
        metrics={"answer_bpb": 3.0 - 0.1 * math.log10(cost)}, started_at=NOW, ended_at=NOW,
    )  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path):
    """A rehearsal whose search has three trials, too few for a law; its foundations are sealed and held."""
    recipe = tiny_recipe(tmp_path / "text")
    with rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=NOW) as run:
        made = Stage(
            run=run, recipe=recipe, seed=0, stop_if_off=False, clock=BudgetClock(run, 600.0, lambda: NOW),
            engine=SimulatedEngine(), watch=nobody,
        )  # fmt: skip
        run.write(PLAN, make_plan(recipe, budget_s=600, used_s=0, probe=probed({SMALL: 1e8, LARGE_ALONE: 1e8})))
        for name in claims.FOUNDATIONS:
            claim = run.seal(seal(name, "x", "so it is", quantity="", predicted="", sealed_at=NOW))
            run.report(finding("x", name, "ok", evidence=["so it was"], at=NOW, settles=claim.id))
        yield made


def refuse(stage: Stage) -> Laws:
    """Three trials of the search and the laws that they do not give."""
    params = {spec.name: spec.centre for spec in stage.recipe.dimensions}
    for number in range(3):
        stage.acknowledge(trained("search", number, params, 1e8 * 2**number))
    laws = fit_laws(stage.recipe, stage.plan, stage.trials, seed=0)
    assert not laws.supported
    stage.run.write(LAWS_SEARCH, laws)
    stage.run.write(LAWS_RUNG, laws)
    return laws


def train_both(stage: Stage, laws: Laws) -> None:
    for role, params in (("rung", laws.rung_params), ("large", laws.target_params)):
        claims.seal_run(stage, role, params, laws=laws, forecast=None, seconds=60, metric="answer_bpb@x")
        stage.acknowledge(trained(role, 0, params, stage.plan.target_cost_flops))


def hold_all_else(stage: Stage) -> None:
    """The strictest case: everything that was predicted held."""
    for claim in stage.run.claims():
        if claim.predicted is not None:
            stage.run.report(finding("x", claim.name, "ok", evidence=["so it was"], at=NOW, settles=claim.id))


def test_a_run_that_could_not_predict_is_unknown_however_much_else_held(stage: Stage) -> None:
    laws = refuse(stage)
    train_both(stage, laws)
    land(stage)
    for role in ("rung", "large"):
        claim = claim_named(stage.run, claims.metric_claim(role))
        assert (claim.predicted, claim.interval, is_genuine(claim)) == (None, None, True)
        assert laws.refusal in claim.statement
        (settled,) = (each for each in stage.run.findings() if each.settles == claim.id)
        assert (settled.status, settled.remedy) == ("unknown", claims.TO_PREDICT)
    outcome = make_outcome(stage)
    unsettled = {line.name for line in outcome.claims if line.status == "unknown"}
    assert {"rung.metric", "large.metric"} <= unsettled
    assert (outcome.predicted, outcome.actual is None) == (None, False)
    assert go_or_no_go(stage) == (False, "there was no prediction for the rung")


def test_ready_and_why_say_unknown_with_their_exit_code(stage: Stage, capsys) -> None:
    train_both(stage, refuse(stage))
    land(stage)
    hold_all_else(stage)
    folder = stage.run.path
    assert ready(folder) == EXIT_UNKNOWN
    said = capsys.readouterr().out
    assert "no-go: 2 of" in said
    assert "unknown  large.metric: There is no prediction of the large run's metric: none is possible" in said
    assert why(folder) == EXIT_UNKNOWN
    assert f"do: {claims.TO_PREDICT}" in capsys.readouterr().out


def test_long_runs_that_were_never_started_leave_no_run_whose_claims_all_held(stage: Stage, capsys) -> None:
    stage.clock.began("large")
    stage.clock.ended("large", "not trained: it needs 80 s and 20 s are left")
    land(stage)
    hold_all_else(stage)
    assert ready(stage.run.path) == EXIT_UNKNOWN
    said = capsys.readouterr().out
    assert "large.metric: There is no prediction of the large run's metric: not trained: it needs 80 s" in said
    assert "rung.metric: There is no prediction of the rung run's metric: it was not reached." in said
    assert make_outcome(stage).rung is None


def test_settings_without_laws_are_told_as_what_they_are(stage: Stage) -> None:
    laws = refuse(stage)
    train_both(stage, laws)
    statement = claim_named(stage.run, "large.settings").statement
    assert "the best small trial's settings, only size and tokens scaled (there are no laws)" in statement
    assert "laws give" not in statement


def test_without_any_trial_the_settings_are_those_of_the_centre(stage: Stage) -> None:
    laws = fit_laws(stage.recipe, stage.plan, [], seed=0)
    claims.seal_run(stage, "rung", laws.rung_params, laws=laws, forecast=None, seconds=60, metric="answer_bpb@x")
    assert "the centre of the search's space, only size" in claim_named(stage.run, "rung.settings").statement
