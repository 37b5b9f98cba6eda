"""What ``wholestack health probe`` does: find the devices, make the run directory, probe, say what is out of reach."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wholestack.errors import InputError
from wholestack.health.active.concluding import Conclusion
from wholestack.health.active.device import Device
from wholestack.health.active.finding_devices import DRIVER, Which, devices_here
from wholestack.health.active.probing import names_of, probe
from wholestack.health.active.records import KIND, Plan
from wholestack.health.active.speed import Reference
from wholestack.record import from_json, to_builtins
from wholestack.runs import RunDirectory, RunManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Options of the command."""

    devices: Which | None
    seconds: float
    room_bytes: int | None
    reference: Path | None
    rounds: int | None
    seed: int
    even_if_busy: bool
    idle: tuple[str, ...] = ()
    side: int | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None and self.rounds < 1:
            raise InputError(f"--rounds is {self.rounds}", remedy="give 1 or more")


def run_probe(
    asked: Asked, folder: Path, *, content: bytes | None, tell: Callable[[str], None], driver: Path = DRIVER
) -> tuple[str, Conclusion]:
    """The host's name and what came of it.

    Args:
        asked: Options.
        folder: Of the results.
        content: Of the reference, where there is one.
        tell: Is told what goes on.
        driver: Where the GPUs' driver lists them.

    Raises:
        InputError: a device that is called idle is none of those.
        RecordError: the reference does not decode.
        RunDirectoryError: the folder cannot be made.
    """
    host = os.uname().nodename
    reference = from_json(Reference, content, where=str(asked.reference)) if content is not None else None
    plan = Plan(
        seconds=asked.seconds,
        room_bytes=asked.room_bytes,
        rounds=asked.rounds,
        side=asked.side,
        seed=asked.seed,
        even_if_busy=asked.even_if_busy,
        idle=asked.idle,
    )
    manifest = RunManifest(
        kind=KIND, created_at=time.time(), seed=asked.seed, config=to_builtins(plan), versions=_versions()
    )
    with ExitStack() as stack:
        found = stack.enter_context(devices_here(asked.devices, driver=driver))
        _refuse_unknown(asked.idle, found.devices)
        run = stack.enter_context(RunDirectory.create(folder, manifest))
        beyond = found.out_of_reach
        concluded = probe(found.devices, plan, run=run, host=host, reference=reference, tell=tell, out_of_reach=beyond)
    return host, concluded


def _refuse_unknown(idle: Sequence[str], devices: Sequence[Device]) -> None:
    known = set().union(*map(names_of, devices))
    if unknown := sorted(set(idle) - known):
        here = ", ".join(each.part.identity for each in devices) or "none"
        raise InputError(f"--idle {unknown[0]!r}: there is no such device", remedy=f"there are: {here}")


def _versions() -> dict[str, str]:
    found = {}
    for name in ("wholestack", "numpy", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
