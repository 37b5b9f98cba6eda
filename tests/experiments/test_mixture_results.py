"""What continued weights forgot: an interval over documents, for windows of one document go together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from wholestack.experiments.held_out import HeldOutLosses
from wholestack.experiments.mixture_results import forgotten

DOCUMENTS, PIECES = 20, 15


def losses(rng: np.random.Generator, *, seeds: int = 3) -> list[HeldOutLosses]:
    """Nothing is forgotten on the whole; each document by 0.1 more or less, each piece of it by 0.03, 0.01 by seed."""
    documents = np.repeat(np.arange(DOCUMENTS), PIECES)
    tokens = rng.integers(1, 64, size=len(documents))
    before = rng.normal(2.0, 0.3, size=len(documents))
    lost = rng.normal(0, 0.1, size=DOCUMENTS)[documents] + rng.normal(0, 0.03, size=len(documents))
    return [
        HeldOutLosses(
            before_bpb=before,
            after_bpb=before + lost + rng.normal(0, 0.01),
            tokens=tokens,
            documents=documents,
        )
        for _ in range(seeds)
    ]


def as_if_independent(found: list[HeldOutLosses]) -> float:
    """Half the interval with every piece for itself."""
    assert found[0].before_bpb is not None
    by_piece = np.mean([each.after_bpb - found[0].before_bpb for each in found], axis=0)
    return float(t.ppf(0.975, len(by_piece) - 1) * by_piece.std(ddof=1) / math.sqrt(len(by_piece)))


def test_the_interval_covers_where_pieces_of_a_document_go_together_and_one_over_pieces_does_not() -> None:
    covered = naive = 0
    for number in range(200):
        found = losses(np.random.default_rng([1, number]))
        forgetting = forgotten(found, level=0.95)
        assert forgetting is not None
        assert forgetting.interval is not None
        covered += forgetting.interval.low <= 0 <= forgetting.interval.high
        naive += abs(forgetting.difference) <= as_if_independent(found)
    assert covered >= 0.9 * 200
    assert naive <= 0.6 * 200


def test_what_is_forgotten_weighs_by_tokens() -> None:
    before, after = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 4.0])
    one = HeldOutLosses(before_bpb=before, after_bpb=after, tokens=np.array([1, 2, 1]), documents=np.array([0, 0, 1]))
    found = forgotten([one, one], level=0.95)
    assert found is not None
    assert (found.before_bpb, found.after_bpb, found.difference) == (2.25, 2.75, 0.5)
    assert found.documents == 2
    assert found.interval is not None


def test_one_document_or_one_seed_gives_no_interval_and_random_weights_no_forgetting() -> None:
    found = losses(np.random.default_rng(0))
    alone = forgotten(found[:1], level=0.95)
    one_document = forgotten([replace(each, documents=np.zeros_like(each.documents)) for each in found], level=0.95)
    for each in (alone, one_document):
        assert each is not None
        assert each.interval is None
    assert forgotten([replace(each, before_bpb=None) for each in found], level=0.95) is None
    assert alone is not None
    assert alone.difference == pytest.approx(0, abs=0.1)
