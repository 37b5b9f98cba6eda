"""The catalogue of owners: a new file is one line in :data:`MODULES`; installed packages add theirs before them."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from importlib import import_module

from wholestack.errors import InputError
from wholestack.health.owners.owner import SAYS, Owner
from wholestack.plugins import installed

MODULES = ("vendor", "data_centre", "network", "cluster_team", "job_owner")
"""Files of ``health/owners/``."""
ENTRY_POINTS = "wholestack.health_owners"
"""Group of entry points, each a tuple of :class:`~wholestack.health.owners.owner.Owner`."""


def all_owners() -> tuple[Owner, ...]:
    """Every owner, those of installed packages first: they know more of less.

    Raises:
        InputError: a plug-in cannot be loaded, has a name that is taken, or wants what no ticket holds.
    """
    ours: list[Owner] = [each for name in MODULES for each in import_module(f"wholestack.health.owners.{name}").OWNERS]
    return (*_added(ours), *ours)


def owner_for(word: str, models: Iterable[str]) -> Owner:
    """Who acts on a Finding: the first one who is for such a model, or for all.

    Args:
        word: The owner that the Finding names.
        models: Of the part and of its machine, as far as they are known.

    Raises:
        InputError: there is none, or see :func:`all_owners`.
    """
    known = [model.casefold() for model in models]
    for owner in all_owners():
        about = owner.about
        if about.acts_for == word and (not about.models or _fits(about.models, known)):
            return owner
    raise InputError(f"nobody is known who acts for {word!r}", remedy="docs/adding/owner.md")


def _fits(patterns: Iterable[str], models: Sequence[str]) -> bool:
    return any(fnmatchcase(model, pattern.casefold()) for pattern in patterns for model in models)


def _added(known: Sequence[Owner]) -> Iterator[Owner]:
    names = {each.about.name for each in known}
    for plugin in installed(ENTRY_POINTS):
        for owner in plugin.load(tuple):
            with plugin.blamed("is no owner"):
                name, wants = owner.about.name, owner.wants("host")
            if name in names:
                raise plugin.fault(f"the name {name} is taken")
            if unknown := [item for item in wants.items if item not in SAYS]:
                raise plugin.fault(f"{name} wants {unknown[0]!r}, which no ticket holds")
            names.add(name)
            yield owner
