"""``wholestack rehearse``: reads what is asked, calls the rehearsal, draws progress and the short version."""

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.output import parse_duration, print_json, refuse_with_resume, resumable
from wholestack.cli.progress import TerminalWatcher
from wholestack.cli.report import draw
from wholestack.experiments import rehearsal
from wholestack.experiments.dry_run import describe_plan, dry_run
from wholestack.experiments.phases.data import given_items
from wholestack.experiments.recipe import Metric, Recipe, with_evaluation, with_workers
from wholestack.experiments.records import REPORT, Outcome
from wholestack.recipes.load import load
from wholestack.record import to_builtins
from wholestack.report.terminal import summary


def rehearse(
    recipe: str = "laptop",
    /,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    budget: str | None = None,
    seed: int | None = None,
    workers: int | None = None,
    items: Path | None = None,
    metric: Metric | None = None,
    stop_if_off: bool = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Tune small, predict large, train it, show where it landed.

    Small models are tuned by a cost-aware search; laws fitted to the best of them predict a run at least 16 times
    costlier than any of them. The prediction is sealed, tried on a rung at 4 times, then on the large run itself.
    Ends with report.html in the run directory.

    Exit codes: 0 every claim held; 1 a claim broke or a finding; 3 could not tell (no prediction was possible);
    2 usage or bad input; 130 interrupted (go on with --resume).

    Parameters
    ----------
    recipe
        A built-in name (laptop, gpu) or a Python file with a function recipe() that returns a Recipe.
    out
        Folder for the run; made if it is missing. Default: rehearsal-<recipe>-<seed>.
    resume
        Go on with an interrupted run in this folder; its recipe, seed and budget hold.
    budget
        Wall time of everything: search, fits, rung, large run, report. For instance 8m, 90s, 1.5h. Default 8m.
    seed
        Everything random derives from it. Default 0.
    workers
        Trials at a time. Default: the recipe's.
    items
        Questions to measure by, a JSON Lines file or a folder as `wholestack evals` reads it. Default: the recipe's,
        or continuation choices of held-out documents.
    metric
        What is minimised on them. Default: the recipe's.
    stop_if_off
        Do not train the large run when the rung lands outside its interval.
    dry_run
        Measure this machine's speed, print the plan (costs, time, disk), write nothing.
    json
        Print one JSON document on stdout; everything else goes to stderr.
    """
    if resume is not None:
        refuse_with_resume(
            recipe=recipe != "laptop",
            out=out,
            seed=seed,
            workers=workers,
            items=items,
            metric=metric,
            stop_if_off=stop_if_off,
            dry_run=dry_run,
        )
        run = rehearsal.resume(resume)
    else:
        asked = _recipe(recipe, workers, items, metric)
        budget_s = parse_duration(budget or "8m")
        if dry_run:
            return _dry_run(asked, budget_s, json=json)
        folder = out or Path(f"rehearsal-{asked.name}-{seed or 0}")
        run = rehearsal.create(
            folder,
            asked,
            budget_s=budget_s,
            seed=seed or 0,
            stop_if_off=stop_if_off,
            recipe_given=recipe,
            at=time.time(),
        )
    with run, TerminalWatcher(sys.stderr) as watcher:
        changed_s = parse_duration(budget) if budget and resume else None
        with resumable(f"wholestack rehearse --resume {run.path}"):
            outcome = rehearsal.rehearse(run, watch=watcher, budget_s=changed_s)
        draw(run.path)
    return _show(outcome, run.path, json=json)


def _show(outcome: Outcome, folder: Path, *, json: bool) -> int:
    if json:
        print_json({**to_builtins(outcome), "report": str(folder / REPORT)})
    else:
        from rich.console import Console

        Console().print(summary(folder))
    return outcome.exit_code


def _dry_run(recipe: Recipe, budget_s: float, *, json: bool) -> int:
    plan = dry_run(recipe, budget_s=budget_s)
    if json:
        print_json(to_builtins(plan))
    else:
        print(describe_plan(recipe, plan))
    return 0


def _recipe(name: str, workers: int | None, items: Path | None, metric: Metric | None) -> Recipe:
    recipe = load(name)
    if workers is not None:
        recipe = with_workers(recipe, workers)
    if items is not None:
        given_items(items)  # what is wrong with it is said before anything is made
    return with_evaluation(recipe, items=str(items.resolve()) if items else recipe.items, metric=metric)
