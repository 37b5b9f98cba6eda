"""How long a scrape of a large fleet takes: the real command, asked over loopback.

One host in ten has three Findings, one check is silenced. Measured is a scrape just after a sweep was added (everything
is read again) and one when nothing changed, beside a fixed reference loop.

Usage::

    python benchmarks/health_export.py [--hosts 4096] [--sweeps 1008] [--times 5] [--simulated]

``--simulated`` exports the folder of a simulated sweep as well, beside the history.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from random import Random
from statistics import median

from wholestack.finding import Status
from wholestack.health.history.looks import HostLook, Sight, sweep_look
from wholestack.health.history.silences import silence
from wholestack.health.history.store import History
from wholestack.health.simulation import simulate
from wholestack.record import digest

CHECKS = ("gpu.ecc", "gpu.xid", "nic.state", "drive.smart")
STATUSES: tuple[Status, ...] = ("fail", "warn", "unknown")
EVERY_S = 600.0
CHANGING = 0.002
"""Share of the hosts whose Findings change from one sweep to the next."""


def main() -> None:
    """Make a history, serve it, ask."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=4096)
    parser.add_argument("--sweeps", type=int, default=1008)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--simulated", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), Random(7)
        path = folder / "health.sqlite"
        now = time.time()
        broken = [place % 10 == 0 for place in range(asked.hosts)]
        with History(path, write=True) as history:
            for number in range(asked.sweeps):
                _add(history, broken, now - EVERY_S * (asked.sweeps - number) - 60, rng)
            history.silence(silence(check="drive.*", reason="known", by="ann", since=now - 1, until=now + 86400))
        sources = ["--history", str(path)]
        if asked.simulated:
            asyncio.run(simulate(asked.hosts, seed=7, folder=folder / "sweeps"))
            sources.insert(0, str(folder / "sweeps"))
        print(f"{asked.hosts} hosts, {asked.sweeps} sweeps, history of {path.stat().st_size / 1e6:.1f} MB")
        command = [sys.executable, "-m", "wholestack", "health", "export", "serve", *sources, "--port", "0"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            _ask(server.stderr.readline().strip(), path, broken, asked.times, rng)
        finally:
            server.terminate()
            server.wait(60)


def _ask(url: str, path: Path, broken: list[bool], times: int, rng: Random) -> None:
    anew: list[float] = []
    again: list[float] = []
    loop: list[float] = []
    for _ in range(times):
        with History(path, write=True) as history:
            _add(history, broken, time.time(), rng)
        loop.append(_loop_s())
        seconds, body = _scrape(url)
        anew.append(seconds)
        again.append(_scrape(url)[0])
    hosts = body.count(b"\nwholestack_health_host_state{")
    assert hosts == len(broken), hosts
    print(f"{len(body) / 1e6:.2f} MB, {body.count(chr(10).encode())} lines")
    for what, taken in (("after a new sweep", anew), ("nothing changed", again), ("reference loop", loop)):
        print(f"{what}: median {median(taken):.3f} s, at most {max(taken):.3f} s")


def _scrape(url: str) -> tuple[float, bytes]:
    started = time.perf_counter()
    with urllib.request.urlopen(url, timeout=120) as answer:
        body = answer.read()
    return time.perf_counter() - started, body


def _add(history: History, broken: list[bool], at: float, rng: Random) -> None:
    for _ in range(max(1, int(CHANGING * len(broken)))):
        place = rng.randrange(len(broken))
        broken[place] = not broken[place]
    looks = [_look(place, is_broken) for place, is_broken in enumerate(broken)]
    history.add(sweep_look(looks, id=digest(at), at=at, folder=f"s{at}", checks=CHECKS))


def _look(place: int, is_broken: bool) -> HostLook:
    name = f"gpu{place:04d}"
    sights = [_sight(name, check, place) for check in CHECKS[:3] if is_broken]
    return HostLook(host=name, kind="h100", sights=tuple(sights), judged=frozenset(CHECKS))


def _sight(host: str, check: str, place: int) -> Sight:
    part = f"gpu 0000:{place % 8:02x}:00"
    status: Status = STATUSES[place % 3]
    return Sight(id=digest(host, check), check=check, part=part, cause="broken", owner="vendor", status=status)


def _loop_s() -> float:
    started = time.perf_counter()
    sum(range(10**7))
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
