from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data import Loader
from wholestack.data.loader import BLOCK, Stretch
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


def test_the_order_of_a_constant_mixture_is_what_it_was_before_there_were_schedules(corpus):
    loader = Loader(corpus, MIX, 4, 16, 7)
    order = [place.source[0] for step in (0, 1, 2, 3, 1023, 1024, 1025, 5000) for place in loader.places(step)]
    assert "".join(order) == "ccccpppccccccccccccpccpppcccppcc"


def schedule(*stretches: tuple[int, dict[str, float]]) -> list[Stretch]:
    return [Stretch(first_sequence=first, weights=weights) for first, weights in stretches]


def test_a_schedule_of_one_mixture_is_that_mixture_to_the_last_token(corpus):
    plain = Loader(corpus, MIX, 4, 16, 7)
    for same in (schedule((0, MIX)), schedule((0, MIX), (300, {"prose": 3, "code": 7}))):
        loader = Loader(corpus, same, 4, 16, 7)
        assert [loader.batch(step).tolist() for step in (0, 74, 75, 1500)] == [
            plain.batch(step).tolist() for step in (0, 74, 75, 1500)
        ]


@given(st.integers(1, 3 * BLOCK), st.integers(0, 3 * BLOCK))
def test_until_its_first_change_a_schedule_gives_what_its_first_mixture_gives(corpus, change, number):
    scheduled = Loader(corpus, schedule((0, MIX), (change, {"prose": 1})), 1, 16, 7)
    constant = Loader(corpus, MIX, 1, 16, 7)
    if number < change:
        assert scheduled.places(number) == constant.places(number)
    else:
        assert scheduled.places(number)[0].source == "prose"


@given(st.floats(0.05, 0.45), st.floats(0.55, 0.95), st.integers(1, 2 * BLOCK))
def test_each_stretch_meets_its_own_weights_within_one_slot_of_a_block(corpus, before, after, change):
    stretches = schedule(
        (0, {"code": before, "prose": 1 - before}), (change * BLOCK // 64, {"code": after, "prose": 1 - after})
    )
    loader = Loader(corpus, stretches, 1, 16, 0)
    first = stretches[1].first_sequence
    sources, _ = loader._drawn(np.arange(first, first + 2 * BLOCK))
    assert abs(int((sources == 0).sum()) - 2 * after * BLOCK) <= 2
    assert loader.weights_at(first)["code"] == pytest.approx(after, abs=1 / BLOCK)


@given(st.lists(st.integers(1, 900), min_size=1, max_size=4, unique=True), st.integers(0, 1200))
def test_under_a_schedule_tokens_seen_are_those_of_the_batches_before(corpus, changes, step):
    mixtures = [{"code": 1}, {"prose": 1}, {"code": 1, "prose": 3}, {"code": 5, "prose": 1}, {"prose": 1}]
    stretches = schedule((0, mixtures[0]), *zip(sorted(changes), mixtures[1:], strict=False))
    loader = Loader(corpus, stretches, 3, 16, 2)
    sources, seen = loader._drawn(np.arange(step * 3))
    for index, name in enumerate(("code", "prose")):
        of_source = seen[sources == index]
        assert of_source.tolist() == list(range(len(of_source)))
        assert loader.tokens_seen(step)[name] == len(of_source) * 16


def test_a_step_of_a_schedule_depends_on_nothing_that_was_asked_before(corpus):
    stretches = schedule((0, {"code": 1}), (50, MIX), (5000, {"prose": 1}))
    forward = Loader(corpus, stretches, 4, 16, 7)
    asked = [*range(10, 16), 1249, 1250, 1251, 2000]
    first = [forward.batch(step).tolist() for step in asked]
    fresh = Loader(corpus, stretches, 4, 16, 7)
    assert [fresh.batch(step).tolist() for step in reversed(asked)] == first[::-1]
    small = Loader(corpus, stretches, 1, 16, 7)
    joined = np.concatenate([small.batch(step) for step in range(48, 52)])
    assert joined.tolist() == forward.batch(12).tolist()


def test_a_source_goes_on_in_a_new_stretch_where_it_stopped_in_the_last(corpus):
    stretches = schedule((0, {"prose": 1}), (10, {"code": 1}), (25, {"prose": 1}))
    loader = Loader(corpus, stretches, 1, 16, 3)
    alone = Loader(corpus, {"prose": 1}, 1, 16, 3)
    assert [loader.places(step) for step in (9, 25, 30)] == [alone.places(step) for step in (9, 10, 15)]


@pytest.mark.parametrize("firsts", [(), (1,), (0, 0), (0, 5, 3)])
def test_stretches_that_do_not_follow_each_other_are_refused(corpus, firsts):
    with pytest.raises(InputError, match="begin the first at 0"):
        Loader(corpus, schedule(*((first, MIX) for first in firsts)), 1, 16, 0)


def test_a_mixture_before_the_first_step_is_refused(corpus):
    with pytest.raises(InputError, match="count from 0"):
        Loader(corpus, MIX, 1, 16, 0).weights_at(-1)
