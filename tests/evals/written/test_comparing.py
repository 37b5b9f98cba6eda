"""Written answers are compared as scores are: in pairs, with what could have been seen, and never with another kind."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.evals.scored import synthetic_items, synthetic_scores, write_folder
from tests.evals.written.material import grader, sums, written_folder
from wholestack.errors import InputError
from wholestack.evals.comparison import Comparison, compare_results
from wholestack.evals.loading import load_scored
from wholestack.evals.signal import signal_report
from wholestack.record import from_json, to_json


@pytest.fixture
def verdicts():
    rng = np.random.default_rng(3)
    return (rng.random(80) < 0.4).tolist(), (rng.random(80) < 0.75).tolist()


def named(pair):
    return zip("ab", pair, strict=True)


def compared(*folders, **options):
    return compare_results([load_scored(each) for each in folders], **options)


def test_the_difference_of_two_models_is_paired_with_interval_power_and_the_questions_that_differ(tmp_path, verdicts):
    questions, (first, second) = sums(80), verdicts
    found = compared(
        *(written_folder(tmp_path, name, questions, right) for name, right in zip("ab", verdicts, strict=True))
    )
    (pair,) = found.pairs
    differences = np.array(second, float) - np.array(first, float)
    error = differences.std(ddof=1) / math.sqrt(80)
    low, high = stats.t.interval(0.95, 79, differences.mean(), error)
    assert found.metric.startswith("share_right[")
    assert [each.value for each in found.models] == pytest.approx([np.mean(first), np.mean(second)])
    assert (pair.difference, pair.standard_error) == pytest.approx((differences.mean(), error))
    assert (pair.interval.low, pair.interval.high) == pytest.approx((low, high))
    lost, won = int((differences < 0).sum()), int((differences > 0).sum())
    assert (pair.exact.only_first_right, pair.exact.only_second_right) == (lost, won)
    assert pair.exact.p_value == pytest.approx(stats.binomtest(lost, lost + won).pvalue)
    assert pair.detectable.difference == pytest.approx((stats.t.ppf(0.975, 79) + stats.norm.ppf(0.8)) * error)
    assert (pair.verdict, found.lower_is_better, found.purpose) == ("second", False, "reasoning")
    assert from_json(Comparison, to_json(found)) == found


def test_the_questions_on_which_they_differ_come_with_both_answers(tmp_path):
    right = [[True] * 12, [True] * 9 + [False] * 3]
    folders = [written_folder(tmp_path, name, sums(12), each) for name, each in named(right)]
    (pair,) = compared(*folders, shown=2).pairs
    assert [each.id for each in pair.items_apart] == ["s009", "s010"]
    shown = pair.items_apart[0]
    assert (shown.context, shown.answer, shown.first_given, shown.second_given) == ("9 and 9 are", "18", "18", "-1")
    assert (shown.first, shown.second) == (1.0, 0.0)
    assert (pair.flips.only_first, pair.flips.only_second, pair.flips.ids_only_first) == (3, 0, ("s009", "s010"))


def test_of_several_texts_a_question_counts_the_share_that_is_right(tmp_path):
    first = [[True, False]] * 10 + [[False, False]] * 10
    second = [[True, True]] * 10 + [[False, True]] * 10
    folders = [written_folder(tmp_path, name, sums(20), right) for name, right in (("a", first), ("b", second))]
    found = compared(*folders)
    assert [each.value for each in found.models] == [0.25, 0.75]
    assert (found.pairs[0].exact.only_first_right, found.pairs[0].exact.only_second_right) == (0, 20)


def test_equal_are_only_equal_texts_and_equal_verdicts_on_others_are_unknown(tmp_path):
    right = [n % 3 > 0 for n in range(60)]
    one = written_folder(tmp_path, "a", sums(60), right)
    two = written_folder(tmp_path, "b", sums(60), right)
    other = written_folder(tmp_path, "c", sums(60), right, wrong="perhaps {n}")
    assert compared(one, two).pairs[0].verdict == "same"
    assert compared(one, other).pairs[0].verdict == "unknown"


def test_questions_of_one_group_are_one_observation(tmp_path, verdicts):
    found = [
        compared(
            *(
                written_folder(tmp_path / g, n, sums(80, group=g), right)
                for n, right in zip("ab", verdicts, strict=True)
            )
        )
        for g in ("{n}", "{half}")
    ]
    assert [each.clusters for each in found] == [80, 40]
    assert found[0].pairs[0].standard_error != found[1].pairs[0].standard_error


def test_a_question_without_a_verdict_is_in_no_difference_and_counted(tmp_path):
    right = [n % 2 > 0 for n in range(40)]
    one = written_folder(tmp_path, "a", sums(40), right, silent=(3, 5))
    two = written_folder(tmp_path, "b", sums(40), [not each for each in right])
    found = compared(one, two)
    assert (found.items, found.not_by_all) == (38, 2)
    assert found.models[0].unscorable == {"the endpoint was silent": 2}


def test_written_and_scored_results_are_never_compared_and_neither_are_two_purposes(tmp_path):
    items = synthetic_items(12)
    scored = write_folder(tmp_path / "scored", items, synthetic_scores(items, seed=1))
    written = written_folder(tmp_path, "a", sums(12), [True] * 12)
    useful = written_folder(tmp_path, "b", sums(12), [True] * 12, purpose="usefulness")
    for pair, words in (
        ((written, scored), "reasoning inside a loop.* base competence.* different measures and never compared"),
        ((scored, written), "base competence.* reasoning inside a loop"),
        ((written, useful), "reasoning inside a loop.* everyday usefulness"),
    ):
        for by in ("content", "id"):
            with pytest.raises(InputError, match=words):
                compared(*pair, by=by, common=True)


def test_verdicts_by_other_rules_are_not_compared(tmp_path):
    one = written_folder(tmp_path, "a", sums(12), [True] * 12)
    two = written_folder(tmp_path, "b", sums(12), [True] * 12, judge=grader("last_number", "exact"))
    with pytest.raises(InputError, match=r"judged by last_number, number, .* by last_number, exact"):
        compared(one, two, by="id")


def test_texts_written_in_another_way_are_compared_only_by_id_and_said_to_be(tmp_path, verdicts):
    one = written_folder(tmp_path, "a", sums(80), verdicts[0])
    two = written_folder(tmp_path, "b", sums(80), verdicts[1], max_tokens=64)
    with pytest.raises(InputError, match=r"at most 8 tokens.*at most 64 tokens.*--by id"):
        compared(one, two)
    found = compared(one, two, by="id")
    assert found.written_with == ("at most 8 tokens, temperature 0", "at most 64 tokens, temperature 0")
    assert (found.prompts_differ, found.pairs[0].verdict) == (0, "second")


def test_other_prompts_are_compared_only_by_id_and_other_right_answers_never(tmp_path, verdicts):
    one = written_folder(tmp_path, "a", sums(80), verdicts[0])
    two = written_folder(tmp_path, "b", sums(80, prompt="1 and 1 are 2. {n} and {n} are"), verdicts[1])
    with pytest.raises(InputError, match=r"80 ids are the same, but not the text.*--by id"):
        compared(one, two)
    found = compared(one, two, by="id")
    assert (found.matched_by, found.prompts_differ, found.items) == ("id", 80, 80)
    assert found.pairs[0].difference == pytest.approx(np.mean(verdicts[1]) - np.mean(verdicts[0]))
    three = written_folder(tmp_path, "c", sums(80, gold="{twice}0"), verdicts[1])
    with pytest.raises(InputError, match="ask for different things under 80 ids, for instance 's000'"):
        compared(one, three, by="id")


def test_the_spread_of_written_scores_over_seeds_is_measured_too(tmp_path):
    rng = np.random.default_rng(0)
    groups = {
        str(model): [
            load_scored(written_folder(tmp_path, f"{model}-{seed}", sums(60), (rng.random(60) < share).tolist()))
            for seed in range(3)
        ]
        for model, share in enumerate((0.1, 0.5, 0.9))
    }
    (found,) = signal_report(groups).metrics
    assert found.metric.startswith("share_right[")
    assert found.whole.ratio > 2
