"""Protocols of BMCs: a new one is a file with a :class:`~wholestack.health.outofband.bmc.Bmc`, a line in
:data:`PROTOCOLS`, and the options of its address in ``address.OPTIONS``."""

from collections.abc import Callable, Mapping

from wholestack.health.outofband.address import BmcAddress, Credentials
from wholestack.health.outofband.bmc import Bmc
from wholestack.health.outofband.ipmi import Ipmi
from wholestack.health.outofband.redfish import Redfish

PROTOCOLS: Mapping[str, Callable[[BmcAddress, Credentials], Bmc]] = {"ipmi": Ipmi, "redfish": Redfish}


def open_bmc(address: BmcAddress, credentials: Credentials) -> Bmc:
    """The BMC at an address."""
    return PROTOCOLS[address.protocol](address, credentials)
