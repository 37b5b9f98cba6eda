import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.search import Categorical, Linear, Log, Space

SPACE = Space(
    [
        Log("learning_rate", centre=1e-3, low=1e-5, high=1e-1),
        Log("width", centre=64, low=16, high=256, integer=True, rounding=16),
        Categorical("act", choices=("a", "b", "c"), centre="a"),
    ]
)


def test_a_misspelt_key_is_named_with_its_value_and_the_near_one():
    with pytest.raises(InputError, match=r"'learning_rat' \(value 0.001\).*did you mean 'learning_rate'"):
        SPACE.check({"learning_rat": 1e-3, "width": 64, "act": "a"})


def test_a_missing_key_is_named():
    with pytest.raises(InputError, match="lack the key 'width'"):
        SPACE.check({"learning_rate": 1e-3, "act": "a"})


def test_two_dimensions_of_one_name_and_no_dimension_are_refused():
    with pytest.raises(InputError, match="'x' is given twice"):
        Space([Linear("x", centre=0.0), Log("x", centre=1.0)])
    with pytest.raises(InputError, match="at least one"):
        Space([])


def test_params_come_back_from_their_coordinates():
    params = {"learning_rate": 2e-4, "width": 48, "act": "c"}
    back = SPACE.decode(SPACE.encode([params])[0])
    assert back == pytest.approx(params)
    assert type(back["width"]) is int


def test_every_step_changes_or_tries_to_change_one_dimension_and_stays_allowed():
    start = np.repeat(SPACE.encode([SPACE.centre()]), 500, axis=0)
    moved = SPACE.move(start, np.full(500, 0.5), np.full(500, 0.01), np.random.default_rng(0))
    assert np.allclose(SPACE.snap(moved), moved)
    changed = (moved != start).sum(axis=1)
    assert changed.max() <= 2
    assert (changed > 0).mean() > 0.5


def test_identity_tells_spaces_apart():
    other = Space([Log("learning_rate", centre=1e-3, low=1e-5, high=1e-2), *SPACE.dimensions[1:]])
    assert other.identity() != SPACE.identity() == Space(SPACE.dimensions).identity()
