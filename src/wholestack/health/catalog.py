"""The catalogue: every check, in the order in which it is put.

A new file of checks is one line in :data:`MODULES`; installed packages add theirs behind them, by entry points of the
group :data:`ENTRY_POINTS`, each naming what a file of ours calls ``CHECKS``.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from wholestack.errors import InputError
from wholestack.health import connection
from wholestack.health.check import Cause, Check
from wholestack.health.probe import Probe
from wholestack.health.telemetry import CAUSES, MOMENT
from wholestack.plugins import installed

MODULES = (
    "gpu_presence",
    "gpu_inventory",
    "gpu_memory",
    "gpu_clocks",
    "gpu_bus",
    "gpu_telemetry",
    "gpu_processes",
    "nvlink",
    "fabric_manager",
    "peer_memory",
    "xid",
    "kernel",
    "containers",
    "file_systems",
    "pci",
    "infiniband",
    "infiniband_errors",
    "ethernet",
    "optics",
    "manifest",
    "fabric",
    "benchmarks",
    "drives",
    "arrays",
    "mounts",
    "memory",
    "processors",
    "kernel_parameters",
    "firmware",
    "clock",
    "services",
    "bmc",
)  # fmt: skip
"""Files of ``health/checks/``, in the order in which their checks are put: a new one is one line here."""
ENTRY_POINTS = "wholestack.health_checks"
"""Group of entry points, each a tuple of :class:`Check`."""


def _added(known: Sequence[Check]) -> Iterator[Check]:
    """The checks of installed packages. One that cannot be loaded is an error: left out, its faults would look fine.

    Raises:
        InputError: a plug-in cannot be loaded, is no tuple of checks, or has a name that is taken.
    """
    names = {check.name for check in known}
    for plugin in installed(ENTRY_POINTS):
        for check in plugin.load(tuple):
            if not isinstance(check, Check):
                raise plugin.fault(f"holds a {type(check).__name__}, not only checks")
            if check.name in names:
                raise plugin.fault(f"the name {check.name} is taken")
            names.add(check.name)
            yield check


_OURS = tuple(check for name in MODULES for check in import_module(f"wholestack.health.checks.{name}").CHECKS)
CHECKS: tuple[Check, ...] = (*_OURS, *_added(_OURS))


def named(name: str) -> Check:
    """The check of that name.

    Raises:
        InputError: there is none; names the nearest.
    """
    for check in CHECKS:
        if check.name == name:
            return check
    raise InputError(f"no check {name!r}", remedy=nearest(name, [check.name for check in CHECKS]))


def nearest(name: str, known: Iterable[str], *, otherwise: str = "`wholestack health checks` lists them") -> str:
    """What to do about a name that is not known; ``otherwise`` where none is near it."""
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"did you mean {', '.join(near)}?" if near else otherwise


def chosen(only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Check, ...]:
    """The passive checks that a sweep puts.

    Args:
        only: Names of checks, or of nouns: ``gpu`` is every ``gpu.*``; empty for all.
        skip: The same, left out.

    Raises:
        InputError: a name is neither (names the nearest), or of checks that only judge saved outputs: what they read
            is a benchmark or a long tool, which no sweep may start on a host.
    """
    wanted, unwanted = {name for each in only for name in _sent(each)}, _matching(skip)
    return tuple(
        check for check in CHECKS if check.passive and (check.name in wanted or not only) and check.name not in unwanted
    )


def causes() -> dict[str, tuple[Cause, Check | None]]:
    """Every cause by its code, with the first check that says it; ``None`` for those of lost telemetry."""
    found: dict[str, tuple[Cause, Check | None]] = {
        cause.code: (cause, None) for cause in (*CAUSES, *connection.CAUSES)
    }
    for check in CHECKS:
        for cause in check.causes:
            if found.get(cause.code, (cause, None))[1] is None:
                found[cause.code] = (cause, check)
    return found


def named_causes() -> dict[str, tuple[Cause, str]]:
    """Every cause by its code, with the name of the check that says it; of lost telemetry, the code itself."""
    return {code: (cause, check.name if check else code) for code, (cause, check) in causes().items()}


def probes_of(checks: tuple[Check, ...]) -> tuple[Probe[Any], ...]:
    """Every probe that a sweep with these checks sends, once, the moment first."""
    by_name: dict[str, Probe[Any]] = {MOMENT.name: MOMENT}
    for probe in (probe for check in checks for probe in check.probes):
        by_name.setdefault(probe.name, probe)
    return tuple(by_name.values())


def _sent(name: str) -> set[str]:
    """Those passive ones among the checks of that name or noun."""
    found = [check for check in CHECKS if check.name in _matching([name])]
    passive = {check.name for check in found if check.passive}
    if not passive:
        example = found[0]
        raise InputError(
            f"{name} only judges saved outputs",
            remedy=f"run {example.probes[0].command.shell.split()[0]} yourself; then wholestack health judge "
            f"{example.name} FILE",
        )
    return passive


def _matching(names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    nouns = {check.name.partition(".")[0] for check in CHECKS}
    for name in names:
        if name in nouns:
            found |= {check.name for check in CHECKS if check.name.partition(".")[0] == name}
        else:
            found.add(named(name).name)
    return found
