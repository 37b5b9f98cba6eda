"""The catalogue: every check, in the order in which it is put. A new check is one line here."""

from typing import Any

from wholestack.errors import InputError
from wholestack.health.check import Check
from wholestack.health.checks import (
    arrays,
    bmc,
    clock,
    drives,
    file_systems,
    firmware,
    kernel_parameters,
    memory,
    mounts,
    processors,
    services,
)
from wholestack.health.probe import Probe
from wholestack.health.telemetry import MOMENT

CHECKS: tuple[Check, ...] = (
    *file_systems.CHECKS,
    *drives.CHECKS,
    *arrays.CHECKS,
    *mounts.CHECKS,
    *memory.CHECKS,
    *processors.CHECKS,
    *kernel_parameters.CHECKS,
    *firmware.CHECKS,
    *clock.CHECKS,
    *services.CHECKS,
    *bmc.CHECKS,
)  # fmt: skip


def named(name: str) -> Check:
    """The check of that name.

    Raises:
        InputError: there is none; names the nearest.
    """
    import difflib

    for check in CHECKS:
        if check.name == name:
            return check
    near = difflib.get_close_matches(name, [check.name for check in CHECKS], n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "`wholestack health checks` lists them"
    raise InputError(f"no check {name!r}", remedy=hint)


def probes_of(checks: tuple[Check, ...]) -> tuple[Probe[Any], ...]:
    """Every probe that a sweep with these checks sends, once, the moment first."""
    by_name: dict[str, Probe[Any]] = {MOMENT.name: MOMENT}
    for probe in (probe for check in checks if check.passive for probe in check.probes):
        by_name.setdefault(probe.name, probe)
    return tuple(by_name.values())
