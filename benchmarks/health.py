"""What a sweep finds, what it alarms about falsely, how fast it is, and what hostile outputs do to its readers.

    python benchmarks/health.py speed --hosts 4096 --seed 901
    python benchmarks/health.py faults --hosts 1000 --seeds 901,902,903
    python benchmarks/health.py healthy --hosts 1000 --seeds 911,912,913
    python benchmarks/health.py month --hosts 63 --days 30 --seed 921
    python benchmarks/health.py month --hosts 63 --from-day 15 --days 15 --seed 921
    python benchmarks/health.py mutations --count 1000000 --seed 931

One JSON line a seed, then for ``faults`` one with the sums and what was missed, by kind of fault. The hosts are the
simulator's, which imports nothing from what detects; use seeds and severities that nothing was developed with.

* ``speed``: all passive checks on every host. Outputs are rendered before the clock starts, and the
  simulated hosts let go.
* ``faults``: half of the hosts broken, one fault each, every kind about equally often;
  swept before, and ten minutes after.
* ``healthy``: nothing is broken; hosts called unfit, and host-checks that came out ``unknown``.
* ``month``: healthy hosts swept every ten minutes, each sweep with the counters of the last; the same fleet from a
  later day on is the same month in parts, but for the first sweep of a part, which knows of no earlier one;
  false alarms a day per 500 GPUs.
* ``mutations``: outputs of healthy and broken hosts with bytes changed, cut, doubled and swapped;
  readers may only say that they do not understand.
"""

import argparse
import asyncio
import collections
import json
import multiprocessing
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.check import Expectation
from wholestack.health.earlier import EarlierSweep
from wholestack.health.examine import examine
from wholestack.health.sending import commands_for
from wholestack.health.simulation import plain_findings
from wholestack.health.simulator.faults.table import FAULTS
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.remote import FleetRemote, render_all
from wholestack.health.simulator.truth import Found, compare
from wholestack.health.verdicts import Sweep
from wholestack.remote.batch import Output, Remote
from wholestack.remote.host import Host

STEP_S = 600.0
COMMANDS = commands_for(catalog.probes_of(catalog.chosen()), Expectation())


def swept(
    hosts: Sequence[Host], remote: Remote, folder: Path, *, now: float, since: Path | None = None, processes: int = 0
) -> Sweep:
    plan = sweeps.plan_for(hosts, catalog.chosen(), {}, concurrency=64, since=str(since or ""))
    before = EarlierSweep(since).before if since else lambda _: None
    with sweeps.create(folder, plan, at=now) as run:
        return asyncio.run(sweeps.sweep(run, remote, before=before, clock=lambda: now, processes=processes))


def cpu_s() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def reference_s(processes: int) -> float:
    """CPU seconds of a fixed loop, the mean over so many processes at once, before and after what it is set beside."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return statistics.mean(pool.map(loop_s, range(8 * processes), chunksize=1))


def loop_s(_: int) -> float:
    began = time.process_time()
    sum(range(10**7))
    return time.process_time() - began


def speed(hosts: int, seed: int, folder: Path, processes: int) -> dict[str, object]:
    fleet = Fleet(hosts, seed=seed)
    fleet.inject_mixture()
    fleet.advance(STEP_S)
    names, now = fleet.hosts(), fleet.now
    remote = render_all(fleet, COMMANDS)
    del fleet
    reference = reference_s(max(1, processes))
    began, used = time.monotonic(), cpu_s()
    found = swept(names, remote, folder / "speed", now=now, processes=processes)
    seconds, cpu = time.monotonic() - began, cpu_s() - used
    reference = (reference + reference_s(max(1, processes))) / 2
    return {
        "hosts": hosts,
        "seed": seed,
        "processes": processes,
        "checks": len(catalog.chosen()),
        "seconds": round(seconds, 1),
        "cpu_s": round(cpu, 1),
        "cpu_ms_a_host": round(1000 * cpu / hosts, 1),
        "sum_range_1e7_s": round(reference, 3),
        "seconds_in_loops": round(seconds / reference),
        "cpu_in_loops": round(cpu / reference),
        "rendered_mb": round(remote.size_bytes / 1e6),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_child_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "unfit": sum(each.status == "fail" for each in found.verdicts),
    }


def faults(hosts: int, seed: int, folder: Path, severity: tuple[float, float]) -> dict[str, object]:
    fleet = Fleet(hosts, seed=seed)
    remote = FleetRemote(fleet)
    swept(fleet.hosts(), remote, folder / "before", now=fleet.now)
    fleet.inject_mixture(share=0.5, severity=severity)
    fleet.advance(STEP_S)
    found = swept(fleet.hosts(), remote, folder / "after", now=fleet.now, since=folder / "before")
    result = compare(fleet.truths, plain(found))
    spoilt = {truth.host for truth in fleet.truths if truth.tool}
    checks = sum(len(found.plan.checks) - len(each.skipped) for each in found.verdicts if each.host not in spoilt)
    unknown = sum(len(each.unjudged) for each in found.verdicts if each.host not in spoilt)
    by_kind: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    for match in result.matches:
        sums = by_kind[match.truth.fault]
        for index, counted in enumerate((True, match.finding is not None, match.right_part, match.right_owner)):
            sums[index] += counted
    return {
        "hosts": hosts,
        "seed": seed,
        "severity": severity,
        "injected": result.injected,
        "found": result.found,
        "right_part": result.right_part,
        "right_owner": result.right_owner,
        "false_alarms": result.false_alarms,
        "healthy_hosts": hosts - len({truth.host for truth in fleet.truths}),
        "false_warnings": result.false_warnings,
        "extra": result.extra,
        "host_checks": checks,
        "unknown": unknown,
        "by_kind": by_kind,
    }


def summed(rows: list[dict[str, object]]) -> dict[str, object]:
    sums: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        kinds = row["by_kind"]
        assert isinstance(kinds, dict)
        for kind, counts in kinds.items():
            sums[kind] = [a + b for a, b in zip(sums[kind], counts, strict=True)]
    injected, found, part, owner = (sum(counts[index] for counts in sums.values()) for index in range(4))
    return {
        "kinds_of_fault": len(sums),
        "of": len(FAULTS),
        "injected": injected,
        "found": found / injected,
        "right_part": part / injected,
        "right_owner": owner / injected,
        "missed": {kind: f"{c[0] - c[1]} of {c[0]}" for kind, c in sorted(sums.items()) if c[1] < c[0]},
        "wrong_part": {kind: f"{c[1] - c[2]} of {c[0]}" for kind, c in sorted(sums.items()) if c[2] < c[1]},
        "wrong_owner": {kind: f"{c[1] - c[3]} of {c[0]}" for kind, c in sorted(sums.items()) if c[3] < c[1]},
    }


def plain(found: Sweep) -> dict[str, list[Found]]:
    return {verdict.host: plain_findings(verdict.findings) for verdict in found.verdicts}


def healthy(hosts: int, seed: int, folder: Path) -> dict[str, object]:
    fleet = Fleet(hosts, seed=seed)
    found = swept(fleet.hosts(), FleetRemote(fleet), folder / "healthy", now=fleet.now)
    checks = sum(len(found.plan.checks) - len(each.skipped) for each in found.verdicts)
    alarms = [
        (each.host, one.check, one.cause) for each in found.verdicts for one in each.findings if one.status == "fail"
    ]
    warned = collections.Counter(one.check for each in found.verdicts for one in each.findings if one.status == "warn")
    return {
        "hosts": hosts,
        "seed": seed,
        "unfit": sum(each.status == "fail" for each in found.verdicts),
        "alarms": alarms,
        "host_checks": checks,
        "unknown": sum(len(each.unjudged) for each in found.verdicts),
        "hosts_warned_of": sum(each.status == "warn" for each in found.verdicts),
        "warnings": warned.most_common(8),
    }


def month(hosts: int, from_day: float, days: float, seed: int, folder: Path) -> dict[str, object]:
    fleet = Fleet(hosts, seed=seed)
    first = round(from_day * 86_400 / STEP_S)
    for _ in range(first):
        fleet.advance(STEP_S)
    remote, last = FleetRemote(fleet), None
    begun: set[tuple[str, str]] = set()
    alarms, gpus, sweeps_made = [], sum(len(machine.gpus) for machine in fleet), 0
    for number in range(first, first + round(days * 86_400 / STEP_S)):
        now_in = folder / str(number % 2)
        clear(now_in)
        found = swept(fleet.hosts(), remote, now_in, now=fleet.now, since=last)
        failing = {(v.host, each.id) for v in found.verdicts for each in v.findings if each.status == "fail"}
        alarms += [
            (number, v.host, each.check, each.cause)
            for v in found.verdicts
            for each in v.findings
            if each.status == "fail" and (v.host, each.id) not in begun
        ]
        begun, last, sweeps_made = failing, now_in, sweeps_made + 1
        fleet.advance(STEP_S)
        if number % round(86_400 / STEP_S) == 0:
            print(f"day {number * STEP_S / 86_400:.0f}: {len(alarms)} alarms so far", file=sys.stderr, flush=True)
    return {
        "hosts": hosts,
        "gpus": gpus,
        "seed": seed,
        "from_day": from_day,
        "days": days,
        "sweeps": sweeps_made,
        "alarms": len(alarms),
        "alarms_a_day_per_500_gpus": len(alarms) / days / gpus * 500,
        "first": alarms[:10],
    }


def clear(folder: Path) -> None:
    if folder.exists():
        for file in folder.iterdir():
            file.unlink()


def mutations(count: int, seed: int) -> dict[str, object]:
    rng = random.Random(seed)
    fleet = Fleet(60, seed=seed)
    fleet.inject_mixture(share=0.7)
    fleet.advance(STEP_S)
    remote = FleetRemote(fleet)
    by_probe = {
        probe.name: [c for c in catalog.chosen() if probe in c.probes] for probe in catalog.probes_of(catalog.chosen())
    }
    replies = [asyncio.run(remote.run(host, COMMANDS, deadline_s=60.0)).outputs for host in fleet.hosts()]
    crashes: collections.Counter[str] = collections.Counter()
    statuses: collections.Counter[str] = collections.Counter()
    slowest = (0.0, "")
    for _ in range(count):
        outputs = rng.choice(replies)
        name = rng.choice([each for each, checks in by_probe.items() if checks and outputs.get(each)])
        bad = Output(name=name, stdout=mutated(outputs[name].stdout, rng))
        began = time.process_time()
        try:
            found = examine({**outputs, name: bad}, by_probe[name], now=fleet.now)
            statuses["unknown" if any(s.status == "unknown" for s in found.symptoms) else "understood"] += 1
        except Exception as error:  # noqa: BLE001  a crash of any kind is what is counted here
            crashes[f"{name}: {type(error).__name__}: {error}"[:200]] += 1
        slowest = max(slowest, (time.process_time() - began, name))
    return {"count": count, "seed": seed, "crashes": crashes, "came_out": statuses, "slowest_s": slowest}


def mutated(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 3, 40, len(data)))]
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 30))))
        elif kind == 3:
            data[at:at] = data[at : at + 200]
        elif kind == 4:
            data[at:at] = rng.choice(
                (b"N/A", b"-1", b"99999999999999999999", b"\x00", b"\n", b"{", b"<", b"1e999", b"nan")
            )
        else:
            lines = bytes(data).split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "faults", "healthy", "month", "mutations"])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=901)
    parser.add_argument("--seeds", default="")
    parser.add_argument("--severity", default="0:1", help="range, for instance 0.1:0.4")
    parser.add_argument("--from-day", type=float, default=0.0, help="start of the month's part")
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2, help="that judge replies, for speed")
    for line in lines(parser.parse_args()):
        print(json.dumps(line), flush=True)


def lines(given: argparse.Namespace) -> Iterator[dict[str, object]]:
    seeds = [int(seed) for seed in given.seeds.split(",")] if given.seeds else [given.seed]
    low, high = map(float, given.severity.split(":"))
    rows = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if given.what == "speed":
                yield speed(given.hosts, seed, folder, given.processes)
            elif given.what == "faults":
                rows.append(faults(given.hosts, seed, folder, (low, high)))
                yield {key: value for key, value in rows[-1].items() if key != "by_kind"}
            elif given.what == "healthy":
                yield healthy(given.hosts, seed, folder)
            elif given.what == "month":
                yield month(given.hosts, given.from_day, given.days, seed, folder)
            else:
                yield mutations(given.count, seed)
    if rows:
        yield summed(rows)


if __name__ == "__main__":
    main()
