"""Whether what a check says is what it declares: causes, kinds of part, names of traits, values of the right type.

What is not declared could not be explained, would not be in the documentation, and would stop a profile that was learnt
from it. Causes of lost telemetry, and a probe as what is blamed, are every check's. A symptom is kept nevertheless,
since a host that fails must not come out better for the check's mistake; a trait or measure is left out, since a
profile and the fleet would take it up.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TypeVar

from wholestack.health.check import Cause, Check, Counter, Measure, Symptom, Trait
from wholestack.health.parts import Part
from wholestack.health.telemetry import CAUSES

A = TypeVar("A", Symptom, Trait, Measure, Counter)


def sayable(check: Check, answers: Iterable[A], mistakes: list[str]) -> Iterator[A]:
    """What may be said on, as it comes.

    Args:
        check: That said it.
        answers: Of one of its questions.
        mistakes: Gets a line for everything that is not declared.
    """
    for each in answers:
        wrong = list(_wrong(check, each))
        mistakes += wrong
        if not wrong or isinstance(each, Symptom):
            yield each


def _wrong(check: Check, each: object) -> Iterator[str]:
    """Nothing is taken for granted: a check that is not type-checked may give anything."""
    if isinstance(each, Symptom):
        seen = f" (seen: {each.evidence[0][:100]})" if each.evidence else ""
        yield from (line + seen for line in _undeclared(check, each.cause, each.part))
    elif isinstance(each, Trait):
        if not any(fnmatchcase(each.name, pattern) for pattern in check.trait_names):
            yield f"trait {each.name!r} is not among its trait_names"
        yield from _mistyped(f"trait {each.name}", each.value, (str, int, float), "a text or number")
        yield from _undeclared(check, each.differs, each.part)
    elif isinstance(each, Measure):
        yield from _mistyped(f"measure {each.name}", each.value, (int, float), "a number")
        yield from _undeclared(check, each.outlies, each.part)
    elif isinstance(each, Counter):
        yield from _mistyped(f"counter {each.name}", each.value, (int,), "a whole number")
    else:
        raise TypeError(f"it gives a {type(each).__name__}, must give symptoms, traits, measures or counters")


def _mistyped(what: str, value: object, kinds: tuple[type, ...], wanted: str) -> Iterator[str]:
    if not isinstance(value, kinds):
        yield f"{what} is {repr(value)[:60]}, must be {wanted}"


def _undeclared(check: Check, cause: Cause, part: Part) -> Iterator[str]:
    if all(cause.code != known.code for known in (*check.causes, *CAUSES)):
        yield f"cause {cause.code!r} is not among its causes"
    if part.kind not in (*check.parts, "probe"):
        yield f"part {part.kind!r} is not among its parts"
