"""``wholestack evals goal`` and ``evals proxy``, as a user types them."""

import json

import pytest

from tests.evals.written.material import sums, written_folder
from wholestack.cli.evals_goal import stands_for
from wholestack.cli.main import main
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import score_into


def _run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["evals", *map(str, arguments)])
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


@pytest.fixture
def goals(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _run(capsys, "goal", "set", "accepted", "--measure", "share accepted", "--better", "higher", "--matters", 0.02)
    return tmp_path / "goals"


def _table(tmp_path, rows=12):
    path = tmp_path / "proxies.csv"
    lines = [f"m{place},{2 - 0.04 * place},{(place * 7) % 12}" for place in range(rows)]
    path.write_text("model,answer_bpb,vibes\n" + "\n".join(lines) + "\n")
    return path


def _measure(capsys, rows=12, begin=0):
    for place in range(begin, begin + rows):
        _run(capsys, "goal", "measure", "accepted", f"m{place}", 0.2 + 0.05 * place, "--error", 0.01)


def test_without_a_goal_show_says_how_to_record_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, _ = _run(capsys, "goal", "show")
    assert code == 3
    assert "record one with wholestack evals goal set" in out


def test_a_goal_shows_its_measurements_best_first(goals, capsys):
    _run(capsys, "goal", "measure", "accepted", "small", 0.5, "--n", 100, "--date", "2026-11-02")
    _run(capsys, "goal", "measure", "accepted", "large", 0.75, "--error", 0.03)
    code, out, _ = _run(capsys, "goal", "show", "accepted")
    assert code == 0
    assert out.index("large") < out.index("small")
    assert "0.5 ± 0.05" in out
    assert "2026-11-02" in out
    assert "nobody has said" in out


def test_json_of_show_holds_the_measurements(goals, capsys):
    _run(capsys, "goal", "measure", "accepted", "small", 0.5, "--n", 100)
    code, out, err = _run(capsys, "goal", "show", "--json")
    assert (code, err) == (0, "")
    (goal,) = json.loads(out)["goals"]
    assert goal["goal"]["better"] == "higher"
    assert [each["model"] for each in goal["targets"]] == ["small"]


def test_changing_what_is_measured_says_that_measurements_no_longer_count(goals, capsys):
    _measure(capsys, rows=3)
    _, out, _ = _run(
        capsys, "goal", "set", "accepted", "--measure", "share kept", "--better", "higher", "--matters", 0.02
    )
    assert "3 measurements were made under another definition" in out


def test_a_proxy_of_the_goal_is_reported_beside_chance(goals, capsys):
    _measure(capsys)
    code, out, err = _run(capsys, "proxy", _table(goals.parent), "--higher", "vibes")
    assert err == ""
    assert code == 3
    assert "answer_bpb: ranks as 'accepted' does in 1.00 of pairs" in out
    assert "vibes: ranks as 'accepted' does in" in out
    assert "a choice at random" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_faithful_proxy_alone_is_ok_and_json_holds_its_note(goals, capsys):
    _measure(capsys)
    code, out, _ = _run(capsys, "proxy", _table(goals.parent), "--metric", "answer_bpb", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["agreements"][0]["share"]["value"] == 1
    assert document["notes"]["answer_bpb"].startswith("ranks as 'accepted' does")


def test_a_claim_is_sealed_read_by_ready_and_settled_by_later_models(goals, capsys):
    _measure(capsys)
    table = _table(goals.parent, rows=24)
    code, out, _ = _run(capsys, "proxy", table, "--metric", "answer_bpb", "--seal", "answer_bpb", "--at-least", 0.6)
    assert code == 0
    assert "sealed" in out
    with pytest.raises(SystemExit) as end:
        main(["ready", str(goals / "accepted")])
    assert end.value.code == 3
    _measure(capsys, rows=9, begin=12)
    code, out, _ = _run(capsys, "proxy", table, "--metric", "answer_bpb", "--settle")
    assert code == 3
    said = "unknown answer_bpb: not looked at yet; the next look is after 10 new models, 9 are measured"
    assert said in " ".join(out.split())
    _measure(capsys, rows=3, begin=21)
    _, out, _ = _run(capsys, "proxy", table, "--metric", "answer_bpb", "--settle")
    assert "ok answer_bpb" in out
    with pytest.raises(SystemExit) as end:
        main(["ready", str(goals / "accepted")])
    assert end.value.code == 0


def test_the_target_may_be_a_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = _table(tmp_path)
    code, out, _ = _run(capsys, "proxy", path, "--target", "vibes", "--better", "higher")
    assert code == 3
    assert "its errors are not known" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["proxy"], "no table"),
        (["proxy", "none.csv"], "none.csv: cannot be read"),
        (["proxy", "proxies.csv"], "which way is vibes better"),
        (["proxy", "proxies.csv", "--metric", "accuracy"], "no metric 'accuracy'"),
        (["proxy", "proxies.csv", "--metric", "answer_bpb"], "at least 3 models, got 0"),
        (["proxy", "proxies.csv", "--target", "answer_bpb", "--settle"], "only a recorded goal has claims"),
        (["proxy", "proxies.csv", "--goal", "other"], "known are: accepted"),
        (["goal", "measure", "accepted", "m", "inf"], "must be a finite number"),
        (["goal", "show", "other"], "known are: accepted"),
    ],
)
def test_bad_input_is_one_clear_line(goals, capsys, arguments, words):
    _table(goals.parent)
    code, out, err = _run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_result_folder_joins_the_goal_under_the_name_that_the_goal_knows(goals, capsys):
    """Five models of more and more text, really scored by the in-memory model."""
    items = [
        make_item(f"question {n} is", [f"answer {n}", f"other {n}"], n % 2, source="s", cluster=f"c{n}", id=f"i{n}")
        for n in range(12)
    ]
    item_set = seal_items(items, kind="items from a file")
    _measure(capsys, rows=5)
    folders = [
        score_into(MemoryBackend(b"answer one or question two is " * (place + 1)), item_set, goals.parent).folder
        for place in range(5)
    ]
    named = [f"m{place}={folder.name}" for place, folder in enumerate(folders)]
    _, out, _ = _run(capsys, "proxy", *named, "--metric", "answer_bpb", "--json")
    document = json.loads(out)
    assert (document["agreements"][0]["models"], document["left_out"]) == (5, {})
    assert not document["agreements"][0]["enough"]


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({"a": "x"}, "what this number stands for: x"),
        ({"a": "x", "b": "x"}, "what these numbers stand for: x"),
        ({"a": "x", "b": "y", "c": "x"}, "what these numbers stand for:\n  b: y\n  the others: x"),
        ({"a": "x", "b": "y"}, "what these numbers stand for:\n  a: x\n  b: y"),
    ],
)
def test_what_numbers_stand_for_is_said_of_each_and_once_where_it_is_the_same(notes, said):
    assert stands_for(notes) == said


def test_a_long_note_keeps_to_the_width_of_a_terminal():
    note = "ranks as 'accepted' does in 0.81 of pairs (0.62 to 0.93, 20 models): too few models to rely on; " * 3
    assert max(map(len, stands_for({"a": note, "b": "x"}).splitlines())) <= 80


def test_a_written_score_is_measured_as_the_goal_from_its_folder(goals, tmp_path, capsys):
    folder = written_folder(tmp_path, "tiny", sums(40), [n % 4 == 0 for n in range(40)])
    code, out, _ = _run(capsys, "goal", "measure", "accepted", "tiny", "--from", folder, "--json")
    found = json.loads(out)["measurement"]
    assert (code, found["value"], found["note"]) == (0, 0.25, f"share of right answers of {folder}")
    assert found["error"] == pytest.approx((0.25 * 0.75 / 39) ** 0.5)
    for more in ([0.3, "--from", folder], ["--from", folder, "--n", 3], []):
        code, out, err = _run(capsys, "goal", "measure", "accepted", "tiny", *more)
        assert (code, out, err.count("\n")) == (2, "", 1)


def test_folders_of_different_items_are_no_ranking(goals, tmp_path, capsys):
    folders = [written_folder(tmp_path, f"m{n}", sums(10 + n), [True] * 5 + [False] * (5 + n)) for n in range(2)]
    code, out, err = _run(capsys, "proxy", *folders)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "are of different items" in err
    code, out, err = _run(capsys, "curve", *(f"{n + 1}={each}" for n, each in enumerate(folders)), "--by", "id")
    assert (code, out) == (2, "")
    assert "are of different items" in err
