"""``wholestack codetasks``: questions about programs that nobody has seen."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli.evals_progress import ScoringWatcher
from wholestack.cli.output import print_json
from wholestack.codetasks.generating import cells_of, generate
from wholestack.errors import InputError
from wholestack.finding import EXIT_OK
from wholestack.sandbox import Sandbox

Json = Annotated[bool, Parameter(negative="")]

app = App(
    name="codetasks",
    help="Questions about programs that nobody has seen, answered by running them.",
    help_format="plaintext",
    result_action="return_value",
)


@app.command(name="generate")
def generate_command(
    *,
    out: Path,
    count: int = 1000,
    seed: int = 0,
    difficulty: str = "1-10",
    kind: tuple[str, ...] = (),
    processes: int = 1,
    json: Json = False,
) -> int:
    """Write a file of distinct questions; the same seed gives the same file on every machine.

    Parameters
    ----------
    out
        File to write, one JSON object a line, as `wholestack evals score` reads it; it must not exist.
    count
        How many questions.
    seed
        Of the whole file, 0 or more.
    difficulty
        A level from 1 to 10, or a range such as 3-6, whose levels take turns.
    kind
        eval, trace, outcome, cloze or branch; may be given several times; without it all take turns.
    processes
        Sandboxed processes at one time; changes nothing but the time.
    json
        Print one JSON document.
    """
    cells = cells_of(kind, _levels(difficulty))
    with ScoringWatcher() as watcher:
        tally = generate(
            out,
            cells,
            count=count,
            seed=seed,
            run=Sandbox.open().run,
            processes=processes,
            progress=lambda now: watcher(now.written, now.wanted),
        )
    refused = dict(tally.refused.most_common())
    if json:
        print_json({"file": str(out), "items": tally.written, "drafts": tally.drafted, "refused": refused})
    else:
        print(f"{out}: {tally.written:,} questions from {tally.drafted:,} drafts")
        for reason, times in refused.items():
            print(f"  {times:>8,} refused: {reason}")
    return EXIT_OK


def _levels(text: str) -> range:
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text.strip())
    if not found or int(found[2] or found[1]) < int(found[1]):
        raise InputError(f"difficulty {text!r} is neither a level nor a range", remedy="write for instance 4 or 3-6")
    return range(int(found[1]), int(found[2] or found[1]) + 1)
