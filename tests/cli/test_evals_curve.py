"""``wholestack evals curve``, as a user types it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.evals.test_curves import checkpoints
from wholestack.cli.main import main
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import score_into


def _run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["evals", "curve", *map(str, arguments)])
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({"model": row.model, **row.values, **{f"{name}_se": e for name, e in row.errors.items()}})
        for row in checkpoints()
    ]
    path = tmp_path / "curve.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_jump_is_named_and_every_number_has_its_note(table, capsys):
    code, out, err = _run(capsys, table)
    assert (code, err) == (1, "")
    assert "exact_match jumps" in out
    plain = " ".join(out.split())
    assert "a jump like that of exact_match would have been seen in answer_bpb (80% of times) from" in plain
    assert plain.count("no goal is recorded: nobody knows what this number stands for") == 1
    assert max(map(len, out.splitlines())) <= 80


def test_json_is_one_document(table, capsys):
    code, out, err = _run(capsys, table, "--json", "--metric", "answer_bpb")
    assert (code, err) == (0, "") or (code, err) == (1, "")
    (curve,) = json.loads(out)["curves"]
    assert (curve["metric"], curve["jumps"][0]["shape"]) == ("answer_bpb", "smooth")


def test_result_folders_stand_where_the_user_puts_them(tmp_path, monkeypatch, capsys):
    """Six models of more and more text, really scored by the in-memory model."""
    monkeypatch.chdir(tmp_path)
    items = [
        make_item(f"question {n} is", [f"answer {n}", f"other {n}"], n % 2, source="s", cluster=f"c{n}", id=f"i{n}")
        for n in range(12)
    ]
    item_set = seal_items(items, kind="items from a file")
    places, arguments = ["1M", "3e6", "10M", "30M", "100M", "0.3B"], []
    for place, at in enumerate(places):
        result = score_into(MemoryBackend(b"answer one or question two is " * (place + 1)), item_set, tmp_path)
        arguments.append(f"{at}={result.folder.name}")
    _, out, _ = _run(capsys, *arguments, "--x", "tokens", "--metric", "answer_bpb", "--json")
    document = json.loads(out)
    assert document["x"] == "tokens"
    assert [point["x"] for point in document["curves"][0]["points"]] == [1e6, 3e6, 1e7, 3e7, 1e8, 3e8]
    assert document["curves"][0]["points"][-1]["value"] == result.summary.answer_bpb


def test_the_page_is_drawn_where_it_is_asked_for(table, capsys):
    code, out, _ = _run(capsys, table, "--out", "curve.html")
    assert code == 1
    assert "page: curve.html" in out
    assert (table.parent / "curve.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no table"),
        (["curve.jsonl", "--x", "flops"], "no column 'flops'"),
        (["curve.jsonl", "--metric", "vibes"], "no metric 'vibes'"),
        (["1M=nowhere"], "cannot be read"),
        (["much=nowhere"], "no place on the x axis"),
        (["1.2.3=nowhere"], "no place on the x axis"),
        (["curve.jsonl", "1M=nowhere"], "do not go together"),
    ],
)
def test_bad_input_is_one_clear_line(table, capsys, arguments, words):
    code, out, err = _run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_missing_matplotlib_is_one_clear_line_and_only_for_the_page(table):
    code = "import sys; sys.modules['matplotlib'] = None; from wholestack.cli.main import main; main(sys.argv[1:])"
    run = [sys.executable, "-c", code, "evals", "curve", str(table)]
    without = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (without.returncode, without.stderr) == (1, "")
    page = subprocess.run([*run, "--out", "c.html"], capture_output=True, text=True, check=False)
    assert page.returncode == 2
    assert page.stderr == "wholestack: the page needs matplotlib (pip install 'wholestack[report]')\n"


def test_help_of_the_noun_imports_no_numpy():
    code = (
        "import sys\nfrom wholestack.cli.main import main\n"
        "try: main(['evals', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "curve" in done.stdout


def test_the_points_of_the_table_are_those_that_are_judged(table, capsys):
    _, out, _ = _run(capsys, table, "--json")
    judged = {each["metric"]: [point["value"] for point in each["points"]] for each in json.loads(out)["curves"]}
    assert judged["exact_match"] == pytest.approx(np.array([row.values["exact_match"] for row in checkpoints()]))


@pytest.mark.parametrize("more", [["--seed", "-1"], ["--out", "."]])
def test_a_seed_or_page_that_cannot_be_is_one_line(more, tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("tokens,acc,acc_se\n" + "".join(f"{2**n},{n / 10},0.01\n" for n in range(6)))
    with pytest.raises(SystemExit) as ended:
        main(["evals", "curve", str(table), "--goals", str(tmp_path / "goals"), *more])
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
