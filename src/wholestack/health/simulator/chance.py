"""Draws that ``random`` does not have."""

import math
from random import Random


def events(rng: Random, expected: float) -> int:
    """A Poisson draw: how often something happened that happens ``expected`` times on average.

    Exact (product of uniforms, Knuth) below 30; above, the normal approximation rounded, never negative.
    """
    if expected <= 0:
        return 0
    if expected > 30:
        return max(0, round(rng.gauss(expected, math.sqrt(expected))))
    limit, product, count = math.exp(-expected), rng.random(), 0
    while product > limit:
        product *= rng.random()
        count += 1
    return count


def log_uniform(rng: Random, low: float, high: float) -> float:
    """As likely between 1 and 10 as between 10 and 100."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))
