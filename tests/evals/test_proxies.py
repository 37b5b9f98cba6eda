"""Proxies beside a goal: agreement, regret and the note."""

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from wholestack.errors import InputError
from wholestack.evals.goals import Target, make_goal, measure_goal, set_goal
from wholestack.evals.measured import Numbers
from wholestack.evals.proxies import (
    beside_target,
    describe,
    goal_ranked,
    keep,
    measure_proxies,
    proxy_note,
)

QUALITY = np.linspace(0.2, 0.8, 20)
WAYS = {"loss": "lower", "noise": "higher"}


def _rows(quality=QUALITY, begin=0):
    noise = np.random.default_rng(3).normal(size=100)
    return [
        Numbers(model=f"m{place}", values={"loss": 2 - q, "noise": noise[place]}, errors={}, where="t")
        for place, q in enumerate(quality, start=begin)
    ]


def _targets(quality=QUALITY, error=0.01):
    return [
        Target(model=f"m{place}", value=q, error=error, measurements=1, first_at=0.0) for place, q in enumerate(quality)
    ]


def _measure(ranked, seed=0):
    return measure_proxies(ranked, at=1.0, rng=np.random.default_rng(seed), draws=300)


def test_a_faithful_proxy_stands_before_noise_and_is_told_apart():
    report = _measure(beside_target(_targets(), _rows(), WAYS, target="accepted", better="higher"))
    first, second = report.agreements
    assert (first.metric, second.metric) == ("loss", "noise")
    assert first.share.value == 1
    assert first.share.interval.low > 0.8
    assert second.share.interval.low < 0.5 < second.share.interval.high
    assert report.versus[0].told_apart
    assert (first.regret.value, first.regret.picked, first.regret.best) == (0, "m19", "m19")


def test_tau_and_rho_of_the_report_are_scipys_with_directions_turned():
    report = _measure(beside_target(_targets(), _rows(), WAYS, target="accepted", better="lower"))
    noise = next(each for each in report.agreements if each.metric == "noise")
    values = [row.values["noise"] for row in _rows()]
    assert noise.tau.value == pytest.approx(kendalltau(-QUALITY, values).statistic)
    assert noise.spearman.value == pytest.approx(spearmanr(-QUALITY, values).statistic)


def test_the_same_seed_gives_the_same_report():
    ranked = beside_target(_targets(), _rows(), WAYS, target="accepted", better="higher")
    assert _measure(ranked) == _measure(ranked)


def test_pairs_that_the_target_cannot_tell_apart_or_that_do_not_matter_are_not_counted():
    sharp = _measure(beside_target(_targets(error=0.001), _rows(), WAYS, target="t", better="higher")).agreements[0]
    blunt = _measure(beside_target(_targets(error=0.1), _rows(), WAYS, target="t", better="higher")).agreements[0]
    coarse = beside_target(_targets(error=0.001), _rows(), WAYS, target="t", better="higher", matters=0.3)
    matters = _measure(coarse).agreements[0]
    assert sharp.pairs == sharp.all_pairs == 190
    assert 0 < blunt.pairs < 100
    assert matters.pairs == sum(abs(a - b) >= 0.3 - 1e-9 for i, a in enumerate(QUALITY) for b in QUALITY[:i])


def test_a_target_that_tells_nothing_apart_gives_no_share_and_says_so():
    report = _measure(beside_target(_targets(error=5.0), _rows(), WAYS, target="t", better="higher"))
    assert [each.share for each in report.agreements] == [None, None]
    assert report.versus == ()
    assert report.agreements[0].tau_corrected is None
    assert report.agreements[0].target_reliability == 0


def test_five_models_are_never_enough():
    ranked = beside_target(_targets(QUALITY[::4]), _rows(QUALITY[::4]), WAYS, target="t", better="higher")
    best = _measure(ranked).agreements[0]
    assert best.share.value == 1
    assert not best.enough
    assert best.models_wanted > 5


def test_models_that_lack_a_number_are_left_out_with_the_reason():
    rows = [*_rows()[:-1], Numbers(model="new", values={"loss": 1.0, "noise": 0.0}, errors={}, where="t")]
    rows[0] = Numbers(model="m0", values={"loss": 1.8}, errors={}, where="t")
    ranked = beside_target(_targets(), rows, WAYS, target="t", better="higher")
    assert ranked.left_out == {
        "m0": "lacks noise",
        "m19": "no proxy was given",
        "new": "the target was not measured",
    }
    assert len(ranked.models) == 18


def test_a_model_that_stands_twice_is_an_error():
    with pytest.raises(InputError, match="stands also at"):
        beside_target(_targets(), [*_rows(), _rows()[0]], WAYS, target="t", better="higher")


def record_goal(folder):
    """A goal with twenty measured models."""
    set_goal(folder, make_goal("accepted", measure="share", better="higher", matters=0.02, set_at=0.0))
    for each in _targets():
        measure_goal(folder / "accepted", each.model, each.value, error=each.error, at=1.0)
    return folder / "accepted"


@pytest.fixture
def goal(tmp_path):
    return record_goal(tmp_path)


def test_the_note_says_what_is_known_of_a_metric(goal):
    assert "no goal is recorded" in proxy_note(None, "loss")
    assert "no goal is recorded" in proxy_note(goal.parent / "other", "loss")
    assert proxy_note(goal, "loss") == "how it ranks beside the goal 'accepted' was never measured"
    keep(goal, _measure(goal_ranked(goal, _rows(), WAYS)))
    assert proxy_note(goal, "loss[3f2a9c1b]") == "ranks as 'accepted' does in 1.00 of pairs (0.85 to 1.00, 20 models)"
    assert proxy_note(goal, "noise").endswith("not told apart from chance by these models")


def test_a_note_of_an_earlier_definition_is_not_passed_on(goal):
    keep(goal, _measure(goal_ranked(goal, _rows(), WAYS)))
    set_goal(goal.parent, make_goal("accepted", measure="something else", better="higher", matters=1, set_at=9.0))
    assert proxy_note(goal, "loss").endswith("was measured for an earlier definition only")


def test_a_metric_that_ranks_the_other_way_round_is_called_that():
    report = _measure(beside_target(_targets(), _rows(), {"loss": "higher"}, target="t", better="higher"))
    assert report.agreements[0].share.value == 0
    assert describe(report.agreements[0]).endswith("it ranks the other way round")
