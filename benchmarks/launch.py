"""What the warm supervisor costs and saves: starting, noticing an end, and watching two idle workers.

Run: ``python benchmarks/launch.py [--starts 20] [--idle 10]``. Prints one JSON object; the machine may be busy, so the
cold start of the same job in the same run is the reference.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wholestack.launch import Job
from wholestack.launch.local import LocalEngine
from wholestack.processes import descendants

MODULES = ("numpy", "torch")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalEngine(folder / "engine", preload=MODULES, token=f"benchmark-{os.getpid()}") as engine:
            run_one(engine, folder)
            warm = [run_one(engine, folder) for _ in range(given.starts)]
            notice = [notice_s(engine, folder) for _ in range(given.starts)]
            share = idle_share(engine, folder, given.idle)
    cold = [cold_s() for _ in range(5)]
    result = {
        "warm_start_to_end_ms": milliseconds(warm),
        "cold_start_to_end_ms": milliseconds(cold),
        "cold_over_warm": round(statistics.median(cold) / statistics.median(warm), 1),
        "end_noticed_after_ms": milliseconds(notice),
        "share_of_a_core_for_two_idle_workers": round(share, 4),
    }
    print(json.dumps(result, indent=1))


def milliseconds(seconds: list[float]) -> dict[str, float]:
    """Median and worst."""
    return {"median": round(1e3 * statistics.median(seconds), 1), "worst": round(1e3 * max(seconds), 1)}


def run_one(engine: LocalEngine, folder: Path) -> float:
    """Seconds from asking for a job that does nothing to knowing that it is done."""
    start = time.monotonic()
    engine.start(Job(name="nothing", entry="json:dumps", arguments={"obj": 1}, folder=folder / "nothing"))
    wait_for_end(engine)
    return time.monotonic() - start


def notice_s(engine: LocalEngine, folder: Path) -> float:
    """Seconds from just before a worker's end to knowing about it."""
    clock = "import sys, time; sys.stderr.write(repr(time.monotonic()))"
    engine.start(Job(name="clock", entry=("python3", "-S", "-c", clock), folder=folder / "clock"))
    wait_for_end(engine)
    return time.monotonic() - float((folder / "clock" / "stderr.log").read_text())


def wait_for_end(engine: LocalEngine) -> None:
    """Poll until a job has ended."""
    while not any(state.ended for state in engine.poll(10.0)):
        pass


def cold_s() -> float:
    """Seconds for a fresh interpreter with the same modules."""
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {', '.join(MODULES)}"], check=True)
    return time.monotonic() - start


def idle_share(engine: LocalEngine, folder: Path, seconds: float) -> float:
    """CPU of the supervisor and its keepers, as a share of one core, while two workers sleep."""
    for name in ("a", "b"):
        engine.start(Job(name=name, entry=("sleep", "1000"), folder=folder / name))
    while len(descendants(engine.supervisor_pid or 0)) < 4:
        engine.poll(0.1)
    engine.poll(1.0)
    pids = [engine.supervisor_pid or 0, *descendants(engine.supervisor_pid or 0)]
    before = sum(map(cpu_s, pids))
    start = time.monotonic()
    time.sleep(seconds)
    return (sum(map(cpu_s, pids)) - before) / (time.monotonic() - start)


def cpu_s(pid: int) -> float:
    """CPU seconds of one process, in nanoseconds' resolution (schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


if __name__ == "__main__":
    main()
