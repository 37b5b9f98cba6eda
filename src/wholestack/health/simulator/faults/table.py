"""The plain table of all kinds of fault."""

from wholestack.health.simulator.faults import (
    fabric,
    gpus,
    network,
    platform,
    storage,
    system,
    tools,
    xids,
)
from wholestack.health.simulator.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *gpus.FAULTS,
    *xids.FAULTS,
    *fabric.FAULTS,
    *network.FAULTS,
    *storage.FAULTS,
    *platform.FAULTS,
    *system.FAULTS,
    *tools.FAULTS,
)


def fault_named(name: str) -> Fault | None:
    """The kind of fault of that name, if there is one."""
    return next((fault for fault in FAULTS if fault.name == name), None)
