"""Sentences about accuracy and mixture are computed, and say nothing that the trials do not say."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.experiments.records import ForecastPoint
from wholestack.report.comparisons import (
    accuracy_against_loss,
    chance_accuracy,
    departure,
    mixture,
    rank_correlation,
    residual,
)

from .reading import read
from .trials import trial


def _pair(loss, accuracy, error=0.02, cost=1e10, name="t"):
    return trial(name, cost=cost, errors={"accuracy": error, "answer_bpb": 0.01}, answer_bpb=loss, accuracy=accuracy)


def test_accuracy_leaves_chance_where_all_better_runs_are_clear_of_it():
    runs = [_pair(3.0, 0.30), _pair(2.8, 0.26), _pair(2.5, 0.33, name="first"), _pair(2.0, 0.6), _pair(2.6, 0.28)]
    left = departure(runs, "accuracy", 0.25)
    assert left.trial.name == "first"
    assert left.earlier == 1


def test_accuracy_has_not_left_chance_when_the_best_run_is_not_clear_of_it():
    assert departure([_pair(3.0, 0.5), _pair(2.0, 0.26)], "accuracy", 0.25) is None


def test_a_run_without_a_standard_error_is_never_clear_of_chance():
    assert departure([trial(answer_bpb=2.0, accuracy=0.9)], "accuracy", 0.25) is None


@given(st.lists(st.tuples(st.floats(1, 4), st.floats(0, 1)), min_size=1, max_size=12))
def test_every_run_from_the_departure_on_is_clear_and_the_one_before_is_not(pairs):
    runs = [_pair(loss, accuracy, name=str(place)) for place, (loss, accuracy) in enumerate(pairs)]
    ordered = sorted(runs, key=lambda each: -each.metrics["answer_bpb"])
    clear = [each.metrics["accuracy"] - 0.04 > 0.25 for each in ordered]
    left = departure(runs, "accuracy", 0.25)
    if left is None:
        assert not clear[-1]
    else:
        place = ordered.index(left.trial)
        assert all(clear[place:])
        assert place == 0 or not clear[place - 1]
        assert left.earlier == sum(clear[:place])


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=20, unique=True), st.randoms())
def test_rank_correlation_is_that_of_the_textbook_formula(left, rng):
    right = list(left)
    rng.shuffle(right)
    ranks = [{value: rank for rank, value in enumerate(sorted(column))} for column in (left, right)]
    squares = sum((ranks[0][x] - ranks[1][y]) ** 2 for x, y in zip(left, right, strict=True))
    expected = 1 - 6 * squares / (len(left) * (len(left) ** 2 - 1))
    assert math.isclose(rank_correlation(left, right).rho, expected, abs_tol=1e-9)


def test_a_constant_column_has_no_rank_correlation():
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).rho is None
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]).rho is None
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).told() == "not computable"


def test_chance_comes_from_the_items_and_is_unknown_without_them(drawn, tmp_path):
    evidence = drawn("inside").evidence
    assert chance_accuracy(evidence) == 0.25
    (tmp_path / "items").mkdir()
    mixed = [{"choices": ["a", "b"]}, {"choices": ["a", "b", "c", "d"]}]
    (tmp_path / "items" / "items.jsonl").write_text("\n".join(map(json.dumps, mixed)))
    assert chance_accuracy(replace(evidence, folder=tmp_path)) == 0.375
    for damaged in ('{"choices": 3}', "{", '{"choices": []}'):
        (tmp_path / "items" / "items.jsonl").write_text(damaged)
        assert chance_accuracy(replace(evidence, folder=tmp_path)) is None
    words = read(accuracy_against_loss(replace(evidence, folder=tmp_path))).words()
    assert "the accuracy of guessing is not known" in words


def test_the_movement_is_told_in_standard_errors(drawn):
    runs = [_pair(3.0 - 0.1 * place, 0.25 + 0.02 * place, cost=1e10 * 2**place) for place in range(8)]
    words = read(accuracy_against_loss(replace(drawn("inside").evidence, trials=tuple(runs)))).words()
    # Medians of the two cheapest and the two costliest lie six steps apart: 0.6 / 0.01 and 0.12 / 0.02.
    assert "the median answer loss moved by 60.0 of its standard errors, the median accuracy by 6.0" in words
    assert "answer loss -1.00 (p < 0.001), accuracy +1.00 (p < 0.001)" in words


def test_few_runs_are_called_few(drawn):
    runs = tuple(_pair(3.0 - 0.1 * place, 0.25, cost=1e10 * 2**place) for place in range(4))
    words = read(accuracy_against_loss(replace(drawn("inside").evidence, trials=runs))).words()
    assert "With 4 runs that says little" in words
    assert "accuracy not computable" in words


def test_the_accuracy_that_the_trials_have_is_the_one_that_is_told(drawn):
    runs = tuple(
        trial(str(place), cost=10.0**place, answer_bpb=3.0 - place / 10, accuracy_per_byte=0.3, accuracy_raw=0.9)
        for place in range(4)
    )
    page = read(accuracy_against_loss(replace(drawn("inside").evidence, trials=runs)))
    assert "accuracy_per_byte" in [cell.words() for cell in page.all("th")]
    assert "0.9000" not in page.words()


LAW = [
    ForecastPoint(cost_flops=1e10, value=3.0, low=2.9, high=3.1),
    ForecastPoint(cost_flops=1e12, value=2.0, low=1, high=3),
]


@pytest.mark.parametrize(("cost", "law"), [(1e10, 3.0), (1e11, 2.5), (1e12, 2.0), (1e9, 3.0), (1e13, 2.0)])
def test_the_residual_is_measured_against_the_law_at_the_same_cost(cost, law):
    assert residual(trial(cost=cost, answer_bpb=1.1 * law), "answer_bpb", LAW) == pytest.approx(0.1)


def _mixed(drawn, slope):
    evidence = drawn("inside").evidence
    laws = replace(evidence.laws, curve=tuple(LAW))
    noise = [0.011, -0.008, 0.004, 0.013, -0.012, 0.001, -0.005, 0.009, -0.002, 0.007]
    runs = tuple(
        trial(
            f"t{place}",
            cost=1e11,
            params={"prose_weight": place / 10},
            answer_bpb=2.5 * (1 + slope * place + noise[place]),
        )
        for place in range(10)
    )
    return read(mixture(replace(evidence, trials=runs, laws_search=laws, laws_rung=laws))).words()


def test_an_effect_of_the_mixture_is_told_only_where_there_is_one(drawn):
    assert "More prose went with a larger distance" in _mixed(drawn, 0.02)
    assert "More prose went with a smaller distance" in _mixed(drawn, -0.02)
    assert "no monotone effect of the mixture" in _mixed(drawn, 0.0)


def test_without_the_setting_or_the_law_the_section_says_so(drawn):
    evidence = drawn("inside").evidence
    assert "No completed trial has a setting named prose_weight" in mixture(replace(evidence, trials=()))
    assert "Without a law" in mixture(drawn("refused").evidence)
