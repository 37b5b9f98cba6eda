"""Does the large run land where the small ones said? The rehearsal over several seeds, and what it is compared with.

    python benchmarks/landing.py --out landing --seeds 0,1,2,3,4 --budget 8m

Each seed is one rehearsal with the recipe ``laptop`` in ``OUT/seed-N``; afterwards, outside its budget, the best small
trial's settings are trained at the same cost with only size and tokens scaled. Resumable: what has ended is read, what
was interrupted goes on. Prints one JSON line a seed, then one with the summary:

* relative error of the predicted metric, whether the 90 % interval covers, and its half width over the prediction;
* the straight line through the Pareto set in log-log: its error and its interval score (Gneiting and Raftery 2007);
* the metric of the laws' settings against that of the scaled settings.

Run it on an idle machine: the search takes the time that it gets.
"""

import argparse
import dataclasses
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from wholestack.cli.output import parse_duration
from wholestack.experiments import rehearsal
from wholestack.experiments.phases.landing import landing_of
from wholestack.experiments.phases.long_runs import train_scaled
from wholestack.experiments.records import LAWS_RUNG, LAWS_SEARCH, OUTCOME, TRIALS, Laws, Outcome, TrialRecord
from wholestack.recipes.load import load
from wholestack.report.rehearsal import write_report
from wholestack.runs import RunReader
from wholestack.scaling.scores import interval_score


def land(folder: Path, recipe: str, seed: int, budget_s: float, *, scaled: bool) -> dict[str, object]:
    """Run or finish one seed and sum it up."""
    if not (folder / "run.json").exists():
        rehearsal.create(folder, load(recipe), budget_s=budget_s, seed=seed, at=time.time()).close()
    with rehearsal.resume(folder) as run:
        if not (folder / OUTCOME).exists():
            rehearsal.rehearse(run)
        if scaled:
            with rehearsal.opened(run) as stage:
                train_scaled(stage, rehearsal.training_runs(stage))
                outcome = run.read(OUTCOME, Outcome)
                run.write(OUTCOME, dataclasses.replace(outcome, scaled=landing_of(stage, "scaled", outcome.metric)))
        write_report(folder)
    return summarise(folder, seed)


def summarise(folder: Path, seed: int) -> dict[str, object]:
    """The numbers of one finished seed."""
    run = RunReader(folder)
    outcome = run.read(OUTCOME, Outcome)
    laws, before = run.read(LAWS_RUNG, Laws), run.read(LAWS_SEARCH, Laws)
    trials = run.journal(TRIALS, TrialRecord)
    scaled = next((trial for trial in trials if trial.role == "scaled"), None)
    actual, interval, line = outcome.actual, outcome.interval, laws.straight
    numbers: dict[str, object] = {
        "seed": seed,
        "metric": outcome.metric,
        "predicted": outcome.predicted,
        "interval": interval,
        "actual": actual,
        "inside": outcome.inside,
        "relative_error": outcome.relative_error,
        "rung": dataclasses.asdict(outcome.rung) if outcome.rung else None,
        "target_from_search_alone": dataclasses.asdict(before.target) if before.target else None,
        "target_cost_flops": outcome.target_cost_flops,
        "largest_trial_cost_flops": outcome.largest_trial_cost_flops,
        "trials": outcome.trials,
        "pareto": len(laws.pareto),
        "failures": outcome.failures,
        "seconds": outcome.seconds,
        "exit_code": outcome.exit_code,
        "scaled_actual": scaled.metrics.get("answer_bpb") if scaled else None,
        "law_params": laws.target_params,
        "scaled_params": laws.scaled_params,
    }
    if outcome.predicted is not None and interval is not None and actual is not None and line is not None:
        numbers |= {
            "half_width": (interval[1] - interval[0]) / 2 / outcome.predicted,
            "interval_score": interval_score(actual, interval, laws.level),
            "line_error": actual / line.value - 1,
            "line_interval_score": interval_score(actual, (line.low, line.high), laws.level),
        }
    return numbers


def overall(rows: list[dict[str, object]]) -> dict[str, object]:
    """Medians and counts over the seeds that landed."""
    landed = [row for row in rows if row["relative_error"] is not None]

    def median(key: str, *, size: bool = False) -> float | None:
        values = [float(str(row[key])) for row in landed if row.get(key) is not None]
        return statistics.median(abs(value) if size else value for value in values) if values else None

    compared = [row for row in landed if row["scaled_actual"] is not None]
    return {
        "seeds": len(rows),
        "landed": len(landed),
        "median_abs_relative_error": median("relative_error", size=True),
        "inside": sum(bool(row["inside"]) for row in landed),
        "median_half_width": median("half_width"),
        "median_interval_score": median("interval_score"),
        "line_median_abs_error": median("line_error", size=True),
        "line_median_interval_score": median("line_interval_score"),
        "laws_at_least_as_good_as_scaled": sum(
            float(str(row["actual"])) <= float(str(row["scaled_actual"])) for row in compared
        ),
        "compared_with_scaled": len(compared),
    }


def main() -> None:
    """Parse arguments, land every seed, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/landing"))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--budget", default="8m")
    parser.add_argument("--recipe", default="laptop")
    parser.add_argument("--no-scaled", action="store_true", help="do not train the scaled settings")
    given = parser.parse_args()
    rows = []
    for seed in map(int, given.seeds.split(",")):
        folder = given.out / f"seed-{seed}"
        rows.append(land(folder, given.recipe, seed, parse_duration(given.budget), scaled=not given.no_scaled))
        print(json.dumps(rows[-1]), flush=True)
    print(json.dumps(overall(rows)), flush=True)


if __name__ == "__main__":
    main()
