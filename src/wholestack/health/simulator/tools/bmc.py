"""``ipmitool sel elist``, ``sel time get``, ``sdr elist`` (``ipmitool(1)``; sensors and events as in the IPMI 2.0
specification, tables 42-2 and 42-3)."""

import time

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer

_NO_DEVICE = "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"


def event_log(machine: Machine) -> Answer:
    """The events, by the clock of the BMC."""
    if not machine.bmc:
        return Answer(stderr=_NO_DEVICE, exit_status=1)
    if not machine.sel:
        return Answer(stdout="SEL has no entries\n", seconds=0.4)
    lines = [
        f"{number:4x} | {time.strftime('%m/%d/%Y | %H:%M:%S', time.gmtime(at_s + machine.bmc_offset_s))} | {sensor} | "
        f"{event} | {direction}\n"
        for number, (at_s, sensor, event, direction) in enumerate(sorted(machine.sel), start=1)
    ]
    return Answer(stdout="".join(lines), seconds=0.9)


def clock(machine: Machine) -> Answer:
    """The time of the event log, by the clock of the BMC."""
    if not machine.bmc:
        return Answer(stderr=_NO_DEVICE, exit_status=1)
    return Answer(
        stdout=time.strftime("%m/%d/%Y %H:%M:%S\n", time.gmtime(machine.clock + machine.bmc_offset_s)), seconds=0.1
    )


def sensors(machine: Machine) -> Answer:
    """All sensors with their state."""
    if not machine.bmc:
        return Answer(stderr=_NO_DEVICE, exit_status=1)
    return Answer(
        stdout="".join(
            f"{each.name:<16} | {each.number} | {each.status:<3} | {each.entity:>4} | {each.reading}\n"
            for each in machine.sensors
        ),
        seconds=1.6,
    )
