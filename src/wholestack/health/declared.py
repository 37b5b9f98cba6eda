"""Whether what a check says is what it declares: causes, kinds of part, names of traits, values of the right type.

What is not declared could not be explained, would not be in the documentation, and would stop a profile that was learnt
from it. Causes of lost telemetry, and a probe as what is blamed, are every check's. A symptom is kept nevertheless,
since a host that fails must not come out better for the check's mistake; a trait or measure is left out, since a
profile and the fleet would take it up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeVar

from wholestack.health.check import Cause, Check, Counter, Identity, Measure, Symptom, Trait
from wholestack.health.parts import Part
from wholestack.health.telemetry import CAUSES

A = TypeVar("A", Symptom, Trait, Measure, Counter, Identity)


def sayable(check: Check, answers: Iterable[A], mistakes: list[str]) -> Iterator[A]:
    """What may be said on, as it comes.

    Args:
        check: That said it.
        answers: Of one of its questions.
        mistakes: Gets a line for everything that is not declared.
    """
    declared = _declared(check)
    for each in answers:
        wrong = _wrong(declared, each)
        mistakes += wrong
        if not wrong or isinstance(each, Symptom):
            yield each


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a check says that it may say; a host gives hundreds of answers, so that each is looked up."""

    causes: frozenset[str]
    parts: frozenset[str]
    trait_names: frozenset[str]
    trait_patterns: tuple[str, ...]

    def names(self, trait: str) -> bool:
        return trait in self.trait_names or any(fnmatchcase(trait, pattern) for pattern in self.trait_patterns)


@lru_cache(maxsize=1024)
def _declared(check: Check) -> _Declared:
    return _Declared(
        causes=frozenset(cause.code for cause in (*check.causes, *CAUSES)),
        parts=frozenset((*check.parts, "probe")),
        trait_names=frozenset(check.trait_names),
        trait_patterns=tuple(name for name in check.trait_names if set(name) & set("*?[")),
    )


def _wrong(declared: _Declared, each: object) -> list[str]:
    """Nothing is taken for granted: a check that is not type-checked may give anything."""
    if isinstance(each, Counter):
        return _mistyped("counter", each.name, each.value, (int,), "a whole number")
    if isinstance(each, Measure):
        wrong = _mistyped("measure", each.name, each.value, (int, float), "a number")
        return wrong + _undeclared(declared, each.outlies, each.part)
    if isinstance(each, Trait):
        wrong = [] if declared.names(each.name) else [f"trait {each.name!r} is not among its trait_names"]
        wrong += _mistyped("trait", each.name, each.value, (str, int, float), "a text or number")
        return wrong + _undeclared(declared, each.differs, each.part)
    if isinstance(each, Symptom):
        seen = f" (seen: {each.evidence[0][:100]})" if each.evidence else ""
        return [line + seen for line in _undeclared(declared, each.cause, each.part)]
    if isinstance(each, Identity):
        texts = (("serial", each.serial), ("model", each.model), ("lot", each.lot))
        wrong = [line for name, text in texts for line in _mistyped("identity's", name, text, (str,), "a text")]
        return wrong + _unknown_part(declared, each.part)
    kinds = "symptoms, traits, measures, counters or identities"
    raise TypeError(f"it gives a {type(each).__name__}, must give {kinds}")


def _mistyped(what: str, name: str, value: object, kinds: tuple[type, ...], wanted: str) -> list[str]:
    return [] if isinstance(value, kinds) else [f"{what} {name} is {repr(value)[:60]}, must be {wanted}"]


def _undeclared(declared: _Declared, cause: Cause, part: Part) -> list[str]:
    wrong = [] if cause.code in declared.causes else [f"cause {cause.code!r} is not among its causes"]
    return wrong + _unknown_part(declared, part)


def _unknown_part(declared: _Declared, part: Part) -> list[str]:
    return [] if part.kind in declared.parts else [f"part {part.kind!r} is not among its parts"]
