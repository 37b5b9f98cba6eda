"""A fleet of simulated hosts: which kinds, how old, what is broken; and time passing over all of them."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from wholestack.errors import InputError
from wholestack.health.simulator import ageing
from wholestack.health.simulator.faults.fault import Draw, Fault
from wholestack.health.simulator.faults.table import FAULTS
from wholestack.health.simulator.kinds import KINDS, Kind, build
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.past import give_past
from wholestack.health.simulator.truth import Truth
from wholestack.remote.host import Host

START_S = 1_793_577_600.0
"""2 November 2026, 00:00 UTC: the true time at which a fleet begins unless told otherwise."""
HOSTS_OF_A_KIND = 12
"""A small fleet has few kinds: hosts are compared with those of their kind, and two are no majority."""


class Fleet:
    """Simulated hosts that share one clock.

    Args:
        count: Number of hosts, at least 1.
        seed: Same seed, same fleet, whatever the machine.
        kinds: What they are; drawn by their weights.
        start_s: True time, seconds since the epoch.

    Raises:
        InputError: fewer than one host, or no kind.
    """

    def __init__(self, count: int, *, seed: int, kinds: Sequence[Kind] = KINDS, start_s: float = START_S) -> None:
        if count < 1 or not kinds:
            raise InputError(f"a fleet needs at least one host and one kind, got {count} of {len(kinds)}")
        self.seed = seed
        self.now = start_s
        self.truths: list[Truth] = []
        self._machines = {machine.name: machine for machine in _machines(count, seed, kinds, start_s)}

    def __iter__(self) -> Iterator[Machine]:
        return iter(self._machines.values())

    def __len__(self) -> int:
        return len(self._machines)

    def __getitem__(self, name: str) -> Machine:
        return self._machines[name]

    def get(self, name: str) -> Machine | None:
        """The host of that name, if there is one."""
        return self._machines.get(name)

    def hosts(self) -> list[Host]:
        """The hosts as an inventory has them."""
        return [Host(name=machine.name, kind=machine.kind) for machine in self]

    def advance(self, seconds: float) -> None:
        """Let time pass for all hosts: jobs, counters, logs, and what is broken goes on breaking."""
        self.now += seconds
        for machine in self:
            ageing.advance(machine, seconds)

    def inject(self, host: str, fault: Fault, *, severity: float | None = None, index: int | None = None) -> Truth:
        """Break a host now.

        Args:
            host: Name of the host.
            fault: Kind of fault.
            severity: 0 (just noticeable) to 1 (blatant); drawn if not given.
            index: Which of its parts; drawn if not given.

        Raises:
            InputError: no such host, the fault does not apply to it, or the severity is out of range.
        """
        machine = self._machines.get(host)
        if machine is None:
            raise InputError(f"no host {host!r} in this fleet", remedy=f"they are {next(iter(self._machines))} and on")
        if not fault.applies(machine):
            kinds = dict.fromkeys(each.kind for each in self._machines.values() if fault.applies(each))
            raise InputError(
                f"{fault.name} cannot happen to {host}, whose kind is {machine.kind}",
                remedy=f"it can happen to {', '.join(kinds) or 'no host of this fleet'}",
            )
        rng = Random(f"{self.seed}/{host}/{fault.name}/{len(self.truths)}")
        chosen = rng.random() if severity is None else severity
        if not 0.0 <= chosen <= 1.0:
            raise InputError(f"severity is from 0 to 1, got {chosen}")
        names = fault.inject(machine, Draw(rng=rng, severity=chosen, index=index))
        machine.version += 1
        machine.broken = True
        truth = Truth(
            host=host,
            fault=fault.name,
            part=fault.part,
            names=names,
            owners=fault.owners,
            tool=fault.tool,
            by_rate=fault.by_rate,
            severity=chosen,
            since=self.now,
        )
        self.truths.append(truth)
        return truth

    def inject_mixture(
        self,
        *,
        share: float = 0.1,
        faults: Sequence[Fault] = FAULTS,
        severity: tuple[float, float] = (0.0, 1.0),
    ) -> list[Truth]:
        """Break a share of the healthy hosts, one fault each, all kinds of fault about equally often.

        Args:
            share: Of all hosts, 0 to 1.
            faults: Kinds of fault to draw from.
            severity: Range of severities, for instance one not used while developing.
        """
        rng = Random(f"{self.seed}/mixture")
        broken = {truth.host for truth in self.truths}
        whole = [machine for machine in self if machine.name not in broken]
        rng.shuffle(whole)
        pairs = list(in_turn(whole[: round(share * len(self))], faults, rng))
        return [self.inject(machine.name, fault, severity=rng.uniform(*severity)) for machine, fault in pairs]


def in_turn(machines: Iterable[Machine], faults: Sequence[Fault], rng: Random) -> Iterator[tuple[Machine, Fault]]:
    """A fault for each host that can have one, the least used of those first."""
    waiting = list(faults)
    rng.shuffle(waiting)
    for machine in machines:
        fault = next((each for each in waiting if each.applies(machine)), None)
        if fault:
            waiting.remove(fault)
            waiting.append(fault)
            yield machine, fault


def _machines(count: int, seed: int, kinds: Sequence[Kind], start_s: float) -> Iterator[Machine]:
    rng = Random(f"{seed}/kinds")
    few = list(kinds)
    limit = max(1, count // HOSTS_OF_A_KIND)
    if limit < len(few):
        few = rng.sample(few, limit)
    chosen = rng.choices(few, [kind.weight for kind in few], k=count)
    for index, kind in enumerate(chosen):
        own = Random(f"{seed}/{index}")
        machine = build(kind, f"node{index:04d}", own, now=start_s)
        give_past(machine, own)
        yield machine
