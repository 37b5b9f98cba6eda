"""Operands: every partial sum fits its precision, and the values are the same everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.health.active.golden import GOLDEN, digest_of, golden_cases
from wholestack.health.active.operands import PATTERNS, PRECISIONS, Case, left_operand, noise, right_operand

from . import golden_by_hand


@given(
    pattern=st.sampled_from(PATTERNS), precision=st.sampled_from(sorted(PRECISIONS)), rows=st.integers(1, 5),
    inner=st.integers(1, 5000), columns=st.integers(1, 5), seed=st.integers(0, 2**40),
)  # fmt: skip
def test_no_partial_sum_is_larger_than_its_precision_holds(pattern, precision, rows, inner, columns, seed):
    case = Case(pattern=pattern, precision=precision, rows=rows, inner=inner, columns=columns, seed=seed)
    left, right = left_operand(case), right_operand(case)
    most = max(int(np.abs(left).max()), int(np.abs(right).max()))
    assert most <= 2 ** PRECISIONS[precision].operand_bits
    assert int((np.abs(left) @ np.abs(right)).max()) <= 2 ** PRECISIONS[precision].sum_bits
    assert left.any()
    assert right.any()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_operands_of_other_seeds_differ_unless_the_pattern_is_fixed(pattern):
    def operands(seed):
        case = Case(pattern=pattern, precision="float32", rows=8, inner=8, columns=8, seed=seed)
        return left_operand(case).tobytes()

    assert operands(1) == operands(1)
    assert (operands(1) == operands(3)) == (pattern == "toggle")


def test_the_mixer_is_splitmix64():
    # The first words of the reference implementation from state 0.
    assert [int(word) for word in noise(0, 3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize(
    "key", ["random float64", "walking float32", "alternating bfloat16", "toggle tf32", "ones float16"]
)
def test_golden_values_are_those_of_integers_computed_by_hand(key):
    pattern, precision = key.split()
    assert GOLDEN[key] == golden_by_hand.digest(golden_by_hand.product(pattern, precision, 48, 96, 80, 2026))


def test_there_is_a_golden_value_for_every_pattern_in_every_precision():
    assert {key for precision in PRECISIONS for key in golden_cases(precision)} == set(GOLDEN)
    assert len({GOLDEN[key] for key in golden_cases("float64")}) == len(PATTERNS)


def test_what_is_no_integer_has_no_digest():
    assert digest_of(np.array([[0.5, np.nan, np.inf]])) == "not of integers"


def test_a_product_of_no_size_is_refused():
    with pytest.raises(InputError, match="above 0"):
        Case(pattern="ones", precision="float64", rows=0, inner=1, columns=1, seed=0)
