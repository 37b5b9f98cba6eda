"""Goals: written down first, measured under a definition, and kept on the disk."""

import math

import pytest

from wholestack.errors import InputError, RunDirectoryError
from wholestack.evals.goals import (
    Measurement,
    goals_in,
    make_goal,
    measure_goal,
    outdated,
    read_definitions,
    read_goal,
    read_measurements,
    set_goal,
    standard_error,
    targets,
)


def _goal(**changes):
    said = {"measure": "share of outputs accepted", "better": "higher", "matters": 0.02, "set_at": 1.0} | changes
    return make_goal("accepted", **said)


@pytest.fixture
def path(tmp_path):
    set_goal(tmp_path, _goal())
    return tmp_path / "accepted"


def test_a_goal_comes_back_as_it_was_set(path):
    assert read_goal(path) == _goal()
    assert goals_in(path.parent) == ["accepted"]


def test_measurements_of_one_model_are_taken_together_by_precision(path):
    measure_goal(path, "m", 0.5, error=0.1, at=5.0)
    measure_goal(path, "m", 0.8, error=0.2, at=3.0)
    measure_goal(path, "other", 0.1, at=4.0)
    together, other = targets(path)
    assert together.value == pytest.approx((0.5 / 0.01 + 0.8 / 0.04) / (1 / 0.01 + 1 / 0.04))
    assert together.error == pytest.approx((1 / 0.01 + 1 / 0.04) ** -0.5)
    assert (together.measurements, together.first_at) == (2, 3.0)
    assert (other.value, other.error) == (0.1, None)


def test_one_measurement_without_an_error_leaves_the_mean_without_one(path):
    measure_goal(path, "m", 0.5, error=0.1, at=5.0)
    measure_goal(path, "m", 0.7, at=5.0)
    (only,) = targets(path)
    assert (only.value, only.error) == (pytest.approx(0.6), None)


def test_a_share_that_is_all_or_nothing_still_has_an_error(path):
    made = measure_goal(path, "m", 1.0, n=20, at=5.0)
    assert isinstance(made, Measurement)
    assert standard_error(made) == pytest.approx(math.sqrt(21 / 22 * (1 / 22) / 22))


def test_measurements_of_another_definition_do_not_count(path):
    measure_goal(path, "m", 0.5, at=5.0)
    before = set_goal(path.parent, _goal(how="by three reviewers", set_at=6.0))
    assert before == _goal()
    assert (read_measurements(path), outdated(path)) == ([], 1)
    assert [each.set_at for each in read_definitions(path)] == [1.0, 6.0]


def test_what_matters_may_change_without_losing_measurements(path):
    measure_goal(path, "m", 0.5, at=5.0)
    set_goal(path.parent, _goal(matters=0.05, by="others", set_at=6.0))
    assert len(read_measurements(path)) == 1
    assert read_goal(path).matters == 0.05


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"measure": " "}, "measure is empty"), ({"matters": 0.0}, "must be above zero"), ({"matters": math.nan}, "nan")],
)
def test_a_goal_without_substance_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        _goal(**changes)


@pytest.mark.parametrize("name", ["", "../up", "a b", ".hidden", "x" * 65])
def test_a_name_that_could_leave_the_folder_is_refused(name):
    with pytest.raises(InputError, match="no name of a goal"):
        make_goal(name, measure="m", better="lower", matters=1, set_at=0.0)


@pytest.mark.parametrize(
    ("value", "more", "words"),
    [
        (math.inf, {}, "finite"),
        (0.5, {"error": -1.0}, "0 or more"),
        (0.5, {"error": math.nan}, "0 or more"),
        (0.5, {"n": 0}, "1 or more"),
    ],
)
def test_a_measurement_that_is_no_number_is_refused(path, value, more, words):
    with pytest.raises(InputError, match=words):
        measure_goal(path, "m", value, at=1.0, **more)
    assert read_measurements(path) == []


def test_an_unknown_goal_names_the_known_ones(path):
    with pytest.raises(InputError, match="known are: accepted"):
        read_goal(path.parent / "acepted")
    with pytest.raises(InputError, match="record it first"):
        read_goal(path.parent / "nowhere" / "x")


def test_a_folder_with_something_else_is_not_taken(tmp_path):
    (tmp_path / "accepted").mkdir()
    (tmp_path / "accepted" / "thesis.txt").write_text("mine")
    with pytest.raises(RunDirectoryError, match="not empty"):
        set_goal(tmp_path, _goal())


@pytest.mark.parametrize(("value", "error"), [(1e308, None), (0.5, 1e308), (0.5, 1e-320)])
def test_a_measurement_whose_square_is_no_number_is_refused(path, value, error):
    with pytest.raises(InputError):
        measure_goal(path, "m", value, error=error, at=0.0)


def test_shares_of_counts_are_one_share_of_all_counts(path):
    measure_goal(path, "m", 1.0, n=10, at=5.0)
    measure_goal(path, "m", 0.5, n=10, at=3.0)
    (together,) = targets(path)
    assert together.value == pytest.approx(0.75)
    assert together.error == pytest.approx(math.sqrt(16 / 22 * (6 / 22) / 22))
    assert (together.measurements, together.first_at) == (2, 3.0)


def test_a_share_above_one_is_refused_with_what_to_write(path):
    with pytest.raises(InputError, match="70 of m is no share of 200") as refused:
        measure_goal(path, "m", 70, n=200, at=5.0)
    assert "0.7 for 70 %" in str(refused.value)
    assert targets(path) == []
