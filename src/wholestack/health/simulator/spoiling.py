"""What becomes of the output of a tool that hangs, is cut short, is garbled or speaks another language."""

import re
from dataclasses import dataclass
from random import Random

from wholestack.health.simulator.machine import ToolEffect
from wholestack.remote.batch import Ending

_GERMAN = (
    ("Mounted on", "Eingehängt auf"),
    ("Filesystem", "Dateisystem"),
    ("1024-blocks", "1K-Blöcke"),
    ("Used", "Benutzt"),
    ("Available", "Verfügbar"),
    ("Capacity", "Kapazität"),
    ("IUsed", "IBenutzt"),
    ("Architecture", "Architektur"),
    ("On-line CPU(s) list", "Liste der Online-CPU(s)"),
    ("Vendor ID", "Anbieterkennung"),
    ("Model name", "Modellname"),
    ("Socket(s)", "Sockel"),
    ("Core(s) per socket", "Kern(e) pro Sockel"),
    ("Thread(s) per core", "Thread(s) pro Kern"),
    ("CPU(s):", "CPU(s):"),
    ("NUMA node(s)", "NUMA-Knoten"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoilt:
    """What arrives."""

    body: bytes
    exit_status: int | None
    ending: Ending
    seconds: float


def spoil(
    effect: ToolEffect, body: bytes, *, exit_status: int | None, seconds: float, limit_s: float, max_bytes: int
) -> Spoilt:
    """Apply an effect to an output.

    Args:
        effect: What happens, and how much of it (which also decides where).
        body: What the tool would print.
        exit_status: How it would end.
        seconds: How long it would take.
        limit_s: When it would be killed.
        max_bytes: After how much of it nobody listens.
    """
    part = body[: int(len(body) * effect.amount)]
    match effect.kind:
        case "hung":
            return Spoilt(body=b"", exit_status=None, ending="hung", seconds=limit_s)
        case "timed_out":
            return Spoilt(body=b"", exit_status=None, ending="timed_out", seconds=limit_s)
        case "endless":
            return Spoilt(body=_endless(body, max_bytes), exit_status=None, ending="timed_out", seconds=limit_s)
        case "truncated":
            return Spoilt(body=part, exit_status=exit_status, ending="ended", seconds=seconds)
        case "crashed":
            return Spoilt(body=part, exit_status=139, ending="ended", seconds=seconds)
        case "empty":
            return Spoilt(body=b"", exit_status=0, ending="ended", seconds=seconds)
    changed = _garble(body, effect.amount) if effect.kind == "garbled" else _translate(body)
    return Spoilt(body=changed, exit_status=exit_status, ending="ended", seconds=seconds)


def _endless(body: bytes, max_bytes: int) -> bytes:
    body = body or b"\n"
    return (body * (max_bytes // len(body) + 1))[: max_bytes + 1].ljust(max_bytes + 1, b"\n")


def _garble(body: bytes, amount: float) -> bytes:
    """Bytes lost, doubled and replaced, as on a bad serial line: at least one in each 60."""
    rng = Random(amount)
    out = bytearray()
    rate = 1 / 60 + amount / 20
    for byte in body:
        if rng.random() < rate:
            out += rng.choice((b"", b"\x00", b"\xff\xfe", bytes([byte, byte]), b"\x1b[31m"))
        else:
            out.append(byte)
    return bytes(out)


def _translate(body: bytes) -> bytes:
    """German words and the decimal comma."""
    text = body.decode()
    for english, german in _GERMAN:
        text = text.replace(english, german)
    return re.sub(r"(\d)\.(\d)", r"\1,\2", text).encode()
