"""``wholestack evals goal``: write down what is really wanted, and what was measured of it."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Annotated, Literal

from cyclopts import App, Parameter

from wholestack.cli.output import print_json
from wholestack.errors import InputError
from wholestack.evals.goals import (
    Goal,
    goals_in,
    make_goal,
    measure_goal,
    outdated,
    read_definitions,
    read_goal,
    read_measurements,
    set_goal,
    standard_error,
    targets,
)
from wholestack.evals.measured import read_share_right
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]
GOALS = Path("goals")

app = App(
    name="goal",
    help="Write down what is really wanted, before any cheap number is believed.",
    help_format="plaintext",
    result_action="return_value",
)


@app.command(name="set")
def set_(
    name: str,
    /,
    *,
    measure: str,
    better: Literal["higher", "lower"],
    matters: float,
    unit: str = "",
    how: str = "",
    by: str = "",
    goals: Path = GOALS,
    json: Json = False,
) -> int:
    """Record a goal, or change it: the target measure, even a costly or rare one.

    Parameters
    ----------
    name
        Short name, for instance accepted.
    measure
        The target in words, for instance "share of outputs that reviewers accept unchanged".
    better
        Direction of the measure.
    matters
        Smallest difference that would change a decision, in the unit of the measure.
    unit
        Unit; leave it out for shares.
    how
        How it is measured.
    by
        Who measures it.
    goals
        Folder of all goals.
    json
        Print one JSON document.
    """
    goal = make_goal(
        name, measure=measure, better=better, matters=matters, unit=unit, how=how, by=by, set_at=time.time()
    )
    before = set_goal(goals, goal)
    left = outdated(goals / name)
    if json:
        print_json({"goal": to_builtins(goal), "replaced": to_builtins(before) if before else None, "outdated": left})
        return EXIT_OK
    print(f"{'changed' if before else 'recorded'} in {goals / name}")
    _print_goal(goal)
    if left:
        print(f"{left} measurements were made under another definition and do not count for this one.")
    return EXIT_OK


@app.command
def measure(
    name: str,
    model: str,
    value: float | None = None,
    /,
    *,
    written: Annotated[Path | None, Parameter(name="--from")] = None,
    error: float | None = None,
    n: int | None = None,
    date: datetime | None = None,
    note: str = "",
    goals: Path = GOALS,
    json: Json = False,
) -> int:
    """Add one measurement of the target.

    Parameters
    ----------
    name
        Name of the goal.
    model
        Model or setting, under the name that its proxies have too.
    value
        The target measure; or --from.
    written
        Instead of a value: a result folder of wholestack evals write, whose share of right answers is the target,
        with its error.
    error
        Standard error; for a share it follows from n.
    n
        Things measured, for instance outputs that were judged.
    date
        When it was measured, for instance 2026-11-29; default now.
    note
        Anything that a reader should know.
    goals
        Folder of all goals.
    json
        Print one JSON document.
    """
    at = time.time() if date is None else date.replace(tzinfo=date.tzinfo or UTC).timestamp()
    if written is not None:
        if value is not None or error is not None or n is not None:
            raise InputError("--from brings value, error and n with it", remedy="give one of them")
        found = read_share_right(written)
        value, error, n, note = found.value, found.error, found.n, note or f"share of right answers of {written}"
    if value is None:
        raise InputError("what was measured?", remedy="give the value, or --from FOLDER")
    made = measure_goal(goals / name, model, value, error=error, n=n, note=note, at=at)
    known = targets(goals / name)
    if json:
        print_json({"measurement": to_builtins(made), "models": len(known)})
    else:
        print(f"{name}: {made.model} {_with_error(made.value, standard_error(made))}; {_models(len(known))} measured")
    return EXIT_OK


@app.command
def show(name: str | None = None, /, *, goals: Path = GOALS, json: Json = False) -> int:
    """Show a goal with its measurements and what was sealed about it; without a name, all goals.

    Exit codes: 0 ok; 3 no goal is recorded.

    Parameters
    ----------
    name
        Name of the goal.
    goals
        Folder of all goals.
    json
        Print one JSON document.
    """
    names = [name] if name else goals_in(goals)
    if json:
        print_json({"goals": [_document(goals / each) for each in names]})
    elif not names:
        print(f"no goal is recorded in {goals}: record one with wholestack evals goal set")
    else:
        for place, each in enumerate(names):
            if place:
                print()
            _print_all(goals / each)
    return EXIT_OK if names else EXIT_UNKNOWN


def goal_folder(goals: Path, name: str | None) -> Path:
    """Folder of the goal that a command means: by its name, or the only one there is.

    Raises:
        InputError: there is none, or more than one to choose from.
    """
    if name is not None:
        read_goal(goals / name)
        return goals / name
    known = goals_in(goals)
    if len(known) == 1:
        return goals / known[0]
    if not known:
        raise InputError(f"no goal is recorded in {goals}", remedy="record one first: wholestack evals goal set")
    raise InputError(f"{goals} holds {len(known)} goals", remedy=f"name one with --goal: {', '.join(known)}")


def stands_for(notes: Mapping[str, str]) -> str:
    """What metrics stand for, as it is printed beside them, 80 columns wide; what holds of all is said once.

    Args:
        notes: By metric, from :func:`wholestack.evals.proxies.proxy_notes`.
    """
    metrics_of: dict[str, list[str]] = {}
    for metric, note in notes.items():
        metrics_of.setdefault(note, []).append(metric)
    *few, most = sorted(metrics_of.values(), key=len)
    if few:
        last = "the others" if len(most) > 1 else most[0]
        heads = [*(f"  {', '.join(each)}" for each in few), f"  {last}"]
        lines = ["what these numbers stand for:"]
        lines += [f"{head}: {notes[each[0]]}" for head, each in zip(heads, [*few, most], strict=True)]
    else:
        lines = [f"what {'this number stands' if len(most) == 1 else 'these numbers stand'} for: {notes[most[0]]}"]
    return "\n".join(
        fill(line, width=80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False) for line in lines
    )


def _document(path: Path) -> dict[str, object]:
    definitions = read_definitions(path)
    return {
        "goal": to_builtins(definitions[-1]),
        "definition": definitions[-1].definition,
        "earlier": [to_builtins(each) for each in definitions[:-1]],
        "measurements": [to_builtins(each) for each in read_measurements(path)],
        "outdated": outdated(path),
        "targets": [to_builtins(each) for each in targets(path)],
    }


def _print_all(path: Path) -> None:
    definitions = read_definitions(path)
    goal = definitions[-1]
    _print_goal(goal)
    if len(definitions) > 1:
        print(f"  changed    {len(definitions) - 1} times, first set {_day(definitions[0].set_at)}")
    known = sorted(targets(path), key=lambda each: each.value, reverse=goal.better == "higher")
    print(f"  measured   {_models(len(known))}{', best first' if len(known) > 1 else ''}")
    width = max((len(each.model) for each in known), default=0)
    for each in known:
        times = f", {each.measurements} times" if each.measurements > 1 else ""
        print(f"    {each.model:<{width}}  {_with_error(each.value, each.error):<18}  {_day(each.first_at)}{times}")
    if left := outdated(path):
        print(f"  {left} measurements of another definition do not count")


def _print_goal(goal: Goal) -> None:
    print(f"goal {goal.name}: {goal.measure}")
    unit = f" {goal.unit}" if goal.unit else ""
    print(f"  better     {goal.better}; a difference of {goal.matters:g}{unit} matters")
    print(f"  how        {goal.how or 'nobody has said'}")
    print(f"  by         {goal.by or 'nobody has said'}")


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.4g}" if error is None else f"{value:.4g} ± {error:.2g}"


def _models(count: int) -> str:
    return f"{count} model{'' if count == 1 else 's'}"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
