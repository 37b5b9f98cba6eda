"""``wholestack evals write``: a model writes, the answer is taken out and judged, and the judge is tried as well."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from wholestack.cli.evals_model import COMPUTING, ModelOptions
from wholestack.cli.evals_progress import ScoringWatcher
from wholestack.cli.output import print_json
from wholestack.cli.typed import typed
from wholestack.errors import InputError
from wholestack.evals.backend import Expense, Writing
from wholestack.evals.shots import Shots
from wholestack.evals.tasks import PURPOSES, Task, open_task
from wholestack.evals.written.answering import Written, prompts_left, write_into
from wholestack.evals.written.checkers import checker_named
from wholestack.evals.written.controls import Controls, GraderError, Rate, measure_grader, read_labelled, try_controls
from wholestack.evals.written.extraction import extraction_named
from wholestack.evals.written.grading import Grader
from wholestack.evals.written.judging import WrittenMetrics, graded_path, judge_into
from wholestack.evals.written.questions import QuestionSet, read_questions, with_examples
from wholestack.evals.written.summary import WrittenScores
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins

Flag = Annotated[bool, Parameter(negative="")]
Stops = Annotated[tuple[str, ...], Parameter(negative="")]
WIDTH = 80
MAX_TOKENS = 256
WITHOUT_ANSWERS = {"regex": "patterns", "json_schema": "schemas"}
"""Checkers whose right answers are none that could be shown."""
NOTHING_LEFT = "every text is there from before, nothing is asked for"


def write(
    questions: Path,
    *,
    model: str,
    task: str | None = None,
    purpose: Literal["reasoning", "usefulness"] | None = None,
    extract: str | None = None,
    check: str | None = None,
    gold: str | None = None,
    template: str | None = None,
    delimiter: str | None = None,
    shots: int | None = None,
    shots_from: Path | None = None,
    shots_seed: int | None = None,
    max_tokens: int | None = None,
    stop: Stops = (),
    temperature: float | None = None,
    seed: int | None = None,
    samples: int = 1,
    labelled: Path | None = None,
    limit: int | None = None,
    out: Path = Path("results"),
    computing: ModelOptions = COMPUTING,
    estimate: Flag = False,
    json: Flag = False,
) -> int:
    """Let a model write behind the prompts of a file, and judge what it wrote.

    The right share comes with its interval; texts without an answer are counted by reason and never credited with
    chance. The rule and the checker are tried on the same questions with right answers and with cheats. An
    interrupted writing goes on where it was when the same command is given again; judging the same texts by another
    rule writes nothing anew.

    Exit codes: 0 judged; 3 no text has a verdict; 2 usage or bad input; 130 interrupted.

    Parameters
    ----------
    questions
        JSONL file: prompt (or question) and answer (or gold), optional id, group, choices.
    model
        As for wholestack evals score; an endpoint needs no log-probabilities.
    task
        A .toml or .json file with purpose, template, writing, extraction and checker; options below go before it.
    purpose
        reasoning: the model writes before it answers. usefulness: a checker says whether a task was done.
    extract
        How the answer is taken out: text, last_number, letter, marker:####, boxed, json:KEY, regex:PATTERN.
    check
        How it is judged: exact, exact:casefold, number, number:0.01, number:1%, contains, regex, json_schema,
        python:module:function.
    gold
        Rule that takes the right answer out of the file's answer, such as marker:#### for GSM8K.
    template
        Text round the prompt, with {prompt} and {choices} in it; \\n is a new line.
    delimiter
        Stands between an example and its answer; default one space.
    shots
        Examples in front of every question, with their answers as the file has them; never the question itself or
        one of its group. Say --stop too, or a model goes on with questions of its own.
    shots_from
        File of the examples, in the same form as the questions.
    shots_seed
        Which examples, and in which order.
    max_tokens
        Most tokens of a text; default 256.
    stop
        The text ends in front of it; may be given several times; \\n is a new line.
    temperature
        0 (default) takes the likeliest token.
    seed
        Of the first text; each further one has the next.
    samples
        Texts a question, for pass@k; needs a temperature.
    labelled
        JSONL of id, text and right (true or false), by people: measures wrong accepts and wrong rejects.
    limit
        At most so many questions, drawn by their ids, not the first.
    out
        Folder of results.
    estimate
        Say what it would take, and stop.
    json
        Print one JSON document.
    """
    asked = _task(
        task,
        purpose=purpose,
        extract=extract,
        check=check,
        template=None if template is None else typed(template),
        delimiter=None if delimiter is None else typed(delimiter),
    )
    examples = _shots(asked, shots, shots_seed, shots_from)
    writing = _writing(asked, max_tokens=max_tokens, stop=tuple(map(typed, stop)), temperature=temperature, seed=seed)
    grader = Grader(extraction=extraction_named(asked.extraction), checker=checker_named(asked.checker))
    golden = extraction_named(gold) if gold else None
    read = read_questions(questions, template=asked.template, gold=golden, limit=limit)
    if examples and shots_from:
        between = " " if asked.delimiter is None else asked.delimiter
        read = with_examples(read, examples, shots_from, template=asked.template, gold=golden, delimiter=between)
    controls = try_controls(read.questions, grader)
    grader_error = measure_grader(read_labelled(labelled, read), grader) if labelled else None
    backend = computing.open(model)
    left = prompts_left(out, questions.stem, backend.identity, read, writing, samples=samples)
    expense = backend.expense((), left, writing) if left else None
    print(_before(read, samples, examples, expense), file=sys.stderr)
    if estimate:
        if json:
            announced = {"questions": len(read.questions), "expense": to_builtins(expense) if expense else None}
            print_json(announced)
        return EXIT_OK
    with ScoringWatcher(sys.stderr) as watcher:
        written = write_into(backend, read, writing, out, samples=samples, stem=questions.stem, watch=watcher)
    found = judge_into(
        written,
        read,
        grader,
        task=asked.name or questions.stem,
        purpose=asked.purpose,
        controls=controls,
        grader_error=grader_error,
    )
    if json:
        print_json(_document(written, found))
    else:
        _show(written, found)
    return EXIT_OK if found.scores.judged else EXIT_UNKNOWN


def _task(
    name: str | None,
    *,
    purpose: str | None,
    extract: str | None,
    check: str | None,
    template: str | None,
    delimiter: str | None,
) -> Task:
    """The named task with what the options change of it."""
    task = open_task(name) if name else Task(name="", purpose="reasoning", template="{prompt}")
    given = {
        "purpose": purpose, "extraction": extract, "checker": check, "template": template, "delimiter": delimiter,
    }  # fmt: skip
    task = replace(task, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    if task.purpose == "base":
        raise InputError(f"task {task.name} is for base competence", remedy="score it with wholestack evals score")
    if task.answers != "texts":
        raise InputError(
            f"task {task.name}: letters are chosen and not written", remedy="write {choices} into its template"
        )
    for option, value, done in (
        ("extract", task.extraction, "taken out of the text"),
        ("check", task.checker, "judged"),
    ):
        if not value:
            raise InputError(f"nothing says how answers are to be {done}", remedy=f"say --{option}, see --help")
    return task if task.template else replace(task, template="{prompt}")


def _shots(task: Task, count: int | None, seed: int | None, path: Path | None) -> Shots | None:
    """Examples that are to stand in front, where there are any."""
    known = task.shots or Shots(count=0)
    shots = replace(known, count=known.count if count is None else count, seed=known.seed if seed is None else seed)
    if shots.count == 0:
        return None
    if path is None:
        raise InputError(f"{shots.count} examples are to stand in front", remedy="say --shots-from FILE")
    kind = task.checker.partition(":")[0]
    if kind in WITHOUT_ANSWERS:
        raise InputError(
            f"the file of checker {kind} holds {WITHOUT_ANSWERS[kind]} and no answers to show",
            remedy="write examples into the template",
        )
    return shots


def _writing(
    task: Task, *, max_tokens: int | None, stop: tuple[str, ...], temperature: float | None, seed: int | None
) -> Writing:
    known = task.writing or Writing(max_tokens=MAX_TOKENS)
    return Writing(
        max_tokens=known.max_tokens if max_tokens is None else max_tokens,
        stop=stop or known.stop,
        temperature=known.temperature if temperature is None else temperature,
        seed=known.seed if seed is None else seed,
    )


def _before(questions: QuestionSet, samples: int, shots: Shots | None, expense: Expense | None) -> str:
    """What is known before anything is written; the expense is that of what is left."""
    asked = len(questions.questions)
    shown = f", {shots.count} examples in front of each, seed {shots.seed}" if shots else ""
    return f"{asked:,} questions{shown}, {asked * samples:,} texts: {_expense(expense) if expense else NOTHING_LEFT}"


def _expense(expense: Expense) -> str:
    parts = [f"{expense.prompt_tokens:,} tokens to read", f"at most {expense.written_tokens:,} to write"]
    parts.append("time unknown" if expense.seconds is None else f"at most about {expense.seconds:,.0f} s")
    if expense.usd:
        parts.append(f"at most about {expense.usd:.2f} USD")
    return ", ".join(parts) + (f" ({expense.basis})" if expense.basis else "")


def _document(written: Written, found: WrittenMetrics) -> dict[str, object]:
    scores = found.scores
    return {
        "metrics": found.metrics,
        "items": scores.texts,
        "scored": scores.judged,
        "unscorable": dict(scores.unwritten) | {"the checker cannot tell": scores.grades["unknown"]},
        "per_item": str(graded_path(written.folder, found)),
        "purpose": found.purpose,
        "task": found.task,
        "key": found.key,
        "grading_key": found.grading_key,
        "model": to_builtins(written.plan.model) | {"digest": written.plan.model.digest},
        "extraction": found.extraction,
        "checker": found.checker,
        "scores": to_builtins(scores),
        "controls": to_builtins(found.controls),
        "grader_error": to_builtins(found.grader_error) if found.grader_error else None,
        "folder": str(written.folder),
    }


def _show(written: Written, found: WrittenMetrics) -> None:
    """At most 80 columns; the score, what is in no share and why, and what the grader is worth."""
    console = Console(width=min(WIDTH, Console().width), highlight=False)
    console.print(f"\n{PURPOSES[found.purpose]}", style="bold")
    console.print(f"{written.plan.model.name} on {found.task}", markup=False)
    for line in _score_lines(found.scores, written.plan.writing.max_tokens):
        console.print(line, markup=False)
    console.print(f"\nthe grader: {found.extraction}, {found.checker}; tried on these questions", style="bold")
    console.print(_controls_table(found.controls))
    for line in _error_lines(found.grader_error):
        console.print(line, markup=False)
    for line in _doubts(found.controls):
        console.print(line, style="bold red", markup=False)
    console.print(f"kept in {written.folder}", soft_wrap=True, markup=False)


def _score_lines(scores: WrittenScores, max_tokens: int) -> Iterator[str]:
    per_text = "" if scores.tokens_per_text is None else f", {scores.tokens_per_text:.0f} a text"
    yield f"{scores.texts:,} texts for {scores.questions:,} questions, {scores.tokens_written:,} tokens{per_text}"
    if scores.share_right is None:
        yield "right: no text has a verdict"
    else:
        yield f"right: {scores.right:,} of {scores.judged:,}, {scores.share_right:.1%}{_interval(scores)}"
    if scores.unparsable:
        yield f"no answer in the text, counted as not right: {sum(scores.unparsable.values()):,}"
        yield from (f"  {count:,}  {reason}" for reason, count in scores.unparsable.items())
    if scores.unparsable_cut:
        yield f"  {scores.unparsable_cut:,} of these were cut at {max_tokens:,} tokens; try a larger --max-tokens"
    if scores.grades["unknown"]:
        yield f"the checker cannot tell, in no share: {scores.grades['unknown']:,}"
    if scores.unwritten:
        yield f"nothing was written, in no share: {sum(scores.unwritten.values()):,}"
        yield from (f"  {count:,}  {reason}" for reason, count in scores.unwritten.items())
    if scores.judged < scores.texts and scores.lowest is not None and scores.highest is not None:
        yield f"share if those in no share were all wrong or all right: {scores.lowest:.1%} to {scores.highest:.1%}"
    for k, value in scores.pass_at.items():
        yield f"pass@{k}: {value:.1%} (unbiased, {scores.pass_at_questions:,} questions)"


def _interval(scores: WrittenScores) -> str:
    found = scores.interval
    if found is None:
        return f" ({scores.interval_kind})"
    return f"\n  {found.level:.0%} interval {found.low:.1%} to {found.high:.1%} ({scores.interval_kind})"


def _controls_table(controls: Controls) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("accepts", "times", "share", "95 % interval"):
        table.add_column(heading, justify="left" if heading == "accepts" else "right")
    for name, found in (("the right answer", controls.reference), *controls.cheats.items()):
        table.add_row(name, *_rate(found))
    return table


def _rate(found: Rate) -> tuple[str, str, str]:
    share, interval = found.share, found.interval
    if share is None or interval is None:
        return "0 of 0", "", ""
    return f"{found.times:,} of {found.of:,}", f"{share:.1%}", f"{interval.low:.1%} to {interval.high:.1%}"


def _error_lines(error: GraderError | None) -> Iterator[str]:
    if error is None:
        yield "wrong accepts and rejects: not measured (--labelled)"
        return
    for name, found in (("wrong accepts", error.wrong_accepts), ("wrong rejects", error.wrong_rejects)):
        times, share, interval = _rate(found)
        yield f"{name}: {times}" + (f", {share} (95 % interval {interval})" if share else ", nothing to count")


def _doubts(controls: Controls) -> Iterator[str]:
    if controls.reference.times < controls.reference.of:
        missed = controls.reference.of - controls.reference.times
        yield f"the grader refuses {missed:,} right answers: mend the rule or the gold answers"
    for name, found in controls.cheats.items():
        if not name.startswith("always") and (found.share or 0) > 0.05:
            yield f"the grader accepts {found.share:.0%} of texts with {name}: the score says little"
