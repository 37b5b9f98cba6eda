"""Ask BMCs: of hosts that do not answer, in the middle of a sweep or a fix; or of hosts that somebody names.

:class:`WithBmcs` is a way to hosts like any other. A host that is silent is asked through its BMC instead: the reply
keeps its trouble and has what the BMC says of power, events and sensors, which the checks of every sweep judge.
Commands that switch the power go to the BMC and never to the host.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from wholestack.health import catalog
from wholestack.health.check import Check, Symptom
from wholestack.health.checks.bmc_states import SENSORS
from wholestack.health.cleaning import printable
from wholestack.health.connection import CHECK, NO_BMC, OFF, POWER, SILENT, power_in, power_line
from wholestack.health.diagnosis import CheckSymptom
from wholestack.health.examine import examine
from wholestack.health.judging import Judgement, judgement
from wholestack.health.outofband.address import BmcAddress, Credentials, address_of
from wholestack.health.outofband.bmc import Bmc, Power, refused
from wholestack.health.outofband.catalog import open_bmc
from wholestack.remote.batch import Command, Output, Remote, Reply
from wholestack.remote.host import Host

AT_A_TIME = 32
"""BMCs, each of which may keep a process or a thread waiting."""
NO_CREDENTIALS = "was not asked, for want of a user and a password (wholestack health bmc --help)"
_SWITCHES: Mapping[str, Power] = {"ipmitool chassis power on": "on", "ipmitool chassis power off": "off"}
"""Commands as fixes have them; a BMC is told in its own protocol."""
Open = Callable[[BmcAddress, Credentials], Bmc]


class Bmcs:
    """The BMCs of hosts, found by the key ``bmc`` of each.

    Args:
        credentials: Who asks; ``None``: nobody, which is said of every host whose BMC would be asked.
        open: Makes a BMC of an address.
    """

    def __init__(self, credentials: Credentials | None, *, open: Open = open_bmc) -> None:
        self._credentials = credentials
        self._open = open
        self._turns = asyncio.Semaphore(AT_A_TIME)

    async def ask(self, host: Host, wanted: Collection[str]) -> dict[str, Output]:
        """Whether a host is on, and what else its BMC can answer of these probes; only power where it fails there.

        Raises:
            InputError: the host has no BMC, or its address is none.
        """
        address = address_of(host)
        if self._credentials is None:
            return {POWER.name: refused(POWER.name, f"{address} {NO_CREDENTIALS}")}
        bmc = self._open(address, self._credentials)
        async with self._turns:
            power = await bmc.power()
            # Fans that stand still and rails without voltage are no faults of a host that is off.
            sensible = [name for name in wanted if name != SENSORS.name or power_in(power) != "off"]
            log = {} if power.exit_status else await bmc.log(sensible)
        return {POWER.name: power, **log}

    async def switch(self, host: Host, command: Command) -> Output:
        """Do what a command says that :func:`switches` knows.

        Raises:
            InputError: see :meth:`ask`.
        """
        address = address_of(host)
        if self._credentials is None:
            return refused(command.name, f"{address} {NO_CREDENTIALS}")
        async with self._turns:
            said = await self._open(address, self._credentials).set_power(_wanted(command))
        return replace(said, name=command.name)

    def shown(self, host: Host, command: Command) -> str:
        """The exact command: what switches the power is not run on the host.

        Raises:
            InputError: see :meth:`ask`.
        """
        if not switches(command):
            return command.shell
        who = self._credentials or Credentials(user="USER", password="")
        return self._open(address_of(host), who).shown(_wanted(command))


class WithBmcs:
    """A way to hosts that asks the BMC of one that is silent.

    Args:
        beneath: The way to the hosts themselves.
        bmcs: Those of all hosts that have one.
    """

    def __init__(self, beneath: Remote, bmcs: Bmcs) -> None:
        self._beneath = beneath
        self._bmcs = bmcs

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """See :class:`~wholestack.remote.batch.Remote`. A BMC keeps limits of its own, on top of the deadline."""
        if any(map(switches, commands)):
            done = {command.name: await self._bmcs.switch(host, command) for command in commands}
            return Reply(host=host, outputs=done)
        reply = await self._beneath.run(host, commands, deadline_s=deadline_s)
        silent = reply.trouble in SILENT and all(each.ending == "not_run" for each in reply.outputs.values())
        if not silent or host.bmc is None:
            return reply
        said = await self._bmcs.ask(host, [command.name for command in commands])
        return replace(reply, outputs={**reply.outputs, **said})

    async def close(self) -> None:
        """See :class:`~wholestack.remote.batch.Remote`."""
        await self._beneath.close()


def switches(command: Command) -> bool:
    """Whether a command turns a host on or off."""
    return command.shell in _SWITCHES


def _wanted(command: Command) -> Power:
    return _SWITCHES[command.shell]


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcSays:
    """What the BMC of one host says."""

    host: str
    bmc: str
    """Its address."""
    power: str
    """``on``, ``off``, another word of the BMC's; empty where it could not be asked."""
    judgement: Judgement


async def ask_bmcs(
    hosts: Sequence[Host], credentials: Credentials, *, now: float, open: Open = open_bmc
) -> list[BmcSays]:
    """Ask the BMCs of hosts, whether the hosts answer or not.

    Args:
        hosts: Each has a BMC.
        credentials: Who asks.
        now: Seconds since the epoch.
        open: Makes a BMC of an address.

    Raises:
        InputError: a host has no BMC, or an address is none; before any is asked.
    """
    addresses = {host.name: address_of(host) for host in hosts}
    bmcs = Bmcs(credentials, open=open)
    wanted = [probe.name for check in _checks() for probe in check.probes]
    replies = await asyncio.gather(*(bmcs.ask(host, wanted) for host in hosts))
    return [
        BmcSays(
            host=host.name,
            bmc=str(addresses[host.name]),
            power=power_in(said[POWER.name]),
            judgement=_judged(host.name, said, now=now),
        )
        for host, said in zip(hosts, replies, strict=True)
    ]


def _judged(name: str, outputs: Mapping[str, Output], *, now: float) -> Judgement:
    checks = [check for check in _checks() if check.probes[0].name in outputs]
    found = examine(outputs, checks, now=now)
    power = outputs[POWER.name]
    cause = {"off": OFF, "": NO_BMC}.get(power_in(power))
    if cause is not None:
        symptom = Symptom(cause=cause, evidence=(printable(power_line(power)),))
        found = replace(found, symptoms=(CheckSymptom(check=CHECK, symptom=symptom), *found.symptoms))
    return judgement(name, found, checks=checks)


def _checks() -> list[Check]:
    return [check for check in catalog.CHECKS if check.passive and check.name.startswith("bmc.")]
