import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.evals.scores import (
    NORMALISATIONS,
    ItemScores,
    Metric,
    Scores,
    compare,
    item_values,
    paired_difference,
    summarise,
)
from wholestack.record import from_json, to_json


def scores_of(items, *, item_set="3f2a9c1b00000000", clusters=None, reasons=None):
    """From items as lists of (nll, bytes, tokens, characters) with the right choice first, put last when odd."""
    turned = [item[1:] + item[:1] if number % 2 else item for number, item in enumerate(items)]
    choices = np.array([choice for item in turned for choice in item], float)
    return ItemScores(
        item_set=item_set,
        item_ids=np.array([f"item {number}" for number in range(len(items))]),
        sources=np.array(["s"] * len(items)),
        clusters=np.arange(len(items)) if clusters is None else np.array(clusters),
        gold=np.array([len(item) - 1 if number % 2 else 0 for number, item in enumerate(items)]),
        reasons=np.array([""] * len(items) if reasons is None else reasons),
        truncated=np.zeros(len(items), bool),
        spanning=np.zeros(len(items), bool),
        choice_offsets=np.concatenate(([0], np.cumsum([len(item) for item in items]))),
        nll_nats=choices[:, 0],
        answer_bytes=choices[:, 1].astype(np.int64),
        answer_tokens=choices[:, 2].astype(np.int64),
        answer_chars=choices[:, 3].astype(np.int64),
        positions=0,
    )


any_choice = st.tuples(st.floats(0, 300), st.integers(1, 90), st.integers(1, 90), st.integers(1, 90)).map(list)
any_item = st.lists(any_choice, min_size=2, max_size=5)
any_items = st.lists(any_item, min_size=1, max_size=8)


def oracle(items, name):
    """The definitions of the module, one item at a time in plain Python."""
    kind, _, variant = name.partition("_")
    place = {"raw": None, "per_byte": 1, "per_token": 2, "per_char": 3}
    if name == "answer_bpb":
        return sum(item[0][0] for item in items) / math.log(2) / sum(item[0][1] for item in items)
    if name == "answer_bpb_macro":
        return sum(item[0][0] / math.log(2) / item[0][1] for item in items) / len(items)
    if kind == "choice":
        variant = variant.removeprefix("nll_")
    total = 0.0
    for item in items:
        divisor = [1 if place[variant] is None else choice[place[variant]] for choice in item]
        values = [-choice[0] / by for choice, by in zip(item, divisor, strict=True)]
        top = max(values)
        weights = [math.exp(value - top) for value in values]
        probabilities = [weight / sum(weights) for weight in weights]
        if kind == "choice":
            total += math.log(sum(weights)) - (values[0] - top)
        elif kind == "accuracy":
            best = [value >= top - 1e-12 * max(abs(top), 1.0) for value in values]
            total += best[0] / sum(best)
        else:
            total += sum((p - (j == 0)) ** 2 for j, p in enumerate(probabilities))
    return total / len(items)


NAMES = [
    "answer_bpb",
    "answer_bpb_macro",
    *(f"{kind}_{variant}" for kind in ("choice_nll", "accuracy", "brier") for variant in NORMALISATIONS),
]


@settings(deadline=None)
@given(any_items, st.sampled_from(NAMES))
def test_every_metric_agrees_with_its_definition(items, name):
    assert summarise(scores_of(items)).metric(name).value == pytest.approx(oracle(items, name), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(any_items)
def test_two_to_the_bits_per_byte_is_the_byte_perplexity(items):
    bpb = summarise(scores_of(items)).answer_bpb
    log_probability = -sum(item[0][0] for item in items)
    answer_bytes = sum(item[0][1] for item in items)
    assert 2**bpb == pytest.approx(math.exp(-log_probability / answer_bytes))


@settings(deadline=None)
@given(any_items)
def test_equal_scores_are_chance(items):
    level = [[[7.0, 8, 9, 10] for _ in item] for item in items]
    scores = summarise(scores_of(level))
    chance = np.mean([1 / len(item) for item in items])
    for variant in NORMALISATIONS:
        assert scores.metric(f"choice_nll_{variant}").value == pytest.approx(np.mean([math.log(len(i)) for i in items]))
        assert scores.metric(f"accuracy_{variant}").value == pytest.approx(chance)


@settings(deadline=None)
@given(any_items, st.floats(0, 50))
def test_a_constant_on_all_choices_of_an_item_does_not_change_the_raw_choice(items, constant):
    moved = [[[choice[0] + constant, *choice[1:]] for choice in item] for item in items]
    one, other = (summarise(scores_of(each)).metric("choice_nll_raw").value for each in (items, moved))
    assert other == pytest.approx(one, abs=1e-6)


@settings(deadline=None)
@given(any_items, st.randoms())
def test_order_of_items_and_choices_changes_no_metric(items, random):
    shuffled = [[item[0], *random.sample(item[1:], len(item) - 1)] for item in random.sample(items, len(items))]
    one, other = summarise(scores_of(items)), summarise(scores_of(shuffled))
    for name in NAMES:
        assert other.metric(name).value == pytest.approx(one.metric(name).value, abs=1e-9)


@settings(deadline=None)
@given(any_items)
def test_unscorable_items_change_no_metric_and_are_counted(items):
    reasons = [word for _ in items for word in ("", "too long")]
    doubled = [each for item in items for each in (item, [[0.0, 1, 0, 1]] * 2)]
    # The helper turns odd items; double the good ones' places so that they stay as they are.
    good, both = summarise(scores_of(items)), summarise(scores_of(doubled, reasons=reasons))
    assert both.unscorable == {"too long": len(items)}
    for name in NAMES:
        assert both.metric(name).value == pytest.approx(good.metric(name).value, abs=1e-9)


def test_very_large_losses_overflow_nowhere():
    scores = summarise(scores_of([[[1e6, 10, 3, 9], [1e5, 10, 3, 9]], [[0.0, 10, 3, 9], [1e6, 10, 3, 9]]]))
    assert scores.metric("choice_nll_raw").value == pytest.approx((1e6 - 1e5) / 2)
    assert all(math.isfinite(metric.value) for metric in scores.metrics)


def test_scores_survive_json():
    scores = summarise(scores_of([[[1.0, 2, 3, 2], [2.0, 2, 3, 2]]] * 3))
    assert from_json(Scores, to_json(scores)) == scores


def test_a_metric_is_found_by_either_name_and_an_unknown_one_names_the_known():
    scores = summarise(scores_of([[[1.0, 2, 3, 2], [2.0, 2, 3, 2]]] * 3))
    assert scores.metric("answer_bpb") is scores.metric("answer_bpb[3f2a9c1b]")
    for wrong in ("acc", "answer_bpb[00000000]"):
        with pytest.raises(InputError, match=r"known are: answer_bpb\[3f2a9c1b\]"):
            scores.metric(wrong)


def test_one_cluster_has_no_error_and_no_detectable_difference():
    scores = summarise(scores_of([[[1.0, 2, 3, 2], [2.0, 2, 3, 2]]] * 3, clusters=[1, 1, 1]))
    assert scores.metric("answer_bpb").standard_error is None
    assert scores.detectable is None


def test_saved_scores_load_as_they_were(tmp_path):
    scores = scores_of([[[1.0, 2, 3, 2], [2.0, 2, 3, 2]]] * 3, reasons=["", "x", ""])
    scores.save(tmp_path / "s.npz")
    again = ItemScores.load(tmp_path / "s.npz")
    for field in dataclasses.fields(ItemScores):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(scores, field.name))


def test_a_file_of_another_kind_is_refused(tmp_path):
    np.savez(tmp_path / "s.npz", other=np.zeros(3))
    with pytest.raises(InputError, match="not of this kind"):
        ItemScores.load(tmp_path / "s.npz")


def metric(**changes):
    fields = {"name": "answer_bpb", "item_set": "3f2a9c1b00000000", "value": 2.0}
    rest = {"standard_error": None, "unit": "", "items": 1, "clusters": 1}
    return Metric(**{**fields, **rest, **changes})


def test_numbers_of_the_same_name_are_compared_and_others_refused_naming_both():
    assert compare(metric(), metric(value=1.5)) == -0.5
    with pytest.raises(InputError, match=r"answer_bpb\[3f2a9c1b\] and answer_bpb\[ffffffff\] are not comparable"):
        compare(metric(), metric(item_set="ffffffff00000000"))
    with pytest.raises(InputError, match=r"answer_bpb\[3f2a9c1b\] and accuracy_raw\[3f2a9c1b\]"):
        compare(metric(), metric(name="accuracy_raw"))


def test_the_whole_digest_is_compared_and_not_only_what_the_name_shows():
    with pytest.raises(InputError, match="not comparable"):
        compare(metric(), metric(item_set="3f2a9c1b00000001"))


@settings(deadline=None)
@given(any_items, st.sampled_from(NAMES), st.integers(0, 9))
def test_a_paired_difference_is_the_difference_of_the_metrics(items, name, seed):
    rng = np.random.default_rng(seed)
    other = [[[choice[0] + rng.exponential(), *choice[1:]] for choice in item] for item in items]
    first, second = scores_of(items), scores_of(other)
    found = paired_difference(first, second, metric=name)
    expected = compare(summarise(first).metric(name), summarise(second).metric(name))
    assert found.difference == pytest.approx(expected, abs=1e-9)
    back = paired_difference(second, first, metric=name)
    assert back.difference == pytest.approx(-found.difference, abs=1e-12)
    assert back.p_value == pytest.approx(found.p_value) if len(items) > 1 else back.p_value is None


def test_pairing_finds_what_two_separate_errors_hide():
    rng = np.random.default_rng(0)
    hard = rng.uniform(20, 200, 100)
    first = scores_of([[[nll, 60, 20, 60], [nll, 60, 20, 60]] for nll in hard])
    second = scores_of([[[nll - 2 + rng.normal(), 60, 20, 60], [nll, 60, 20, 60]] for nll in hard])
    found = paired_difference(first, second)
    alone = summarise(first).metric("answer_bpb").standard_error
    assert found.p_value < 1e-6
    assert found.interval.high < 0
    assert abs(found.difference) < alone
    assert found.detectable.difference < abs(found.difference)
    assert found.detectable.paired_sd == pytest.approx(found.standard_error * 10)
    assert found.detectable.basis.startswith("measured")


def test_only_items_that_both_models_were_scored_on_are_paired():
    items = [[[float(n), 2, 3, 2], [2.0, 2, 3, 2]] for n in range(4)]
    first, second = scores_of(items, reasons=["", "x", "", ""]), scores_of(items, reasons=["", "", "y", ""])
    assert paired_difference(first, second).items == 2
    with pytest.raises(InputError, match="no item of 3f2a9c1b00000000 was scored by both"):
        paired_difference(first, scores_of(items, reasons=["x", "", "x", "x"]))


def test_scores_on_different_sets_are_never_paired():
    items = [[[1.0, 2, 3, 2], [2.0, 2, 3, 2]]] * 3
    with pytest.raises(InputError, match=r"answer_bpb\[3f2a9c1b\] and answer_bpb\[eeeeeeee\]"):
        paired_difference(scores_of(items), scores_of(items, item_set="eeeeeeee00000000"))


def test_a_metric_that_is_no_mean_over_items_cannot_be_paired():
    scores = scores_of([[[1.0, 2, 3, 2], [2.0, 2, 3, 2]]] * 3)
    with pytest.raises(InputError, match="no paired metric 'ece_raw'"):
        item_values(scores, "ece_raw")
