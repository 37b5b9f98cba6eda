"""Search and random search are compared at equal cost, failures included."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from wholestack.report.baselines import baselines, beaten, best_so_far, within

from .reading import read
from .trials import trial


def test_a_failed_trial_costs_and_brings_nothing():
    runs = [trial(cost=1.0, at=0, m=3.0), trial(cost=2.0, at=1, outcome="diverged"), trial(cost=4.0, at=2, m=2.0)]
    assert best_so_far(runs, "m") == [(1.0, 3.0), (3.0, 3.0), (7.0, 2.0)]


def test_trials_count_in_the_order_in_which_they_ended():
    runs = [trial(cost=1.0, at=5, m=1.0), trial(cost=2.0, at=0, m=3.0)]
    assert best_so_far(runs, "m") == [(2.0, 3.0), (3.0, 1.0)]


@given(st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=1, max_size=15), st.floats(0.5, 60))
def test_what_is_within_a_limit_costs_no_more_and_one_more_would(pairs, limit):
    runs = [trial(cost=cost, at=float(at), m=metric) for at, (cost, metric) in enumerate(pairs)]
    kept = within(runs, limit)
    assert kept == runs[: len(kept)]
    assert sum(each.cost_flops for each in kept) <= limit * (1 + 1e-8)
    if len(kept) < len(runs):
        assert sum(each.cost_flops for each in runs[: len(kept) + 1]) > limit


def test_a_trial_is_beaten_by_a_better_one_that_cost_no_more():
    ours = [trial(cost=1.0, m=3.0), trial(cost=5.0, m=1.0)]
    theirs = [trial(cost=1.0, m=3.5), trial(cost=0.5, m=9.0), trial(cost=6.0, m=2.0), trial(cost=2.0, m=3.0)]
    assert beaten(theirs, ours, "m") == 2
    assert beaten(ours, theirs, "m") == 0


def test_the_comparison_is_made_at_the_cost_that_both_have_spent(drawn):
    runs = (
        trial("a", cost=1e10, at=0, role="random", answer_bpb=3.0),
        trial("b", cost=1e10, at=1, answer_bpb=2.7),
        trial("c", cost=1e10, at=2, answer_bpb=1.0),
    )
    words = read(baselines(replace(drawn("inside").evidence, trials=runs))).words()
    assert (
        "After 1.0e10 FLOPs spent on each, the best answer_bpb of random search was 3.000 and that of the search"
        in words
    )
    assert "2.700, 10.0 % lower" in words
    assert "1 of 1 random ones were beaten" in words


def test_the_other_baselines_stand_in_one_table(drawn):
    run = drawn("inside")
    words = read(baselines(run.evidence)).words()
    assert "unigram model of the training tokens 4.873" in words
    assert "prediction by straight line in log-log" in words
    assert "only size and tokens scaled 1.752" in words


def test_a_unigram_figure_that_is_missing_is_said_to_be(drawn):
    evidence = replace(drawn("inside").evidence, unigram_bpb=None)
    assert "unigram model of the training tokens – 1.701 not computed" in read(baselines(evidence)).words()
