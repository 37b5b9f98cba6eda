import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data.permutation import key, permuted


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_it_is_a_permutation(size, seed):
    assert sorted(permuted(np.arange(size), size, seed).tolist()) == list(range(size))


@given(st.integers(1, 10**12), st.integers(0, 2**64 - 1), st.data())
def test_one_value_alone_is_the_same_as_among_others(size, seed, data):
    places = np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5)))
    together = permuted(places, size, seed)
    assert [int(permuted(places[i : i + 1], size, seed)[0]) for i in range(len(places))] == together.tolist()
    assert all(0 <= value < size for value in together)


def test_every_place_is_reached_about_equally_often():
    size, trials = 10, 4000
    counts = np.zeros((size, size))
    for trial in range(trials):
        counts[np.arange(size), permuted(np.arange(size), size, key(trial))] += 1
    chi_square = ((counts - trials / size) ** 2 / (trials / size)).sum()
    assert chi_square < 150  # 81 degrees of freedom: mean 81, standard deviation 13


def test_neighbours_do_not_stay_neighbours():
    sent = permuted(np.arange(4096), 4096, key(1))
    assert (np.abs(np.diff(sent)) == 1).sum() < 10


@given(st.lists(st.integers(-(2**64), 2**64), max_size=5), st.lists(st.integers(-(2**64), 2**64), max_size=5))
def test_different_parts_make_different_keys(left, right):
    reduced = [[part % 2**64 for part in parts] for parts in (left, right)]
    assert (key(*left) == key(*right)) == (reduced[0] == reduced[1])
    assert 0 <= key(*left) < 2**64


@pytest.mark.parametrize("parts", [(1, 2), (2, 1), (0, 0, 3), (0, 3)])
def test_order_and_leading_zeros_matter(parts):
    others = {(1, 2), (2, 1), (0, 0, 3), (0, 3)} - {parts}
    assert key(*parts) not in {key(*other) for other in others}
