"""Templates of prompts: text with named places in braces, ``{passage}``; a doubled brace stands for itself.

Nothing else of Python's format language is there: a template may come from a file, and a question's text is only put
in, never read as a template.
"""

import string
from collections.abc import Mapping, Sequence

from wholestack.errors import InputError

LETTERS = string.ascii_uppercase


def render(template: str, texts: Mapping[str, str]) -> str:
    """Put texts into the places of a template.

    Raises:
        InputError: the template has a place that is not among the texts, or does not parse.
    """
    return "".join(literal + (_text_at(name, texts) if name is not None else "") for literal, name in _parts(template))


def options_text(choices: Sequence[str]) -> str:
    """The choices as lettered lines, which a template may name as ``{options}``."""
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))


def _parts(template: str) -> list[tuple[str, str | None]]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InputError(
            f"template {template[:60]!r}: {error}", remedy="double a brace that is meant as text"
        ) from error
    for _, name, form, conversion in parsed:
        if form or conversion or (name is not None and not name.isidentifier()):
            raise InputError(
                f"template {template[:60]!r}: a place is a bare name in braces, not {{{name}...}}",
                remedy="double a brace that is meant as text",
            )
    return [(literal, name) for literal, name, _, _ in parsed]


def _text_at(name: str, texts: Mapping[str, str]) -> str:
    if name not in texts:
        raise InputError(f"the template names {{{name}}}", remedy=f"known here are: {', '.join(texts)}")
    return texts[name]
