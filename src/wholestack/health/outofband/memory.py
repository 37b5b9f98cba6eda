"""A BMC in memory, for tests: no process, no socket, no waiting."""

from collections.abc import Collection, Mapping

from wholestack.health.connection import POWER
from wholestack.health.outofband.bmc import Power
from wholestack.remote.batch import Output


class MemoryBmc:
    """A BMC that exists nowhere else.

    Args:
        power: Of its host.
        log: What it answers, by name of the probe, as ipmitool would print it.
    """

    def __init__(self, power: Power = "on", log: Mapping[str, str] | None = None) -> None:
        self.is_on = power == "on"
        """Change it to play somebody at the host."""
        self.switched: list[Power] = []
        """What it was told and did, in order."""
        self._log = dict(log or {})

    async def power(self) -> Output:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return Output(name=POWER.name, stdout=f"Chassis Power is {'on' if self.is_on else 'off'}\n".encode())

    async def log(self, wanted: Collection[str]) -> Mapping[str, Output]:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return {name: Output(name=name, stdout=text.encode()) for name, text in self._log.items() if name in wanted}

    async def set_power(self, to: Power) -> Output:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        if self.is_on != (to == "on"):
            self.is_on = to == "on"
            self.switched.append(to)
        return Output(name=f"power_{to}")

    def shown(self, to: Power) -> str:
        """See :class:`~wholestack.health.outofband.bmc.Bmc`."""
        return f"turn {to}"
