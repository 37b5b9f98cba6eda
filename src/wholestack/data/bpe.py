"""Training of byte-pair merges with the ``tokenizers`` library; the only module that imports it.

The library sees words that are already cut (by :func:`wholestack.data.tokenizer.words`) and mapped byte by byte
to printable characters (the table of GPT-2), joined by spaces, which that table leaves free. So the rule that cuts
words lives in one place and does not depend on a library's regular expressions or Unicode tables.
"""

import json
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer as Trained
from tokenizers import models, pre_tokenizers, trainers

from wholestack.data.tokenizer import Tokenizer, words

_BATCH_WORDS = 10_000


def train(texts: Iterable[str], *, vocab_size: int) -> Tokenizer:
    """Learn merges from texts; the same texts give the same tokenizer.

    Args:
        texts: The sample, in a fixed order.
        vocab_size: Tokens wanted, 256 (plain bytes) to 65,536. A small sample can yield fewer.
    """
    if vocab_size == 256:
        return Tokenizer(())
    characters = printable_bytes()
    trained = Trained(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, show_progress=False, initial_alphabet=sorted(characters)
    )
    trained.train_from_iterator(_mapped(texts, characters), trainer=trainer)
    return Tokenizer.from_pairs(_merges(trained, characters))


def printable_bytes() -> list[str]:
    """For each byte value the character that stands for it (Radford et al. 2019, ``encoder.py``)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    standing = {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [standing[byte] for byte in range(256)]


def _mapped(texts: Iterable[str], characters: list[str]) -> Iterator[str]:
    """The words of each text, spelt in printable characters and joined by spaces."""
    table = dict(enumerate(characters))
    for text in texts:
        cut = words(text)
        for start in range(0, len(cut), _BATCH_WORDS):
            batch = cut[start : start + _BATCH_WORDS]
            yield " ".join(word.encode().decode("latin-1").translate(table) for word in batch)


def _merges(trained: Trained, characters: list[str]) -> list[tuple[bytes, bytes]]:
    """Pairs in order of rank. Up to 0.19 the library writes a pair as one string, later as two."""
    byte_of = {character: byte for byte, character in enumerate(characters)}
    pairs = json.loads(trained.to_str())["model"]["merges"]
    spelt = (pair.split(" ") if isinstance(pair, str) else pair for pair in pairs)
    return [(bytes(byte_of[each] for each in left), bytes(byte_of[each] for each in right)) for left, right in spelt]
