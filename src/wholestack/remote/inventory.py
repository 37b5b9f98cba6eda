"""Which hosts: from ``hosts.toml``, an Ansible inventory, a Slurm node list, or names.

The native form::

    [defaults]                     # any of: user, port, jump, identity, bmc, kind
    user = "root"
    jump = "admin@login1"
    bmc = "redfish://{name}-bmc"   # for when the host no longer answers; {name} is the host's

    [kinds.h100]                   # hosts of one kind share expectations; user, port ... may stand here too
    hosts = ["gpu[001-128,200]", "r[1-2]n[01-04]"]

    [[places]]                     # what hosts share, for faults that share it: any of rack, switch, power, lot
    hosts = ["gpu[001-016]"]
    rack = "r1"
    switch = "leaf1"

    [[hosts]]                      # one host with fields of its own; may also name one of above, to refine it
    name = "gpu007"
    address = "10.0.3.7"

    [drain]                        # for `wholestack health drain`, nothing to do with which hosts there are
    floor = "90%"
"""

import io
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wholestack.errors import InputError
from wholestack.remote.ansible import read_ini, read_yaml
from wholestack.remote.host import SHARED, Host, parse_host
from wholestack.remote.node_list import MAX_HOSTS, expand_slurm

MAX_FILE_BYTES = 16 << 20
_SHARED: dict[str, type] = {"user": str, "port": int, "jump": str, "identity": str, "bmc": str}
_DEFAULTS = _SHARED | {"kind": str}
_PLACE: dict[str, type] = dict.fromkeys(SHARED, str)
_OWN = _DEFAULTS | _PLACE | {"name": str, "address": str}


def read_inventory(path: Path) -> tuple[Host, ...]:
    """Hosts of a file, in its order: ``.toml``; ``.yml``, ``.yaml``, ``.json``: Ansible; else Ansible INI.

    A file with one name a line is an INI inventory too. A relative ``identity`` and a leading ``~`` are left as they
    are.

    Raises:
        InputError: names file and line or key.
    """
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)  # a device or a pipe does not say its size
        if len(content) > MAX_FILE_BYTES:
            raise InputError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB: that is no inventory")
        text = io.TextIOWrapper(io.BytesIO(content), "utf-8").read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", remedy="name an inventory file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}") from error
    hosts = _READERS.get(path.suffix.lower(), read_ini)(text, where=str(path))
    if not hosts:
        raise InputError(f"{path} names no host")
    return hosts


def read_names(names: Iterable[str]) -> tuple[Host, ...]:
    """Hosts from the command line: ``[user@]name[:port]`` and Slurm node lists of such; one named twice counts once.

    Raises:
        InputError: names the one that is wrong.
    """
    return _merged((parse_host(name) for text in names for name in expand_slurm(text)), where="command line")


def find_hosts(arguments: Sequence[str]) -> tuple[Host, ...]:
    """Hosts from arguments of which each is a file or a list of names.

    Raises:
        InputError: a file or name is wrong, or a host is named twice with different fields.
    """
    hosts: list[Host] = []
    for argument in arguments:
        hosts += read_inventory(Path(argument)) if _is_file(argument) else read_names([argument])
    return _merged(hosts, where="command line")


def find_among(arguments: Sequence[str]) -> tuple[Host, ...]:
    """Hosts of the files among the arguments: all of them, or those that the other arguments name.

    Raises:
        InputError: a file or name is wrong, no file is among them, or none of the files has a host of that name.
    """
    files = [argument for argument in arguments if _is_file(argument)]
    if not files:
        raise InputError("no file of hosts is named", remedy="name one, and behind it the hosts that are meant")
    hosts = {host.name: host for host in find_hosts(files)}
    names = [host.name for host in read_names(argument for argument in arguments if argument not in files)]
    if unknown := [name for name in names if name not in hosts]:
        raise InputError(f"{unknown[0]} is no host of {', '.join(files)}", remedy="name hosts as the file has them")
    return tuple(hosts[name] for name in names) if names else tuple(hosts.values())


def _is_file(argument: str) -> bool:
    is_path = "/" in argument or Path(argument).suffix.lower() in (*_READERS, ".ini", ".txt")
    return is_path or Path(argument).is_file()


def read_toml(text: str, *, where: str) -> tuple[Host, ...]:
    """Hosts of a ``hosts.toml``.

    Args:
        text: The file.
        where: Its name, for errors.

    Raises:
        InputError: names file and line or key.
    """
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where}: {error}") from error
    _known(raw, ("defaults", "kinds", "places", "hosts", "drain"), where)
    _known(_table(raw.get("drain", {}), f"{where}: drain"), ("floor",), f"{where}: drain")
    defaults = _fields(raw.get("defaults", {}), _DEFAULTS, f"{where}: defaults")
    hosts: dict[str, Host] = {}
    for kind, body in _table(raw.get("kinds", {}), f"{where}: kinds").items():
        for host in _of_kind(kind, body, defaults, f"{where}: kinds.{kind}"):
            if host.name in hosts:
                raise InputError(f"{where}: {host.name} is in kinds.{hosts[host.name].kind} and in kinds.{kind}")
            hosts[host.name] = host
    named: set[str] = set()
    for number, body in enumerate(_tables(raw.get("hosts", []), f"{where}: hosts"), 1):
        host = _single(body, hosts, defaults, f"{where}: hosts number {number}")
        if host.name in named:
            raise InputError(f"{where}: hosts has {host.name} twice", remedy="write one [[hosts]] for it")
        named.add(host.name)
        hosts[host.name] = host
    for number, body in enumerate(_tables(raw.get("places", []), f"{where}: places"), 1):
        _put_in_place(body, hosts, f"{where}: places number {number}")
    _cap(hosts, where)
    return tuple(hosts.values())


_READERS: Mapping[str, Callable[..., tuple[Host, ...]]] = {
    ".toml": read_toml,
    ".yml": read_yaml,
    ".yaml": read_yaml,
    ".json": read_yaml,
}


def _of_kind(kind: str, body: Any, defaults: Mapping[str, Any], here: str) -> Iterable[Host]:
    table = dict(_table(body, here))
    lists = _lists(table, here)
    fields = dict(defaults) | _fields(table, _SHARED, here) | {"kind": kind}
    names: dict[str, None] = {}
    for each in lists:
        names |= dict.fromkeys(expand_slurm(each, where=f"{here}.hosts"))
        _cap(names, here)
    for name in names:
        host = _parsed(name, f"{here}.hosts")
        yield replace(host, **fields | {key: value for key in ("user", "port") if (value := getattr(host, key))})


def _put_in_place(body: Any, hosts: dict[str, Host], here: str) -> None:
    table = dict(_table(body, here))
    names = [name for each in _lists(table, here) for name in expand_slurm(each, where=f"{here}.hosts")]
    fields = _fields(table, _PLACE, here)
    for name in names:
        if name not in hosts:
            raise InputError(f"{here}: {name} is no host of this file", remedy="name hosts of [kinds] or [[hosts]]")
        for key, value in fields.items():
            if getattr(hosts[name], key) not in (None, value):
                raise InputError(f"{here}: {name} has {key} {getattr(hosts[name], key)!r} and {value!r}")
        hosts[name] = replace(hosts[name], **fields)


def _lists(table: dict[str, Any], here: str) -> list[str]:
    """Takes the lists of hosts out of a table."""
    lists = table.pop("hosts", [])
    if not isinstance(lists, list) or not all(isinstance(each, str) for each in lists):
        raise InputError(f'{here}.hosts must be a list of names, such as ["gpu[001-128]"]')
    return lists


def _single(body: Any, before: Mapping[str, Host], defaults: Mapping[str, Any], here: str) -> Host:
    fields = _fields(body, _OWN, here)
    if "name" not in fields:
        raise InputError(f"{here} has no name")
    host = _parsed(fields["name"], here)
    if host.user or host.port:
        raise InputError(f"{here}: name is {fields['name']!r}", remedy="write user and port as fields of their own")
    return replace(before.get(host.name) or Host(name=host.name, **defaults), **fields | {"name": host.name})


def _parsed(name: str, here: str) -> Host:
    try:
        return parse_host(name)
    except InputError as error:
        raise InputError(f"{here}: {error.message}", remedy=error.remedy) from error


def _fields(body: Any, known: Mapping[str, type], here: str) -> dict[str, Any]:
    table = _table(body, here)
    _known(table, tuple(known), here)
    for key, value in table.items():
        if not isinstance(value, known[key]) or isinstance(value, bool) or value == "":
            # Texts in lists and tables are not repeated: a password may have got there.
            given = repr(value) if isinstance(value, int | float) else f"a {type(value).__name__}" if value else "empty"
            raise InputError(f"{here}.{key} is {given}, must be {'a number' if known[key] is int else 'text'}")
    if not 0 < table.get("port", 1) < 1 << 16:
        raise InputError(f"{here}.port is {table['port']}, must be 1 to 65535")
    for jump in table["jump"].split(",") if "jump" in table else ():
        _parsed(jump, f"{here}.jump")
    return dict(table)


def _known(table: Mapping[str, Any], known: Sequence[str], here: str) -> None:
    if unknown := [key for key in table if key not in known]:
        raise InputError(f"{here}: unknown key {unknown[0]!r}", remedy=f"known are: {', '.join(known)}")


def _table(value: Any, here: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{here} must be a table")
    return value


def _tables(value: Any, here: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{here} must be an array of tables", remedy="write [[hosts]]")
    return value


def _merged(hosts: Iterable[Host], *, where: str) -> tuple[Host, ...]:
    """Each host once; one that is named with different fields is refused."""
    found: dict[str, Host] = {}
    for host in hosts:
        if found.setdefault(host.name, host) != host:
            raise InputError(f"{where}: {host.name} is named twice with different fields: {found[host.name]}, {host}")
    _cap(found, where)
    return tuple(found.values())


def _cap(hosts: Mapping[str, object], where: str) -> None:
    if len(hosts) > MAX_HOSTS:
        raise InputError(f"{where}: {len(hosts):,} hosts, the most is {MAX_HOSTS:,}")
