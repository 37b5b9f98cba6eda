"""Kubernetes: taint and cordon over its HTTP API, without a client library. Untested on a real cluster.

Source: the API reference of ``Node`` v1 core (``spec.unschedulable``, ``spec.taints``), JSON merge patch (RFC 7386)
with ``metadata.resourceVersion``, by which the server refuses (409) a change of what is another by now; then the node
is read and judged again. Lists are paged (``limit``, ``continue``).
"""

import http.client
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from wholestack.errors import EngineError, InputError
from wholestack.health.operations.cluster import Node, finding_of

TAINT = "wholestack.io/drained"
"""Key of the taint."""
ANNOTATION = "wholestack.io/reason"
"""Where the reason is: a taint's value cannot hold a sentence."""
PATIENCE_S = 30.0
TRIES = 5
"""Of a change whose node somebody else changes at the same time."""
PAGE = 500
MOST_PAGES = 2_000
"""A million pods; a server whose list goes on is none."""
MOST_BYTES = 256 << 20
MOST_TOKEN_BYTES = 100_000
_NOT_JOBS = ("DaemonSet", "Node")
"""Owners of pods that run on every host, or that the host itself runs."""
_URL = "write https://HOST:6443"
_SERVER = "see whether --kubernetes is the URL of the API server and kubectl works with that token"


class Kubernetes:
    """A cluster behind its API server.

    Args:
        url: Of the API server.
        token: File with a bearer token; read again for every request, since tokens are renewed.
        ca: File with its certificate authority; by default those of the system.

    Raises:
        InputError: the URL is none, or would send the token unencrypted to another machine.
    """

    def __init__(self, url: str, *, token: Path, ca: Path | None = None) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            named, _ = parts.hostname, parts.port
        except ValueError as error:
            raise InputError("--kubernetes is no URL", remedy=_URL) from error
        if "@" in url or not named:
            # Not repeated: it may hold a password.
            raise InputError("--kubernetes names no host, or a user as well", remedy=f"{_URL}; who asks says --token")
        local = parts.hostname in ("127.0.0.1", "localhost", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and local):
            raise InputError(f"{url}: not https", remedy="a token goes unencrypted to this machine only")
        self._url, self._token = url.rstrip("/"), token
        try:
            self._tls = ssl.create_default_context(cafile=str(ca) if ca else None)
        except OSError as error:
            raise InputError(f"{ca}: no certificates: {error.strerror or error}") from error

    def nodes(self) -> Mapping[str, Node]:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        jobs: dict[str, list[str]] = {}
        for pod in self._list("/api/v1/pods"):
            with _reading("a pod"):
                where = (pod.get("spec") or {}).get("nodeName", "")
                if where and _is_job(pod):
                    jobs.setdefault(where, []).append(f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}")
        found = (read_node(each, jobs) for each in self._list("/api/v1/nodes"))
        return {each.name: each for each in found}

    def drain(self, name: str, reason: str) -> None:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""

        def change(node: Mapping[str, Any]) -> dict[str, Any]:
            there = read_node(node, {})
            if there.is_drained and there.reason != reason:
                raise EngineError(f"{name}: was drained by somebody meanwhile: {there.reason or 'no reason given'}")
            taint = {"key": TAINT, "value": finding_of(reason), "effect": "NoSchedule"}
            return _patch(node, unschedulable=True, reason=reason, taints=[*_others(node), taint])

        self._change(name, change)

    def undrain(self, name: str, reason: str) -> None:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""

        def change(node: Mapping[str, Any]) -> dict[str, Any]:
            if (there := read_node(node, {})).reason != reason:
                raise EngineError(f"{name}: its reason is another by now: {there.reason or 'none'}")
            return _patch(node, unschedulable=None, reason=None, taints=_others(node))

        self._change(name, change)

    def shown(self, action: Literal["drain", "undrain"], name: str, reason: str) -> str:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        sign = f"+ taint {TAINT}:NoSchedule" if action == "drain" else f"- taint {TAINT}:NoSchedule"
        said = f", {ANNOTATION}={reason!r}" if action == "drain" else f", - {ANNOTATION}"
        return f"PATCH /api/v1/nodes/{name}: unschedulable={str(action == 'drain').lower()}, {sign}{said}"

    def _change(self, name: str, change: Any) -> None:
        path = f"/api/v1/nodes/{urllib.parse.quote(name, safe='')}"
        for _ in range(TRIES):
            node = self._ask("GET", path)
            with _reading("a node"):
                patch = change(node)
            try:
                self._ask("PATCH", path, patch)
            except _ConflictError:
                continue
            return
        raise EngineError(f"{name}: somebody else changes it all the time", remedy="try again")

    def _list(self, path: str) -> Sequence[Mapping[str, Any]]:
        items: list[Mapping[str, Any]] = []
        following = ""
        for _ in range(MOST_PAGES):
            more = f"&continue={urllib.parse.quote(str(following))}" if following else ""
            page = self._ask("GET", f"{path}?limit={PAGE}{more}")
            with _reading("a list"):
                items += page["items"] or []  # without the key it is no list: not one without pods
                following = (page.get("metadata") or {}).get("continue") or ""
            if not following:
                return items
        raise EngineError(f"GET {path}: does not end after {MOST_PAGES:,} pages", remedy=_SERVER)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        try:
            with self._token.open("rb") as opened:
                token = opened.read(MOST_TOKEN_BYTES + 1).decode().strip()
        except OSError as error:
            raise InputError(
                f"{self._token}: no token can be read", remedy="name the file of a bearer token"
            ) from error
        except UnicodeDecodeError:
            token = ""
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json",
                     "Content-Type": "application/merge-patch+json"},
        )  # fmt: skip
        if not re.fullmatch(r"[!-~]+", token) or len(token) > MOST_TOKEN_BYTES:
            # What the library says of it would repeat it.
            raise InputError(f"{self._token}: is no bearer token", remedy="name a file with one word, the token")
        where = f"{method} {path.partition('?')[0]}"
        try:
            with _opener(self._tls).open(request, timeout=PATIENCE_S) as answer:
                found = json.loads(answer.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            if error.code == 409:
                raise _ConflictError(where) from error
            raise EngineError(f"{where}: {error.code} {_said(error)}") from error
        except urllib.error.URLError as error:
            raise EngineError(f"{where}: {error.reason}", remedy=_SERVER) from error
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise EngineError(f"{where}: {said[:300]}", remedy=_SERVER) from error
        if not isinstance(found, dict):
            raise EngineError(f"{where}: answered no object", remedy=_SERVER)
        return found


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """What the server sends may be of any form."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"{what} of the API cannot be read: {error!r}", remedy=_SERVER) from error


class _ConflictError(Exception):
    """What was to be changed is another by now."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is for the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(tls: ssl.SSLContext) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls), _NoRedirect()
    )


def read_node(node: Mapping[str, Any], jobs: Mapping[str, Sequence[str]]) -> Node:
    """A ``Node`` of the API. Cordoned without our annotation and taint, it is somebody else's.

    Raises:
        EngineError: it is none.
    """
    with _reading("a node"):
        name, spec = str(node["metadata"]["name"]), node.get("spec") or {}
        ready = {each["type"]: each["status"] for each in (node.get("status") or {}).get("conditions", [])}
        tainted = {each["key"] for each in spec.get("taints") or ()}
        noted = str((node["metadata"].get("annotations") or {}).get(ANNOTATION, ""))
    drained = bool(spec.get("unschedulable")) or TAINT in tainted
    return Node(
        name=name,
        is_usable=not drained and ready.get("Ready") == "True",
        is_drained=drained,
        reason=noted if drained and TAINT in tainted and spec.get("unschedulable") else "",
        jobs=tuple(jobs.get(name, ())),
    )


def _is_job(pod: Mapping[str, Any]) -> bool:
    running = (pod.get("status") or {}).get("phase") in ("Running", "Pending", "Unknown")
    owners = {each.get("kind") for each in pod["metadata"].get("ownerReferences") or ()}
    return running and not owners & set(_NOT_JOBS)


def _others(node: Mapping[str, Any]) -> list[Any]:
    """Taints that are not ours, nor the one that the cordon brings: the server keeps that itself."""
    return [each for each in node.get("spec", {}).get("taints") or () if each.get("key") != TAINT]


def _patch(
    node: Mapping[str, Any], *, unschedulable: bool | None, reason: str | None, taints: list[Any]
) -> dict[str, Any]:
    version = node["metadata"]["resourceVersion"]
    return {
        "metadata": {"resourceVersion": version, "annotations": {ANNOTATION: reason}},
        "spec": {"unschedulable": unschedulable, "taints": taints or None},
    }


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return " ".join(str(json.loads(error.read(10_000)).get("message", "")).split())[:300]
    except (ValueError, OSError, AttributeError):
        return error.reason if isinstance(error.reason, str) else ""
