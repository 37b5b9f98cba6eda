"""The claim that a metric ranks as a goal does, and the later measurements that settle it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from wholestack.claim import seal, status_of
from wholestack.errors import InputError
from wholestack.evals.goals import Target, measure_goal
from wholestack.evals.measured import Numbers
from wholestack.evals.proxies import beside_target, goal_ranked
from wholestack.evals.proxy_claims import (
    ERROR,
    LOOKS,
    Look,
    default_share,
    due_looks,
    judged,
    level_of,
    models_at,
    seal_proxy,
    settle_proxies,
)
from wholestack.runs import RunReader

from .test_proxies import QUALITY, WAYS, _measure, _rows, record_goal


@pytest.fixture
def goal(tmp_path):
    return record_goal(tmp_path)


def _sealed(goal):
    report = _measure(goal_ranked(goal, _rows(), WAYS))
    return seal_proxy(goal, report.agreements[0], at_least=0.8, at=10.0, valid_until=1e6)


def _later(goal, values, proxies):
    """Models that are measured after the sealing."""
    for place, value in enumerate(values, start=20):
        measure_goal(goal, f"m{place}", value, error=0.001, at=20.0)
    new = _rows(proxies, begin=20)
    return goal_ranked(goal, [*_rows(), *new], WAYS)


def _settle(goal, ranked):
    return settle_proxies(goal, ranked, at=30.0, draws=300)


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
    assert found.cause == "the next look is after 19 new models, 3 are measured"


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_claim_of_no_more_than_chance_or_of_what_nobody_can_show_is_refused(goal, share):
    report = _measure(goal_ranked(goal, _rows(), WAYS))
    with pytest.raises(InputError, match=r"more than 0\.5.*less than 1"):
        seal_proxy(goal, report.agreements[0], at_least=share, at=1.0, valid_until=None)


def test_the_first_look_is_the_first_that_a_perfect_ranking_could_hold(goal):
    """One model fewer could not, whatever the models are like."""
    claim = _sealed(goal)
    first = models_at(1, 0.8)
    assert f"looked at after {first}, {2 * first}, {4 * first}" in claim.statement
    new = np.linspace(0.21, 0.79, first) + 0.003
    (found,) = _settle(goal, _later(goal, new[: first - 1], new[: first - 1]))
    assert found.status == "unknown"
    measure_goal(goal, "last", float(new[-1]), error=0.001, at=21.0)
    last = replace(_rows(new[-1:])[0], model="last")
    rows = [*_rows(), *_rows(new[: first - 1], begin=20), last]
    (found,) = _settle(goal, goal_ranked(goal, rows, WAYS))
    assert found.status == "ok"


def test_the_errors_of_all_looks_together_are_no_more_than_one_look_may_make():
    assert sum(1 - level_of(look) for look in range(1, 60)) <= ERROR
    assert [models_at(look, 0.8) for look in (1, 2, 3)] == [19, 38, 76]


def test_a_look_that_was_taken_is_not_taken_again_with_other_numbers(goal):
    """Nineteen models decide nothing; then all of them get numbers that would hold the claim."""
    _sealed(goal)
    new = QUALITY[:19] + 0.013
    halfway = np.concatenate([new[:7][::-1], new[7:14][::-1], new[14:][::-1]])
    (first,) = _settle(goal, _later(goal, new, halfway))
    (taken,) = RunReader(goal).journal(LOOKS, Look)
    assert first.status == "unknown"
    (again,) = _settle(goal, goal_ranked(goal, [*_rows(), *_rows(new, begin=20)], WAYS))
    assert again.status == "unknown"
    assert again.evidence == first.evidence
    assert RunReader(goal).journal(LOOKS, Look) == [taken]


def test_a_new_model_without_the_number_is_waited_for_and_not_left_out(goal):
    """Twenty new models rank alike and one is kept back; without it the look would hold the claim."""
    _sealed(goal)
    new = QUALITY + 0.013
    ranked = _later(goal, new, new)
    rows = [row for row in [*_rows(), *_rows(new, begin=20)] if row.model != "m22"]
    (found,) = _settle(goal, goal_ranked(goal, rows, WAYS))
    assert (found.status, RunReader(goal).journal(LOOKS, Look)) == ("unknown", [])
    assert "m22" in found.cause
    (found,) = _settle(goal, ranked)
    assert found.status == "ok"


def test_models_first_measured_after_a_claim_ends_do_not_count(goal):
    report = _measure(goal_ranked(goal, _rows(), WAYS))
    claim = seal_proxy(goal, report.agreements[0], at_least=0.8, at=10.0, valid_until=15.0)
    assert _settle(goal, _later(goal, QUALITY + 0.013, QUALITY + 0.013)) == []
    assert status_of(claim, RunReader(goal).findings(), now=31.0) == "expired"


def test_by_default_the_lower_end_of_the_interval_is_claimed_however_near_to_chance(goal):
    (agreement, _) = _measure(goal_ranked(goal, _rows(), WAYS)).agreements
    near = replace(
        agreement, share=replace(agreement.share, interval=replace(agreement.share.interval, low=0.5 + 1e-4))
    )
    claim = seal_proxy(goal, near, at_least=default_share(near), at=10.0, valid_until=None)
    assert claim.interval == (0.5 + 1e-4, 1.0)
    with pytest.raises(InputError, match="nothing to seal"):
        default_share(
            replace(agreement, share=replace(agreement.share, interval=replace(agreement.share.interval, low=0.5)))
        )


def _looked_at_all_the_time(share, *, claimed, models, seed):
    """A claim about normal models whose pairs are truly ranked alike in ``share``, settled after every three."""
    rng = np.random.default_rng([7, seed])
    correlation = math.sin(math.pi / 2 * (2 * share - 1))
    quality = rng.normal(size=20 + models)
    proxy = correlation * quality + math.sqrt(1 - correlation**2) * rng.normal(size=20 + models)
    known = [
        Target(model=f"m{place}", value=value, error=None, measurements=1, first_at=float(place))
        for place, value in enumerate(quality)
    ]
    rows = [
        Numbers(model=f"m{place}", values={"proxy": value}, errors={}, where="t") for place, value in enumerate(proxy)
    ]
    claim = seal(
        "proxy.proxy", "g", "s", quantity="q", predicted=None, interval=(claimed, 1.0), sealed_at=19.5 + seed * 1e-6
    )
    taken = 0
    for count in range(23, 21 + models, 3):
        ranked = beside_target(known[:count], rows[:count], {"proxy": "higher"}, target="g", better="higher")
        looks = due_looks(claim, ranked, known[:count], taken=taken, at=0.0, draws=200)
        taken += len(looks)
        if looks and judged(claim, looks[-1]) != "unknown":
            return judged(claim, looks[-1])
    return "unknown"


def test_looking_after_every_three_models_decides_an_exactly_true_claim_no_more_often_than_promised():
    """With an interval of 90 % at every look it is one in five; one in ten is promised, over both sides."""
    found = [_looked_at_all_the_time(0.8, claimed=0.8, models=60, seed=seed) for seed in range(200)]
    assert sum(each != "unknown" for each in found) <= ERROR * len(found)


@pytest.mark.parametrize(("share", "said"), [(0.95, "ok"), (0.6, "fail")])
def test_a_claim_that_is_clearly_true_or_false_is_still_decided(share, said):
    found = [_looked_at_all_the_time(share, claimed=0.8, models=60, seed=seed) for seed in range(20)]
    assert found.count(said) >= 18
