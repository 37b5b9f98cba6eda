"""Latency of suggest + observe on one thread, and of the import, each beside a fixed reference in the same run.

Usage: ``python benchmarks/search_latency.py [--dimensions 15] [--at 100,300,1000] [--repeats 40] [--out FILE]``

One JSON line a figure. Seconds are CPU seconds of the one thread: on an idle core the same as by the clock. Even they
stretch on a shared machine, so every figure stands beside ``reference_s``, the time of a fixed loop of matrix products
in the same run, and as their ratio. A study is filled with trials of a synthetic problem; then each repeat is one ask
and one tell. Milestones, at which hyperparameters are fitted anew, fall where they fall and are counted.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from wholestack.search import Linear, Log, Space, Study

BASELINE = "import numpy, scipy.linalg.lapack, scipy.optimize, scipy.special"
OURS = "from wholestack.search import Study"


def reference_s() -> float:
    matrix = np.random.default_rng(0).standard_normal((512, 512))
    begin = time.process_time()
    for _ in range(8):
        matrix @ matrix
    return time.process_time() - begin


def make_space(dimensions: int) -> Space:
    sizes = [Log("size", centre=1e5, low=1e3, high=1e9), Log("data", centre=1e6, low=1e4, high=1e10)]
    return Space([*sizes, *(Linear(f"x{k}", centre=0.0, low=-2.0, high=2.0) for k in range(dimensions - 2))])


def evaluate(params: dict[str, Any], rng: np.random.Generator) -> tuple[float, float]:
    bowls = sum(0.02 * (value - 0.3) ** 2 for key, value in params.items() if key.startswith("x"))
    loss = 1.7 + 20.0 / params["size"] ** 0.34 + 20.0 / params["data"] ** 0.28 + bowls
    return loss + 0.003 * rng.standard_normal(), params["size"] * params["data"] / 1e9


def observe(study: Study, rng: np.random.Generator) -> float:
    """One ask and one tell; seconds of both."""
    begin = time.process_time()
    asked = study.ask()
    took = time.process_time() - begin
    loss, cost = evaluate(asked.params, rng)
    begin = time.process_time()
    if rng.random() < 0.05:
        study.tell(asked, failed="diverged", cost=cost)
    else:
        study.tell(asked, output=loss, cost=cost)
    return took + time.process_time() - begin


def fill(study: Study, count: int, rng: np.random.Generator) -> None:
    """Trials round the centre, added as if they had been run elsewhere: the models are as dear as with asked ones."""
    centre = study.space.encode([study.space.centre()])
    while len(study.trials) < count:
        params = study.space.decode(study.space.move(centre, np.array([0.6]), np.ones(1), rng)[0])
        loss, cost = evaluate(params, rng)
        study.add(params, output=loss, cost=cost)


def latency(dimensions: int, at: int, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    study = Study(make_space(dimensions), seed=0)
    fill(study, at - repeats // 2, rng)
    observe(study, rng)
    references, times = [reference_s()], []
    for _ in range(repeats):
        times.append(observe(study, rng))
        references.append(reference_s())
    base = float(np.median(references))
    p50, p95 = (float(np.quantile(times, q)) for q in (0.5, 0.95))
    return {
        "figure": "suggest_and_observe",
        "dimensions": dimensions,
        "observations": at,
        "p50_s": round(p50, 4),
        "p95_s": round(p95, 4),
        "reference_s": round(base, 4),
        "p50_ratio": round(p50 / base, 2),
        "p95_ratio": round(p95 / base, 2),
        "repeats": repeats,
    }


def _import_cpu_s(code: str) -> float:
    timed = f"import time; b = time.process_time(); {code}; print(time.process_time() - b)"
    return float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True).stdout)


def import_time(repeats: int = 9) -> dict[str, Any]:
    """CPU seconds, median over interleaved pairs of fresh interpreters; and whether torch came with it."""
    pairs = [(_import_cpu_s(BASELINE), _import_cpu_s(OURS)) for _ in range(repeats)]
    check = [sys.executable, "-c", f"import sys; {OURS}; print('torch' in sys.modules)"]
    torch = subprocess.run(check, check=True, capture_output=True, text=True).stdout.strip()
    baseline, ours = (float(np.median([pair[k] for pair in pairs])) for k in (0, 1))
    added = float(np.median([pair[1] - pair[0] for pair in pairs]))
    return {
        "figure": "import",
        "baseline_s": round(baseline, 3),
        "ours_s": round(ours, 3),
        "added_s": round(added, 3),
        "torch_imported": torch == "True",
    }


def require_one_thread() -> None:
    """Start again with one thread: the libraries read these variables when they are loaded."""
    wanted = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


def main() -> None:
    require_one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimensions", type=int, default=15)
    parser.add_argument("--at", default="100,300,1000")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [import_time()]
    print(json.dumps(lines[0]), flush=True)
    for at in map(int, given.at.split(",")):
        lines.append(latency(given.dimensions, at, given.repeats))
        print(json.dumps(lines[-1]), flush=True)
    if given.out:
        given.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
