"""Linux software RAID: ``/proc/mdstat`` and ``mdadm --detail`` (or ``--query --detail``) as the same facts.

Source: drivers/md/md.c (``md_seq_show``), mdadm(8).
"""

import re
from collections.abc import Mapping, Sequence
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
    blocks: list[list[str]] = []
    for line in text.split("\n"):
        if re.match(r"md\S* : ", line):
            blocks.append([line])
        elif blocks and line[:1] in (" ", "\t") and line.strip():
            blocks[-1].append(line.strip())
    if not blocks:
        raise NotThereError("not_expected", "no software RAID array")
    return [_mdstat_array(block[0], block[1:]) for block in blocks]


def _mdstat_array(head: str, rest: Sequence[str]) -> Array:
    name, _, state = head.partition(" : ")
    words = state.split()
    running = words[0] == "active"
    level = next((word for word in words if re.fullmatch(r"raid\d{1,2}|linear|multipath|faulty", word)), "")
    counts = next((found for line in rest if (found := re.search(r"\[(\d{1,4})/(\d{1,4})\] \[[U_]+\]", line))), None)
    if running and level in ("raid1", "raid4", "raid5", "raid6", "raid10") and counts is None:
        raise UnreadableError(f"{name}: no count of members")
    members = [word for word in words if re.search(r"\[\d+\]", word)]
    return Array(
        name=f"/dev/{name}",
        level=level,
        wanted=int(counts[1]) if counts else len(members),
        active=int(counts[2]) if counts else len(members),
        failed=tuple(f"/dev/{word.partition('[')[0]}" for word in members if "(F)" in word),
        # A periodic `check` is maintenance, the others bring a member up to date.
        rebuilding=next((line for line in rest if re.search(r"\b(?:recovery|reshape|resync)\s?=", line)), ""),
        running=running,
        lines=(head, *rest[:2]),
    )


def looks_like_mdadm(text: str) -> bool:
    """The first line is the device, and there is a Raid Level."""
    return re.match(r"/dev/\S+:\s", text.lstrip()) is not None and "Raid Level" in text


def read_mdadm(text: str) -> list[Array]:
    """Every array of ``mdadm --detail``.

    Raises:
        UnreadableError: a state or a count of devices is missing.
    """
    parts = re.split(r"^(?=/dev/\S+:[ \t]*$)", text.strip(), flags=re.MULTILINE)
    return [_mdadm_array(part) for part in parts if part]


def _mdadm_array(text: str) -> Array:
    lines = [line.strip() for line in text.split("\n")]
    fields = {key.strip(): value.strip() for key, colon, value in (line.partition(" : ") for line in lines) if colon}
    name = lines[0].rstrip(":")
    state = fields.get("State", "")
    if "Array State" in fields:
        return _examined(name, fields)
    if not state or not {"Raid Devices", "Active Devices"} <= fields.keys():
        raise UnreadableError(f"{name}: no state or no count of devices")
    rows = [_member(line) for line in lines if re.match(r"(?:\d+|-)\s+\d+\s+\d+\s+(?:\d+|-)\s", line)]
    kept = [f"{key} : {fields[key]}" for key in ("State", "Active Devices", "Failed Devices") if key in fields]
    return Array(
        name=name,
        level=fields.get("Raid Level", ""),
        wanted=int(fields["Raid Devices"]),
        active=int(fields["Active Devices"]),
        failed=tuple(row.split()[-1] for row in rows if row.startswith("faulty") and "/dev/" in row),
        rebuilding=next(
            (f"{key} : {fields[key]}" for key in fields if re.fullmatch(r"(?:Rebuild|Resync|Reshape) Status", key)), ""
        ),
        running=not re.search(r"inactive|FAILED|Not Started", state),
        lines=(f"{name}:", *kept, *(row for row in rows if row.startswith(("faulty", "removed")))),
    )


def _examined(member: str, fields: Mapping[str, str]) -> Array:
    """``mdadm --examine`` of one member, which says of all whether they are active (A), missing (.) or replaced (R)."""
    states = fields["Array State"].split()[0]
    if re.fullmatch(r"[AR.]{1,400}", states) is None:
        raise UnreadableError(f"{member}: array state {states[:40]!r}")
    return Array(
        name=fields.get("Name", member).split()[0],
        level=fields.get("Raid Level", ""),
        wanted=len(states),
        active=len(states) - states.count("."),
        failed=(),
        rebuilding="",
        running=True,
        lines=(f"{member}:", f"Array State : {fields['Array State']}"),
    )


def _member(line: str) -> str:
    """State and device of a row ``Number Major Minor RaidDevice State``."""
    return " ".join(line.split()[4:])
