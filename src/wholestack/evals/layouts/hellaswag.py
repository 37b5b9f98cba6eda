"""HellaSwag: the beginning of a description and four ways it may go on.

Fields (github.com/rowanz/hellaswag): ``ind``, ``activity_label``, ``ctx_a``, ``ctx_b``, ``ctx``, ``endings`` (called
``ending_options`` in an early version), ``source_id``, ``split_type``, ``label``, an index as number or text, empty in
the test split. Texts are read as they stand, the marks such as ``[title]`` of WikiHow included. Rows cut from the same
clip or article (``source_id``) are a group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import Question, Values, identity, index_of_label, rest, text, texts


@dataclass(frozen=True, slots=True)
class HellaSwag:
    """See the module."""

    name: str = "hellaswag"
    template: str = "{activity}: {context}"

    def recognises(self, values: Values) -> bool:
        """By context and endings."""
        return "ctx" in values and ("endings" in values or "ending_options" in values)

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        yield Question(
            texts={"activity": text(values, "activity_label"), "context": text(values, "ctx")},
            choices=texts(values, "endings" if "endings" in values else "ending_options"),
            gold=index_of_label(values.get("label")),
            id=identity(values, "id", "ind"),
            group=identity(values, "source_id"),
            kept=rest(values, "activity_label", "ctx", "endings", "ending_options", "label", "id", "ind", "source_id"),
        )
