"""Synthetic scores with a known truth, for tests of what is made of scores."""

import numpy as np

from wholestack.evals.scores import ItemScores


def scores_from_values(
    values, gold, *, ids=None, clusters=None, sources=None, reasons=None, answer_bytes=None, item_set="3f2a9c1b00000000"
):
    """From log-likelihoods ``[items, choices]``, all choices four characters and two tokens unless said."""
    items, choices = values.shape
    lengths = np.full(items * choices, 4) if answer_bytes is None else np.asarray(answer_bytes).reshape(-1)
    return ItemScores(
        item_set=item_set,
        item_ids=np.array([f"item-{n:05}" for n in range(items)] if ids is None else ids),
        sources=np.array(["s"] * items if sources is None else sources),
        clusters=np.arange(items) if clusters is None else np.asarray(clusters),
        gold=np.asarray(gold),
        reasons=np.array([""] * items if reasons is None else reasons),
        truncated=np.zeros(items, bool),
        spanning=np.zeros(items, bool),
        choice_offsets=np.arange(items + 1) * choices,
        nll_nats=-values.reshape(-1).astype(float),
        answer_bytes=lengths,
        answer_chars=lengths,
        answer_tokens=np.full(items * choices, 2),
        positions=0,
    )


def calibrated_values(rng, items, *, choices=4, spread=2.0, temperature=1.0):
    """Values and right answers drawn from their own softmax; then the values are taken times ``temperature``."""
    values = rng.normal(0, spread, (items, choices))
    gold = np.argmax(values + rng.gumbel(size=values.shape), axis=1)
    return values * temperature - 20, gold
