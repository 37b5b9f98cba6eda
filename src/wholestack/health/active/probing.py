"""A probe from beginning to end: who is free, golden products, pace, rounds until the time is over, verdicts."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wholestack.errors import InputError
from wholestack.health.active.concluding import Conclusion, State, claim_on, conclude
from wholestack.health.active.device import Device
from wholestack.health.active.pacing import measure
from wholestack.health.active.records import DEVICES, KIND, ROUNDS, DeviceOutcome, Plan
from wholestack.health.active.rounds import golden_failures, run_round
from wholestack.health.active.speed import Pace, Reference
from wholestack.runs import RunDirectory, RunReader

MEMORY_SHARE = {"gpu": 0.8, "cpu": 0.4}
"""Of what is free, by kind of part; the results are judged on the CPU, which needs room of its own."""
SIDE = {"gpu": 8192, "cpu": 512}
PACE_SHARE = 0.25
"""Of the time, at most, for timing."""
ROUND_S = 5.0
"""A round of one device adds no pass after so long."""
GIVING_UP = (RuntimeError, MemoryError)
"""What numpy and torch raise when a device fails or has no room: torch's own errors are RuntimeErrors."""
Tell = Callable[[str], None]


def probe(
    devices: Sequence[Device],
    plan: Plan,
    *,
    run: RunDirectory,
    host: str,
    reference: Reference | None = None,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
    tell: Tell = lambda _: None,
    out_of_reach: str = "",
) -> Conclusion:
    """Probe the devices of one host and put all of it on the disk, the claim on them first.

    Args:
        devices: Of this host.
        plan: What to do.
        run: Where to write.
        host: Its name.
        reference: How fast sound devices are.
        clock: Seconds, for the limit on time.
        now: Seconds since the epoch.
        tell: Is told what goes on.
        out_of_reach: Why devices that are there are not among these; empty if all are.
    """
    started = clock()

    def late() -> bool:
        return clock() - started >= plan.seconds

    named = [(device.part, device.kind, device.serial) for device in devices]
    claim = run.seal(claim_on(host, named, sealed_at=now()))
    states = [_begin(device, plan) for device in devices]
    for state in _working(states):
        tell(f"{state.device.part}: products with known results")
        with _giving_up(state):
            state.golden = golden_failures(state.device, late=late)
    tell("pace")
    _measure(states, plan, reference, lambda: clock() - started >= plan.seconds * PACE_SHARE)
    for number in itertools.count(1):
        working = _working(states)
        if late() or not working or number - 1 == plan.rounds:
            break
        for place, state in enumerate(working):
            left_s = plan.seconds - (clock() - started)
            full = _after(clock, clock() + min(ROUND_S, left_s / (2 * (len(working) - place))))
            tell(f"round {number}, {state.device.part.identity}")
            with _giving_up(state):
                state.rounds.append(
                    run_round(
                        state.device,
                        number=number,
                        side=state.side,
                        room=state.room,
                        seed=plan.seed,
                        late=late,
                        full=full,
                    )
                )
                run.append(ROUNDS, state.rounds[-1])
    return conclude(states, run, claim, out_of_reach=out_of_reach, at=now())


def read_measured(folders: Sequence[Path]) -> Iterator[tuple[str, str, Pace]]:
    """Kind, serial and pace of every sound device of earlier probes.

    Raises:
        InputError: a folder is of another kind of run.
        RunDirectoryError: it is no run directory.
    """
    for folder in folders:
        run = RunReader(folder)
        if run.manifest.kind != KIND:
            raise InputError(f"{folder}: a {run.manifest.kind}, not a probe", remedy="name the --out of a probe")
        for each in run.journal(DEVICES, DeviceOutcome):
            if each.sound:
                yield from ((each.kind, each.serial, pace) for pace in each.paces)


def _begin(device: Device, plan: Plan) -> State:
    busy = device.in_use()
    kind = device.part.kind
    works = plan.even_if_busy if busy else busy == "" or names_of(device) & set(plan.idle) != set()
    room = min(plan.room_bytes or device.free_bytes(), int(device.free_bytes() * MEMORY_SHARE.get(kind, 0.4)))
    return State(
        device=device,
        side=plan.side or SIDE.get(kind, SIDE["cpu"]),
        room=room,
        busy=busy,
        works=works,
    )


def names_of(device: Device) -> set[str]:
    """By which a person may name it."""
    return {device.part.key, device.part.identity, device.serial} - {""}


def _working(states: Sequence[State]) -> list[State]:
    return [state for state in states if state.works]


def _after(clock: Callable[[], float], end: float) -> Callable[[], bool]:
    return lambda: clock() >= end


@contextmanager
def _giving_up(state: State) -> Iterator[None]:
    """A device whose library fails is not asked again; that is its own verdict and costs no other's."""
    try:
        yield
    except GIVING_UP as error:
        state.works = False
        state.gave_up = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _measure(states: Sequence[State], plan: Plan, reference: Reference | None, late: Callable[[], bool]) -> None:
    idle = [state for state in _working(states) if state.busy == ""]
    for kind in dict.fromkeys(state.device.kind for state in idle):
        alike = [state for state in idle if state.device.kind == kind]
        side = {state.device.part.identity: state.side for state in alike}
        devices = [state.device for state in alike]
        with _giving_up(alike[0]):
            paced = measure(devices, side=side, reference=reference, false_rate=plan.false_rate, late=late)
            for state in alike:
                state.paces = paced[state.device.part.identity]
                if any(each.verdict == "slow" for each in state.paces):
                    state.became_busy = state.device.in_use()
