"""Verdicts on arrays whose truth is known: coverage, what varies more, and when it cannot be told."""

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.evals.scores import ItemScores, paired_difference
from wholestack.experiments.mixture_results import sentence
from wholestack.experiments.mixture_verdict import expected_spread, judge, judged


def drawn(rng, *, truth, items=200, per_cluster=2, seeds=4, item_sd=0.1, seed_sd=0.0, both_sd=0.05):
    """Differences of a crossed design: an effect of each item's document, of each seed, and of both."""
    clusters = np.repeat(np.arange(items // per_cluster), per_cluster)
    of_cluster = rng.normal(0, item_sd, items // per_cluster)[clusters]
    of_seed = rng.normal(0, seed_sd, seeds)[:, None]
    values = truth + of_cluster + of_seed + rng.normal(0, both_sd, (seeds, items))
    return values, np.ones(items), clusters


def verdict_of(values, weight, clusters, level=0.95):
    return judged(values, weight, clusters, metric="answer_bpb", level=level)


@pytest.mark.parametrize(("item_sd", "seed_sd"), [(0.1, 0.0), (0.1, 0.02), (0.02, 0.05)])
def test_the_interval_covers_the_truth_as_often_as_it_says_and_not_much_more(item_sd, seed_sd):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(600):
        found = verdict_of(*drawn(rng, truth=0.3, item_sd=item_sd, seed_sd=seed_sd))
        inside += found.interval.low <= 0.3 <= found.interval.high
    assert 0.93 <= inside / 600 <= 0.995


def test_items_alone_would_cover_far_too_seldom_where_seeds_vary():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        found = verdict_of(*drawn(rng, truth=0.0, item_sd=0.02, seed_sd=0.05))
        inside += abs(found.value) <= 1.96 * found.spread.items
    assert inside / 300 < 0.5


def test_without_a_difference_a_verdict_is_as_rare_as_its_level_says():
    rng = np.random.default_rng(2)
    told = sum(verdict_of(*drawn(rng, truth=0.0, seed_sd=0.03)).verdict != "cannot be told" for _ in range(500))
    assert told / 500 < 0.08


def test_a_difference_as_large_as_detectable_is_found_about_as_often_as_promised():
    rng = np.random.default_rng(3)
    expected = expected_spread(items=200, clusters=200, seeds=6, paired_sd=0.15, seed_sd=0.02)
    truth = -expected.detectable(0.95)
    design = {"items": 200, "per_cluster": 1, "seeds": 6, "item_sd": 0.15, "seed_sd": 0.02 * 2**0.5, "both_sd": 0.0}
    found = [verdict_of(*drawn(rng, truth=truth, **design)).verdict for _ in range(300)]
    assert 0.7 < found.count("better") / 300 < 0.95
    assert "worse" not in found


def test_what_varies_more_is_named():
    rng = np.random.default_rng(4)
    by_seed = verdict_of(*drawn(rng, truth=0.1, item_sd=0.01, seed_sd=0.2))
    by_item = verdict_of(*drawn(rng, truth=0.1, item_sd=0.5, seed_sd=0.0))
    assert by_seed.spread.larger == "seeds"
    assert by_item.spread.larger == "items"
    assert "more seeds would narrow it" in sentence("B", "A", by_seed)
    assert "more items would narrow it" in sentence("B", "A", by_item)


def test_a_loss_above_the_baselines_is_worse_and_one_below_is_better():
    rng = np.random.default_rng(5)
    worse = verdict_of(*drawn(rng, truth=0.2))
    better = verdict_of(*drawn(rng, truth=-0.2))
    assert sentence("B", "A", worse).startswith("B is worse than A by 0.")
    assert sentence("B", "A", better).startswith("B is better than A by 0.")
    low, high = better.interval.low, better.interval.high
    assert f"({-high:.4f} to {-low:.4f})" in sentence("B", "A", better)
    unknown = verdict_of(*drawn(rng, truth=0.0))
    assert sentence("B", "A", unknown).startswith("Whether B is better or worse than A cannot be told")


def test_one_document_says_nothing_on_others():
    values = np.full((3, 10), -0.5)
    assert verdict_of(values, np.ones(10), np.zeros(10, np.int64)).verdict == "cannot be told"


def scores(nll, *, item_set="s", reasons=None):
    items = len(nll)
    return ItemScores(
        item_set=item_set,
        item_ids=np.array([str(i) for i in range(items)]),
        sources=np.array(["x"] * items),
        clusters=np.arange(items),
        gold=np.zeros(items, np.int64),
        reasons=np.array(reasons or [""] * items),
        truncated=np.zeros(items, bool),
        spanning=np.zeros(items, bool),
        choice_offsets=np.arange(0, 2 * items + 1, 2),
        nll_nats=np.stack([nll, nll + 1], 1).ravel(),
        answer_bytes=np.arange(1, 2 * items + 1),
        answer_chars=np.full(2 * items, 4),
        answer_tokens=np.full(2 * items, 2),
        positions=0,
    )


def test_the_difference_is_the_mean_over_seeds_of_the_paired_differences():
    rng = np.random.default_rng(6)
    first = [scores(rng.uniform(1, 5, 30)) for _ in range(3)]
    second = [scores(rng.uniform(1, 5, 30)) for _ in range(3)]
    found = judge(first, second)
    paired = [paired_difference(one, two).difference for one, two in zip(first, second, strict=True)]
    assert found.by_seed == pytest.approx(paired)
    assert found.value == pytest.approx(np.mean(paired))


def test_an_item_that_one_run_could_not_score_is_left_out_of_all():
    rng = np.random.default_rng(7)
    runs = [rng.uniform(1, 5, 30) for _ in range(4)]
    reasons = ["not finite", *[""] * 29]
    with_gap = judge([scores(runs[0]), scores(runs[1])], [scores(runs[2], reasons=reasons), scores(runs[3])])
    gaps = [scores(run, reasons=reasons) for run in runs]
    assert with_gap.value == judge(gaps[:2], gaps[2:]).value


def test_other_items_or_a_single_seed_are_refused():
    one = scores(np.ones(5))
    with pytest.raises(InputError, match="two or more seeds"):
        judge([one], [one])
    with pytest.raises(InputError, match="different items"):
        judge([one, one], [one, scores(np.ones(5), item_set="t")])
