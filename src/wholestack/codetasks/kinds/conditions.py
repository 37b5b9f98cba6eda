"""Conditions that exclude each other, for branches in any order."""

from collections.abc import Sequence
from itertools import pairwise

from wholestack.codetasks.draws import Draws


def conditions_for(name: str, values: Sequence[int], draws: Draws) -> dict[int, str]:
    """For each of several different values a condition that it alone fulfils; together they leave no number out.

    Args:
        name: The variable that is tested.
        values: Two or more different numbers.
        draws: Draw where between two of them the bound is.
    """
    ordered = sorted(values)
    cuts = [draws.pick((high, (low + high + 1) // 2)) for low, high in pairwise(ordered)]
    inner = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
    return dict(zip(ordered, (f"{name} < {cuts[0]}", *inner, f"{name} >= {cuts[-1]}"), strict=True))
