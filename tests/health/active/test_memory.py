"""Memory: what is written comes back, a stuck bit is named, blocks are all held at once, words tell addresses."""

import numpy as np
import pytest

from wholestack.health.active.cores import cores_here
from wholestack.health.active.memory import PATTERNS, check_memory, words_of
from wholestack.testing.devices import FaultyDevice, StuckBit


@pytest.fixture
def core():
    with cores_here() as cores:
        yield cores[0]


@pytest.mark.parametrize("seed", range(len(PATTERNS)))
def test_sound_memory_keeps_every_pattern(core, seed, monkeypatch):
    monkeypatch.setattr("wholestack.health.active.memory.BLOCK_BYTES", 4096)
    found = check_memory(core, room=40_960, seed=seed, late=lambda: False)
    assert (found.wrong_words, found.tested_bytes) == (0, 40_960)


def test_a_stuck_bit_is_named_within_a_pass_over_the_patterns(core, monkeypatch):
    monkeypatch.setattr("wholestack.health.active.memory.BLOCK_BYTES", 4096)
    faulty = FaultyDevice(inner=core, stuck=StuckBit(word=77, bit=13))
    found = [check_memory(faulty, room=40_960, seed=seed, late=lambda: False) for seed in range(len(PATTERNS))]
    named = [each for outcome in found for each in outcome.wrong]
    assert named
    assert {each.word for each in named} == {77}
    assert all(int(each.got, 16) ^ int(each.want, 16) == 1 << 13 for each in named)
    assert {each.copied for each in named} == {False, True}


def test_when_time_is_up_what_was_written_is_still_judged(core, monkeypatch):
    monkeypatch.setattr("wholestack.health.active.memory.BLOCK_BYTES", 4096)
    assert check_memory(core, room=10**6, seed=0, late=lambda: True).tested_bytes == 8192


@pytest.mark.parametrize("pattern", PATTERNS)
def test_neighbouring_words_differ_and_every_bit_is_both_within_two_passes(pattern):
    words = words_of(pattern, 3, 256, 1)
    assert (words[1:] != words[:-1]).all()
    both = [words_of(name, 0, 4096, 1) for name in ("random", "inverse")]
    assert np.bitwise_or.reduce(both[0]) == np.uint64(2**64 - 1)
    assert np.array_equal(both[0], ~both[1])
