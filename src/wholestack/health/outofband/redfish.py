"""Redfish over HTTPS (DMTF DSP0266), by the standard library.

A BMC is not trusted with more than its own host: redirects are not followed, links lead to paths of the same server
only, answers are bounded in bytes, pages and time. Its certificate is verified by the authorities of this machine, by
``?ca=FILE``, or by its own fingerprint, ``?sha256=``, before the password is sent; ``?insecure`` verifies nothing.
"""

import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wholestack.health.checks.bmc_states import SEL
from wholestack.health.connection import POWER
from wholestack.health.outofband.address import BmcAddress, Credentials
from wholestack.health.outofband.bmc import SETTLE_S, Power, refused
from wholestack.remote.batch import Output

PATIENCE_S = 20.0
"""For one answer, from the first packet to the last byte."""
LOG_S = 120.0
"""For the whole event log."""
MOST_BYTES = 4 << 20
"""Of one answer."""
MOST_ENTRIES = 5000
MOST_SERVICES = 20
BETWEEN_S = 2.0
SYSTEMS = "/redfish/v1/Systems"
RESET = "#ComputerSystem.Reset"
_RESETS: Mapping[Power, tuple[str, ...]] = {"on": ("On", "ForceOn"), "off": ("ForceOff",)}
"""Types of reset that bring a state, the better first."""
_LINK = re.compile(r"/redfish/v1/[!-~]{1,500}")
_KEPT = ("Id", "Created", "EntryCode", "SensorType", "SensorNumber", "Message", "Severity", "Resolved")
"""What is read of an entry."""


_THREADS = ThreadPoolExecutor(32, thread_name_prefix="bmc")
"""They wait for BMCs of a whole rack at a time; asyncio's own are as many as this machine has cores, and a few."""


async def _in_thread(work: Callable[..., Output], *given: Any) -> Output:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work, *given)


class _NoAnswerError(Exception):
    """The BMC did not do its part; one line why."""


class Redfish:
    """A BMC by Redfish.

    Args:
        address: Where it is.
        credentials: Who asks.
    """

    def __init__(self, address: BmcAddress, credentials: Credentials) -> None:
        self._address = address
        pair = f"{address.user or credentials.user}:{credentials.password}"
        self._login = f"Basic {base64.b64encode(pair.encode()).decode()}"

    async def power(self) -> Output:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return await _in_thread(self._output, POWER.name, self._power)

    async def log(self, wanted: Collection[str]) -> Mapping[str, Output]:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`. Sensors are not read: what broke is in the log."""
        if SEL.name not in wanted:
            return {}
        return {SEL.name: await _in_thread(self._output, SEL.name, self._log)}

    async def set_power(self, to: Power) -> Output:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return await _in_thread(self._output, f"power_{to}", lambda: self._set_power(to))

    def shown(self, to: Power) -> str:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        system = self._address.path or f"{SYSTEMS}/{{the only one}}"
        body = json.dumps({"ResetType": _RESETS[to][0]})
        where = str(self._address).replace("redfish://", "https://")
        return f"POST {where}{system}/Actions/ComputerSystem.Reset {body}"

    def _output(self, name: str, ask: Callable[[], tuple[str, bool]]) -> Output:
        try:
            text, whole = ask()
        except _NoAnswerError as error:
            return refused(name, f"{self._address}: {error}")
        return Output(name=name, stdout=text.encode(), truncated=not whole)

    def _power(self) -> tuple[str, bool]:
        return json.dumps({"PowerState": self._system().get("PowerState")}), True

    def _set_power(self, to: Power) -> tuple[str, bool]:
        until = time.monotonic() + SETTLE_S
        system = self._system()
        if _state(system) != to:
            action = _table(_table(system, "Actions"), RESET)
            allowed = action.get("ResetType@Redfish.AllowableValues", _RESETS[to])
            kind = next((each for each in _RESETS[to] if isinstance(allowed, list | tuple) and each in allowed), None)
            if kind is None:
                raise _NoAnswerError(f"it offers no way to turn its host {to}")
            self._ask("POST", _link(action.get("target"), "the action to reset"), {"ResetType": kind})
        while _state(system) != to:
            if time.monotonic() > until:
                raise _NoAnswerError(f"took the command, and its host is not {to} after {SETTLE_S:g} s")
            time.sleep(BETWEEN_S)
            system = self._system()
        return json.dumps({"PowerState": system.get("PowerState")}), True

    def _system(self) -> Mapping[str, Any]:
        if self._address.path:
            return self._ask("GET", self._address.path)
        members = _members(self._ask("GET", SYSTEMS))
        if len(members) != 1:
            example = f"{self._address}{SYSTEMS}/ID"
            raise _NoAnswerError(f"it has {len(members)} systems: name the host's in the file of hosts, {example}")
        return self._ask("GET", _link(members[0].get("@odata.id"), "its system"))

    def _log(self) -> tuple[str, bool]:
        until = time.monotonic() + LOG_S
        entries: list[Mapping[str, Any]] = []
        following: str | None = self._entries_link()
        seen: set[str] = set()
        while following is not None and len(entries) < MOST_ENTRIES and following not in seen:
            if time.monotonic() > until:
                raise _NoAnswerError(f"its event log took longer than {LOG_S:g} s")
            seen.add(following)
            page = self._ask("GET", following)
            entries += [_kept(each) for each in _members(page)]
            more = page.get("Members@odata.nextLink", page.get("@odata.nextLink"))
            following = _link(more, "the next page") if more is not None else None
        text = json.dumps({"@odata.type": "#LogEntryCollection.LogEntryCollection", "Members": entries[:MOST_ENTRIES]})
        return text, following is None and len(entries) <= MOST_ENTRIES

    def _entries_link(self) -> str:
        """Of the log of type SEL, else of one of events: of the system, or of what manages it."""
        services = list(self._services())
        for wanted in (lambda each: each.get("LogEntryType") == "SEL" or str(each.get("Id")).lower() == "sel",
                       lambda each: each.get("LogEntryType") in ("Event", "Multiple", None)):  # fmt: skip
            for service in filter(wanted, services):
                return _link(_table(service, "Entries").get("@odata.id"), "the entries of its log")
        raise _NoAnswerError("it has no event log")

    def _services(self) -> Iterator[Mapping[str, Any]]:
        system = self._system()
        managers = _table(system, "Links").get("ManagedBy")
        resources = [system]
        if isinstance(managers, list) and managers and isinstance(managers[0], dict):
            resources.append(self._ask("GET", _link(managers[0].get("@odata.id"), "its manager")))
        for resource in resources:
            services = _table(resource, "LogServices").get("@odata.id")
            if services is None:
                continue
            for member in _members(self._ask("GET", _link(services, "its logs")))[:MOST_SERVICES]:
                yield self._ask("GET", _link(member.get("@odata.id"), "a log"))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        where = f"{method} {path.partition('?')[0]}"
        status, content = self._answer(method, path, body)
        if status in (401, 403):
            raise _NoAnswerError(f"user or password is refused ({where}: {status})")
        if 300 <= status < 400:
            raise _NoAnswerError(f"{where}: {status}, a redirect, which is not followed with a password")
        if not 200 <= status < 300:
            raise _NoAnswerError(f"{where}: {status} {_said(content)}")
        if len(content) > MOST_BYTES:
            raise _NoAnswerError(f"{where}: answers more than {MOST_BYTES >> 20} MiB")
        if method != "GET":
            return {}
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _NoAnswerError(f"{where}: answers no JSON: {content[:40]!r}") from error
        if not isinstance(found, dict):
            raise _NoAnswerError(f"{where}: answers no JSON object")
        return found

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            self._address.host, self._address.port or 443, timeout=PATIENCE_S, context=self._tls()
        )
        # A socket's own timeout begins again with every byte: one that drips would be waited for without end.
        opened: list[socket.socket] = []
        guard = threading.Timer(PATIENCE_S, _cut, (connection, opened))
        guard.daemon = True
        guard.start()
        try:
            connection.connect()
            # http.client lets go of it while an answer without a length is still being read.
            opened.append(connection.sock)
            self._verify(connection)
            headers = {"Authorization": self._login, "Accept": "application/json", "OData-Version": "4.0"}
            data = None
            if body is not None:
                data, headers["Content-Type"] = json.dumps(body), "application/json"
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
            content = answer.read(MOST_BYTES + 1)
            if not guard.is_alive():
                raise TimeoutError  # what was cut off looks like an end
            return answer.status, content
        except ssl.SSLCertVerificationError as error:
            raise _NoAnswerError(
                f"its certificate is not trusted: {error.verify_message} (name its authority, ?ca=FILE, or its "
                "fingerprint, ?sha256=, behind its address in the file of hosts)"
            ) from error
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            # AttributeError: the guard has closed what http.client still reads.
            if not guard.is_alive():
                raise _NoAnswerError(f"no whole answer within {PATIENCE_S:g} s") from error
            raise _NoAnswerError(_plain(error)) from error
        finally:
            guard.cancel()
            connection.close()

    def _tls(self) -> ssl.SSLContext:
        option, value = self._address.option, self._address.value
        try:
            context = ssl.create_default_context(cafile=value if option == "ca" else None)
        except OSError as error:
            raise _NoAnswerError(f"{value}: no certificates: {error.strerror or error}") from error
        if option in ("sha256", "insecure"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _verify(self, connection: http.client.HTTPSConnection) -> None:
        """The fingerprint, before anything is sent."""
        if self._address.option != "sha256":
            return
        shown = connection.sock.getpeercert(binary_form=True) if isinstance(connection.sock, ssl.SSLSocket) else None
        if hashlib.sha256(shown or b"").hexdigest() != self._address.value:
            raise _NoAnswerError("its certificate is another than that of the fingerprint in the file of hosts")


def _cut(connection: http.client.HTTPSConnection, opened: Sequence[socket.socket]) -> None:
    for each in (connection.sock, *opened):
        if each is not None:
            with contextlib.suppress(OSError):
                # Of the plain socket: the TLS one would say goodbye first, and wait for the answer.
                socket.socket.shutdown(each, socket.SHUT_RDWR)


def _plain(error: Exception) -> str:
    """What went wrong with a connection, in words."""
    if isinstance(error, socket.gaierror):
        return "its name does not resolve"
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE_S:g} s"
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {error.reason or error}"
    if isinstance(error, http.client.HTTPException):
        return f"answers no HTTP: {type(error).__name__}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _state(system: Mapping[str, Any]) -> str:
    return str(system.get("PowerState")).lower()


def _table(resource: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = resource.get(key)
    return found if isinstance(found, dict) else {}


def _members(collection: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = collection.get("Members")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _NoAnswerError("answers a collection without members")
    return found


def _link(value: Any, what: str) -> str:
    """A path on the same server, fit to be sent in a request line."""
    if not isinstance(value, str) or not _LINK.fullmatch(value):
        raise _NoAnswerError(f"gives no usable link to {what}: {str(value)[:80]!r}")
    return value


def _kept(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is read of an entry, cut; a text of it may be of any length."""
    if set(entry) == {"@odata.id"}:
        raise _NoAnswerError("lists the entries of its log as links only, which are not read one by one")
    found = {key: entry[key] for key in _KEPT if isinstance(entry.get(key), str | int)}
    return {key: value[:1000] if isinstance(value, str) else value for key, value in found.items()}


def _said(content: bytes) -> str:
    """The message of an error, as far as there is one."""
    try:
        return " ".join(str(json.loads(content)["error"]["message"]).split())[:200]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
