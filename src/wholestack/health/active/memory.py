"""Does memory keep what is written, and does a copy carry it over? Word patterns over as much as is given.

All blocks are written before the first is read, so that they lie in different places and have time to rot.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wholestack.health.active.device import Device
from wholestack.health.active.operands import WordArray, noise
from wholestack.record import Record

BLOCK_BYTES = 32 * 1024 * 1024
PATTERNS = ("address", "random", "inverse", "walking", "alternating")
MOST_WORDS = 16
"""Wrong words that are named of one block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongWord(Record):
    """One word that came back as another."""

    pattern: str
    block: int
    word: int
    got: str
    want: str
    """Both in hexadecimal."""
    copied: bool
    """Whether it came from the copy within the device."""

    def __str__(self) -> str:
        how = "after a copy" if self.copied else "read back"
        return f"{self.pattern} words, block {self.block}, word {self.word} {how}: {self.got}, must be {self.want}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOutcome:
    """What one pass over the memory came to."""

    tested_bytes: int
    """Written, copied or not, and compared."""
    wrong: tuple[WrongWord, ...]
    wrong_words: int


def words_of(pattern: str, block: int, count: int, seed: int) -> WordArray:
    """What a block is written with; none equals its neighbour, so that a wrong address shows."""
    place = np.arange(count, dtype=np.uint64) + np.uint64(block * count)
    if pattern == "address":
        return place
    if pattern == "walking":
        walking: WordArray = np.uint64(1) << (place + np.uint64(seed)) % np.uint64(64)
        return walking
    if pattern == "alternating":
        stripes = np.where(
            place % np.uint64(2) == 0, np.uint64(0x5555_5555_5555_5555), np.uint64(0xAAAA_AAAA_AAAA_AAAA)
        )
        return stripes.astype(np.uint64)
    words = noise(seed * 4096 + block, count)
    return ~words if pattern == "inverse" else words


def check_memory(device: Device, *, room: int, seed: int, late: Callable[[], bool]) -> MemoryOutcome:
    """One pass with one pattern, half of the room for what is written and half for copies of it.

    Args:
        device: Whose memory.
        room: Bytes that may be held at once; less than two blocks makes the blocks smaller.
        seed: Says which pattern, and its words.
        late: Whether time is up: what is written then is read, and no more is written.
    """
    pattern = PATTERNS[seed % len(PATTERNS)]
    count = max(8, min(BLOCK_BYTES, room // 2) // 8)
    held = []
    for block in range(max(1, room // (16 * count))):
        if block and late():
            break
        held.append(device.write(words_of(pattern, block, count, seed)))
    copies = [device.copy(each) for each in held]
    wrong: list[WrongWord] = []
    wrong_words = 0
    for block, (original, copied) in enumerate(zip(held, copies, strict=True)):
        want = words_of(pattern, block, count, seed)
        for is_copy, each in ((False, original), (True, copied)):
            got = device.fetch(each)
            wrong_words += int(np.count_nonzero(got != want))
            wrong += _named(pattern, block, got, want, copied=is_copy)
    return MemoryOutcome(tested_bytes=16 * count * len(held), wrong=tuple(wrong[:MOST_WORDS]), wrong_words=wrong_words)


def _named(pattern: str, block: int, got: NDArray[np.generic], want: WordArray, *, copied: bool) -> Iterator[WrongWord]:
    for place in np.flatnonzero(got != want)[:MOST_WORDS]:
        yield WrongWord(
            pattern=pattern,
            block=block,
            word=int(place),
            got=f"{int(got[place]):016x}",
            want=f"{int(want[place]):016x}",
            copied=copied,
        )
