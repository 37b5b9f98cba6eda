"""Taking the answer out of what was written, by a rule with a name; where there is none, the reason is said.

A rule is named ``rule`` or ``rule:parameter``::

    text            all of it
    last_number     the last number, for texts that end in their result
    letter          the letter of one of the question's choices, said outright; letter:12345 for other letters
    marker:####     what stands behind a marker on its line
    boxed           what stands in \\boxed{...}
    json:field      the value of a key of the one JSON object in the text
    regex:PATTERN   the first group of a pattern, or the whole match; as :mod:`wholestack.evals.patterns` reads it

One principle holds for all: an answer is one. A text that gives two different ones behind markers, in boxes or as
letters has not answered, or a model would be paid for listing. Nothing is repaired and nothing is guessed.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase

from wholestack.errors import InputError
from wholestack.evals.patterns import TOO_SLOW, Bounded, TooSlowError, compiled
from wholestack.evals.written.numbers import find_numbers
from wholestack.record import Record

MOST_CHARACTERS = 1_000_000
"""Of a text that is looked through."""

EMPTY = "nothing was written"
SEVERAL = "gives several different answers"
BEYOND = "says a letter beyond the choices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Record):
    """The answer in a text, or the reason why there is none."""

    value: str = ""
    """As written, without blanks around it."""
    reason: str = ""
    """Why there is no answer; empty if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """A rule with its parameter; make it with :func:`extraction_named`."""

    name: str
    """As the user wrote it; part of the key of a result."""
    take: Callable[[str, int], Extracted]
    """The rule, for a text behind a question with so many choices."""
    put: Callable[[str], str]
    """A text that gives this answer in the form that the rule reads: the control that the rule must pass."""

    def __call__(self, text: str, choices: int = 0) -> Extracted:
        """The answer in a text.

        Args:
            text: What was written.
            choices: How many the question has; 0 where it has none, or they stand in its prompt alone.
        """
        if not text.strip():
            return Extracted(reason=EMPTY)
        if len(text) > MOST_CHARACTERS:
            return Extracted(reason=f"longer than {MOST_CHARACTERS:,} characters")
        return self.take(text, choices)


def extraction_named(name: str) -> Extraction:
    """The rule of a name such as ``marker:####``.

    Raises:
        InputError: there is no such rule, or its parameter is wrong.

    Example:
        >>> extraction_named("marker:####")("3 + 4 is 7\\n#### 7").value
        '7'
    """
    rule, _, parameter = name.partition(":")
    if rule not in EXTRACTIONS:
        raise InputError(f"no extraction {rule!r}", remedy=f"there are: {', '.join(EXTRACTIONS)}")
    return EXTRACTIONS[rule](name, parameter)


def _text(name: str, parameter: str) -> Extraction:
    _no_parameter(name, parameter)
    return Extraction(name=name, take=lambda text, _: Extracted(value=text.strip()), put=str)


def _last_number(name: str, parameter: str) -> Extraction:
    _no_parameter(name, parameter)

    def take(text: str, _: int) -> Extracted:
        numbers = find_numbers(text)
        return Extracted(value=str(numbers[-1])) if numbers else Extracted(reason="holds no number")

    return Extraction(name=name, take=take, put=lambda value: f"So the answer is {value}.")


_LETTER_END = r"(?=[ \t]*(?:[.,;:!?)\]*_\"'](?!\w)|[)\]*_]|$|\n|(?:because|since)\b))"
"""What must stand behind a letter that is an answer: "The answer is A good question" is none."""


_LETTERED = 10
"""Choices that a question is taken to have where it names none, and up to which a letter is one in any text."""


def _letter(name: str, parameter: str) -> Extraction:
    if parameter and (not parameter.isalnum() or len(set(parameter)) < len(parameter) or len(parameter) < 2):
        raise InputError(f"{name}: needs two or more different letters", remedy="write for instance letter:ABCD")

    def take(text: str, choices: int) -> Extracted:
        letters = parameter or ascii_uppercase[: max(choices, _LETTERED)]
        found = _the_one(_said(text, letters), "says no letter")
        if found.value and found.value not in letters[: choices or None]:
            return Extracted(reason=BEYOND)
        return found

    return Extraction(name=name, take=take, put=lambda value: f"The answer is {value}.")


@lru_cache(maxsize=32)
def _letter_patterns(letters: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """How a letter is said: alone, in a sentence, or in front of a line."""
    one = f"([{letters}])"
    return (
        re.compile(rf"\W*{one}\W*", re.DOTALL),
        re.compile(rf"(?i:answer|choice|option)(?i:\s+is|\s*[:=])[\s(\[*_\"']*{one}{_LETTER_END}"),
        re.compile(rf"\s*[(\[*]*{one}[)\].:*]+(?:\s|$)"),
    )


def _said(text: str, letters: str) -> list[str]:
    """The letters that a text says outright."""
    bare, stated, opening = _letter_patterns(letters)
    alone = bare.fullmatch(text)
    if alone:
        return [alone[1]]
    # "B) because ..." is an answer, "A) ... B) ..." is a list of the choices
    return stated.findall(text) or [found[1] for line in text.splitlines() if (found := opening.match(line))]


def _marker(name: str, parameter: str) -> Extraction:
    if not parameter.strip():
        raise InputError("marker: needs its text", remedy="write for instance marker:####")

    def take(text: str, _: int) -> Extracted:
        behind = [piece.lstrip(" \t").split("\n")[0].strip() for piece in text.split(parameter)[1:]]
        if not behind:
            return Extracted(reason=f"holds no {parameter!r}")
        if not any(behind):
            return Extracted(reason=f"has nothing behind {parameter!r}")
        return _the_one([each for each in behind if each], "")

    return Extraction(name=name, take=take, put=lambda value: f"{parameter} {value}")


def _boxed(name: str, parameter: str) -> Extraction:
    _no_parameter(name, parameter)

    def take(text: str, _: int) -> Extracted:
        return _the_one(_boxes(text), "holds no \\boxed{...}")

    return Extraction(name=name, take=take, put=lambda value: f"\\boxed{{{value}}}")


def _json(name: str, parameter: str) -> Extraction:
    if not parameter:
        raise InputError("json: needs a key", remedy="write for instance json:answer")

    def take(text: str, _: int) -> Extracted:
        objects = _objects(text)
        if len(objects) != 1:
            return Extracted(reason=f"holds {len(objects) or 'no'} JSON object{'s' if len(objects) > 1 else ''}")
        if parameter not in objects[0]:
            return Extracted(reason=f"its JSON has no key {parameter!r}")
        value = objects[0][parameter]
        plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Extracted(value=plain.strip()) if plain.strip() else Extracted(reason=f"{parameter!r} is empty")

    return Extraction(name=name, take=take, put=lambda value: json.dumps({parameter: value}, ensure_ascii=False))


def _regex(name: str, parameter: str) -> Extraction:
    try:
        pattern = compiled(parameter)
    except InputError as error:
        raise InputError(f"{name}: {error.message}") from error
    if not parameter or pattern.groups > 1:
        raise InputError(f"{name}: needs a pattern with at most one group", remedy="use (?:...) for the others")

    bounded = Bounded(name)

    def take(text: str, _: int) -> Extracted:
        try:
            found = bounded(
                lambda left: [(each[pattern.groups] or "").strip() for each in pattern.finditer(text, timeout=left())]
            )
        except TooSlowError:
            return Extracted(reason=TOO_SLOW)
        return _the_one(found, "does not match")

    return Extraction(name=name, take=take, put=str)


EXTRACTIONS: Mapping[str, Callable[[str, str], Extraction]] = {
    "text": _text,
    "last_number": _last_number,
    "letter": _letter,
    "marker": _marker,
    "boxed": _boxed,
    "json": _json,
    "regex": _regex,
}
"""Rules by name."""


def _the_one(found: list[str], reason: str) -> Extracted:
    """The answer, if all that were found are the same."""
    if not found:
        return Extracted(reason=reason)
    if len(set(found)) > 1:
        return Extracted(reason=SEVERAL)
    return Extracted(value=found[0]) if found[0] else Extracted(reason="its answer is empty")


def _boxes(text: str) -> list[str]:
    """The first two different contents of boxes, braces inside counted; one pass, however deep the boxes are."""
    inside = {start.end() for start in re.finditer(r"\\boxed\s*\{", text)}
    ends: dict[int, int] = {}
    opened: list[int] = []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif opened:
            ends[opened.pop()] = brace.start()
    found: list[str] = []
    for start in sorted(inside & ends.keys()):
        content = text[start : ends[start]].strip()
        if content and content not in found:
            found.append(content)
        if len(found) > 1:
            break
    return found


def _objects(text: str) -> list[dict[str, object]]:
    """Every outermost JSON object in a text."""
    decoder = json.JSONDecoder()
    found: list[dict[str, object]] = []
    place = text.find("{")
    tries = 0
    while place >= 0 and tries < 1000:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return found


def _no_parameter(name: str, parameter: str) -> None:
    if parameter:
        raise InputError(f"{name}: takes no parameter", remedy=f"write {name.partition(':')[0]}")
