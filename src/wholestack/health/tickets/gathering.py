"""Put a ticket together: from the sweep, the sweep that its counters are counted from, and the history.

What this sweep could not read any more (a GPU that is off the bus says no serial number) is taken from the sweep
before, else from the history, and the ticket says so.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from wholestack.errors import InputError, RunDirectoryError
from wholestack.finding import Finding
from wholestack.health import catalog
from wholestack.health.check import Check, Known, all_known
from wholestack.health.earlier import EarlierSweep
from wholestack.health.history.account import find_machine
from wholestack.health.history.failures import times_back
from wholestack.health.history.spans import Event, Machine
from wholestack.health.history.store import History
from wholestack.health.operations.locating import Located, locate
from wholestack.health.operations.story import TRANSITIONS, FaultStory, stories
from wholestack.health.owners.catalog import owner_for
from wholestack.health.owners.owner import Item
from wholestack.health.parts import Part, identity_in
from wholestack.health.result import HostResult
from wholestack.health.tickets.secrets import Masking
from wholestack.health.tickets.ticket import Beside, CounterRow, Datum, PartRow, Past, Ticket, VersionRow
from wholestack.record import from_builtins, to_builtins
from wholestack.remote.host import SHARED

MOST = 200
"""Rows of one kind that a ticket holds."""
MOST_LOG_BYTES = 64_000_000
"""Of a log beside the sweep; its end is read."""
LOGS = ("kernel_log", "sel", "fabric_manager_log")
"""Probes that read a log: evidence of checks that read one is lines of it."""
_GPU = ("gpu", "nvlink", "nvswitch", "driver", "process")
_FABRIC = ("hca", "hca_port", "cable")
THIS, SOONER, PAST, HOSTS = "this sweep", "the sweep before", "the history", "the file of hosts"
ADD = "take the sweep up: wholestack health history add SWEEP"
BOTH = "sweep twice: wholestack health sweep --since SWEEP"


def ticket_for(folder: Path, name: str, history: History | None = None, *, log: Path | None = None) -> Ticket:
    """The evidence pack of a Finding.

    Args:
        folder: Of the sweep.
        name: Id of the Finding or its beginning.
        history: Open, if there is one.
        log: A log of the host besides: lines that name the part are taken from it.

    Raises:
        InputError: there is no such Finding, nobody acts on it, or the log cannot be read.
        RunDirectoryError: it is no run directory.
    """
    found = locate(folder, name)
    case = _Case(
        found=found,
        now=EarlierSweep(folder).result(found.host.name),
        sooner=_sooner(found),
        past=_Past.of(history, found) if history is not None else None,
        log=log,
    )
    return case.ticket()


def _sooner(found: Located) -> HostResult | None:
    """What the host said in the sweep before, if that one is still there."""
    if not found.plan.since:
        return None
    try:
        return EarlierSweep(Path(found.plan.since)).result(found.host.name)
    except RunDirectoryError:
        return None


@dataclass(frozen=True, kw_only=True)
class _Past:
    """What the history knows of a Finding and its machine."""

    history: History
    machine: Machine
    finding: Finding

    @classmethod
    def of(cls, history: History, found: Located) -> "_Past | None":
        try:
            machine = find_machine(history, found.host.name)
        except InputError:
            return None
        return cls(history=history, machine=machine, finding=found.finding)

    @cached_property
    def events(self) -> list[Event]:
        return self.history.events(self.machine.id)

    def told(self, at: float) -> Past | None:
        """Nothing if it does not know the Finding."""
        spans = self.history.findings(self.machine.id)
        episodes = [each for each in spans if each.id == self.finding.id]
        if not episodes:
            return None
        all_stories = stories(spans, self.events, self.history.silences(), now=at)
        story = next(each for each in reversed(all_stories) if self.finding.id in each.findings)
        return Past(
            first=episodes[0].first,
            returns=times_back(episodes),
            gone=episodes[-1].gone,
            story=story.id,
            repeat=story.repeat,
            tried=tuple(self._tried(story, all_stories)),
        )

    def _tried(self, story: FaultStory, all_stories: Sequence[FaultStory]) -> Iterator[Event]:
        """What was done in every story of this part, and what became of the part itself."""
        same = {
            each.id for each in all_stories if each.part == story.part or (each.serial and each.serial == story.serial)
        }
        for event in self.events:
            if (event.kind in TRANSITIONS and event.subject in same) or event.subject == story.part:
                yield event

    def seat(self, place: str, at: float) -> PartRow | None:
        """What sat in a place at a time, or last before it."""
        seats = [each for each in self.history.seats(self.machine.id) if each.part == place]
        fitting = [each for each in seats if each.first <= at] or seats
        if not fitting:
            return None
        last = max(fitting, key=lambda each: each.first)
        return PartRow(place=place, serial=last.serial, model=last.model, lot=last.lot, source=PAST)


@dataclass(frozen=True, kw_only=True)
class _Case:
    found: Located
    now: HostResult | None
    sooner: HostResult | None
    past: _Past | None
    log: Path | None

    @cached_property
    def check(self) -> Check | None:
        """``None`` where the sweep itself said it: that a probe was silent, that a host did not answer."""
        return next((each for each in catalog.CHECKS if each.name == self.found.finding.check), None)

    @cached_property
    def place(self) -> str:
        """``kind key``."""
        return identity_in(self.found.finding.part) or "host"

    @property
    def part_kind(self) -> str:
        return self.place.partition(" ")[0]

    @cached_property
    def around(self) -> tuple[str, ...]:
        """The part and what holds it, the nearest first; what was never seen as a part holds nothing."""
        for result in (self.now, self.sooner):
            for part in result.parts if result else ():
                if part.identity == self.place:
                    return tuple(dict.fromkeys((self.place, *part.within, *_at_the_same_port(part, result))))
        return (self.place,)

    @cached_property
    def at(self) -> float:
        found = self.found.finding.at
        return found if found is not None else self.now.at if self.now else 0.0

    def row(self, place: str) -> PartRow | None:
        """A part by its serial number, from the newest that knows it."""
        for result, source in ((self.now, THIS), (self.sooner, SOONER)):
            for each in result.identities if result else ():
                if result is not None and result.parts[each.part].identity == place and each.serial:
                    return PartRow(place=place, serial=each.serial, model=each.model, lot=each.lot, source=source)
        past = self.past.seat(place, self.at) if self.past else None
        return past or (self._dimm(place) if place.startswith("dimm ") else None)

    def _dimm(self, place: str) -> PartRow | None:
        """By the firmware's name for a DIMM that the kernel names; none if several can be meant."""
        fitting = [each for each in self._places_of("dimm") if each != place and _same_dimm(each, place)]
        return self.row(fitting[0]) if len(fitting) == 1 else None

    @cached_property
    def part(self) -> PartRow | None:
        """The part itself, else the nearest that holds it, never the machine unless it is blamed."""
        return next((row for place in self.around if (row := self.row(place)) is not None), None)

    @cached_property
    def machine(self) -> PartRow | None:
        row = self.row("host")
        if row is None and self.past and self.past.machine.serial:
            serial = self.past.machine.serial
            return PartRow(place="host", serial=serial, model="", lot="", source=PAST)
        return row

    @cached_property
    def parts(self) -> tuple[PartRow, ...]:
        """The machine, the part and what holds it; where it is not known which one it is, all of that kind."""
        places = [place for place in self.around if place != "host"]
        if self.part_kind == "host":
            places += self._places_of(_COUNTED.get(self.found.cause.code, ""))
        elif self.part is None:
            places += self._places_of(self.part_kind)
        rows = [self.machine, *(self.row(place) for place in dict.fromkeys(places))]
        return tuple(row for row in rows if row is not None)

    def _places_of(self, kind: str) -> list[str]:
        seen = [
            result.parts[each.part].identity
            for result in (self.now, self.sooner) if result
            for each in result.identities if result.parts[each.part].kind == kind
        ]  # fmt: skip
        past = self.past.history.seats(self.past.machine.id, kind=kind) if self.past and kind else []
        return sorted({*seen, *(each.part for each in past)})

    @cached_property
    def versions(self) -> tuple[VersionRow, ...]:
        """Versions of the machine and of its parts, from the newest that said them."""
        rows: dict[str, list[VersionRow]] = {}
        for result in (self.now, self.sooner):
            new = _versions_in(result) if result else {}
            rows.update({name: found for name, found in new.items() if name not in rows})
        if self.past:
            past: dict[str, list[VersionRow]] = {}
            for fact in self.past.history.facts(self.past.machine.id):
                if fact.gone is None and fact.name not in rows:
                    parts = (fact.part,) if fact.part else ()
                    past.setdefault(fact.name, []).append(VersionRow(name=fact.name, value=fact.value, parts=parts))
            rows.update(past)
        wanted = (*_FIRMWARE[self._family], *_DRIVER[self._family], *_KERNEL, "host.bios_version", "host.product")
        return tuple(
            row for pattern in dict.fromkeys(wanted) for name in sorted(rows) if fnmatchcase(name, pattern)
            for row in rows[name] if not row.parts or set(row.parts) & set(self.around) or row.parts == ("host",)
            or self.part_kind in ("host", "pci", "probe")
        )  # fmt: skip

    @property
    def _family(self) -> str:
        kind = self.part_kind
        return "gpu" if kind in _GPU else "fabric" if kind in _FABRIC else kind if kind == "drive" else "machine"

    @cached_property
    def counters(self) -> tuple[CounterRow, ...]:
        """Counters of the part, of what holds it and of what it holds."""
        after, before = (_counted_in(result) for result in (self.now, self.sooner))
        read_at = self.now.after.at if self.now and self.now.after else None
        inside = {each.identity for each in self.now.parts if self.place in each.within} if self.now else set()
        concerned = {each for each in (*self.around, *inside) if each != "host"}
        if self.part is not None and self.part.place == self.place:
            concerned.add(f"{self.place.partition(' ')[2]} {self.part.serial}")  # drives change their device names
        rows = []
        for key in dict.fromkeys((*after, *before)):
            name, part = key
            if part in concerned and ".base" not in name:
                old, new = before.get(key), after.get(key)
                if new and (new.at != read_at or (old and new.at <= old.at)):
                    # A result hands on what it could not read; that is no reading of after the fault.
                    old, new = old or new, None
                rows.append(
                    CounterRow(
                        name=name,
                        part=part,
                        before=old.value if old else None,
                        before_at=old.at if old else None,
                        after=new.value if new else None,
                        after_at=new.at if new else None,
                    )
                )
        return tuple(
            sorted(rows, key=lambda row: (row.part != self.place, row.before == row.after, row.name, row.part))
        )

    @cached_property
    def log_lines(self) -> tuple[str, ...]:
        """Lines of logs about the part: what checks of logs showed, then those of the log beside the sweep."""
        readers = {each.name for each in catalog.CHECKS if any(probe.name in LOGS for probe in each.probes)}
        lines: list[str] = []
        if self.found.finding.check in readers:
            lines += self.found.finding.evidence
        for each in self.now.symptoms if self.now else ():
            part = self.now.parts[each.part] if self.now else None
            if each.check in readers and part is not None and ({part.identity, *part.within} & set(self.around)):
                lines += each.evidence
        if self.log is not None:
            lines += _lines_of(self.log, _names(self.around, self.part))
        return tuple(dict.fromkeys(lines))

    def ticket(self) -> Ticket:
        found = self.found.finding
        models = [row.model for row in (self.part, self.machine) if row is not None and row.model]
        owner = owner_for(found.owner, models)
        wants = owner.wants(self.part_kind)
        past = self.past.told(self.at) if self.past else None
        data = tuple(datum for item in wants.items if (datum := self._datum(item, past)) is not None)
        whole = Ticket(
            finding=found.id,
            to=owner.about.name,
            host=found.subject,
            kind=self.found.host.kind,
            part=found.part or "host",
            check=found.check,
            code=self.found.cause.code,
            cause=found.cause,
            status=found.status,
            remedy=found.remedy,
            at=self.at,
            is_complete=not any(each.missing for each in data),
            data=data,
            evidence=found.evidence,
            log_lines=self.log_lines,
            counters=self.counters,
            parts=self.parts,
            versions=self.versions,
            beside=tuple(
                Beside(id=each.id, status=each.status, part=each.part, cause=each.cause) for each in self.found.beside
            ),
            past=past,
            asks=wants.asks,
            cut=(),
        )
        return _masked(_bounded(whole))

    def _datum(self, item: Item, past: Past | None) -> Datum | None:
        """An item, present or missing; ``None``: the fault cannot have it."""
        datum = self._found(past)[item]
        if datum is None and item not in self._impossible:
            return Datum(item=item, missing=self._how(item))
        return datum

    def _found(self, past: Past | None) -> Mapping[Item, Datum | None]:
        """Every item that is there."""
        found = self.found.finding
        back = f"came back {past.returns} time{'s' if past.returns != 1 else ''}" if past else ""
        return {
            "machine_serial": self._of_row("machine_serial", self.machine, "serial"),
            "machine_model": self._of_row("machine_model", self.machine, "model")
            or self._version("machine_model", ("host.product",)),
            "place": self._place(),
            "slot": _datum("slot", self.part_kind != self.place and found.part),
            "serial": self._of_row("serial", self.part, "serial"),
            "model": self._of_row("model", self.part, "model"),
            "firmware": self._version("firmware", _FIRMWARE[self._family]),
            "driver": self._version("driver", _DRIVER[self._family]),
            "kernel": self._version("kernel", _KERNEL),
            "evidence": _datum("evidence", found.evidence and f"{len(found.evidence)} lines"),
            "log_lines": _datum("log_lines", self.log_lines and f"{len(self.log_lines)} lines"),
            "counters": self._counted("counters", [row.after for row in self.counters], THIS),
            "counters_before": self._counted("counters_before", [row.before for row in self.counters], SOONER),
            "history": _datum("history", back, PAST),
            "remedy": _datum("remedy", found.remedy),
        }

    @property
    def _impossible(self) -> frozenset[Item]:
        """What this fault cannot have: a check that reads no log has no lines of one."""
        found: set[Item] = {"log_lines"}
        if self.place == self.part_kind:
            found |= {"slot", "serial", "model", "counters", "counters_before"}
        if not self.counters and not (self.check and self.check.keeps_counters):
            found |= {"counters", "counters_before"}
        if self.counters and all(row.before is not None and row.after is None for row in self.counters):
            found.add("counters")  # the part is there no more to be asked: what it counted before is all there is
        return frozenset(found)

    def _of_row(self, item: Item, row: PartRow | None, name: str) -> Datum | None:
        value = getattr(row, name) if row is not None else ""
        if row is None or not value:
            return None
        of = f" ({row.place}, which holds it)" if row.place not in (self.place, "host") else ""
        return Datum(item=item, value=f"{value}{of}", source=row.source)

    def _version(self, item: Item, patterns: Sequence[str]) -> Datum | None:
        rows = [row for row in self.versions if any(fnmatchcase(row.name, pattern) for pattern in patterns)]
        values = dict.fromkeys(f"{row.name} {row.value}" for row in rows)
        return Datum(item=item, value=", ".join(values), source=THIS) if values else None

    def _place(self) -> Datum | None:
        host = self.found.host
        said = [f"{name} {value}" for name in SHARED if (value := getattr(host, name))]
        return Datum(item="place", value=", ".join(said), source=HOSTS) if host.rack else None

    def _counted(self, item: Item, values: Iterable[int | None], source: str) -> Datum | None:
        count = sum(value is not None for value in values)
        return Datum(item=item, value=f"{count} of the part", source=source) if count else None

    def _how(self, item: Item) -> str:
        silent = "the host did not say it in this sweep"
        if self.past is None:
            silent += f", and there is no history that knows it; {ADD}"
        if self.part_kind == "dimm":
            silent = "the kernel's name for the slot is none of the firmware's; compare with dmidecode -t memory"
        how: Mapping[Item, str] = {
            "place": "name the rack of the host in the file of hosts (rack = ...)",
            "counters": f"could not be read; {BOTH}",
            "counters_before": BOTH if not self.found.plan.since else "the sweep before is gone, or did not have them",
            "history": ADD,
            "evidence": "sweep again",
            "remedy": "wholestack health explain FINDING --in SWEEP",
        }
        return how.get(item, silent)


_FIRMWARE: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu.vbios", "gpu.inforom_image"), "fabric": ("ib.firmware",), "drive": ("drive.firmware.*",),
    "machine": ("host.bios_version",),
}  # fmt: skip
_DRIVER: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu.driver", "gpu.cuda"), "fabric": ("kernel.version",), "drive": ("kernel.version",),
    "machine": ("kernel.version",),
}  # fmt: skip
_KERNEL = ("kernel.version", "host.os")
_COUNTED: Mapping[str, str] = {
    "gpu.count": "gpu", "pci.gpus": "gpu", "gpu.not_listed": "gpu", "drive.missing": "drive", "pci.nvme": "drive",
    "pci.ib_adapters": "hca", "ib.count": "hca", "ib.inactive": "hca", "memory.less": "dimm",
}  # fmt: skip
"""Causes that blame the host for having too few parts of a kind: the serial numbers of all tell which is gone."""


def _datum(item: Item, value: object, source: str = THIS) -> Datum | None:
    return Datum(item=item, value=str(value), source=source) if value else None


def _at_the_same_port(part: Part, result: HostResult | None) -> Iterator[str]:
    """Of a port its cable, of a cable its port, by the interface or the address that both have."""
    if part.kind in ("nic", "cable"):
        yield f"{'nic' if part.kind == 'cable' else 'cable'} {part.key}"
    slots = {each for each in part.within if each.startswith("pci ")} if part.kind == "cable" else set()
    for each in result.parts if result else ():
        if each.kind == "hca_port" and slots & set(each.within):
            yield from each.within


def _same_dimm(one: str, other: str) -> bool:
    """Whether two names of a DIMM's slot are the same but for how they are written, or for a word in front."""
    plain, beside = (re.sub(r"[^a-z0-9]", "", each.partition(" ")[2].lower()) for each in (one, other))
    return bool(plain and beside) and (plain.endswith(beside) or beside.endswith(plain))


def _versions_in(result: HostResult) -> dict[str, list[VersionRow]]:
    """By name; a value that all parts have that say one stands for all."""
    said: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for trait in result.traits:
        parts = tuple(result.parts[place].identity for place in trait.parts)
        said.setdefault(trait.name, []).append((str(trait.value), parts))
    return {
        name: [VersionRow(name=name, value=value, parts=parts if len(rows) > 1 else ()) for value, parts in rows]
        for name, rows in said.items()
    }


def _counted_in(result: HostResult | None) -> dict[tuple[str, str], Known]:
    return all_known(result.after) if result is not None and result.after is not None else {}


def _names(around: Iterable[str], part: PartRow | None) -> tuple[re.Pattern[str], ...]:
    """What a line of a log calls the part: its address, device or port, its serial number."""
    keys = [place.partition(" ")[2] for place in around]
    words = [word for key in keys for word in (key, key.rpartition("/")[2], key.partition("/")[0])]
    words += [part.serial] if part else []
    wanted = dict.fromkeys(word for word in words if len(word) > 3)
    return tuple(re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])", re.IGNORECASE) for word in wanted)


def _lines_of(log: Path, names: Sequence[re.Pattern[str]]) -> list[str]:
    """The last lines of a log that name a part; of a part without a name, the last lines."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - MOST_LOG_BYTES))
            lines = file.read(MOST_LOG_BYTES).decode(errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{log}: {error.strerror}", remedy="name a file that can be read") from error
    plain = Masking().without_keys(lines)
    return [line for line in plain if not names or any(name.search(line) for name in names)][-MOST:]


def _bounded(ticket: Ticket) -> Ticket:
    """At most so many rows of each kind; what is newest or nearest stays."""
    cut = []
    kept: dict[str, object] = {}
    for name in ("evidence", "log_lines", "counters", "parts", "versions", "beside"):
        rows = getattr(ticket, name)
        if len(rows) > MOST:
            kept[name] = rows[:MOST]
            cut.append(f"{name}: {len(rows) - MOST} more")
    past = ticket.past
    if past is not None and len(past.tried) > MOST:
        cut.append(f"tried: {len(past.tried) - MOST} older ones")
        past = replace(past, tried=past.tried[-MOST:])
    return replace(ticket, past=past, cut=tuple(cut), **kept)  # type: ignore[arg-type]


def _masked(ticket: Ticket) -> Ticket:
    """All texts, in one place, so that none goes by."""
    masking = Masking()
    plain = to_builtins(ticket)
    schema = plain.pop("schema")
    masked = masking.everything(plain)
    return replace(from_builtins(Ticket, {**masked, "schema": schema}), masked=masking.count)
