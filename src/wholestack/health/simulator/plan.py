"""A plan of faults in a TOML file: which host breaks, how and when.

Example::

    [[fault]]
    host = "node0007"
    kind = "gpu_off_bus_xid"
    at = 1.5          # hours after the start, 0 if left out
    part = 3          # which of its parts, drawn if left out
    severity = 0.8    # 0 just noticeable to 1 blatant, drawn if left out
    idle = true       # no job runs there from then on, as on a host that is drained
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from random import Random

from wholestack.errors import InputError, RecordError
from wholestack.health.simulator.ageing import make_idle
from wholestack.health.simulator.faults.fault import Fault
from wholestack.health.simulator.faults.table import FAULTS, fault_named
from wholestack.health.simulator.fleet import Fleet, in_turn
from wholestack.health.simulator.truth import Truth
from wholestack.record import Record, from_builtins


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault(Record):
    """One line of a plan."""

    host: str
    kind: str
    """Name in the table of faults."""
    at: float = 0.0
    """Hours after the start."""
    part: int | None = None
    severity: float | None = None
    idle: bool = False
    """Whether no job runs there from then on."""

    def __post_init__(self) -> None:
        if fault_named(self.kind) is None:
            raise InputError(f"no kind of fault is called {self.kind!r}", remedy=_nearest_kind(self.kind))
        if self.severity is not None and not 0.0 <= self.severity <= 1.0:
            raise InputError(f"severity is from 0 to 1, got {self.severity}")
        if self.at < 0:
            raise InputError(f"at is in hours after the start, got {self.at}")


def _nearest_kind(name: str) -> str:
    """The kinds with a name like it, and where all of them are listed."""
    near = get_close_matches(name, [fault.name for fault in FAULTS], n=3, cutoff=0.5)
    listed = "all kinds: docs/health-faults.md"
    return f"did you mean {', '.join(near)}? {listed}" if near else listed


def read_plan(path: Path) -> tuple[PlannedFault, ...]:
    """Read a plan.

    Raises:
        InputError: the file cannot be read, is not TOML, or an entry is wrong; the message names it.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from error
    entries = raw.pop("fault", [])
    if raw or not isinstance(entries, list):
        raise InputError(f"{path}: expected [[fault]] entries and nothing else, got {', '.join(raw) or 'fault'}")
    return tuple(_entry(each, f"{path}: fault {number}") for number, each in enumerate(entries, start=1))


def _entry(raw: object, where: str) -> PlannedFault:
    try:
        return from_builtins(PlannedFault, raw, where=where)
    except RecordError as error:
        raise InputError(str(error), remedy="keys are host, kind, at, part, severity, idle") from error
    except InputError as error:
        raise InputError(f"{where}: {error.message}", remedy=error.remedy) from error


def draw_plan(
    fleet: Fleet,
    *,
    count: int,
    hours: float,
    seed: int,
    faults: Sequence[Fault] = FAULTS,
    severity: tuple[float, float] = (0.0, 1.0),
) -> tuple[PlannedFault, ...]:
    """Faults that come at random times, each on another healthy host, kinds of fault in turn.

    Args:
        fleet: The hosts, as they are now.
        count: How many faults; fewer if there are not so many hosts that can have them.
        hours: They come in the first so many hours.
        seed: Same seed, same plan.
        faults: Kinds to draw from.
        severity: Range of severities.
    """
    rng = Random(f"{seed}/plan")
    hosts = [machine for machine in fleet if not machine.broken]
    rng.shuffle(hosts)
    plan = [
        PlannedFault(host=machine.name, kind=fault.name, at=rng.uniform(0, hours), severity=rng.uniform(*severity))
        for machine, fault in in_turn(hosts[:count], faults, rng)
    ]
    return tuple(sorted(plan, key=lambda each: each.at))


class Schedule:
    """A plan that is carried out as the time of a fleet passes.

    Args:
        plan: The faults.
        start_s: The fleet's time when ``at`` is 0.
    """

    def __init__(self, plan: Sequence[PlannedFault], *, start_s: float) -> None:
        self._waiting = sorted(plan, key=lambda each: each.at)
        self._start_s = start_s

    def inject_due(self, fleet: Fleet) -> list[Truth]:
        """Inject what is due by now; call it after each step of time.

        Raises:
            InputError: no such host, or the fault cannot happen to it.
        """
        due = [each for each in self._waiting if self._start_s + each.at * 3600 <= fleet.now]
        self._waiting = self._waiting[len(due) :]
        return [_inject(fleet, each) for each in due]


def _inject(fleet: Fleet, planned: PlannedFault) -> Truth:
    fault = fault_named(planned.kind)
    if fault is None:  # checked when it was made
        raise InputError(f"no kind of fault is called {planned.kind!r}")
    truth = fleet.inject(planned.host, fault, severity=planned.severity, index=planned.part)
    if planned.idle:
        make_idle(fleet[planned.host])
    return truth
