"""The share of right answers, its error, and everything that is in no share; by independent computation."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.evals.written.material import question
from wholestack.evals.written.grading import Graded
from wholestack.evals.written.summary import pass_at, summarise_written


def graded(*grades, reason="why", samples=1, cut=False):
    return [
        Graded(
            id=str(n // samples),
            sample=n % samples,
            grade=grade,
            tokens=10,
            reason=reason if grade in ("unparsable", "unwritten") else "",
            cut=cut,
        )
        for n, grade in enumerate(grades)
    ]


def asked(count, group=None):
    return [question("1", id=str(n), group=group(n) if group else "") for n in range(count)]


def test_a_text_without_an_answer_is_not_right_and_is_counted_by_reason():
    found = summarise_written(asked(4), graded("right", "unparsable", "unparsable", "wrong", cut=True))
    assert (found.right, found.judged, found.share_right) == (1, 4, 0.25)
    assert found.unparsable == {"why": 2}
    assert found.unparsable_cut == 2


def test_what_cannot_be_told_is_in_no_share_and_bounds_it():
    found = summarise_written(asked(4), graded("right", "wrong", "unknown", "unwritten"))
    assert (found.share_right, found.lowest, found.highest) == (0.5, 0.25, 0.75)
    assert found.unwritten == {"why": 1}
    assert (found.tokens_written, found.tokens_per_text) == (30, 10)


def test_single_questions_have_the_exact_interval():
    found = summarise_written(asked(30), graded(*["right"] * 7, *["wrong"] * 23))
    exact = binomtest(7, 30).proportion_ci(0.95, method="exact")
    assert (found.interval.low, found.interval.high) == pytest.approx((exact.low, exact.high))
    assert found.interval_kind == "exact binomial"


def test_groups_make_the_interval_wider():
    grades = graded(*(["right"] * 5 + ["wrong"] * 5) * 4)
    alone = summarise_written(asked(40), grades)
    grouped = summarise_written(asked(40, group=lambda n: f"g{n // 5}"), grades)
    width = lambda found: found.interval.high - found.interval.low  # noqa: E731
    assert grouped.interval_kind == "cluster-robust over 8 groups"
    assert width(grouped) > 1.5 * width(alone)


def test_groups_that_all_agree_do_not_claim_certainty():
    found = summarise_written(asked(10, group=lambda n: f"g{n // 5}"), graded(*["right"] * 10))
    assert found.interval.low == pytest.approx(binomtest(2, 2).proportion_ci(0.95, method="exact").low)


def test_no_verdict_is_no_share():
    found = summarise_written(asked(2), graded("unknown", "unwritten"))
    assert (found.share_right, found.interval) == (None, None)
    assert "share_right" not in found.flat
    assert summarise_written([], []).share_right is None


@given(texts=st.integers(1, 8), data=st.data())
def test_pass_at_k_is_the_mean_over_all_ways_to_draw_k(texts, data):
    right, k = data.draw(st.integers(0, texts)), data.draw(st.integers(1, texts))
    verdicts = [True] * right + [False] * (texts - right)
    ways = list(combinations(verdicts, k))
    assert pass_at(k, right=right, texts=texts) == pytest.approx(sum(map(any, ways)) / len(ways))


def test_pass_at_k_rests_on_questions_with_all_their_verdicts():
    grades = graded("right", "wrong", "wrong", "unknown", "wrong", "unparsable", samples=2)
    found = summarise_written(asked(3), grades)
    assert found.pass_at == {"1": 0.25, "2": 0.5}
    assert found.pass_at_questions == 2


@given(order=st.permutations(range(12)))
def test_order_changes_nothing(order):
    grades = graded(*["right", "wrong", "unparsable", "unknown", "right", "wrong"] * 2, samples=2)
    questions = asked(6, group=lambda n: f"g{n % 3}")
    assert summarise_written(questions, [grades[n] for n in order]) == summarise_written(questions, grades)
