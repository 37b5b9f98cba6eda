"""``wholestack evals context``: reads what is asked, calls the comparison, prints table and page."""

import sys
import time
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.output import parse_duration, print_json, refuse_with_resume, resumable
from wholestack.evals.backend import Backend, Opening
from wholestack.evals.models.opening import open_backend
from wholestack.experiments import in_context
from wholestack.experiments.in_context_plan import ContextOutcome, Point
from wholestack.experiments.table_model import seconds_a_step
from wholestack.record import to_builtins
from wholestack.report.context import write_page

WIDTH = 80


def context(
    *,
    model: str | None = None,
    demonstrations: Annotated[tuple[int, ...] | None, Parameter(negative="")] = None,
    episodes: int | None = None,
    questions: int | None = None,
    template: str | None = None,
    tune: bool = True,
    budget: str | None = None,
    seed: int | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    r"""Demonstrations in the context against fine-tuning on the same ones.

    The task is a table of keys and labels, new in every episode and told by noisy demonstrations; so it is learnt
    from the demonstrations or not at all, and the best possible loss is known. A needle test stands beside it: it
    is retrieval of a fragment. Ends with context.html in the run directory.

    The tiny model is pretrained here on other episodes. It, or a model from elsewhere, reads the demonstrations, and
    is fine-tuned on the same ones with rate and length chosen on episodes that are not measured. An endpoint only
    reads, and so does the model in memory.

    Exit codes: 0 told at every number of demonstrations (or nothing to compare with); 3 at one or more it cannot
    be told; 2 usage or bad input; 130 interrupted (go on with --resume).

    Parameters
    ----------
    model
        tiny (the default): pretrained here. Or any model that `evals score` opens; the demonstrations are text to it.
    demonstrations
        Numbers of demonstrations. Default 10 100 1000.
    episodes
        Tables for each number of demonstrations, the unit of every interval. Default 8.
    questions
        Of each episode. Default 16.
    template
        How a demonstration is written. Default: {key}{label} for the tiny model, else {key}: {label} and a new
        line.
    tune
        Fine-tune too, the default. Fine-tuning a large model on a CPU takes hours: --no-tune only reads.
    budget
        Wall time of the whole, for instance 8m (the default); sets how long the tiny model is pretrained. A model
        from elsewhere takes what it takes.
    seed
        Everything random derives from it. Default 0.
    out
        Folder for the run. Default: context.
    resume
        Go on with an interrupted run in this folder.
    json
        Print one JSON document on stdout; everything else goes to stderr.
    """
    if resume is not None:
        refuse_with_resume(
            model=model,
            demonstrations=demonstrations,
            episodes=episodes,
            questions=questions,
            template=template,
            no_tune=not tune,
            budget=budget,
            seed=seed,
            out=out,
        )
        run = in_context.resume(resume)
    else:
        planned = partial(
            in_context.plan_for,
            model or in_context.TINY,
            demonstrations=demonstrations or (10, 100, 1000),
            episodes=8 if episodes is None else episodes,
            questions=16 if questions is None else questions,
            template=(template or "").replace("\\n", "\n"),
            tune=tune,
        )
        planned()  # what cannot be done is refused before anything is measured
        plan = planned(effort=_effort(model or in_context.TINY, parse_duration(budget or "8m"), seed or 0))
        run = in_context.create(out or Path("context"), plan, seed=seed or 0, at=time.time())
    with run:
        with resumable(f"wholestack evals context --resume {run.path}"):
            outcome = in_context.compare(run, backend=_backend(in_context.plan_of(run).model), say=_say)
        page = write_page(run.path, outcome)
    if json:
        print_json({**to_builtins(outcome), "page": str(page)})
    else:
        print(text(outcome, page))
    return outcome.exit_code


def _effort(model: str, budget_s: float, seed: int) -> float:
    """How long to pretrain here, now; says so where it is less than the tiny model needs."""
    if model != in_context.TINY:
        return 1.0
    effort = in_context.effort_within(budget_s, seconds_a_step(seed=seed))
    if effort < 1:
        _say(
            f"on this machine the budget allows {effort:.0%} of the pretraining that the tiny model needs: it may read"
            " less well than it could"
        )
    return effort


def _backend(name: str) -> Backend | None:
    return None if name == in_context.TINY else open_backend(name, Opening())


def _say(line: str) -> None:
    print(fill(line, WIDTH), file=sys.stderr)


def text(outcome: ContextOutcome, page: Path) -> str:
    """What came out, for a terminal of 80 columns."""
    lines = [
        f"{'':<12} {'shown':>6}  {'loss (nats)':<23}{'best':>6}  {'accuracy':<23}{'best':>4}",
        *(_row(point) for point in outcome.points if point.way != "needle"),
        f"chance: {outcome.chance_loss_nats:.3f} nats, {outcome.chance_accuracy:.2f}",
        "",
        *(fill(each.sentence, WIDTH) for each in outcome.contrasts),
    ]
    if outcome.not_tuned:
        lines.append(fill(f"Nothing was fine-tuned: {outcome.not_tuned}.", WIDTH))
    needles = ", ".join(
        f"{point.accuracy.value:.2f} among {point.demonstrations}" for point in outcome.points if point.way == "needle"
    )
    lines += ["", fill(f"Fragment retrieval (needle test, not learning): accuracy {needles}.", WIDTH)]
    unscored = sum(point.unscorable for point in outcome.points)
    if unscored:
        lines.append(f"{unscored} questions could not be scored; reasons: arms.jsonl")
    cut = sum(point.truncated for point in outcome.points)
    if cut:
        lines.append(
            fill(f"In front of {cut} questions not all demonstrations fitted: the first ones were left out.", WIDTH)
        )
    return "\n".join([*lines, f"{outcome.seconds:.0f} s; chart: {page}"])


def _row(point: Point) -> str:
    loss, accuracy = (
        f"{each.value:.3f} ({each.interval.low:.3f} to {each.interval.high:.3f})"
        if each.interval
        else f"{each.value:.3f}"
        for each in (point.loss_nats, point.accuracy)
    )
    best_loss = "" if point.best_loss_nats is None else f"{point.best_loss_nats:.3f}"
    best_accuracy = "" if point.best_accuracy is None else f"{point.best_accuracy:.2f}"
    return f"{point.way:<12} {point.demonstrations:>6}  {loss:<23}{best_loss:>6}  {accuracy:<23}{best_accuracy:>4}"
