"""``wholestack evals curve``: the same checkpoints under several metrics."""

import platform
from pathlib import Path
from textwrap import fill
from typing import Annotated, Literal

from cyclopts import Parameter

from wholestack import __version__
from wholestack.cli.evals_goal import GOALS, stands_for
from wholestack.cli.output import print_json
from wholestack.errors import InputError
from wholestack.evals.curves import CurveReport, judge_curves
from wholestack.evals.gathering import read_checkpoints
from wholestack.evals.measured import directions_of
from wholestack.evals.proxies import proxy_notes
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins

Flag = Annotated[bool, Parameter(negative="")]
Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]


def curve(
    *inputs: str,
    x: str | None = None,
    by: Literal["content", "id"] = "content",
    metric: Names = (),
    higher: Names = (),
    lower: Names = (),
    out: Path | None = None,
    goals: Path = GOALS,
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Judge and draw the same checkpoints, or sizes, under several metrics on linear and logarithmic axes.

    Names the metric that makes a jump, and the curve that looks clean only because of its axes.

    Exit codes: 0 all smooth; 1 a metric jumps or is clean by its axes only; 3 too few checkpoints to tell; 2 usage,
    bad input, or results that do not belong together.

    Parameters
    ----------
    inputs
        A table (CSV, TSV or JSONL: one row a checkpoint, columns NAME and NAME_se), or X=FOLDER for each result
        folder of evals score (losses and accuracy) and of evals write (share_right, exact match), for instance
        10M=results/step-100. Folders of one purpose must be of the same items.
    x
        What the checkpoints are ordered by: the column of a table; default tokens, flops, parameters or step.
    by
        content: folders are of the same items where all that was read and judged by is the same. id: the prompts may
        differ.
    metric
        Metrics to look at; default every column of numbers.
    higher
        Metrics that are better when higher, where the name does not say it.
    lower
        Metrics that are better when lower, where the name does not say it.
    out
        Page to draw, for instance curve.html; needs matplotlib.
    goals
        Folder of all goals, for the note beside every metric.
    seed
        Of the simulations.
    json
        Print one JSON document.
    """
    found = read_checkpoints(inputs, x=x, by=by)
    wanted = directions_of(found.rows, wanted=metric, higher=higher, lower=lower, aside=found.x)
    report = judge_curves(found.rows, wanted, x=found.x, seed=seed)
    notes = proxy_notes(goals, (each.metric for each in report.curves))
    if out is not None:
        _draw(out, report, notes)
    if json:
        print_json({**to_builtins(report), "notes": notes, "page": str(out) if out else None})
    else:
        _print(report, notes)
        if out is not None:
            print(f"\npage: {out}")
    return {"ok": EXIT_OK, "warn": EXIT_FINDINGS, "unknown": EXIT_UNKNOWN}[report.status]


def _draw(out: Path, report: CurveReport, notes: dict[str, str]) -> None:
    try:
        from wholestack.report.metric_curves import write_curves
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise InputError("the page needs matplotlib", remedy="pip install 'wholestack[report]'") from error
    versions = {"Wholestack": __version__, "Python": platform.python_version()}
    write_curves(out, report, notes=notes, versions=versions)


def _print(report: CurveReport, notes: dict[str, str]) -> None:
    for line in report.conclusions:
        print(fill(f"- {line}", width=80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
    print(f"\n{'':<20}  {'on log x':<11}  {'on x':<11}  {'p':<7}  straight line")
    for each in report.curves:
        by_axis = {test.axis: test for test in each.jumps}
        shapes = [by_axis[axis].shape if axis in by_axis else "-" for axis in ("logarithmic", "linear")]
        p_value = each.jumps[0].p_value
        shown = "-" if p_value is None else f"{p_value:.2g}"
        print(f"{_cut(each.metric, 20):<20}  {shapes[0]:<11}  {shapes[1]:<11}  {shown:<7}  {each.straightness.look}")
    print(f"\np is of so much acceleration in a smooth curve, tested at {report.alpha:g} for each metric")
    print(stands_for(notes))


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 3]}..."
