"""A model behind an OpenAI-compatible endpoint, scored and asked over HTTP.

Scoring needs the log-probabilities of a text that is sent, which is not the same as those of a text that is written.
Servers differ in how they give them, so a fixed text is tried in these ways and the first that works is kept:

1. ``echo=true, logprobs=1, max_tokens=0``: OpenAI's own form. vLLM takes it, and with ``return_token_ids`` gives ids.
2. the same with ``max_tokens=1``, for servers that must write something (vLLM issue 9336).
3. ``prompt_logprobs=0, max_tokens=1``, vLLM's own form.

llama.cpp's server refuses ``echo`` or gives log-probabilities of written tokens only (its issue 27174), and chats
have none of the prompt: such an endpoint can write and cannot score, and says so before the first item.

Each item costs one request a choice and one for its context alone, which the server tokenises; ``items.TOKEN_RULE``
is then applied to its tokens. Nothing is cut to fit: a text that is too long for the server is a counted reason.

An endpoint's weights cannot be hashed. Its identity holds its address, the model's name, what ``/models`` says of it,
and a fingerprint: the tokens and summed log-probabilities of fixed texts, taken twice and rounded to a step that
covers how far they wandered. Another model behind the same name has another fingerprint, as far as it differs by more
than that step on these texts. Where log-probabilities are not given, the texts that are written stand for them; where
not even those come again, nothing tells two models apart, and the identity holds a number drawn once: no later call
takes its results for its own. It is taken again when a scoring ends. ``weights`` is ``unverified`` all the same.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, TypeVar
from uuid import uuid4

from wholestack.errors import InputError
from wholestack.evals.backend import Expense, Generation, ItemScore, ModelIdentity, Opening, Writing, not_done
from wholestack.evals.items import TOKEN_RULE, Item
from wholestack.evals.models.echoed import MOST_COUNTED, EchoedText, UnusableAnswerError, read_echo, score_echoed
from wholestack.evals.models.transport import NoAnswerError, Patience, Reply, Transport, parse_address
from wholestack.evals.rows import NOT_TEXT
from wholestack.record import digest

NO_ANSWER = "the endpoint gave no answer to this item, though it did to a fixed text"

PROBES = (
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "def add(left, right):\n    return left + right\n",
    "Straße 12, 東京; naïve café, 3.14 × 2 = 6.28",
)
"""Texts of the fingerprint, the same for ever."""
_STEPS_NATS = (0.01, 0.1, 1.0)
"""A ladder, so that noise measured anew rarely gives another step and with it another key."""
_STEP_NOISES = 4
"""Steps are at least so many times the noise."""
_CHANGED_NATS_PER_TOKEN = 0.1
_MOST_STOPS = 4
"""OpenAI takes no more; the text is cut here in any case."""
_TIMED_TOKENS = 8

Route = Literal["completions", "chat"]
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One form of the request for the log-probabilities of a text."""

    name: str
    body: Mapping[str, Any]


_FORMS: Mapping[str, Mapping[str, Any]] = {
    "echo": {"echo": True, "logprobs": 1, "max_tokens": 0, "temperature": 0},
    "echo and one token": {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0},
    "prompt_logprobs": {"prompt_logprobs": 0, "max_tokens": 1, "temperature": 0},
}
_WAYS = tuple(
    _Way(name=name + suffix, body={**form, **ids})
    for name, form in _FORMS.items()
    for suffix, ids in ((" with ids", {"return_token_ids": True}), ("", {}))
)


class _RefusedError(Exception):
    """The server answered a request with 4xx; ``str()`` is what it said."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}{': ' if reply.said else ''}{reply.said}")
        self.status = reply.status


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fingerprint:
    """What the fixed texts gave."""

    tokens: str
    """Digest of the tokens, or of the texts written by an endpoint without log-probabilities."""
    sums_nats: tuple[float, ...] = ()
    """Summed log-probabilities of each text."""
    counts: tuple[int, ...] = ()
    """Tokens of each text."""


def open_endpoint(
    url: str,
    opening: Opening,
    *,
    patience: Patience | None = None,
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], object] | None = None,
) -> "Endpoint":
    """Open the model behind a URL such as ``http://host:8000/v1#name``; without a name, the only one it lists.

    Args:
        url: Address of the API and, behind ``#``, name of the model.
        opening: Key, prices and how many requests at a time.
        patience: Time-outs and tries.
        notice: Told in one line about every wait; by default a warning of this module's logger.
        sleep: Waits; by default a wait that can be broken off.

    Raises:
        InputError: the URL is wrong, nobody answers, the key is refused, or the model is not there.
    """
    if opening.requests_at_a_time < 1:
        raise InputError(f"requests_at_a_time is {opening.requests_at_a_time}, must be at least 1")
    transport = Transport(
        address=parse_address(url),
        api_key=opening.api_key,
        patience=patience or Patience(),
        notice=notice or logging.getLogger(__name__).warning,
        sleep=sleep,
    )
    return Endpoint(transport, opening)


class Endpoint:
    """A :class:`~wholestack.evals.backend.Backend` over HTTP; make it with :func:`open_endpoint`."""

    def __init__(self, transport: Transport, opening: Opening) -> None:
        self._transport = transport
        self._opening = opening
        self._where = transport.address.shown
        try:
            listed = self._listed()
            self._model = transport.address.model or self._only(listed)
            self._route: Route = "completions"
            self._why_not = ""
            self._way = self._find_way()
            self._fingerprint = self._take_fingerprint()
            again = self._take_fingerprint()
        except NoAnswerError as error:
            raise InputError(str(error), remedy="start the server, or correct its address") from error
        except _RefusedError as error:
            raise InputError(
                f"{self._where}: refuses model {self._model!r}: {error}",
                remedy="name a model that it serves behind #, and give the address up to and with /v1",
            ) from error
        self._step_nats = _step(self._fingerprint, again)
        if self._step_nats is None:
            transport.notice(
                f"{self._where}: {self._model!r} answers the same text differently each time, so nothing tells it from"
                " another model: its results are kept, but no later call goes on with them"
            )
        self._identity = self._identify(listed.get(self._model, {}))
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Endpoint({self._where}#{self._model})"

    @property
    def identity(self) -> ModelIdentity:
        """What is known of it; its weights are not."""
        return self._identity

    @property
    def can_score(self) -> bool:
        """Whether it gives log-probabilities of a text that it is sent."""
        return self._way is not None

    def expense(self, items: Sequence[Item], prompts: Sequence[str] = (), writing: Writing | None = None) -> Expense:
        """Requests, tokens, time and cost; sends one or two timed requests, of the first item and the first prompt.

        Raises:
            InputError: items are given and it cannot score, or prompts without a writing.
        """
        texts = [text for item in items for text in _texts(item)]
        if prompts and writing is None:
            raise InputError("prompts need a writing for their expense")
        try:
            tokens_per_byte, echo_s = self._time_echo(texts) if texts else (0.25, 0.0)
            if prompts and writing is not None:
                tokens_per_byte, token_s = self._time_writing(prompts[0], writing)
            else:
                token_s = 0.0
        except (NoAnswerError, _RefusedError, UnusableAnswerError) as error:
            raise InputError(f"{self._where}: the first request failed: {error}") from error
        read = math.ceil(tokens_per_byte * sum(len(_utf8(text)) for text in (*texts, *prompts)))
        most_written = writing.max_tokens * len(prompts) if writing else 0
        written = most_written + (len(texts) if self._way and self._way.body["max_tokens"] else 0)
        busy_s = echo_s * len(texts) + token_s * most_written
        return Expense(
            requests=len(texts) + len(prompts),
            prompt_tokens=read,
            written_tokens=written,
            seconds=busy_s / self._opening.requests_at_a_time,
            usd=self._price(read, written),
            basis=f"one timed request, {tokens_per_byte:.3f} tokens a byte there,"
            f" {self._opening.requests_at_a_time} at a time; seconds and written tokens are the most",
        )

    def score(self, items: Sequence[Item], *, done: Collection[str] = ()) -> Iterator[ItemScore]:
        """Score items, several at a time and handed over in order.

        Raises:
            InputError: it gives no log-probabilities of a prompt, is gone, or is another model than at the start.
        """
        if self._way is None:
            raise InputError(
                f"{self._where}: {self._model!r} cannot be scored: {self._why_not}",
                remedy="serve it with vLLM (completions with echo and logprobs), or open its weights as a folder",
            )
        yield from self._in_order(not_done(items, done), self._score_one)
        self._refuse_changed()

    def generate(self, prompts: Sequence[str], writing: Writing) -> Iterator[Generation]:
        """Write behind prompts, several at a time and handed over in order.

        Raises:
            InputError: it is gone.
        """
        yield from self._in_order(prompts, lambda prompt: self._write_one(prompt, writing))

    def _score_one(self, item: Item) -> ItemScore:
        context, *wholes = _texts(item) if item.context else ["", *_texts(item)]
        if not _is_text(context + "".join(wholes)):
            return ItemScore(id=item.id, reason=NOT_TEXT)
        try:
            alone = self._echo(context) if context else None
            return score_echoed(item, alone, [self._echo(whole) for whole in wholes])
        except UnusableAnswerError as error:
            return ItemScore(id=item.id, reason=str(error))
        except _RefusedError as error:
            return ItemScore(id=item.id, reason=f"the endpoint refused the text (HTTP {error.status})")
        except NoAnswerError as error:
            self._refuse_gone(error)
            return ItemScore(id=item.id, reason=NO_ANSWER)

    def _write_one(self, prompt: str, writing: Writing) -> Generation:
        if not _is_text(prompt):
            return _nothing(NOT_TEXT)
        try:
            return self._write(prompt, writing)
        except _RefusedError as error:
            return _nothing(f"the endpoint refused the prompt (HTTP {error.status})")
        except NoAnswerError as error:
            self._refuse_gone(error)
            return _nothing(NO_ANSWER)

    def _echo(self, text: str) -> EchoedText:
        if self._way is None:
            raise UnusableAnswerError(self._why_not)
        return self._echo_by(self._way, text)

    def _echo_by(self, way: _Way, text: str) -> EchoedText:
        reply = self._post("/completions", {"prompt": text, **way.body})
        return read_echo(reply.body, text, written=way.body["max_tokens"])

    def _write(self, prompt: str, writing: Writing) -> Generation:
        body: dict[str, Any] = {
            "max_tokens": writing.max_tokens,
            "temperature": writing.temperature,
            "seed": writing.seed,
        }
        if writing.stop:
            body["stop"] = list(writing.stop[:_MOST_STOPS])
        return _read_generation(self._ask(prompt, body).body, writing)

    def _ask(self, prompt: str, body: Mapping[str, Any]) -> Reply:
        if self._route == "chat":
            return self._post("/chat/completions", {"messages": [{"role": "user", "content": prompt}], **body})
        return self._post("/completions", {"prompt": prompt, **body})

    def _post(self, path: str, body: Mapping[str, Any]) -> Reply:
        reply = self._transport.send(path, {"model": self._model, "stream": False, **body})
        if reply.body is None and reply.status >= 400:
            raise _RefusedError(reply)
        return reply

    def _in_order(self, jobs: Sequence[Job], work: Callable[[Job], Result]) -> Iterator[Result]:
        """Several jobs at a time, results in the order of the jobs; broken off, it leaves no thread behind."""
        self._transport.go_on()
        at_a_time = self._opening.requests_at_a_time
        with ThreadPoolExecutor(at_a_time, thread_name_prefix="endpoint") as pool:
            waiting = iter(jobs)
            pending: deque[Future[Result]] = deque(pool.submit(work, job) for job in islice(waiting, 2 * at_a_time))
            try:
                while pending:
                    result = pending.popleft().result()
                    pending.extend(pool.submit(work, job) for job in islice(waiting, 1))
                    yield result
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._transport.stop()
                raise

    def _listed(self) -> dict[str, Mapping[str, Any]]:
        """What ``/models`` says, by name; nothing where the server has no such list."""
        body = self._transport.send("/models").body
        entries = body.get("data") if isinstance(body, Mapping) else None
        if not isinstance(entries, list):
            return {}
        named = (entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("id"), str))
        return {_sound(entry["id"]): entry for entry in named}

    def _only(self, listed: Mapping[str, object]) -> str:
        if len(listed) == 1:
            return next(iter(listed))
        names = ", ".join(sorted(listed)[:5]) + (", ..." if len(listed) > 5 else "")
        raise InputError(
            f"{self._where}: lists {len(listed)} models{': ' if names else ''}{names}",
            remedy=f"name one behind #, as in {self._where}#{min(listed, default='model')}",
        )

    def _find_way(self) -> _Way | None:
        """The first way that gives log-probabilities of a text; settles the route, too."""
        refused: _RefusedError | None = None
        for way in _WAYS:
            try:
                self._echo_by(way, PROBES[0])
                return way
            except UnusableAnswerError as error:
                self._why_not = str(error)
            except _RefusedError as error:
                refused = error
                if error.status in (404, 405):
                    break
                self._why_not = self._why_not or f"it refuses echo with logprobs ({error})"
        if refused is not None and refused.status in (404, 405):
            self._route = "chat"
            self._why_not = "it has no /completions, and log-probabilities of a prompt are not part of a chat"
        return None

    def _take_fingerprint(self) -> _Fingerprint:
        if self._way is None:
            texts = [self._write(probe, Writing(max_tokens=16)).text for probe in PROBES]
            return _Fingerprint(tokens=digest(texts))
        echoes = [self._echo_or_reason(probe) for probe in PROBES]
        seen = [echo for echo in echoes if isinstance(echo, EchoedText)]
        return _Fingerprint(
            tokens=digest([e if isinstance(e, str) else [*e.tokens, *map(str, e.ids)] for e in echoes]),
            sums_nats=tuple(math.fsum(logprob or 0.0 for logprob in echo.logprobs) for echo in seen),
            counts=tuple(len(echo.tokens) for echo in seen),
        )

    def _echo_or_reason(self, text: str) -> EchoedText | str:
        try:
            return self._echo(text)
        except UnusableAnswerError as error:
            return str(error)

    def _same(self, left: _Fingerprint, right: _Fingerprint, nats: float) -> bool:
        sums = zip(left.sums_nats, right.sums_nats, strict=False)
        return left.tokens == right.tokens and all(abs(one - other) <= nats for one, other in sums)

    def _identify(self, entry: Mapping[str, Any]) -> ModelIdentity:
        stable = {key: entry[key] for key in ("id", "root", "parent", "owned_by", "max_model_len") if key in entry}
        step = self._step_nats
        known = [] if step is None else [round(total / step) for total in self._fingerprint.sums_nats]
        fingerprint = uuid4().hex if step is None else digest(self._fingerprint.tokens, known)
        basis = "drawn, nothing repeats" if step is None else f"{step} nats" if self._way else "text"
        return ModelIdentity(
            kind="endpoint",
            name=f"{self._where}#{self._model}",
            parts={
                "address": self._where,
                "model": self._model,
                "listed": digest({key: _sound(str(value)) for key, value in stable.items()}),
                "weights": "unverified",
                "route": self._route,
                "way": self._way.name if self._way else "",
                "token_rule": TOKEN_RULE,
                "fingerprint": fingerprint,
                "fingerprint_step": basis,
            },
            taken_at=datetime.now(UTC).date().isoformat(),
        )

    def _refuse_changed(self) -> None:
        """A server that was restarted with other weights in the middle would mix two models in one result."""
        try:
            now = self._take_fingerprint()
        except (NoAnswerError, _RefusedError, UnusableAnswerError) as error:
            raise InputError(f"{self._where}: is gone after the last item: {error}") from error
        if not self._same(self._fingerprint, now, _CHANGED_NATS_PER_TOKEN * min(now.counts, default=0)):
            raise InputError(
                f"{self._where}: {self._model!r} is another model than when it was opened",
                remedy="score it again from the start; these scores are of two models",
            )

    def _refuse_gone(self, error: NoAnswerError) -> None:
        """One item without an answer may be the item's fault: ask for a fixed text before it is blamed."""
        with self._lock:
            try:
                self._ask(PROBES[0], {"max_tokens": 1, "temperature": 0})
            except (NoAnswerError, _RefusedError):
                raise InputError(
                    str(error), remedy="run the same command again later; what was done is kept"
                ) from error

    def _time_echo(self, texts: Sequence[str]) -> tuple[float, float]:
        """Tokens a byte and seconds of the longest of the first texts."""
        text = max(texts[:8], key=len)
        if self._way is None:
            raise UnusableAnswerError(self._why_not)
        reply = self._post("/completions", {"prompt": text, **self._way.body})
        echo = read_echo(reply.body, text, written=self._way.body["max_tokens"])
        return len(echo.tokens) / len(text.encode()), reply.seconds

    def _time_writing(self, prompt: str, writing: Writing) -> tuple[float, float]:
        """Tokens a byte, by the server's count or else a quarter, and seconds a written token."""
        tokens = min(_TIMED_TOKENS, writing.max_tokens)
        reply = self._ask(prompt, {"max_tokens": tokens, "temperature": writing.temperature})
        read = _usage(reply.body, "prompt_tokens") or len(_utf8(prompt)) / 4
        return read / max(1, len(_utf8(prompt))), reply.seconds / tokens

    def _price(self, read: int, written: int) -> float | None:
        if self._opening.usd_per_million_tokens is None:
            return None
        usd_read, usd_written = self._opening.usd_per_million_tokens
        return (usd_read * read + usd_written * written) / 1e6


def _step(one: _Fingerprint, other: _Fingerprint) -> float | None:
    """To what sums are rounded so that two takes of one model mostly agree; ``None`` where nothing came again."""
    if one.tokens != other.tokens or len(one.sums_nats) != len(other.sums_nats):
        return None
    noise = max((abs(a - b) for a, b in zip(one.sums_nats, other.sums_nats, strict=True)), default=0.0)
    if noise > _STEPS_NATS[-1]:
        return None
    return next((step for step in _STEPS_NATS if step >= _STEP_NOISES * noise), _STEPS_NATS[-1])


def _read_generation(body: object, writing: Writing) -> Generation:
    """The text of an answer, cut in front of a stop text; anything else is no text, with a reason."""
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        return _nothing("the endpoint's answer is not a completion")
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    said = choice.get("finish_reason")
    if not isinstance(text, str) or not _is_text(text):
        return _nothing("the endpoint's answer holds no text")
    if said == "content_filter":
        return _nothing("the endpoint withheld the text (content_filter)")
    tokens = _usage(body, "completion_tokens") or _tokens_of(choice) or math.ceil(len(text.encode()) / 4)
    cut = min((place for stop in writing.stop if (place := text.find(stop)) >= 0), default=-1)
    if cut >= 0:
        return Generation(text=text[:cut], tokens=tokens, finish="stop")
    ended = said == "stop" or (said != "length" and tokens < writing.max_tokens)
    return Generation(text=text, tokens=tokens, finish="stop" if ended else "length")


def _tokens_of(choice: Mapping[str, Any]) -> int:
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("tokens") if isinstance(logprobs, Mapping) else None
    return len(tokens) if isinstance(tokens, list) else 0


def _usage(body: object, key: str) -> int:
    usage = body.get("usage") if isinstance(body, Mapping) else None
    count = usage.get(key) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= MOST_COUNTED else 0


def _nothing(reason: str) -> Generation:
    return Generation(text="", tokens=0, finish="none", reason=reason)


def _texts(item: Item) -> list[str]:
    """What is sent for an item: its context, unless that is empty, and each whole text."""
    wholes = [f"{item.context}{item.delimiter}{choice}" for choice in item.choices]
    return [item.context, *wholes] if item.context else wholes


def _sound(text: str) -> str:
    """What a server says as text that can be stored: halves of surrogate pairs as question marks."""
    return text.encode(errors="replace").decode()


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
