"""What a BMC can be asked and told, whatever protocol it speaks. Built in: one file each, a line in ``catalog.py``.

What a BMC says comes back as outputs of the very probes that ask a host, so that the same readers and checks judge it;
that it says nothing is an output too, which failed with one line why.
"""

from collections.abc import Collection, Mapping
from typing import Literal, Protocol

from wholestack.remote.batch import Output

Power = Literal["on", "off"]
SETTLE_S = 90.0
"""How long a BMC may take to do what it was told."""


class Bmc(Protocol):
    """One BMC. No method raises for what it does or says."""

    async def power(self) -> Output:
        """For :data:`~wholestack.health.connection.POWER`: whether the host is on."""
        ...

    async def log(self, wanted: Collection[str]) -> Mapping[str, Output]:
        """Of these probes, those that it can answer: ``sel``, the newest entries; ``sensors``; ``bmc_time``."""
        ...

    async def set_power(self, to: Power) -> Output:
        """Turn the host on or, at once and hard, off, and wait until it is; one that is already is left alone."""
        ...

    def shown(self, to: Power) -> str:
        """The exact command or request of :meth:`set_power`, for a person to read; no password is in it."""
        ...


def refused(name: str, why: str) -> Output:
    """The output of something that failed."""
    return Output(name=name, stderr=" ".join(why.split())[:500].encode(), exit_status=1)
