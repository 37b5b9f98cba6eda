"""The catalogue of fixes: a new file is one line in :data:`MODULES`; installed packages add theirs behind them."""

from collections.abc import Iterator
from importlib import import_module

from wholestack.health import catalog as checks
from wholestack.health import connection
from wholestack.health.fixes.fix import Fix
from wholestack.plugins import installed

MODULES = (
    "gpu_persistence",
    "gpu_reset",
    "gpu_ecc",
    "fabric_manager",
    "peer_memory",
    "time_sync",
    "containers",
    "failed_unit",
    "mounts",
    "swap",
    "kernel_parameters",
    "power",
)
"""Files of ``health/fixes/``; of two that mend a cause, the first is tried first."""
ENTRY_POINTS = "wholestack.health_fixes"
"""Group of entry points, each a tuple of :class:`~wholestack.health.fixes.fix.Fix`."""


def all_fixes() -> tuple[Fix, ...]:
    """Every fix.

    Raises:
        InputError: a plug-in cannot be loaded, has a name that is taken, or a cause that no check says.
    """
    ours: list[Fix] = [fix for name in MODULES for fix in import_module(f"wholestack.health.fixes.{name}").FIXES]
    return (*ours, *_added(ours))


def fixes_for(cause: str) -> tuple[Fix, ...]:
    """Those that mend a cause, by its code."""
    return tuple(fix for fix in all_fixes() if cause in fix.about.causes)


def mended() -> frozenset[tuple[str, str]]:
    """Check and words of every cause that some fix mends, as a Finding has them.

    Raises:
        InputError: see :func:`all_fixes`.
    """
    causes = {checks.causes()[code][0] for fix in all_fixes() for code in fix.about.causes}
    said = [(check.name, cause) for check in checks.CHECKS for cause in check.causes]
    said += [(connection.CHECK, cause) for cause in connection.CAUSES]
    return frozenset((check, cause.says) for check, cause in said if cause in causes)


def _added(known: list[Fix]) -> Iterator[Fix]:
    names = {fix.about.name for fix in known}
    for plugin in installed(ENTRY_POINTS):
        for fix in plugin.load(tuple):
            with plugin.blamed("is no fix"):
                name, causes = fix.about.name, fix.about.causes
            if name in names:
                raise plugin.fault(f"the name {name} is taken")
            if unknown := [code for code in causes if code not in checks.causes()]:
                raise plugin.fault(f"{name} mends {unknown[0]}, which no check says")
            names.add(name)
            yield fix
