"""Agreement of two rankings: against scipy's statistics, and against simulated truths for the intervals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, kendalltau, spearmanr

from wholestack.errors import InputError
from wholestack.evals.ranking import (
    corrected,
    difference_p_value,
    draw_models,
    interval_of_share,
    kendall_tau_b,
    pairs_told_apart,
    rank_with_interval,
    regret,
    reliability,
    rho_of_true_values,
    share_alike,
    spearman_rho,
    tau_of_true_values,
)

_values = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=3, max_size=12)


@given(_values)
def test_tau_and_rho_are_scipys_ties_included(pairs):
    x, y = (np.array(each, dtype=float) for each in zip(*pairs, strict=True))
    tau, rho = kendall_tau_b(x[None], y[None])[0], spearman_rho(x[None], y[None])[0]
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(tau)
        assert math.isnan(rho)
    else:
        assert tau == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
        assert rho == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


@given(_values, st.integers(0, 3))
def test_the_share_counts_pairs_as_a_person_would(pairs, matters):
    x, y = (np.array(each, dtype=float) for each in zip(*pairs, strict=True))
    told = [(i, j) for i, j in itertools.combinations(range(len(x)), 2) if x[i] != x[j] and abs(x[i] - x[j]) >= matters]
    found = pairs_told_apart(x, np.zeros(len(x)), matters=matters)
    assert (found.count, found.all) == (len(told), math.comb(len(x), 2))
    share = share_alike(found, y, np.ones((1, len(x))))[0]
    credit = [{1: 1.0, 0: 0.5, -1: 0.0}[int(np.sign((x[i] - x[j]) * (y[i] - y[j])))] for i, j in told]
    assert share == pytest.approx(np.mean(credit)) if told else math.isnan(share)


def test_a_pair_within_the_targets_error_is_not_counted():
    target, errors = np.array([0.0, 1.0, 5.0]), np.array([0.5, 0.5, 0.5])
    found = pairs_told_apart(target, errors)
    assert found.count == 2
    assert found.sign[0, 1] == 0


def test_a_draw_weighs_a_model_as_often_as_it_was_drawn():
    target, proxy = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 1.0])
    found = pairs_told_apart(target, np.zeros(3))
    weighted = share_alike(found, proxy, np.array([[2.0, 1.0, 1.0]]))[0]
    drawn = np.array([0, 0, 1, 2])
    told = pairs_told_apart(target[drawn], np.zeros(4))
    assert weighted == pytest.approx(share_alike(told, proxy[drawn], np.ones((1, 4)))[0])


def test_with_independent_comparisons_the_interval_is_that_of_clopper_and_pearson():
    """Many models, so that nothing is taken off for few degrees of freedom."""
    found = interval_of_share(0.8, 0.8 * 0.2 / 50, models=10**9, most=50, level=0.9)
    exact = binomtest(40, 50).proportion_ci(0.9, method="exact")
    assert (found.low, found.high) == (pytest.approx(exact.low, rel=1e-6), pytest.approx(exact.high, rel=1e-6))


@pytest.mark.parametrize(("models", "narrowest"), [(3, 0.8), (5, 0.6), (12, 0.2)])
def test_perfect_agreement_of_few_models_has_a_wide_interval(models, narrowest):
    values = np.arange(models, dtype=float)
    drawn = draw_models(models, draws=200, rng=np.random.default_rng(0))
    found = pairs_told_apart(values, np.zeros(models))
    rank = rank_with_interval(1.0, share_alike(found, values, drawn.times), models=models, level=0.9, least=0)
    assert rank is not None
    assert rank.interval.high == 1
    assert rank.interval.high - rank.interval.low > narrowest


def _simulate(models, correlation, error, rng, *, contaminated=False):
    """True and measured values of models whose target and proxy correlate."""
    target = rng.normal(size=models)
    proxy = correlation * target + math.sqrt(1 - correlation**2) * rng.normal(size=models)
    if contaminated:
        odd = rng.random(models) < 0.15
        proxy[odd] = rng.normal(size=int(odd.sum()))
    return target + error * rng.normal(size=models), proxy + error * rng.normal(size=models)


def _intervals(target, proxy, rng):
    models = len(target)
    drawn = draw_models(models, draws=250, rng=rng)
    found = pairs_told_apart(target, np.zeros(models))
    share = share_alike(found, proxy, np.ones((1, models)))[0]
    one, other = target[drawn.places], proxy[drawn.places]
    tau, rho = kendall_tau_b(target[None], proxy[None])[0], spearman_rho(target[None], proxy[None])[0]
    return (
        rank_with_interval(share, share_alike(found, proxy, drawn.times), models=models, level=0.9, least=0),
        rank_with_interval(tau, kendall_tau_b(one, other), models=models, level=0.9),
        rank_with_interval(rho, spearman_rho(one, other), models=models, level=0.9),
    )


def _covers(rank, truth):
    return rank is not None and rank.interval.low <= truth <= rank.interval.high


@pytest.mark.parametrize("models", [5, 12, 30])
@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.97])
def test_intervals_cover_the_truth_of_normal_values(models, correlation):
    """Truths: share 1/2 + asin(r)/pi, tau 2/pi asin(r), rho 6/pi asin(r/2)."""
    rng = np.random.default_rng(models)
    truths = (
        0.5 + math.asin(correlation) / math.pi,
        2 / math.pi * math.asin(correlation),
        6 / math.pi * math.asin(correlation / 2),
    )
    covered = np.zeros(3)
    for _ in range(120):
        found = _intervals(*_simulate(models, correlation, 0.0, rng), rng)
        covered += [_covers(rank, truth) for rank, truth in zip(found, truths, strict=True)]
    # 0.9 is stated; 0.82 is three standard errors of 120 below it.
    assert (covered / 120 >= 0.82).all(), covered / 120


def test_intervals_cover_when_a_few_models_are_odd():
    rng = np.random.default_rng(4)
    large = _simulate(3000, 0.98, 0.0, rng, contaminated=True)
    truth = share_alike(pairs_told_apart(large[0], np.zeros(3000)), large[1], np.ones((1, 3000)))[0]
    covered = sum(
        _covers(_intervals(*_simulate(10, 0.98, 0.0, rng, contaminated=True), rng)[0], truth) for _ in range(120)
    )
    assert covered / 120 >= 0.82


def test_pairs_as_if_independent_would_not_cover():
    """The reason for the bootstrap over models: the same data, each pair taken as a draw of its own."""
    rng = np.random.default_rng(5)
    covered = {"models": 0, "pairs": 0}
    for _ in range(150):
        target, proxy = _simulate(12, 0.3, 0.0, rng)
        rank = _intervals(target, proxy, rng)[0]
        naive = binomtest(round(rank.value * 66), 66).proportion_ci(0.9, method="exact")
        truth = 0.5 + math.asin(0.3) / math.pi
        covered["models"] += _covers(rank, truth)
        covered["pairs"] += naive.low <= truth <= naive.high
    assert covered["models"] / 150 >= 0.84
    assert covered["pairs"] / 150 < 0.8


@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.97])
def test_corrected_ranks_cover_the_truth_behind_the_errors_where_measured_ones_do_not(correlation):
    rng = np.random.default_rng(6)
    error, models = 0.65, 30
    truths = (2 / math.pi * math.asin(correlation), 6 / math.pi * math.asin(correlation / 2))
    covered, plain = np.zeros(2), np.zeros(2)
    for _ in range(80):
        target, proxy = _simulate(models, correlation, error, rng)
        factor = reliability(target, np.full(models, error)) * reliability(proxy, np.full(models, error))
        ranks = _intervals(target, proxy, rng)[1:]
        fixed = (corrected(ranks[0], factor, tau_of_true_values), corrected(ranks[1], factor, rho_of_true_values))
        covered += [_covers(rank, truth) for rank, truth in zip(fixed, truths, strict=True)]
        plain += [_covers(rank, truth) for rank, truth in zip(ranks, truths, strict=True)]
    assert (covered / 80 >= 0.8).all(), covered / 80
    if correlation == 0.97:
        assert (plain / 80 < 0.5).all(), plain / 80


def test_reliability_is_the_share_of_variance_that_is_not_error():
    rng = np.random.default_rng(7)
    values = rng.normal(size=20_000) + 0.5 * rng.normal(size=20_000)
    assert reliability(values, np.full(20_000, 0.5)) == pytest.approx(1 / 1.25, abs=0.01)
    assert reliability(np.array([0.0, 0.01, 0.02]), np.full(3, 1.0)) < 0
    assert corrected(None, 0.5, tau_of_true_values) is None


def test_where_errors_are_all_there_is_nothing_is_corrected():
    rank = rank_with_interval(0.5, np.array([0.4, 0.6]), models=5, level=0.9)
    assert corrected(rank, -0.2, tau_of_true_values) is None
    assert corrected(rank, math.nan, tau_of_true_values) is None


def test_two_proxies_of_one_quality_are_rarely_told_apart_and_unlike_ones_often():
    rng = np.random.default_rng(8)

    def rate(noise):
        found = 0
        for _ in range(150):
            target = rng.normal(size=14)
            pairs = pairs_told_apart(target, np.zeros(14))
            drawn = draw_models(14, draws=200, rng=rng)
            proxies = [target + sd * rng.normal(size=14) for sd in noise]
            whole = [share_alike(pairs, each, np.ones((1, 14)))[0] for each in proxies]
            draws = [share_alike(pairs, each, drawn.times) for each in proxies]
            found += difference_p_value(whole[0] - whole[1], draws[0] - draws[1], models=14) < 0.05
        return found / 150

    assert rate((0.5, 0.5)) <= 0.08
    assert rate((0.1, 3.0)) >= 0.7


def test_regret_is_what_the_choice_loses_and_ties_share():
    target = np.array([[0.9, 0.5, 0.7]])
    assert regret(target, np.array([[1.0, 0.0, 0.0]]))[0] == 0
    assert regret(target, np.array([[0.0, 1.0, 0.0]]))[0] == pytest.approx(0.4)
    assert regret(target, np.array([[0.0, 1.0, 1.0]]))[0] == pytest.approx(0.3)


def test_fewer_than_three_models_are_refused():
    with pytest.raises(InputError, match="at least 3 models, got 2"):
        draw_models(2, draws=10, rng=np.random.default_rng(0))
