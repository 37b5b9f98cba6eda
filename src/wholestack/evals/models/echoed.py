"""What an OpenAI-compatible server says about the tokens of a text, and which of them are scored.

A server echoes a prompt as tokens with log-probabilities, in one of three forms::

    choices[0].logprobs = {tokens, token_logprobs, text_offset}          echo=true: OpenAI, vLLM, many others
    choices[0].prompt_token_ids beside it                                return_token_ids=true: vLLM from 0.10.2
    choices[0].prompt_logprobs = [null, {"id": {logprob, decoded_token}}]   prompt_logprobs=0: vLLM

Three traps are closed here. ``text_offset`` counts characters in one server and bytes in another, counts the start
token or not, and was wrong in releases (vLLM pull request 47815), so it is not used: tokens must spell the text, byte
for byte. A token that is a part of a UTF-8 character comes as U+FFFD, as ``bytes:\\xe2\\x82`` or as nothing until its
last part, so where it ends may be known only up to a few bytes: all places that are possible are carried along, and
tokens are equal only if they are so in all of them. And a missing log-probability stays ``None``; it is never zero.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from wholestack.evals.backend import ItemScore
from wholestack.evals.items import Item
from wholestack.evals.prepared import NO_CONTEXT, NO_TOKENS

MOST_COUNTED = 1_000_000_000
"""Tokens of one text that a server may claim; more is a mistake of its own."""

UNREADABLE = "the endpoint's answer is not a completion"
NO_LOGPROBS = "the endpoint gives no log-probabilities of the text it was sent"
WRONG_LENGTHS = "the endpoint's lists of tokens and log-probabilities differ in length"
NOT_THE_TEXT = "the endpoint's tokens do not spell the text it was sent"
MISSING_LOGPROB = "the endpoint gave no log-probability for a scored token"
UNSURE_JOIN = "where the context's tokens end cannot be told from the endpoint's names of half characters"
NOT_A_LOGPROB = "the endpoint gave a number that is no log-probability"

_ROUNDING_NATS = 1e-3
"""A log-probability may be above zero by so much: half-precision rounding."""
_PIECE = rb"(?:[\x80-\xbf]|[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xff][\x80-\xbf]{0,2}|\xef\xbf\xbd)"
"""What one U+FFFD may stand for: a lone later byte, the beginning of a character, or the character U+FFFD itself."""
_MOST_PLACES = 64
"""Of possible ends of one token; beyond it the names say too little."""
_START_TOKENS = 2
"""Most tokens in front of the text that spell none of it."""
_SAME_NATS = 0.05
_CLAMPED_NATS = -9999.0
"""vLLM writes this for minus infinity, which JSON has no number for."""
_UNNAMED = "\0unnamed"
"""Stands for the first token of a list that does not name it."""
_LONGEST_UNNAMED_BYTES = 256


class UnusableAnswerError(Exception):
    """An answer from which no item can be scored; ``str()`` is the reason, one of the texts above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoedText:
    """The tokens of one text as the server sees them; make it with :func:`read_echo`."""

    tokens: tuple[str, ...]
    """Of the text alone, start tokens included, whatever was written behind it left out."""
    ids: tuple[int, ...]
    """Token ids where the server says them; else empty."""
    logprobs: tuple[float | None, ...]
    """Natural logarithms; ``None`` where the server gave none."""
    ends: tuple[frozenset[int], ...]
    """Byte places of the text where each token may end; start tokens end at 0."""

    @property
    def starts(self) -> int:
        """Tokens in front of the text, such as ``<s>``."""
        return sum(1 for token, ends in zip(self.tokens, self.ends, strict=True) if token and ends == {0})


def read_echo(answer: object, text: str, *, written: int) -> EchoedText:
    """Read the tokens of a text out of an answer.

    Args:
        answer: The decoded JSON.
        text: What was sent.
        written: Most tokens that may follow the text (``max_tokens`` of the request).

    Raises:
        UnusableAnswerError: there are no log-probabilities, lists of different lengths, or tokens of another text.
    """
    choice = _first_choice(answer)
    usage = _usage_of(answer)
    ids = _whole_numbers(choice.get("prompt_token_ids"))
    if isinstance(choice.get("prompt_logprobs"), list):
        tokens, logprobs, ids = _of_prompt_logprobs(choice["prompt_logprobs"], ids)
    else:
        tokens, logprobs = _of_logprobs(choice.get("logprobs"))
    count = len(ids) or usage or len(tokens) - written
    if not 0 < count <= len(tokens) <= count + written:
        raise UnusableAnswerError(NOT_THE_TEXT)
    tokens, logprobs = tokens[:count], logprobs[:count]
    if len(tokens) > 1 and not any(logprobs):  # null or 0 for every token: not computed
        raise UnusableAnswerError(NO_LOGPROBS)
    return EchoedText(tokens=tokens, ids=ids, logprobs=logprobs, ends=_spell(tokens, logprobs, text.encode()))


def score_echoed(item: Item, context: EchoedText | None, wholes: Sequence[EchoedText]) -> ItemScore:
    """Apply ``items.TOKEN_RULE`` to an item whose texts were echoed.

    Args:
        item: The item.
        context: Its context alone; ``None`` if that is empty, which no server takes as a prompt.
        wholes: Context, delimiter and choice, for each choice.
    """
    alone = _context_tokens(context, wholes)
    shared = min(_shared_tokens(alone, whole) for whole in wholes)
    scored = [whole.logprobs[shared:] for whole in wholes]
    if not all(scored):
        return ItemScore(id=item.id, reason=NO_TOKENS)
    if shared == 0 and any(not each[0] for each in scored):  # some servers write 0 for the token with nothing before it
        return ItemScore(id=item.id, reason=NO_CONTEXT)
    known = [[logprob for logprob in each if logprob is not None] for each in scored]
    if any(len(some) < len(each) for some, each in zip(known, scored, strict=True)):
        return ItemScore(id=item.id, reason=MISSING_LOGPROB)
    return ItemScore(
        id=item.id,
        nll_nats=tuple(max(0.0, -math.fsum(each)) for each in known),
        tokens=tuple(len(each) for each in known),
        spanning=shared < len(alone.tokens),
        positions=sum(len(whole.tokens) for whole in wholes) + (len(context.tokens) if context else 0),
    )


def _context_tokens(context: EchoedText | None, wholes: Sequence[EchoedText]) -> EchoedText:
    """The context's tokens; of an empty one the start tokens that the server puts in front of any text."""
    if context is not None:
        return context
    whole = wholes[0]
    return EchoedText(
        tokens=whole.tokens[: whole.starts],
        ids=whole.ids[: whole.starts],
        logprobs=whole.logprobs[: whole.starts],
        ends=whole.ends[: whole.starts],
    )


def _shared_tokens(left: EchoedText, right: EchoedText) -> int:
    """Longest run of equal leading tokens.

    By id where the server gives ids. By name otherwise; where a part of a character has no name of its own, the same
    name may be two tokens, and then their log-probabilities behind the same text decide.
    """
    count = min(len(left.tokens), len(right.tokens))
    by_id = bool(left.ids) and bool(right.ids)
    for place in range(count):
        if by_id:
            if left.ids[place] != right.ids[place]:
                return place
        elif left.tokens[place] != right.tokens[place] or not left.ends[place] & right.ends[place]:
            return place
        elif len(left.ends[place] | right.ends[place]) > 1 and not _close(left.logprobs[place], right.logprobs[place]):
            raise UnusableAnswerError(UNSURE_JOIN)
    return count


def _close(left: float | None, right: float | None) -> bool:
    """Whether two log-probabilities may be the same one, computed twice in half precision."""
    if left is None or right is None:
        return left is right
    return abs(left - right) <= _SAME_NATS


def _of_logprobs(raw: object) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
    """Of ``{"tokens": [...], "token_logprobs": [...]}``."""
    if not isinstance(raw, Mapping):
        raise UnusableAnswerError(NO_LOGPROBS)
    tokens, logprobs = raw.get("tokens"), raw.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(logprobs, list) or not logprobs:
        raise UnusableAnswerError(NO_LOGPROBS)
    if len(tokens) != len(logprobs):
        raise UnusableAnswerError(WRONG_LENGTHS)
    if not all(isinstance(token, str) for token in tokens):
        raise UnusableAnswerError(UNREADABLE)
    return tuple(tokens), tuple(map(_logprob, logprobs))


def _of_prompt_logprobs(
    raw: Sequence[object], ids: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[float | None, ...], tuple[int, ...]]:
    """Of vLLM's list with one mapping from token id to log-probability a token; the first is null."""
    if len(ids) != len(raw):
        raise UnusableAnswerError(WRONG_LENGTHS if ids else NO_LOGPROBS)
    tokens: list[str] = []
    logprobs: list[float | None] = []
    for place, (token, entries) in enumerate(zip(ids, raw, strict=True)):
        entry = entries.get(str(token)) if isinstance(entries, Mapping) else None
        if entry is None and (entries is not None or place > 0):
            raise UnusableAnswerError(NO_LOGPROBS)
        tokens.append(str(entry.get("decoded_token") or "") if isinstance(entry, Mapping) else _UNNAMED)
        logprobs.append(_logprob(entry.get("logprob")) if isinstance(entry, Mapping) else None)
    return tuple(tokens), tuple(logprobs), ids


def _logprob(raw: object) -> float | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise UnusableAnswerError(NOT_A_LOGPROB)
    try:
        value = float(raw)
    except OverflowError:
        raise UnusableAnswerError(NOT_A_LOGPROB) from None
    if not math.isfinite(value) or value > _ROUNDING_NATS or value <= _CLAMPED_NATS:
        raise UnusableAnswerError(NOT_A_LOGPROB)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """What a token's name says about its bytes."""

    readings: frozenset[bytes]
    """Bytes that it may stand for."""
    pattern: re.Pattern[bytes] | None
    """The same with unknown parts; ``None`` if it has none."""
    least: int
    """Fewest bytes."""
    most: int
    """Most bytes."""


def _spell(tokens: Sequence[str], logprobs: Sequence[float | None], text: bytes) -> tuple[frozenset[int], ...]:
    """Places where each token may end, given that together they spell the text."""
    names = [_name(token) for token in tokens]
    starting = [_may_be_start(*each) for each in zip(range(_START_TOKENS), tokens, logprobs, strict=False)]
    least_left, most_left = sum(each.least for each in names), sum(each.most for each in names)
    steps: list[set[tuple[int, int]]] = []
    places = {0}
    for index, name in enumerate(names):
        least_left, most_left = least_left - name.least, most_left - name.most
        room = range(len(text) - most_left, len(text) - least_left + 1)
        steps.append({(start, end) for start in places for end in _ends(name, text, start) if end in room})
        if 0 in places and index < len(starting) and starting[index]:
            steps[-1].add((0, 0))
        places = {end for _, end in steps[-1]}
        if len(places) > _MOST_PLACES:
            raise UnusableAnswerError(UNSURE_JOIN)
    ends: list[frozenset[int]] = []
    places &= {len(text)}
    for step in reversed(steps):
        ends.append(frozenset(places))
        places = {start for start, end in step if end in places}
    if 0 not in places:
        raise UnusableAnswerError(NOT_THE_TEXT)
    return tuple(reversed(ends))


def _may_be_start(index: int, token: str, logprob: float | None) -> bool:
    """A token such as ``<s>`` in front of the text: it has no log-probability, or the second has such a name."""
    if not token or "\ufffd" in token:
        return False
    return logprob is None or bool(re.fullmatch(r"<.+>|\[.+\]", token))


def _ends(name: _Name, text: bytes, start: int) -> set[int]:
    """Where a token may end that begins here."""
    if not name.readings:
        return set(range(min(len(text), _LONGEST_UNNAMED_BYTES) + 1))
    found = {start + len(each) for each in name.readings if text.startswith(each, start)}
    if start == 0:  # sentencepiece puts a space before the first word
        found |= {len(each) - 1 for each in name.readings if each[:1] == b" " and text.startswith(each[1:])}
    if name.pattern is None:
        return found
    furthest = min(len(text), start + name.most)
    return found | {end for end in range(start, furthest + 1) if name.pattern.fullmatch(text, start, end)}


@lru_cache(maxsize=65_536)
def _name(token: str) -> _Name:
    """Read a token's name."""
    if token == _UNNAMED:
        return _Name(readings=frozenset(), pattern=None, least=0, most=_LONGEST_UNNAMED_BYTES)
    literal = token.encode(errors="replace")
    found = {literal, token.replace("\u2581", " ").encode(errors="replace")}
    named = re.fullmatch(r"bytes:((?:\\x[0-9a-fA-F]{2})+)", token)  # OpenAI
    byte = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", token)  # sentencepiece's byte fallback
    if named:
        found.add(bytes.fromhex(named[1].replace("\\x", "")))
    if byte:
        found.add(bytes.fromhex(byte[1]))
    lengths = [len(each) for each in found]
    if "\ufffd" not in token:
        # A start token, or the space of sentencepiece, may be none of the text.
        least = 0 if re.fullmatch(r"<.+>|\[.+\]", token) else min(lengths) - any(each[:1] == b" " for each in found)
        return _Name(readings=frozenset(found), pattern=None, least=least, most=max(lengths))
    parts = [part.encode(errors="replace") for part in token.split("\ufffd")]
    return _Name(
        readings=frozenset(found),
        pattern=re.compile(_PIECE.join(map(re.escape, parts))),
        least=sum(map(len, parts)) + len(parts) - 1,
        most=sum(map(len, parts)) + 3 * (len(parts) - 1),
    )


def _first_choice(answer: object) -> Mapping[str, Any]:
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise UnusableAnswerError(UNREADABLE)
    first: Mapping[str, Any] = choices[0]
    return first


def _usage_of(answer: object) -> int:
    """Tokens of the prompt as the server counts them, 0 where it does not."""
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    count = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= MOST_COUNTED else 0


def _whole_numbers(raw: object) -> tuple[int, ...]:
    if not isinstance(raw, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in raw):
        return ()
    return tuple(raw)
