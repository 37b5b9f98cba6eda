"""Reading sites and families: four programs, of which the seed shows one.

A **site** is a place in a program that has two natural forms (or four) and that readers confuse: ``range(n)`` and
``range(n + 1)``, ``b = a`` and ``b = a[:]``. It is named by the **misreading** that takes one form for the other. A
**family** is the four programs that two sites of two forms make, or one of four. All four are run; the result of the
one that is shown is gold and the other three are the distractors. Because the shown one is drawn evenly and after all
else, each of the four results is gold equally often whatever they are: who does not read the program
cannot do better than chance.

Templates hold a site as a mark, ``NUL site . slot NUL``; forms may hold the marks of other sites. A line that a
question may ask about ends in a tag, ``SOH number``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from wholestack.codetasks.draws import Draws

MEMBERS = 4
PLAIN = {"wrong_operator": 0.3, "wrong_name": 0.3, "operand_order": 0.5}
"""How much less often sites are left open that almost every program has."""

_MARK = re.compile("\x00(\\d+)\\.(\\d+)\x00")
_TAG = re.compile("\x01(\\d+)")


@dataclass(frozen=True, slots=True)
class Site:
    """One place that can be read in several ways."""

    misreading: str
    """What a reader who takes one form for the other gets wrong."""
    forms: tuple[tuple[str, ...], ...]
    """Two or four forms; each has one text for every slot of the site."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of the four programs."""

    source: str
    """The program, ending in a line end."""
    forms: tuple[int, ...]
    """Which form each site of the family has."""
    tags: dict[int, int]
    """Line, counted from 1, of each tag."""


@dataclass(frozen=True, slots=True)
class Family:
    """Four programs that differ at one or two sites."""

    sites: tuple[Site, ...]
    """One of four forms, or two of two."""
    members: tuple[Member, ...]
    """In the order of their forms."""

    def misreading(self, shown: int, other: int) -> str:
        """What a reader gets wrong who takes the member that is shown for another one."""
        pairs = zip(self.sites, self.members[shown].forms, self.members[other].forms, strict=True)
        return " + ".join(site.misreading for site, left, right in pairs if left != right)


def make_family(
    template: str, sites: Sequence[Site], draws: Draws, *, may_open: Sequence[int] | None = None
) -> Family | None:
    """Choose the sites that stay open, settle the others, and write the four members; ``None`` if they do not suffice.

    Two sites of different misreadings are preferred; a site within one form of another is taken like any other,
    and the family is refused later if that makes two results equal.

    Args:
        template: The program with its marks.
        sites: All its sites.
        draws: Where the choice comes from.
        may_open: Numbers of the sites that may stay open; ``None`` for all.
    """
    numbers = range(len(sites)) if may_open is None else may_open
    pairs = list(combinations([each for each in numbers if len(sites[each].forms) == 2], 2))
    different = [pair for pair in pairs if sites[pair[0]].misreading != sites[pair[1]].misreading]
    options: list[tuple[int, ...]] = [(each,) for each in numbers if len(sites[each].forms) == MEMBERS]
    options = options or list(different or pairs)
    if not options:
        return None
    weights = [prod(PLAIN.get(sites[each].misreading, 1.0) for each in option) for option in options]
    chosen = draws.weighted(options, weights)
    settled = [draws.below(len(site.forms)) for site in sites]
    members = []
    for forms in product(*(range(len(sites[each].forms)) for each in chosen)):
        taken = list(settled)
        for each, form in zip(chosen, forms, strict=True):
            taken[each] = form
        members.append(_member(template, sites, taken, forms))
    return Family(sites=tuple(sites[each] for each in chosen), members=tuple(members))


def settle_all(template: str, sites: Sequence[Site], draws: Draws) -> str:
    """The template with a drawn form at every site."""
    return _member(template, sites, [draws.below(len(site.forms)) for site in sites], ()).source


def _member(template: str, sites: Sequence[Site], taken: Sequence[int], forms: tuple[int, ...]) -> Member:
    def form(found: re.Match[str]) -> str:
        site = int(found[1])
        return sites[site].forms[taken[site]][int(found[2])]

    text = template
    while "\x00" in text:
        text = _MARK.sub(form, text)
    tags: dict[int, int] = {}
    if "\x01" in text:
        for number, line in enumerate(text.split("\n"), start=1):
            for tag in _TAG.findall(line):
                tags[int(tag)] = number
        text = _TAG.sub("", text)
    return Member(source=text, forms=forms, tags=tags)
