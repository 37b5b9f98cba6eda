"""``wholestack evals judgments aggregate``: what it prints, in JSON and for people, and its exit codes."""

import json

import pytest

from tests.evals.judgments.crowds import make_crowd
from wholestack.cli.main import main


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["evals", "judgments", "aggregate", *map(str, arguments)])
    return ended.value.code


@pytest.fixture(scope="module")
def crowd_file(tmp_path_factory):
    crowd = make_crowd("spammers", seed=3)
    votes = crowd.votes(10)
    path = tmp_path_factory.mktemp("crowd") / "votes.csv"
    rows = zip(votes.item, votes.reviewer, votes.label, strict=True)
    lines = (f"{votes.items[i]},{votes.reviewers[r]},{votes.labels[k]}\n" for i, r, k in rows)
    path.write_text("item,worker,label\n" + "".join(lines))
    truth = path.with_name("truth.csv")
    truth.write_text("item,truth\n" + "".join(f"{item},{label}\n" for item, label in crowd.known().items()))
    return path, truth


def test_json_has_items_and_reviewers_by_name(crowd_file, capsys):
    votes, truth = crowd_file
    assert run(votes, "--truth", truth, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    item = document["items"]["0"]
    assert set(item) >= {"label", "posterior", "tie"}
    assert item["tie"] is False
    assert abs(sum(item["posterior"].values()) - 1) < 1e-9
    assert len(document["reviewers"]) == 50
    doubtful = [name for name, each in document["reviewers"].items() if each["standing"] != "sound"]
    assert len(doubtful) >= 12
    assert sorted(doubtful) == sorted(each["subject"] for each in document["findings"])
    assert document["truth"]["accuracy"] > 0.9
    assert (document["model"], document["seed"]) == ("dawid-skene", 0)


def test_people_read_who_is_named_why_and_what_to_do(crowd_file, capsys):
    votes, truth = crowd_file
    assert run(votes, "--truth", truth, "--model", "glad") == 1
    said = capsys.readouterr().out
    assert "10,000 votes of 50 reviewers on 1,000 items, by glad" in said
    assert "against 1,000 known labels: 9" in said
    assert "reviewers: 1" in said
    assert " spammer, " in said
    assert "leave them out, or talk to them" in said


def test_items_of_a_file_are_all_accounted_for(tmp_path, capsys):
    items, votes = tmp_path / "items.jsonl", tmp_path / "votes.csv"
    items.write_text(
        "".join(
            json.dumps({"id": name, "context": f"Q{name}", "choices": ["yes", "no"], "gold": 0}) + "\n"
            for name in ("a", "b")
        )
    )
    votes.write_text("item,reviewer,label\na,x,0\na,y,0\na,z,1\nq,x,1\n")
    assert run(votes, "--items", items) == 3
    said = capsys.readouterr().out
    assert "1 lines: the item is not in the item file" in said
    assert "unknown: 1 of 2 items have no vote: have them judged" in said


def test_a_bad_file_or_model_is_one_line(tmp_path, capsys):
    votes = tmp_path / "votes.csv"
    votes.write_text("item,label\na,1\n")
    assert run(votes) == 2
    assert "no column reviewer" in capsys.readouterr().err
    votes.write_text("item,reviewer,label\na,x,1\n")
    assert run(votes, "--model", "mace") == 2
    assert "dawid-skene" in capsys.readouterr().err
