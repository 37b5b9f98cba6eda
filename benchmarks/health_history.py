"""The history of a fleet's health: how fast it answers after a year, how well it names batches and repeat offenders.

Nothing here knows the detector's constants. Rates are published ones: 419 unplanned interruptions in 54 days on 16,384
GPUs, by cause, of which 35 by switch or cable (Llama 3, arXiv 2407.21783, table 5); 3 of 63 nodes made half of all
exclusions (arXiv 2605.09370). A host has 8 GPUs.

Usage::

    python benchmarks/health_history.py year [--hosts 4096] [--days 365] [--minutes 10] [--seed S] [--folder F]
    python benchmarks/health_history.py ask --folder F
    python benchmarks/health_history.py batches --seeds FIRST:LAST [--hosts 2000]       # nothing is planted
    python benchmarks/health_history.py cables --seeds FIRST:LAST [--times 10 20 50]    # a lot of 40 bad cables
    python benchmarks/health_history.py firmware --seeds FIRST:LAST [--times 3 5 10]    # on 5 % of the hosts
    python benchmarks/health_history.py lemons --seeds FIRST:LAST [--hosts 512] [--turned]  # bad only from a day on
"""

import argparse
import heapq
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from wholestack.health.history.account import fleet_history, host_history
from wholestack.health.history.batches import Batches, batches
from wholestack.health.history.failures import Course, courses, offenders
from wholestack.health.history.looks import Fact, HostLook, Seat, Sight, SweepLook
from wholestack.health.history.spans import FindingSpan, Machine, Sweeps
from wholestack.health.history.store import History
from wholestack.record import digest

DAY_S = 86400.0
DAYS = 60
"""Watched for batches."""
START_S = 1_767_225_600.0
"""1 January 2026."""
INTERRUPTIONS = {
    "gpu.xid": 148, "gpu.row_remap": 72, "services.failed": 54, "host.system": 32, "gpu.ecc": 19, "gpu.processes": 17,
    "nic.state": 7, "gpu.clocks": 6, "drive.smart": 6, "bmc.power": 3, "memory.edac": 2, "cpu.online": 2,
}  # fmt: skip
"""Of hosts, by the check that would show it."""
CABLES = 35
"""Interruptions by switch or cable."""
OBSERVED_S = 54 * DAY_S
HOSTS = 16_384 / 8
CABLES_OF_A_HOST = 6
FAILURES_A_SECOND = sum(INTERRUPTIONS.values()) / OBSERVED_S / HOSTS
"""Of one host, cables not counted."""
CABLE_FAILURES_A_SECOND = CABLES / OBSERVED_S / (HOSTS * CABLES_OF_A_HOST)
LEMONS = 3 / 63
"""Share of hosts that make half of all exclusions."""
CHECKS = (*INTERRUPTIONS, "ib.state")
FACTS = {
    "gpu.driver": 3, "gpu.vbios": 2, "ib.firmware": 3, "host.bios_version": 4, "kernel.version": 3,
    "drive.firmware.x": 4, "host.os": 2, "containerd.version": 3,
}  # fmt: skip
"""Versions in use of each."""


class Place:
    """One host of the synthetic fleet: what it is, and what is broken on it now."""

    def __init__(self, number: int, rng: Random, *, dimms: int = 0) -> None:
        self.name = f"gpu{number:04d}"
        self.number = number
        self.facts = {name: f"{name}-{self._wave(rng, kinds)}" for name, kinds in FACTS.items()} | {
            "host.rack": f"r{number // 16}",
            "host.switch": f"leaf{number // 32}",
            "host.power": f"pdu{number // 8}",
            "host.lot": f"delivery{number // 250}",
        }
        gpus = [
            Seat(part=f"gpu {k}", serial=f"G{number}-{k}", model="H100", lot=f"w{rng.randrange(30)}") for k in range(8)
        ]
        cables = [
            Seat(part=f"cable mlx5_{k}/1", serial=f"C{number}-{k}", model="MCP4Y10", lot=f"c{rng.randrange(150)}")
            for k in range(CABLES_OF_A_HOST)
        ]
        rest = [Seat(part=f"dimm {k}", serial=f"D{number}-{k}", model="M321R8", lot="") for k in range(dimms)]
        self.seats = [Seat(part="host", serial=f"MX{number:05d}Z"), *gpus, *cables, *rest]
        self.broken: dict[str, Sight] = {}
        self.refresh()

    def _wave(self, rng: Random, kinds: int) -> int:
        """Versions come in waves over neighbouring racks, with some hosts out of line: factors are not independent."""
        return rng.randrange(kinds) if rng.random() < 0.1 else self.number // 100 % kinds

    def refresh(self) -> None:
        """Make the look again after a change."""
        facts = tuple(sorted(Fact(name=name, value=value) for name, value in self.facts.items()))
        sights = tuple(self.broken.values())
        self.look = HostLook(
            host=self.name, kind="h100", facts=facts, seats=tuple(self.seats), sights=sights, judged=frozenset(CHECKS)
        )
        self.state = self.look.state()

    def breaks(self, check: str, part: str) -> None:
        """Show a fault from now on."""
        id_ = digest(self.name, check, part)
        self.broken[check + part] = Sight(id=id_, check=check, part=part, cause=f"{check} is wrong", owner="vendor",
                                          status="fail", evidence=("as published",))  # fmt: skip
        self.refresh()

    def heals(self, check: str, part: str) -> None:
        """Show it no longer."""
        self.broken.pop(check + part, None)
        self.refresh()


class Swept:
    """Sweeps of a fleet: what did not change since the one before is not made again."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._hosts = [each.look for each in places]
        self._states = [each.state for each in places]

    def changed(self, number: int) -> None:
        """One host is another than in the sweep before."""
        self._hosts[number], self._states[number] = self._places[number].look, self._places[number].state

    def sweep(self, at: float) -> SweepLook:
        """All hosts, as they are."""
        return SweepLook(id=digest(at), at=at, folder="synthetic", checks=CHECKS, hosts=tuple(self._hosts),
                         states=tuple(self._states))  # fmt: skip


def happenings(
    places: Sequence[Place],
    rng: Random,
    duration_s: float,
    *,
    bad_hosts: Sequence[float] = (),
    bad_cables: Sequence[Sequence[float]] = (),
) -> list[tuple[float, int, str, str, bool]]:
    """What breaks and heals: seconds, place, check, part, whether it breaks; faults last about six hours.

    Args:
        places: The fleet.
        rng: Of all draws.
        duration_s: Of what happens.
        bad_hosts: How many times as often as usual each host shows the fault that firmware brings (``gpu.xid``).
        bad_cables: How many times as often as usual each cable of each host fails.
    """
    found: list[tuple[float, int, str, str, bool]] = []

    def fault(at: float, number: int, check: str, part: str) -> None:
        found.append((at, number, check, part, True))
        found.append((at + rng.lognormvariate(10.0, 1.0), number, check, part, False))

    for number in range(len(places)):
        for check, count in INTERRUPTIONS.items():
            times = bad_hosts[number] if bad_hosts and check == "gpu.xid" else 1.0
            for at in _moments(rng, count / OBSERVED_S / HOSTS * times, duration_s):
                fault(at, number, check, f"gpu {rng.randrange(8)}" if check.startswith("gpu.") else "host")
        for cable in range(CABLES_OF_A_HOST):
            times = bad_cables[number][cable] if bad_cables else 1.0
            for at in _moments(rng, CABLE_FAILURES_A_SECOND * times, duration_s):
                fault(at, number, "ib.state", f"hca_port mlx5_{cable}/1")
    return sorted(each for each in found if each[0] < duration_s)


def _moments(rng: Random, rate: float, duration_s: float) -> Iterator[float]:
    at = rng.expovariate(rate)
    while at < duration_s:
        yield at
        at += rng.expovariate(rate)


def reference_s() -> float:
    """The best of three of a loop that says how fast this machine is at the moment."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        sum(range(10**7))
        times.append(time.perf_counter() - started)
    return min(times)


def year(hosts: int, days: float, minutes: float, seed: int, folder: Path) -> None:
    """Write every sweep of a year through the history's own door, then ask."""
    rng, path = Random(seed), folder / "year.sqlite"
    places = [Place(number, rng, dimms=16) for number in range(hosts)]
    queue = happenings(places, rng, days * DAY_S)
    rollouts = [(days * DAY_S * share, name) for share, name in ((0.3, "gpu.driver"), (0.6, "ib.firmware"))]
    upgrades = [(at + number * 60.0, number, name) for at, name in rollouts for number in range(hosts)]
    heapq.heapify(upgrades)
    swept, place, changed, started = Swept(places), 0, 0, time.perf_counter()
    with History(path, write=True) as history:
        for at in range(0, int(days * DAY_S), int(minutes * 60)):
            while place < len(queue) and queue[place][0] <= at:
                _, number, check, part, is_broken = queue[place]
                (places[number].breaks if is_broken else places[number].heals)(check, part)
                swept.changed(number)
                place += 1
            while upgrades and upgrades[0][0] <= at:
                _, number, name = heapq.heappop(upgrades)
                places[number].facts[name] = f"{name}-new"
                places[number].refresh()
                swept.changed(number)
            changed += history.add(swept.sweep(START_S + at)).changed
        written_s = time.perf_counter() - started
        sweeps = history.sweeps().count
    print(f"{hosts} hosts, {sweeps} sweeps, {changed} changes of a host, {path.stat().st_size / 1e6:.0f} MB;"
          f" written in {written_s:.0f} s, {1e3 * written_s / sweeps:.1f} ms a sweep")  # fmt: skip
    ask(path, START_S + days * DAY_S)


def ask(path: Path, now: float) -> None:
    """Time both questions: in this process with a file just opened, and as commands."""
    print(f"reference loop sum(range(10**7)): {reference_s():.3f} s")
    for question, put in (
        ("fleet", lambda history: fleet_history(history, now=now)),
        ("history", lambda history: host_history(history, "gpu0007", now=now)),
    ):
        times = []
        for _ in range(5):
            started = time.perf_counter()
            with History(path) as history:
                put(history)
            times.append(time.perf_counter() - started)
        print(
            f"{question}: {sorted(times)[2]:.3f} s in the process (median of 5, {min(times):.3f} to {max(times):.3f})"
        )
    for command in (["fleet"], ["history", "gpu0007"]):
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "wholestack", "health", *command, "--history", str(path)],
                stdout=subprocess.DEVNULL,
                check=False,
            )
            times.append(time.perf_counter() - started)
        print(f"wholestack health {command[0]}: {sorted(times)[2]:.3f} s with the start of Python (median of 5)")
    print(f"reference loop sum(range(10**7)): {reference_s():.3f} s")


def look_for_batches(
    places: Sequence[Place],
    rng: Random,
    *,
    bad_hosts: Sequence[float] = (),
    bad_cables: Sequence[Sequence[float]] = (),
) -> Batches:
    """Sweep for some weeks, every change at its minute, and ask for batches."""
    with tempfile.TemporaryDirectory() as folder, History(Path(folder) / "h.sqlite", write=True) as history:
        swept = Swept(places)
        history.add(swept.sweep(START_S))
        queue = happenings(places, rng, DAYS * DAY_S, bad_hosts=bad_hosts, bad_cables=bad_cables)
        slots: dict[int, list[tuple[float, int, str, str, bool]]] = {}
        for each in queue:
            slots.setdefault(1 + int(each[0] / 3600), []).append(each)
        for hour, changes in sorted(slots.items()):
            for _, number, check, part, is_broken in changes:
                (places[number].breaks if is_broken else places[number].heals)(check, part)
                swept.changed(number)
            history.add(swept.sweep(START_S + hour * 3600.0))
        now = history.sweeps().last
        return batches(history.machines(), history.findings(), history.fact_groups(), history, now)


def run_batches(seeds: range, hosts: int) -> None:
    """Nothing is planted: how often is something named?"""
    falsely = tests = 0
    for seed in seeds:
        rng = Random(f"nothing {seed}")
        nothing = look_for_batches([Place(number, rng) for number in range(hosts)], rng)
        falsely += bool(nothing.found)
        tests += nothing.tests
        for batch in nothing.found:
            print(f"  seed {seed}: false: {batch.cause}, {batch.factor} {batch.value}, q {batch.q:.3g}")
    print(f"nothing planted: {falsely} of {len(seeds)} runs name something; {tests / len(seeds):.0f} tests a run")


def run_cables(seeds: range, hosts: int, times: float) -> None:
    """A lot of 40 cables, scattered over the fleet, that fail more often."""
    found = alone = 0
    for seed in seeds:
        rng = Random(f"cables {times} {seed}")
        places = [Place(number, rng) for number in range(hosts)]
        cables = [(number, cable) for number in range(hosts) for cable in range(CABLES_OF_A_HOST)]
        bad = set(rng.sample(cables, 40))
        for number, cable in bad:
            seats = places[number].seats
            at = next(i for i, seat in enumerate(seats) if seat.part == f"cable mlx5_{cable}/1")
            seats[at] = Seat(part=seats[at].part, serial=seats[at].serial, model=seats[at].model, lot="bad")
            places[number].refresh()
        usual = [[times if (n, cable) in bad else 1.0 for cable in range(CABLES_OF_A_HOST)] for n in range(hosts)]
        named = look_for_batches(places, rng, bad_cables=usual).found
        right = [each for each in named if each.factor == "cable lot" and each.value.endswith(" bad")]
        found += bool(right)
        alone += len(named) == len(right) == 1
    share = -math.expm1(-CABLE_FAILURES_A_SECOND * times * DAYS * DAY_S)
    print(f"40 bad cables of {hosts * CABLES_OF_A_HOST}, failing {times:g} times as often ({share:.0%} of them in"
          f" {DAYS} days): found in {found} of {len(seeds)} runs, and nothing else named in {alone}")  # fmt: skip


def run_firmware(seeds: range, hosts: int, times: float) -> None:
    """A firmware on 5 % of the hosts, scattered, with which one kind of fault is more frequent."""
    found = alone = 0
    for seed in seeds:
        rng = Random(f"firmware {times} {seed}")
        places = [Place(number, rng) for number in range(hosts)]
        bad = set(rng.sample(range(hosts), hosts // 20))
        for number in bad:
            places[number].facts["gpu.vbios"] = "bad"
            places[number].refresh()
        named = look_for_batches(places, rng, bad_hosts=[times if n in bad else 1.0 for n in range(hosts)]).found
        right = [each for each in named if (each.factor, each.value) == ("gpu.vbios", "bad")]
        found += bool(right)
        alone += len(named) == len(right) == 1
    print(f"bad firmware on 5 % of {hosts} hosts, gpu.xid {times:g} times as often: found in {found} of {len(seeds)}"
          f" runs, and nothing else named in {alone}")  # fmt: skip


def run_lemons(seeds: range, hosts: int, *, turned: bool = False) -> None:
    """A year a seed: at which failure is a lemon named, and how many sound hosts are?

    Args:
        seeds: One a year.
        hosts: In the fleet.
        turned: A lemon is sound until some day of the first half of the year; failures count from then on.
    """
    of_all = FAILURES_A_SECOND + CABLES_OF_A_HOST * CABLE_FAILURES_A_SECOND
    lemon_rate, sound_rate = of_all / 2 / LEMONS, of_all / 2 / (1 - LEMONS)
    in_time = with_three = years_in_time = sound_named = sound = followed = failures = 0
    for seed in seeds:
        rng = Random(f"lemons {seed}")
        lemons = {
            host: rng.uniform(0.0, 183 * DAY_S) if turned else 0.0
            for host in rng.sample(range(1, hosts + 1), round(hosts * LEMONS))
        }
        spans: list[FindingSpan] = []
        for host in range(1, hosts + 1):
            at, bad_from = 0.0, lemons.get(host, math.inf)
            while (at := _next_failure(rng, at, sound_rate, lemon_rate, bad_from)) < 365 * DAY_S:
                gone = at + rng.lognormvariate(10.0, 1.0)
                spans.append(_span(host, START_S + at, START_S + gone))
                at = gone
        times = [START_S + 3600.0 * hour for hour in range(365 * 24 + 1)]
        sweeps = Sweeps(times={1: times}, plans={host: (1,) for host in range(1, hosts + 1)})
        machines = [
            Machine(id=host, name=str(host), kind="h100", serial="", first=START_S) for host in range(1, hosts + 1)
        ]
        all_courses = courses(machines, sorted(spans, key=lambda each: each.first), sweeps)
        here = there = 0
        for course in all_courses:
            if (turned_s := lemons.get(course.machine.id)) is not None:
                bad = [each for each in course.failures if each.first >= START_S + turned_s]
                if len(bad) >= 3:
                    there += 1
                    here += _is_named(course, all_courses, bad[1].first)
            else:
                sound += 1
                moments = [each.first for each in course.failures]
                hits = [
                    any(each.host == course.machine.name for each in offenders(all_courses, at)) for at in moments[1:]
                ]
                failures += len(moments)
                followed += sum(hits)
                sound_named += any(hits)
        in_time, with_three = in_time + here, with_three + there
        years_in_time += here >= 0.95 * there
    kind = "that turned bad" if turned else "with three failures or more"
    print(f"{hosts} hosts, {len(seeds)} years; a sound host fails {sound_rate * 365 * DAY_S:.2f} times a year, a lemon"
          f" {lemon_rate * 365 * DAY_S:.1f} times")  # fmt: skip
    print(f"lemons {kind}, named before the third: {in_time} of {with_three}"
          f" ({in_time / with_three:.1%}); 95 % of them in {years_in_time} of {len(seeds)} years")  # fmt: skip
    print(f"sound hosts named in their year: {sound_named} of {sound} ({sound_named / sound:.1%});"
          f" {followed} times for {failures} failures ({followed / failures:.1%})")  # fmt: skip


def _next_failure(rng: Random, at: float, sound_rate: float, lemon_rate: float, bad_from: float) -> float:
    """After a time; seconds since the beginning of the year, as all of these."""
    if at < bad_from:
        sound = at + rng.expovariate(sound_rate)
        if sound < bad_from:
            return sound
    return max(at, bad_from) + rng.expovariate(lemon_rate)


def _is_named(course: Course, all_courses: Sequence[Course], at: float) -> bool:
    """By what was known at a time."""
    return any(each.host == course.machine.name for each in offenders(all_courses, at))


def _span(host: int, first: float, gone: float) -> FindingSpan:
    return FindingSpan(id="x", host=host, check="gpu.xid", part="", serial="", cause="broken", owner="vendor",
                       status="fail", evidence=(), first=first, gone=gone)  # fmt: skip


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("year", "ask", "batches", "cables", "firmware", "lemons"))
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--days", type=float, default=365)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=_seeds, default=range(1, 3))
    parser.add_argument("--times", type=float, nargs="+")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--turned", action="store_true")
    given = parser.parse_args()
    if given.what == "batches":
        run_batches(given.seeds, given.hosts or 2000)
    elif given.what == "cables":
        for times in given.times or (10, 20, 50):
            run_cables(given.seeds, given.hosts or 2000, times)
    elif given.what == "firmware":
        for times in given.times or (3, 5, 10):
            run_firmware(given.seeds, given.hosts or 2000, times)
    elif given.what == "lemons":
        run_lemons(given.seeds, given.hosts or 512, turned=given.turned)
    elif given.what == "ask":
        ask(given.folder / "year.sqlite", START_S + given.days * DAY_S)
    elif given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
        year(given.hosts or 4096, given.days, given.minutes, given.seed, given.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            year(given.hosts or 4096, given.days, given.minutes, given.seed, Path(folder))


if __name__ == "__main__":
    main()
