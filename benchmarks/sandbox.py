"""What a run in the sandbox costs beside a bare ``bwrap``, and how soon after its deadline a stubborn program is gone.

Run: ``python benchmarks/sandbox.py [--pairs 100]``. Prints one JSON object. Each pair is one run of either, in turns,
so that both meet the same machine; the figure is the ratio of the medians.
"""

import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from wholestack.sandbox import Ending, Limits, Sandbox

DEADLINE_S = 0.5
STUBBORN = {
    "loops": "while True: pass",
    "one long operation": "x = 10 ** 10 ** 9",
    "deaf to signals": "import signal, time\n"
    "for n in {*range(1, 65)} - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)\n"
    "while True: time.sleep(9)",
    "daemons that hold the pipes": "import os, time\n"
    "for _ in range(8):\n    if os.fork() == 0: os.setsid(); time.sleep(99)\n"
    "time.sleep(99)",
    "forks without end": "import os\nwhile True:\n    try:\n        if os.fork() == 0: pass\n    except OSError: pass",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    given = parser.parse_args()
    sandbox = Sandbox.open()
    bare = bare_command()
    ours, theirs = [], []
    for number in range(given.pairs + 5):
        pair = (seconds_of(lambda: sandbox.run("pass").ok), seconds_of(lambda: run_bare(bare)))
        if number >= 5:
            ours.append(pair[0])
            theirs.append(pair[1])
    result = {
        "sandbox_ms": milliseconds(ours),
        "bare_bwrap_ms": milliseconds(theirs),
        "ratio_of_medians": round(statistics.median(ours) / statistics.median(theirs), 2),
        "median_of_ratios": round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 2),
        "deadline_to_gone_ms": {name: milliseconds(late_s(sandbox, text)) for name, text in STUBBORN.items()},
    }
    print(json.dumps(result, indent=2))


def bare_command() -> list[str]:
    """The same interpreter, bound read-only, in every namespace that bubblewrap has."""
    interpreter, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    bound = sorted({"/usr", "/lib", "/lib64", str(interpreter.parent.parent), str(library.parent.parent)})
    view = [word for place in bound if Path(place).exists() for word in ("--ro-bind", place, place)]
    isolated = ["--unshare-all", "--die-with-parent", "--new-session", "--tmpfs", "/tmp", "--dev", "/dev"]
    return ["bwrap", *view, *isolated, str(interpreter), "-I", "-S", "-c", "pass"]


def run_bare(command: list[str]) -> bool:
    """As a caller would who wants its output."""
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=True).returncode == 0


def seconds_of(run: Callable[[], bool]) -> float:
    """Wall time of one run, which must succeed."""
    begin = time.perf_counter()
    if not run():
        raise SystemExit("a run failed")
    return time.perf_counter() - begin


def late_s(sandbox: Sandbox, program: str) -> list[float]:
    """Seconds from the deadline to the proof that nothing is left, of ten runs."""
    late = []
    for _ in range(10):
        outcome = sandbox.run(program, limits=Limits(wall_s=DEADLINE_S))
        if outcome.ending is not Ending.TIMED_OUT:
            raise SystemExit(f"{program!r} was not stubborn: {outcome.describe()}")
        late.append(outcome.seconds - DEADLINE_S)
    return late


def milliseconds(times_s: list[float]) -> dict[str, float]:
    """Median, 95th percentile and worst."""
    ordered = sorted(times_s)
    shown = {"median": statistics.median(ordered), "p95": ordered[int(0.95 * (len(ordered) - 1))], "worst": ordered[-1]}
    return {name: round(1000 * value, 1) for name, value in shown.items()}


if __name__ == "__main__":
    main()
