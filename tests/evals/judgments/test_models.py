"""Models of reviewers: conformance, independent oracles, and what they reach on crowds whose truth is known."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma

from tests.evals.judgments.crowds import KINDS, make_crowd
from wholestack.errors import InputError
from wholestack.evals.judgments.aggregate import aggregate
from wholestack.evals.judgments.models import glad as glad_module
from wholestack.evals.judgments.models.catalog import MODELS, find_model
from wholestack.evals.judgments.models.dawid_skene import PRIOR_VOTES, DawidSkene
from wholestack.evals.judgments.models.glad import Glad
from wholestack.evals.judgments.models.majority import Majority
from wholestack.evals.judgments.votes import make_votes, read_table, read_votes
from wholestack.testing.reviewer_models import ReviewerModelSuite

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "evals"


class TestMajority(ReviewerModelSuite):
    model = Majority()


class TestDawidSkene(ReviewerModelSuite):
    model = DawidSkene()


class TestGlad(ReviewerModelSuite):
    model = Glad()


def test_a_name_that_is_none_names_those_that_are():
    assert [find_model(name).name for name in MODELS] == list(MODELS)
    with pytest.raises(InputError, match="no model 'mace'"):
        find_model("mace")


def test_majority_is_the_share_of_the_votes():
    votes = make_votes([("a", "x", "1"), ("a", "y", "1"), ("a", "z", "0")], items=["a", "b"])
    assert np.allclose(Majority().infer(votes, np.ones(3)).posterior, [[1 / 3, 2 / 3], [0.5, 0.5]])
    assert np.allclose(Majority().infer(votes, np.array([0.5, 0.5, 1.0])).posterior[0], [0.5, 0.5])


def slow_dawid_skene(votes, rounds):
    """One vote at a time, in plain Python, straight from the formulas."""
    labels, people = range(len(votes.labels)), range(len(votes.reviewers))
    rows = list(zip(votes.item.tolist(), votes.reviewer.tolist(), votes.label.tolist(), strict=True))
    posterior = [[1e-6 for _ in labels] for _ in votes.items]
    for item, _, said in rows:
        posterior[item][said] += 1
    posterior = [[each / sum(row) for each in row] for row in posterior]
    for _ in range(rounds):
        cells = [[[0.0 for _ in labels] for _ in labels] for _ in people]
        for item, who, said in rows:
            for true in labels:
                cells[who][true][said] += posterior[item][true]
        pooled = [[1 + sum(cells[who][true][said] for who in people) for said in labels] for true in labels]
        right = sum(pooled[true][true] for true in labels) / sum(map(sum, pooled))
        for who in people:
            for true in labels:
                for said in labels:
                    share = right if said == true else (1 - right) / (len(labels) - 1)
                    cells[who][true][said] += PRIOR_VOTES * len(labels) ** 2 * share
        classes = [1 + sum(row[true] for row in posterior) for true in labels]
        scores = [[digamma(classes[true]) - digamma(sum(classes)) for true in labels] for _ in posterior]
        for item, who, said in rows:
            for true in labels:
                scores[item][true] += digamma(cells[who][true][said]) - digamma(sum(cells[who][true]))
        posterior = [[math.exp(each - max(row)) for each in row] for row in scores]
        posterior = [[each / sum(row) for each in row] for row in posterior]
    return np.array(posterior)


def test_dawid_skene_is_that_of_the_formulas():
    votes = make_crowd("adversaries", seed=5, items=25, reviewers=6, labels=3).votes(4)
    found = DawidSkene().infer(votes, np.ones(len(votes)))
    assert found.has_converged
    assert np.allclose(found.posterior, slow_dawid_skene(votes, found.rounds), atol=1e-9)


def test_glad_stands_where_its_objective_is_highest():
    votes = make_crowd("spammers", seed=6, items=40, reviewers=8, labels=3).votes(5)
    right = np.random.default_rng(1).uniform(0.05, 0.95, len(votes))
    weight = np.random.default_rng(2).uniform(0.3, 1.0, len(votes))
    ability, ease = np.ones(len(votes.reviewers)), np.ones(len(votes.items))
    for _ in range(400):
        ability, ease = glad_module._moved(votes, weight, right, ability, ease)

    def objective(ability, ease):
        total = -0.5 * ((ability - 1) ** 2).sum() - 0.5 * ((ease - 1) ** 2).sum()
        for place, (i, r) in enumerate(zip(votes.item, votes.reviewer, strict=True)):
            sure = 1 / (1 + math.exp(-ability[r] * math.exp(ease[i])))
            total += weight[place] * (right[place] * math.log(sure) + (1 - right[place]) * math.log(1 - sure))
        return total

    at = objective(ability, ease)
    rng = np.random.default_rng(3)
    for _ in range(20):
        away = rng.normal(size=len(ability)) * 1e-3, rng.normal(size=len(ease)) * 1e-3
        assert objective(ability + away[0], ease + away[1]) < at
    assert len(set(np.round(ability, 6))) > 1


def test_able_reviewers_outvote_many_who_guess():
    crowd = make_crowd("spammers", seed=8, items=600, reviewers=20, labels=3, share=0.6)
    votes = crowd.votes(7)
    right = {name: aggregate(votes, model, truth=crowd.known()).truth.accuracy for name, model in MODELS.items()}
    assert right["dawid-skene"] > right["majority"] + 0.05
    assert right["glad"] > right["majority"] + 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [2, 4])
def test_probabilities_are_those_of_being_right(kind, labels):
    crowd = make_crowd(kind, seed=1, labels=labels)
    judged = aggregate(crowd.votes(5), find_model("dawid-skene"), truth=crowd.known())
    assert judged.has_converged
    assert judged.truth.calibration_error <= 0.05
    plain = aggregate(crowd.votes(5), find_model("majority"), truth=crowd.known())
    assert judged.truth.accuracy > plain.truth.accuracy - 0.01


@pytest.mark.parametrize(("name", "least"), [("duck", 0.898), ("face", 0.640)])
def test_crowds_of_real_people_are_understood_as_well_as_elsewhere(name, least):
    if not SHARED.is_dir():
        pytest.skip("the shared data are not beside the project")
    votes = read_votes(SHARED / f"crowd_{name}_labels.csv")
    truth = read_table(SHARED / f"crowd_{name}_truth.csv", "item", "truth")
    judged = aggregate(votes, find_model("dawid-skene"), truth=truth)
    assert judged.truth.accuracy >= least
    assert not [each for each in judged.reviewers.values() if each.standing == "copies"]
