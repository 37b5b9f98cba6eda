"""IPMI over LAN (RMCP+), spoken by ``ipmitool -I lanplus`` of this machine (``ipmitool(1)``, 1.8.18 and 1.8.19).

The password goes to it in the environment (``-E``). ``-v`` is given where only the state is asked: without it, ipmitool
does not say whether the BMC is silent or refuses the password; with it, other outputs have another layout.
"""

import asyncio
import re
import shlex
import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from wholestack.health.checks.bmc_states import BMC_TIME, SEL, SENSORS
from wholestack.health.connection import POWER, power_in
from wholestack.health.outofband.address import BmcAddress, Credentials
from wholestack.health.outofband.bmc import SETTLE_S, Power, refused
from wholestack.health.probe import NO_SUCH_COMMAND
from wholestack.remote.batch import Command, Output, Remote
from wholestack.remote.host import Host
from wholestack.remote.local import LocalRemote

MOST_ENTRIES = 1000
"""Of the event log, the newest."""
LIMIT_S = 90.0
"""Of one command: thousands of entries take a slow BMC a minute."""
MARGIN_S = 10.0
BETWEEN_S = 2.0
_ARGUMENTS = {SEL.name: f"sel elist last {MOST_ENTRIES} 2>&1", SENSORS.name: "sdr elist", BMC_TIME.name: "sel time get"}
_REFUSED = re.compile(r"HMAC is invalid|unauthorized name|[Ii]nvalid role|[Ii]nsufficient privilege")


class Ipmi:
    """A BMC by IPMI.

    Args:
        address: Where it is.
        credentials: Who asks.
        remote: Runs ipmitool; by default on this machine.
    """

    def __init__(self, address: BmcAddress, credentials: Credentials, remote: Remote | None = None) -> None:
        self._address = address
        self._remote = remote or LocalRemote(environment={"IPMITOOL_PASSWORD": credentials.password})
        words = ["ipmitool", "-I", "lanplus", "-H", address.host, "-p", str(address.port or 623)]
        words += ["-U", address.user or credentials.user, "-E", "-N", "2", "-R", "3"]
        self._login = shlex.join([*words, *(("-C", address.value) if address.option == "cipher" else ())])

    async def power(self) -> Output:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return await self._run(POWER.name, "-v chassis power status", limit_s=30.0)

    async def log(self, wanted: Collection[str]) -> Mapping[str, Output]:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`. One after the other: a BMC has few sessions."""
        found: dict[str, Output] = {}
        for probe in (SEL, SENSORS, BMC_TIME):
            if probe.name in wanted:
                most = probe.command.max_bytes
                found[probe.name] = await self._run(probe.name, _ARGUMENTS[probe.name], max_bytes=most)
        return found

    async def set_power(self, to: Power) -> Output:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        name, until = f"power_{to}", time.monotonic() + SETTLE_S
        state = await self.power()
        if power_in(state) == to:
            return replace(state, name=name)
        said = await self._run(name, f"chassis power {to}", limit_s=30.0)
        while said.exit_status == 0 and time.monotonic() < until:
            state = await self.power()
            if power_in(state) == to:
                return replace(said, stdout=state.stdout)
            await asyncio.sleep(BETWEEN_S)
        if said.exit_status == 0:
            return refused(name, f"{self._address}: took the command, and is not {to} after {SETTLE_S:g} s")
        return said

    def shown(self, to: Power) -> str:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return f"{self._login} chassis power {to}"

    async def _run(self, name: str, arguments: str, *, limit_s: float = LIMIT_S, max_bytes: int = 10_000) -> Output:
        command = Command(name=name, shell=f"{self._login} {arguments}", limit_s=limit_s, max_bytes=max_bytes)
        reply = await self._remote.run(Host(name="localhost"), [command], deadline_s=limit_s + MARGIN_S)
        output = reply.outputs[name]
        if output.ending == "ended" and not output.exit_status:
            return output
        return refused(name, f"{self._address}: {_why(output, limit_s)}")


def _why(output: Output, limit_s: float) -> str:
    """One line of what ipmitool says in several."""
    said = output.stderr.decode(errors="replace") + output.text[-2_000:]
    if output.exit_status == NO_SUCH_COMMAND:
        return "ipmitool is not installed on this machine"
    if output.ending != "ended":
        return f"no answer within {limit_s:g} s"
    if "password is longer" in said:
        return "the password is longer than the 20 bytes that IPMI has room for"
    if _REFUSED.search(said):
        return "user or password is refused"
    if "Address lookup" in said:
        return "its name does not resolve"
    if "Unable to establish" in said:
        return "no answer to IPMI over LAN (is it enabled there, and is this the address?)"
    return "ipmitool: " + (said.strip().splitlines() or [f"exit status {output.exit_status}"])[-1]
