"""An OpenAI-compatible server on loopback, with a small real model in it, and faults to inject.

The model is an n-gram model over bytes or byte pairs: its numbers mean nothing, but they are exact, repeatable, depend
on the whole vocabulary, and can be computed without the server. The server speaks the dialects in which real ones
differ (:class:`Dialect`) and fails in the ways in which real ones fail (:class:`Fault`). It listens on 127.0.0.1 on a
free port and ends with its ``with``::

    with loopback_endpoint(NgramModel.of_bytes()) as server:
        backend = open_endpoint(server.url, Opening())
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

Trouble = Literal[
    "silent", "drip", "status", "cut", "garbage", "huge", "redirect", "no_logprobs", "null_logprobs", "zero_logprobs",
    "short", "fewer", "nan",
]  # fmt: skip


class EndpointModel(Protocol):
    """What the server serves; :class:`NgramModel` is one."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""

    def name(self, token: int) -> bytes:
        """Bytes of a token."""

    def logprobs(self, tokens: Sequence[int]) -> list[float | None]:
        """Natural logarithm of each token's probability behind those before it; ``None`` where nothing is before."""

    def write(self, tokens: Sequence[int], count: int) -> list[int]:
        """The likeliest tokens behind these, at most so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramModel:
    """A model that looks back two tokens; make it with :meth:`of_bytes` or :meth:`of_byte_pairs`.

    Example:
        >>> model = NgramModel.of_byte_pairs("the cat and the hat", merges=4)
        >>> b"".join(model.name(token) for token in model.encode("the café")).decode()
        'the café'
    """

    vocabulary: tuple[bytes, ...]
    """The 256 bytes, then the merges in their order."""
    merges: Mapping[tuple[int, int], int]
    """Token that a pair becomes; lower ones go first."""
    seed: int = 0
    """Of the weights: another seed is another model with the same tokenizer."""

    @classmethod
    def of_bytes(cls, *, seed: int = 0) -> Self:
        """Every byte is a token, so that every character that is not ASCII is several."""
        return cls(vocabulary=tuple(bytes([value]) for value in range(256)), merges={}, seed=seed)

    @classmethod
    def of_byte_pairs(cls, text: str, *, merges: int, seed: int = 0) -> Self:
        """Byte pairs learnt from a text (Sennrich et al. 2016), with no rule against merging over a space."""
        vocabulary = [bytes([value]) for value in range(256)]
        learnt: dict[tuple[int, int], int] = {}
        tokens = list(text.encode())
        for _ in range(merges):
            pairs = Counter(pairwise(tokens))
            if not pairs:
                break
            best = max(sorted(pairs), key=lambda pair: pairs[pair])
            learnt[best] = len(vocabulary)
            vocabulary.append(vocabulary[best[0]] + vocabulary[best[1]])
            tokens = _merge(tokens, best, learnt[best])
        return cls(vocabulary=tuple(vocabulary), merges=learnt, seed=seed)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        tokens = list(text.encode())
        while True:
            present = {self.merges[pair]: pair for pair in pairwise(tokens) if pair in self.merges}
            if not present:
                return tokens
            first = min(present)
            tokens = _merge(tokens, present[first], first)

    def name(self, token: int) -> bytes:
        """Bytes of a token; of one that is no text, nothing."""
        return self.vocabulary[token] if token < len(self.vocabulary) else b""

    def logprobs(self, tokens: Sequence[int]) -> list[float | None]:
        """Natural logarithm of each token's probability; ``None`` for the first."""
        known = [float(self._behind(tokens[:place])[token]) for place, token in enumerate(tokens) if place]
        return [None, *known] if tokens else []

    def write(self, tokens: Sequence[int], count: int) -> list[int]:
        """The likeliest tokens."""
        written: list[int] = []
        for _ in range(count):
            written.append(int(self._behind([*tokens, *written]).argmax()))
        return written

    def _behind(self, tokens: Sequence[int]) -> npt.NDArray[np.float64]:
        return _table(self.seed, len(self.vocabulary) + 1, tuple(tokens[-2:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How real servers differ."""

    names: Literal["replaced", "bytes", "late"] = "replaced"
    """Half characters come as U+FFFD; or as ``bytes:\\x..`` (OpenAI); or as nothing until the last (vLLM)."""
    start_token: bool = False
    """Whether ``<s>`` is put in front of every text."""
    echo: bool = True
    """Without it the request is refused, as by llama.cpp."""
    zero_tokens: bool = True
    """Whether ``max_tokens`` may be 0."""
    ids: bool = False
    """Whether ``return_token_ids`` is known (vLLM)."""
    strict: bool = False
    """Whether unknown keys of a request are refused."""
    prompt_logprobs: bool = False
    """Whether ``prompt_logprobs`` is known (vLLM)."""
    usage: bool = True
    """Whether tokens are counted in the answer."""
    offsets: Literal["characters", "bytes"] = "characters"
    """What ``text_offset`` counts."""
    chat_only: bool = False
    """Whether there are only chats."""
    models: tuple[str, ...] = ("ngram",)
    """Models that are listed."""
    longest_bytes: int = 1_000_000
    """Longer prompts are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way to fail, for some of the requests."""

    trouble: Trouble
    """What goes wrong."""
    times: int = 1
    """For how many requests; then it is over."""
    within: str = ""
    """Only requests whose prompt holds this text."""
    status: int = 500
    """Of ``status`` and ``redirect``."""
    retry_after: str = ""
    """Header of ``status``."""
    location: str = ""
    """Header of ``redirect``."""


@dataclass(slots=True, kw_only=True)
class LoopbackEndpoint:
    """A server that runs."""

    url: str
    """With the path of the API, ``http://127.0.0.1:port/v1``."""
    model: EndpointModel
    """May be exchanged while it runs, as by a restart with other weights."""
    dialect: Dialect
    faults: list[Fault] = field(default_factory=list)
    """Looked through in order for each request."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of all posts, with the path as ``path`` and the headers as ``headers``."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def fault_for(self, prompt: str) -> Fault | None:
        """The first fault that is left for a request; it is used up by one."""
        with self._lock:
            for place, fault in enumerate(self.faults):
                if fault.within in prompt:
                    left = fault.times - 1
                    self.faults[place : place + 1] = [_with_times(fault, left)] if left else []
                    return fault
        return None


@contextmanager
def loopback_endpoint(
    model: EndpointModel, *, dialect: Dialect | None = None, faults: Sequence[Fault] = (), api_key: str = ""
) -> Iterator[LoopbackEndpoint]:
    """Start a server, give it, end it.

    Args:
        model: What it serves.
        dialect: How it answers.
        faults: What goes wrong, and how often.
        api_key: If given, requests without it are refused.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    endpoint = LoopbackEndpoint(
        url=f"http://127.0.0.1:{server.server_port}/v1",
        model=model,
        dialect=dialect or Dialect(),
        faults=list(faults),
    )
    server.endpoint, server.api_key = endpoint, api_key  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint._over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer would wait for an acknowledgement of its headers

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    @property
    def _endpoint(self) -> LoopbackEndpoint:
        endpoint: LoopbackEndpoint = self.server.endpoint  # type: ignore[attr-defined]
        return endpoint

    def do_GET(self) -> None:
        """The list of models."""
        if self.path.endswith("/models") and self._may():
            models = [{"id": name, "object": "model", "owned_by": "tests"} for name in self._endpoint.dialect.models]
            self._send(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        """A completion or a chat."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint = self._endpoint
        with endpoint._lock:
            endpoint.requests.append({**body, "path": self.path, "headers": dict(self.headers)})
        try:
            if self._may():
                self._answer(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _may(self) -> bool:
        key = self.server.api_key  # type: ignore[attr-defined]
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._send(401, {"error": {"message": f"wrong key: {self.headers.get('Authorization')}"}})
            return False
        return True

    def _answer(self, body: dict[str, Any]) -> None:
        endpoint = self._endpoint
        prompt = body["messages"][0]["content"] if "messages" in body else body.get("prompt", "")
        fault = endpoint.fault_for(prompt)
        if fault is not None and fault.trouble in _BEFORE:
            self._fail(fault)
            return
        status, answer = _complete(endpoint, self.path, body, prompt)
        if fault is not None and status == 200:
            if fault.trouble == "cut":
                self._cut(json.dumps(answer).encode())
                return
            _spoil(answer, fault.trouble)
        self._send(status, answer)

    def _fail(self, fault: Fault) -> None:
        """Faults that need no answer."""
        if fault.trouble == "silent":
            self._endpoint._over.wait()
            self.close_connection = True
        elif fault.trouble == "drip":
            self._start(200, {"Content-Length": "1000000"})
            while not self._endpoint._over.wait(0.02):
                self.wfile.write(b" ")
        elif fault.trouble == "garbage":
            self._send_raw(200, b'{"choices": [{"text": "a", "logp', {})
        elif fault.trouble == "huge":
            self._start(200, {"Content-Length": str(10**12)})
            while not self._endpoint._over.is_set():
                self.wfile.write(b" " * 1_000_000)
        elif fault.trouble == "redirect":
            self._send_raw(fault.status, b"", {"Location": fault.location})
        else:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            self._send_raw(fault.status, b'{"error": {"message": "injected"}}', headers)

    def _cut(self, whole: bytes) -> None:
        self._start(200, {"Content-Length": str(len(whole))})
        self.wfile.write(whole[: len(whole) // 2])
        self.close_connection = True

    def _send(self, status: int, document: object) -> None:
        self._send_raw(status, json.dumps(document).encode(), {})

    def _send_raw(self, status: int, raw: bytes, headers: Mapping[str, str]) -> None:
        self._start(status, {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers})
        self.wfile.write(raw)

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


_BEFORE = frozenset({"silent", "drip", "garbage", "huge", "redirect", "status"})
_KNOWN = frozenset({"model", "prompt", "echo", "logprobs", "max_tokens", "temperature", "seed", "stop", "stream"})


def _complete(endpoint: LoopbackEndpoint, path: str, body: dict[str, Any], prompt: str) -> tuple[int, dict[str, Any]]:
    """Status and answer of a request that nothing goes wrong with."""
    dialect = endpoint.dialect
    chat = path.endswith("/chat/completions")
    if dialect.chat_only and not chat:
        return 404, {"error": {"message": "Not Found"}}
    if body["model"] not in dialect.models:
        return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
    if body.get("echo") and not dialect.echo:
        return 400, {"error": {"message": "Only no echo is supported"}}
    if dialect.strict and set(body) - _KNOWN - {"messages"}:
        return 400, {"error": {"message": f"Unknown parameter: {min(set(body) - _KNOWN)}"}}
    if body["max_tokens"] < (0 if dialect.zero_tokens else 1):
        return 400, {"error": {"message": "max_tokens must be at least 1"}}
    if len(prompt.encode()) > dialect.longest_bytes:
        return 400, {"error": {"message": "This model's maximum context length is exceeded"}}
    return 200, _completion(endpoint.model, dialect, body, prompt, chat=chat)


def _completion(
    model: EndpointModel, dialect: Dialect, body: Mapping[str, Any], prompt: str, *, chat: bool
) -> dict[str, Any]:
    start = [_START] if dialect.start_token else []
    read = [*start, *model.encode(prompt)]
    written = model.write(read, body["max_tokens"])
    text = b"".join(map(model.name, written)).decode(errors="replace")
    cut = min((text.find(stop) for stop in body.get("stop", ()) if stop in text), default=-1)
    finish = "length" if cut < 0 else "stop"
    text = text if cut < 0 else text[:cut]
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    if chat:
        choice["message"] = {"role": "assistant", "content": text}
    else:
        choice["text"] = (prompt if body.get("echo") else "") + text
        shown = [*read, *written] if body.get("echo") else written
        if body.get("logprobs") is not None:
            logprobs = model.logprobs([*read, *written])[-len(shown) :] if shown else []
            choice["logprobs"] = _as_logprobs(model, dialect, shown, logprobs)
        if dialect.ids and body.get("return_token_ids"):
            choice |= {"prompt_token_ids": read, "token_ids": written}
        if dialect.prompt_logprobs and body.get("prompt_logprobs") is not None:
            choice["prompt_logprobs"] = _as_prompt_logprobs(model, dialect, read)
    answer: dict[str, Any] = {"object": "text_completion", "model": body["model"], "choices": [choice]}
    if dialect.usage:
        answer["usage"] = {"prompt_tokens": len(read), "completion_tokens": len(written)}
    return answer


_START = 1_000_000
"""Id of the start token: far behind every vocabulary."""


def _as_logprobs(
    model: EndpointModel, dialect: Dialect, tokens: Sequence[int], logprobs: Sequence[float | None]
) -> dict[str, Any]:
    names = _names(model, dialect, tokens)
    lengths = [len(name.encode() if dialect.offsets == "bytes" else name) for name in names]
    offsets = [sum(lengths[:place]) for place in range(len(lengths))]
    return {"tokens": names, "token_logprobs": list(logprobs), "text_offset": offsets, "top_logprobs": None}


def _as_prompt_logprobs(model: EndpointModel, dialect: Dialect, tokens: Sequence[int]) -> list[Any]:
    names, logprobs = _names(model, dialect, tokens), model.logprobs(tokens)
    entries = zip(tokens, names, logprobs, strict=True)
    return [
        None if logprob is None else {str(token): {"logprob": logprob, "rank": 1, "decoded_token": name}}
        for token, name, logprob in entries
    ]


def _names(model: EndpointModel, dialect: Dialect, tokens: Sequence[int]) -> list[str]:
    """Names of tokens as the dialect writes them."""
    names: list[str] = []
    held = b""
    for token in tokens:
        raw = b"<s>" if token == _START else model.name(token)
        if dialect.names == "late":
            held += raw
            try:
                names.append(held.decode())
                held = b""
            except UnicodeDecodeError:
                names.append("")
        elif dialect.names == "bytes" and not _is_utf8(raw):
            names.append("bytes:" + "".join(f"\\x{value:02x}" for value in raw))
        else:
            names.append(raw.decode(errors="replace"))
    return names


def _spoil(answer: dict[str, Any], trouble: Trouble) -> None:
    """Damage the log-probabilities of an answer."""
    choice = answer["choices"][0]
    logprobs = choice.get("logprobs")
    if trouble == "no_logprobs" or logprobs is None:
        choice["logprobs"] = None
    elif trouble == "short":
        logprobs["token_logprobs"] = logprobs["token_logprobs"][:-1]
    elif trouble == "fewer":
        for key in ("tokens", "token_logprobs", "text_offset"):
            logprobs[key] = logprobs[key][:-1]
    else:
        value = {"null_logprobs": None, "zero_logprobs": 0.0, "nan": float("nan")}[trouble]
        logprobs["token_logprobs"] = [value] * len(logprobs["tokens"])


def _with_times(fault: Fault, times: int) -> Fault:
    return Fault(
        trouble=fault.trouble, times=times, within=fault.within, status=fault.status,
        retry_after=fault.retry_after, location=fault.location,
    )  # fmt: skip


def _merge(tokens: Sequence[int], pair: tuple[int, int], merged: int) -> list[int]:
    result: list[int] = []
    place = 0
    while place < len(tokens):
        if tuple(tokens[place : place + 2]) == pair:
            result.append(merged)
            place += 2
        else:
            result.append(tokens[place])
            place += 1
    return result


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


@lru_cache(maxsize=4096)
def _table(seed: int, size: int, behind: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Log-probabilities of all tokens behind these."""
    logits = np.random.default_rng([seed, *behind]).normal(scale=2.0, size=size)
    return np.asarray(logits - np.logaddexp.reduce(logits), dtype=np.float64)
