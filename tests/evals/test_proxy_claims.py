"""The claim that a metric ranks as a goal does, and the later measurements that settle it."""

import numpy as np
import pytest

from wholestack.claim import status_of
from wholestack.errors import InputError
from wholestack.evals.goals import measure_goal
from wholestack.evals.proxies import goal_ranked
from wholestack.evals.proxy_claims import seal_proxy, settle_proxies
from wholestack.runs import RunReader

from .test_proxies import QUALITY, WAYS, _measure, _rows, record_goal


@pytest.fixture
def goal(tmp_path):
    return record_goal(tmp_path)


def _sealed(goal):
    report = _measure(goal_ranked(goal, _rows(), WAYS))
    return seal_proxy(goal, report.agreements[0], at_least=0.8, at=10.0, valid_until=1e6)


def _later(goal, values, proxies):
    """Twenty models that are measured after the sealing."""
    for place, value in enumerate(values, start=20):
        measure_goal(goal, f"m{place}", value, error=0.001, at=20.0)
    new = _rows(proxies, begin=20)
    return goal_ranked(goal, [*_rows(), *new], WAYS)


def _settle(goal, ranked):
    return settle_proxies(goal, ranked, at=30.0, rng=np.random.default_rng(0), draws=300)


def test_a_claim_stays_open_while_no_model_was_measured_since(goal):
    claim = _sealed(goal)
    (found,) = _settle(goal, goal_ranked(goal, _rows(), WAYS))
    assert (found.status, found.settles) == ("unknown", claim.id)


def test_new_models_that_keep_the_order_hold_the_claim_and_settle_it_once(goal):
    claim = _sealed(goal)
    new = QUALITY + 0.013
    ranked = _later(goal, new, new)
    (found,) = _settle(goal, ranked)
    assert found.status == "ok"
    assert status_of(claim, RunReader(goal).findings(), now=31.0) == "held"
    assert _settle(goal, ranked) == []


def test_new_models_that_were_tuned_to_the_proxy_break_the_claim(goal):
    """Goodhart: all new models have the best loss and the goal got worse."""
    claim = _sealed(goal)
    ranked = _later(goal, QUALITY[::-1] - 0.3, QUALITY + 0.3)
    (found,) = _settle(goal, ranked)
    assert found.status == "fail"
    assert status_of(claim, RunReader(goal).findings(), now=31.0) == "broken"


def test_a_few_new_models_cannot_settle_a_claim(goal):
    _sealed(goal)
    new = QUALITY[:3] + 0.013
    (found,) = _settle(goal, _later(goal, new, new))
    assert found.status == "unknown"


def test_a_claim_of_no_more_than_chance_is_refused(goal):
    report = _measure(goal_ranked(goal, _rows(), WAYS))
    with pytest.raises(InputError, match=r"more than 0\.5"):
        seal_proxy(goal, report.agreements[0], at_least=0.5, at=1.0, valid_until=None)
