"""Ansible inventories, INI and YAML: groups, children, variables, ranges. Read for what concerns a login, no more.

Precedence as in Ansible: ``all``, then groups from the outermost in, each level by name, then the host's own.
Not evaluated: templates (``{{ }}``), plug-ins, ``group_vars`` folders; vaulted values are ignored.
"""

import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from wholestack.errors import InputError
from wholestack.remote.host import SHARED, Host, parse_host
from wholestack.remote.node_list import MAX_HOSTS, expand_ansible

_MAX_DEPTH = 50
_MAX_ENTRIES = 4 * MAX_HOSTS
_HEADING = re.compile(r"\[([^\s:\]]+)(?::(vars|children))?\]\s*(?:[#;].*)?", re.ASCII)
_NAMES: Mapping[str, tuple[str, ...]] = {
    "address": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "identity": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
    "jump": ("wholestack_jump",),
    "kind": ("wholestack_kind",),
    **{field: (f"wholestack_{field}",) for field in SHARED},
}
_OPTION = re.compile(r"(\w+)(?:\s*=\s*|\s+)(.*)", re.ASCII | re.DOTALL)
_SSH_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")


@dataclass(slots=True)
class _Group:
    """One group while it is read."""

    hosts: dict[str, None] = field(default_factory=dict)
    """Names, in order."""
    children: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Inventory:
    """All that was read; groups and hosts in the order of the file."""

    groups: dict[str, _Group] = field(default_factory=dict)
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: int = 0
    """Hosts and groups met; aliases of YAML can make a few lines stand for any number."""

    def count(self, here: str) -> None:
        """One more entry."""
        self.entries += 1
        if self.entries > _MAX_ENTRIES:
            raise InputError(f"{here[:200]}: more than {_MAX_ENTRIES:,} entries")

    def group(self, name: str) -> _Group:
        """The group, made if it is new."""
        return self.groups.setdefault(name, _Group())

    def add(self, group: str, name: str, variables: Mapping[str, Any], here: str) -> None:
        """A host to a group; what is said of it twice counts as last said."""
        self.count(here)
        self.group(group).hosts[name] = None
        self.hosts.setdefault(name, {}).update(variables)


def read_ini(text: str, *, where: str) -> tuple[Host, ...]:
    """Hosts of an INI inventory; one name a line is one.

    Args:
        text: The file.
        where: Its name, for errors.

    Raises:
        InputError: names file and line.
    """
    inventory = _Inventory()
    group, kind = "ungrouped", "hosts"
    for number, line in enumerate(text.splitlines(), 1):
        here = f"{where}:{number}"
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if heading := _HEADING.fullmatch(stripped):
            group, kind = heading[1], heading[2] or "hosts"
            inventory.group(group)
            continue
        _INI_LINES[kind](inventory, group, stripped, here)
    return _hosts(inventory, where)


def _ini_host(inventory: _Inventory, group: str, line: str, here: str) -> None:
    pattern, *words = _words(line, here)
    variables = dict(_assignment(word, here) for word in words)
    for name in expand_ansible(pattern, where=here):
        inventory.add(group, *_with_port(name, variables, here), here)


def _ini_variable(inventory: _Inventory, group: str, line: str, here: str) -> None:
    key, value = _assignment(line, here)
    unquoted = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    inventory.group(group).variables[key] = unquoted


def _ini_child(inventory: _Inventory, group: str, line: str, here: str) -> None:
    child = _words(line, here)[0]
    inventory.group(group).children.append(child)
    inventory.group(child)


_INI_LINES: Mapping[str, Callable[[_Inventory, str, str, str], None]] = {
    "hosts": _ini_host,
    "vars": _ini_variable,
    "children": _ini_child,
}


def _words(line: str, here: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise InputError(f"{here}: {error}", remedy="close the quotation mark") from error


def _assignment(word: str, here: str) -> tuple[str, str]:
    key, sign, value = word.partition("=")
    if not sign or not key.strip():
        raise InputError(f"{here}: {word!r} is not key=value")
    return key.strip(), value.strip()


def _with_port(name: str, variables: Mapping[str, Any], here: str) -> tuple[str, dict[str, Any]]:
    """A pattern may end in ``:port``."""
    try:
        host = parse_host(name)
    except InputError as error:
        raise InputError(f"{here}: {error.message}", remedy=error.remedy) from error
    port = {} if host.port is None else {"ansible_port": host.port}
    user = {} if host.user is None else {"ansible_user": host.user}
    return host.name, port | user | dict(variables)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Safe; ignores foreign tags such as ``!vault``, refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping without silent overwriting."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} is given twice", node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def read_yaml(text: str, *, where: str) -> tuple[Host, ...]:
    """Hosts of a YAML inventory.

    Raises:
        InputError: names file and line, or file and key.
    """
    try:
        raw = yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise InputError(f"{where}:{mark.line + 1 if mark else 1}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{where}: {(str(error).splitlines() or ['not YAML'])[0][:200]}") from error
    inventory = _Inventory()
    for name, body in _mapping(raw, where).items():
        _yaml_group(inventory, str(name), body, f"{where}: {name}", depth=0)
    return _hosts(inventory, where)


def _yaml_group(inventory: _Inventory, name: str, body: Any, here: str, *, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InputError(f"{here[:200]}: groups are nested deeper than {_MAX_DEPTH}")
    inventory.count(here)
    group = inventory.group(name)
    parts = _mapping(body, here)
    if unknown := [key for key in parts if key not in ("hosts", "children", "vars")]:
        raise InputError(f"{here}: unknown key {unknown[0]!r}", remedy="known are: hosts, children, vars")
    group.variables.update(_mapping(parts.get("vars"), f"{here}.vars"))
    for pattern, variables in _mapping(parts.get("hosts"), f"{here}.hosts").items():
        place = f"{here}.hosts.{pattern}"
        for host in expand_ansible(str(pattern), where=place):
            inventory.add(name, *_with_port(host, _mapping(variables, place), place), place)
    for child, inner in _mapping(parts.get("children"), f"{here}.children").items():
        if str(child) not in group.children:
            group.children.append(str(child))
        _yaml_group(inventory, str(child), inner, f"{here}.children.{child}", depth=depth + 1)


def _mapping(value: Any, here: str) -> dict[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{here}: expected a mapping, got {type(value).__name__}")
    return value


def _hosts(inventory: _Inventory, where: str) -> tuple[Host, ...]:
    if len(inventory.hosts) > MAX_HOSTS:
        raise InputError(f"{where}: {len(inventory.hosts):,} hosts, the most is {MAX_HOSTS:,}")
    for group in inventory.groups.values():
        if missing := [child for child in group.children if child not in inventory.groups]:
            raise InputError(f"{where}: there is no group {missing[0]!r}")
    order = list(_outermost_first(inventory, where))
    variables: dict[str, dict[str, Any]] = {name: {} for name in inventory.hosts}
    kinds: dict[str, str] = {}
    for name in order:
        for host in _members(inventory, name):
            variables[host] |= inventory.groups[name].variables
    for name, group in inventory.groups.items():
        for host in group.hosts if name not in ("all", "ungrouped") else ():
            kinds.setdefault(host, name)
    return tuple(
        _host(name, variables[name] | own, kinds.get(name), f"{where}: host {name}")
        for name, own in inventory.hosts.items()
    )


def _outermost_first(inventory: _Inventory, where: str) -> Iterator[str]:
    """Groups by depth, then name: ``all`` first, every group behind all that contain it."""
    depths = dict.fromkeys(inventory.groups, 1) | {"all": 0}
    inventory.group("all")
    for _ in range(_MAX_DEPTH):
        deeper = {
            child: depths[name] + 1
            for name, group in inventory.groups.items()
            for child in group.children
            if depths[child] <= depths[name]
        }
        if not deeper:
            return iter(sorted(depths, key=lambda name: (depths[name], name)))
        depths |= deeper
    raise InputError(
        f"{where}: the groups {', '.join(sorted(deeper))[:200]} contain each other, or are nested too deep"
    )


def _members(inventory: _Inventory, name: str) -> Iterator[str]:
    """Hosts of a group and of its children, each once."""
    if name == "all":
        yield from inventory.hosts
        return
    seen, waiting = {name}, [name]
    hosts: dict[str, None] = {}
    while waiting:
        group = inventory.groups[waiting.pop()]
        hosts |= group.hosts
        fresh = [child for child in group.children if child not in seen]
        seen.update(fresh)
        waiting += fresh
    yield from hosts


def _host(name: str, variables: Mapping[str, Any], kind: str | None, here: str) -> Host:
    found = {field: _first(variables, names, here) for field, names in _NAMES.items()}
    port = found["port"]
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise InputError(f"{here}: the port is {port!r}, must be 1 to 65535")
    return Host(
        name=name,
        address=found["address"],
        port=int(port) if port is not None else None,
        user=found["user"],
        jump=found["jump"] or _jump(variables, here),
        identity=found["identity"],
        kind=found["kind"] or kind or "default",
        **{field: found[field] for field in SHARED},
    )


def _first(variables: Mapping[str, Any], names: tuple[str, ...], here: str) -> str | None:
    for name in names:
        value = variables.get(name)
        if value is not None:
            if isinstance(value, dict | list):
                raise InputError(f"{here}: {name} is a {type(value).__name__}, must be one value")
            if "{{" in str(value):
                raise InputError(f"{here}: {name} is a template, which is not evaluated", remedy="write the value")
            return str(value)
    return None


def _jump(variables: Mapping[str, Any], here: str) -> str | None:
    """The jump host in arguments for ``ssh``: ``-J``, ``-o ProxyJump=`` or ``-o ProxyCommand="ssh -W %h:%p jump"``."""
    words = [
        word for name in _SSH_ARGUMENTS for word in _words(_first(variables, (name,), here) or "", f"{here}: {name}")
    ]
    for option, value in itertools.zip_longest(words, words[1:], fillvalue=""):
        if option == "-J":
            return value
        setting = _OPTION.fullmatch(value if option == "-o" else option.removeprefix("-o"))
        if setting and setting[1].lower() == "proxyjump":
            return setting[2]
        if setting and setting[1].lower() == "proxycommand":
            return _proxy_jump(setting[2], here)
    return None


def _proxy_jump(command: str, here: str) -> str:
    words = iter(_words(command, here))
    port, place, user = "", "", ""
    if next(words, "") == "ssh":
        for word in words:
            if word.startswith("-") and word[1:2] in "WopilF":
                value = word[2:] or next(words, "")
                port = value if word[1] == "p" else port
                user = value if word[1] == "l" else user
            elif not word.startswith("-") and not place:
                place = word
    if not place:
        raise InputError(f"{here}: cannot tell the jump host from its ProxyCommand", remedy="set wholestack_jump")
    return f"{user + '@' if user else ''}{place}{':' + port if port else ''}"
