import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from wholestack.evals.calibration import (
    ChoiceValues,
    abstention,
    best_temperature,
    calibration,
    clopper_pearson,
    fit_temperature,
    held_out_half,
    outcome_of,
    reliability,
)
from wholestack.evals.scores import NORMALISATIONS, summarise
from wholestack.evals.statistics import bootstrap_ratios, expected_calibration_error

from .scored import calibrated_values, scores_from_values


def choices_of(values, gold):
    offsets = np.arange(len(values)) * values.shape[1]
    return ChoiceValues(values=values.reshape(-1), offsets=offsets, answers=offsets + gold)


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_bands_are_the_exact_binomial_interval(right, items, level):
    right = min(right, items)
    ours = clopper_pearson(right, items, level=level)
    theirs = stats.binomtest(right, items).proportion_ci(level, method="exact")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_a_count_with_ties_gets_the_wider_band():
    band = clopper_pearson(3.5, 10, level=0.95)
    assert band.low == clopper_pearson(3, 10, level=0.95).low
    assert band.high == clopper_pearson(4, 10, level=0.95).high


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60))
def test_bins_hold_every_item_once_and_add_up_to_the_calibration_error(pairs):
    confidence, credit = (np.array(column) for column in zip(*pairs, strict=True))
    bins = reliability(confidence, credit)
    assert sum(each.items for each in bins) == len(pairs)
    assert all(each.low <= each.confidence <= each.high for each in bins)
    gaps = sum(each.items * abs(each.confidence - each.accuracy) for each in bins) / len(pairs)
    assert gaps == pytest.approx(expected_calibration_error(confidence, credit), abs=1e-9)
    assert all(each.band.low <= each.accuracy <= each.band.high for each in bins)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_temperature_is_where_scipy_finds_the_least_loss(seed):
    values, gold = calibrated_values(np.random.default_rng(seed), 300, temperature=0.3 + seed)

    def loss(log_temperature):
        scaled = values / np.exp(log_temperature)
        return (special.logsumexp(scaled, axis=1) - scaled[np.arange(300), gold]).mean()

    theirs = np.exp(optimize.minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9}).x)
    assert best_temperature(choices_of(values, gold)) == pytest.approx(theirs, rel=1e-4)


def test_a_known_temperature_is_found_and_mends_the_half_that_was_not_fitted():
    values, gold = calibrated_values(np.random.default_rng(0), 8000, temperature=3.0)
    half = held_out_half([f"c{n}" for n in range(8000)])
    fit = fit_temperature(choices_of(values, gold), half)
    assert fit.temperature == pytest.approx(3.0, rel=0.1)
    assert (fit.fitted_on, fit.tested_on) == ((~half).sum(), half.sum())
    assert fit.nll_after_nats < fit.nll_before_nats - 0.1
    assert fit.ece_after < 0.03 < 0.1 < fit.ece_before
    before = outcome_of(choices_of(values[half], gold[half]))
    assert fit.nll_before_nats == pytest.approx(before.nll.mean())


@pytest.mark.parametrize("case", ["all right", "worse than blind", "level", "one half"])
def test_where_no_temperature_is_best_none_is_given(case):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(40, 3))
    gold = {"all right": values.argmax(1), "worse than blind": values.argmin(1)}.get(case, values.argmax(1))
    values = np.zeros((40, 3)) if case == "level" else values
    half = np.arange(40) % 2 == (0 if case != "one half" else 2)
    assert fit_temperature(choices_of(values, gold), half) is None


def test_halves_are_about_equal_and_belong_to_clusters():
    names = [f"passage {n // 3}" for n in range(3000)]
    half = held_out_half(names)
    assert 0.45 < half.mean() < 0.55
    assert all(len(set(half[n : n + 3])) == 1 for n in range(0, 3000, 3))


def test_a_calibrated_model_is_rarely_called_miscalibrated_and_a_bad_one_always():
    rng = np.random.default_rng(2)
    called, excess, squared = 0, [], []
    for _ in range(150):
        values, gold = calibrated_values(rng, 150)
        found = calibration("raw", choices_of(values, gold), tested=np.arange(150) % 2 == 0, level=0.95, seed=1)
        called += found.ece_p_value < 0.05
        excess.append(found.ece - found.ece_if_calibrated)
        squared.append(found.rms_error)
    assert called / 150 < 0.1
    assert abs(np.mean(excess)) < 0.005  # plug-in ECE itself is about ten times that here
    assert np.median(squared) < 0.05
    values, gold = calibrated_values(rng, 150, temperature=4.0)
    bad = calibration("raw", choices_of(values, gold), tested=np.arange(150) % 2 == 0, level=0.95, seed=1)
    assert bad.ece_p_value < 0.01
    assert bad.ece > 2 * bad.ece_if_calibrated


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=40))
def test_the_abstention_curve_agrees_with_answering_the_surest_first(pairs):
    confidence, credit = (np.array(column, float) for column in zip(*pairs, strict=True))
    found = abstention(confidence, credit)
    assert found.points[-1].coverage == 1
    assert found.points[-1].accuracy == pytest.approx(credit.mean())
    for point in found.points:
        answered = credit[confidence >= point.confidence]
        assert point.accuracy == pytest.approx(answered.mean())
        assert point.coverage == pytest.approx(len(answered) / len(credit))
    levels = sorted(set(confidence), reverse=True)
    curve = [(np.mean(confidence >= at), credit[confidence >= at].mean()) for at in levels]
    for stated in ("0.5", "0.9"):
        fit = [coverage for coverage, accuracy in curve if accuracy >= float(stated) - 1e-9]
        assert (stated in found.reached) == bool(fit)
        if fit:
            assert found.reached[stated].coverage == pytest.approx(max(fit))
            assert found.first_reached[stated].coverage == pytest.approx(min(fit))


def test_the_area_under_the_abstention_curve_is_the_mean_over_random_orders_of_equal_confidence():
    rng = np.random.default_rng(3)
    confidence, credit = rng.integers(0, 4, 30).astype(float), rng.integers(0, 2, 30).astype(float)
    areas = []
    for _ in range(4000):
        order = np.lexsort((rng.random(30), -confidence))
        areas.append((np.cumsum(credit[order]) / np.arange(1, 31)).mean())
    assert abstention(confidence, credit).area == pytest.approx(np.mean(areas), abs=0.005)
    assert abstention(np.ones(30), credit).area == pytest.approx(credit.mean())


def clustered_scores(seed=0, items=90):
    rng = np.random.default_rng(seed)
    values, gold = calibrated_values(rng, items, temperature=2.0)
    reasons = np.where(np.arange(items) % 13 == 0, "too long", "")
    sizes = rng.integers(3, 30, (items, 4))
    return scores_from_values(values, gold, clusters=np.arange(items) // 3, reasons=reasons, answer_bytes=sizes)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6))
def test_items_in_another_order_and_clusters_by_other_numbers_give_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    scores = clustered_scores()
    moved = scores.take(rng.permutation(90))
    moved = dataclasses.replace(moved, clusters=rng.permutation(1000)[moved.clusters])
    assert summarise(moved, thorough=True) == summarise(scores, thorough=True)
    assert summarise(moved) == summarise(scores)


def test_draws_and_halves_change_with_the_items():
    scores = clustered_scores()
    other = dataclasses.replace(scores, item_ids=np.array([f"other {name}" for name in scores.item_ids]))
    one, two = (summarise(each, thorough=True) for each in (scores, other))
    assert one.metric("answer_bpb").value == two.metric("answer_bpb").value
    assert one.metric("answer_bpb").interval != two.metric("answer_bpb").interval
    assert one.calibrations[0].temperature != two.calibrations[0].temperature


def test_flat_metrics_are_finite_numbers_and_undefined_ones_are_absent():
    flat = summarise(clustered_scores(), thorough=True).flat()
    assert all(type(value) is float and np.isfinite(value) for value in flat.values())
    for variant in NORMALISATIONS:
        for name in ("choice_nll_{}", "accuracy_{}", "brier_{}", "ece_{}", "temperature_{}", "abstention_area_{}"):
            assert name.format(variant) in flat
        assert f"ece_{variant}_after_temperature" in flat
    assert flat["answer_bpb_low"] < flat["answer_bpb"] < flat["answer_bpb_high"]
    assert flat["detectable_answer_bpb"] > 0
    assert flat["detectable_accuracy"] > 0
    perfect = scores_from_values(np.tile([0.0, -9.0], (6, 1)), np.zeros(6, int), clusters=np.zeros(6, int))
    alone = summarise(perfect, thorough=True).flat()
    assert not [name for name in alone if "temperature" in name or name.endswith(("_se", "_low")) or "detect" in name]
    unscorable = dataclasses.replace(perfect, reasons=np.array(["x"] * 6))
    assert summarise(unscorable, thorough=True).flat() == {}


def test_without_being_asked_nothing_costly_is_made_and_names_stay():
    plain, full = summarise(clustered_scores()), summarise(clustered_scores(), thorough=True)
    assert plain.calibrations == ()
    assert all(metric.interval is None for metric in plain.metrics)
    assert [metric.name for metric in plain.metrics] == [metric.name for metric in full.metrics]
    assert [metric.value for metric in plain.metrics] == [metric.value for metric in full.metrics]


def test_bootstrap_of_several_ratios_agrees_with_drawing_clusters_one_by_one():
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(25), 4)
    tops = rng.normal(size=(100, 2)) + rng.normal(size=25)[clusters, None]
    weights = rng.uniform(1, 3, (100, 2))
    low, high = bootstrap_ratios(tops, weights, clusters, level=0.9, resamples=6000, rng=np.random.default_rng(5))
    draws = []
    for _ in range(6000):
        drawn = np.concatenate([np.flatnonzero(clusters == each) for each in rng.integers(0, 25, 25)])
        draws.append(tops[drawn].sum(0) / weights[drawn].sum(0))
    np.testing.assert_allclose(np.stack([low, high]), np.quantile(draws, [0.05, 0.95], axis=0), atol=0.02)


def test_choices_that_differ_by_rounding_alone_are_tied():
    """A model that knows nothing gives every byte the same bits: each of four choices is right one time in four."""
    bits = 8 * np.log(2)
    lengths = np.array([[3, 7, 11, 13], [5, 9, 21, 33], [1, 49, 6, 10]])
    values = np.concatenate([-(lengths * bits) / lengths * scale for scale in (1.0, 1 + 1e-15)])
    choices = ChoiceValues(values=values.ravel(), offsets=np.arange(6) * 4, answers=np.arange(6) * 4 + 1)
    assert outcome_of(choices).credit.tolist() == [0.25] * 6
    apart = ChoiceValues(values=np.array([-1.0, -1.0 - 1e-9]), offsets=np.array([0]), answers=np.array([1]))
    assert outcome_of(apart).credit.tolist() == [0.0]
