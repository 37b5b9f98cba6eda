"""Token streams on disk: for each source and split one stream, cut into files of 16-bit ids without a header.

Little-endian, so a corpus can be copied between machines. A stream is read through memory maps: neither opening
nor reading it needs memory in proportion to its length.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wholestack.data.source import Split
from wholestack.data.tokenizer import Tokens
from wholestack.errors import DataError
from wholestack.journal import write_atomic
from wholestack.record import Record

SHARD_TOKENS = 1 << 18
_LITTLE_ENDIAN = np.dtype("<u2")
_HASH_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard(Record):
    """One file of tokens."""

    file: str
    """Its path inside the corpus."""
    source: str
    """Name of the source."""
    split: Split
    """Train or held out."""
    first_token: int
    """Place of its first token in the stream of that source and split."""
    tokens: int
    """How many it holds; the file has twice as many bytes."""
    sha256: str
    """Hash of the file."""


class ShardWriter:
    """Writes one stream; holds at most one shard and one document in memory.

    Args:
        folder: The corpus.
        source: Name of the source.
        split: Train or held out.
        shard_tokens: Tokens a file.
    """

    def __init__(self, folder: Path, source: str, split: Split, *, shard_tokens: int = SHARD_TOKENS) -> None:
        self._folder = folder
        self._source = source
        self._split: Split = split
        self._shard_tokens = shard_tokens
        self._pending: list[Tokens] = []
        self._pending_tokens = 0
        self._shards: list[Shard] = []
        self.tokens = 0

    def append(self, tokens: Tokens) -> int:
        """Add tokens to the stream and hand back the place of the first."""
        first = self.tokens
        self._pending.append(tokens)
        self._pending_tokens += len(tokens)
        self.tokens += len(tokens)
        if self._pending_tokens >= self._shard_tokens:
            self._flush(all_of_it=False)
        return first

    def close(self) -> list[Shard]:
        """Write what is left and hand back all shards."""
        self._flush(all_of_it=True)
        return self._shards

    def _flush(self, *, all_of_it: bool) -> None:
        waiting = np.concatenate([np.zeros(0, dtype=_LITTLE_ENDIAN), *self._pending]).astype(_LITTLE_ENDIAN)
        written = 0
        while len(waiting) - written >= self._shard_tokens or (all_of_it and written < len(waiting)):
            part = waiting[written : written + self._shard_tokens]
            self._write(part, self.tokens - len(waiting) + written)
            written += len(part)
        self._pending = [waiting[written:]]
        self._pending_tokens = len(waiting) - written

    def _write(self, part: Tokens, first_token: int) -> None:
        file = f"shards/{self._source}.{self._split}.{len(self._shards):05d}.bin"
        data = part.tobytes()
        write_atomic(self._folder / file, data)
        self._shards.append(
            Shard(
                file=file,
                source=self._source,
                split=self._split,
                first_token=first_token,
                tokens=len(part),
                sha256=hashlib.sha256(data).hexdigest(),
            )
        )


class TokenStream:
    """Random access to one stream through memory maps.

    Args:
        folder: The corpus.
        shards: The files of the stream, in order.

    Raises:
        DataError: a file is missing or has another length than the manifest says.
    """

    def __init__(self, folder: Path, shards: Sequence[Shard]) -> None:
        self._maps = [_map(folder / shard.file, shard) for shard in shards]
        self._firsts = np.array([shard.first_token for shard in shards], dtype=np.int64)
        self._tokens = sum(shard.tokens for shard in shards)

    def __len__(self) -> int:
        return self._tokens

    def take(self, first: int, count: int) -> Tokens:
        """Tokens ``first`` to ``first + count - 1``, a copy.

        Raises:
            IndexError: they are not all in the stream.
        """
        if not (first >= 0 and count >= 0 and first + count <= self._tokens):
            raise IndexError(f"tokens {first} to {first + count} of a stream of {self._tokens}")
        taken = np.empty(count, dtype=np.uint16)
        done = 0
        shard = int(np.searchsorted(self._firsts, first, side="right")) - 1
        while done < count:
            start = first + done - int(self._firsts[shard])
            part = self._maps[shard][start : start + count - done]
            taken[done : done + len(part)] = part
            done += len(part)
            shard += 1
        return taken


def _map(path: Path, shard: Shard) -> Tokens:
    try:
        size = path.stat().st_size
        if size == 2 * shard.tokens:
            return np.memmap(path, dtype=_LITTLE_ENDIAN, mode="r")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}", remedy="prepare the corpus again") from error
    raise DataError(f"{path}: {size:,} bytes, expected {2 * shard.tokens:,}", remedy="prepare the corpus again")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()
