"""Small corpora of made-up words: quick to prepare, and no two documents alike by chance."""

import random

import pytest

from wholestack.data import MemorySource
from wholestack.data.build import prepare


def invented_text(seed: int, words: int = 120) -> str:
    """Words of made-up letters, so that two seeds share no shingle."""
    rng = random.Random(seed)
    spelt = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(words)]
    return " ".join(spelt) + "\n"


@pytest.fixture(scope="session")
def texts():
    return invented_text


@pytest.fixture(scope="session")
def two_sources():
    code = {f"c{i}.py": f"def f{i}():\n    return {i}\n\n# " + invented_text(i) for i in range(60)}
    prose = {f"p{i}.txt": invented_text(1000 + i, words=60) for i in range(60)}
    return [MemorySource("code", code, given="MIT"), MemorySource("prose", prose, given="CC0-1.0")]


@pytest.fixture(scope="session")
def corpus(two_sources, tmp_path_factory):
    """Two sources of 60 documents each; read only."""
    return prepare(two_sources, tmp_path_factory.mktemp("shared") / "corpus", vocab_size=300, seed=0)
