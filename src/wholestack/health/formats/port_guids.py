"""Port GUIDs of several hosts: ``VM_hostname NAME``, then one GUID a line (``ibstat -p``), as superbench reads it."""

import re
from collections.abc import Mapping

from wholestack.health.formats.device_files import first_line
from wholestack.health.probe import UnreadableError


def looks_like_port_guids(text: str) -> bool:
    """``VM_hostname`` first."""
    return first_line(text).startswith("VM_hostname ")


def read_port_guids(text: str) -> Mapping[str, list[str]]:
    """GUIDs by host, without ``0x`` and leading zeros.

    Raises:
        UnreadableError: a line that is neither.
    """
    found: dict[str, list[str]] = {}
    host = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        guid = re.fullmatch(r"(?:0x)?([0-9a-fA-F]{8,16})", line)
        if line.startswith("VM_hostname "):
            host = line.partition(" ")[2].strip()
            found.setdefault(host, [])
        elif guid is None or not host:
            raise UnreadableError(f"neither a host nor a GUID: {line[:60]!r}")
        else:
            found[host].append(guid[1].lower().lstrip("0"))
    return found
