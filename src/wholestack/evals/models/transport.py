"""JSON over HTTP to one server, with time-outs, bounded answers and bounded patience.

The standard library's ``http.client`` is enough and is chosen on purpose: it follows no redirect, so the key never
travels to another host; it reads no environment, so no proxy gets between unseen; and it adds nothing to install
(httpx is not among this project's dependencies). Requests run in threads of the caller, a connection each.

What is tried again: 408, 425, 429 and 5xx, refused and broken connections, time-outs, answers that were cut off or are
not JSON. Waits double from one second, or are what ``Retry-After`` says, and are announced. Nothing else is tried
again, and neither key nor credentials of a URL are in any message.
"""

import contextlib
import email.utils
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from wholestack.errors import InputError

MOST_ANSWER_BYTES = 64_000_000
"""Of one answer; a context of a million tokens with names and log-probabilities stays below it."""
_BLOCK_BYTES = 65_536
_TRIED_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_SHOWN = 160
_SHORTEST_KEY = 8
"""Characters of a key that is a secret; a placeholder such as ``none`` may be part of any answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is; make it with :func:`parse_address`."""

    scheme: str
    host: str
    port: int
    path: str
    """Of the API, for instance ``/v1``; no slash at its end."""
    model: str
    """Behind ``#``; may be empty."""

    @property
    def shown(self) -> str:
        """The URL without credentials, as it may be printed and stored."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a request may take and how often it is tried."""

    timeout_s: float = 120.0
    """For one try, from connecting to the last byte."""
    tries: int = 6
    """In all."""
    longest_wait_s: float = 120.0
    """A server that asks for more is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered; ``body`` is decoded JSON or ``None``."""

    status: int
    body: object
    seconds: float
    """Of the last try, waits not counted."""
    said: str = ""
    """Beginning of the server's own words about a refusal."""


class NoAnswerError(Exception):
    """All tries failed; ``str()`` says how the last one did."""


@dataclass(slots=True)
class Transport:
    """Sends requests to one server; safe to use from several threads at once.

    Args:
        address: The server.
        api_key: Sent as a bearer token; never shown.
        patience: Time-outs and tries.
        notice: Told in one line about every wait; by default a warning of this module's logger, which Python shows.
        sleep: Waits so many seconds; true if the wait was broken off.
        clock: Monotonic seconds.
        now: Seconds since the epoch, for a ``Retry-After`` that is a date.
    """

    address: Address
    api_key: str = field(default="", repr=False)
    patience: Patience = field(default_factory=Patience)
    notice: Callable[[str], None] = logging.getLogger(__name__).warning
    sleep: Callable[[float], object] | None = None
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    _stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _reached: bool = field(default=False, repr=False)
    _open: set[http.client.HTTPConnection] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        if not self.api_key.isascii() or any(character.isspace() for character in self.api_key):
            raise InputError("the API key holds a blank or a character that is not ASCII", remedy="set it again")

    def stop(self) -> None:
        """Break off every wait and every request that is under way, until :meth:`go_on`."""
        self._stopped.set()
        for connection in list(self._open):
            self._hang_up(connection)

    @staticmethod
    def _hang_up(connection: http.client.HTTPConnection, said: threading.Event | None = None) -> None:
        if said is not None:
            said.set()
        if connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _without_key(self, raw: bytes) -> bytes:
        """An answer that repeats the key, in the name of a model for instance, would carry it into a result."""
        return raw.replace(self.api_key.encode(), b"***") if len(self.api_key) >= _SHORTEST_KEY else raw

    def go_on(self) -> None:
        """Send again after :meth:`stop`."""
        self._stopped.clear()

    def send(self, path: str, body: object = None) -> Reply:
        """GET, or POST where there is a body; waits and tries again as far as patience goes.

        Raises:
            InputError: the key is refused, the server redirects, or asks for a longer wait than there is patience.
            NoAnswerError: every try failed.
        """
        failure = ""
        for number in range(1, self.patience.tries + 1):
            wait_s = min(2.0 ** (number - 1), 30.0)
            try:
                started = self.clock()
                status, headers, raw = self._once(path, body, started)
                reply = self._judge(status, headers, raw, self.clock() - started)
                if reply is not None:
                    return reply
                failure = f"HTTP {status}"
                asked_s = self._asked_wait(headers.get("retry-after"))
                wait_s = wait_s if asked_s is None else asked_s
            except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
                failure = _in_words(error)
                if not self._reached:  # a wrong address rather than a server in trouble
                    raise NoAnswerError(f"{self.address.shown}: {failure}") from error
            if number < self.patience.tries:
                self._wait(wait_s, failure, number)
        raise NoAnswerError(f"{self.address.shown}: {failure}, {self.patience.tries} tries")

    def _once(self, path: str, body: object, started: float) -> tuple[int, dict[str, str], bytes]:
        connection = self._connection()
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "wholestack"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        self._open.add(connection)
        too_late = threading.Event()
        late = threading.Timer(self.patience.timeout_s, self._hang_up, (connection, too_late))
        late.daemon = True
        try:
            connection.connect()
            late.start()  # a server that drips a header, or interim answers without end, keeps every read busy
            if self._stopped.is_set():  # stop() may have looked before there was a socket
                raise NoAnswerError(f"{self.address.shown}: stopped")
            connection.request("GET" if data is None else "POST", self.address.path + path, body=data, headers=headers)
            self._reached = True
            response = connection.getresponse()
            raw = self._without_key(self._read(response, started))
            return response.status, {k.lower(): v for k, v in response.getheaders()}, raw
        except (OSError, http.client.HTTPException) as error:
            if too_late.is_set():
                raise TimeoutError from error
            raise
        finally:
            late.cancel()
            self._open.discard(connection)
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        where, timeout = self.address, self.patience.timeout_s
        if where.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(where.host, where.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(where.host, where.port, timeout=timeout)

    def _read(self, response: http.client.HTTPResponse, started: float) -> bytes:
        """The whole body; the limit of time is for all of it, so that a server cannot drip for ever."""
        blocks: list[bytes] = []
        size = 0
        while block := response.read1(_BLOCK_BYTES):
            blocks.append(block)
            size += len(block)
            if size > MOST_ANSWER_BYTES:
                raise InputError(
                    f"{self.address.shown}: an answer is larger than {MOST_ANSWER_BYTES:,} bytes",
                    remedy="name an endpoint of completions",
                )
            if self.clock() - started > self.patience.timeout_s:
                raise TimeoutError
        if response.length:  # read1 does not notice an end that comes too early
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(blocks)

    def _judge(self, status: int, headers: dict[str, str], raw: bytes, seconds: float) -> Reply | None:
        """The reply, or ``None`` if the request is to be tried again."""
        if status in _TRIED_AGAIN:
            return None
        if 300 <= status < 400:
            elsewhere = _host_of(headers.get("location", "")) or "elsewhere"
            raise InputError(
                f"{self.address.shown}: redirects to {elsewhere}, which is not followed (the key would go there)",
                remedy="give the address that it redirects to, if you trust it",
            )
        if status in (401, 403):
            key = "the API key was refused" if self.api_key else "it wants an API key"
            raise InputError(
                f"{self.address.shown}: {key} (HTTP {status})",
                remedy="put the key into the environment variable that --api-key-variable names",
            )
        if status >= 400:
            return Reply(status=status, body=None, seconds=seconds, said=self._words_of(raw))
        return Reply(status=status, body=json.loads(raw), seconds=seconds)

    def _words_of(self, raw: bytes) -> str:
        """One short printable line of a refusal, without the key should the server repeat it."""
        text = raw[:4096].decode(errors="replace")
        try:
            decoded = json.loads(text)
            inner = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
            text = str(inner.get("message", text) if isinstance(inner, dict) else inner)
        except (ValueError, RecursionError):
            pass
        if self.api_key:
            text = text.replace(self.api_key, "***")
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= _LONGEST_SHOWN else line[: _LONGEST_SHOWN - 3] + "..."

    def _asked_wait(self, header: str | None) -> float | None:
        """Seconds that a ``Retry-After`` asks for, as a number or a date."""
        if header is None:
            return None
        try:
            seconds = float(header)
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(header).timestamp() - self.now()
            except ValueError:
                return None
        if not seconds <= self.patience.longest_wait_s:
            raise InputError(
                f"{self.address.shown}: asks to wait {seconds:.0f} s before the next request",
                remedy="run the same command later; what was scored is kept",
            )
        return max(0.0, seconds)

    def _wait(self, seconds: float, failure: str, number: int) -> None:
        self.notice(f"{self.address.shown}: {failure}; waits {seconds:.0f} s (try {number} of {self.patience.tries})")
        broken_off = (self.sleep or self._stopped.wait)(seconds)
        if broken_off or self._stopped.is_set():
            raise NoAnswerError(f"{self.address.shown}: stopped")


def _host_of(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host if host.isprintable() else ""


def parse_address(url: str) -> Address:
    """Take a URL such as ``http://host:8000/v1#model`` apart.

    Raises:
        InputError: it is no such URL, or has credentials, which would end up in results.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError("the URL of the endpoint cannot be read", remedy="write http://host:8000/v1#model") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("the URL of the endpoint has no host", remedy="write http://host:8000/v1#model")
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"{parts.scheme}://***@{parts.hostname}: a URL with credentials would end up in results",
            remedy="put the key into an environment variable, see --api-key-variable",
        )
    if parts.query:
        raise InputError(f"{parts.scheme}://{parts.hostname}: a query in the URL is not supported")
    if any(character.isspace() or not character.isprintable() for character in parts.path + parts.hostname):
        raise InputError("the URL of the endpoint holds a blank or a control character")
    return Address(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        path=parts.path.rstrip("/"),
        model=parts.fragment,
    )


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no whole answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, http.client.IncompleteRead | http.client.RemoteDisconnected | ConnectionError):
        return "the answer was cut off"
    if isinstance(error, ValueError | RecursionError):
        return "the answer is not JSON"
    if isinstance(error, OSError):
        return f"cannot be reached: {error.strerror or error.args[-1] if error.args else error}"
    return "the answer is not HTTP"
