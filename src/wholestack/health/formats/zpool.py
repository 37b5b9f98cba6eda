"""``zpool status``: pools, their devices and what they counted.

Source: zpool-status(8) of OpenZFS 2.2; older releases indent by blanks and print ``scrub:`` instead of ``scan:``.
Counts may be abbreviated (``1.2K``).
"""

import re
from dataclasses import dataclass, replace

from wholestack.health.probe import NotThereError, UnreadableError

_ROW = re.compile(
    r"^([ \t]+)(\S+)[ \t]+([A-Z]{4,12})"
    r"(?:[ \t]+([\d.]+[KMGTP]?)[ \t]+([\d.]+[KMGTP]?)[ \t]+([\d.]+[KMGTP]?))?(?:[ \t]+(\S.*))?$"
)
_SECTIONS = ("logs", "cache", "spares", "special", "dedup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One row of the configuration: the pool itself, a group, or a device."""

    name: str
    state: str
    """``ONLINE``, ``DEGRADED``, ``FAULTED``, ``OFFLINE``, ``REMOVED``, ``UNAVAIL``, ``AVAIL``, ``INUSE``."""
    reads: float = 0
    writes: float = 0
    checksums: float = 0
    note: str = ""
    depth: int = 0
    """Blanks before the name."""
    section: str = ""
    """``spares``, ``logs`` ...; empty for data."""
    leaf: bool = True
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One pool."""

    name: str
    state: str
    scan: str
    """What the last scrub or resilver says."""
    errors: str
    """Data errors, in ZFS's words."""
    devices: tuple[Device, ...]
    lines: tuple[str, ...]
    """``state:``, ``status:`` and ``errors:`` as printed."""


def looks_like_zpool(text: str) -> bool:
    """A pool, or the words that there is none."""
    return re.search(r"^[ \t]*pool: |^no pools available", text, re.MULTILINE) is not None


def read_zpool(text: str) -> list[Pool]:
    """Every pool.

    Raises:
        NotThereError: there is none.
        UnreadableError: a pool without state or configuration.
    """
    if text.lstrip().startswith("no pools available"):
        raise NotThereError("not_expected", "no ZFS pool")
    return [_pool(part) for part in re.split(r"^(?=[ \t]*pool: )", text, flags=re.MULTILINE) if "pool: " in part]


def _pool(text: str) -> Pool:
    fields = dict(re.findall(r"^ {0,8}(pool|state|status|scan|scrub|errors): ?(.*)$", text, re.MULTILINE))
    name, state = fields["pool"].strip(), fields.get("state", "").strip()
    _, found, table = text.partition("config:")
    devices = _devices(table)
    if not state or not found or not devices or "errors" not in fields:
        raise UnreadableError(f"pool {name}: no state, no configuration or cut")
    shown = [f"{key}: {fields[key].strip()}" for key in ("state", "status", "errors") if key in fields]
    return Pool(
        name=name,
        state=state,
        scan=(fields.get("scan") or fields.get("scrub") or "").strip(),
        errors=fields["errors"].strip(),
        devices=tuple(devices),
        lines=(f"pool: {name}", *shown),
    )


def _devices(table: str) -> list[Device]:
    rows: list[Device] = []
    section = ""
    for line in table.splitlines():
        if line.startswith("errors:"):
            break
        if line.strip() in _SECTIONS:
            section = line.strip()
        elif (words := _ROW.match(line)) is not None and words[2] != "NAME":
            rows.append(_device(words, section, line))
    deeper = [after.depth for after in rows[1:]] + [0]
    return [_as_group(row) if below > row.depth else row for row, below in zip(rows, deeper, strict=True)]


def _device(words: re.Match[str], section: str, line: str) -> Device:
    return Device(
        name=words[2],
        state=words[3],
        reads=_count(words[4]),
        writes=_count(words[5]),
        checksums=_count(words[6]),
        note=words[7] or "",
        depth=len(words[1].expandtabs(8)),
        section=section,
        line=line.strip(),
    )


def _as_group(row: Device) -> Device:
    return replace(row, leaf=False)


def _count(text: str | None) -> float:
    if text is None:
        return 0
    scale = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}.get(text[-1], 1)
    return float(text.rstrip("KMGTP")) * scale
