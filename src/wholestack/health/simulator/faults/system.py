"""to come"""

from wholestack.health.simulator.faults.fault import Fault

FAULTS: tuple[Fault, ...] = ()
