"""``wholestack evals mixtures``: reads what is asked, calls the comparison, prints the verdicts."""

import math
import sys
import time
from pathlib import Path
from textwrap import fill
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.evals_goal import GOALS, stands_for
from wholestack.cli.output import parse_duration, print_json, refuse_with_resume, resumable
from wholestack.errors import InputError
from wholestack.evals.proxies import proxy_notes
from wholestack.experiments import mixtures
from wholestack.experiments.mixture_plan import (
    MIXTURES,
    Comparison,
    ComparisonPlan,
    MixtureResult,
    MixturesOutcome,
    default_comparison,
    read_comparison,
    told,
)
from wholestack.experiments.progress import Progress
from wholestack.experiments.recipe import Recipe, with_workers
from wholestack.recipes.load import load
from wholestack.record import to_builtins

SAY_EVERY_S = 15.0
WIDTH = 80


def mixtures_command(
    what: str | None = None,
    /,
    *,
    seeds: int | None = None,
    budget: str | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    seed: int | None = None,
    workers: int | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    goals: Path = GOALS,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Compare data mixtures and schedules of mixtures at equal cost.

    Every mixture trains the same model on as many tokens. Each, the baseline too, tries three learning rates
    with one seed; its best rate trains again with new seeds, and these are compared on the same items, seed by
    seed. The smallest difference that can be seen is said before training starts. An answer is an interval over
    items and seeds; "cannot be told" is an answer. No training is started that would overrun the budget, and one
    that does is stopped: the numbers so far are shown without a verdict.

    Exit codes: 0 every mixture is better or worse than the baseline; 3 for one or more it cannot be told, or the
    budget was used up (go on with --resume and a longer --budget); 2 usage or bad input; 130 interrupted (go on with
    --resume).

    Parameters
    ----------
    what
        A JSON file (see docs/guides/compare-mixtures.md), a built-in recipe (laptop) or a Python file with
        recipe(). A recipe compares: every source heavy all along, and every source heavy in the second half,
        against even shares.
    seeds
        Trainings of each mixture that are compared; 2 or more. Default 4.
    budget
        Wall time of everything, for instance 8m; sets the length of the trainings. Default 8m. With --resume:
        another budget than before, for all sittings together.
    from_
        Continue these weights (mid-training): the job folder of a run, RUN/jobs/large-0000. Loss on held-out
        text of their own mixture is measured before and after.
    seed
        Everything random derives from it. Default 0.
    workers
        Trainings at a time. Default: the recipe's.
    out
        Folder for the run. Default: mixtures-<recipe>-<seed>.
    resume
        Go on with an interrupted comparison in this folder.
    goals
        Folder of all goals, for the note on what the metric stands for.
    json
        Print one JSON document on stdout; everything else goes to stderr.
    """
    if (what is None) == (resume is None):
        raise InputError("name a file or recipe, or --resume a run", remedy="one of the two")
    if resume is not None:
        refuse_with_resume(seeds=seeds, from_=from_, seed=seed, workers=workers, out=out)
        run = mixtures.resume(resume)
    else:
        recipe, comparison = _asked(str(what), workers)
        run = mixtures.create(
            out or Path(f"mixtures-{recipe.name}-{seed or 0}"),
            recipe,
            comparison,
            seeds=4 if seeds is None else seeds,
            budget_s=parse_duration(budget or "8m"),
            seed=seed or 0,
            start=from_,
            at=time.time(),
        )
    with run:
        changed_s = parse_duration(budget) if budget and resume else None
        with resumable(_go_on(run.path)):
            outcome = mixtures.compare(run, watch=_Teller(), announce=_announce, budget_s=changed_s)
        comparison = mixtures.asked_of(run).comparison
    notes = proxy_notes(goals, [outcome.metric])
    if json:
        print_json(to_builtins(outcome) | {"stands_for": notes})
    else:
        print(_text(outcome, comparison, run.path / MIXTURES, stands_for(notes)))
    return outcome.exit_code


def _asked(what: str, workers: int | None) -> tuple[Recipe, Comparison]:
    comparison = read_comparison(Path(what)) if what.endswith(".json") else None
    recipe = load(comparison.recipe if comparison else what)
    if workers is not None:
        recipe = with_workers(recipe, workers)
    return recipe, comparison or default_comparison(recipe, what)


class _Teller:
    """A line on stderr when something changes, and now and then."""

    def __init__(self) -> None:
        self._said = ""
        self._at = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        done = f"{progress.done} of {progress.total} trainings" if progress.total else progress.note
        if done == self._said or (progress.total and now - self._at < SAY_EVERY_S):
            return
        self._said, self._at = done, now
        print(f"{done}, about {max(0.0, progress.left_s):.0f} s left", file=sys.stderr)


def _announce(plan: ComparisonPlan) -> None:
    for paragraph in (
        f"{plan.runs} trainings of {plan.tokens:,} tokens, {plan.cost_flops:.2e} FLOPs each: about"
        f" {plan.expected_s:.0f} s.",
        f"With {plan.items} items from {plan.clusters} documents and {plan.seeds} seeds a difference of"
        f" {plan.detectable:.3f} bits per byte will probably be seen, a smaller one will not ({plan.basis}).",
    ):
        print(_wrapped(paragraph), file=sys.stderr)


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent)


def _text(outcome: MixturesOutcome, comparison: Comparison, path: Path, note: str) -> str:
    plan = outcome.plan
    lines = [
        _wrapped(
            f"{outcome.metric}, lower is better; {plan.tokens:,} tokens and {plan.cost_flops:.2e} FLOPs each,"
            f" {plan.seeds} seeds, {plan.items} items; all intervals together hold at 95 % ({plan.level:.1%} each)"
        ),
        "",
    ]
    for result in outcome.results:
        lines += _told(result, comparison, finished=outcome.finished)
    lines += [_wrapped(f"warning: {each}") for each in outcome.warnings]
    if not outcome.finished:
        lines.append(
            _wrapped(
                f"The budget was used up after {outcome.trainings} of {plan.runs} trainings; go on with a longer one:"
            )
        )
        lines.append(f"{_go_on(path.parent)} --budget {_longer(outcome)}")
    return "\n".join([*lines, note, f"{outcome.seconds:.0f} s of {outcome.budget_s:.0f} s; all numbers: {path}"])


def _go_on(run: Path) -> str:
    return f"wholestack evals mixtures --resume {run}"


def _longer(outcome: MixturesOutcome) -> str:
    """A budget that would probably do, in whole minutes, by what the trainings took so far."""
    share = max(outcome.trainings, 1) / outcome.plan.runs
    return f"{math.ceil(1.1 * outcome.seconds / share / 60)}m"


def _told(result: MixtureResult, comparison: Comparison, *, finished: bool) -> list[str]:
    values = ", ".join(f"{value:.4f}" for value in result.values) or ("none ended well" if finished else "none yet")
    rates = ", ".join(
        f"{rate}: {'failed' if loss is None else format(loss, '.4f')}" for rate, loss in result.rate_losses.items()
    )
    edge = " (the best is at the edge: a better one may lie outside)" if result.at_edge else ""
    lines = [f"by seed: {values}", f"by learning rate: {rates}{edge}"]
    if result.forgetting is not None:
        lost = result.forgetting
        span = "" if lost.interval is None else f" ({lost.interval.low:+.4f} to {lost.interval.high:+.4f})"
        lines.append(
            f"old distribution, {lost.documents} documents: {lost.before_bpb:.4f} before, {lost.after_bpb:.4f} after:"
            f" {lost.difference:+.4f}{span}"
        )
    head = _wrapped(f"{result.name}: {told(comparison.mixtures[result.name])}")
    return [head, *(_wrapped(line, "  ") for line in [*lines, result.sentence]), ""]
