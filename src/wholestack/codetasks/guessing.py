"""What can be had without reading the programs: a guesser that sees the choices only.

The guesser is a logistic regression over the four choices of a question: each choice has a score, linear in its
features, and the chance that it is called right is the softmax of the scores. It learns on four fifths of the questions
and is asked about the rest, five times. Features are of two sets: those of the choices' *form* (length, type, position,
rank by length and by value, number of tokens), and with *context* also how alike a choice is to the others and what it
shares with the wording of the question, since a reader who skips the program still sees that.

Chance is one in four. A guesser that is not at chance has found what gives the answers away.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import binomtest

from wholestack.codetasks.item import CodeItem
from wholestack.errors import InputError
from wholestack.record import Record

Floats = npt.NDArray[np.float64]
Features = Literal["form", "context"]
Verdict = Literal["chance", "given away", "unknown"]

FOLDS = 5
FEWEST = 10 * FOLDS
"""Questions of one group."""
MARGIN = 0.02
"""How far from chance a guesser may be."""
_RIDGE = 1e-3
_TOKEN = re.compile(r"\d+|[A-Za-z_]+|\S")
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessed(Record):
    """How well the guesser did on one group of questions."""

    kind: str
    """Of all of them; ``all`` where they differ."""
    difficulty: int
    """Of all of them; 0 where they differ."""
    features: Features
    """What it saw."""
    items: int
    accuracy: float
    """Share called right on questions that were not learnt from."""
    low: float
    high: float
    """Exact binomial interval of 95 %."""
    chance: float
    """One over the number of choices."""

    @property
    def verdict(self) -> Verdict:
        """``chance``: the interval lies within the margin; ``given away``: above it; else ``unknown``."""
        lowest, highest = self.chance - MARGIN, self.chance + MARGIN
        if self.low > highest:
            return "given away"
        return "chance" if lowest <= self.low and self.high <= highest else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """The guesser on every group of a file."""

    rows: tuple[Guessed, ...]
    """With both sets of features: each kind at each level, and where there are several all together."""
    left_out: tuple[str, ...]
    """Groups that cannot be guessed, each with the reason."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all; a group that is left out is ``unknown``."""
        verdicts = {row.verdict for row in self.rows}
        if "given away" in verdicts:
            return "given away"
        return "chance" if verdicts == {"chance"} and not self.left_out else "unknown"


def guess_by_cell(items: Sequence[CodeItem], *, seed: int = 0) -> Guesses:
    """Guess within every kind and level, every kind, and all.

    Raises:
        InputError: too few questions for any of them.
    """
    groups: dict[tuple[str, int], list[CodeItem]] = {}
    for item in items:
        for cell in ((item.kind, item.difficulty), (item.kind, 0), ("all", 0)):
            groups.setdefault(cell, []).append(item)
    kinds = {kind for kind, _ in groups} - {"all"}
    same = [("all", 0)] if len(kinds) == 1 else []
    same += [(kind, 0) for kind in kinds if sum(kind == each for each, _ in groups) == 2]
    rows: list[Guessed] = []
    left_out = []
    for cell in sorted(groups.keys() - set(same), key=lambda each: (each[0] == "all", each)):
        group = groups[cell]
        counts = sorted({len(item.choices) for item in group})
        if len(group) < FEWEST or len(counts) > 1:
            why = f"{len(group)} questions, {FEWEST} are needed" if len(group) < FEWEST else f"{counts} choices"
            left_out.append(f"{cell[0]} {cell[1] or 'all'}: {why}")
        else:
            rows += [guess(group, features=which, seed=seed) for which in get_args(Features)]
    if not rows:
        raise InputError(
            f"{len(items)} questions are too few to guess", remedy=f"at least {FEWEST} of one kind are needed"
        )
    return Guesses(rows=tuple(rows), left_out=tuple(left_out))


def guess(items: Sequence[CodeItem], *, features: Features = "context", seed: int = 0) -> Guessed:
    """Cross-validate the guesser on questions with equally many choices.

    Args:
        items: At least ten for each fold.
        features: Which it sees.
        seed: Of the folds.

    Raises:
        ValueError: too few questions, or their numbers of choices differ.
    """
    counts = {len(item.choices) for item in items}
    if len(items) < FEWEST or len(counts) != 1:
        raise ValueError(f"{len(items)} questions with {sorted(counts)} choices: {FEWEST} with one number needed")
    seen = np.stack([_features(item, features) for item in items])
    gold = np.array([item.gold for item in items])
    fold = np.random.default_rng(seed).permutation(len(items)) % FOLDS
    right = np.zeros(len(items), dtype=bool)
    for each in range(FOLDS):
        learnt, asked = fold != each, fold == each
        mean, spread = seen[learnt].mean((0, 1)), seen[learnt].std((0, 1)) + 1e-9
        weights = _fit((seen[learnt] - mean) / spread, gold[learnt])
        right[asked] = (((seen[asked] - mean) / spread) @ weights).argmax(1) == gold[asked]
    interval = binomtest(int(right.sum()), len(items)).proportion_ci(0.95)
    return Guessed(
        kind=items[0].kind if len({item.kind for item in items}) == 1 else "all",
        difficulty=items[0].difficulty if len({item.difficulty for item in items}) == 1 else 0,
        features=features,
        items=len(items),
        accuracy=float(right.mean()),
        low=float(interval.low),
        high=float(interval.high),
        chance=1 / counts.pop(),
    )


def _fit(seen: Floats, gold: npt.NDArray[np.int64]) -> Floats:
    """Weights of the most likely regression with a small ridge; ``seen`` has shape [items, choices, features]."""
    rows = np.arange(len(gold))

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = seen @ weights
        log_chance = scores - logsumexp(scores, axis=1, keepdims=True)
        chance = np.exp(log_chance)
        chance[rows, gold] -= 1.0
        gradient = np.einsum("nc,ncf->f", chance, seen) / len(gold) + 2 * _RIDGE * weights
        return float(-log_chance[rows, gold].mean() + _RIDGE * weights @ weights), gradient

    found: Floats = minimize(loss, np.zeros(seen.shape[2]), jac=True, method="L-BFGS-B").x
    return found


def _features(item: CodeItem, which: Features) -> Floats:
    """Shape [choices, features]."""
    choices = item.choices
    count = len(choices)
    tokens = [_TOKEN.findall(choice) for choice in choices]
    values = [_value(choice) for choice in choices]
    lengths = [float(len(choice)) for choice in choices]
    columns = [
        *_one_hot(range(count), count),
        lengths,
        *_one_hot(_ranks(lengths), count),
        [float(len(each)) for each in tokens],
        *_one_hot(_ranks([float(len(each)) for each in tokens]), count),
        *_one_hot(_ranks(values), count),
        *([float(_type_of(choice) == kind) for choice in choices] for kind in _TYPES),
        [float(sum(each.isdigit() for each in choice)) for choice in choices],
        [float(choice.startswith("-")) for choice in choices],
    ]
    if which == "context":
        columns += _of_context(item, tokens, values)
    return np.array(columns, dtype=np.float64).T


def _of_context(item: CodeItem, tokens: Sequence[Sequence[str]], values: Sequence[float]) -> list[list[float]]:
    """What a choice has in common with the other choices and with the question's own words."""
    count = len(tokens)
    sets = [set(each) for each in tokens]
    alike = [sum(_overlap(sets[a], sets[b]) for b in range(count) if a != b) / (count - 1) for a in range(count)]
    asked = set(_TOKEN.findall(item.question))
    shared = [_overlap(each, asked) for each in sets]
    middle = [abs(value - sorted(values)[count // 2]) for value in values]
    named = [float(number) for number in _NUMBER.findall(item.question)[-3:]]
    near = [min((abs(value - number) for number in named), default=0.0) for value in values]
    columns = [alike, shared]
    for numbers in (alike, shared, middle, near):
        columns += _one_hot(_ranks(numbers), count)
    return columns


_TYPES = ("number", "text", "list", "dict", "bool", "word")


def _type_of(choice: str) -> str:
    first = choice.strip()[:1]
    if choice in ("True", "False"):
        return "bool"
    if _NUMBER.fullmatch(choice):
        return "number"
    return {"'": "text", '"': "text", "[": "list", "(": "list", "{": "dict"}.get(first, "word")


def _value(choice: str) -> float:
    """What choices are ordered by: the number, or the sum of the numbers in them, or their first characters."""
    numbers = _NUMBER.findall(choice)
    if numbers:
        return float(sum(int(each[:15]) for each in numbers))
    return float(int.from_bytes(choice.encode(errors="replace")[:6].ljust(6, b"\0"), "big"))


def _overlap(left: set[str], right: set[str]) -> float:
    return len(left & right) / (len(left | right) or 1)


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank of each among them, from 0; equal ones share the mean of their ranks, rounded down."""
    ordered = sorted(values)
    return [float(ordered.index(value) + (ordered.count(value) - 1) // 2) for value in values]


def _one_hot(places: Sequence[float] | range, count: int) -> list[list[float]]:
    return [[float(int(place) == each) for place in places] for each in range(count)]
