"""``wholestack evals contamination``: which items of a benchmark stand in training text."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from wholestack.cli.output import print_json
from wholestack.errors import InputError
from wholestack.evals.contamination.searching import Contamination, search, wanted_of
from wholestack.evals.layouts.catalog import layout_named, read_questions
from wholestack.health.cleaning import printable
from wholestack.record import to_builtins

MOST_SHOWN = 20


def contamination(
    *,
    train: Path,
    items: Path,
    layout: str | None = None,
    processes: int = 0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Look for a benchmark's questions in training text, and show what matched, where, and by which rule.

    The rules: exact (letter for letter but for spaces), normalised (the same words in the same order, whatever their
    case and signs), near (half of the question's own runs of five words, close together). Words that several questions
    share are a template's and do not count. What is not found may still be known, in other words or another language.

    Parameters
    ----------
    train
        A corpus or run of ours, a folder of files, or one file: JSON Lines or text, also .gz, .bz2, .xz and .zst.
    items
        Questions, as "evals score" reads them.
    layout
        How their rows are written, where it is not to be recognised.
    processes
        Files at a time; 0 for one a core.
    json
        Print one JSON document.
    """
    wanted, refused = wanted_of(read_questions(items, layout_named(layout) if layout else None))
    if not wanted:
        raise InputError(f"{items}: holds no item", remedy="name a file with questions")
    result = search(wanted, train, processes=processes or len(os.sched_getaffinity(0)))
    if json:
        document = to_builtins(result)
        document["refused"] = [to_builtins(each) for each in refused]
        print_json(document)
    else:
        _show(result, refused=len(refused))
    return result.exit_code


def _show(result: Contamination, *, refused: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{result.checked:,} of {result.items:,} questions looked for in {result.documents:,} documents"
        f" ({result.characters:,} characters)"
    )
    if refused:
        console.print(f"{refused:,} rows are no questions")
    counts = ", ".join(f"{count:,} {rule}" for rule, count in result.flagged.items())
    console.print(f"found, by the strictest rule that holds: {counts}")
    findings = result.findings
    shown = [each for each in findings if each.status != "unknown"][:MOST_SHOWN]
    for each in shown:
        console.print(Text(f"{each.cause:10}  {printable(each.subject)}  {printable(each.part)}", style="bold"))
        for line in each.evidence:
            console.print(Text(f"    {printable(line)}"))
    left = sum(result.flagged.values()) - len(shown)
    if left:
        console.print(f"and {left:,} more questions: --json has all")
    if shown:
        console.print(Text(shown[0].remedy, style="dim"))
    for each in findings:
        if each.status == "unknown":
            console.print(Text("unknown: " + "; ".join(printable(line) for line in each.evidence)))
