from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data import Loader
from wholestack.data.loader import BLOCK
from wholestack.errors import InputError

MIX = {"code": 0.7, "prose": 0.3}


def test_rows_are_the_tokens_of_their_places(corpus):
    loader = Loader(corpus, MIX, 8, 32, 0)
    for step in (0, 3, 1000):
        batch = loader.batch(step)
        assert batch.shape == (8, 33)
        assert batch.dtype == np.int64
        for row, place in zip(batch, loader.places(step), strict=True):
            tokens = corpus.tokens("train", place.source)
            assert row.tolist() == [int(tokens[(place.first_token + i) % len(tokens)]) for i in range(33)]


def test_a_batch_depends_on_seed_and_step_and_on_nothing_else(corpus):
    forward = Loader(corpus, MIX, 4, 16, 7)
    first = [forward.batch(step).tolist() for step in range(30)]
    fresh = Loader(corpus, dict(reversed(MIX.items())), 4, 16, 7)
    assert [fresh.batch(step).tolist() for step in reversed(range(30))] == first[::-1]
    assert Loader(corpus, MIX, 4, 16, 8).batch(0).tolist() != first[0]


def test_the_order_of_sequences_does_not_depend_on_the_batch_size(corpus):
    large, small = Loader(corpus, MIX, 6, 16, 1), Loader(corpus, MIX, 2, 16, 1)
    joined = np.concatenate([small.batch(step) for step in range(3, 6)])
    assert joined.tolist() == large.batch(1).tolist()


@pytest.mark.parametrize("context", [16, 50])
def test_an_epoch_shows_every_window_once_and_no_token_twice(corpus, context):
    loader = Loader(corpus, {"prose": 1}, 1, context, 3)
    length = len(corpus.tokens("train", "prose"))
    windows = length // context
    for epoch in (0, 1):
        places = [loader.places(step)[0] for step in range(epoch * windows, (epoch + 1) * windows)]
        assert {place.epoch for place in places} == {epoch}
        seen = Counter((place.first_token + i) % length for place in places for i in range(context))
        assert max(seen.values()) == 1
        assert length - len(seen) < context


def test_epochs_differ_in_order_and_in_where_windows_begin(corpus):
    loader = Loader(corpus, {"prose": 1}, 1, 16, 3)
    windows = len(corpus.tokens("train", "prose")) // 16
    first = [loader.places(step)[0].first_token for step in range(windows)]
    second = [loader.places(step)[0].first_token for step in range(windows, 2 * windows)]
    assert first != second
    assert {each % 16 for each in first} != {each % 16 for each in second}


@given(st.floats(1e-6, 1 - 1e-6), st.integers(0, 20))
def test_weights_are_met_within_one_slot_of_a_block(corpus, share, block):
    loader = Loader(corpus, {"code": share, "prose": 1 - share}, BLOCK, 16, 0)
    sources, _ = loader._drawn(np.arange(block * BLOCK, (block + 1) * BLOCK))
    of_code = int((sources == 0).sum())
    assert 1 <= of_code <= BLOCK - 1
    assert abs(of_code - share * BLOCK) <= 1
    assert loader.weights["code"] == of_code / BLOCK


def test_weights_need_not_sum_to_one_and_zero_leaves_out(corpus):
    assert Loader(corpus, {"code": 2, "prose": 6}, 1, 16, 0).weights == {"code": 0.25, "prose": 0.75}
    assert Loader(corpus, {"code": 1, "prose": 0}, 1, 16, 0).weights == {"code": 1.0}
    assert Loader(corpus, {"code": 1e308, "prose": 1e308}, 1, 16, 0).weights == {"code": 0.5, "prose": 0.5}


@given(st.integers(0, 3000))
def test_tokens_seen_are_those_of_the_batches_before(corpus, step):
    loader = Loader(corpus, MIX, 5, 16, 2)
    counted = Counter(dict.fromkeys(MIX, 0))
    sources, _ = loader._drawn(np.arange(step * 5))
    for index, name in enumerate(("code", "prose")):
        counted[name] = int((sources == index).sum()) * 16
    assert loader.tokens_seen(step) == dict(counted)


def test_tokens_seen_agrees_with_the_places(corpus):
    loader = Loader(corpus, MIX, 5, 16, 2)
    counted = Counter(place.source for step in range(200) for place in loader.places(step))
    assert loader.tokens_seen(200) == {name: count * 16 for name, count in counted.items()}


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"cod": 1}, "unknown source 'cod'.*known are: code, prose"),
        ({"code": -1}, "weight of 'code' is -1"),
        ({"code": float("nan")}, "weight of 'code' is nan"),
        ({"code": float("inf")}, "weight of 'code' is inf"),
        ({"code": 0}, "every weight is 0"),
        ({}, "every weight is 0"),
    ],
)
def test_weights_that_are_none_are_refused(corpus, weights, said):
    with pytest.raises(InputError, match=said):
        Loader(corpus, weights, 1, 16, 0)


@pytest.mark.parametrize(("batch_size", "context"), [(0, 16), (1, 0), (-1, 16)])
def test_sizes_below_one_are_refused(corpus, batch_size, context):
    with pytest.raises(InputError, match="choose 1 or more"):
        Loader(corpus, MIX, batch_size, context, 0)


def test_a_context_longer_than_the_text_is_refused(corpus):
    with pytest.raises(InputError, match="shorten the context"):
        Loader(corpus, MIX, 1, 10**7, 0)


def test_a_step_before_the_first_is_refused(corpus):
    with pytest.raises(InputError, match="count from 0"):
        Loader(corpus, MIX, 1, 16, 0).batch(-1)


def test_held_out_text_is_only_read_when_asked_for(corpus):
    length = len(corpus.tokens("held_out", "prose"))
    loader = Loader(corpus, {"prose": 1}, 2, 8, 0, split="held_out")
    assert all(place.first_token < length for step in range(20) for place in loader.places(step))
