import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.evals.detectable import detectable_accuracy, detectable_before_scoring
from wholestack.evals.statistics import mean_estimate, p_value


def share_found(difference, *, items, agreement, trials=3000):
    """How often the paired test finds it where models differ on ``1 - agreement`` of the items."""
    rng = np.random.default_rng(3)
    differing = 1 - agreement
    better, worse = (differing + difference) / 2, (differing - difference) / 2
    found = 0
    for _ in range(trials):
        values = rng.choice([1.0, -1.0, 0.0], size=items, p=[better, worse, 1 - better - worse])
        found += (p_value(mean_estimate(values, np.arange(items))) or 1) < 0.05
    return found / trials


@pytest.mark.parametrize(("items", "agreement"), [(200, 0.7), (500, 0.8), (1000, 0.95)])
def test_a_detectable_accuracy_is_found_four_times_in_five(items, agreement):
    claim = detectable_accuracy(items=items, agreement=agreement)
    assert share_found(claim.difference, items=items, agreement=agreement) == pytest.approx(0.8, abs=0.04)
    assert share_found(0.0, items=items, agreement=agreement) == pytest.approx(0.05, abs=0.02)


@given(st.integers(8, 5000), st.floats(0.1, 0.95))
def test_more_items_and_more_agreement_show_smaller_differences(items, agreement):
    base = detectable_accuracy(items=items, agreement=agreement).difference
    assert detectable_accuracy(items=items * 2, agreement=agreement).difference < base
    assert detectable_accuracy(items=items, agreement=(1 + agreement) / 2).difference <= base
    assert 0 < base <= 1


def test_what_cannot_be_detected_at_all_is_absent_and_one_cluster_detects_nothing():
    assert detectable_accuracy(items=3) is None
    assert [each.metric for each in detectable_before_scoring(items=3)] == [
        "answer_bpb, bits per byte",
        "choice_nll_per_byte, nats",
    ]
    assert detectable_before_scoring(items=100, clusters=1) == ()


def test_every_one_says_that_its_basis_is_assumed():
    found = detectable_before_scoring(items=500, answer_bytes=64)
    assert [each.metric.partition(",")[0] for each in found] == [
        "answer_bpb",
        "choice_nll_per_byte",
        "choice_nll_raw",
        "accuracy",
    ]
    assert all("assumed" in each.basis for each in found)
    assert found[2].difference == pytest.approx(64 * found[1].difference)
    assert "64 bytes" in found[2].basis
    assert "80%" in found[3].basis
    with pytest.raises(InputError, match="agreement is 2"):
        detectable_accuracy(items=10, agreement=2)


def test_items_of_a_passage_are_worth_fewer_than_items_by_themselves():
    alone = detectable_accuracy(items=1000)
    grouped = detectable_accuracy(items=1000, clusters=100)
    as_many = detectable_accuracy(items=round(1000 / 1.9))
    assert grouped.difference == pytest.approx(as_many.difference, rel=0.02)
    assert grouped.difference > 1.3 * alone.difference
    assert "correlate by 0.1" in grouped.basis
    assert "correlate" not in alone.basis


def test_the_stated_power_holds_where_differences_of_a_passage_correlate_as_assumed():
    """100 passages of 10 items; a difference of a passage's own beside that of each item."""
    rng = np.random.default_rng(5)
    found = next(
        each for each in detectable_before_scoring(items=1000, clusters=100) if each.metric.startswith("answer_bpb")
    )
    clusters = np.repeat(np.arange(100), 10)
    seen = 0
    for _ in range(400):
        own = rng.normal(0, np.sqrt(0.1), 100)[clusters] + rng.normal(0, np.sqrt(0.9), 1000)
        p = p_value(mean_estimate(found.difference + found.paired_sd * own, clusters))
        seen += p < 0.05
    assert 0.73 < seen / 400 < 0.87
