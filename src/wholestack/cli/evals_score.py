"""``wholestack evals score``: one pass of one model over one file of items, and every number with its uncertainty."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten, wrap
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from wholestack.cli.evals_goal import GOALS, stands_for
from wholestack.cli.evals_model import COMPUTING, ModelOptions
from wholestack.cli.evals_progress import ScoringWatcher
from wholestack.cli.output import print_json
from wholestack.cli.typed import typed
from wholestack.errors import InputError
from wholestack.evals.backend import Expense
from wholestack.evals.calibration import Calibration, TemperatureFit
from wholestack.evals.detectable import detectable_before_scoring
from wholestack.evals.items import ItemSet
from wholestack.evals.proxies import proxy_notes
from wholestack.evals.results import PER_ITEM_FILE, Result, items_left, score_into
from wholestack.evals.scores import Metric
from wholestack.evals.shots import Shots
from wholestack.evals.tasks import PURPOSES, Task, changed_files, open_task, pose
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins

Flag = Annotated[bool, Parameter(negative="")]
WIDTH = 80
CALIBRATION_WORDS = (
    "  error: how far the share of right answers is from the confidence, on average;",
    "  if calibrated: what error so many items give a model that is calibrated;",
    "  temperature: divides the scores, fitted on half of the items; loss before and",
    "  after it: nats an item of the other half; area: accuracy on average over all",
    "  shares of items that are answered, the surest first",
)
"""Below the table of calibration: what its columns are."""
REFUSALS_SHOWN = 8


def score(
    items: Path,
    *,
    model: str,
    task: str | None = None,
    layout: str | None = None,
    template: str | None = None,
    delimiter: str | None = None,
    letters: Flag = False,
    shots: int | None = None,
    shots_from: Path | None = None,
    shots_seed: int | None = None,
    limit: int | None = None,
    out: Path = Path("results"),
    computing: ModelOptions = COMPUTING,
    goals: Path = GOALS,
    estimate: Flag = False,
    json: Flag = False,
) -> int:
    """Score a model on a file of items.

    Before anything runs it says how many items can be used, the smallest difference between two models that they
    can show, and what the scoring will take. An interrupted scoring goes on where it was when the same command is
    given again; one that is complete is read and not done again.

    Exit codes: 0 scored (items that could not be are counted and said); 3 nothing could be scored; 2 usage or bad
    input; 130 interrupted.

    Parameters
    ----------
    items
        JSONL file: id, context, choices, gold (index or text), optional group, source, delimiter; or a public
        layout, recognised by its fields.
    model
        A local Hugging Face folder, a GGUF file, smollm2, a checkpoint or run of pretrain, the URL of an
        endpoint, memory (knows nothing: the score of chance) or memory:FILE (byte n-grams of a file).
    task
        What is asked and how: a .toml or .json file, or a name that is built in, such as mmlu-letters.
    layout
        How the rows are written, where it is not to be recognised.
    template
        The context, with the texts of a question in braces, such as "{question}\\nAnswer:"; \\n is a new line.
    delimiter
        Stands between context and choice, scored with the choice; \\n is a new line.
    letters
        Score the letters A, B, ... of the template's {options} instead of the choices' texts.
    shots
        Examples in front of every item; never the item itself or one of its group.
    shots_from
        File of the examples, in the same layout.
    shots_seed
        Which examples, and in which order.
    limit
        At most so many questions, unscorable ones among them, drawn by their ids: not the first.
    out
        Folder of results.
    goals
        Folder of all goals, for the note on what a metric stands for.
    estimate
        Say what it would take, and stop.
    json
        Print one JSON document.
    """
    asked = _task(
        task,
        layout=layout,
        template=None if template is None else typed(template),
        delimiter=None if delimiter is None else typed(delimiter),
        letters=letters,
        shots=shots,
        shots_seed=shots_seed,
    )
    item_set = pose(items, asked, shots_from=shots_from, limit=limit)
    backend = computing.open(model)
    left = items_left(out, items.stem, backend.identity, item_set)
    if left:
        print("counting tokens and timing some items, for the estimate ...", file=sys.stderr)
    expense = backend.expense(left) if left else None
    print(_before(item_set, expense), file=sys.stderr)
    if estimate:
        if json:
            print_json(_announced(item_set, expense))
        return EXIT_OK
    with ScoringWatcher(sys.stderr) as watcher:
        result = score_into(backend, item_set, out, stem=items.stem, watch=watcher)
    changed = [str(path) for path in changed_files(item_set)]
    for path in changed:
        print(f"{path}: was changed since it was read; the scores are of the items as they were", file=sys.stderr)
    notes = proxy_notes(goals, (metric.name for metric in result.summary.metrics))
    if json:
        print_json(_document(result) | {"stands_for": notes, "changed_since_read": changed})
    else:
        _show(result, notes)
    return EXIT_OK if result.summary.scored else EXIT_UNKNOWN


def _task(
    name: str | None,
    *,
    layout: str | None,
    template: str | None,
    delimiter: str | None,
    letters: bool,
    shots: int | None,
    shots_seed: int | None,
) -> Task:
    """The named task with what the options change of it; without a name, the layout's own."""
    task = open_task(name) if name else Task(name=layout or "")
    if task.purpose != "base" or task.writing is not None:
        raise InputError(f"in task {task.name} the model writes", remedy="run it with wholestack evals write")
    changes: dict[str, object] = {
        key: value
        for key, value in (("layout", layout), ("template", template), ("delimiter", delimiter))
        if value is not None
    }
    if letters:
        changes["answers"] = "letters"
    if shots is not None or shots_seed is not None:
        known = task.shots or Shots(count=0)
        changes["shots"] = replace(
            known,
            count=known.count if shots is None else shots,
            seed=known.seed if shots_seed is None else shots_seed,
        )
    return replace(task, **changes)  # type: ignore[arg-type]  # names and types stand above


def _before(item_set: ItemSet, expense: Expense | None) -> str:
    """What is known before anything runs; the expense is that of what is left."""
    manifest = item_set.manifest
    refused = manifest.passed_over
    groups = len({item.cluster for item in item_set.items})
    lines = [f"{len(item_set.items):,} items in {groups:,} groups, layout {manifest.task['layout']}"]
    if refused:
        lines[0] += f"; {sum(refused.values()):,} unscorable:"
        lines += [f"  {count:,}  {reason}" for reason, count in refused.items()]
        for each in item_set.refusals[:REFUSALS_SHOWN]:
            lines.append(shorten(f"    line {each.line}: {each.detail}", WIDTH, placeholder=" ..."))
        if len(item_set.refusals) > REFUSALS_SHOWN:
            lines.append(f"    and {len(item_set.refusals) - REFUSALS_SHOWN:,} more (--estimate --json lists all)")
    lines.append(_detectable(len(item_set.items), groups))
    lines.append(_expense(expense) if expense else "expense: none, every item has its score from before")
    shots = manifest.task.get("shots")
    if shots:
        lines.insert(1, f"{shots['count']} examples in front of each, seed {shots['seed']}")
    return "\n".join(lines)


def _announced(item_set: ItemSet, expense: Expense | None) -> dict[str, object]:
    """The same as a document."""
    groups = len({item.cluster for item in item_set.items})
    return {
        "items": len(item_set.items),
        "groups": groups,
        "unscorable": item_set.manifest.passed_over,
        "refused": [to_builtins(each) for each in item_set.refusals],
        "detectable": [
            to_builtins(each) for each in detectable_before_scoring(items=len(item_set.items), clusters=groups)
        ],
        "expense": to_builtins(expense) if expense else None,
    }


def _detectable(items: int, groups: int) -> str:
    """What can be known before: nothing of these two models, so the assumption stands beside the number."""
    found = detectable_before_scoring(items=items, clusters=groups)
    if not found:
        return "smallest difference between two models to be seen: none, all items are one group"
    lines = [
        f"smallest difference between two models to be seen (power {found[0].power:.0%}, level {found[0].level:g}):"
    ]
    for each in found:
        name, _, unit = each.metric.partition(", ")
        lines.append(f"  {name:<12} {each.difference:.3g} {unit}")
        lines += wrap(each.basis, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def _expense(expense: Expense) -> str:
    parts = [f"{expense.requests:,} requests", f"{expense.prompt_tokens:,} tokens to read"]
    if expense.written_tokens:
        parts.append(f"{expense.written_tokens:,} to write")
    parts.append("time unknown" if expense.seconds is None else f"about {_duration(expense.seconds)}")
    if expense.usd:
        parts.append(f"about {expense.usd:.2f} USD")
    return f"expense: {', '.join(parts)}" + (f" ({expense.basis})" if expense.basis else "")


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def _document(result: Result) -> dict[str, object]:
    summary, task = result.summary, result.task
    return {
        "metrics": summary.flat(),
        "items": summary.items,
        "scored": summary.scored,
        "unscorable": summary.unscorable,
        "per_item": str(result.folder / PER_ITEM_FILE),
        "calibration": [to_builtins(each) for each in summary.calibrations],
        "truncated": summary.truncated,
        "spanning": summary.spanning,
        "purpose": task.purpose if task else "",
        "task": task.name if task else "",
        "item_set": result.item_set.digest,
        "key": result.plan.key,
        "model": to_builtins(result.identity) | {"digest": result.identity.digest},
        "folder": str(result.folder),
    }


def _show(result: Result, notes: Mapping[str, str]) -> None:
    """At most 80 columns, one purpose, every number with its error."""
    summary, task = result.summary, result.task
    console = Console(width=min(WIDTH, Console().width), highlight=False, markup=False)
    console.print(f"\n{PURPOSES[task.purpose] if task else 'no task'}", style="bold")
    console.print(f"{result.identity.name} on {task.name if task else 'items'}[{result.item_set.digest[:8]}]")
    console.print(f"{summary.scored:,} of {summary.items:,} items scored")
    for reason, count in summary.unscorable.items():
        console.print(f"  unscorable: {count:,}  {reason}")
    if summary.truncated:
        console.print(f"  {summary.truncated:,}  with the context cut on the left")
    if summary.spanning:
        console.print(f"  {summary.spanning:,}  with a token across context and choice, scored with the choice")
    if summary.metrics:
        console.print()
        console.print(_table(summary.metrics))
        console.print()
        console.print(_calibration(summary.calibrations))
        for line in CALIBRATION_WORDS:
            console.print(line)
        console.print()
        console.print(stands_for(notes))
    console.print(f"\nkept in {result.folder}", soft_wrap=True)


def _table(metrics: Sequence[Metric]) -> Table:
    """Every metric; calibration errors stand in a table of their own, beside what chance would give."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("metric")
    for heading in ("value", "± error", "95 % interval"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    for metric in metrics:
        if not metric.name.startswith("ece_"):
            table.add_row(
                metric.name,
                f"{metric.value:.4f}",
                "" if metric.standard_error is None else f"{metric.standard_error:.4f}",
                "" if metric.interval is None else f"{metric.interval.low:.4f} to {metric.interval.high:.4f}",
                metric.unit,
            )
    return table


def _calibration(calibrations: Sequence[Calibration]) -> Table:
    """One row a normalisation; the temperature was fitted on one half and is judged on the other."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("calibration")
    for heading in ("error", "if calibrated", "temperature", "loss before", "after", "area"):
        table.add_column(heading, justify="right")
    for each in calibrations:
        fit = each.temperature
        table.add_row(
            each.normalisation,
            f"{each.ece:.4f}",
            f"{each.ece_if_calibrated:.4f}",
            *(("none", "", "") if fit is None else _of_fit(fit)),
            f"{each.abstention.area:.4f}",
        )
    return table


def _of_fit(fit: TemperatureFit) -> tuple[str, str, str]:
    return f"{fit.temperature:.3g}", f"{fit.nll_before_nats:.4f}", f"{fit.nll_after_nats:.4f}"
