"""The commands that train in order to evaluate: what they print, and what they refuse."""

import subprocess
import sys
from pathlib import Path

import pytest

from wholestack.cli import evals_mixtures
from wholestack.cli.main import main
from wholestack.evals.statistics import Interval
from wholestack.experiments.mixture_plan import Comparison, ComparisonPlan, MixtureResult, MixturesOutcome, Phase
from wholestack.experiments.mixture_results import sentence
from wholestack.experiments.mixture_verdict import Difference, Spread

EVEN = (Phase(share=1.0, weights={"code": 1.0, "prose": 1.0}),)
TURN = (Phase(share=0.5, weights={"code": 1.0}), Phase(share=0.5, weights={"prose": 1.0}))


def difference() -> Difference:
    return Difference(
        metric="answer_bpb",
        value=-0.02,
        by_seed=(-0.03, -0.01),
        spread=Spread(items=0.004, seeds=0.01, clusters=80, runs=2),
        interval=Interval(low=-0.15, high=0.11, level=0.95),
        detectable=0.14,
        verdict="cannot be told",
    )


def outcome() -> MixturesOutcome:
    plan = ComparisonPlan(
        runs=10,
        tokens=100_000,
        steps=200,
        cost_flops=3e10,
        lr=0.008,
        rates=(0.5, 1.0, 2.0),
        rate_flops_s=5e9,
        expected_s=90.0,
        seeds=2,
        items=400,
        clusters=80,
        level=0.95,
        detectable=0.03,
        basis="assumed",
    )
    common = {"lr": 0.008, "rate_losses": {"0.004": 2.6, "0.008": 2.5, "0.016": None}, "at_edge": False}
    results = (
        MixtureResult(
            name="even", values=(2.5, 2.52), difference=None, verdict="baseline", sentence="even is it.", **common
        ),
        MixtureResult(
            name="turn",
            values=(2.47, 2.51),
            difference=difference(),
            verdict="cannot be told",
            sentence=sentence("turn", "even", difference()),
            **common,
        ),
    )
    return MixturesOutcome(
        metric="answer_bpb[0123abcd]",
        baseline="even",
        plan=plan,
        trainings=10,
        finished=True,
        results=results,
        warnings=(),
        seconds=95.0,
        budget_s=90.0,
        exit_code=3,
    )


def test_the_verdict_on_mixtures_fits_a_terminal_and_says_what_it_is() -> None:
    comparison = Comparison(mixtures={"even": EVEN, "turn": TURN}, baseline="even")
    text = evals_mixtures._text(outcome(), comparison, Path("run/mixtures.json"), "what it stands for")
    assert "what it stands for" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "lower is better" in text
    assert "0.016: failed" in text
    flat = " ".join(text.split())
    assert "Whether turn is better or worse than even cannot be told" in flat
    assert "seeds vary more than items" in flat


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evals", "mixtures"], "name a file or recipe"),
        (["evals", "mixtures", "laptop", "--resume", "x"], "name a file or recipe"),
        (["evals", "mixtures", "nothing.json"], "nothing.json: cannot be read"),
        (["evals", "mixtures", "latpop"], "did you mean 'laptop'"),
        (["evals", "mixtures", "--resume", "nowhere"], "nowhere"),
        (["evals", "mixtures", "--resume", "x", "--seeds", "3"], "--seeds cannot be given with --resume"),
        (["evals", "mixtures", "--resume", "x", "--from", "y"], "--from cannot be given with --resume"),
        (["evals", "context", "--resume", "x", "--budget", "3m"], "--budget cannot be given with --resume"),
        (["evals", "context", "--budget", "soon"], "'soon' is no duration"),
        (["evals", "context", "--episodes", "1"], "two episodes"),
        (["evals", "context", "--resume", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_help_of_the_noun_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom wholestack.cli.main import app\napp(['evals', '--help'], exit_on_error=False)\n"
        "print('HEAVY', {'torch', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY set()" in done.stdout
    assert "mixtures" in done.stdout
    assert "context" in done.stdout
