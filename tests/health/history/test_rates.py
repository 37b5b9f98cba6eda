"""Exact statistics, compared with scipy and with sums of exact fractions."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wholestack.health.history.rates import (
    Table,
    adjusted,
    binomial_tail,
    compare_rates,
    hypergeometric_tail,
    poisson_tail,
    rate,
    stratified_tail,
)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40, 1000, 6000])
def test_the_interval_of_a_rate_is_garwoods(count):
    found = rate(count, 200.0)
    low = stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
    assert found.low * 200 == pytest.approx(low, rel=1e-9)
    assert found.high * 200 == pytest.approx(stats.chi2.ppf(0.975, 2 * count + 2) / 2, rel=1e-9)
    assert found.mean_time_s == (200 / count if count else None)


def test_of_no_time_there_is_no_rate():
    assert (rate(0, 0.0).high, rate(0, 0.0).mean_time_s, rate(0, 0.0).mean_time_high_s) == (None, None, None)


@pytest.mark.parametrize("counts", [(0, 0), (0, 4), (5, 0), (3, 4), (12, 2), (900, 1000)])
def test_two_rates_are_compared_exactly(counts):
    found = compare_rates(counts[0], 300.0, counts[1], 500.0)
    if not sum(counts):
        assert (found.p, found.ratio) == (1.0, None)
        return
    both = sum(counts)
    assert found.p == pytest.approx(
        min(1, 2 * min(stats.binom.sf(counts[0] - 1, both, 3 / 8), stats.binom.cdf(counts[0], both, 3 / 8))), rel=1e-8
    )
    low, high = stats.binomtest(counts[0], both).proportion_ci(method="exact")
    assert found.low == pytest.approx(low / (1 - low) * 5 / 3, rel=1e-7)
    assert (found.high is None) == (counts[1] == 0)
    if found.high is not None:
        assert found.high == pytest.approx(high / (1 - high) * 5 / 3, rel=1e-7)
        assert found.ratio == pytest.approx(counts[0] / 300 / (counts[1] / 500))


@given(st.integers(0, 3000), st.floats(0.001, 3000))
def test_a_poisson_tail_is_scipys(count, mean):
    assert poisson_tail(count, mean) == pytest.approx(stats.poisson.sf(count - 1, mean), rel=1e-7, abs=1e-14)


@given(st.integers(0, 400), st.integers(0, 400), st.floats(0, 1))
def test_a_binomial_tail_is_scipys(count, trials, share):
    assert binomial_tail(count, trials, share) == pytest.approx(
        stats.binom.sf(count - 1, trials, share), rel=1e-7, abs=1e-13
    )


@st.composite
def tables(draw, most=60):
    total = draw(st.integers(1, most))
    cases, having = draw(st.integers(0, total)), draw(st.integers(0, total))
    hits = draw(st.integers(max(0, cases + having - total), min(cases, having)))
    return Table(hits=hits, cases=cases, having=having, total=total)


def chances(table):
    """Of every number of hits, as exact fractions."""
    whole = math.comb(table.total, table.cases)
    return {
        hits: Fraction(math.comb(table.having, hits) * math.comb(table.total - table.having, table.cases - hits), whole)
        for hits in range(max(0, table.cases + table.having - table.total), min(table.cases, table.having) + 1)
    }


@given(tables())
def test_a_hypergeometric_tail_is_the_sum_of_its_fractions(table):
    exact = sum(chance for hits, chance in chances(table).items() if hits >= table.hits)
    found = hypergeometric_tail(table.hits, cases=table.cases, having=table.having, total=table.total)
    assert found == pytest.approx(float(exact), rel=1e-9)


@settings(max_examples=50)
@given(st.lists(tables(most=12), min_size=1, max_size=3))
def test_strata_are_added_up_exactly(strata):
    sums = {0: Fraction(1)}
    for table in strata:
        again = {}
        for so_far, chance in sums.items():
            for hits, more in chances(table).items():
                again[so_far + hits] = again.get(so_far + hits, 0) + chance * more
        sums = again
    exact = sum(chance for hits, chance in sums.items() if hits >= sum(table.hits for table in strata))
    assert stratified_tail(strata) == pytest.approx(float(exact), rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_many_tests_are_adjusted_as_scipy_does(p_values):
    assert adjusted(p_values) == pytest.approx(stats.false_discovery_control(p_values, method="by"), rel=1e-9)


def test_tests_that_were_left_out_count():
    assert adjusted([0.001], tests=100) == pytest.approx(
        stats.false_discovery_control([0.001] + [1.0] * 99, method="by")[:1]
    )
