"""A short active probe of a device that was mended, on its host, where wholestack is installed there.

A check reads what a device says of itself; a probe sees whether it computes. Its answer is what
``wholestack health probe --json`` prints (:mod:`wholestack.health.active`), and as untrusted as any output of a host.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from wholestack.health.active.causes import EXACT
from wholestack.health.cleaning import printable
from wholestack.health.parts import identity_in
from wholestack.record import Record
from wholestack.remote.batch import Command, Output, Remote
from wholestack.remote.host import Host

SECONDS = 20
LIMIT_S = 120.0
"""With the start of the interpreter and of the GPUs' libraries."""
DEVICES = ("gpu", "cpu")
"""Kinds of part that can be probed."""
NOT_INSTALLED = 127
LONGEST_CAUSE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed(Record):
    """What a probe says of one device."""

    status: Literal["sound", "wrong", "unknown"]
    says: str


async def probe_device(host: Host, part: str, remote: Remote) -> Probed | None:
    """Probe the devices of a part's kind and say how that part did; ``None`` where it is no device.

    Args:
        host: Where.
        part: ``kind key``.
        remote: The way there.
    """
    kind = part.partition(" ")[0]
    if kind not in DEVICES:
        return None
    command = Command(
        name="probe",
        shell=(
            f"d=$(mktemp -d) && wholestack health probe --devices {kind} --seconds {SECONDS}s --all --json"
            ' --out "$d/probe"; s=$?; rm -rf "$d"; exit $s'
        ),
        limit_s=LIMIT_S,
    )
    reply = await remote.run(host, [command], deadline_s=LIMIT_S + 20.0)
    return read_probe(reply.outputs[command.name], part)


def read_probe(output: Output, part: str) -> Probed:
    """How one device did, by what the probe printed. Only that it multiplied right says that it is sound."""
    if output.ending == "ended" and output.exit_status == NOT_INSTALLED:
        return Probed(status="unknown", says="not probed: wholestack is not installed there")
    own = [each for each in _findings(output.stdout) if identity_in(str(each.get("part", ""))) == part]
    causes = {str(each.get("status")): printable(str(each.get("cause", "")))[:LONGEST_CAUSE] for each in reversed(own)}
    if "fail" in causes:
        return Probed(status="wrong", says=causes["fail"])
    if "unknown" in causes:
        return Probed(status="unknown", says=f"a probe could not tell: {causes['unknown']}")
    if any(each.get("check") == EXACT and each.get("status") == "ok" for each in own):
        return Probed(status="sound", says=f"a probe of {SECONDS} s finds nothing wrong")
    return Probed(status="unknown", says="a probe did not answer for it")


def _findings(text: bytes) -> list[dict[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = document.get("findings") if isinstance(document, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
