"""Linux software RAID: ``/proc/mdstat`` and ``mdadm --detail`` (or ``--query --detail``) as the same facts.

Source: drivers/md/md.c (``md_seq_show``), mdadm(8).
"""

import re
from dataclasses import dataclass

from wholestack.health.probe import NotThereError, UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One array."""

    name: str
    """``/dev/md0``."""
    level: str
    wanted: int
    """Members that it is made of."""
    active: int
    failed: tuple[str, ...]
    """Members marked faulty."""
    rebuilding: str
    """The line of progress, or empty."""
    running: bool
    lines: tuple[str, ...]
    """The lines that say so."""


def looks_like_mdstat(text: str) -> bool:
    """The first line names the personalities."""
    return text.lstrip().startswith("Personalities :")


def read_mdstat(text: str) -> list[Array]:
    """Every array of ``/proc/mdstat``.

    Raises:
        NotThereError: there is none.
        UnreadableError: an array without its second line.
    """
    if "unused devices:" not in text:
        raise UnreadableError("mdstat without its last line")
    blocks = re.findall(r"^(md\S*) : (.*)\n((?:[ \t]+\S.*\n?)*)", text, re.MULTILINE)
    if not blocks:
        raise NotThereError("not_expected", "no software RAID array")
    return [_mdstat_array(*block) for block in blocks]


def _mdstat_array(name: str, head: str, rest: str) -> Array:
    words = head.split()
    running = words[0] == "active"
    level = next((word for word in words if re.fullmatch(r"raid\d+|linear|multipath|faulty", word)), "")
    counts = re.search(r"\[(\d+)/(\d+)\] \[([U_]+)\]", rest)
    redundant = re.fullmatch(r"raid(1|4|5|6|10)", level) is not None
    if redundant and running and counts is None:
        raise UnreadableError(f"{name}: no count of members")
    progress = re.search(r"^\s*\[.*$|^\s*\S*\s*(?:recovery|reshape|resync|check)\s*=.*$", rest, re.MULTILINE)
    members = [word for word in words if re.search(r"\[\d+\]", word)]
    return Array(
        name=f"/dev/{name}",
        level=level,
        wanted=int(counts[1]) if counts else len(members),
        active=int(counts[2]) if counts else len(members),
        failed=tuple(f"/dev/{word.partition('[')[0]}" for word in members if "(F)" in word),
        rebuilding=progress[0].strip() if progress and re.search(r"recovery|reshape|resync", progress[0]) else "",
        running=running,
        lines=(f"{name} : {head}", *(line.strip() for line in rest.splitlines()[:2])),
    )


def looks_like_mdadm(text: str) -> bool:
    """The first line is the device, and there is a Raid Level."""
    return re.match(r"\s*/dev/\S+:\s*\n", text) is not None and "Raid Level" in text


def read_mdadm(text: str) -> list[Array]:
    """Every array of ``mdadm --detail``.

    Raises:
        UnreadableError: a state or a count of devices is missing.
    """
    return [_mdadm_array(part) for part in re.split(r"^(?=/dev/\S+:\s*$)", text.strip(), flags=re.MULTILINE) if part]


def _mdadm_array(text: str) -> Array:
    fields = {
        key.strip(): value.strip() for key, value in re.findall(r"^ *([A-Z][\w /]*?) : (.*)$", text, re.MULTILINE)
    }
    name = text.partition(":")[0].strip()
    state = fields.get("State", "")
    if not state or not {"Raid Devices", "Active Devices"} <= fields.keys():
        raise UnreadableError(f"{name}: no state or no count of devices")
    rows = re.findall(r"^\s+(?:\d+|-)\s+\d+\s+\d+\s+(?:\d+|-)\s+(.*?)(?:\s+(/dev/\S+))?\s*$", text, re.MULTILINE)
    kept = [f"{key} : {fields[key]}" for key in ("State", "Active Devices", "Failed Devices") if key in fields]
    bad = [f"{state} {device}".strip() for state, device in rows if re.search(r"faulty|removed", state)]
    return Array(
        name=name,
        level=fields.get("Raid Level", ""),
        wanted=int(fields["Raid Devices"]),
        active=int(fields["Active Devices"]),
        failed=tuple(device for row, device in rows if "faulty" in row and device),
        rebuilding=next(
            (f"{key} : {value}" for key, value in fields.items() if key.endswith("Status") and "%" in value), ""
        ),
        running=not re.search(r"inactive|FAILED|Not Started", state),
        lines=(f"{name}:", *kept, *bad),
    )
