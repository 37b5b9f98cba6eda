"""The baseline that knows how often each token occurs and nothing else."""

from collections.abc import Iterable

import numpy as np

from wholestack.data.corpus import Corpus
from wholestack.errors import InputError


def unigram_bits_per_byte(corpus: Corpus, texts: Iterable[str]) -> float:
    """Bits a byte of a unigram model over the tokens of the training split, each count plus one.

    Args:
        corpus: Its training tokens, of all sources, are counted.
        texts: What to score; ends of documents are not scored.

    Raises:
        InputError: there is no byte of text.
    """
    tokenizer = corpus.tokenizer
    counts = np.ones(tokenizer.vocab_size, dtype=np.int64)
    for source in corpus.sources:
        counts += np.bincount(corpus.tokens("train", source), minlength=tokenizer.vocab_size)
    bits = -np.log2(counts / counts.sum())
    total_bits, total_bytes = 0.0, 0
    for text in texts:
        total_bits += float(bits[tokenizer.encode(text)].sum())
        total_bytes += len(text.encode())
    if not total_bytes:
        raise InputError("no text to score", remedy="give at least one text that is not empty")
    return total_bits / total_bytes
