"""What every owner must do, as a list of the rules that one breaks.

Use it in a test of your own owner::

    def test_my_owner_keeps_the_rules():
        assert broken_rules(MY_OWNER) == []
"""

from collections.abc import Iterator
from typing import get_args

from wholestack.health.owners.owner import SAYS, Owner, Wants
from wholestack.health.parts import PartKind

MOST_ASKS = 10
ALWAYS = ("evidence", "history", "remedy")
"""Without these nobody can act."""


def broken_rules(owner: Owner) -> list[str]:
    """Every rule that an owner breaks; none if it is sound."""
    return list(_broken(owner))


def _broken(owner: Owner) -> Iterator[str]:
    about = owner.about
    for field in ("name", "acts_for", "says", "source"):
        text = getattr(about, field)
        if not text.strip() or not text.isprintable():
            yield f"{field} is {text!r}: say it in one line"
    if any(not pattern.strip("*? ") for pattern in about.models):
        yield "a pattern of models fits every model: leave models empty instead"
    for kind in get_args(PartKind):
        wants = owner.wants(kind)
        if owner.wants(kind) != wants:
            yield f"{kind}: wants something else when it is asked again"
        yield from (f"{kind}: {rule}" for rule in _of(wants))


def _of(wants: Wants) -> Iterator[str]:
    if unknown := [item for item in wants.items if item not in SAYS]:
        yield f"wants {unknown[0]!r}, which no ticket holds"
    if len(set(wants.items)) != len(wants.items):
        yield "wants something twice"
    if absent := [item for item in ALWAYS if item not in wants.items]:
        yield f"does not want {absent[0]}, without which nobody can act"
    if len(wants.asks) > MOST_ASKS or any(not ask.strip() or not ask.isprintable() for ask in wants.asks):
        yield f"asks are at most {MOST_ASKS}, each one line"
