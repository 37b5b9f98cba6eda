import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wholestack.errors import InputError
from wholestack.evals.statistics import (
    cluster_bootstrap,
    detectable_difference,
    expected_calibration_error,
    mean_estimate,
    p_value,
    ratio_estimate,
    t_interval,
)

numbers = st.lists(st.floats(-100, 100), min_size=2, max_size=30)


def clustered(rng, clusters, size, between, within):
    """Values with a cluster effect, and their clusters."""
    group = np.repeat(np.arange(clusters), size)
    return rng.normal(0, between, clusters)[group] + rng.normal(0, within, len(group)), group


@settings(deadline=None)
@given(numbers)
def test_with_one_item_a_cluster_the_error_is_the_standard_error_of_the_mean(values):
    array = np.array(values)
    found = mean_estimate(array, np.arange(len(array)))
    assert found.value == pytest.approx(array.mean(), abs=1e-9)
    assert found.standard_error == pytest.approx(stats.sem(array), abs=1e-9)


@settings(deadline=None)
@given(numbers, st.integers(2, 4))
def test_copies_inside_a_cluster_add_no_precision(values, copies):
    once = mean_estimate(np.array(values), np.arange(len(values)))
    many = mean_estimate(np.repeat(values, copies), np.repeat(np.arange(len(values)), copies))
    assert many.value == pytest.approx(once.value, abs=1e-9)
    assert many.standard_error == pytest.approx(once.standard_error, abs=1e-9)
    assert many.clusters == once.clusters


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 50), st.integers(1, 90)), min_size=3, max_size=20), st.randoms())
def test_order_names_of_clusters_and_units_do_not_matter(pairs, random):
    numerator, weight = (np.array(column, float) for column in zip(*pairs, strict=True))
    clusters = np.arange(len(pairs)) // 2
    order = np.array(random.sample(range(len(pairs)), len(pairs)))
    one = ratio_estimate(numerator, weight, clusters)
    other = ratio_estimate(8 * numerator[order], weight[order], 7 - 3 * clusters[order])
    assert other.value == pytest.approx(8 * one.value)
    assert other.standard_error == pytest.approx(8 * one.standard_error, abs=1e-9)


def test_the_error_of_a_ratio_agrees_with_the_jackknife_over_clusters():
    rng = np.random.default_rng(0)
    weight = rng.integers(48, 81, 200).astype(float)
    noise, clusters = clustered(rng, 50, 4, 0.3, 0.5)
    numerator = weight * (2 + noise)
    ratios = np.array([numerator[clusters != g].sum() / weight[clusters != g].sum() for g in range(50)])
    jackknife = math.sqrt(49 / 50 * ((ratios - ratios.mean()) ** 2).sum())
    assert ratio_estimate(numerator, weight, clusters).standard_error == pytest.approx(jackknife, rel=0.02)


def test_one_cluster_has_no_error_interval_or_p_value():
    found = mean_estimate(np.array([1.0, 2.0]), np.array([5, 5]))
    assert (found.standard_error, t_interval(found, level=0.9), p_value(found)) == (None, None, None)


@pytest.mark.parametrize(("values", "weights"), [([], []), ([1.0], [0.0])])
def test_nothing_to_estimate_is_an_error(values, weights):
    with pytest.raises(InputError, match="needs items with weight"):
        ratio_estimate(np.array(values), np.array(weights), np.arange(len(values)))


@settings(deadline=None)
@given(numbers)
def test_interval_and_p_value_are_those_of_the_t_test(values):
    array = np.array(values)
    if array.std() < 1e-3:
        return
    found = mean_estimate(array, np.arange(len(array)))
    test = stats.ttest_1samp(array, 0)
    assert p_value(found) == pytest.approx(test.pvalue, rel=1e-6, abs=1e-12)
    low, high = test.confidence_interval(0.9)
    interval = t_interval(found, level=0.9)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-6, abs=1e-9)


def test_no_difference_at_all_is_no_evidence():
    assert p_value(mean_estimate(np.zeros(5), np.arange(5))) == 1
    assert p_value(mean_estimate(np.ones(5), np.arange(5))) == 0


def coverage(kind, *, trials=400):
    """How often a 90 % interval holds the true value 0 when items of a cluster are alike."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(trials):
        values, clusters = clustered(rng, 40, 5, 1.0, 0.5)
        if kind == "bootstrap":
            found = cluster_bootstrap(values, np.ones(len(values)), clusters, level=0.9, resamples=400, rng=rng)
        else:
            taken = clusters if kind == "clusters" else np.arange(len(values))
            found = t_interval(mean_estimate(values, taken), level=0.9)
        held += found.low <= 0 <= found.high
    return held / trials


@pytest.mark.parametrize("kind", ["bootstrap", "clusters"])
def test_intervals_cover_as_often_as_they_say_although_items_are_clustered(kind):
    assert 0.85 <= coverage(kind) <= 0.95


def test_an_interval_that_forgets_the_clusters_covers_too_seldom():
    assert coverage("items") < 0.75


def test_the_bootstrap_agrees_with_scipy_when_every_item_is_its_own_cluster():
    values = np.random.default_rng(1).exponential(size=60)
    ours = cluster_bootstrap(
        values, np.ones(60), np.arange(60), level=0.9, resamples=20000, rng=np.random.default_rng(2)
    )
    theirs = stats.bootstrap(
        (values,), np.mean, confidence_level=0.9, method="percentile", n_resamples=20000, rng=np.random.default_rng(3)
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=0.01)


def test_the_bootstrap_repeats_with_its_generator_and_refuses_one_cluster():
    values, clusters = np.arange(6.0), np.arange(6) // 2
    first, second = (
        cluster_bootstrap(values, np.ones(6), clusters, resamples=50, rng=np.random.default_rng(5)) for _ in range(2)
    )
    assert first == second
    with pytest.raises(InputError, match="at least two, got 1"):
        cluster_bootstrap(values, np.ones(6), np.zeros(6, int), rng=np.random.default_rng(5))


def share_found(difference, *, clusters, size, between, within, trials=3000):
    rng = np.random.default_rng(11)
    found = 0
    for _ in range(trials):
        values, group = clustered(rng, clusters, size, between, within)
        found += p_value(mean_estimate(values + difference, group)) < 0.05
    return found / trials


@pytest.mark.parametrize(("items", "sd"), [(400, 0.25), (12, 2.0)])
def test_a_detectable_difference_is_found_four_times_in_five(items, sd):
    claim = detectable_difference(items=items, paired_sd=sd)
    shape = {"clusters": items, "size": 1, "between": 0.0, "within": sd}
    assert share_found(claim.difference, **shape) == pytest.approx(0.8, abs=0.03)
    assert share_found(0.0, **shape) == pytest.approx(0.05, abs=0.015)


def test_a_detectable_difference_with_clusters_is_found_four_times_in_five():
    between, within, size = 0.3, 0.4, 4
    design_effect = 1 + (size - 1) * between**2 / (between**2 + within**2)
    claim = detectable_difference(
        items=160, clusters=40, paired_sd=math.hypot(between, within), design_effect=design_effect
    )
    shape = {"clusters": 40, "size": size, "between": between, "within": within}
    assert share_found(claim.difference, **shape) == pytest.approx(0.8, abs=0.03)


@settings(deadline=None)
@given(st.integers(2, 5000), st.floats(0.01, 10))
def test_a_detectable_difference_shrinks_with_items_and_grows_with_spread_and_power(items, sd):
    base = detectable_difference(items=items, paired_sd=sd).difference
    assert detectable_difference(items=items + 50, paired_sd=sd).difference < base
    assert detectable_difference(items=items, paired_sd=2 * sd).difference == pytest.approx(2 * base)
    assert detectable_difference(items=items, paired_sd=sd, power=0.9).difference > base


def test_a_detectable_difference_says_what_it_rests_on():
    found = detectable_difference(items=400, paired_sd=0.25)
    assert (found.level, found.power, found.basis) == (0.05, 0.8, "assumed paired SD 0.25")
    assert found.difference == pytest.approx(0.0351, abs=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        {"items": 1},
        {"items": 10, "clusters": 11},
        {"items": 10, "level": 0},
        {"items": 10, "power": 1},
        {"items": 10, "paired_sd": math.nan},
        {"items": 10, "paired_sd": -1.0},
        {"items": 10, "design_effect": 0.0},
    ],
)
def test_numbers_out_of_range_are_refused(arguments):
    with pytest.raises(InputError):
        detectable_difference(**{"paired_sd": 1.0, **arguments})


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=50), st.integers(1, 15))
def test_calibration_error_agrees_with_its_definition(pairs, bins):
    confidence, correct = (np.array(column) for column in zip(*pairs, strict=True))
    expected = 0.0
    for number in range(bins):
        inside = [p for p in pairs if min(int(p[0] * bins), bins - 1) == number]
        if inside:
            gap = np.mean([p[0] for p in inside]) - np.mean([p[1] for p in inside])
            expected += len(inside) / len(pairs) * abs(gap)
    assert expected_calibration_error(confidence, correct, bins=bins) == pytest.approx(expected, abs=1e-9)
