"""``wholestack rehearse``: what it keeps of what was asked, what it prints, what it refuses."""

import json
from pathlib import Path

import pytest
import torch

from tests.experiments.tiny import tiny_recipe
from wholestack.cli.main import main
from wholestack.evals.items import metric_name, read_items
from wholestack.experiments import rehearsal
from wholestack.experiments.records import Plan
from wholestack.record import from_builtins
from wholestack.runs import RunReader

ROOT = Path(__file__).parents[2]


def write_recipe(folder: Path, **changes: object) -> Path:
    """A recipe file of a user: the tiny recipe of the tests, over text below the same folder."""
    given = "".join(f", {name}={value!r}" for name, value in changes.items())
    path = folder / "mine.py"
    path.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\nfrom tests.experiments.tiny import tiny_recipe\n"
        f"def recipe():\n    return tiny_recipe(Path({str(folder / 'text')!r}){given})\n"
    )
    return path


def in_process(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_the_run_keeps_the_file_that_the_recipe_came_from_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rehearsal, "rehearse", interrupted)
    assert in_process("rehearse", "./mine.py", "--seed", "4") == 130
    config = RunReader(tmp_path / "rehearsal-tiny-4").manifest.config
    assert config["recipe_given"] == "./mine.py"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that holds a recipe and its text, and nothing else."""
    tiny_recipe(tmp_path / "text")
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dry_run_prints_costs_time_and_disk_and_writes_nothing(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = sorted(place.rglob("*"))
    assert in_process("rehearse", "mine.py", "--dry-run", "--budget", "3m") == 0
    printed = capfd.readouterr().out
    assert "recipe tiny: 9 hyperparameters, 2 trials at a time" in printed
    assert "the large run 3.20e+10" in printed
    assert "disk: about" in printed
    assert [line.split()[0] for line in printed.partition("time:\n")[2].splitlines()][-2:] == ["large", "all"]
    assert sorted(place.rglob("*")) == before


def test_a_dry_run_as_json_is_the_plan_alone_and_writes_nothing(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = sorted(place.rglob("*"))
    assert in_process("rehearse", "mine.py", "--dry-run", "--json", "--budget", "3m", "--workers", "1") == 0
    plan = from_builtins(Plan, json.loads(capfd.readouterr().out))
    assert (plan.budget_s, plan.workers) == (180.0, 1)
    assert plan.rate_flops_s > 0
    assert plan.target_cost_flops == 16 * plan.max_trial_cost_flops == 16 * 2e9
    assert sorted(place.rglob("*")) == before


LANDED = ("predicted", "interval", "actual", "inside", "relative_error")


@pytest.mark.heavy
def test_the_json_of_a_rehearsal_is_one_document_with_every_promised_key(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = in_process("rehearse", "mine.py", "--out", "run", "--budget", "5m", "--seed", "3", "--json")
    captured = capfd.readouterr()
    document = json.loads(captured.out)
    assert set(document) >= {
        "metric", *LANDED, "rung", "target_cost_flops", "largest_trial_cost_flops", "trials", "failures", "claims",
        "report",
    }  # fmt: skip
    assert set(document["rung"]) >= set(LANDED)
    assert document["metric"].startswith("answer_bpb[")
    assert document["target_cost_flops"] >= 16 * document["largest_trial_cost_flops"]
    assert document["trials"] + sum(document["failures"].values()) == 14
    assert {"machine.exact", "data.sources", "rung.metric"} <= {claim["name"] for claim in document["claims"]}
    assert Path(document["report"]).read_text().startswith("<!DOCTYPE html>")
    if document["predicted"] is None:
        assert [document[key] for key in ("interval", "inside", "relative_error")] == [None] * 3
    else:
        low, high = document["interval"]
        assert document["inside"] == (low <= document["actual"] <= high)
        assert document["relative_error"] == pytest.approx(document["actual"] / document["predicted"] - 1)
    assert code == document["exit_code"]
    assert "[8/8] landing" in captured.err
    config = RunReader(place / "run").manifest.config
    assert (config["recipe_given"], config["budget_s"]) == ("mine.py", 300.0)


NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")


@NO_CUDA
def test_a_recipe_for_a_device_that_is_not_there_ends_cleanly_and_says_why(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_recipe(place, device="cuda", precision="bfloat16")
    assert in_process("rehearse", "mine.py", "--out", "run", "--json") == 1
    captured = capfd.readouterr()
    document = json.loads(captured.out)
    assert document["reason"] == "the large run: not run: machine.device failed (no CUDA device)"
    assert (document["predicted"], document["trials"], document["exit_code"]) == (None, 0, 1)
    assert "Traceback" not in captured.err
    page = (place / "run" / "report.html").read_text()
    assert "no CUDA device" in page
    assert "take a recipe for the CPU" in page


@NO_CUDA
def test_a_dry_run_for_a_device_that_is_not_there_is_one_clear_line(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_recipe(place, device="cuda", precision="bfloat16")
    assert in_process("rehearse", "mine.py", "--dry-run") == 2
    said = capfd.readouterr().err
    assert said.startswith("wholestack: recipe 'tiny': no CUDA device to measure (take a recipe for the CPU")
    assert said.count("\n") == 1


@pytest.mark.heavy
def test_code_questions_take_the_place_of_the_recipes_items(
    place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_recipe(tmp_path, context=384)
    items = tmp_path / "questions.jsonl"
    in_process("codetasks", "generate", "--count", "30", "--difficulty", "1-3", "--seed", "5", "--out", str(items))
    capfd.readouterr()
    options = ("--items", "questions.jsonl", "--metric", "choice_nll_raw")
    in_process("rehearse", "mine.py", "--out", "run", "--budget", "5m", "--seed", "3", "--json", *options)
    document = json.loads(capfd.readouterr().out)
    assert document["metric"] == metric_name("choice_nll_raw", read_items(items))
    assert document["actual"] > 0
    assert "--metric choice_nll_raw" in Path(document["report"]).read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "none.jsonl"), ("{}\n", "none.jsonl"), ('{"context": "a", "choices": ["b"]}\n', "none.jsonl")],
)
def test_items_that_cannot_measure_are_refused_before_anything_is_made(
    place: Path, capfd: pytest.CaptureFixture[str], text: str | None, reason: str
) -> None:
    if text is not None:
        (place / "none.jsonl").write_text(text)
    assert in_process("rehearse", "mine.py", "--out", "run", "--items", "none.jsonl") == 2
    assert reason in capfd.readouterr().err
    assert not (place / "run").exists()
