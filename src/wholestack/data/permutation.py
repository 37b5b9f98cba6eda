"""A seeded permutation of 0 to n - 1 whose k-th value is computed alone, in constant memory.

A Feistel network over the smallest power of four not below n, with the value sent through again while it falls
outside ("cycle walking", Black and Rogaway 2002). The round function is splitmix64; this shuffles, it does not
encrypt.
"""

import numpy as np
import numpy.typing as npt

from wholestack.data.similarity import mix

Integers = npt.NDArray[np.int64]

ROUNDS = 6
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def key(*parts: int) -> int:
    """One 64-bit number from several; every part and its place matters."""
    state = 0
    for part in parts:
        state = _mix_one((state * _GOLDEN + (part & _MASK) + 1) & _MASK)
    return state


def _mix_one(value: int) -> int:
    """:func:`wholestack.data.similarity.mix` of one Python integer."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def permuted(places: Integers, size: int, seed: int) -> Integers:
    """Where a permutation of ``size`` things sends each place.

    Args:
        places: Numbers from 0 to size - 1.
        size: How many things there are, at least 1.
        seed: Chooses the permutation: a 64-bit number, for instance from :func:`key`.
    """
    half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
    round_keys = [key(seed, number) for number in range(ROUNDS)]
    values = _feistel(places.astype(np.uint64), half_bits, round_keys)
    while (outside := values >= size).any():
        values[outside] = _feistel(values[outside], half_bits, round_keys)
    return values.astype(np.int64)


def _feistel(values: npt.NDArray[np.uint64], half_bits: int, round_keys: list[int]) -> npt.NDArray[np.uint64]:
    low = np.uint64((1 << half_bits) - 1)
    left, right = values >> np.uint64(half_bits), values & low
    for round_key in round_keys:
        left, right = right, left ^ (mix(right ^ np.uint64(round_key)) & low)
    return (left << np.uint64(half_bits)) | right
