import json
import re
import subprocess
import sys

import pytest

from tests.evals.lm_eval_results import sample, write_results
from tests.evals.scored import synthetic_items, synthetic_scores, write_folder
from tests.evals.test_proxies import record_goal
from tests.evals.written.material import sums, written_folder
from wholestack.cli.main import main


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("results")
    items = synthetic_items(60)
    made = {}
    for name, seed, gain in (("small", 1, 0.0), ("large", 2, 4.0), ("larger", 3, 4.1)):
        scores = synthetic_scores(items, seed=seed, gain=gain)
        made[name] = str(write_folder(tmp_path / name, items, scores, name=name))
    return made


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["evals", "compare", *arguments])
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_a_clear_answer_is_said_in_words_and_exits_0(folders, capsys):
    code, out, _ = run(capsys, folders["small"], folders["large"])
    assert code == 0
    assert re.search(r"B is better than A by [\d.]+ bits per byte\s+\(95% interval [\d.]+\s+to\s+[\d.]+\)", out)
    assert "60 items scored by all, 30 clusters" in out
    assert max(map(len, out.splitlines())) <= 80


def test_what_the_metric_stands_for_is_said_beside_it(folders, tmp_path, capsys):
    both = folders["small"], folders["large"]
    _, out, _ = run(capsys, *both, "--goals", str(tmp_path))
    assert "what this number stands for: no goal is recorded" in " ".join(out.split())
    record_goal(tmp_path)
    _, out, _ = run(capsys, *both, "--goals", str(tmp_path), "--json")
    assert list(json.loads(out)["stands_for"].values()) == [
        "how it ranks beside the goal 'accepted' was never measured"
    ]


def test_what_cannot_be_told_apart_exits_3_and_says_how_many_items_it_would_take(folders, capsys):
    code, out, _ = run(capsys, folders["large"], folders["larger"])
    assert code == 3
    plain = " ".join(out.split())
    assert "A and B cannot be told apart" in plain
    assert re.search(r"These items show a true difference of [\d.]+ or more \(80% of times\)", plain)
    assert re.search(r"about [\d,]+ items like these would show it|would take more than", plain)


def test_the_same_result_twice_is_equal_and_exits_0(folders, capsys):
    code, out, _ = run(capsys, folders["small"], folders["small"])
    assert (code, "A and B are equal" in out) == (0, True)


def test_three_models_are_ranked_with_the_neighbours_that_cannot_be_told_apart(folders, capsys):
    code, out, _ = run(capsys, *folders.values(), "--metric", "accuracy", "--shown", "2")
    assert code == 3
    assert "from best to worst" in out
    assert out.count("right answers (raw)") == 2
    assert "not to be told from" in out
    assert "for 3 pairs (Holm)" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_json_is_one_document_with_the_words(folders, capsys):
    code, out, _ = run(capsys, folders["small"], folders["large"], "--json")
    found = json.loads(out)
    assert code == 0
    assert found["schema"] == "comparison/2"
    assert found["pairs"][0]["verdict"] == "second"
    assert found["verdicts"][0].startswith("B is better than A by ")


def test_different_items_are_one_line_and_exit_2_unless_common(folders, tmp_path, capsys):
    items = synthetic_items(40)
    part = str(write_folder(tmp_path / "part", items, synthetic_scores(items, seed=4)))
    code, out, err = run(capsys, folders["small"], part)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert folders["small"] in err
    assert part in err
    code, out, _ = run(capsys, folders["small"], part, "--common")
    assert code in (0, 3)
    assert "20 items of it are not in all results and are left out" in out


def test_results_of_the_harness_are_compared_with_clusters_from_their_documents(tmp_path, capsys):
    for name, gain in (("m", 0), ("n", 1)):
        lines = [sample(n, [-2 + gain - n % 3 / 3, -2.5, -3 - n % 2]) for n in range(20)]
        write_results(tmp_path / name, {"toy": lines}, model=name)
    code, out, _ = run(capsys, str(tmp_path / "m"), str(tmp_path / "n"), "--cluster", "passage")
    assert code == 0
    assert "20 items scored by all, 10 clusters" in out


@pytest.mark.parametrize("arguments", [[], ["one"], ["nowhere", "nothing"]])
def test_too_few_or_missing_results_exit_2_in_one_line(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("arguments", [["evals", "--help"], ["evals"]])
def test_help_of_the_noun_imports_nothing_heavy(arguments):
    code = f"""
import sys
from wholestack.cli.main import main
try:
    main({arguments})
except SystemExit:
    pass
print([name for name in ("numpy", "scipy", "torch", "wholestack.evals") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
    assert "compare" in done.stdout
    assert "signal" in done.stdout


def test_written_answers_are_compared_in_words_with_both_answers(tmp_path, capsys):
    long = "organisation/model-of-a-family-with-a-rather-long-name-" + "x" * 40
    folders = [
        str(written_folder(tmp_path, name, sums(60), [n % step == 0 for n in range(60)]))
        for name, step in ((f"{long}-step-1", 4), (f"{long}-step-2", 2))
    ]
    code, out, _ = run(capsys, *folders, "--shown", "2")
    plain = " ".join(out.split())
    assert code == 0
    assert "reasoning inside a loop: written, then the answer is extracted" in out
    assert "B is better than A by 0.25 (95% interval" in plain
    assert "right answers: only A 0, only B 15" in plain
    assert "furthest apart in the share of its texts that are right: A, B" in plain
    assert re.search(r"0\.00 1\.00 (\d+) and \1 are \| (\d+) A: -1 \| B: \2", plain)
    assert max(map(len, out.splitlines())) <= 80
    assert [line[3:6] for line in out.splitlines() if re.match("[AB] ", line)][:2] == ["...", "..."]
    assert all(re.search(rf"^{letter} +\.\.\.\S+  ", out, re.MULTILINE) for letter in "AB")


def test_a_long_name_is_never_cut_without_a_sign(tmp_path, capsys):
    items = synthetic_items(40)
    name = "a-name-that-no-table-of-eighty-columns-has-the-room-for-whatever-it-does"
    folders = [
        str(write_folder(tmp_path / str(n), items, synthetic_scores(items, seed=n, gain=n), name=f"{n}{name}"))
        for n in range(3)
    ]
    _, out, _ = run(capsys, *folders)
    told = [line for line in out.splitlines() if "a-name-that" in line]
    assert len(told) == 6
    assert all("..." in line for line in told)


def test_with_and_without_examples_is_compared_by_id_and_says_so(tmp_path, capsys):
    rows = [{"id": f"q{n}", "context": f"{n} and", "choices": [f"{n + 1}", f"{n + 7}"], "gold": 0} for n in range(40)]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "shots.jsonl").write_text(
        "\n".join(json.dumps({**row, "id": f"s{n}", "context": f"{n + 90} and"}) for n, row in enumerate(rows[:5]))
    )
    found = []
    for more in ([], ["--shots", "2", "--shots-from", str(tmp_path / "shots.jsonl")]):
        with pytest.raises(SystemExit):
            main(["evals", "score", str(tmp_path / "q.jsonl"), "--model", "memory", "--json", *more,
                  "--out", str(tmp_path / f"r{len(more)}")])  # fmt: skip
        found.append(json.loads(capsys.readouterr().out)["folder"])
    code, out, err = run(capsys, *found)
    assert (code, out) == (2, "")
    assert "40 ids are the same, but not the text" in err
    assert "--by id" in err
    code, out, _ = run(capsys, *found, "--by", "id")
    assert code in (0, 3)
    assert "matched by id: the prompts of 40 items differ, what is asked does not" in out


def test_written_and_scored_are_one_line_and_exit_2(folders, tmp_path, capsys):
    written = str(written_folder(tmp_path, "a", sums(60), [True] * 60))
    code, out, err = run(capsys, folders["small"], written)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "never compared" in err


def test_the_help_says_every_exit_code(capsys):
    for verb in ("compare", "signal", "curve", "score", "write", "proxy"):
        with pytest.raises(SystemExit):
            main(["evals", verb, "--help"])
        plain = " ".join(capsys.readouterr().out.split())
        assert re.search(r"Exit codes: 0 [^.]*; 3 [^.]*; 2 (usage|bad)", plain), verb
