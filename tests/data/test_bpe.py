import os
import subprocess
import sys
from itertools import pairwise

import pytest

from wholestack.data.bpe import printable_bytes, train
from wholestack.data.tokenizer import words

TEXT = "the cat sat on the mat; the hat of the cat. the mat!\n"


def plain_merges(text: str, count: int) -> list[tuple[bytes, bytes]]:
    """Oracle: count pairs, join the most frequent, again; defined where no two pairs are equally frequent."""
    spelt = [[bytes([byte]) for byte in word.encode()] for word in words(text)]
    merges = []
    for _ in range(count):
        counts = {}
        for word in spelt:
            for pair in pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        best = max(counts.values())
        leaders = [pair for pair, each in counts.items() if each == best]
        if len(leaders) > 1:
            break
        merges.append(leaders[0])
        left, right = leaders[0]
        for word in spelt:
            place = 0
            while place < len(word) - 1:
                if (word[place], word[place + 1]) == (left, right):
                    word[place : place + 2] = [left + right]
                place += 1
    return merges


def test_the_most_frequent_pair_is_joined_first():
    expected = plain_merges(TEXT, 20)
    tokenizer = train([TEXT], vocab_size=256 + len(expected))
    spelt = [(tokenizer.decode_bytes([a]), tokenizer.decode_bytes([b])) for a, b in tokenizer.merges]
    assert len(expected) >= 1
    assert spelt == expected


@pytest.mark.parametrize("size", [256, 257, 300, 320])
def test_the_size_asked_for_is_the_size_made(size, texts):
    assert train([texts(1) * 2], vocab_size=size).vocab_size == size


def test_a_small_sample_yields_fewer_and_no_error():
    assert 256 < train(["aa aa"], vocab_size=8192).vocab_size < 300


def test_an_empty_sample_is_plain_bytes():
    assert train([], vocab_size=300).vocab_size == 256


def test_every_byte_has_a_printable_character_that_is_no_space():
    characters = printable_bytes()
    assert len(set(characters)) == 256
    assert not any(each.isspace() for each in characters)


def test_another_process_learns_the_same_merges():
    program = (
        "from wholestack.data.bpe import train\n"
        f"print(train([{TEXT!r} * 2, 'some more text for the cat'], vocab_size=330).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert len(digests) == 1
