"""Learn a model from boots that are called good; more of them can be added later.

The wording of a line is its identity (decision 0011), so it does not matter in which order boots are learnt, but for
wordings with more exact lines than are kept.
"""

import hashlib
from bisect import insort
from collections.abc import Iterable

from wholestack.health.bootlog.boots import WINDOW_S, Boot
from wholestack.health.bootlog.masking import SLOT, filled, masked
from wholestack.health.bootlog.records import BootModel, LearntBoot, Order, Variant, Wording, mask_of

STRIDE = 256
"""See :class:`~wholestack.health.bootlog.records.Order`."""
MOST_VARIANTS = STRIDE - 1
"""Exact lines of one wording."""
MOST_SIGNATURES = 8
"""Of one value, before it counts as one that differs too often to tell."""
MOST_LINES_OF_SLOT = 64
"""Different lines of a wording in one boot whose values are compared."""
LONGEST_SIGNATURE = 64
MOST_WORDINGS = 50_000
MOST_ORDERS = 64
"""Boots whose order is kept; those with the lowest ids, so that it does not matter which came first."""
MOST_BOOTS = 4_096
MOST_CACHED = 200_000
"""Messages that need not be taken apart again."""


class _Line:
    """An exact line."""

    __slots__ = ("boots", "count", "once", "place", "seen", "values", "wording")

    def __init__(self, wording: "_Wording", values: tuple[str, ...], place: int) -> None:
        self.wording = wording
        self.values = values
        self.place = place
        """-1 if it is not kept."""
        self.boots = 0
        self.once = True
        self.seen = -1
        self.count = 0


class _Wording:
    """What is known of a wording while learning."""

    __slots__ = (
        "again", "boots", "complete", "index", "last", "least", "lines", "most", "now", "seen", "slots", "text",
    )  # fmt: skip

    def __init__(self, text: str, index: int) -> None:
        self.text = text
        self.index = index
        self.boots = 0
        self.least = 0
        self.most = 0
        self.complete = True
        self.lines: dict[tuple[str, ...], _Line] = {}
        self.slots: list[dict[str, int] | None] = [{} for _ in range(text.count(SLOT))]
        self.seen = -1
        self.now: list[_Line] = []
        self.last: list[_Line] = []
        """Its lines in the boot before."""
        self.again = 0
        """Boots that had the same lines as the one before, not yet counted in ``slots``."""

    def count_again(self) -> None:
        """Count boots that said the same once more."""
        if not self.again:
            return
        for slot, said in zip(self.slots, _said(self.last, len(self.slots)), strict=True):
            if slot is not None:
                slot[said] += self.again
        self.again = 0


class Learner:
    """Learns boot by boot.

    Args:
        model: To add to; ``None`` begins a new one.
        window_s: Uptime that counts as boot, of a new one.
    """

    def __init__(self, model: BootModel | None = None, *, window_s: float = WINDOW_S) -> None:
        self.boots: list[LearntBoot] = list(model.boots) if model is not None else []
        self.window_s = model.window_s if model is not None else window_s
        self._ids = {boot.id for boot in self.boots}
        self._wordings: dict[str, _Wording] = {}
        self._cache: dict[str, _Line] = {}
        self._orders: list[tuple[str, tuple[int, ...]]] = []
        self._accepted = model.accepted if model is not None else ()
        self._left_out = model.left_out if model is not None else 0
        if model is not None:
            self._remember(model)

    def add(self, boot: Boot, *, host: str = "", file: str = "") -> bool:
        """Learn one boot; ``False`` if it is known already, or the model is full.

        Args:
            boot: That a person calls good.
            host: Where the log does not name one.
            file: That it came from.
        """
        boot.host = boot.host or host
        known = boot.identity
        if known in self._ids or len(self.boots) >= MOST_BOOTS:
            return False
        index = len(self.boots)
        whole = boot.begun and not (boot.unfinished or boot.full or boot.suppressed)
        lines = len(boot.messages)
        self._ids.add(known)
        self.boots.append(LearntBoot(id=known, host=boot.host, kernel=boot.kernel, whole=whole, lines=lines, file=file))
        # The last line of a file that was cut is half a line.
        order = self._lines(boot.messages[:-1] if boot.unfinished else boot.messages, index)
        self._keep_order(known, order)
        return True

    def model(self) -> BootModel:
        """What was learnt so far."""
        chosen = sorted(self._wordings.values(), key=lambda each: (-each.boots.bit_count(), each.index))[:MOST_WORDINGS]
        chosen.sort(key=lambda each: each.index)
        new = {each.index: place for place, each in enumerate(chosen)}
        orders = tuple(
            Order(
                boot=boot,
                places=tuple(new[at // STRIDE] * STRIDE + at % STRIDE for at in places if at // STRIDE in new),
            )
            for boot, places in self._orders
        )
        return BootModel(
            window_s=self.window_s,
            boots=tuple(self.boots),
            wordings=tuple(_record(each) for each in chosen),
            orders=orders,
            left_out=self._left_out + len(self._wordings) - len(chosen),
            accepted=self._accepted,
        )

    def _remember(self, model: BootModel) -> None:
        for index, each in enumerate(model.wordings):
            wording = _Wording(each.text, index)
            wording.boots, wording.least, wording.most = mask_of(each.boots), each.least, each.most
            wording.complete = each.complete
            wording.slots = [None if slot is None else dict(slot) for slot in each.slots]
            for variant in each.variants:
                line = _Line(wording, variant.values, variant.place)
                line.boots = mask_of(variant.boots)
                line.once = variant.once
                wording.lines[variant.values] = line
            self._wordings[each.text] = wording
        self._orders = [(order.boot, order.places) for order in model.orders]

    def _lines(self, messages: Iterable[str], index: int) -> list[_Line]:
        """Count the lines of a boot; gives the different ones in the order in which each came first."""
        order: list[_Line] = []
        touched: list[_Wording] = []
        get, bit = self._cache.get, 1 << index
        for message in messages:
            line = get(message) or self._new(message)
            if line.seen == index:
                line.count += 1
                line.once = False
                continue
            line.seen = index
            line.count = 1
            line.boots |= bit
            order.append(line)
            wording = line.wording
            if wording.seen == index:
                wording.now.append(line)
            else:
                wording.seen = index
                wording.now = [line]
                touched.append(wording)
        for wording in touched:
            _count(wording, bit)
        return order

    def _new(self, message: str) -> _Line:
        parts = masked(message)
        wording = self._wordings.get(parts.wording)
        if wording is None:
            wording = self._wordings[parts.wording] = _Wording(parts.wording, len(self._wordings))
        line = wording.lines.get(parts.values)
        if line is None:
            line = _Line(wording, parts.values, -1)
            if wording.complete:
                line.place = len(wording.lines) if len(wording.lines) < MOST_VARIANTS else -1
                wording.lines[parts.values] = line
        if len(self._cache) >= MOST_CACHED:
            self._cache.clear()
        self._cache[message] = line
        return line

    def _keep_order(self, boot: str, order: Iterable[_Line]) -> None:
        if len(self._orders) >= MOST_ORDERS and boot > self._orders[-1][0]:
            return
        places = tuple(line.wording.index * STRIDE + line.place + 1 for line in order)
        insort(self._orders, (boot, places))
        del self._orders[MOST_ORDERS:]


def _count(wording: _Wording, bit: int) -> None:
    """What one boot has of a wording."""
    now = wording.now
    count = now[0].count if len(now) == 1 else sum(line.count for line in now)
    if not wording.boots:
        wording.least = wording.most = count
    elif count < wording.least:
        wording.least = count
    elif count > wording.most:
        wording.most = count
    wording.boots |= bit
    if now == wording.last:
        wording.again += 1
    elif wording.slots:
        wording.count_again()
        _compare_slots(wording, now)
        wording.last = now
    if len(wording.lines) > MOST_VARIANTS:
        _drop_rare(wording)


def _compare_slots(wording: _Wording, now: list[_Line]) -> None:
    slots = wording.slots
    if len(now) > MOST_LINES_OF_SLOT:
        wording.slots = [None] * len(slots)
        return
    for place, (slot, said) in enumerate(zip(slots, _said(now, len(slots)), strict=True)):
        if slot is None:
            continue
        if said in slot:
            slot[said] += 1
        elif len(slot) < MOST_SIGNATURES:
            slot[said] = 1
        else:
            slots[place] = None


def _said(lines: list[_Line], slots: int) -> tuple[str, ...]:
    """What stands in each place."""
    if len(lines) == 1:
        return lines[0].values
    return tuple(signature([line.values[place] for line in lines]) for place in range(slots))


def signature(values: list[str]) -> str:
    """What stood in one place of all different lines of a wording, in any order."""
    if len(values) == 1:
        return values[0]
    joined = "\t".join(sorted(values))
    if len(joined) <= LONGEST_SIGNATURE:
        return joined
    return hashlib.sha256(joined.encode(errors="replace")).hexdigest()[:16]


def _drop_rare(wording: _Wording) -> None:
    """Only lines in half of the boots or more can be told to be always there."""
    wording.complete = False
    enough = wording.boots.bit_count() / 2
    for line in wording.lines.values():
        if line.boots.bit_count() < enough:
            line.place = -1
    # A line that is kept keeps its place, which orders refer to; places of dropped ones stay empty.
    wording.lines = {line.values: line for line in wording.lines.values() if line.place >= 0}


def _record(wording: _Wording) -> Wording:
    wording.count_again()
    return Wording(
        text=wording.text,
        boots=f"{wording.boots:x}",
        least=wording.least,
        most=wording.most,
        variants=tuple(
            Variant(values=line.values, boots=f"{line.boots:x}", place=line.place, once=line.once)
            for line in wording.lines.values()
        ),
        complete=wording.complete,
        slots=tuple(None if slot is None else dict(slot) for slot in wording.slots),
    )


def text_of(wording: Wording, variant: Variant) -> str:
    """The exact line."""
    return filled(wording.text, variant.values)
