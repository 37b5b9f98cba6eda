"""ANLI: does a premise make a hypothesis true, false, or neither.

Fields: ``uid``, ``premise`` (``context`` in the authors' files, github.com/facebookresearch/anli), ``hypothesis``,
``label`` (0 entailment, 1 neutral, 2 contradiction; the authors' files write e, n, c) and ``reason``.
Hypotheses about the same premise are a group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import Question, Values, identity, rest, text
from wholestack.record import digest


@dataclass(frozen=True, slots=True)
class ANLI:
    """See the module."""

    name: str = "anli"
    template: str = "{premise}\nQuestion: {hypothesis} True, False or Neither?\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By hypothesis and premise."""
        return {"hypothesis", "label"} <= values.keys() and ("premise" in values or "context" in values)

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        premise = text(values, "premise" if "premise" in values else "context")
        label = values.get("label")
        yield Question(
            texts={"premise": premise, "hypothesis": text(values, "hypothesis")},
            choices=("True", "Neither", "False"),
            gold={"e": 0, "n": 1, "c": 2}.get(label) if isinstance(label, str) else label,
            id=identity(values, "uid", "id"),
            group=digest(premise),
            kept=rest(values, "premise", "context", "hypothesis", "label", "uid", "id"),
        )
