"""Row checksums: one wrong element always shows, a right product never does, and the place is named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.active.exactness import WrongElement, compare, shape_of
from wholestack.health.active.operands import Case, left_operand, right_operand
from wholestack.testing.devices import flip

DTYPES = {"float64": np.float64, "float32": np.float32}


def product(precision="float32", rows=40, inner=24, columns=56, seed=1, pattern="random"):
    case = Case(pattern=pattern, precision=precision, rows=rows, inner=inner, columns=columns, seed=seed)
    left, right = left_operand(case), right_operand(case)
    return left, right, (left @ right).astype(DTYPES[precision])


@given(
    precision=st.sampled_from(sorted(DTYPES)), row=st.integers(0, 39), column=st.integers(0, 55),
    bit=st.integers(0, 63), seed=st.integers(0, 2**30),
)  # fmt: skip
def test_any_bit_of_any_element_is_found_and_named(precision, row, column, bit, seed):
    left, right, result = product(precision)
    want = result[row, column]
    flip(result, row, column, bit)
    found = compare(left, right, result, precision=precision, seed=seed)
    if result[row, column] == want:  # the sign of a zero
        assert found.wrong_rows == 0
        return
    assert found.wrong_rows == 1
    (element,) = found.elements
    assert (element.row, element.column, element.want) == (row, column, int(want))
    assert element.bits == (bit % (8 * result.dtype.itemsize),)


@given(seed=st.integers(0, 2**40), precision=st.sampled_from(sorted(DTYPES)))
def test_a_right_product_is_right_under_any_weights(seed, precision):
    assert compare(*product(precision), precision=precision, seed=seed).wrong_rows == 0


def test_two_errors_that_cancel_in_a_plain_sum_are_found():
    left, right, result = product()
    result[3, 4] += 1
    result[3, 5] -= 1
    assert {each.column for each in compare(left, right, result, precision="float32", seed=5).elements} == {4, 5}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.5, 2.0**62])
def test_what_no_product_can_be_is_wrong_by_itself(value):
    left, right, result = product()
    result[7, 8] = result[7, 9] = value
    found = compare(left, right, result, precision="float32", seed=5)
    assert [(each.row, each.column) for each in found.elements] == [(7, 8), (7, 9)]


def test_blocks_of_rows_make_no_difference(monkeypatch):
    monkeypatch.setattr("wholestack.health.active.exactness.BLOCK_ELEMENTS", 100)
    left, right, result = product()
    result[39, 0] += 2
    assert compare(left, right, result, precision="float32", seed=0).elements[0].row == 39


def test_of_many_wrong_rows_some_are_named_from_first_to_last():
    left, right, result = product()
    result[:, 9] += 1
    found = compare(left, right, result, precision="float32", seed=0)
    assert found.wrong_rows == 40
    assert {0, 39} <= {each.row for each in found.elements}
    assert shape_of(found.elements) == "all in column 9"


def element(row, column):
    return WrongElement(row=row, column=column, got="1.0", want=0, bits=(0,))


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ([(0, 3)], ""),
        ([(0, 3), (1, 11), (2, 27)], "a lane: every 8th column from 3"),
        ([(2, 1), (6, 2), (14, 4)], "a lane: every 4th row from 2"),
        ([(0, 0), (1, 1), (2, 3)], ""),
        ([(5, 1), (5, 2)], "all in row 5"),
    ],
)
def test_the_shape_of_wrong_elements_is_named(places, says):
    assert shape_of([element(*place) for place in places]) == says
