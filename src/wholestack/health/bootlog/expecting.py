"""A model made ready to judge boots: which exact lines, wordings, values and orders it expects.

An exact line, or a wording, is expected where every whole boot had it. A value is expected where it was the same in
every boot that has the wording, or one of a few that were each seen several times. What names one thing alone, such
as a hardware address or a serial number, is expected only where it was the same on several hosts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wholestack.health.bootlog.boots import MOST_LINES
from wholestack.health.bootlog.learning import STRIDE, signature, text_of
from wholestack.health.bootlog.masking import SLOT, Masked, device, is_identity, masked, source
from wholestack.health.bootlog.order import Precedence, learn_precedence
from wholestack.health.bootlog.records import BootModel, Variant, Wording, mask_of

FEWEST_BOOTS = 3
"""Below, nothing can be told to be always there."""
FEWEST_FOR_VALUES = 5
"""Boots in which a value must have been the same."""
FEWEST_HOSTS = 3
"""On which a serial number or address must have been the same to belong to the kind of host."""
FEWEST_OF_EACH = 3
"""Boots in which each of a few values was seen."""
FEWEST_WORDS = 4
"""Rare wordings that differ in one word alone, before that word counts as variable."""
RARE = 0.15
"""Share of the boots up to which a wording is rare."""
MOST_LOOKED_UP = 100_000
"""Messages that need not be taken apart again."""
MOST_WORDS = 40
"""Words of a wording among which a variable one is looked for."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Something that every whole boot has: an exact line, or a line of a wording."""

    text: str
    wording: int
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Familiar:
    """What a message is known as."""

    wording: int
    unit: int
    """-1 if it is none by itself."""
    exact: bool
    """Whether this very line was learnt."""
    values: tuple[str, ...]
    looked_at: bool
    """Whether its values have to be looked at: it is new, or its wording has values that are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is expected of one wording."""

    wording: Wording
    boots: int
    support: str
    """``20 of 20 boots on 5 hosts``."""
    always: bool
    """Every whole boot has it."""
    fixed: tuple[int, ...]
    """Units of exact lines."""
    unit: int
    """Of the wording itself; -1 if its exact lines say it all."""
    closed: bool
    """All its lines were the same in every boot, and in enough of them: another one is another value."""
    slots: tuple[int, ...]
    """Places of values that are judged beyond the exact lines."""
    once: tuple[int, ...]
    """Units that come once a boot: of a line that is said again, where it came first tells little."""


class Expectations:
    """A model, ready to judge.

    Args:
        model: As learnt.
    """

    def __init__(self, model: BootModel) -> None:
        self.model = model
        whole = sum(1 << place for place, boot in enumerate(model.boots) if boot.whole)
        self.only_parts = not whole
        """No boot that was learnt is whole: all count."""
        self._whole = whole or (1 << len(model.boots)) - 1
        self._hosts = [boot.host for boot in model.boots]
        self.boots = self._whole.bit_count()
        """That tell what is missing."""
        self.hosts = len({self._hosts[place] for place in _bits(self._whole)})
        self.kernels = {boot.kernel for boot in model.boots if boot.kernel}
        self.units: list[Unit] = []
        self.expected: list[Expected] = []
        self._exact: dict[str, Familiar] = {}
        self._looked_up: dict[str, Familiar | None] = {}
        self._by_text: dict[str, int] = {}
        for index, wording in enumerate(model.wordings):
            self._add(index, wording)
        self._word_patterns = _variable_words(model)
        self.precedence = self._precedence()
        self.rank = _ranks(self.precedence)
        """Of every unit, in the mean order."""
        self.fixed = frozenset(unit for each in self.expected for unit in each.fixed)
        """Units that are exact lines."""
        self.always = frozenset(index for index, each in enumerate(self.expected) if each.always)
        """Wordings that every whole boot has."""
        self.most = [_most(each.wording, each.boots) for each in self.expected]
        """Lines of each wording that are not yet too many."""

    def exact(self, messages: Sequence[str]) -> list[Familiar | None]:
        """What messages are known as, of those that were learnt exactly; quick."""
        return list(map(self._exact.get, messages))

    def familiar(self, message: str) -> Familiar | None:
        """What a message is known as; ``None`` if it is unknown."""
        found = self._exact.get(message)
        if found is not None:
            return found
        if message not in self._looked_up:
            if len(self._looked_up) >= MOST_LOOKED_UP:
                self._looked_up.clear()
            self._looked_up[message] = self._by_wording(masked(message))
        return self._looked_up[message]

    def _by_wording(self, parts: Masked) -> Familiar | None:
        index = self._by_text.get(parts.wording)
        if index is not None:
            return Familiar(index, self.expected[index].unit, False, parts.values, True)
        for pattern in _word_patterns(parts.wording):
            if (index := self._word_patterns.get(pattern)) is not None:
                return Familiar(index, -1, True, parts.values, False)
        return None

    def _add(self, index: int, wording: Wording) -> None:
        self._by_text[wording.text] = index
        mask = mask_of(wording.boots)
        always = mask & self._whole == self._whole
        fixed = [each for each in wording.variants if always and self._is_fixed(each)]
        hosts = len({self._hosts[place] for place in _bits(mask)})
        boots = mask.bit_count()
        closed = (
            boots >= FEWEST_FOR_VALUES
            and wording.complete
            and all(mask_of(each.boots) == mask for each in wording.variants)
            and wording.least == wording.most
            and not any(self._is_own(value, hosts) for each in wording.variants for value in each.values)
        )
        slots = tuple(place for place in range(len(wording.slots)) if self._is_judged(wording, place, boots, hosts))
        slots = () if closed else slots
        units = [self._new_unit(text_of(wording, each), index) for each in fixed]
        own = self._new_unit(wording.text, index) if always and wording.least > len(fixed) else -1
        once = tuple(unit for unit, each in zip(units, fixed, strict=True) if each.once)
        unit_of = dict(zip((each.place for each in fixed), units, strict=True))
        for each in wording.variants:
            known = Familiar(index, unit_of.get(each.place, own), True, each.values, bool(slots))
            self._exact[text_of(wording, each)] = known
        self.expected.append(
            Expected(
                wording=wording,
                boots=boots,
                support=self._support(boots, hosts),
                always=always,
                fixed=tuple(units),
                unit=own,
                closed=closed,
                slots=slots,
                once=(*once, own) if own >= 0 and wording.most == len(fixed) + 1 else once,
            )
        )

    def _new_unit(self, text: str, wording: int) -> int:
        self.units.append(Unit(text, wording, source(self.model.wordings[wording].text)))
        return len(self.units) - 1

    def _support(self, boots: int, hosts: int) -> str:
        where = f"on {hosts} hosts" if hosts > 1 else "of one host"
        return f"{boots} of {len(self.model.boots)} boots {where}"

    def _is_fixed(self, variant: Variant) -> bool:
        mask = mask_of(variant.boots)
        return mask & self._whole == self._whole and not any(
            self._is_own(value, self.hosts) for value in variant.values
        )

    def _is_own(self, value: str, hosts: int) -> bool:
        """Whether it may belong to one host alone."""
        return hosts < FEWEST_HOSTS and is_identity(value)

    def _is_judged(self, wording: Wording, place: int, boots: int, hosts: int) -> bool:
        slot = wording.slots[place]
        if slot is None or boots < FEWEST_FOR_VALUES or len(slot) > max(1, boots // 8):
            return False
        if len(slot) > 1 and min(slot.values()) < FEWEST_OF_EACH:
            return False
        return not any(self._is_own(value, hosts) for said in slot for value in said.split("\t"))

    def _precedence(self) -> Precedence:
        """Places of units in the boots whose order is kept."""
        whole = {boot.id for boot in self.model.boots if boot.whole or self.only_parts}
        orders = [order for order in self.model.orders if order.boot in whole]
        unit_of = self._units_by_place()
        once = {unit for each in self.expected for unit in each.once}
        places = np.full((len(self.units), len(orders)), np.nan)
        for column, order in enumerate(orders):
            rank = 0
            for place in order.places:
                unit = unit_of.get(place, unit_of.get(place - place % STRIDE, -1))
                if unit in once and np.isnan(places[unit, column]):
                    places[unit, column] = rank
                    rank += 1
        return learn_precedence(places, [device(unit.text) for unit in self.units])

    def _units_by_place(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for index, each in enumerate(self.expected):
            if each.unit >= 0:
                found[index * STRIDE] = each.unit
            for variant in each.wording.variants:
                known = self._exact[text_of(each.wording, variant)]
                found[index * STRIDE + variant.place + 1] = known.unit
        return found


def _most(wording: Wording, boots: int) -> int:
    if boots < FEWEST_BOOTS:
        return MOST_LINES
    spread = wording.most - wording.least
    return wording.most + 2 * spread + 2 if spread else wording.most


def _ranks(precedence: Precedence) -> list[int]:
    order = precedence.mean.argsort(kind="stable")
    ranks = [0] * len(order)
    for rank, unit in enumerate(order.tolist()):
        ranks[unit] = rank
    return ranks


def said_by(slot: int, lines: list[tuple[str, ...]]) -> str:
    """What stands in one place of some different lines, as it is learnt."""
    return signature([values[slot] for values in lines])


def _bits(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def _word_patterns(text: str) -> list[str]:
    """The wording with each of its words but the first left out in turn."""
    words = text.split(" ")
    if not 2 <= len(words) <= MOST_WORDS:
        return []
    return [" ".join([*words[:place], SLOT + "*", *words[place + 1 :]]) for place in range(1, len(words))]


def _variable_words(model: BootModel) -> dict[str, int]:
    """Patterns of rare wordings that differ in one word alone, such as the name of a host or of a program."""
    most = max(1, int(RARE * len(model.boots)))
    members: dict[str, list[int]] = {}
    for index, wording in enumerate(model.wordings):
        if mask_of(wording.boots).bit_count() <= most:
            for pattern in _word_patterns(wording.text):
                members.setdefault(pattern, []).append(index)
    return {
        pattern: found[0]
        for pattern, found in members.items()
        if len(found) >= FEWEST_WORDS and len({model.wordings[each].boots for each in found}) >= FEWEST_WORDS
    }
