"""``wholestack evals judgments``: what several people said of the same items."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from wholestack.cli.output import print_json
from wholestack.evals.items import find_items
from wholestack.evals.judgments.aggregate import Judgments, aggregate
from wholestack.evals.judgments.models.catalog import find_model
from wholestack.evals.judgments.reviewers import STANDINGS
from wholestack.evals.judgments.votes import read_table, read_votes
from wholestack.evals.layouts.catalog import read_questions
from wholestack.record import to_builtins

MOST_SHOWN = 20
SHORTEST = 60

app = App(
    name="judgments",
    help="What several people said of the same items: who is right, how sure that is, whom to believe.",
    help_format="plaintext",
    result_action="return_value",
)


@app.command(name="aggregate")
def aggregate_command(
    votes: Path,
    /,
    *,
    model: str = "dawid-skene",
    items: Path | None = None,
    labels: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    truth: Path | None = None,
    seed: int = 0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Infer each item's label and its probability from the votes of several reviewers, and what each reviewer is worth.

    Reviewers who do not look at the items, who say something else than they see, or who vote as others do are named
    (exit code 1). A tie is shown as one, and its label drawn.

    Parameters
    ----------
    votes
        A table with the columns item, reviewer (or worker) and label, one vote a line.
    model
        dawid-skene (each reviewer has a table of what they say of each true label), glad (able reviewers, easy items),
        or majority.
    items
        A file of items as for "evals score": votes on others are not counted, items without a vote are named.
    labels
        Labels that there are, if some were never given.
    truth
        A table with the columns item and truth: how often the result is right, and whether its probabilities are.
    seed
        Of drawn labels where there is a tie.
    json
        Print one JSON document.
    """
    known = [item.id for item in find_items(read_questions(items)).items] if items is not None else None
    judged = aggregate(
        read_votes(votes, items=known, labels=labels),
        find_model(model),
        seed=seed,
        truth=read_table(truth, "item", "truth") if truth is not None else None,
    )
    if json:
        document = to_builtins(judged)
        document["findings"] = [to_builtins(each) for each in judged.findings]
        print_json(document)
    else:
        _show(judged)
    return judged.exit_code


def _show(judged: Judgments) -> None:
    console = Console(width=max(SHORTEST, min(100, Console().width)), highlight=False, soft_wrap=False)
    with_votes = [each for each in judged.items.values() if each.votes]
    ties = sum(each.tie for each in with_votes)
    doubtful = sum(max(each.posterior.values()) < 0.9 for each in with_votes)
    console.print(
        f"{judged.votes:,} votes of {len(judged.reviewers):,} reviewers on {len(with_votes):,} items, by {judged.model}"
    )
    console.print(f"{doubtful:,} items below 90 % sure, {ties:,} of them tied" if doubtful else "every item 90 % sure")
    if judged.truth is not None:
        console.print(
            f"against {judged.truth.items:,} known labels: {judged.truth.accuracy:.1%} right, calibration error"
            f" {judged.truth.calibration_error:.3f}"
        )
    for reason, count in judged.ignored.items():
        console.print(f"{count:,} lines: {reason}")
    counts = {standing: 0 for standing in STANDINGS}
    for each in judged.reviewers.values():
        counts[each.standing] += 1
    console.print("reviewers: " + ", ".join(f"{count:,} {standing}" for standing, count in counts.items() if count))
    named = [each for each in judged.findings if each.status != "unknown"]
    if named:
        table = Table("reviewer", "standing", "evidence", box=None, pad_edge=False, header_style="bold")
        for finding in named[:MOST_SHOWN]:
            table.add_row(finding.subject, finding.cause, "; ".join(finding.evidence))
        console.print(table)
    if len(named) > MOST_SHOWN:
        console.print(f"and {len(named) - MOST_SHOWN:,} more: --json has all")
    for remedy in dict.fromkeys(finding.remedy for finding in named):
        console.print(f"  {remedy}", style="dim")
    for finding in judged.findings:
        if finding.check != "judgments.reviewer":
            console.print(f"unknown: {finding.evidence[0]}: {finding.remedy}")
