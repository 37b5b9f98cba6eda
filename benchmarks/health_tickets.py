"""Tickets of every kind of fault that the simulator has: are they complete, right, the same again, and quick?

A fleet is swept, each kind of fault is injected into a host of its own, ten minutes pass, it is swept again; a history
takes both sweeps up. The ticket is of the Finding that fits the fault by the simulator's own comparison. The file of
hosts names racks, as the data centre wants them. ``right`` is judged by the simulator, not by the ticket: the serial
number of the machine, and where the fault has names one of them, stand on the page.

Usage::

    python benchmarks/health_tickets.py kinds --seeds FIRST:LAST [--hosts 320] [--severity 0.7]
    python benchmarks/health_tickets.py large [--hosts 4096] [--seed 1]        # seconds of one ticket
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.earlier import EarlierSweep
from wholestack.health.history.store import History
from wholestack.health.history.taking import look_at
from wholestack.health.simulation import plain_findings
from wholestack.health.simulator.faults.table import FAULTS
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.remote import FleetRemote
from wholestack.health.simulator.truth import Match, compare
from wholestack.health.tickets.gathering import ticket_for
from wholestack.health.tickets.packing import archive
from wholestack.health.tickets.page import page
from wholestack.health.verdicts import Sweep

HOSTS_A_RACK = 8


@dataclass(frozen=True, kw_only=True)
class Swept:
    """A fleet with one fault of each kind."""

    fleet: Fleet
    folder: Path
    sweep: Sweep


def swept(folder: Path, *, hosts: int, seed: int, severity: float, kinds: int | None = None) -> Swept:
    """Sweep, break, wait, sweep again, take both up."""
    fleet = Fleet(hosts, seed=seed)
    remote = FleetRemote(fleet)
    _sweep(fleet, remote, folder / "before")
    whole = list(fleet)
    Random(f"{seed}/tickets").shuffle(whole)
    for fault in FAULTS[:kinds]:
        machine = next((each for each in whole if fault.applies(each)), None)
        if machine is not None:
            whole.remove(machine)
            fleet.inject(machine.name, fault, severity=severity)
    fleet.advance(600)
    found = _sweep(fleet, remote, folder / "after", since=folder / "before")
    with History(folder / "history.sqlite", write=True) as history:
        history.add(look_at(folder / "before"))
        history.add(look_at(folder / "after"))
    return Swept(fleet=fleet, folder=folder, sweep=found)


def _sweep(fleet: Fleet, remote: FleetRemote, folder: Path, since: Path | None = None) -> Sweep:
    hosts = [replace(host, rack=f"r{place // HOSTS_A_RACK}") for place, host in enumerate(fleet.hosts())]
    plan = sweeps.plan_for(hosts, catalog.chosen(), {}, concurrency=64, since=str(since or ""))
    before = EarlierSweep(since).before if since else lambda _: None
    with sweeps.create(folder, plan, at=fleet.now) as run:
        return asyncio.run(sweeps.sweep(run, remote, before=before, clock=lambda: fleet.now))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one ticket is worth."""

    fault: str
    missing: tuple[str, ...]
    wrong: str
    seconds: float
    size: int
    masked: int


def judged(one: Swept) -> Iterator[Judged]:
    """Every fault in turn; one that no Finding fits has no ticket."""
    findings = {verdict.host: verdict.findings for verdict in one.sweep.verdicts}
    compared = compare(one.fleet.truths, {host: plain_findings(each) for host, each in findings.items()})
    with History(one.folder / "history.sqlite") as history:
        for match in compared.matches:
            if match.finding is None:
                yield Judged(
                    fault=match.truth.fault, missing=("finding",), wrong="not found", seconds=0, size=0, masked=0
                )
                continue
            found = match.finding
            id_ = next(each.id for each in findings[match.truth.host]
                       if (each.check, each.part, each.cause) == (found.check, found.part, found.cause))  # fmt: skip
            began = time.perf_counter()
            ticket = ticket_for(one.folder / "after", id_, history)
            packed = archive(ticket)
            seconds = time.perf_counter() - began
            again = archive(ticket_for(one.folder / "after", id_, history))
            wrong = _wrong(one, match, page(ticket)) or ("" if packed == again else "other bytes")
            yield Judged(
                fault=match.truth.fault,
                missing=tuple(each.item for each in ticket.missing),
                wrong=wrong,
                seconds=seconds,
                size=len(packed),
                masked=ticket.masked,
            )


def _wrong(one: Swept, match: Match, text: str) -> str:
    machine = one.fleet[match.truth.host]
    if machine.serial not in text:
        return "no serial number of the machine"
    names = match.truth.names
    if names and not any(re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text, re.IGNORECASE) for name in names):
        return f"none of {', '.join(names)}"
    return ""


def reference_s() -> float:
    """Of a fixed loop, the least of three."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        sum(range(10**7))
        times.append(time.perf_counter() - began)
    return min(times)


def kinds(hosts: int, seed: int, severity: float) -> dict[str, object]:
    """Of every kind of fault, one ticket."""
    with tempfile.TemporaryDirectory() as folder:
        one = swept(Path(folder), hosts=hosts, seed=seed, severity=severity)
        tickets = list(judged(one))
        reference = reference_s()
    seconds = sorted(each.seconds for each in tickets)
    return {
        "seed": seed,
        "hosts": hosts,
        "severity": severity,
        "kinds": len(tickets),
        "kinds_of_the_simulator": len(FAULTS),
        "complete": sum(not each.missing for each in tickets),
        "right": sum(not each.wrong for each in tickets),
        "complete_and_right": sum(not each.missing and not each.wrong for each in tickets),
        "incomplete": {each.fault: each.missing for each in tickets if each.missing},
        "wrong": {each.fault: each.wrong for each in tickets if each.wrong},
        "masked": {each.fault: each.masked for each in tickets if each.masked},
        "largest_bytes": max(each.size for each in tickets),
        "slowest_s": round(seconds[-1], 3),
        "sum_range_1e7_s": round(reference, 3),
    }


def large(hosts: int, seed: int) -> dict[str, object]:
    """Seconds of one ticket of a large fleet."""
    with tempfile.TemporaryDirectory() as folder:
        one = swept(Path(folder), hosts=hosts, seed=seed, severity=0.7, kinds=3)
        tickets = list(judged(one))
        reference = reference_s()
    seconds = max(each.seconds for each in tickets)
    return {
        "hosts": hosts,
        "seconds": round(seconds, 2),
        "sum_range_1e7_s": round(reference, 3),
        "in_loops": round(seconds / reference, 1),
    }


def main() -> None:
    """Parse the command line and print one line of JSON a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_kinds = commands.add_parser("kinds")
    of_kinds.add_argument("--seeds", required=True, help="FIRST:LAST")
    of_kinds.add_argument("--hosts", type=int, default=320)
    of_kinds.add_argument("--severity", type=float, default=0.7)
    of_large = commands.add_parser("large")
    of_large.add_argument("--hosts", type=int, default=4096)
    of_large.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.command == "large":
        print(json.dumps(large(given.hosts, given.seed)))
        return
    first, last = map(int, given.seeds.split(":"))
    for seed in range(first, last + 1):
        print(json.dumps(kinds(given.hosts, seed, given.severity)), flush=True)


if __name__ == "__main__":
    main()
