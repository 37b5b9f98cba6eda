"""Reviewers: who guesses, who says the contrary, who copies; and whom to ask what."""

import numpy as np
import pytest

from tests.evals.judgments.crowds import make_crowd
from wholestack.errors import InputError
from wholestack.evals.judgments import aggregate as module
from wholestack.evals.judgments.aggregate import ONE_LABEL, aggregate
from wholestack.evals.judgments.asking import gains, next_item
from wholestack.evals.judgments.copying import shared_weights
from wholestack.evals.judgments.models.catalog import find_model
from wholestack.evals.judgments.votes import make_votes

MODEL = find_model("dawid-skene")


def standings(crowd, a_item=10):
    judged = aggregate(crowd.votes(a_item), MODEL)
    found = {"bad": [], "honest": []}
    for name, each in judged.reviewers.items():
        found["bad" if crowd.bad[int(name[1:])] else "honest"].append(each.standing)
    return judged, found


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("spammers", "spammer"), ("constants", "spammer"), ("adversaries", "adversary"), ("copied noise", "copies")],
)
def test_those_who_are_not_honest_are_named_for_what_they_do(kind, expected):
    judged, found = standings(make_crowd(kind, seed=3))
    assert found["bad"].count(expected) >= 12
    assert set(found["bad"]) <= {expected, "unknown", "sound" if kind == "adversaries" else expected}
    assert set(found["honest"]) == {"sound"}
    assert judged.exit_code == 1
    named = [each for each in judged.findings if each.status == "warn"]
    assert len(named) == len([each for each in found["bad"] if each not in ("sound", "unknown")])


def test_nobody_is_named_where_all_are_honest():
    judged, found = standings(make_crowd("honest", seed=4))
    assert set(found["honest"]) == {"sound"}
    assert judged.exit_code == 0


def test_items_that_are_hard_for_all_make_nobody_a_copier():
    rng = np.random.default_rng(0)
    rows = []
    for item in range(600):
        wrong = rng.random() < 0.25  # then most take it for the same other thing
        for reviewer in rng.permutation(30)[:8]:
            honest = rng.random() < 0.85
            rows.append((str(item), f"r{reviewer}", str((item + (wrong == honest)) % 3)))
    judged = aggregate(make_votes(rows), MODEL)
    assert not [each for each in judged.reviewers.values() if each.standing == "copies"]


def test_copiers_share_a_vote_and_name_each_other():
    crowd = make_crowd("copied noise", seed=3)
    judged = aggregate(crowd.votes(10), MODEL)
    for name, each in judged.reviewers.items():
        place = int(name[1:])
        if each.standing == "copies":
            assert {int(other[1:]) for other in each.copies_with} <= set(
                np.flatnonzero(crowd.group == crowd.group[place]).tolist()
            )
    votes = make_votes([("a", "x", "0"), ("a", "y", "0"), ("a", "z", "1"), ("b", "x", "0")])
    weight = shared_weights(votes, np.array([0, 0, 2]))
    assert weight.tolist() == [0.5, 0.5, 1.0, 1.0]


def test_with_few_votes_nothing_is_said_of_a_reviewer():
    rows = [(str(item), f"r{reviewer}", str(item % 2)) for item in range(3) for reviewer in range(3)]
    judged = aggregate(make_votes(rows), MODEL)
    assert {each.standing for each in judged.reviewers.values()} == {"unknown"}
    assert judged.exit_code == 0


def test_a_tie_is_a_tie_and_its_label_is_drawn_by_the_seed():
    rows = [("a", "x", "0"), ("a", "y", "1"), ("b", "x", "1"), ("b", "y", "1")]
    majority = find_model("majority")
    drawn = {seed: aggregate(make_votes(rows), majority, seed=seed).items["a"] for seed in range(20)}
    assert {each.label for each in drawn.values()} == {"0", "1"}
    assert all(each.tie and each.tied == ("0", "1") for each in drawn.values())
    assert drawn[3] == aggregate(make_votes(rows), majority, seed=3).items["a"]
    assert not aggregate(make_votes(rows), majority).items["b"].tie
    truth = aggregate(make_votes(rows), majority, truth={"a": "1", "b": "1"}).truth
    assert truth.accuracy == 0.75


def test_items_that_nobody_judged_have_no_label_and_are_named():
    judged = aggregate(make_votes([("a", "x", "0"), ("a", "y", "1")], items=["a", "b"]), MODEL)
    assert judged.items["b"].label is None
    assert judged.items["b"].posterior == {}
    assert judged.unjudged == ("b",)
    assert judged.exit_code == 3
    assert [each.evidence[0] for each in judged.findings if each.subject == "items"] == ["1 of 2 items have no vote"]


def test_one_label_alone_tells_nothing():
    judged = aggregate(make_votes([("a", "x", "0"), ("b", "y", "0")]), MODEL)
    assert ONE_LABEL in [each.evidence[0] for each in judged.findings]
    assert judged.exit_code == 3


def test_truth_of_other_items_and_tables_that_do_not_fit_are_one_line(monkeypatch):
    votes = make_votes([("a", "x", "0"), ("a", "y", "1")])
    with pytest.raises(InputError, match="no item of the votes has a known label"):
        aggregate(votes, MODEL, truth={"z": "0"})
    monkeypatch.setattr(module, "MOST_CELLS", 7)
    with pytest.raises(InputError, match="2 reviewers with 2 labels: their tables do not fit"):
        aggregate(votes, MODEL)


def test_the_gain_of_a_question_is_the_mutual_information_of_truth_and_answer():
    posterior = np.array([[0.5, 0.5], [0.9, 0.1], [1.0 - 1e-12, 1e-12]])
    table = np.array([[0.8, 0.2], [0.3, 0.7]])
    for row, found in zip(posterior, gains(posterior, table), strict=True):
        joint = row[:, None] * table
        said = joint.sum(axis=0)
        expected = (joint * np.log(joint / (row[:, None] * said))).sum()
        assert abs(found - expected) < 1e-9
    assert np.allclose(gains(posterior, np.array([[0.6, 0.4], [0.6, 0.4]])), 0)
    assert next_item(posterior, table, np.array([True, True, True])) == 0
    assert next_item(posterior, table, np.array([False, True, True])) == 1
    assert next_item(posterior, table, np.zeros(3, dtype=bool)) is None
