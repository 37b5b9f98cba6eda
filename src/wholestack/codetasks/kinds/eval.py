"""``eval``: what does the program print?"""

from dataclasses import dataclass

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import make_family
from wholestack.codetasks.grammar.chain import write_program
from wholestack.codetasks.kinds.forward import forward_draft
from wholestack.codetasks.kinds.kind import Draft
from wholestack.codetasks.levels import Level
from wholestack.codetasks.running import Run

QUESTION = "What is printed?"


@dataclass(frozen=True, slots=True)
class Eval:
    """See the module."""

    name: str = "eval"
    scouts: bool = False

    def draft(self, draws: Draws, level: Level) -> Draft | None:
        """A chain whose last value is printed."""
        written = write_program(draws, level)
        family = make_family(written.template(), written.sites, draws)
        return forward_draft(family, draws, QUESTION, self.read) if family else None

    def read(self, run: Run) -> str | None:
        """The one line that was printed, by a program that ended well."""
        text = run.printed.rstrip("\n")
        return text if run.error is None and "\n" not in text else None
