"""Judging an answer: a checker with a name says right, wrong or that it cannot tell, with its evidence.

A checker is named ``checker`` or ``checker:parameter``::

    exact              the same text, blanks and Unicode form aside; exact:casefold also without regard to case
    number             the same number; number:0.01 within so much, number:1% within that share
    contains           the answer is in the text as whole words, the text has at most 200 characters (contains:N)
    regex              the answer's text fits the gold pattern as a whole
    json_schema        the text is JSON that fits the gold schema (the keywords in ``SCHEMA_KEYWORDS``)
    python:mod:func    a function of yours, called as func(answer, gold, question)
    python:name        the same, by its name in the entry-point group ``wholestack.evals_checkers``

A function of yours runs in this process and is trusted; what a model wrote is never run. A checker that would run it
(``code``) waits for the sandbox and is refused.
"""

import importlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from wholestack.errors import InputError
from wholestack.evals.patterns import TOO_SLOW, Bounded, TooSlowError, compiled
from wholestack.evals.written.numbers import parse_number
from wholestack.evals.written.questions import OpenQuestion
from wholestack.plugins import installed
from wholestack.record import Record

Outcome = Literal["right", "wrong", "unknown"]
ENTRY_POINTS = "wholestack.evals_checkers"
_LONGEST_CONTAINING = 200
_LONGEST_EVIDENCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Record):
    """What a checker says of one answer."""

    outcome: Outcome
    """``unknown`` where it cannot tell; never counted as right."""
    evidence: str
    """Why, with the texts or numbers that were compared."""


Check = Callable[[str, OpenQuestion], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """A checker with its parameter; make it with :func:`checker_named`."""

    name: str
    """As the user wrote it; part of the key of a result."""
    check: Check
    """Judges an answer to a question."""

    def __call__(self, answer: str, question: OpenQuestion) -> Verdict:
        """Judge an answer."""
        return self.check(answer, question)


def checker_named(name: str) -> Checker:
    """The checker of a name such as ``number:1%``.

    Raises:
        InputError: there is no such checker, its parameter is wrong, or it would run what a model wrote.
    """
    kind, _, parameter = name.partition(":")
    if kind == "code":
        raise InputError(
            "checker 'code' would run what a model wrote, and there is no sandbox yet",
            remedy="check the text itself, or run it yourself in a container and label the answers",
        )
    if kind not in CHECKERS:
        raise InputError(f"no checker {kind!r}", remedy=f"there are: {', '.join(CHECKERS)}")
    return Checker(name=name, check=CHECKERS[kind](name, parameter))


def _exact(name: str, parameter: str) -> Check:
    if parameter not in ("", "casefold"):
        raise InputError(f"{name}: no such way to be exact", remedy="write exact or exact:casefold")

    def check(answer: str, question: OpenQuestion) -> Verdict:
        left, right = _plain(answer, parameter), _plain(question.gold, parameter)
        return _verdict(
            left == right, f"{_short(answer)} {'is' if left == right else 'is not'} {_short(question.gold)}"
        )

    return check


def _number(name: str, parameter: str) -> Check:
    relative = parameter.endswith("%")
    tolerance = parse_number(parameter.rstrip("%") or "0")
    if tolerance is None or tolerance < 0:
        raise InputError(f"{name}: is no tolerance", remedy="write for instance number, number:0.01 or number:1%")

    def check(answer: str, question: OpenQuestion) -> Verdict:
        gold, given = parse_number(question.gold), parse_number(answer)
        if gold is None:
            return Verdict(outcome="unknown", evidence=f"the gold answer {_short(question.gold)} is not one number")
        if given is None:
            return Verdict(outcome="wrong", evidence=f"{_short(answer)} is not one number")
        reach = tolerance * abs(gold) / 100 if relative else tolerance
        fits = abs(given - gold) <= reach
        return _verdict(
            fits, f"{_decimal(given)} against {_decimal(gold)}{f' within {parameter}' if parameter else ''}"
        )

    return check


def _contains(name: str, parameter: str) -> Check:
    if parameter and not parameter.isdecimal():
        raise InputError(f"{name}: {parameter!r} is no number of characters", remedy="write for instance contains:80")
    longest = int(parameter) if parameter else _LONGEST_CONTAINING

    def check(answer: str, question: OpenQuestion) -> Verdict:
        answer = answer.replace(question.prompt.strip(), " ")  # what it repeats is not its answer
        if len(answer) > longest:
            return Verdict(outcome="wrong", evidence=f"has {len(answer)} characters, more than {longest}")
        if not _holds(answer, question.gold):
            return Verdict(outcome="wrong", evidence=f"{_short(answer)} does not hold {_short(question.gold)}")
        others = [choice for choice in question.choices if choice != question.gold and _holds(answer, choice)]
        if others:
            return Verdict(outcome="wrong", evidence=f"holds {_short(others[0])} as well")
        return Verdict(outcome="right", evidence=f"{_short(answer)} holds {_short(question.gold)}")

    return check


def _regex(name: str, parameter: str) -> Check:
    _no_parameter(name, parameter)
    bounded = Bounded("the gold patterns")

    def check(answer: str, question: OpenQuestion) -> Verdict:
        try:
            pattern = compiled(question.gold)
        except InputError as error:
            return Verdict(outcome="unknown", evidence=f"the gold pattern {error.message}")
        try:
            fits = bounded(lambda left: pattern.fullmatch(answer.strip(), timeout=left())) is not None
        except TooSlowError:
            return Verdict(outcome="unknown", evidence=TOO_SLOW)
        return _verdict(fits, f"{_short(answer)} {'fits' if fits else 'does not fit'} {_short(question.gold)}")

    return check


def _json_schema(name: str, parameter: str) -> Check:
    _no_parameter(name, parameter)
    bounded = Bounded("the patterns of the gold schemas")

    def check(answer: str, question: OpenQuestion) -> Verdict:
        try:
            schema = json.loads(question.gold)
        except (ValueError, RecursionError):
            return Verdict(outcome="unknown", evidence="the gold schema is not JSON")
        unknown = unknown_keyword(schema)
        if unknown:
            return Verdict(outcome="unknown", evidence=f"the gold schema uses {unknown}, which is not checked here")
        try:
            value = json.loads(_without_fence(answer))
        except (ValueError, RecursionError) as error:
            return Verdict(outcome="wrong", evidence=_cut(f"is not JSON: {error}"))
        try:
            problem = bounded(lambda left: problem_with_json(value, schema, left))
        except TooSlowError:
            return Verdict(outcome="unknown", evidence=TOO_SLOW)
        return _verdict(not problem, problem or "fits the schema")

    return check


def _python(name: str, parameter: str) -> Check:
    function = _load(parameter)

    def check(answer: str, question: OpenQuestion) -> Verdict:
        try:
            said = function(answer, question.gold, question.row)
        except Exception as error:  # noqa: BLE001  a fault of somebody's function is no verdict on the model
            return Verdict(outcome="unknown", evidence=_cut(f"{parameter} raised {type(error).__name__}: {error}"))
        said, evidence = said if isinstance(said, tuple) and len(said) == 2 else (said, f"{parameter} said {said!r}")
        if said is True or said is False:
            return _verdict(said, _cut(str(evidence)))
        return Verdict(outcome="unknown", evidence=_cut(str(evidence)))

    return check


CHECKERS: Mapping[str, Callable[[str, str], Check]] = {
    "exact": _exact,
    "number": _number,
    "contains": _contains,
    "regex": _regex,
    "json_schema": _json_schema,
    "python": _python,
}
"""Checkers by name."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip
SCHEMA_KEYWORDS = (
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
    "minimum", "maximum", "minLength", "maxLength", "pattern", "title", "description", "$schema",
)  # fmt: skip
"""What is checked of JSON Schema (2020-12); a schema with any other keyword is judged ``unknown``."""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_bound(value: object) -> bool:
    return _is_count(value) or isinstance(value, float)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _are_types(value: object) -> bool:
    return all(isinstance(each, str) and each in _TYPES for each in (value if isinstance(value, list) else [value]))


def _is_pattern(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(compiled(value))
    except InputError:
        return False


_FORMS: Mapping[str, Callable[[object], bool]] = {
    "type": _are_types,
    "required": _are_names,
    "pattern": _is_pattern,
    "enum": lambda value: isinstance(value, list),
    "properties": lambda value: isinstance(value, dict),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _is_count),
    **dict.fromkeys(("minimum", "maximum"), _is_bound),
}
"""What the value of a keyword must be; a schema that is none gives no verdict, whatever the answer."""


def unknown_keyword(schema: object) -> str:
    """The first keyword of a schema that is not checked here, or nothing."""
    if not isinstance(schema, dict):
        return "" if isinstance(schema, bool) else f"a schema of type {type(schema).__name__}"
    for key, value in schema.items():
        if key not in SCHEMA_KEYWORDS:
            return repr(key)
        if key in _FORMS and not _FORMS[key](value):
            return _cut(f"{key} {value!r}")
    properties = schema.get("properties")
    inner = [
        *(properties.values() if isinstance(properties, dict) else ()),
        *(schema[key] for key in ("items", "additionalProperties") if key in schema),
    ]
    return next((found for each in inner if (found := unknown_keyword(each))), "")


def problem_with_json(value: object, schema: Any, left: Callable[[], float], path: str = "$") -> str:
    """Where a value does not fit a schema of :data:`SCHEMA_KEYWORDS`, or nothing.

    Args:
        value: What JSON gave.
        schema: One without an :func:`unknown_keyword`.
        left: Says how many seconds its patterns may still take.
        path: Where the value stands.

    Raises:
        TimeoutError: its patterns took longer.
    """
    if isinstance(schema, bool):
        return "" if schema else f"{path} must not be there"
    for problem in (_kind_problem(value, schema), _size_problem(value, schema, left)):
        if problem:
            return f"{path} {problem}"
    if isinstance(value, dict):
        return _problem_in_object(value, schema, left, path)
    if isinstance(value, list) and "items" in schema:
        items = schema["items"]
        problems = (problem_with_json(each, items, left, f"{path}[{n}]") for n, each in enumerate(value))
        return next(filter(None, problems), "")
    return ""


def _kind_problem(value: object, schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(_is_kind(value, kind) for kind in kinds):
        return f"is no {' or '.join(kinds)}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"is not {schema['const']!r}"
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        return f"is none of {schema['enum']!r}"
    return ""


def _size_problem(value: object, schema: Mapping[str, Any], left: Callable[[], float]) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        fits = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        return "" if fits else f"is {value}, out of range"
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return f"has {len(value)} characters"
        if "pattern" in schema and not compiled(schema["pattern"]).search(value, timeout=left()):
            return f"does not match {schema['pattern']!r}"
    if isinstance(value, list) and not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"has {len(value)} items"
    return ""


def _problem_in_object(
    value: Mapping[str, object], schema: Mapping[str, Any], left: Callable[[], float], path: str
) -> str:
    properties = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            return f"{path} has no {key!r}"
    for key, inner in value.items():
        rule = properties[key] if key in properties else schema.get("additionalProperties", True)
        problem = problem_with_json(inner, rule, left, f"{path}.{key}")
        if problem:
            return problem
    return ""


def _is_kind(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _same(left: object, right: object) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _load(where: str) -> Callable[[str, str, Mapping[str, Any]], Any]:
    """A user's function, by ``module:function`` or by the name of an entry point.

    Raises:
        InputError: it is not there or cannot be called.
    """
    module, _, attribute = where.partition(":")
    try:
        if attribute:
            function = getattr(importlib.import_module(module), attribute)
        else:
            (plugin,) = (each for each in installed(ENTRY_POINTS) if each.entry.name == where)
            function = plugin.load()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            f"python:{where}: cannot be loaded: {error}", remedy="write python:module:function of an installed module"
        ) from error
    if not callable(function):
        raise InputError(f"python:{where}: cannot be called")
    loaded: Callable[[str, str, Mapping[str, Any]], Any] = function
    return loaded


def _verdict(fits: bool, evidence: str) -> Verdict:
    return Verdict(outcome="right" if fits else "wrong", evidence=evidence)


def _plain(text: str, way: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return plain.casefold() if way == "casefold" else plain


def _holds(text: str, part: str) -> bool:
    """Whether a part is in a text as whole words."""
    wanted = re.escape(_plain(part, "casefold"))
    return bool(wanted) and re.search(rf"(?<!\w){wanted}(?!\w)", _plain(text, "casefold")) is not None


def _without_fence(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    inside, fence, behind = rest.rpartition("\n```")
    return inside if first.rstrip() in ("```", "```json") and fence and not behind else text


def _decimal(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.10g}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_EVIDENCE else text[: _LONGEST_EVIDENCE - 3] + "..."


def _no_parameter(name: str, parameter: str) -> None:
    if parameter:
        raise InputError(f"{name}: takes no parameter", remedy=f"write {name.partition(':')[0]}")
