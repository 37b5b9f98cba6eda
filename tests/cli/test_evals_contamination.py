"""``wholestack evals contamination``: what it prints, in JSON and for people, and its exit codes."""

import json

import pytest

from tests.evals.contamination.test_contamination import ITEMS, PAGE
from wholestack.cli.main import main


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["evals", "contamination", *map(str, arguments)])
    return ended.value.code


@pytest.fixture
def places(tmp_path):
    items, train = tmp_path / "items.jsonl", tmp_path / "train"
    train.mkdir()
    rows = [{"id": each.id, "question": each.text, "choices": each.choices, "answer": 1} for each in ITEMS]
    rows.append({"id": "tiny", "question": "Is it?", "choices": ["yes", "no"], "answer": 1})
    rows.append({"id": "odd", "question": "Is it?", "choices": ["yes", "no"]})
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (train / "a.txt").write_text(f"{PAGE}{ITEMS[2].text}\n{PAGE}{ITEMS[5].text.upper()}\n{PAGE}\x1b[31m")
    return items, train


def test_json_has_flags_with_item_document_rule_and_match(places, capsys):
    items, train = places
    assert run("--items", items, "--train", train, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["checked"] == 40
    assert [(each["item"], each["rule"], each["document"]) for each in document["flags"]] == [
        ("q2", "exact", str(train / "a.txt")),
        ("q5", "normalised", str(train / "a.txt")),
    ]
    assert all(each["match"] for each in document["flags"])
    assert document["too_short"] == ["tiny"]
    assert len(document["refused"]) == 1


def test_people_see_the_matched_text_and_what_is_not_known(places, capsys):
    items, train = places
    assert run("--items", items, "--train", train, "--processes", "1") == 1
    said = capsys.readouterr().out
    assert "40 of 41 questions looked for in 1 documents" in said
    assert "1 rows are no questions" in said
    assert "found, by the strictest rule that holds: 1 exact, 1 normalised, 0 near" in said
    assert ITEMS[2].text.rstrip("?") in said
    assert "unknown: 1 of 41 items" in said
    assert "\x1b" not in said


def test_bad_places_are_one_line(places, tmp_path, capsys):
    items, train = places
    assert run("--items", items, "--train", tmp_path / "nowhere") == 2
    assert "is not there" in capsys.readouterr().err
    assert run("--items", train / "a.txt", "--train", train) == 2
    assert run("--items", items, "--train", train, "--layout", "nolayout") == 2
