"""Whom to ask what next: the item of which a reviewer's answer is expected to tell most.

The gain is the mutual information of an item's truth and the reviewer's answer, given all votes so far:

    H( sum_k q_ik table_r[k] )  -  sum_k q_ik H( table_r[k] )

It is small where the item is settled, and where the reviewer's answers do not depend on the truth (Lindley 1956, Annals
of Mathematical Statistics 27:986).
"""

import numpy as np

from wholestack.evals.statistics import Floats


def gains(posterior: Floats, table: Floats) -> Floats:
    """Nats that one more answer is expected to tell of each item.

    Args:
        posterior: ``[items, labels]``
        table: ``[truth, said]`` of one reviewer; of somebody new the mean of all.
    """
    answers = posterior @ table
    return np.asarray(posterior @ (table * np.log(table)).sum(axis=1) - (answers * np.log(answers)).sum(axis=1))


def next_item(posterior: Floats, table: Floats, is_open: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int | None:
    """Place of the best open item for this reviewer, the first of equals; ``None`` if none is open."""
    if not is_open.any():
        return None
    return int(np.argmax(np.where(is_open, gains(posterior, table), -np.inf)))
