"""``wholestack codetasks``: questions about programs that nobody has seen."""

import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli.evals_progress import ScoringWatcher
from wholestack.cli.output import findings_document, print_json
from wholestack.codetasks.checking import check_file
from wholestack.codetasks.freshness import Program, freshness, freshness_findings
from wholestack.codetasks.generating import Tally, cells_of, generate
from wholestack.codetasks.guessing import guess_by_cell
from wholestack.codetasks.item import CodeItem, read_items, training_line
from wholestack.codetasks.reasons import meaning
from wholestack.codetasks.writing import write_new
from wholestack.data.training_text import training_texts
from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, Finding, exit_code, worst
from wholestack.record import to_builtins
from wholestack.sandbox import Sandbox

Json = Annotated[bool, Parameter(negative="")]

_MOST_LINES = 20

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
    kind: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    processes: int = 1,
    json: Json = False,
) -> int:
    """Write a file of distinct questions; the same seed gives the same file on every machine.

    The file appears when it is whole. Interrupted, killed or ended by an error such as a full disk, the same command
    goes on where it was: what it has lies beside the file, in .NAME.tmp, and the bytes come out the same as long as
    nobody changes that (what is left is looked at by hash, seed and order, and not all made again; `codetasks check`
    does that). Lines that a command of another seed, kind or difficulty left there, or more than --count of them, are
    dropped, and their number is said. Exit code 0 if it is written, 2 if it could not be, 130 interrupted.

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
        eval, trace, outcome, cloze or branch, or several: --kind eval,trace, or --kind eval --kind trace. They take
        turns; without it all do.
    processes
        Sandboxed processes at one time; changes nothing but the time.
    json
        Print one JSON document.
    """
    kinds = [name.strip() for each in kind for name in each.split(",")]
    cells = cells_of(kinds, _levels(difficulty))
    told: list[int] = []

    def tell(now: Tally) -> None:
        if now.dropped and not told:
            told.append(now.dropped)
            print(f"{out}: lines that another command left there, dropped: {now.dropped:,}", file=sys.stderr)
        watcher(now.written, now.wanted)

    with ScoringWatcher(sys.stderr) as watcher:
        tally = generate(
            out,
            cells,
            count=count,
            seed=seed,
            run=Sandbox.open().run,
            processes=processes,
            progress=tell,
        )
    refused = dict(tally.refused.most_common())
    if json:
        print_json({"file": str(out), "items": tally.written, "drafts": tally.drafted, "refused": refused})
    else:
        print(f"{out}: {tally.written:,} questions from {tally.drafted:,} drafts")
        if refused:
            print("Drafts that gave no question; this is usual, others were drawn in their place:")
        for reason, times in refused.items():
            print(f"  {times:>8,} refused: {': '.join(filter(None, (reason, meaning(reason))))}")
    return EXIT_OK


@app.command
def check(file: Path, /, *, against: Path | None = None, processes: int = 1, json: Json = False) -> int:
    """Make every question again from its seed, run it, and compare; say which line is not what it should be.

    Every line is proved by itself: which lines were taken, and in which order, is not.

    A line that is not proved is named with a cause. fail: changed (it is not what was written), foreign (its seed gives
    something else), repeated (the question stands there before). unknown: version (made by another grammar), kind (of a
    package that is not installed), python (this Python may give something else).

    With --against a program is found word for word (seen: fail), or nearly (nearly seen: warn): one document holds at
    least half of the program's runs of five words, whatever their case, spaces and signs. Short programs, of low
    difficulty, come near to others by chance; word for word they do not. Text that could not be read is unknown.

    Exit code 0 if every line is proved (and with --against fresh), 1 if one is not, 3 if one could not be told.

    Parameters
    ----------
    file
        As `codetasks generate` writes it.
    against
        Training text in which the questions' programs must not stand: a corpus or run of ours (its training split), a
        folder of text and JSON files, or one such file.
    processes
        Sandboxed processes at one time.
    json
        Print one JSON document.
    """
    run = Sandbox.open().run
    programs: list[Program] = []

    def keep(item: CodeItem) -> None:
        programs.append(Program(item.id, item.program))

    with ScoringWatcher(kept=False) as watcher:
        checked = check_file(
            file, run, processes=processes, progress=watcher, decoded=None if against is None else keep
        )
    found = list(checked.findings)
    document: dict[str, object] = {
        "items": checked.items,
        "proved": checked.proved,
        "refused": checked.refused,
        "unknown": checked.unknown,
    }
    lines = [
        f"{file}: {checked.items:,} questions, {checked.proved:,} proved (made again from their seeds and run twice), "
        f"{checked.refused:,} refused, {checked.unknown:,} unknown",
    ]
    if against is not None:
        print(f"comparing with {against}", file=sys.stderr)
        fresh = freshness(programs, training_texts(against))
        found += freshness_findings(file, fresh)
        document["freshness"] = {
            "documents": fresh.documents,
            "characters": fresh.characters,
            "exact": fresh.exact,
            "near": fresh.near,
            "unread": fresh.unread,
        }
        lines.append(
            f"{against}: {fresh.documents:,} documents, {fresh.characters:,} characters: "
            f"{fresh.exact:,} of the programs stand there word for word, {fresh.near:,} nearly "
            "(half of their runs of five words, or more)"
        )
    if json:
        print_json(document | findings_document(found, status=worst(found) if found else "ok"))
    else:
        print("\n".join(lines))
        for each in sorted(found, key=_first_to_read)[:_MOST_LINES]:
            print(f"{each.status:<8} {each.part or each.subject}: {each.cause}: {'; '.join(each.evidence)}")
        if len(found) > _MOST_LINES:
            print(f"and {len(found) - _MOST_LINES:,} more: --json has them")
        for cause, remedy in dict.fromkeys((each.cause, each.remedy) for each in found if each.remedy):
            print(f"what to do, {cause}: {remedy}")
    return exit_code(found)


@app.command
def text(file: Path, /, *, out: Path, json: Json = False) -> int:
    """Write questions with their right answers as training text, one document a question.

    For questions of another seed than those that measure: `codetasks check MEASURE --against TEXT` says whether any
    stands in both.

    Parameters
    ----------
    file
        As `codetasks generate` writes it.
    out
        JSON Lines with `text` and `licence`, a source of a recipe (kind "jsonl"); it must not exist.
    json
        Print one JSON document.
    """
    items = read_items(file)
    write_new(out, map(training_line, items))
    if json:
        print_json({"file": str(out), "documents": len(items)})
    else:
        print(f"{out}: {len(items):,} documents")
    return EXIT_OK


@app.command(name="guess")
def guess_command(file: Path, /, *, json: Json = False) -> int:
    """Guess the answers without reading the programs, to see that nothing else gives them away.

    A logistic regression on the choices' form and on the wording of the questions, cross-validated, for each kind and
    level, on questions that it has not learnt from. Of each group: given away (it is right more often than chance by
    more than two points, beyond doubt), chance (it is within two points of chance, beyond doubt), or unknown (too few
    questions to tell). Exit code 1 if anything is given away, 3 if something is unknown, 0 if all are at chance.

    Parameters
    ----------
    file
        As `codetasks generate` writes it; 10,000 questions of one kind and level tell a point from chance.
    json
        Print one JSON document.
    """
    found = guess_by_cell(read_items(file))
    if json:
        rows = [to_builtins(row) | {"verdict": row.verdict} for row in found.rows]
        print_json({"verdict": found.verdict, "rows": rows, "left_out": list(found.left_out)})
    else:
        print(f"{'kind':<10}{'level':>6}{'features':>10}{'items':>8}{'right':>8}   95 % interval")
        for row in found.rows:
            print(
                f"{row.kind:<10}{row.difficulty or 'all':>6}{row.features:>10}{row.items:>8,}{row.accuracy:>8.3f}   "
                f"{row.low:.3f} to {row.high:.3f}   {row.verdict}"
            )
        for line in found.left_out[:_MOST_LINES]:
            print(f"left out: {line}")
        print("form: the guesser sees the choices alone; context: also how the question is worded; never the program.")
        print(f"right: share that it called right; chance is {found.rows[0].chance:.3f}, one in the number of choices.")
        if found.verdict == "given away":
            print("given away: it is right too often; an accuracy on these questions is not that of reading programs.")
        if found.verdict == "unknown":
            print("unknown: too few questions to tell within two points; 10,000 of a kind and level are enough.")
    return {"given away": EXIT_FINDINGS, "chance": EXIT_OK, "unknown": EXIT_UNKNOWN}[found.verdict]


def _first_to_read(found: Finding) -> tuple[int, int]:
    """Sorts what is worst first, and of that what most is known about, such as what a program does."""
    return ("fail", "warn", "unknown", "ok").index(found.status), -len(found.evidence)


def _levels(text: str) -> range:
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text.strip())
    if not found or int(found[2] or found[1]) < int(found[1]):
        raise InputError(f"difficulty {text!r} is neither a level nor a range", remedy="write for instance 4 or 3-6")
    return range(int(found[1]), int(found[2] or found[1]) + 1)
