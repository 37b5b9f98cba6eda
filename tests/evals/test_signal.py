import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wholestack.errors import InputError
from wholestack.evals.signal import (
    SignalReport,
    benjamini_hochberg,
    decision_accuracy,
    per_item,
    signal_report,
    signal_to_noise,
)
from wholestack.record import from_json, to_json

from .scored import result_of


def planted(rng, *, models, repeats, items, signal, noise):
    """``[models, repeats, items]`` whose mean over items has the spreads asked for."""
    between = rng.normal(0, signal, (models, 1, 1))
    within = rng.normal(0, noise, (models, repeats, 1))
    return between + within + rng.normal(0, 1, items)


@pytest.mark.parametrize(("signal", "noise"), [(0.6, 0.2), (0.2, 0.6)])
def test_planted_spreads_are_found(signal, noise):
    values = planted(np.random.default_rng(0), models=400, repeats=4, items=3, signal=signal, noise=noise)
    found = signal_to_noise(values, np.ones(3))
    assert found.signal == pytest.approx(signal, rel=0.12)
    assert found.noise == pytest.approx(noise, rel=0.05)
    assert found.ratio == pytest.approx(found.signal / found.noise)
    assert found.interval.low < found.ratio < found.interval.high


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 10**6))
def test_the_ratio_is_what_the_analysis_of_variance_says(models, repeats, seed):
    values = planted(np.random.default_rng(seed), models=models, repeats=repeats, items=4, signal=1, noise=1)
    weights = np.array([1.0, 2, 3, 4])
    found = signal_to_noise(values * weights, weights)
    metric = (values * weights).sum(2) / 10
    observed = stats.f_oneway(*metric).statistic
    assert found.ratio == pytest.approx(np.sqrt(max(0, (observed - 1) / repeats)), abs=1e-6)
    assert found.noise == pytest.approx(np.sqrt(metric.var(axis=1, ddof=1).mean()))
    assert found.mean == pytest.approx(metric.mean())


@pytest.mark.parametrize("signal", [0.0, 1.0, 3.0])
def test_the_interval_of_the_ratio_covers_as_often_as_it_says(signal):
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(600):
        values = planted(rng, models=5, repeats=4, items=1, signal=signal, noise=1)
        interval = signal_to_noise(values, np.ones(1)).interval
        held += interval.low <= signal <= interval.high
    assert held / 600 == pytest.approx(0.95 if signal else 0.975, abs=0.03)


def brute_decisions(metric):
    """Pairs of models, a run of each, against the mean of the other runs of both."""
    total = agreed = 0.0
    for first, second in itertools.combinations(range(len(metric)), 2):
        for a, b in itertools.product(range(metric.shape[1]), repeat=2):
            single = metric[first, a] - metric[second, b]
            rest = np.delete(metric[first], a).mean() - np.delete(metric[second], b).mean()
            total += 1
            agreed += 0.5 if single * rest == 0 else single * rest > 0
    return agreed / total


@settings(deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 10**6))
def test_decision_accuracy_counts_pairs_and_runs_one_by_one(models, repeats, seed):
    metric = np.random.default_rng(seed).integers(0, 4, (models, repeats)) * 4.0
    assert decision_accuracy(metric) == pytest.approx(brute_decisions(metric))


def test_noise_decides_like_a_coin_and_signal_always():
    rng = np.random.default_rng(5)
    noise = [decision_accuracy(rng.normal(size=(6, 4))) for _ in range(400)]
    assert np.mean(noise) == pytest.approx(0.5, abs=0.02)
    assert decision_accuracy(np.arange(6)[:, None] + rng.uniform(-0.1, 0.1, (6, 4))) == 1


def items_with_signal(rng, *, items=400, carrying=60, models=5, repeats=3, spread=1.0, gap=3.0):
    noise = spread * np.sqrt(8 / rng.chisquare(8, items))
    values = rng.normal(0, 1, (models, repeats, items)) * noise
    values[:, :, :carrying] += rng.normal(0, gap, (models, 1, carrying)) * noise[:carrying]
    return values


def test_items_that_carry_signal_are_named_with_few_false_ones():
    rng = np.random.default_rng(6)
    missed = false = named = 0
    for _ in range(10):
        found = per_item(items_with_signal(rng), [f"{n}" for n in range(400)], ["s"] * 400)
        carrying = {int(each.id) for each in found.ratios if each.carries_signal}
        assert found.carrying == len(carrying)
        missed += len(set(range(60)) - carrying)
        false += len(carrying - set(range(60)))
        named += len(carrying)
    assert false / named <= 0.13
    assert missed / 600 <= 0.15
    assert 4 < found.prior_freedom < 16


def test_where_there_is_no_signal_hardly_any_item_is_named():
    rng = np.random.default_rng(7)
    named = [
        per_item(items_with_signal(rng, carrying=0), [str(n) for n in range(400)], ["s"] * 400).carrying > 0
        for _ in range(40)
    ]
    assert np.mean(named) <= 0.1 + 3 * np.sqrt(0.09 / 40)


def test_an_item_that_happens_not_to_scatter_is_not_taken_for_the_clearest():
    rng = np.random.default_rng(8)
    values = items_with_signal(rng, carrying=1, gap=30.0)
    values[:, :, 5] = rng.normal(0, 0.01, (5, 1)) * 1.0
    found = per_item(values, [str(n) for n in range(400)], ["s"] * 400)
    assert found.ratios[0].id == "0"
    assert next(each for each in found.ratios if each.id == "5").ratio == 0


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_models_repeats_and_items_changes_nothing_but_rounding(seed):
    rng = np.random.default_rng(seed)
    values = items_with_signal(rng, items=20, carrying=5)
    models, repeats, items = rng.permutation(5), rng.permutation(3), rng.permutation(20)
    moved = values[models][:, repeats][:, :, items]
    one, other = (signal_to_noise(each, np.ones(20)) for each in (values, moved))
    assert (one.ratio, one.decision_accuracy) == pytest.approx((other.ratio, other.decision_accuracy), abs=1e-6)
    ids = [str(n) for n in range(20)]
    ratios = [
        {each.id: each.ratio for each in found.ratios}
        for found in (per_item(values, ids, ["s"] * 20), per_item(moved, [ids[n] for n in items], ["s"] * 20))
    ]
    assert ratios[0] == pytest.approx(ratios[1], abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_false_discoveries_are_controlled_as_scipy_does(p_values):
    expected = stats.false_discovery_control(p_values) <= 0.1
    assert benjamini_hochberg(np.array(p_values), 0.1).tolist() == expected.tolist()


def test_without_noise_there_is_no_ratio_and_everything_stays_finite():
    values = np.repeat(np.arange(3.0)[:, None, None], 2, axis=1) * np.array([1.0, 0.0])
    found = signal_to_noise(values, np.ones(2))
    assert (found.ratio, found.interval, found.noise, found.decision_accuracy) == (None, None, 0.0, None)
    items = per_item(values, ["a", "b"], ["s", "s"])
    assert [(each.id, each.ratio, each.carries_signal) for each in items.ratios] == [
        ("a", None, False),  # what differs between models may be noise that these repeats do not show
        ("b", None, False),
    ]
    assert to_json(found)
    assert to_json(items)


def groups(rng, *, models=4, repeats=3, items=120, gap=1.0):
    gold = rng.integers(0, 3, items)
    base = rng.normal(-8, 2, (items, 3))
    sources = ["clear" if n % 2 else "dull" for n in range(items)]
    made = {}
    for model in range(models):
        made[f"m{model}"] = []
        for repeat in range(repeats):
            values = base + rng.normal(0, 0.5, base.shape) + 0.02 * rng.normal()
            values[1::2][np.arange(items // 2), gold[1::2]] += gap * model
            made[f"m{model}"].append(result_of(values, gold, name=f"m{model}-{repeat}", sources=sources))
    return made


def test_a_report_says_which_metric_and_which_source_carry_signal():
    found = signal_report(groups(np.random.default_rng(9)))
    assert [each.metric.partition("[")[0] for each in found.metrics] == ["answer_bpb", "choice_nll_raw", "accuracy_raw"]
    bpb = found.metrics[0]
    assert bpb.whole.ratio > 10
    assert [part.source for part in bpb.sources] == ["clear", "dull"]
    assert bpb.sources[1].found.interval.low < 1 < bpb.sources[0].found.interval.low
    carrying = [each.source for each in bpb.per_item.ratios if each.carries_signal]
    assert carrying.count("clear") > 40
    assert carrying.count("dull") <= 8
    assert from_json(SignalReport, to_json(found)) == found


def test_too_few_models_or_repeats_are_said_and_uneven_repeats_are_cut():
    rng = np.random.default_rng(10)
    two = signal_report(groups(rng, models=2, repeats=2))
    assert [warning.partition(":")[0] for warning in two.warnings] == [
        "2 models are too few to tell",
        "2 repeats of each model",
    ]
    uneven = groups(rng, models=5)
    uneven["m0"] = uneven["m0"][:2]
    found = signal_report(uneven)
    assert (found.repeats, found.passed_over) == (2, 4)
    assert signal_report(groups(rng, models=5)).warnings == ()
    with pytest.raises(InputError, match="give two or more, got 1"):
        signal_report({"m0": uneven["m1"]})
    uneven["m3"] = uneven["m3"][:1]
    with pytest.raises(InputError, match="'m3' has one result"):
        signal_report(uneven)


def test_items_that_one_result_lacks_a_score_for_are_left_out_of_all():
    made = groups(np.random.default_rng(11), items=20)
    first = made["m0"][0]
    reasons = ["late" if n < 3 else "" for n in range(20)]
    values = -first.scores.nll_nats.reshape(20, 3)
    made["m0"][0] = result_of(values, first.scores.gold, reasons=reasons)
    found = signal_report(made)
    assert (found.items, found.not_by_all, found.metrics[0].per_item.items) == (17, 3, 17)
