import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wholestack.errors import InputError
from wholestack.evals.comparison import Comparison, compare_results, exact_mcnemar
from wholestack.evals.statistics import detectable_difference, holm
from wholestack.record import from_json, to_json

from .scored import result_of, with_values

METRICS = ["answer_bpb", "answer_bpb_macro", "accuracy", "choice_nll_per_byte", "brier", "accuracy_per_token"]


def two_results(seed=0, items=60, *, gain=1.0, **others):
    rng = np.random.default_rng(seed)
    values, gold = rng.normal(-8, 2, (items, 3)), rng.integers(0, 3, items)
    moved = values + rng.normal(0, 1, values.shape)
    moved[np.arange(items), gold] += gain
    return result_of(values, gold, name="one", **others), result_of(moved, gold, name="two", **others)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(METRICS))
def test_turning_two_models_round_turns_everything_round(seed, metric):
    first, second = two_results(seed, gain=0.4, clusters=np.arange(60) // 2, sources=["p", "q"] * 30)
    there, back = compare_results([first, second], metric=metric), compare_results([second, first], metric=metric)
    one, other = there.pairs[0], back.pairs[0]
    assert one.difference == -other.difference
    assert (one.interval.low, one.interval.high) == pytest.approx((-other.interval.high, -other.interval.low))
    assert one.p_value == pytest.approx(other.p_value)
    turned = {"first": "second", "second": "first"}
    assert other.verdict == turned.get(one.verdict, one.verdict)
    assert [each.difference for each in one.sources] == [-each.difference for each in other.sources]
    assert [each.id for each in one.items_apart] == [each.id for each in other.items_apart]
    assert one.flips.ids_only_first == other.flips.ids_only_second
    if one.difference:  # of two with the same value either may stand first
        assert {there.models[rank.model].name for rank in there.ranking[:1]} == {
            back.models[rank.model].name for rank in back.ranking[:1]
        }


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from(METRICS))
def test_the_order_of_items_changes_no_bit(seed, metric):
    rng = np.random.default_rng(seed)
    values, gold, order = rng.normal(-8, 2, (40, 3)), rng.integers(0, 3, 40), rng.permutation(40)
    clusters, texts = rng.integers(0, 15, 40), [f"text {n}" for n in range(40)]
    moved = values + rng.normal(0, 1, values.shape)

    def made(numbers, name, places):
        return result_of(
            numbers[places],
            gold[places],
            name=name,
            ids=[f"i{n}" for n in places],
            texts=[texts[n] for n in places],
            clusters=clusters[places],
            sources=[f"s{n % 2}" for n in places],
        )

    straight = compare_results([made(values, "a", np.arange(40)), made(moved, "b", np.arange(40))], metric=metric)
    shuffled = compare_results([made(values, "a", order), made(moved, "b", np.arange(40))], metric=metric)
    assert to_json(straight) == to_json(shuffled)


def test_a_better_model_is_found_and_said_to_be_better():
    found = compare_results(list(two_results(gain=2.0)))
    assert found.pairs[0].verdict == "second"
    assert found.pairs[0].interval.high < 0
    assert [rank.model for rank in found.ranking] == [1, 0]
    assert found.ranking[0].apart_from_next is True
    accuracy = compare_results(list(two_results(gain=4.0)), metric="accuracy")
    assert accuracy.pairs[0].verdict == "second"
    assert accuracy.pairs[0].difference > 0
    assert from_json(Comparison, to_json(found)) == found


def test_the_same_numbers_are_equal_and_not_unknown():
    first, _ = two_results()
    found = compare_results([first, first])
    assert (found.pairs[0].verdict, found.pairs[0].difference) == ("same", 0.0)


def simulated(trials, *, items, difference=0.0, models=2, metric="choice_nll", size=1, noise=1.0):
    """Share of trials with a verdict in any pair, and with the true difference in the interval of the first pair.

    The models are alike but for the ``difference`` of the last one in ``answer_bpb_macro`` (bits per byte of the four
    bytes of an answer) or, for accuracy, in the chance of being right.
    """
    rng = np.random.default_rng(12)
    gold = np.zeros(items, int)
    start = result_of(np.zeros((items, 2)), gold, clusters=np.arange(items) // size)
    decided = covered = 0
    for _ in range(trials):
        results = []
        for model in range(models):
            moved = difference if model == models - 1 else 0.0
            if metric == "accuracy":
                right = rng.random(items) < 0.5 + moved
                values = np.stack([right, ~right], axis=1) - 1.5
            else:
                shared = rng.normal(0, noise, -(-items // size))[np.arange(items) // size]
                bits = 3 + moved + (shared + rng.normal(0, noise, items)) / np.sqrt(2)
                values = np.stack([-bits * 4 * np.log(2), np.full(items, -9.0)], axis=1)
            results.append(with_values(start, values))
        found = compare_results(results, metric=metric, shown=0)
        decided += any(pair.verdict in ("first", "second") for pair in found.pairs)
        interval = found.pairs[0].interval
        covered += interval.low <= (difference if models == 2 else 0.0) <= interval.high
    return decided / trials, covered / trials


@pytest.mark.parametrize(("metric", "size"), [("answer_bpb_macro", 1), ("answer_bpb_macro", 4), ("accuracy", 1)])
def test_equal_models_are_told_apart_about_once_in_twenty_and_intervals_cover(metric, size):
    decided, covered = simulated(400, items=80, metric=metric, size=size)
    assert decided <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert covered == pytest.approx(0.95, abs=0.035)
    if metric != "accuracy":
        assert decided >= 0.02


def test_of_four_equal_models_any_pair_is_told_apart_at_most_once_in_twenty():
    decided, _ = simulated(250, items=60, models=4, metric="answer_bpb_macro")
    assert decided <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 250)


def test_what_is_called_detectable_is_decided_four_times_in_five():
    difference = detectable_difference(items=80, paired_sd=np.sqrt(2)).difference
    decided, covered = simulated(300, items=80, difference=difference, metric="answer_bpb_macro")
    assert decided == pytest.approx(0.8, abs=0.07)
    assert covered == pytest.approx(0.95, abs=0.035)


def test_the_items_said_to_be_needed_would_do():
    first, second = two_results(3, gain=0.15)
    pair = compare_results([first, second], metric="answer_bpb_macro").pairs[0]
    assert pair.verdict == "unknown"
    spread = pair.detectable.paired_sd
    enough = detectable_difference(items=pair.items_needed, paired_sd=spread).difference
    assert enough == pytest.approx(abs(pair.difference), rel=0.03)


@given(st.lists(st.sampled_from([(1, 1), (1, 0), (0, 1), (0, 0), (0.5, 0)]), min_size=1, max_size=60))
def test_the_exact_test_is_the_binomial_one_on_items_that_only_one_has_right(pairs):
    one, other = (np.array(column, float) for column in zip(*pairs, strict=True))
    found = exact_mcnemar(one, other)
    b, c = pairs.count((1, 0)), pairs.count((0, 1))
    assert (found.only_first_right, found.only_second_right) == (b, c)
    assert found.p_value == pytest.approx(stats.binomtest(b, b + c).pvalue if b + c else 1.0)


def test_five_wins_and_no_loss_are_not_enough_although_t_thinks_so():
    values, gold = np.tile([0.0, -1.0], (100, 1)), np.zeros(100, int)
    other = values.copy()
    other[:5] = [-1.0, 0.0]
    found = compare_results([result_of(values, gold), result_of(other, gold)], metric="accuracy").pairs[0]
    assert found.interval.high < 0
    assert found.p_value == pytest.approx(2 * 0.5**5)
    assert found.verdict == "unknown"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_stepwise_rule_rejects(p_values):
    adjusted = holm(p_values)
    order = np.argsort(p_values, kind="stable")
    rejected = []
    for rank, at in enumerate(order):
        if p_values[at] * (len(p_values) - rank) >= 0.05:
            break
        rejected.append(at)
    assert {at for at, value in enumerate(adjusted) if value < 0.05} == set(rejected)
    assert all(value >= p for value, p in zip(adjusted, p_values, strict=True))


def test_a_pair_without_an_error_is_no_test_and_never_decided():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, None, 0.01]) == [pytest.approx(0.02), None, pytest.approx(0.02)]
    first, second = two_results(clusters=[0] * 60)
    found = compare_results([first, second])
    assert (found.pairs[0].verdict, found.pairs[0].p_holm, found.clusters) == ("unknown", None, 1)


def test_several_models_are_ranked_and_neighbours_that_cannot_be_told_apart_are_named():
    rng = np.random.default_rng(8)
    gold = np.zeros(200, int)
    base = rng.normal(-9, 2, (200, 2))
    gains = {"bad": 0.0, "good": 3.0, "as good": 3.0}
    results = [
        result_of(base + rng.normal(0, 0.5, base.shape) + [gain, 0], gold, name=name) for name, gain in gains.items()
    ]
    found = compare_results(results)
    assert len(found.pairs) == 3
    assert found.ranking[2].model == 0
    assert {rank.model for rank in found.ranking[:2]} == {1, 2}
    assert [rank.apart_from_next for rank in found.ranking] == [False, True, None]
    assert found.ranking[0].not_apart_from == (found.ranking[1].model,)
    assert all(pair.detectable.level == pytest.approx(0.05 / 3) for pair in found.pairs)


def test_the_source_in_which_models_differ_is_named_and_the_others_are_not():
    rng = np.random.default_rng(9)
    values, gold = rng.normal(-8, 1, (400, 2)), np.zeros(400, int)
    sources = [f"s{n % 8}" for n in range(400)]
    moved = values + rng.normal(0, 0.5, values.shape)
    moved[np.arange(400) % 8 == 3, 0] += 2
    found = compare_results([result_of(values, gold, sources=sources), result_of(moved, gold, sources=sources)])
    assert [each.source for each in found.pairs[0].sources if each.differs] == ["s3"]
    assert sum(each.items for each in found.pairs[0].sources) == 400


def test_a_source_of_few_items_is_counted_and_never_judged_by_itself():
    first, second = two_results(gain=5.0, sources=["large"] * 50 + ["small"] * 9 + ["single"])
    by_source = {each.source: each for each in compare_results([first, second]).pairs[0].sources}
    assert by_source["large"].differs
    for name, items in (("small", 9), ("single", 1)):
        found = by_source[name]
        assert (found.items, found.interval, found.p_holm, found.differs) == (items, None, None, False)


def test_items_furthest_apart_and_flips_are_listed_to_a_bound():
    values, gold = np.tile([-1.0, -2.0], (30, 1)), np.zeros(30, int)
    moved = values.copy()
    moved[4, 0], moved[7, 0], moved[9, 0] = -9, -5, -0.5
    found = compare_results([result_of(values, gold), result_of(moved, gold)], shown=2).pairs[0]
    assert [each.id for each in found.items_apart] == ["item-00004", "item-00007"]
    assert (found.items_apart[0].first, found.items_apart[0].second) == (-1.0, -9.0)
    assert "question 4" in found.items_apart[0].context
    assert (found.flips.only_first, found.flips.only_second) == (2, 0)
    assert found.flips.ids_only_first == ("item-00004", "item-00007")


def test_items_that_one_model_could_not_be_scored_on_are_counted_and_not_compared():
    first, second = two_results()
    rng = np.random.default_rng(0)
    reasons = ["too long" if n < 7 else "" for n in range(60)]
    values, gold = rng.normal(-8, 2, (60, 3)), rng.integers(0, 3, 60)
    found = compare_results([result_of(values, gold, reasons=reasons), result_of(values, gold)])
    assert (found.items, found.not_by_all) == (53, 7)
    assert [model.unscorable for model in found.models] == [{"too long": 7}, {}]
    with pytest.raises(InputError, match="no item was scored by all of results/model, results/model"):
        compare_results([result_of(values, gold, reasons=["x"] * 60), result_of(values, gold)])
    assert first.keys == second.keys


def test_different_items_are_refused_naming_both_unless_common_items_are_asked_for():
    rng = np.random.default_rng(1)
    values, gold = rng.normal(size=(20, 2)), np.zeros(20, int)
    whole, part = result_of(values, gold, name="whole"), result_of(values[:12] + 1, gold[:12], name="part")
    with pytest.raises(InputError, match=r"results/whole \(20 items\) and results/part \(12 items\).* 12 in common"):
        compare_results([whole, part])
    found = compare_results([whole, part], common=True)
    assert found.items == 12
    assert [model.left_out for model in found.models] == [8, 0]
    alone = compare_results([result_of(values[:12], gold[:12]), part])
    assert found.pairs[0].difference == alone.pairs[0].difference
    assert not found.metric.endswith(f"[{whole.scores.item_set[:8]}]")


def test_the_same_ids_with_another_text_are_no_common_items():
    values, gold = np.zeros((5, 2)), np.zeros(5, int)
    other = result_of(values, gold, name="other", texts=[f"changed {n}" for n in range(5)])
    with pytest.raises(InputError, match="no item in common") as caught:
        compare_results([result_of(values, gold), other], common=True)
    assert "5 ids are the same, but not the text" in caught.value.remedy


def test_another_right_answer_is_another_item():
    values = np.zeros((5, 2))
    with pytest.raises(InputError, match="4 in common"):
        compare_results([result_of(values, [0, 0, 0, 0, 0]), result_of(values, [0, 0, 1, 0, 0])])


def test_the_coarser_clusters_hold_for_both():
    first, second = two_results()
    coarse = result_of(-second.scores.nll_nats.reshape(60, 3), second.scores.gold, clusters=np.arange(60) // 4)
    there, back = (compare_results(list(each)) for each in itertools.permutations([first, coarse]))
    assert (there.clusters, back.clusters) == (15, 15)


def test_content_that_occurs_twice_is_kept_twice():
    values, gold = np.array([[-1.0, -2.0], [-1.5, -2.0], [-3.0, -1.0]]), np.zeros(3, int)
    first = result_of(values, gold, texts=["x", "x", "y"])
    second = result_of(values - 1, gold, texts=["x", "x", "y"])
    assert compare_results([first, second]).items == 3


@pytest.mark.parametrize("metric", ["ece_raw", "acc", "accuracy_per_word"])
def test_a_metric_that_cannot_be_compared_is_refused_with_the_known_ones(metric):
    with pytest.raises(InputError, match="known are: answer_bpb, "):
        compare_results(list(two_results()), metric=metric)


def test_one_result_and_unknown_token_counts_are_refused():
    first, second = two_results()
    with pytest.raises(InputError, match="two or more results, got 1"):
        compare_results([first])
    silent = dataclasses.replace(second, counts_tokens=False, path="other/program")
    with pytest.raises(InputError, match="other/program: does not say how many tokens"):
        compare_results([first, silent], metric="accuracy_per_token")


def test_alike_in_accuracy_on_every_item_is_not_equal_while_the_numbers_differ():
    values, gold = np.random.default_rng(0).normal(-8, 3, (60, 3)), np.zeros(60, int)
    nearly = result_of(values - 1e-3, gold, name="two")
    (pair,) = compare_results([result_of(values, gold, name="one"), nearly], metric="accuracy").pairs
    assert (pair.verdict, pair.difference, pair.interval, pair.detectable) == ("unknown", 0.0, None, None)
    (pair,) = compare_results([result_of(values, gold, name="one"), result_of(values, gold, name="two")]).pairs
    assert pair.verdict == "same"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("items", [2, 3, 4, 9])
def test_a_few_items_decide_nothing_however_alike_their_differences(metric, items):
    gold = np.zeros(items, int)
    bad, good = np.tile([-9.0, -1.0], (items, 1)), np.tile([-1.0, -9.0], (items, 1))
    (pair,) = compare_results(
        [result_of(bad, gold, name="one"), result_of(good, gold, name="two")], metric=metric
    ).pairs
    assert pair.verdict == "unknown"
    assert pair.p_value is None or pair.p_value >= 2.0 ** (1 - items)


def test_the_same_questions_under_other_prompts_are_matched_by_id_where_it_is_asked_for():
    rng = np.random.default_rng(5)
    values, gold = rng.normal(-8, 2, (60, 3)), rng.integers(0, 3, 60)
    plain = result_of(values, gold, name="zero")
    order = rng.permutation(60)
    shown = result_of(
        values[order] + 1.0 * (np.arange(3) == gold[order, None]),
        gold[order],
        name="few",
        ids=[f"item-{n:05}" for n in order],
        texts=[f"an example\n\nquestion {n}" if n else "question 0" for n in order],
    )
    with pytest.raises(InputError, match=r"--by id compares them where only the prompts differ"):
        compare_results([plain, shown])
    found = compare_results([plain, shown], by="id", metric="answer_bpb_macro")
    assert (found.matched_by, found.prompts_differ, found.items) == ("id", 59, 60)
    assert found.pairs[0].difference == pytest.approx(-1 / (4 * np.log(2)))
    assert found.pairs[0].verdict == "second"
    alike = compare_results([plain, plain], by="id")
    assert (alike.matched_by, alike.prompts_differ, alike.metric) == ("id", 0, compare_results([plain, plain]).metric)
    assert found.metric != compare_results([plain, plain], metric="answer_bpb_macro").metric


@pytest.mark.parametrize("what", ["gold", "choices", "twice", "way"])
def test_by_id_nothing_but_the_prompt_may_differ(what):
    values, gold = np.random.default_rng(5).normal(-8, 2, (12, 3)), np.zeros(12, int)
    plain = result_of(values, gold)
    if what == "twice":
        with pytest.raises(InputError, match="id 'a' is there twice"):
            compare_results([plain, result_of(values, gold, ids=["a"] * 12)], by="id")
    elif what == "way":
        with pytest.raises(InputError, match="by content or by id"):
            compare_results([plain, plain], by="name")
    else:
        other = result_of(values[:, :2], gold) if what == "choices" else result_of(values, gold + (np.arange(12) == 0))
        with pytest.raises(InputError, match=r"under \d+ ids, for instance 'item-00000': other choices"):
            compare_results([plain, other], by="id")
