import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.search import Categorical, Linear, Log, Logit
from wholestack.testing.dimensions import check_dimension

KINDS = {
    "linear": (Linear("a", centre=0.5), [0.0, -3.0, 1e6], [math.nan, math.inf, "x", True]),
    "linear bounded": (Linear("a", centre=0.5, low=0.0, high=2.0), [0.0, 2.0], [-0.001, 2.001]),
    "linear integer": (Linear("a", centre=3, low=1, high=8, integer=True), [1, 8], [0, 9, 2.5]),
    "log": (Log("a", centre=1e-3), [1e-9, 1e9], [0.0, -1.0]),
    "log bounded": (Log("a", centre=1e-3, low=1e-5, high=1e-1), [1e-5, 1e-1], [9e-6, 0.11]),
    "log width": (Log("a", centre=128, low=32, high=512, integer=True, rounding=16), [32, 512, 48], [16, 40, 528]),
    "log from one": (Log("a", centre=1, integer=True), [1, 2, 1000], [0]),
    "log off the grid": (Log("a", centre=64, low=50, high=100, integer=True, rounding=16), [64, 96], [50, 100]),
    "logit": (Logit("a", centre=0.1), [1e-6, 0.5, 0.999], [0.0, 1.0, 1.5]),
    "logit bounded": (Logit("a", centre=0.1, low=0.01, high=0.9), [0.01, 0.9], [0.95]),
    "categorical": (Categorical("a", choices=("x", "y", "z"), centre="y"), ["x", "z"], ["w", 1]),
    "categorical numbers": (Categorical("a", choices=(32, 64), centre=64), [32], [48]),
    "one choice": (Categorical("a", choices=("x",), centre="x"), ["x"], ["y"]),
    "one value": (Linear("a", centre=2.0, low=2.0, high=2.0), [2.0], [1.0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_built_in_kinds_pass_the_conformance_suite(kind):
    dimension, allowed, refused = KINDS[kind]
    check_dimension(dimension, allowed=allowed, refused=refused)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Linear("lr", centre=5.0, low=0.0, high=1.0), "centre outside bounds"),
        (lambda: Linear("lr", centre=0.5, low=1.0, high=0.0), "low 1.0 is above high"),
        (lambda: Log("lr", centre=-1.0), "centre must lie in the positive numbers"),
        (lambda: Logit("lr", centre=1.0), "centre must lie in (0, 1)"),
        (lambda: Logit("lr", centre=0.5, integer=True), "cannot be integer"),
        (lambda: Linear("lr", centre=0.5, scale=0.0), "scale must be positive"),
        (lambda: Linear("lr", centre=math.nan), "centre must be a finite number"),
        (lambda: Log("lr", centre=100, integer=True, rounding=16), "multiple of 16"),
        (lambda: Linear("lr", centre=1, rounding=2), "rounding needs integer=True"),
        (lambda: Log("lr", centre=20, low=17, high=31, integer=True, rounding=16), "no allowed value"),
        (lambda: Categorical("lr", choices=("a", "a"), centre="a"), "choices must differ"),
        (lambda: Categorical("lr", choices=("a",), centre="b"), "centre not among choices"),
        (lambda: Categorical("lr", choices=(), centre="b"), "choices must not be empty"),
    ],
)
def test_a_wrong_dimension_is_refused_by_name(make, says):
    with pytest.raises(InputError, match="lr") as caught:
        make()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "dimension",
    [
        Linear("a", centre=3, low=1, high=8, integer=True),
        Log("a", centre=128, low=32, high=512, integer=True, rounding=32),
    ],
)
def test_local_steps_reach_whole_numbers_at_both_bounds(dimension):
    rng = np.random.default_rng(0)
    x = np.zeros(400)
    seen = set()
    for _ in range(40):
        x = dimension.move(x, np.full(400, 0.3), rng)
        seen |= {dimension.decode(float(c)) for c in x}
    assert {dimension.low, dimension.high} <= seen


def test_a_whole_number_moves_even_when_the_step_is_shorter_than_a_notch():
    dimension = Linear("layers", centre=5, low=1, high=9, integer=True, scale=1.0)
    moved = dimension.move(np.zeros(1000), np.full(1000, 0.01), np.random.default_rng(0))
    assert {dimension.decode(float(c)) for c in moved} == {4, 5, 6}


@settings(deadline=None)
@given(st.floats(1e-5, 1e-1), st.floats(-8, 8))
def test_log_coordinates_are_decades_from_the_centre(centre, decades):
    dimension = Log("lr", centre=centre)
    assert dimension.decode(decades) == pytest.approx(centre * 10**decades)


def test_scale_defaults_to_a_quarter_of_the_range_between_two_bounds():
    assert Log("lr", centre=1e-3, low=1e-5, high=1e-1).encode(1e-1) == pytest.approx(2.0)
    assert Linear("x", centre=0.0, low=0.0, high=1000.0).encode(250.0) == pytest.approx(1.0)
    assert Log("lr", centre=1e-3, low=1e-5).encode(1e-2) == pytest.approx(1.0)
