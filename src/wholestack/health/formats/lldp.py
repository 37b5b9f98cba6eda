"""``lldpctl -f json``, ``json0`` and ``keyvalue``: which port of which neighbour is at each interface of one host.

None of them names the host that was asked. Only interfaces with a neighbour are listed.

Source: lldpd ``src/client/display.c``, ``json_writer.c``, ``kv_writer.c``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from wholestack.health.probe import UnreadableError

_KEY = re.compile(r"^lldp\.(.{1,64}?)\.(via|rid|chassis|port)(?:\.([\w-]{1,40}))?=(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """What one interface hears."""

    interface: str
    name: str
    """System name; the chassis' identity where it says none."""
    port: str
    """Identity of the port; its description where the identity is an address."""
    description: str = ""
    """Of the port."""


def looks_like_lldp(text: str) -> bool:
    """``lldp.eth0.via=LLDP``, or JSON with ``lldp`` first."""
    return re.match(r"\s*(?:lldp\.[^\n]{1,120}=|\{\s*\"lldp\"\s*:)", text) is not None


def read_lldp(text: str) -> list[Neighbour]:
    """Neighbours, several of one interface where it hears several; other protocols than LLDP are left out.

    Raises:
        UnreadableError: neither JSON nor key and value as ``lldpctl`` writes them.
    """
    if not text.lstrip().startswith("{"):
        return list(_from_keys(text))
    try:
        top = _plain(msgspec.json.decode(text)["lldp"])
        return list(_from_json(top))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError("no JSON of lldpctl, or cut") from error


def _from_json(top: Any) -> Iterator[Neighbour]:
    held = top.get("interface", []) if isinstance(top, dict) else top
    for each in held if isinstance(held, list) else [held]:
        named = [(each["name"], each)] if isinstance(each.get("name"), str) else each.items()
        for interface, body in named:
            if body.get("via", "LLDP") != "LLDP":
                continue
            chassis, port = _plain(body.get("chassis", {})), _plain(body.get("port", {}))
            name = chassis.get("name", "")
            if not name and "id" not in chassis and len(chassis) == 1:
                [(name, chassis)] = chassis.items()
            identity, kind = _identity(port)
            yield _neighbour(interface, name or _identity(chassis)[0], identity, kind, _text(port.get("descr", "")))


def _from_keys(text: str) -> Iterator[Neighbour]:
    if not text.endswith("\n"):
        # Half the name of a port is another port.
        raise UnreadableError("the last line has no end: the output is cut")
    found: list[tuple[str, dict[str, str]]] = []
    for line in text.splitlines():
        match = _KEY.match(line.strip())
        if match is None:
            # Descriptions run over several lines.
            if not found and line.strip():
                raise UnreadableError("no key and value of lldpctl")
            continue
        interface, what, leaf, value = match.groups()
        if what == "via" or not found or found[-1][0] != interface:
            found.append((interface, {}))
        found[-1][1].setdefault(f"{what}.{leaf}" if leaf else what, value)
    for interface, keys in found:
        if keys.get("via", "LLDP") != "LLDP":
            continue
        kind = next((kind for kind in ("ifname", "local", "mac") if f"port.{kind}" in keys), "")
        chassis = next(
            (keys[f"chassis.{kind}"] for kind in ("mac", "local", "ifname") if f"chassis.{kind}" in keys), ""
        )
        name = keys.get("chassis.name", "") or chassis
        yield _neighbour(interface, name, keys.get(f"port.{kind}", ""), kind, keys.get("port.descr", ""))


def _neighbour(interface: str, name: str, identity: str, kind: str, description: str) -> Neighbour:
    # An address does not say which port it is; a description does, for a person.
    port = description if kind == "mac" and description else identity or description
    if not (interface and name and port):
        raise UnreadableError(f"neighbour of {interface[:40]!r} is not whole")
    return Neighbour(interface=interface, name=name, port=port, description=description)


def _identity(body: dict[str, Any]) -> tuple[str, str]:
    """Value and type of an ``id``."""
    identity = _plain(body.get("id", {}))
    return _text(identity.get("value", "")), _text(identity.get("type", ""))


def _plain(value: Any) -> Any:
    """``json0`` wraps each value in a list of one, and a text in ``{"value": ...}``."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        return {key: _text(each) if key in ("name", "descr") else each for key, each in value.items()}
    return value


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("value", "")
    return value if isinstance(value, str) else ""
