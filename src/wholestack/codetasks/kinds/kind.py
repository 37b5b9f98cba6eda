"""What a kind of question is.

A kind drafts a question from draws alone. The draft names the programs to run first; from what they did it makes the
question, or says why there is none. The question in turn names the programs that prove it; they are run again in
another process with another hash seed, and what they do must be what the question says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.levels import Level
from wholestack.codetasks.running import Job, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a program, with its proof."""

    program: str
    """What is shown."""
    text: str
    """What is asked."""
    choices: tuple[str, ...]
    """Four texts in the order in which they are shown."""
    gold: int
    """Index of the right one."""
    misreadings: tuple[str | None, ...]
    """For each choice what was misread; ``None`` for gold."""
    jobs: tuple[Job, ...]
    """The programs that prove the answer."""
    results: tuple[str, ...]
    """What each of their runs gives, as :meth:`Kind.read` reads it."""
    shown: int | None
    """Which run is asked about, so that its lines are the proof; ``None`` where the results of all are the proof."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before anything was run."""

    jobs: tuple[Job, ...]
    """What to run first."""
    ask: Callable[[Sequence[Sequence[Run]]], Question | str]
    """Makes the question from what the jobs did, or says in a few words why there is none."""


class Kind(Protocol):
    """One kind of question."""

    @property
    def name(self) -> str:
        """As the command knows it; small letters."""
        ...

    @property
    def scouts(self) -> bool:
        """Whether the first jobs only look for what to ask, so that the question's own are to be run twice."""
        ...

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        """A question at a level, or ``None`` where these draws give none; nothing but the draws may matter."""
        ...

    def read(self, run: Run) -> str | None:
        """The result of a run, or ``None`` if it has none."""
        ...
