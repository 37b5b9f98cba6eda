"""Comparisons of mixtures: what is asked, one for real from end to end, killed and resumed, and continued weights."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.tiny import tiny_recipe, write_text
from wholestack.cli.main import main
from wholestack.data.build import prepare
from wholestack.data.corpus import Corpus
from wholestack.errors import InputError, RecordError, RunDirectoryError
from wholestack.evals.scores import ItemScores
from wholestack.experiments import mixtures
from wholestack.experiments.mixture_plan import (
    COMPARISON_PLAN,
    MIXTURES,
    Comparison,
    ComparisonPlan,
    MixturesOutcome,
    Phase,
    default_comparison,
    overall,
    read_comparison,
    stretches,
    told,
)
from wholestack.experiments.mixture_results import results_of
from wholestack.experiments.recipe import SourceSpec
from wholestack.experiments.records import ITEM_SCORES, SPEC, SUGGESTIONS, TRIALS, SuggestionRecord, TrialRecord
from wholestack.experiments.rehearsal import token_of
from wholestack.experiments.sources import sources_of
from wholestack.experiments.specs import TrainingSpec
from wholestack.journal import read_journal
from wholestack.processes import marked_processes
from wholestack.record import from_json, to_json
from wholestack.runs import RunReader

TURN = (Phase(share=0.5, weights={"notes": 1.0}), Phase(share=0.5, weights={"tales": 1.0}))


def comparison(**changes: object) -> Comparison:
    values: dict[str, object] = {
        "mixtures": {"even": (Phase(share=1.0, weights={"notes": 1.0, "tales": 1.0}),), "turn": TURN},
        "baseline": "even",
        "recipe": "tiny",
        "tokens": 8000,
        "rates": (0.5, 1.0),
    }
    return Comparison(**{**values, **changes})  # type: ignore[arg-type]


def test_a_schedule_is_cut_at_its_shares_of_the_tokens() -> None:
    phases = (
        *TURN[:1],
        Phase(share=0.25, weights={"tales": 1.0}),
        Phase(share=0.25, weights={"notes": 3.0, "tales": 1.0}),
    )
    assert [each.first_sequence for each in stretches(phases, 200)] == [0, 100, 150]
    assert overall(phases) == {"notes": 0.5 + 0.25 * 0.75, "tales": 0.25 + 0.25 * 0.25}
    assert told(TURN) == "notes 100%; from 50% of the tokens tales 100%"


def test_a_phase_without_a_single_sequence_falls_away() -> None:
    phases = (Phase(share=0.001, weights={"notes": 1.0}), Phase(share=0.999, weights={"tales": 1.0}))
    assert [(each.first_sequence, each.weights) for each in stretches(phases, 100)] == [(0, {"tales": 1.0})]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"baseline": "odd"}, "baseline is 'odd'"),
        ({"mixtures": {"even": TURN}}, "at least one other"),
        ({"mixtures": {"even": TURN, "half": TURN[:1]}}, "'half'.*sum to 1"),
        ({"mixtures": {"even": TURN, "none": (Phase(share=1.0, weights={"notes": 0.0}),)}}, "'none': weights"),
        ({"rates": (0.0,)}, "must be above 0"),
    ],
)
def test_a_comparison_that_is_none_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        comparison(**changes)


def test_a_file_comes_back_as_it_was_and_an_unknown_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(to_json(comparison()))
    assert read_comparison(path) == comparison()
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "ratse": [1]}))
    with pytest.raises(RecordError, match="ratse"):
        read_comparison(path)
    with pytest.raises(InputError, match=r"no\.json"):
        read_comparison(tmp_path / "no.json")


def test_by_default_every_source_is_heavy_once_all_along_and_once_at_the_end(tmp_path: Path) -> None:
    made = default_comparison(tiny_recipe(tmp_path / "text"), "tiny")
    assert list(made.mixtures) == ["even", "more notes", "notes last", "more tales", "tales last"]
    assert overall(made.mixtures["more notes"]) == {"notes": 0.75, "tales": 0.25}
    assert overall(made.mixtures["notes last"]) == {"notes": 0.5, "tales": 0.5}


def test_an_unknown_source_a_single_seed_and_weights_of_nobody_are_refused(tmp_path: Path) -> None:
    recipe = tiny_recipe(tmp_path / "text")
    wrong = {"even": TURN, "odd": (Phase(share=1.0, weights={"poems": 1.0}),)}
    for changes, asked, said in (
        ({"mixtures": wrong}, {"seeds": 2}, "unknown source 'poems'"),
        ({}, {"seeds": 1}, "two or more"),
        ({}, {"seeds": 2, "start": tmp_path / "nothing"}, "no checkpoint"),
    ):
        with pytest.raises(InputError, match=said):
            mixtures.create(tmp_path / "run", recipe, comparison(**changes), budget_s=600, seed=0, at=0.0, **asked)
    assert not (tmp_path / "run").exists()


def test_documents_that_are_held_out_here_and_were_read_there_are_counted(tmp_path: Path) -> None:
    sources = sources_of(tiny_recipe(tmp_path / "text"))
    ours, theirs = (
        prepare(sources, tmp_path / str(seed), vocab_size=256, seed=seed, held_out_fraction=0.2) for seed in (0, 1)
    )
    assert mixtures.held_out_but_read(ours, ours)[0] == 0
    read, held_out = mixtures.held_out_but_read(ours, theirs)
    mine = {document.text for document in ours.documents("held_out")}
    assert held_out == len(mine)
    assert read == len(mine & {document.text for document in theirs.documents("train")}) > 0


def run_one(folder: Path, text: Path, *, start: Path | None = None, **changes: object) -> MixturesOutcome:
    recipe = tiny_recipe(text, workers=1)
    made = mixtures.create(
        folder, recipe, comparison(**changes), seeds=2, budget_s=600, seed=3, start=start, at=time.time()
    )
    with made as run:
        return mixtures.compare(run)


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a comparison that ran to its end."""
    folder = tmp_path_factory.mktemp("mixtures")
    run_one(folder / "run", folder / "text")
    return folder / "run"


@pytest.mark.heavy
def test_every_mixture_costs_the_same_searches_alike_and_is_judged_on_seeds_of_its_own(compared: Path) -> None:
    run = RunReader(compared)
    outcome, trials = run.read(MIXTURES, MixturesOutcome), run.journal(TRIALS, TrialRecord)
    assert {trial.cost_flops for trial in trials} == {outcome.plan.cost_flops}
    assert sorted((trial.role, trial.params["mixture"]) for trial in trials) == sorted(
        [("rate", name) for name in ("even", "turn")] * 2 + [("repeat", name) for name in ("even", "turn")] * 2
    )
    seeds = {
        name: [trial.seed for trial in trials if (trial.role, trial.params["mixture"]) == ("repeat", name)]
        for name in ("even", "turn")
    }
    assert sorted(seeds["even"]) == sorted(seeds["turn"])
    assert not {trial.seed for trial in trials if trial.role == "rate"} & set(seeds["even"])
    even, turn = outcome.results
    assert (even.verdict, even.difference) == ("baseline", None)
    assert turn.difference is not None
    assert turn.difference.value == pytest.approx(np.mean(turn.values) - np.mean(even.values))
    assert outcome.exit_code == (3 if turn.verdict == "cannot be told" else 0)


@pytest.mark.heavy
def test_what_can_be_seen_was_on_the_disk_before_the_first_training(compared: Path) -> None:
    plan = RunReader(compared).read(COMPARISON_PLAN, ComparisonPlan)
    assert plan.detectable > 0
    assert (compared / COMPARISON_PLAN).stat().st_mtime <= (compared / SUGGESTIONS).stat().st_mtime


@pytest.mark.heavy
def test_a_schedule_reaches_the_worker(compared: Path) -> None:
    trials = RunReader(compared).journal(TRIALS, TrialRecord)
    turned = next(trial for trial in trials if trial.params["mixture"] == "turn")
    spec = from_json(TrainingSpec, (compared / "jobs" / turned.name / SPEC).read_bytes())
    sequences = spec.optimizer.steps * spec.optimizer.batch_size
    assert [(each.first_sequence, each.weights) for each in spec.schedule] == [
        (0, {"notes": 1.0}),
        (sequences // 2, {"tales": 1.0}),
    ]


@pytest.mark.heavy
def test_a_comparison_that_was_killed_goes_on_and_comes_to_the_same(compared: Path, tmp_path: Path) -> None:
    script = tmp_path / "go.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom tests.experiments.test_mixtures import run_one\n"
        "run_one(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    folder, text = tmp_path / "run", compared.parent / "text"
    command = [sys.executable, str(script), str(folder), str(text)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as child:
        while len(read_journal(folder / TRIALS, TrialRecord)) < 5 and child.poll() is None:
            select_nothing(0.05)
        child.send_signal(signal.SIGKILL)
    acknowledged = read_journal(folder / TRIALS, TrialRecord)
    assert 5 <= len(acknowledged) < 8
    with mixtures.resume(folder) as run:
        outcome = mixtures.compare(run)
        assert not marked_processes(token_of(run))
    trials = read_journal(folder / TRIALS, TrialRecord)
    suggested = read_journal(folder / SUGGESTIONS, SuggestionRecord)
    assert trials[: len(acknowledged)] == acknowledged
    assert len({each.name for each in suggested}) == len(suggested) == len(trials) == 8
    whole = RunReader(compared).read(MIXTURES, MixturesOutcome)
    assert outcome.results == whole.results
    for trial in trials:
        if trial.role == "repeat":
            ours, theirs = (ItemScores.load(each / "jobs" / trial.name / ITEM_SCORES) for each in (folder, compared))
            assert np.array_equal(ours.nll_nats, theirs.nll_nats)


def select_nothing(timeout_s: float) -> None:
    """Wait without burning the processor that the child needs."""
    signal.sigtimedwait([], timeout_s)


@pytest.mark.heavy
def test_a_budget_that_is_used_up_stops_a_comparison_and_more_of_it_comes_to_the_same(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time jumps past the budget when the sixth training has begun: it is cut, and no further one is begun."""
    folder = tmp_path / "run"
    recipe = tiny_recipe(compared.parent / "text", workers=1)
    made = mixtures.create(folder, recipe, comparison(), seeds=2, budget_s=600, seed=3, at=time.time())

    def clock() -> float:
        return time.time() + 3600 * (len(list(folder.glob(f"jobs/*-0*/{SPEC}"))) > 5)

    with made as run:
        outcome = mixtures.compare(run, clock=clock)
        assert not marked_processes(token_of(run))
    assert (outcome.exit_code, outcome.finished, outcome.trainings) == (3, False, 5)
    assert len(read_journal(folder / TRIALS, TrialRecord)) == 5
    assert "the budget was used up before two seeds" in outcome.results[1].sentence
    code, out, _ = command(capsys, "--resume", str(folder), "--budget", "1s")
    assert code == 3
    assert "The budget was used up after 5 of 8 trainings" in " ".join(out.split())
    assert f"wholestack evals mixtures --resume {folder} --budget " in out
    code, out, _ = command(capsys, "--resume", str(folder), "--budget", "1h", "--json", "--goals", str(tmp_path))
    document = json.loads(out)
    whole = RunReader(compared).read(MIXTURES, MixturesOutcome)
    assert (code, document["finished"]) == (whole.exit_code, True)
    assert RunReader(folder).read(MIXTURES, MixturesOutcome).results == whole.results
    assert list(document["stands_for"]) == [whole.metric]


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["evals", "mixtures", *arguments])
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.mark.heavy
def test_the_seeds_that_every_mixture_has_are_compared_so_far_without_a_verdict(compared: Path) -> None:
    run = RunReader(compared)
    plan, trials = run.read(COMPARISON_PLAN, ComparisonPlan), run.journal(TRIALS, TrialRecord)
    for kept, seeds in ((trials, 2), ([each for each in trials if each.name != "repeat-0003"], 1)):
        even, turn = results_of(compared, kept, comparison(), plan, metric="answer_bpb", finished=False)
        assert (len(even.values), len(turn.values)) == (seeds, seeds)
        assert turn.verdict == "cannot be told"
        assert (turn.difference is None) == (seeds == 1)
        if turn.difference is not None:
            assert turn.difference.verdict == "cannot be told"
            assert "after 2 of 2 seeds; the difference so far is" in turn.sentence


@pytest.mark.heavy
def test_continued_weights_begin_where_they_were_and_what_they_forget_is_measured(
    compared: Path, tmp_path: Path
) -> None:
    trials = RunReader(compared).journal(TRIALS, TrialRecord)
    turned = next(trial for trial in trials if (trial.role, trial.params["mixture"]) == ("repeat", "turn"))
    only = {
        "even": (Phase(share=1.0, weights={"notes": 1.0, "tales": 1.0}),),
        "tales": (Phase(share=1.0, weights={"tales": 1.0}),),
    }
    outcome = run_one(
        tmp_path / "run", compared.parent / "text", start=compared / "jobs" / turned.name, mixtures=only, rates=()
    )
    even, tales = outcome.results
    assert even.forgetting is not None
    assert tales.forgetting is not None
    assert even.forgetting.before_bpb == tales.forgetting.before_bpb
    assert tales.forgetting.difference > even.forgetting.difference
    assert outcome.plan.rates == mixtures.RATES_CONTINUED
    assert outcome.plan.lr == turned.params["lr"]
    assert not outcome.warnings
    assert max(even.values) < turned.metrics["answer_bpb"] + 0.05


@pytest.mark.heavy
def test_weights_are_continued_on_a_source_that_they_never_saw_in_their_own_tokens(
    compared: Path, tmp_path: Path
) -> None:
    trials = RunReader(compared).journal(TRIALS, TrialRecord)
    start = compared / "jobs" / next(trial.name for trial in trials if trial.role == "repeat")
    text = compared.parent / "text"
    poems = SourceSpec(
        kind="folder", name="poems", path=str(write_text(tmp_path / "poems", kind="poems")), licence="CC0-1.0"
    )
    recipe = tiny_recipe(text, workers=1)
    recipe = replace(recipe, sources=(*recipe.sources, poems))
    only = {"old": (Phase(share=1.0, weights={"notes": 1.0}),), "new": (Phase(share=1.0, weights={"poems": 1.0}),)}
    asked = comparison(mixtures=only, baseline="old", tokens=3000, rates=(0.3,))
    made = mixtures.create(tmp_path / "run", recipe, asked, seeds=2, budget_s=600, seed=0, start=start, at=time.time())
    with made as run:
        outcome = mixtures.compare(run)
    ours, theirs = Corpus.open(tmp_path / "run" / "data"), Corpus.open(compared / "data")
    assert ours.manifest.tokenizer == theirs.manifest.tokenizer
    assert not outcome.warnings
    old, new = outcome.results
    assert new.forgetting is not None
    assert old.forgetting is not None
    assert new.forgetting.difference > old.forgetting.difference


@pytest.mark.heavy
def test_a_rehearsal_is_no_comparison(finished: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not a 'mixtures' run"):
        mixtures.resume(finished)
