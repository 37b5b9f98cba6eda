"""Conformance suite of `wholestack.search.dimensions.Dimension`: what a search relies on.

Use it in a test of your own kind::

    from wholestack.testing.dimensions import check_dimension

    def test_my_kind():
        check_dimension(MyKind("x", ...), allowed=[...], refused=[...])
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wholestack.errors import InputError
from wholestack.search.dimensions import Dimension


def check_dimension(dimension: Dimension, *, allowed: Sequence[Any], refused: Sequence[Any] = ()) -> None:
    """Check one dimension.

    Args:
        dimension: The dimension.
        allowed: Values that it must take, its ends among them if it has any.
        refused: Values that it must refuse, naming key and value.

    Raises:
        AssertionError: it breaks the protocol; says how.
    """
    _require(isinstance(dimension, Dimension), "it lacks a method or property of the protocol")
    _check_values(dimension, [dimension.centre, *allowed])
    _check_refusals(dimension, refused)
    _check_snap(dimension)
    _check_move(dimension)


def _check_values(dimension: Dimension, values: Sequence[Any]) -> None:
    for value in values:
        coordinate = dimension.encode(value)
        _require(np.isfinite(coordinate), f"encode({value!r}) is {coordinate}")
        back = dimension.decode(coordinate)
        close = back == value or (isinstance(value, float) and bool(np.isclose(back, value, rtol=1e-9, atol=1e-300)))
        _require(close, f"{value!r} comes back as {back!r}")
        _require(isinstance(back, (str, int, float)), f"decode gives a {type(back).__name__}")
        _require(not isinstance(back, np.generic), "decode gives a numpy scalar, which JSON cannot hold")
    if dimension.ordered:
        order = sorted(values)
        coordinates = [dimension.encode(value) for value in order]
        _require(coordinates == sorted(coordinates), "coordinates do not rise with the values")


def _check_refusals(dimension: Dimension, refused: Sequence[Any]) -> None:
    for value in refused:
        try:
            dimension.encode(value)
        except InputError as error:
            text = str(error)
            _require(dimension.name in text and repr(value) in text, f"refusal of {value!r} does not name it: {text}")
        else:
            raise AssertionError(f"{dimension.name}: {value!r} is not refused")


def _check_snap(dimension: Dimension) -> None:
    anywhere = np.concatenate([np.linspace(-50.0, 50.0, 401), [0.0, 1e-12]])
    once = dimension.snap(anywhere)
    _require(once.shape == anywhere.shape and bool(np.isfinite(once).all()), "snap gives other than finite [n]")
    _require(bool(np.allclose(dimension.snap(once), once, rtol=1e-9, atol=1e-9)), "snap twice differs from snap once")
    for coordinate in once.tolist():
        again = dimension.encode(dimension.decode(coordinate))
        _require(bool(np.isclose(again, coordinate, rtol=1e-6, atol=1e-6)), f"decode and snap differ at {coordinate}")


def _check_move(dimension: Dimension) -> None:
    start = np.full(512, dimension.encode(dimension.centre))
    radius = np.full(512, 0.3)
    moved = dimension.move(start, radius, np.random.default_rng(1))
    _require(moved.shape == start.shape, "move changes the shape")
    _require(bool(np.allclose(dimension.snap(moved), moved, rtol=1e-9, atol=1e-9)), "move leaves the allowed values")
    again = dimension.move(start, radius, np.random.default_rng(1))
    _require(bool((moved == again).all()), "move draws randomness from elsewhere than rng")
    if len({dimension.decode(float(c)) for c in dimension.snap(np.linspace(-50.0, 50.0, 401))}) > 1:
        _require(bool((moved != start).any()), "move never moves")


def _require(holds: bool, says: str) -> None:
    if not holds:
        raise AssertionError(says)
