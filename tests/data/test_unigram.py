import math
from collections import Counter

import pytest

from wholestack.data import unigram_bits_per_byte
from wholestack.errors import InputError


def test_it_is_the_cross_entropy_under_counts_plus_one(corpus):
    counts = Counter({token: 1 for token in range(corpus.tokenizer.vocab_size)})
    for source in corpus.sources:
        counts.update(corpus.tokens("train", source).tolist())
    texts = ["some words", "def f(): return 'é'"]
    bits = [-math.log2(counts[t] / counts.total()) for text in texts for t in corpus.tokenizer.encode(text).tolist()]
    assert unigram_bits_per_byte(corpus, iter(texts)) == pytest.approx(
        sum(bits) / sum(len(text.encode()) for text in texts), rel=1e-12
    )


def test_no_text_is_an_error(corpus):
    with pytest.raises(InputError, match="no text"):
        unigram_bits_per_byte(corpus, [""])
