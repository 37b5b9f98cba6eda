"""Quality of search at equal cost: ours against Optuna's samplers and two model-free searches.

Usage: ``python benchmarks/search_quality.py [--methods ours,walk,...] [--problems ridge,...] [--seeds 0,1,2]
[--total 1000] [--max-trials 4000] [--wall-s 300] [--out FILE]``. One JSON line a run.

Every problem gives a loss, a cost and perhaps a failure for params, and knows its noiseless best loss at every cost.
A run spends ``--total`` times the cost of the start; a proposal above the cap is refused unrun and costs nothing but
counts as a trial. Scored are the noiseless losses of what was run: the gap in per cent to the best possible one, at
costs of 1 %, 3 % and 30 % of the total, once after a third of the total is spent and once at its end.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wholestack.search import Budget, Categorical, Linear, Log, Logit, Space, Study

Params = dict[str, Any]
TARGETS = (0.01, 0.03, 0.3)
CHECKS = (1 / 3, 1.0)


@dataclass(frozen=True)
class Outcome:
    loss: float
    cost: float
    failed: str = ""


@dataclass(frozen=True)
class Problem:
    """`evaluate` is without noise; `front` gives the least noiseless loss under a cost."""

    name: str
    space: Space
    evaluate: Callable[[Params], Outcome]
    front: Callable[[float], float]
    noise: float


def _scaling(n: float, d: float, *, floor: float, alpha: float, beta: float) -> float:
    return float(floor + 60.0 / n**alpha + 90.0 / d**beta)


def _front_over(evaluate: Callable[[float, float], float], cost: Callable[[float, float], float]) -> Any:
    """Least loss under a cost over a fine grid of two log sizes, all other settings at their optimum."""
    grid = [(10.0**a, 10.0**b) for a in np.linspace(4, 7.5, 181) for b in np.linspace(5, 9.5, 181)]
    costs = np.array([cost(n, d) for n, d in grid])
    losses = np.array([evaluate(n, d) for n, d in grid])
    order = np.argsort(costs)
    costs, losses = costs[order], np.minimum.accumulate(losses[order])

    def front(limit: float) -> float:
        return float(losses[max(0, int(np.searchsorted(costs, limit, side="right")) - 1)])

    return front


def ridge() -> Problem:
    """Sizes as real numbers; best learning rate bends with size, weight decay is tied to it; too high a rate fails."""

    def best_lr(n: float) -> float:
        x = math.log10(n) - 4.0
        return -1.8 - 0.15 * x - 0.08 * x * x

    def evaluate(p: Params) -> Outcome:
        n, d, lr, wd, warm = p["n"], p["d"], math.log10(p["lr"]), math.log10(p["wd"]), p["warm"]
        cost = n * d / 1e10
        off = lr - best_lr(n)
        if off > 0.7:
            return Outcome(math.nan, 0.2 * cost, "diverged")
        loss = _scaling(n, d, floor=1.2, alpha=0.42, beta=0.33) + 0.3 * off**2 + 0.15 * (off + wd + 1.5) ** 2
        return Outcome(loss + 0.05 * (math.log10(warm / (1 - warm)) + 1.3) ** 2, cost)

    space = Space(
        [
            Log("n", centre=3e4, low=1e4, high=3e7),
            Log("d", centre=1e6, low=1e5, high=3e9),
            Log("lr", centre=3e-3, low=1e-5, high=1e-1),
            Log("wd", centre=0.1, low=1e-3, high=1.0),
            Logit("warm", centre=0.1),
        ]
    )
    front = _front_over(lambda n, d: _scaling(n, d, floor=1.2, alpha=0.42, beta=0.33), lambda n, d: n * d / 1e10)
    return Problem("ridge", space, evaluate, front, 0.004)


def shapes() -> Problem:
    """Whole layers and widths, a categorical activation, out of memory above a size that depends on batch; noisy."""

    def size(layers: int, width: int) -> float:
        return 12.0 * layers * width**2

    penalty = {"relu": 0.06, "gelu": 0.02, "swiglu": 0.0, "tanh": 0.25}

    def evaluate(p: Params) -> Outcome:
        n, d, batch = size(p["layers"], p["width"]), p["d"], p["batch"]
        cost = n * d / 1e10
        if n * batch > 3e9:
            return Outcome(math.nan, 1e-3 * cost, "out_of_memory")
        aspect = math.log2(p["width"] / p["layers"]) - 5.0
        best_batch = 3.0 + 0.5 * (math.log2(d) - 17.0)
        best_lr = -2.3 - 0.3 * (math.log10(n) - 5.0) + 0.1 * (math.log2(batch) - 4.0)
        loss = _scaling(n, d, floor=1.5, alpha=0.38, beta=0.36) + 0.02 * aspect**2 + penalty[p["act"]]
        loss += 0.01 * (math.log2(batch) - best_batch) ** 2 + 0.25 * (math.log10(p["lr"]) - best_lr) ** 2
        return Outcome(loss, cost)

    space = Space(
        [
            Linear("layers", centre=3, low=1, high=16, integer=True, scale=4.0),
            Log("width", centre=64, low=16, high=512, integer=True, rounding=16),
            Log("d", centre=1e6, low=1e5, high=3e9, integer=True),
            Log("batch", centre=16, low=1, high=512, integer=True),
            Log("lr", centre=3e-3, low=1e-5, high=1e-1),
            Categorical("act", choices=("relu", "gelu", "swiglu", "tanh"), centre="relu"),
        ]
    )

    def front(limit: float) -> float:
        best = math.inf
        for layers in range(1, 17):
            for width in range(16, 513, 16):
                n = size(layers, width)
                d = min(limit * 1e10 / n, 3e9)
                if d >= 1e5:
                    batch = min(512, max(1, round(2 ** (3.0 + 0.5 * (math.log2(d) - 17.0)))), math.floor(3e9 / n))
                    lr = -2.3 - 0.3 * (math.log10(n) - 5.0) + 0.1 * (math.log2(batch) - 4.0)
                    p = {"layers": layers, "width": width, "d": d, "batch": batch, "lr": 10**lr, "act": "swiglu"}
                    best = min(best, evaluate(p).loss)
        return best

    return Problem("shapes", space, evaluate, front, 0.02)


def many() -> Problem:
    """Twelve settings, of which half hardly matter; an interaction; a second valley; a timed-out corner."""

    def evaluate(p: Params) -> Outcome:
        n, d = p["n"], p["d"]
        cost = n * d / 1e10 * (1.0 + 0.3 * abs(p["x0"]))
        if p["x1"] > 1.2 and p["x0"] > 0.0:
            return Outcome(math.nan, cost, "timed_out")
        lr = math.log10(p["lr"]) + 2.0 + 0.35 * (math.log10(n) - 4.0)
        loss = _scaling(n, d, floor=0.8, alpha=0.3, beta=0.3) + 0.2 * (1.0 - math.exp(-1.5 * lr**2)) + 0.05 * lr**2
        loss += 0.1 * (p["x0"] - p["x1"]) ** 2 + 0.06 * (p["x0"] + p["x1"] - 0.8 * (math.log10(d) - 6.0)) ** 2
        return Outcome(loss + sum(0.01 * (p[f"x{k}"] - 0.2 * k) ** 2 for k in range(2, 9)), cost)

    space = Space(
        [
            Log("n", centre=3e4, low=1e4, high=3e7),
            Log("d", centre=1e6, low=1e5, high=3e9),
            Log("lr", centre=3e-3, low=1e-5, high=1e-1),
            *(Linear(f"x{k}", centre=0.0, low=-2.0, high=2.0) for k in range(9)),
        ]
    )

    def front(limit: float) -> float:
        best = math.inf
        for log_n in np.linspace(4.0, 7.4, 60):
            for x0 in np.linspace(0.0, 1.2, 25):
                d = min(limit * 1e10 / 10**log_n / (1.0 + 0.3 * x0), 3e9)
                if d < 1e5:
                    continue
                for x1 in np.linspace(0.0, 1.2, 25):
                    p = {"n": 10**log_n, "d": d, "lr": 10 ** (-2.0 - 0.35 * (log_n - 4.0)), "x0": x0, "x1": x1}
                    best = min(best, evaluate(p | {f"x{k}": 0.2 * k for k in range(2, 9)}).loss)
        return best

    return Problem("many", space, evaluate, front, 0.005)


def noisy() -> Problem:
    """Three settings and a noise of two per cent, in a score to be read as a loss."""

    def evaluate(p: Params) -> Outcome:
        n, d = p["n"], p["d"]
        lr = math.log10(p["lr"]) + 2.2 + 0.3 * (math.log10(n) - 4.0)
        return Outcome(_scaling(n, d, floor=1.0, alpha=0.4, beta=0.3) + 0.4 * lr**2, n * d / 1e10)

    space = Space(
        [
            Log("n", centre=3e4, low=1e4, high=3e7),
            Log("d", centre=1e6, low=1e5, high=3e9),
            Log("lr", centre=1e-3, low=1e-5, high=1e-1),
        ]
    )
    front = _front_over(lambda n, d: _scaling(n, d, floor=1.0, alpha=0.4, beta=0.3), lambda n, d: n * d / 1e10)
    return Problem("noisy", space, evaluate, front, 0.06)


PROBLEMS: dict[str, Callable[[], Problem]] = {"ridge": ridge, "shapes": shapes, "many": many, "noisy": noisy}


@dataclass
class Run:
    """Bookkeeping of one run: what was run, what it cost, when to stop."""

    problem: Problem
    seed: int
    total: float
    max_trials: int
    wall_s: float
    log: list[tuple[Params, Outcome]] = field(default_factory=list)
    refused: int = 0
    spent: float = 0.0

    def __post_init__(self) -> None:
        self.cap = 2.0 / 3.0 * self.total
        self._until = time.monotonic() + self.wall_s
        self._rng = np.random.default_rng(7000 + self.seed)

    def done(self) -> bool:
        count = len(self.log) + self.refused
        return self.spent >= self.total or count >= self.max_trials or time.monotonic() > self._until

    def __call__(self, params: Params) -> Outcome:
        outcome = self.problem.evaluate(params)
        if outcome.cost > self.cap:
            self.refused += 1
            return Outcome(math.nan, self.cap, "refused")
        self.spent += outcome.cost
        self.log.append((params, outcome))
        noise = self.problem.noise * self._rng.standard_normal()
        return outcome if outcome.failed else Outcome(outcome.loss + noise, outcome.cost)


def ours(run: Run) -> None:
    study = Study(run.problem.space, seed=run.seed, budget=Budget(max_cost=run.cap))
    while not run.done():
        asked = study.ask()
        outcome = run(asked.params)
        if outcome.failed:
            study.tell(asked, failed=outcome.failed, cost=0.0 if outcome.failed == "refused" else outcome.cost)
        else:
            study.tell(asked, output=outcome.loss, cost=outcome.cost)


def walk(run: Run) -> None:
    """Model-free: a small step from a random member of the raw front."""
    space, rng = run.problem.space, np.random.default_rng(run.seed)
    x = space.encode([space.centre()])
    seen: list[tuple[float, float, Any]] = []
    while not run.done():
        outcome = run(space.decode(x[0]))
        if not outcome.failed:
            seen.append((outcome.cost, outcome.loss, x))
        front: list[Any] = []
        best = math.inf
        for _, loss, at in sorted(seen, key=lambda each: each[:2]):
            if loss < best:
                best, front = loss, [*front, at]
        base = front[rng.integers(len(front))] if front else space.encode([space.centre()])
        x = space.move(base, np.array([0.32]), np.ones(1), rng)


def random(run: Run) -> None:
    """Wide Gaussian round the start."""
    space, rng = run.problem.space, np.random.default_rng(run.seed)
    centre = space.encode([space.centre()])
    while not run.done():
        run(space.decode(space.move(centre, np.array([1.0]), np.ones(1), rng)[0]))


def _optuna(run: Run, sampler: str, *, multi: bool) -> None:
    """Optuna with the same start and nine near points; one objective (loss + 1 a decade above 3 % of total) or two."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore")
    space, rng = run.problem.space, np.random.default_rng(run.seed)
    kind: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=run.seed, multivariate=True),
        "gp": lambda: optuna.samplers.GPSampler(seed=run.seed),
    }
    study = optuna.create_study(directions=["minimize"] * (1 + multi), sampler=kind[sampler]())
    centre = space.encode([space.centre()])
    study.enqueue_trial(space.centre())
    for _ in range(9):
        study.enqueue_trial(space.decode(space.move(centre, np.array([0.4]), np.ones(1), rng)[0]))
    worst = 10.0
    while not run.done():
        trial = study.ask()
        outcome = run({each.name: _optuna_value(trial, each) for each in space.dimensions})
        loss = worst if outcome.failed else outcome.loss
        worst = max(worst, loss)
        decades = math.log10(outcome.cost)
        over = max(0.0, decades - math.log10(TARGETS[1] * run.total))
        study.tell(trial, [loss, decades] if multi else [loss + over])


def _optuna_value(trial: Any, dimension: Any) -> Any:
    name = dimension.name
    if isinstance(dimension, Categorical):
        return trial.suggest_categorical(name, dimension.choices)
    low, high = (1e-3, 1.0 - 1e-3) if isinstance(dimension, Logit) else (dimension.low, dimension.high)
    if dimension.integer:
        log = isinstance(dimension, Log) and dimension.rounding == 1
        return trial.suggest_int(name, int(low), int(high), log=log, step=1 if log else dimension.rounding)
    return trial.suggest_float(name, low, high, log=isinstance(dimension, Log))


METHODS: dict[str, Callable[[Run], None]] = {
    "ours": ours,
    "walk": walk,
    "random": random,
    "tpe": lambda run: _optuna(run, "tpe", multi=False),
    "tpe_multi": lambda run: _optuna(run, "tpe", multi=True),
    "gp": lambda run: _optuna(run, "gp", multi=False),
}


def score(run: Run) -> dict[str, Any]:
    """Gap in per cent at each target after each share of the total; null where nothing was run under the target."""
    result: dict[str, Any] = {}
    for share in CHECKS:
        spent, counted, best = 0.0, 0, dict.fromkeys(TARGETS, math.inf)
        for _, outcome in run.log:
            spent += outcome.cost
            if spent > share * run.total:
                break
            counted += 1
            for target in TARGETS:
                if not outcome.failed and outcome.cost <= target * run.total:
                    best[target] = min(best[target], outcome.loss)
        gaps = [100.0 * (best[t] / run.problem.front(t * run.total) - 1.0) for t in TARGETS]
        result[f"{share:.2f}"] = {"trials": counted, "gap": [round(g, 2) if math.isfinite(g) else None for g in gaps]}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--total", type=float, default=30000.0, help="in costs of the start")
    parser.add_argument("--max-trials", type=int, default=4000)
    parser.add_argument("--wall-s", type=float, default=900.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for name in given.problems.split(","):
        problem = PROBLEMS[name]()
        start = problem.evaluate(problem.space.centre()).cost
        for method in given.methods.split(","):
            for seed in map(int, given.seeds.split(",")):
                run = Run(problem, seed, given.total * start, given.max_trials, given.wall_s)
                cpu = time.process_time()
                METHODS[method](run)
                line = {"problem": name, "method": method, "seed": seed, "spent": round(run.spent / start)}
                line |= {"trials": len(run.log), "failed": sum(bool(o.failed) for _, o in run.log)}
                line |= {"refused": run.refused, "cpu_s": round(time.process_time() - cpu, 1), "by_spend": score(run)}
                print(json.dumps(line), flush=True)
                if given.out:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
