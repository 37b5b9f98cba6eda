"""One kind of fault: how it shows, where its format is documented, and what is true of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeVar

from wholestack.health.simulator.hardware import Gpu
from wholestack.health.simulator.machine import Machine, Ongoing

T = TypeVar("T")

Owner = Literal["vendor", "data centre", "network", "cluster team", "job owner"]
PartKind = Literal[
    "gpu",
    "nvlink",
    "nvswitch",
    "hca",
    "nic",
    "drive",
    "file system",
    "memory",
    "cpu",
    "power and cooling",
    "service",
    "clock",
    "process",
    "host",
    "tool",
]

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The random choices of one injection."""

    rng: Random
    severity: float = 0.5
    """From just noticeable (near 0) to blatant (1)."""
    index: int | None = None
    """Which of the parts, if the user said so; otherwise drawn."""

    def one(self, parts: Sequence[T]) -> T:
        """The part that breaks."""
        if self.index is not None:
            return parts[self.index % len(parts)]
        return parts[self.rng.randrange(len(parts))]

    def between(self, low: float, high: float) -> float:
        """A size that goes with the severity."""
        return low + (high - low) * self.severity

    def whole(self, low: int, high: int) -> int:
        """The same as a whole number."""
        return round(self.between(low, high))

    def ago_s(self) -> float:
        """How long ago it happened: seconds to a good half hour."""
        return self.rng.uniform(5, 2_000)


Inject = Callable[[Machine, Draw], tuple[str, ...]]
"""Breaks the host; gives the ways in which the broken part may be called, any one of which identifies it; none: the
host as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault."""

    name: str
    source: str
    """Document or issue that shows the format."""
    part: PartKind
    owners: tuple[Owner, ...]
    """Who has to act; more than one where honest people differ."""
    applies: Callable[[Machine], bool]
    inject: Inject
    tool: bool = False
    """Whether it is a tool or the connection that fails: then ``unknown`` is the right verdict."""
    by_rate: bool = False
    """Whether it is certain only from the second sweep on, by what a counter gained in between."""


def fault(
    name: str,
    part: PartKind,
    source: str,
    inject: Inject,
    *owners: Owner,
    applies: Callable[[Machine], bool] | None = None,
    tool: bool = False,
    by_rate: bool = False,
) -> Fault:
    """One line of a table of faults; without ``applies``: any host."""
    return Fault(
        name=name,
        source=source,
        part=part,
        owners=owners,
        applies=applies or always,
        inject=inject,
        tool=tool,
        by_rate=by_rate,
    )


def always(machine: Machine) -> bool:
    """Any host."""
    return True


def has_gpus(machine: Machine) -> bool:
    """Hosts whose driver has GPUs."""
    return bool(machine.seen_gpus()) and not machine.driver_answers


def has_nvlinks(machine: Machine) -> bool:
    """Hosts whose GPUs have links to each other."""
    return has_gpus(machine) and bool(machine.gpus[0].links)


def gpu_names(gpu: Gpu) -> tuple[str, ...]:
    """All that identifies a GPU: addresses in the forms of the kernel, sysfs and ``nvidia-smi``, serial, UUID."""
    return gpu.pci, gpu.kernel_address, gpu.smi_address.lower(), gpu.serial, gpu.uuid.lower()


def again(machine: Machine, every_s: float, act: Callable[[Machine, int], None]) -> None:
    """What happened happens again, on average every ``every_s``."""
    machine.ongoing.append(Ongoing(every_s=every_s, act=act))


def repeat_line(machine: Machine, text: str, *, level: str, ago_s: float, every_s: float) -> None:
    """A line now and again for as long as the fault lasts."""
    machine.say(text, level=level, ago_s=ago_s)
    again(machine, every_s, lambda host, count: host.say(text, level=level))
