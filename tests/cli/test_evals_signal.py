import json

import pytest

from tests.evals.scored import synthetic_items, synthetic_scores, write_folder
from tests.evals.test_proxies import QUALITY, record_goal
from wholestack.cli.main import main


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("results")
    items = synthetic_items(40)
    made = []
    for model, gain in (("small", 0.0), ("middle", 2.0), ("large", 4.0)):
        for seed in range(3):
            scores = synthetic_scores(items, seed=100 * seed + int(gain), gain=gain)
            name = f"{model}-seed{seed}"
            made.append((model, str(write_folder(tmp_path / name, items, scores, name=name))))
    return made


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["evals", "signal", *arguments])
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_names_and_a_pattern_group_alike_and_the_table_is_80_wide(named, capsys):
    code, out, _ = run(capsys, *(f"{model}={folder}" for model, folder in named))
    assert code == 0
    assert "3 models, 3 repeats of each, 40 items scored in every result" in out
    assert "answer_bpb by source, the clearest first" in out
    assert max(map(len, out.splitlines())) <= 80
    again = run(capsys, *(folder for _, folder in named), "--pattern", "^(.*)-seed")
    assert again == (code, out, "")


def test_what_a_metric_stands_for_is_said_beside_it(named, tmp_path, capsys):
    folders = [f"{model}={folder}" for model, folder in named]
    _, out, _ = run(capsys, *folders, "--goals", str(tmp_path))
    assert "what these numbers stand for: no goal is recorded" in " ".join(out.split())
    record_goal(tmp_path)
    lines = [f"m{place},{2 - quality}" for place, quality in enumerate(QUALITY)]
    (tmp_path / "table.csv").write_text("\n".join(["model,answer_bpb", *lines]))
    with pytest.raises(SystemExit):
        main(["evals", "proxy", str(tmp_path / "table.csv"), "--goals", str(tmp_path)])
    capsys.readouterr()
    _, out, _ = run(capsys, *folders, "--goals", str(tmp_path))
    assert "answer_bpb[" in out
    assert "ranks as 'accepted' does in 1.00 of pairs (0.85 to 1.00, 20 models)" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    _, out, _ = run(capsys, *folders, "--metric", "brier", "--goals", str(tmp_path), "--json")
    assert list(json.loads(out)["stands_for"].values()) == [
        "how it ranks beside the goal 'accepted' was never measured"
    ]


def test_json_is_one_document(named, capsys):
    code, out, _ = run(capsys, *(f"{model}={folder}" for model, folder in named), "--metric", "brier", "--json")
    found = json.loads(out)
    assert (code, found["schema"], len(found["metrics"])) == (0, "signal/1", 1)
    assert found["metrics"][0]["whole"]["ratio"] > 0


def test_two_models_are_too_few_to_tell(named, capsys):
    code, out, _ = run(capsys, *(f"{model}={folder}" for model, folder in named[:6]))
    assert code == 3
    assert "2 models are too few to tell" in out


def test_wrong_groups_are_one_line_and_exit_2(named, capsys):
    folders = [folder for _, folder in named]
    for arguments, message in (
        (folders, "of which model is it a repeat?"),
        ([*folders, "--pattern", "("], "is no regular expression"),
        ([*folders, "--pattern", "none"], "finds no group"),
        ([f"one={folder}" for folder in folders], "give two or more, got 1"),
        ([], "give two or more, got 0"),
        (["a=nowhere"], "nowhere: does not exist"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


def test_a_pattern_that_takes_too_long_is_one_line_and_exit_2(named, capsys, monkeypatch):
    monkeypatch.setattr("wholestack.evals.patterns.MOST_SECONDS", 0.0)
    code, out, err = run(capsys, *(folder for _, folder in named), "--pattern", "^(.*)-seed")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--pattern '^(.*)-seed': the pattern takes too long on this text" in err


def test_repeats_that_are_all_alike_leave_the_noise_unknown(tmp_path, capsys):
    """One pair of equal repeats has no spread, and that says nothing of a third one."""
    items = synthetic_items(40)
    given = []
    for model in range(3):
        folder = write_folder(tmp_path, items, synthetic_scores(items, seed=model, gain=2.0 * model), name=f"m{model}")
        given += [f"m{model}={folder}"] * 2
    code, out, _ = run(capsys, *given)
    assert code == 3
    assert "no noise" not in out
    assert all(" unknown " in line for line in out.splitlines() if line.startswith(("answer_bpb  ", "accuracy_raw  ")))
    assert "which does not say that" in out
    assert "answer_bpb: 0 of 40 items surely carry signal" in out
    assert max(map(len, out.splitlines())) <= 80
