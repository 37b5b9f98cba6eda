"""How names of the plan and names of the tools become one; every rule is one of these, and nothing else is guessed.

Devices, upper and lower case alike:

* A GUID (``0x`` and 16 hexadecimal digits, or those without ``0x``) is that of a switch, or of an adapter or its port.
* A switch has its whole description, and of ``MF0;NAME:MODEL/U1`` also ``NAME``; of a module of a chassis
  (``MF0;NAME:MODEL/L01/U1``) ``NAME/L01/U1`` and ``NAME/L01``.
* A host is the description of its adapter (``gpu001 mlx5_0``) without the last word, which is the port. An adapter with
  no host in its description is known by its GUID only.
* A name that is not found counts without what follows its first dot, if that is one device only.

Ports:

* Of an adapter its name (``mlx5_0``, ``HCA-1``, ``ibp12s0``); the second port of one is ``mlx5_0/2``. ``mlx5_0`` and
  ``HCA-1`` are two names: which one is which only the host knows.
* Of an InfiniBand switch the number (``12``), or the label of a port of a cage with two ports: ``CAGE/PORT``,
  ``1/CAGE/PORT``, ``IB1/CAGE/PORT`` and ``swCAGEpPORT`` are number ``2 * (CAGE - 1) + PORT``.
  ``IB1/PORT`` is the number.
* Of anything that LLDP names, the text, or the port's description.
"""

import re

_GUID = re.compile(r"(?:0x)?([0-9a-f]{16})")
_SHORT_GUID = re.compile(r"0x([0-9a-f]{1,16})")
_MELLANOX = re.compile(r"MF0;([^:;]+):([^/]+)/(.+)")
_ADAPTER = re.compile(r"(.*\S)\s+(HCA-\d+|mlx\d+_\d+|ib\w+|bnxt_re\d+|irdma\d+|hfi\d+_\d+|rdma\w+)", re.IGNORECASE)
_CAGE = re.compile(r"(?:(?:ib)?1/)?(\d{1,3})/([12])|sw(\d{1,3})p([12])")
_INFINIBAND = re.compile(r"(?:hca-\d+|mlx\d+_\d+|ib\w*|hfi\d+_\d+)(?:/\d+)?")


def guid_of(name: str) -> str | None:
    """The GUID that a name is, lower case and without leading zeros, or ``None``."""
    lowered = name.strip().lower()
    found = _GUID.fullmatch(lowered) or _SHORT_GUID.fullmatch(lowered)
    return (found[1].lstrip("0") or "0") if found else None


def switch_names(description: str) -> tuple[str, ...]:
    """Every name of a switch, lower case, the one to show first."""
    found = _MELLANOX.fullmatch(description.strip())
    if found is None:
        return (description.strip().casefold(),)
    name, _, module = found.groups()
    if module == "U1":
        return name.casefold(), description.strip().casefold()
    return (
        f"{name}/{module}".casefold(),
        f"{name}/{module.partition('/')[0]}".casefold(),
        description.strip().casefold(),
    )


def adapter_of(description: str) -> tuple[str, str] | None:
    """Host and adapter of a description, lower case; ``None`` where it names no host."""
    found = _ADAPTER.fullmatch(description.strip())
    return (found[1].casefold(), found[2].casefold()) if found else None


def adapter_port(adapter: str, number: int) -> str:
    """Key of a port of an adapter: its name alone for the first."""
    return adapter if number == 1 else f"{adapter}/{number}"


def planned_adapter_port(label: str) -> str:
    """The same of a label of the plan: ``mlx5_0``, ``mlx5_0/1`` and ``mlx5_0:1`` are one."""
    adapter, _, number = label.strip().casefold().replace(":", "/").partition("/")
    return adapter_port(adapter, int(number)) if number.isdecimal() and len(number) < 4 else label.strip().casefold()


def switch_port(label: str) -> str | None:
    """Number of a port of an InfiniBand switch, or ``None`` where the label is none of the rules."""
    lowered = label.strip().casefold()
    plain = re.fullmatch(r"(?:port |p|ib1/)?0*(\d{1,4})", lowered)
    if plain:
        return plain[1]
    cage = _CAGE.fullmatch(lowered)
    if cage is None:
        return None
    number, port = (int(each) for each in cage.groups() if each is not None)
    return str(2 * (number - 1) + port) if number else None


def without_domain(name: str) -> str:
    """What is before the first dot; an address stays as it is."""
    return name if re.fullmatch(r"[0-9a-f.:]+", name) else name.partition(".")[0]


def is_infiniband(port: str) -> bool:
    """Whether a host's port is named as InfiniBand adapters are, of which LLDP says nothing."""
    return _INFINIBAND.fullmatch(port) is not None
