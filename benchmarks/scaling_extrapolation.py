"""How well forecasts from small runs meet larger runs: public tables, and simulated searches with a known truth.

    python benchmarks/scaling_extrapolation.py tables --data ../shared/data/scaling
    python benchmarks/scaling_extrapolation.py simulate --replicas 200

One JSON line a case on stdout. ``tables``: for each table and loss, fit on runs that cost at most max / ratio, forecast
each run that costs at least max / 2. Baselines: a straight line in log-log (with its textbook interval), and the plain
Huber fit of Hoffmann et al. 2022 (five parameters, threshold 1e-3, many starts, no priors). ``simulate``: coverage and
width of the 90 % interval over replicas of a synthetic truth, forecasting 16 times the costliest run.
"""

import argparse
import csv
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from wholestack.scaling.forecast import Forecast, Scatter, fit_loss, forecast_loss
from wholestack.scaling.points import Refusal, RunPoint
from wholestack.scaling.scores import interval_score, straight_line

RATIOS = (4.0, 10.0, 30.0, 100.0)
LEVEL = 0.9
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    points: tuple[RunPoint, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "simulate"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/scaling"))
    parser.add_argument("--replicas", type=int, default=200)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    lines = tables(args.data, args.only) if args.what == "tables" else simulate(args.replicas, args.only)
    for line in lines:
        print(json.dumps(line), flush=True)


def tables(data: Path, only: str) -> Iterator[dict[str, object]]:
    for table in (each for each in read_tables(data) if only in each.name):
        for ratio in RATIOS:
            scored = score_table(table, ratio)
            if scored is not None:
                yield scored


def read_tables(data: Path) -> Iterator[Table]:
    hoffmann = [*rows(data / "chinchilla_lt1e20.csv"), *rows(data / "chinchilla_1e20_1e21.csv")]
    yield Table(name="chinchilla", points=tuple(_chinchilla(row) for row in hoffmann))
    gadre = rows(data / "gadre_le0.6b.csv")
    losses = ("loss:openlm", "loss:c4_val", "loss:paloma_falcon-refinedweb", "loss:paloma_ptb", "loss:de-en")
    for dataset, loss in itertools.product(("c4_original", "rpj", "rw_original"), losses):
        mine = [row for row in gadre if row["dataset"] == dataset and row[loss]]
        yield Table(name=f"gadre {dataset} {loss}", points=tuple(_gadre(row, loss) for row in mine))
    olmo = rows(data / "olmo_le1.3b.csv")
    for loss in [name for name in olmo[0] if name.endswith("CrossEntropyLoss") or "bpb" in name]:
        mine = [row for row in olmo if row[loss]]
        yield Table(name=f"olmo {loss.removeprefix('eval/')}", points=tuple(_olmo(row, loss) for row in mine))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _chinchilla(row: dict[str, str]) -> RunPoint:
    params, cost = float(row["Model Size"]), float(row["Training FLOP"])
    return RunPoint(cost_flops=cost, loss=float(row["loss"]), params=params, tokens=cost / (6 * params))


def _gadre(row: dict[str, str], loss: str) -> RunPoint:
    params, tokens = float(row["params_no_embed"]), float(row["tokens"])
    return RunPoint(cost_flops=6 * float(row["params"]) * tokens, loss=float(row[loss]), params=params, tokens=tokens)


def _olmo(row: dict[str, str], loss: str) -> RunPoint:
    return RunPoint(
        cost_flops=float(row["flops"]), loss=float(row[loss]), params=float(row["params"]), tokens=float(row["tokens"])
    )


def score_table(table: Table, ratio: float) -> dict[str, object] | None:
    top = max(point.cost_flops for point in table.points)
    train = [point for point in table.points if point.cost_flops <= top / ratio]
    test = [point for point in table.points if point.cost_flops >= top / 2]
    law = fit_loss(train, rng=np.random.default_rng(0))
    if isinstance(law, Refusal):
        return None
    made = [
        law.forecast(each.cost_flops, target_params=each.params, target_tokens=each.tokens, level=LEVEL)
        for each in test
    ]
    actual = np.array([each.loss for each in test])
    error = np.array([each.predicted for each in made]) / actual - 1
    intervals = [each.interval for each in made]
    lines = [straight_line(train, each.cost_flops, level=LEVEL) for each in test]
    plain = plain_huber(train, test)
    return {
        "table": table.name,
        "ratio": ratio,
        "n_train": len(train),
        "n_test": len(test),
        "form": made[0].form,
        **_errors("", error),
        **_errors("plain_", plain / actual - 1),
        **_errors("line_", np.array([each.predicted for each in lines]) / actual - 1),
        "covered": float(np.mean([low <= a <= high for a, (low, high) in zip(actual, intervals, strict=True)])),
        "half_width": float(np.mean([(high - low) / 2 / a for a, (low, high) in zip(actual, intervals, strict=True)])),
        "score": _score(actual, intervals),
        "line_score": _score(actual, [each.interval for each in lines]),
        "line_covered": float(
            np.mean([each.interval[0] <= a <= each.interval[1] for a, each in zip(actual, lines, strict=True)])
        ),
    }


def _errors(prefix: str, error: Array) -> dict[str, float]:
    return {
        f"{prefix}bias": float(error.mean()),
        f"{prefix}mean_error": float(np.abs(error).mean()),
        f"{prefix}max_error": float(np.abs(error).max()),
    }


def _score(actual: Array, intervals: Sequence[tuple[float, float]]) -> float:
    return float(np.mean([interval_score(a, i, LEVEL) / a for a, i in zip(actual, intervals, strict=True)]))


def plain_huber(train: Sequence[RunPoint], test: Sequence[RunPoint]) -> Array:
    n, d = (np.log([getattr(p, key) for p in train]) for key in ("params", "tokens"))
    y = np.log([p.loss for p in train])

    def terms(theta: Array, n: Array, d: Array) -> Array:
        return np.stack([theta[2] + 0 * n, theta[0] - theta[3] * n, theta[1] - theta[4] * d])

    def objective(theta: Array) -> tuple[float, Array]:
        stacked = terms(theta, n, d)
        total = logsumexp(stacked, axis=0)
        shares, r = np.exp(stacked - total), total - y
        pull = np.clip(r, -1e-3, 1e-3)
        rho = np.where(np.abs(r) <= 1e-3, 0.5 * r**2, 1e-3 * (np.abs(r) - 5e-4))
        sides = [pull @ shares[1], pull @ shares[2], pull @ shares[0]]
        return 1e3 * float(rho.sum()), 1e3 * np.array([*sides, -pull @ (shares[1] * n), -pull @ (shares[2] * d)])

    grid = itertools.product((0.0, 5.0, 10.0), (0.0, 5.0, 10.0), (0.5,), (0.3,), (0.3, 0.5))
    fits = [minimize(objective, np.array(start), jac=True, method="L-BFGS-B") for start in grid]
    best = min(fits, key=lambda each: float(each.fun)).x
    goal = [np.log([getattr(p, key) for p in test]) for key in ("params", "tokens")]
    return np.asarray(np.exp(logsumexp(terms(best, *goal), axis=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    name: str
    loss: Callable[[Array], Array]
    specified: bool
    """Whether one of the candidate forms is the truth."""


TRUTHS = (
    Truth(name="floor 0.8", loss=lambda c: 0.8 + 2.6 * (c / 1e10) ** -0.17, specified=True),
    Truth(name="floor 0.5", loss=lambda c: 0.5 + 2.9 * (c / 1e10) ** -0.15, specified=True),
    Truth(name="no floor", loss=lambda c: 3 * (c / 1e10) ** -0.1, specified=True),
    Truth(
        name="leaving the unigram plateau",
        loss=lambda c: (4.5**-6 + (0.8 + 2.6 * (c / 1e10) ** -0.17) ** -6) ** (-1 / 6),
        specified=False,
    ),
)
DESIGNS: tuple[tuple[int, float, Scatter], ...] = (
    (12, 0.005, "noise"),
    (24, 0.005, "noise"),
    (24, 0.01, "noise"),
    (80, 0.007, "search"),
)


def simulate(replicas: int, only: str) -> Iterator[dict[str, object]]:
    for truth, (n, noise, scatter) in itertools.product(TRUTHS, DESIGNS):
        if only in f"{truth.name} {scatter}":
            yield _simulate(truth, n, noise, scatter, replicas)


def _simulate(truth: Truth, n: int, noise: float, scatter: Scatter, replicas: int) -> dict[str, object]:
    errors, widths, inside, scores, line_scores, refused = [], [], [], [], [], 0
    for seed in range(replicas):
        rng = np.random.default_rng(seed)
        cost = np.sort(10 ** rng.uniform(10, 11.8, n))
        excess = rng.exponential(0.04, n) if scatter == "search" else np.zeros(n)
        loss = truth.loss(cost) * np.exp(noise * rng.standard_normal(n) + excess)
        points = [RunPoint(cost_flops=float(c), loss=float(x)) for c, x in zip(cost, loss, strict=True)]
        goal = 16 * float(cost.max())
        actual = float(truth.loss(np.array(goal)) * np.exp(noise * rng.standard_normal()))
        made = forecast_loss(points, goal, scatter=scatter, level=LEVEL, rng=rng)
        if not isinstance(made, Forecast):
            refused += 1
            continue
        low, high = made.interval
        errors.append(made.predicted / actual - 1)
        widths.append((high - low) / 2 / made.predicted)
        inside.append(low <= actual <= high)
        scores.append(interval_score(actual, made.interval, LEVEL) / actual)
        line_scores.append(interval_score(actual, straight_line(points, goal).interval, LEVEL) / actual)
    return {
        "truth": truth.name,
        "specified": truth.specified,
        "n": n,
        "noise": noise,
        "scatter": scatter,
        "replicas": replicas,
        "refused": refused,
        **_errors("", np.array(errors)),
        "covered": float(np.mean(inside)),
        "half_width": float(np.median(widths)),
        "score": float(np.mean(scores)),
        "line_score": float(np.mean(line_scores)),
    }


if __name__ == "__main__":
    main()
