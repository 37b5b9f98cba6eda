"""Where a boot differs from what is expected, line by line; not yet grouped to faults."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from wholestack.health.bootlog.boots import Boot, suppresses
from wholestack.health.bootlog.expecting import Expectations, Expected, Familiar, said_by
from wholestack.health.bootlog.masking import SLOT, filled, masked, source
from wholestack.health.bootlog.order import broken

Kind = Literal["unknown", "missing", "value", "order"]
EDGE_LINES = 10
"""First and last familiar lines of a boot, that tell where a log begins and ends that is not whole."""
STOPPED_UNITS = 10
"""Of the end of the boot, without which a log is taken to be cut."""
STOPPED_SHARE = 0.1

_CRASH = re.compile(
    r"BUG: |Oops: |Kernel panic|kernel BUG at|general protection fault|\[ cut here \]|Call Trace:|WARNING: CPU: "
    r"|\[Hardware Error\]|UBSAN: |KASAN: "
)
_TRACE = re.compile(
    r"(?:Call Trace:|<TASK>|</TASK>|<IRQ>|</IRQ>|(?:\? )?[\w.]{1,200}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}|Code: "
    r"|R[A-Z0-9]{2}: |[CDEFGS]S: |CR\d: |DR\d: |PKRU: |FS:  |Modules linked in|CPU: \d|Hardware name: |---\[ end trace"
    r"|Workqueue: |RIP: |Mem-Info|Tainted: )"
)
_ADDRESS = re.compile(r"\b(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One line that is not as expected."""

    kind: Kind
    line: str
    """The very line; of a wording whose values vary, the wording."""
    wording: str
    source: str
    place: float
    """In the log, or of a missing or moved line in the mean order of the units."""
    evidence: tuple[str, ...]
    """The line, and what was expected instead."""
    support: str
    """``20 of 20 boots on 5 hosts``."""
    values: tuple[tuple[str, str], ...] = ()
    """Old and new value where one changed."""
    crash: bool = False
    lost: bool = False
    """Whether it may only be missing because the log is not whole."""

    @property
    def address(self) -> str:
        """PCI address that the line names; empty if none."""
        found = _ADDRESS.search(self.line)
        return found[0] if found is not None else ""


class Comparison:
    """One boot beside what is expected.

    Args:
        boot: To judge.
        expectations: What is expected.
    """

    def __init__(self, boot: Boot, expectations: Expectations) -> None:
        self._boot = boot
        self._expectations = expectations
        self._messages = (
            boot.messages[:-1] if boot.unfinished and not _whole_line(boot, expectations) else boot.messages
        )
        self.cut = len(self._messages) < len(boot.messages)
        self.suppressed: list[str] = []
        """Lines that say that others were dropped, and that good boots do not have."""
        self._lines: dict[int, list[int]] = {}
        """By wording: places of lines that have to be looked at one by one."""
        self._known = self._look_up()
        self._counts = Counter([known.wording for known in self._known if known is not None])
        size = range(len(self._known) - 1, -1, -1)
        units = [known.unit if known is not None else -1 for known in self._known]
        self._units = dict(zip(reversed(units), size, strict=True))
        """Where each unit came first."""
        self._units.pop(-1, None)
        self._rank = expectations.rank

    @property
    def familiar(self) -> int:
        """Lines that are familiar."""
        return self._counts.total()

    def unknown(self) -> list[Deviation]:
        """Lines that no good boot has."""
        total = len(self._expectations.model.boots)
        found = []
        for place, message in enumerate(self._messages):
            if self._known[place] is not None or suppresses(message):
                continue
            text = masked(message).wording
            found.append(
                Deviation(
                    kind="unknown",
                    line=message,
                    wording=text,
                    source=source(text),
                    place=place,
                    evidence=(message,),
                    support=f"0 of {total} boots",
                    crash=_CRASH.search(message) is not None,
                )
            )
        return found

    def is_trace(self, deviation: Deviation) -> bool:
        """Whether a line is one of a stack trace."""
        return _TRACE.match(deviation.line.lstrip()) is not None

    def missing_and_values(self) -> list[Deviation]:
        """Lines that every good boot has, and familiar ones with another value."""
        expectations, units = self._expectations, self._units
        odd = {expectations.units[unit].wording for unit in expectations.fixed if unit not in units}
        odd |= expectations.always - self._counts.keys()
        odd |= self._lines.keys()
        odd |= {
            index
            for index, count in self._counts.items()
            if count < expectations.expected[index].wording.least or count > expectations.most[index]
        }
        found = []
        for index in sorted(odd):
            expected = expectations.expected[index]
            if index in self._counts:
                found += self._compare(index, expected)
            else:
                gone = [*expected.fixed, *([expected.unit] if expected.unit >= 0 else [])]
                found += [self._absent(unit, expected) for unit in gone]
        return found

    def order(self) -> list[Deviation]:
        """Lines that came elsewhere than always."""
        expectations = self._expectations
        found = []
        for moved in broken(expectations.precedence, self._units):
            line, other = (self._messages[self._units[unit]] for unit in (moved.unit, moved.other))
            unit = expectations.units[moved.unit]
            came, always = ("before", "after") if moved.early else ("after", "before")
            found.append(
                Deviation(
                    kind="order",
                    line=line,
                    wording=expectations.model.wordings[unit.wording].text,
                    source=unit.source,
                    place=self._rank_of(moved.unit),
                    evidence=(line, f"came {came}, and always came {always}: {other}"),
                    support=f"{moved.support} of {moved.support} boots that have both",
                )
            )
        return found

    def _look_up(self) -> list[Familiar | None]:
        """What each line is known as; keeps those that have to be looked at one by one."""
        expectations = self._expectations
        found = expectations.exact(self._messages)
        for place, known in enumerate(found):
            if known is None:
                found[place] = self._look_closer(place)
            elif known.looked_at:
                self._lines.setdefault(known.wording, []).append(place)
        return found

    def _look_closer(self, place: int) -> Familiar | None:
        """A line that was not learnt exactly."""
        message = self._messages[place]
        known = self._expectations.familiar(message)
        if known is None and suppresses(message):
            self.suppressed.append(message)
        elif known is not None and known.looked_at:
            self._lines.setdefault(known.wording, []).append(place)
        return known

    def _compare(self, index: int, expected: Expected) -> list[Deviation]:
        absent = [unit for unit in expected.fixed if unit not in self._units]
        wording, count = expected.wording, self._counts[index]
        places = self._lines.get(index, [])
        new = [place for place in places if not self._at(place).exact]
        # So many lines beside those that are always the same are new in every boot.
        usual = wording.most - len(expected.fixed)
        if len(new) > usual and (absent or expected.closed):
            return self._changed(expected, new, absent)
        if absent:
            return [self._absent(unit, expected) for unit in absent]
        if expected.always and count < wording.least:
            return [self._fewer(index, expected)]
        if count > self._expectations.most[index]:
            return [self._more(index, expected)]
        if new and expected.slots and wording.least <= count <= wording.most:
            return self._other_values(expected, places)
        return []

    def _at(self, place: int) -> Familiar:
        known = self._known[place]
        if known is None:
            raise LookupError(f"line {place} is not familiar")
        return known

    def _last(self, index: int) -> int:
        """Where a wording came last."""
        return max(place for place, known in enumerate(self._known) if known is not None and known.wording == index)

    def _changed(self, expected: Expected, new: Sequence[int], absent: Sequence[int]) -> list[Deviation]:
        """New lines stand where others are missing, or beside all that there ever were."""
        old = {self._expectations.units[unit].text: unit for unit in absent}
        usual = list(old) or [filled(expected.wording.text, each.values) for each in expected.wording.variants]
        found = []
        for message, place in {self._messages[place]: place for place in reversed(new)}.items():
            values = self._at(place).values
            nearest = min(old or usual, key=lambda text: _distance(masked(text).values, values))
            old.pop(nearest, None)
            changed = tuple((a, b) for a, b in zip(masked(nearest).values, values, strict=False) if a != b)
            evidence = (message, f"always: {nearest}")
            found.append(self._value(expected, message, place, evidence, changed))
        return found + [self._absent(unit, expected) for unit in old.values()]

    def _other_values(self, expected: Expected, places: Sequence[int]) -> list[Deviation]:
        first = {self._at(place).values: place for place in reversed(places)}
        lines = list(first)
        found = []
        for slot in expected.slots:
            usual = expected.wording.slots[slot]
            if usual is None or said_by(slot, lines) in usual:
                continue
            known = {value for said in usual for value in said.split("\t")}
            odd = [values for values in lines if values[slot] not in known] or lines[:1]
            message = self._messages[first[odd[0]]]
            was = max(usual, key=lambda said: usual[said]).replace("\t", ", ")
            shown = tuple(self._messages[first[values]] for values in odd)
            words = _around(expected.wording.text, slot)
            text = f"at {words!r} always: {was}" if len(usual) == 1 else f"at {words!r} always one of: {sorted(known)}"
            changed = tuple((was, values[slot]) for values in odd)
            found.append(self._value(expected, message, first[odd[0]], (*shown, text), changed))
        return found[:1]

    def _value(
        self,
        expected: Expected,
        line: str,
        place: int,
        evidence: tuple[str, ...],
        values: tuple[tuple[str, str], ...] = (),
    ) -> Deviation:
        return Deviation(
            kind="value",
            line=line,
            wording=expected.wording.text,
            source=source(expected.wording.text),
            place=place,
            evidence=evidence,
            support=expected.support,
            values=values,
        )

    def _more(self, index: int, expected: Expected) -> Deviation:
        place = self._last(index)
        return self._value(
            expected, self._messages[place], place, (self._messages[place], self._times(index, expected))
        )

    def _fewer(self, index: int, expected: Expected) -> Deviation:
        unit = next((unit for unit in (expected.unit, *expected.fixed) if unit >= 0), -1)
        line = expected.wording.text
        evidence = (line, self._times(index, expected), self._messages[self._last(index)])
        return self._missing(expected, line, self._rank_of(unit), evidence)

    def _times(self, index: int, expected: Expected) -> str:
        least, most = expected.wording.least, expected.wording.most
        usual = str(least) if least == most else f"{least} to {most}"
        return f"{self._counts[index]} lines of it, always {usual}"

    def _absent(self, unit: int, expected: Expected) -> Deviation:
        text = self._expectations.units[unit].text
        return self._missing(expected, text, self._rank_of(unit), (text,))

    def _missing(self, expected: Expected, line: str, rank: float, evidence: tuple[str, ...]) -> Deviation:
        return Deviation(
            kind="missing",
            line=line,
            wording=expected.wording.text,
            source=source(expected.wording.text),
            place=rank,
            evidence=evidence,
            support=expected.support,
            lost=self._is_lost(rank),
        )

    def _rank_of(self, unit: int) -> float:
        return float(self._rank[unit]) if unit >= 0 else 0.0

    def _is_lost(self, rank: float) -> bool:
        first, last = self._edges
        return bool(self._boot.suppressed) or rank < first or rank > last

    @cached_property
    def _edges(self) -> tuple[float, float]:
        """Ranks between which a line that is missing is missing indeed."""
        came = sorted(self._units.items(), key=lambda item: item[1])
        ranks = [float(self._rank[unit]) for unit, _ in came]
        if not ranks:
            return (float("inf"), float("-inf"))
        knows_begin = not self._expectations.only_parts
        first = min(ranks[:EDGE_LINES]) if knows_begin and not self._boot.begun else float("-inf")
        after = len(self._rank) - 1 - max(ranks[-EDGE_LINES:])
        stopped = after >= max(STOPPED_UNITS, STOPPED_SHARE * len(self._rank))
        cut = self.cut or self._boot.full or stopped
        return (first, max(ranks[-EDGE_LINES:]) if cut else float("inf"))


def _whole_line(boot: Boot, expectations: Expectations) -> bool:
    """A last line without an end may be whole all the same: then it is familiar."""
    return bool(boot.messages) and expectations.familiar(boot.messages[-1]) is not None


def _distance(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=False))


def _around(text: str, slot: int) -> str:
    """The words around a value."""
    parts = text.split(SLOT)
    return f"{parts[slot][-25:]}{SLOT}{parts[slot + 1][:15]}".strip()
