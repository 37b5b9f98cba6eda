import json
import re

import pytest

from tests.evals.lm_eval_results import sample, write_results
from tests.evals.scored import synthetic_items, synthetic_scores, write_folder
from wholestack.cli.main import main


@pytest.fixture
def folders(tmp_path):
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
    assert "from best to worst:" in out
    assert "not to be told from" in out
    assert "for 3 pairs (Holm)" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_json_is_one_document_with_the_words(folders, capsys):
    code, out, _ = run(capsys, folders["small"], folders["large"], "--json")
    found = json.loads(out)
    assert code == 0
    assert found["schema"] == "comparison/1"
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
