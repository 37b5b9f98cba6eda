"""``wholestack evals compare``: which model is better on the same items, and whether that can be seen."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from wholestack.cli.evals_comparing import comparison_text, verdict_text
from wholestack.cli.evals_goal import GOALS, stands_for
from wholestack.cli.output import print_json
from wholestack.evals.comparison import ITEMS_SHOWN, Comparison, compare_results
from wholestack.evals.loading import load_scored
from wholestack.evals.proxies import proxy_notes
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]


def compare(
    *results: Path,
    metric: str = "",
    by: Literal["content", "id"] = "content",
    common: Json = False,
    cluster: str = "",
    shown: int = ITEMS_SHOWN,
    goals: Path = GOALS,
    json: Json = False,
) -> int:
    """Say which model is better on the same items, by how much, and whether these items can show it.

    Exit codes: 0 every pair is decided or equal on every item; 3 some pair cannot be told apart; 2 usage, bad input,
    or results that may not be compared.

    Parameters
    ----------
    results
        Two or more result folders of wholestack evals score or of lm-evaluation-harness with --log_samples; or two
        or more of wholestack evals write (where one was judged in several ways, its metrics-*.json that is meant).
        Never both kinds: a score over given choices and one of written answers are different measures.
    metric
        answer_bpb (default), answer_bpb_macro, or accuracy, choice_nll or brier, alone (raw) or with _per_byte,
        _per_token or _per_char; of written answers share_right.
    by
        content: items are the same where all that was read and judged by is the same. id: the prompts may differ, for
        instance with and without examples in front; choices and right answers may not.
    common
        Compare the items in common where the results are of different items.
    cluster
        For lm-evaluation-harness: field of the documents whose equal values are not independent.
    shown
        Most items listed for a pair.
    goals
        Folder of all goals, for the note on what the metric stands for.
    json
        Print one JSON document.
    """
    found = compare_results(
        [load_scored(each, cluster=cluster) for each in results],
        metric=metric,
        by=by,
        common=common,
        shown=max(0, shown),
    )
    notes = proxy_notes(goals, [found.metric])
    if json:
        texts = [verdict_text(found, pair) for pair in found.pairs]
        print_json(to_builtins(found) | {"verdicts": texts, "stands_for": notes})
    else:
        print(f"{comparison_text(found)}\n\n{stands_for(notes)}")
    return _code(found)


def _code(found: Comparison) -> int:
    return EXIT_UNKNOWN if any(pair.verdict == "unknown" for pair in found.pairs) else EXIT_OK
