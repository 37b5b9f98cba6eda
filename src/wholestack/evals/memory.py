"""A model in memory: a byte n-gram model, exact, deterministic, and needing nothing; tests of users run with it too.

P(b | context) interpolates the counts of a text from no context up to ``order`` bytes: with c the last k bytes of the
context, P_k = (count(c b) + strength * P_{k-1}) / (count(c) + strength), and 1/256 below everything. Its tokens are
bytes, so no token ever spans a join, and it predicts the first byte of a text too, so an empty context is no problem.
Without a text it gives every byte 1/256: 8 bits per byte, the score of knowing nothing, which any model has to beat.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import log
from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.backend import Expense, Generation, ItemScore, ModelIdentity, Opening, Writing, not_done
from wholestack.evals.items import TOKEN_RULE, Item
from wholestack.evals.prepared import TOO_LONG
from wholestack.evals.reading import read_file
from wholestack.evals.rows import NOT_TEXT
from wholestack.record import digest

BYTES = 256


class MemoryBackend:
    """A byte n-gram model as a :class:`~wholestack.evals.backend.Backend`.

    Args:
        text: What it learns from; empty for the model that knows nothing.
        order: Most bytes of context that it looks at.
        strength: Weight of the shorter context, in counts.
        context_bytes: Longest input; a longer context is cut on its left, and counted.
        name: How it is called.

    Raises:
        InputError: a number is out of its range.
    """

    def __init__(
        self,
        text: bytes = b"",
        *,
        order: int = 4,
        strength: float = 1.0,
        context_bytes: int = 1 << 20,
        name: str = "memory",
    ) -> None:
        if order < 0 or not strength > 0 or context_bytes < 2:
            raise InputError(
                f"order is {order}, strength {strength}, context_bytes {context_bytes}:"
                " must be at least 0, above 0, at least 2"
            )
        self._order, self._strength, self._context_bytes = order, strength, context_bytes
        self._followed = Counter(
            text[start : start + length] for length in range(order + 1) for start in range(len(text) - length)
        )
        self._counts = Counter(
            text[start : start + length + 1] for length in range(order + 1) for start in range(len(text) - length)
        )
        self._identity = ModelIdentity(
            kind="memory",
            name=name,
            parts={
                "weights": hashlib.sha256(text).hexdigest(),
                "order": str(order),
                "strength": repr(float(strength)),
                "context_tokens": str(context_bytes),
                "tokenizer": "bytes",
                "dtype": "float64",
                "token_rule": TOKEN_RULE,
            },
            parameters=len(self._counts),
        )

    @property
    def identity(self) -> ModelIdentity:
        """What it is: the text and every setting."""
        return self._identity

    def expense(self, items: Sequence[Item], prompts: Sequence[str] = (), writing: Writing | None = None) -> Expense:
        """Bytes, exactly; a context is read once an item."""
        texts = [item.context + "".join(item.delimiter + choice for choice in item.choices) for item in items]
        return Expense(
            requests=len(items) + len(prompts),
            prompt_tokens=sum(len(_bytes(text)) for text in (*texts, *prompts)),
            written_tokens=len(prompts) * (writing.max_tokens if writing else 0),
            basis="bytes counted",
        )

    def score(self, items: Sequence[Item], *, done: Collection[str] = ()) -> Iterator[ItemScore]:
        """Score items one by one."""
        return map(self._score, not_done(items, done))

    def generate(self, prompts: Sequence[str], writing: Writing) -> Iterator[Generation]:
        """Write bytes one by one; what is no UTF-8 is replaced."""
        return (self._write(prompt, writing) for prompt in prompts)

    def _score(self, item: Item) -> ItemScore:
        try:
            context = item.context.encode()
            answers = [(item.delimiter + choice).encode() for choice in item.choices]
        except UnicodeEncodeError:
            return ItemScore(id=item.id, reason=NOT_TEXT)
        # The last byte is predicted and read by nobody; the same room as for a model of tokens.
        room = self._context_bytes - (max(map(len, answers)) - 1)
        if room < 0:
            return ItemScore(id=item.id, reason=TOO_LONG)
        kept = context[max(0, len(context) - room) :]
        return ItemScore(
            id=item.id,
            nll_nats=tuple(self._nll_nats(kept, answer) for answer in answers),
            tokens=tuple(map(len, answers)),
            truncated=len(kept) < len(context),
            positions=len(kept) + sum(map(len, answers)),
        )

    def _nll_nats(self, context: bytes, answer: bytes) -> float:
        # Only the last bytes reach a prediction; a long context is not copied for every byte of the answer.
        text = context[len(context) - min(len(context), self._order) :] + answer
        first = len(text) - len(answer)
        return -sum(log(self._probability(text[:place], text[place])) for place in range(first, len(text)))

    def _probability(self, context: bytes, byte: int) -> float:
        found = 1 / BYTES
        for length in range(min(self._order, len(context)) + 1):
            seen = context[len(context) - length :]
            followed = self._followed[seen]
            if followed:
                found = (self._counts[seen + bytes((byte,))] + self._strength * found) / (followed + self._strength)
        return found

    def _write(self, prompt: str, writing: Writing) -> Generation:
        text = _bytes(prompt)[-self._context_bytes :]
        rng = random.Random(digest("memory", writing.seed, writing.temperature, prompt.encode(errors="replace").hex()))
        written = b""
        for _ in range(writing.max_tokens):
            written += bytes((self._next(text[-self._order :] + written, writing.temperature, rng),))
            shown = written.decode(errors="replace")
            ends = [shown.find(stop) for stop in writing.stop if stop and stop in shown]
            if ends:
                return Generation(text=shown[: min(ends)], tokens=len(written), finish="stop")
        return Generation(text=written.decode(errors="replace"), tokens=len(written), finish="length")

    def _next(self, context: bytes, temperature: float, rng: random.Random) -> int:
        probabilities = [self._probability(context, byte) for byte in range(BYTES)]
        if temperature == 0:
            return probabilities.index(max(probabilities))
        weights = [each ** (1 / temperature) for each in probabilities]
        # So close to zero that no weight can be told from nothing, a temperature is zero.
        return rng.choices(range(BYTES), weights)[0] if any(weights) else probabilities.index(max(probabilities))


def open_memory(name: str, opening: Opening) -> MemoryBackend:
    """``memory`` knows nothing, ``memory:FILE`` has counted the bytes of a file; nothing can be said besides.

    Raises:
        InputError: the file cannot be read.
    """
    _, _, file = name.partition(":")
    return MemoryBackend(read_file(Path(file)) if file else b"", name=name)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")
