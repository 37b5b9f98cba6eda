"""``wholestack codetasks check`` and ``guess``, as a user types them."""

import json
from dataclasses import replace

import pytest

from wholestack.cli.main import main
from wholestack.codetasks.checking import check_file
from wholestack.codetasks.item import item_line, read_items, seal
from wholestack.data.folder import JsonLinesSource


def _run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["codetasks", *map(str, arguments)])
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


@pytest.fixture
def items(tmp_path, capsys):
    path = tmp_path / "items.jsonl"
    _run(capsys, "generate", "--count", 60, "--seed", 3, "--kind", "eval", "--difficulty", "4", "--out", path)
    return path


def test_a_file_as_it_was_generated_is_proved(items, capsys):
    code, out, err = _run(capsys, "check", items)
    assert code == 0
    assert "60 questions, 60 proved (made again from their seeds and run twice), 0 refused, 0 unknown" in out
    assert "from before" not in err


def test_a_changed_byte_is_named_by_its_line(items, capsys):
    lines = items.read_bytes().splitlines(keepends=True)
    items.write_bytes(
        b"".join([*lines[:6], lines[6].replace(b'"gold":', b'"gold": '), *lines[7:]]).replace(b"eval-4-", b"eval-4_", 1)
    )
    code, out, _ = _run(capsys, "check", items)
    assert code == 1
    assert "58 proved" in out
    assert "fail     line 1: changed" in out
    assert "fail     line 7: foreign" in out
    assert out.count("what to do, foreign: remove it, or generate the file again from its seed\n") == 1


def test_what_a_program_does_is_not_behind_lines_that_say_less(items, capsys):
    lines = items.read_bytes().splitlines(keepends=True)
    strange = item_line(seal(replace(read_items(items)[0], program="print('strange')", context="print('strange')")))
    old = item_line(seal(replace(read_items(items)[0], version="0", context="old")))
    items.write_bytes(b"".join([lines[1], old, *[b"{}\n"] * 30, strange]))
    code, out, _ = _run(capsys, "check", items)
    assert code == 1
    assert "33 questions, 1 proved (made again from their seeds and run twice), 31 refused, 1 unknown" in out
    first = out.splitlines()[1]
    assert first.startswith("fail     line 33: foreign: ")
    assert "its program prints 'strange'" in first


def test_freshness_is_checked_against_training_text(items, tmp_path, capsys):
    program = json.loads(items.read_text().splitlines()[0])["program"]
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.txt").write_text("Some text of no interest here.")
    code, out, _ = _run(capsys, "check", items, "--against", tmp_path / "train", "--json")
    assert code == 0
    assert json.loads(out)["freshness"] == {"documents": 1, "characters": 30, "exact": 0, "near": 0, "unread": 0}
    (tmp_path / "train" / "b.txt").write_text(program)
    code, out, _ = _run(capsys, "check", items, "--against", tmp_path / "train", "--json")
    document = json.loads(out)
    assert code == 1
    assert (document["proved"], document["freshness"]["exact"]) == (60, 1)
    assert document["findings"][0]["check"] == "codetasks.fresh"


def test_the_programs_that_are_compared_are_those_that_were_checked(items, tmp_path, capsys, monkeypatch):
    programs = [json.loads(line)["program"] for line in items.read_text().splitlines()]
    (tmp_path / "train.txt").write_text("\n".join(programs))

    def checked_and_then_changed(path, *arguments, **options):
        found = check_file(path, *arguments, **options)
        path.write_text("another process was here")
        return found

    monkeypatch.setattr("wholestack.cli.codetasks.check_file", checked_and_then_changed)
    code, out, _ = _run(capsys, "check", items, "--against", tmp_path / "train.txt", "--json")
    document = json.loads(out)
    assert (code, document["proved"], document["freshness"]["exact"]) == (1, 60, 60)


def test_what_cannot_be_read_is_not_called_fresh(items, tmp_path, capsys):
    (tmp_path / "shard.bin").write_bytes(bytes(100))
    code, out, _ = _run(capsys, "check", items, "--against", tmp_path / "shard.bin")
    assert code == 3
    assert "unknown" in out


def test_guessing_says_for_few_questions_that_it_cannot_tell(items, capsys):
    code, out, _ = _run(capsys, "guess", items, "--json")
    rows = json.loads(out)["rows"]
    assert code == 3
    assert [(row["kind"], row["difficulty"], row["features"], row["items"]) for row in rows] == [
        ("eval", 4, "form", 60), ("eval", 4, "context", 60),
    ]  # fmt: skip
    code, out, _ = _run(capsys, "guess", items)
    assert code == 3
    assert "unknown" in out


def test_what_gives_itself_away_is_a_finding(tmp_path, items, capsys):
    given = [seal(replace(item, choices=("7", "12345", "8", "9"), gold=1)) for item in read_items(items)]
    path = tmp_path / "given.jsonl"
    path.write_bytes(b"".join(map(item_line, given)))
    code, out, _ = _run(capsys, "guess", path)
    assert code == 1
    assert "given away" in out


@pytest.mark.parametrize("verb", ["check", "guess"])
def test_a_file_that_is_not_there_is_one_line(verb, tmp_path, capsys):
    code, out, err = _run(capsys, verb, tmp_path / "none.jsonl")
    assert (code, out) == (2, "")
    assert "none.jsonl" in err
    assert err.count("\n") == 1


def test_training_text_is_the_question_with_its_right_answer(items, tmp_path, capsys):
    code, _, _ = _run(capsys, "text", items, "--out", tmp_path / "train.jsonl")
    assert code == 0
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    item = json.loads(items.read_text().splitlines()[0])
    assert len(rows) == 60
    assert rows[0]["text"] == f"{item['context']} {item['choices'][item['gold']]}\n"
    documents = list(JsonLinesSource(tmp_path / "train.jsonl").documents())
    assert [document.text for document in documents] == [row["text"] for row in rows]
    code, _, err = _run(capsys, "text", items, "--out", tmp_path / "train.jsonl")
    assert code == 2
    assert "exists" in err
    code, out, _ = _run(capsys, "check", items, "--against", tmp_path / "train.jsonl", "--json")
    assert json.loads(out)["freshness"]["exact"] == 60
