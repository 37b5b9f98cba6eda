"""What every kind of code question must do, as a list of the rules that one breaks.

Use it in a test of your own kind; it runs some hundred programs in the sandbox, which takes seconds::

    def test_my_kind_keeps_the_rules():
        assert broken_rules(MyKind(), run=Sandbox.open().run) == []
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from wholestack.codetasks.drafting import DIFFERS, Trial, draft, settle
from wholestack.codetasks.item import CodeItem, content_hash
from wholestack.codetasks.kinds.kind import Kind
from wholestack.codetasks.levels import LEVELS
from wholestack.codetasks.running import Runs

EACH = 30
"""Drafts of each level, unless said otherwise."""
LEAST_SHARE = 0.1
"""Of drafts that must become items; below it a file takes too long."""
UNLIKELY = 27.9
"""Chi-square with 3 degrees of freedom that even draws exceed four times in a million."""


def broken_rules(kind: Kind, run: Runs, *, each: int = EACH) -> list[str]:
    """The rules that a kind breaks, each as one sentence; empty when it keeps them all.

    Args:
        kind: The kind.
        run: :meth:`wholestack.sandbox.Sandbox.run`.
        each: Drafts of each level; more find more.
    """
    if not kind.name.isidentifier() or kind.name != kind.name.lower():
        return [f"the name {kind.name!r} is not small letters"]
    trials = [draft(kind, level, seed) for level in LEVELS for seed in range(each)]
    settle(trials, run)
    items = [trial.result for trial in trials if isinstance(trial.result, CodeItem)]
    return [
        *_of_drafts(kind, each),
        *_of_yield(trials, each),
        *dict.fromkeys(rule for item in items for rule in _of_item(item)),
        *_of_repetition(kind, items, run),
        *_of_evenness(items),
    ]


def _of_drafts(kind: Kind, each: int) -> Iterator[str]:
    """The draws alone decide, and different draws give different programs."""
    for level in LEVELS:
        first, second = ([draft(kind, level, seed).draft for seed in range(each)] for _ in range(2))
        jobs = [[made.jobs if made else None for made in drafts] for drafts in (first, second)]
        if jobs[0] != jobs[1]:
            yield f"the same draws give two drafts at level {level}"
        if len(set(jobs[0])) < each // 2:
            yield f"different draws seldom give different programs at level {level}"


def _of_yield(trials: Sequence[Trial], each: int) -> Iterator[str]:
    accepted = Counter(trial.difficulty for trial in trials if isinstance(trial.result, CodeItem))
    for level in LEVELS:
        if accepted[level] < LEAST_SHARE * each:
            yield f"level {level} gives {accepted[level]} items in {each} drafts"
    if any(trial.question == DIFFERS for trial in trials):
        yield "programs do not always do again what the question says"


def _of_item(item: CodeItem) -> Iterator[str]:
    if len(item.choices) != 4 or len(set(item.choices)) != 4:
        yield "the choices are not four different texts"
    if not all(choice.strip() == choice != "" and "\n" not in choice for choice in item.choices):
        yield "a choice is blank, has more than one line, or has blanks at its ends"
    if not 0 <= item.gold < len(item.choices):
        yield "gold is no choice"
    elif [place for place, each in enumerate(item.misreadings) if each is None] != [item.gold]:
        yield "the misreadings are not named for every choice but gold"
    if not item.question.endswith("?") or "\n" in item.question:
        yield "the question is not one line that ends in a question mark"
    if not all(letter.isprintable() or letter == "\n" for letter in item.context):
        yield "there are marks or other characters in the text that nobody can see"
    try:
        compile(item.program, item.id, "exec")
    except SyntaxError:
        yield "a program does not compile"
    if content_hash(item) != item.hash:
        yield "the hash is not that of the line"


def _of_repetition(kind: Kind, items: Sequence[CodeItem], run: Runs) -> Iterator[str]:
    """An item made by itself is the one that was made among others."""
    for item in items[:: max(1, len(items) // 5)]:
        alone = draft(kind, item.difficulty, item.seed)
        settle([alone], run)
        if alone.result != item:
            yield "what a seed gives depends on what is run beside it"
            return


def _of_evenness(items: Sequence[CodeItem]) -> Iterator[str]:
    """Gold stands in every place, and is as often the smallest as the largest, the shortest as the longest."""
    orders: dict[str, Callable[[CodeItem, int], object]] = {
        "place": lambda item, at: at,
        "rank by size": lambda item, at: _size(item.choices[at]),
        "rank by length": lambda item, at: (len(item.choices[at]), item.choices[at]),
    }
    for name, order in orders.items():
        ranks = Counter(sorted(range(4), key=lambda at: order(item, at)).index(item.gold) for item in items)  # type: ignore[arg-type,return-value]
        expected = len(items) / 4
        if expected and sum((ranks[rank] - expected) ** 2 / expected for rank in range(4)) > UNLIKELY:
            yield f"gold is not even by {name}: {[ranks[rank] for rank in range(4)]} of {len(items)}"


def _size(choice: str) -> tuple[int, str]:
    return (int(choice), "") if choice.lstrip("-").isdigit() else (0, choice)
