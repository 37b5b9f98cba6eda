"""From a seed to an item: draft, run, ask, run again in other processes.

Programs of many drafts share a process; what becomes of a draft does not depend on the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.item import VERSION, CodeItem, seal
from wholestack.codetasks.kinds.kind import Draft, Kind, Question
from wholestack.codetasks.levels import LEVELS
from wholestack.codetasks.running import Run, Runs, run_jobs

NO_DRAFT = "these draws give no program"
DIFFERS = "two runs differ"

_HASH_SEEDS = (1, 2, 3)


@dataclass(slots=True)
class Trial:
    """One draft on its way to an item."""

    kind: Kind
    """The kind of question."""
    difficulty: int
    """1 to 10."""
    seed: int
    """That the draws come from."""
    draft: Draft | None
    """``None`` where these draws give none."""
    question: Question | str = NO_DRAFT
    """What is asked, or why nothing is."""
    runs: Sequence[Sequence[Run]] = ()
    """What the programs did that prove the answer, the last time that they were run."""

    @property
    def result(self) -> CodeItem | str:
        """The item, or why there is none."""
        return self.question if isinstance(self.question, str) else _item(self, self.question)


def draft(kind: Kind, difficulty: int, seed: int) -> Trial:
    """What a seed gives, before anything is run."""
    return Trial(kind, difficulty, seed, kind.draft(Draws(seed), LEVELS[difficulty]))


def settle(trials: Sequence[Trial], run: Runs, *, processes: int = 1) -> None:
    """Run drafts, ask, and run what proves the answers in processes with other hash seeds."""
    drafted = [(trial, trial.draft) for trial in trials if trial.draft]
    first = run_jobs(
        [job for _, each in drafted for job in each.jobs], run, hash_seed=_HASH_SEEDS[0], processes=processes
    )
    taken = iter(first)
    for trial, each in drafted:
        trial.question = each.ask([next(taken) for _ in each.jobs])
    _prove(trials, run, hash_seed=_HASH_SEEDS[1], processes=processes)
    _prove([trial for trial in trials if trial.kind.scouts], run, hash_seed=_HASH_SEEDS[2], processes=processes)


def _prove(trials: Sequence[Trial], run: Runs, *, hash_seed: int, processes: int) -> None:
    """Run the jobs of every question; one that they do not bear out is a refusal."""
    asked = [(trial, trial.question) for trial in trials if isinstance(trial.question, Question)]
    taken = iter(
        run_jobs([job for _, each in asked for job in each.jobs], run, hash_seed=hash_seed, processes=processes)
    )
    for trial, question in asked:
        trial.runs = [next(taken) for _ in question.jobs]
        if tuple(trial.kind.read(each) for runs in trial.runs for each in runs) != question.results:
            trial.question = DIFFERS


def _item(trial: Trial, question: Question) -> CodeItem:
    """The line of a question that was borne out."""
    context = f"{question.program}\nQuestion: {question.text}\nAnswer:"
    program_hash = sha256(question.program.encode()).hexdigest()
    identity = sha256("\0".join((context, *question.choices)).encode()).hexdigest()[:16]
    return seal(
        CodeItem(
            id=f"{trial.kind.name}-{trial.difficulty}-{identity}",
            kind=trial.kind.name,
            difficulty=trial.difficulty,
            seed=trial.seed,
            version=VERSION,
            program=question.program,
            question=question.text,
            context=context,
            choices=question.choices,
            gold=question.gold,
            misreadings=question.misreadings,
            program_hash=program_hash,
            trace=_trace(trial, question),
            hash="",
        )
    )


def _trace(trial: Trial, question: Question) -> dict[str, Any]:
    if question.shown is None:
        return {"results": list(question.results)}
    run = [each for runs in trial.runs for each in runs][question.shown]
    return {"lines": run.lines, "steps": [list(step) for step in run.steps]}
