"""WinoGrande: a sentence with a blank, and two names or things of which one fits.

Fields (winogrande.allenai.org): ``qID``, ``sentence`` with one ``_``, ``option1``, ``option2``, ``answer`` ("1" or "2",
empty in the test split).

Rule: the context is the sentence up to the blank, and a choice is an option with the rest of the sentence behind it.
So both choices have the same context, and what is compared is log P(option + rest | before). The "partial evaluation"
of other harnesses compares log P(rest | before + option), where the context differs from choice to choice; its numbers
are another metric. The two twins of a pair (their ``qID`` differs in the last part) are a group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.errors import InputError
from wholestack.evals.layouts.layout import Question, Values, identity, index_of_label, rest, text


@dataclass(frozen=True, slots=True)
class WinoGrande:
    """See the module."""

    name: str = "winogrande"
    template: str = "{before}"

    def recognises(self, values: Values) -> bool:
        """By sentence and two options."""
        return {"sentence", "option1", "option2"} <= values.keys()

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        sentence = text(values, "sentence")
        before, blank, behind = sentence.partition("_")
        if not blank or "_" in behind:
            raise InputError("sentence has not exactly one blank _")
        name = identity(values, "qID", "id")
        yield Question(
            texts={"before": before.rstrip()},
            choices=(text(values, "option1") + behind, text(values, "option2") + behind),
            gold=index_of_label(values.get("answer"), first=1),
            id=name,
            group=name.rsplit("-", 1)[0],
            delimiter=before[len(before.rstrip()) :],
            kept=rest(values, "sentence", "option1", "option2", "answer", "qID", "id"),
        )
