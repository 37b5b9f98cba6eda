"""Write sweeps into a history, and read the spans that they made.

What is written of a sweep is what is another than in the look before, host by host; of a host that is as it was,
nothing. A span lasts until a look shows otherwise: a Finding is gone where a look that could see it does not
(:func:`~wholestack.health.looked.would_see`), a version or serial number where another one is read; what could not
be read ends nothing.

A machine is known by its serial number, else by its name: :class:`_Machines` says how that is kept apart.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from wholestack.errors import HistoryError, InputError
from wholestack.health.history.database import DAMAGED, connect, speaking_of, transaction
from wholestack.health.history.looks import INSTALLATION, MACHINE, Fact, HostLook, Seat, Sight, SweepLook
from wholestack.health.history.silences import Silence
from wholestack.health.history.spans import (
    Event,
    FactGroup,
    FactSpan,
    FindingSpan,
    Machine,
    SeatGroup,
    SeatSpan,
    Sweeps,
)
from wholestack.health.looked import would_see
from wholestack.record import R, digest

RENAMED_BY_THE_KERNEL = ("drive",)
"""Kinds of part whose slot is another name after a reboot: that one sits in another slot of its host is no event."""
_NAME_OF = attrgetter("host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of a sweep."""

    is_new: bool
    """``False``: the history had it already."""
    changed: int
    """Hosts that were not as before."""


class History:
    """A history, open; use it as a context manager or close it.

    Args:
        path: The file.
        write: Make it if it is missing, and let it be written.

    Raises:
        HistoryError: see :func:`~wholestack.health.history.database.connect`.
    """

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.path = path
        self._connection = connect(path, write=write)
        self._machines = _Machines(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what was acknowledged is on the disk."""
        self._connection.close()

    def add(self, look: SweepLook) -> Added:
        """Take up a sweep; one that the history has already changes nothing.

        Raises:
            HistoryError: a later sweep of one of its hosts is there already, or the file cannot be written.
        """
        with transaction(self._connection, self.path):
            if self._connection.execute("SELECT 1 FROM sweep WHERE digest = ?", (look.id,)).fetchone():
                return Added(is_new=False, changed=0)
            self._machines.refresh()
            self._refuse_late(look)
            try:
                changed = self._machines.place(look)
                plan = self._machines.plan_of(look)
                writer = _Writer(self._connection, look, plan)
                for machine, each in changed:
                    writer.write(machine, each)
                self._connection.execute(
                    "INSERT INTO sweep (digest, plan, at, folder) VALUES (?, ?, ?, ?)",
                    (look.id, plan, look.at, look.folder),
                )
            except BaseException:
                self._machines.forget()
                raise
        return Added(is_new=True, changed=len(changed))

    def _refuse_late(self, look: SweepLook) -> None:
        later = self._connection.execute(
            "SELECT plan, max(at), folder FROM sweep WHERE at >= ? GROUP BY plan", (look.at,)
        ).fetchall()
        for plan, _, folder in later:
            names = {each.host for each in look.hosts}
            asked = self._connection.execute(
                "SELECT name FROM host JOIN asked ON host = id WHERE plan = ? AND is_named", (plan,)
            )
            both = sorted(name for (name,) in asked if name in names)
            if both:
                raise HistoryError(
                    f"{look.folder}: the history has a later sweep of {both[0]} already: {folder}",
                    remedy="add sweeps in the order in which they ended",
                )

    def machines(self) -> list[Machine]:
        """All machines, in the order in which they were first seen."""
        rows = self._rows("SELECT id, name, kind, coalesce(serial, ''), first, is_named FROM host ORDER BY id")
        return self._records(
            Machine,
            (
                {"id": id_, "name": name, "kind": kind, "serial": serial, "first": first, "is_named": bool(named)}
                for id_, name, kind, serial, first, named in rows
            ),
        )

    def why_empty(self) -> str:
        """Why no machine is there, where none is."""
        return "every host in it is retired" if self._rows("SELECT 1 FROM sweep LIMIT 1") else "no sweep in it"

    def sweeps(self) -> Sweeps:
        """When which machines were asked."""
        times: dict[int, list[float]] = {}
        for plan, at in self._rows("SELECT plan, at FROM sweep ORDER BY plan, at"):
            times.setdefault(plan, []).append(at)
        plans: dict[int, list[int]] = {}
        for host, plan in self._rows("SELECT host, plan FROM asked ORDER BY host, plan"):
            plans.setdefault(host, []).append(plan)
        in_part = frozenset(plan for (plan,) in self._rows("SELECT id FROM plan WHERE NOT in_full"))
        return Sweeps(times=times, plans={host: tuple(each) for host, each in plans.items()}, in_part=in_part)

    def findings(self, host: int | None = None) -> list[FindingSpan]:
        """Spans of Findings in the order in which they began, of all machines or one."""
        fields = (
            "id",
            "host",
            "check",
            "part",
            "serial",
            "cause",
            "owner",
            "status",
            "evidence",
            "first",
            "seen",
            "gone",
        )
        rows = self._rows(f"SELECT {_columns(fields)} FROM finding {_of(host)} ORDER BY first, host, id", *_given(host))
        told = (dict(zip(fields, row, strict=True)) for row in rows)
        return self._records(FindingSpan, ({**each, "evidence": _texts(each["evidence"])} for each in told))

    def facts(self, host: int | None = None) -> list[FactSpan]:
        """Spans of facts in the order in which they began."""
        return self._facts(_of(host), *_given(host))

    def changed_facts(self) -> list[FactSpan]:
        """Spans of facts that all parts share, in that order, but for those of values that were never others."""
        return self._facts(
            "WHERE part = '' AND (host, name) IN (SELECT host, name FROM fact WHERE part = '' AND gone IS NOT NULL)"
        )

    def fact_groups(self) -> list[FactGroup]:
        """All facts of machines that are asked today, by value and time: what many share is said once."""
        rows = self._rows(
            "SELECT fact.name, value, fact.first, gone, json_group_array(host) FROM fact JOIN host ON host.id = host"
            " AND is_named GROUP BY fact.name, value, fact.first, gone"
        )
        return [
            FactGroup(name=name, value=value, first=first, gone=gone, hosts=tuple(msgspec.json.decode(hosts)))
            for name, value, first, gone, hosts in rows
        ]

    def _facts(self, where: str, *values: object) -> list[FactSpan]:
        fields = ("host", "name", "part", "value", "first", "gone")
        rows = self._rows(f"SELECT {_columns(fields)} FROM fact {where} ORDER BY first, host, name, part", *values)
        return self._records(FactSpan, (dict(zip(fields, row, strict=True)) for row in rows))

    def seats(self, host: int | None = None, *, kind: str | None = None) -> list[SeatSpan]:
        """Spans of parts in slots in the order in which they began; ``kind`` leaves out other kinds of part."""
        where = _of(host) if kind is None else f"{_of(host) or 'WHERE 1'} AND kind = ?"
        fields = ("host", "part", "serial", "model", "lot", "first", "gone")
        rows = self._rows(
            f"SELECT {_columns(fields)} FROM seat {where} ORDER BY first, host, part", *_given(host), *_given(kind)
        )
        return self._records(SeatSpan, (dict(zip(fields, row, strict=True)) for row in rows))

    def folder_at(self, host: int, at: float) -> str:
        """Folder of the latest sweep until then that asked a host; empty if none did."""
        rows = self._rows(
            "SELECT folder FROM sweep WHERE plan IN (SELECT plan FROM asked WHERE host = ?) AND at <= ?"
            " ORDER BY at DESC LIMIT 1",
            host,
            at,
        )
        return next((str(folder) for (folder,) in rows), "")

    def events(self, host: int | None = None) -> list[Event]:
        """What happened, in order."""
        rows = self._rows(
            f"SELECT at, coalesce(host, 0), kind, subject, says, by, why FROM event {_of(host)} ORDER BY at, id",
            *_given(host),
        )
        fields = ("at", "host", "kind", "subject", "says", "by", "why")
        return self._records(Event, (dict(zip(fields, row, strict=True)) for row in rows))

    def seat_groups(self, kind: str) -> list[SeatGroup]:
        """All parts of a kind in machines that are asked today, counted by model, lot and time in a slot."""
        query = (
            "SELECT model, lot, seat.first, gone, count(*) FROM seat JOIN host ON host.id = seat.host AND is_named"
            " WHERE seat.kind = ? GROUP BY model, lot, seat.first, gone"
        )
        return [
            SeatGroup(model=model, lot=lot, first=first, gone=gone, count=count)
            for model, lot, first, gone, count in self._rows(query, kind)
        ]

    def seat_at(self, host: int, parts: Sequence[str], at: float) -> tuple[str, str, str] | None:
        """Place, model and lot of the first of these places of a host where a part sat."""
        for part in parts:
            query = f"SELECT part, model, lot FROM seat {_SITTING} AND host = ? AND part = ?"
            for place, model, lot in self._rows(query, at, at, host, part):
                return place, model, lot
        return None

    def seats_with(self, kind: str, model: str | None, lot: str | None, at: float) -> set[tuple[int, str]]:
        """Machine and place of all parts of a kind, those of a model and of a lot if these are given."""
        query = (
            f"SELECT host, part FROM seat {_SITTING} AND kind = ? AND coalesce(model = ?, 1) AND coalesce(lot = ?, 1)"
        )
        rows = self._rows(query, at, at, kind, model, lot)
        return set(rows)

    def holder_of(self, serial: str) -> int | None:
        """The machine in which a part is now, or was last."""
        rows = self._rows(
            "SELECT host FROM seat WHERE serial = ? ORDER BY gone IS NOT NULL, first DESC LIMIT 1", serial
        )
        return rows[0][0] if rows else None

    def silences(self) -> list[Silence]:
        """All, those of the past as well, in the order in which they were made."""
        fields = ("id", "check", "finding", "host", "part", "reason", "by", "since", "until", "lifted")
        rows = self._rows(f"SELECT {_columns(fields)} FROM silence ORDER BY id")
        return self._records(Silence, (dict(zip(fields, row, strict=True)) for row in rows))

    def silence(self, new: Silence) -> int:
        """Keep a silence and write down who made it; returns its number."""
        with transaction(self._connection, self.path):
            cursor = self._connection.execute(
                'INSERT INTO silence ("check", finding, host, part, reason, by, since, until)'
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (new.check, new.finding, new.host, new.part, new.reason, new.by, new.since, new.until),
            )
            number = int(cursor.lastrowid or 0)
            subject = f"silence {number}"
            write_event(self._connection, new.since, new.host, "silenced", subject=subject, says=new.scope,
                        by=new.by, why=new.reason)  # fmt: skip
        return number

    def lift(self, number: int, *, by: str, why: str, at: float) -> None:
        """End a silence before its time.

        Raises:
            InputError: there is none of that number, or it has ended.
        """
        with transaction(self._connection, self.path):
            found = next((each for each in self.silences() if each.id == number), None)
            if found is None or not found.is_active(at):
                state = "has ended" if found else "is none"
                raise InputError(f"silence {number} {state}", remedy="wholestack health silence list")
            self._connection.execute("UPDATE silence SET lifted = ? WHERE id = ?", (at, number))
            write_event(self._connection, at, found.host, "lifted", subject=f"silence {number}", says=found.scope,
                        by=by, why=why)  # fmt: skip

    def retire(self, machine: Machine, *, by: str, why: str, at: float) -> None:
        """Take a machine out of what is there; its past stays, and a later sweep that sees it brings it back.

        Raises:
            InputError: no reason or person, or it is not there any more.
        """
        if not why.strip() or not by.strip():
            raise InputError("a host is retired by a person with a reason", remedy="give --why and --by")
        with transaction(self._connection, self.path):
            gone = self._connection.execute("UPDATE host SET is_named = 0 WHERE id = ? AND is_named", (machine.id,))
            if not gone.rowcount:
                raise InputError(f"{machine.name} is not among the hosts any more", remedy="wholestack health fleet")
            write_event(self._connection, at, machine.id, "retired", subject=machine.name,
                        says=f"{machine.name} was retired", by=by.strip(), why=why.strip())  # fmt: skip
        self._machines.forget()

    def tell(self, event: Event) -> None:
        """Write down what happened or is about to; on the disk when this returns."""
        with transaction(self._connection, self.path):
            write_event(self._connection, event.at, event.host or None, event.kind, subject=event.subject,
                        says=event.says, by=event.by, why=event.why)  # fmt: skip

    def _rows(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with speaking_of(self.path):
            return self._connection.execute(query, values).fetchall()

    def _records(self, kind: type[R], rows: Iterable[Mapping[str, object]]) -> list[R]:
        """Rows as values; SQLite does not see that a bit of what it keeps was flipped, the types of a value may."""
        try:
            return [msgspec.convert(row, kind) for row in rows]
        except msgspec.MsgspecError as error:
            raise HistoryError(f"{self.path}: a row of it cannot be read: {error}", remedy=DAMAGED) from error


_SITTING = (
    "WHERE first <= ? AND (gone IS NULL OR gone > ?) AND EXISTS"
    " (SELECT 1 FROM host WHERE host.id = seat.host AND is_named)"
)


def _columns(fields: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in fields)


def _texts(document: object) -> object:
    """What a column of JSON holds; anything else as it is, for the reader to refuse."""
    return msgspec.json.decode(document) if isinstance(document, str) else document


def _of(host: int | None) -> str:
    return "" if host is None else "WHERE host = ?"


def _given(value: object) -> tuple[object, ...]:
    return () if value is None else (value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Latest:
    """The latest sweep, as it was taken: the next one is mostly the same, and is compared with it first."""

    names: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    """Of the hosts of these names."""
    ids: tuple[int, ...] = ()
    """Machines that these are."""
    plan: tuple[tuple[tuple[str, ...], tuple[int, ...], bool], int] | None = None
    """What was asked of which machines, whether in full, and the plan of that."""


class _Machines:
    """Which machine a name is.

    A machine whose serial number is known under another name was renamed. A name whose machine has another serial
    number is another machine now: the one before keeps its history and loses the name. A machine that was known by its
    name alone gets its serial number when it first says it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version: int | None = None
        self._by_name: dict[str, tuple[int, str]] = {}
        """Id and state."""
        self._plans: dict[str, int] = {}
        self._latest = _Latest()

    def refresh(self) -> None:
        """Read again what another process may have written since."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._by_name = {
                name: (id_, state)
                for id_, name, state in self._connection.execute("SELECT id, name, state FROM host WHERE is_named")
            }
            self._plans = dict(self._connection.execute("SELECT digest, id FROM plan"))
            self._version, self._latest = version, _Latest()

    def forget(self) -> None:
        """What was changed is not so: the transaction failed."""
        self._version = None

    def place(self, look: SweepLook) -> list[tuple[int, HostLook]]:
        """The machines that are not as they were; each has its name, serial number and new state afterwards."""
        known, before = self._by_name, self._latest
        names = tuple(map(_NAME_OF, look.hosts))
        suspects: Iterable[int] = range(len(names))
        if is_known := names == before.names:
            suspects = [
                place for place, (now, then) in enumerate(zip(look.states, before.states, strict=True)) if now != then
            ]
        changed: list[tuple[int, HostLook]] = []
        # Those that say their serial number first: one may turn out to be a machine that had another one's name.
        waiting = sorted(suspects, key=lambda place: not look.hosts[place].serial)
        while waiting:
            for place in waiting:
                each, state = look.hosts[place], look.states[place]
                if (found := known.get(each.host)) is None or found[1] != state:
                    machine = self._machine(each, look.at)
                    self._connection.execute(
                        "UPDATE host SET state = ?, kind = ? WHERE id = ?", (state, each.kind, machine)
                    )
                    is_known = is_known and found is not None and found[0] == machine
                    known[each.host] = (machine, state)
                    changed.append((machine, each))
            # A name whose machine has moved on is another machine; serial numbers are single, so there is an end.
            waiting = [place for place, name in enumerate(names) if name not in known] if changed else []
        ids = before.ids if is_known else tuple(known[name][0] for name in names)
        self._latest = replace(before, names=names, states=look.states, ids=ids)
        return changed

    def plan_of(self, look: SweepLook) -> int:
        """The plan of a sweep whose machines have their place, written down if it is a new one."""
        asked, latest = (look.checks, self._latest.ids, look.in_full), self._latest.plan
        if latest is not None and latest[0] == asked:
            return latest[1]
        key = digest(*asked)
        if key not in self._plans:
            cursor = self._connection.execute(
                "INSERT INTO plan (digest, checks, in_full) VALUES (?, ?, ?)",
                (key, "\n".join(look.checks), look.in_full),
            )
            plan = int(cursor.lastrowid or 0)
            self._connection.executemany(
                "INSERT INTO asked (host, plan) VALUES (?, ?)", [(host, plan) for host in self._latest.ids]
            )
            self._plans[key] = plan
        self._latest = replace(self._latest, plan=(asked, self._plans[key]))
        return self._plans[key]

    def _machine(self, look: HostLook, at: float) -> int:
        named = self._connection.execute(
            "SELECT id, coalesce(serial, '') FROM host WHERE name = ? AND is_named", (look.host,)
        ).fetchone()
        serial = look.serial
        retired = None if named else self._retired(look)
        if retired is not None:
            return self._back(retired, look, at)
        if not serial:
            return named[0] if named else self._new(look, at)
        owner = self._connection.execute("SELECT id, name FROM host WHERE serial = ?", (serial,)).fetchone()
        if owner is not None:
            return self._renamed(owner[0], owner[1], named[0] if named else None, look, at)
        if named is None:
            return self._new(look, at)
        if named[1]:
            self._displace(named[0], look, at)
            return self._new(look, at)
        self._connection.execute("UPDATE host SET serial = ? WHERE id = ?", (serial, named[0]))
        return int(named[0])

    def _retired(self, look: HostLook) -> int | None:
        """The machine that was retired and is seen again: of that serial number, else of that name, unless one of the
        two serial numbers says that it is another."""
        found = self._connection.execute(
            "SELECT id FROM host WHERE NOT is_named AND coalesce(serial = ?, name = ?) AND"
            " (SELECT kind FROM event WHERE event.host = host.id AND kind IN ('retired', 'displaced', 'returned')"
            " ORDER BY id DESC LIMIT 1) = 'retired' ORDER BY serial IS NULL, id DESC LIMIT 1",
            (look.serial or None, look.host),
        ).fetchone()
        return int(found[0]) if found else None

    def _back(self, machine: int, look: HostLook, at: float) -> int:
        self._connection.execute(
            "UPDATE host SET name = ?, is_named = 1, serial = coalesce(serial, ?) WHERE id = ?",
            (look.host, look.serial or None, machine),
        )
        write_event(self._connection, at, machine, "returned", subject=look.host, says=f"{look.host} is there again")
        return machine

    def _renamed(self, machine: int, name: str, other: int | None, look: HostLook, at: float) -> int:
        if machine == other:
            return machine
        if other is not None:
            self._displace(other, look, at)
        if self._by_name.get(name, (0, ""))[0] == machine:
            del self._by_name[name]
        self._connection.execute("UPDATE host SET name = ?, is_named = 1 WHERE id = ?", (look.host, machine))
        write_event(self._connection, at, machine, "renamed", subject=look.host, says=f"{name} is {look.host} now")
        return machine

    def _displace(self, machine: int, look: HostLook, at: float) -> None:
        self._connection.execute("UPDATE host SET is_named = 0 WHERE id = ?", (machine,))
        says = f"another machine answers as {look.host} now: {look.serial}"
        write_event(self._connection, at, machine, "displaced", subject=look.host, says=says)

    def _new(self, look: HostLook, at: float) -> int:
        cursor = self._connection.execute(
            "INSERT INTO host (name, kind, serial, first) VALUES (?, ?, ?, ?)",
            (look.host, look.kind, look.serial or None, at),
        )
        machine = int(cursor.lastrowid or 0)
        serial = f" {look.serial}" if look.serial else ", its serial number is not known"
        write_event(self._connection, at, machine, "first_seen", subject=look.host, says=f"{look.host}{serial}")
        return machine


def write_event(
    connection: sqlite3.Connection,
    at: float,
    host: int | None,
    kind: str,
    *,
    subject: str,
    says: str,
    by: str = "",
    why: str = "",
) -> None:
    """Write down what happened; it stays.

    Args:
        connection: In a transaction.
        at: Seconds since the epoch.
        host: To which machine, if to one.
        kind: A word.
        subject: The part, Finding or silence that it is about.
        says: One line for a person.
        by: The person; empty for what was seen.
        why: The person's reason.
    """
    connection.execute(
        "INSERT INTO event (at, host, kind, subject, says, by, why) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (at, host, kind, subject, says, by, why),
    )


class _Writer:
    """Writes what of one sweep is another than before."""

    def __init__(self, connection: sqlite3.Connection, look: SweepLook, plan: int) -> None:
        self._connection = connection
        self._at = look.at
        self._put = look.checks
        self._plan = plan

    def write(self, machine: int, look: HostLook) -> None:
        """One host."""
        self._write_facts(machine, look.facts)
        self._write_seats(machine, look)
        self._write_sights(machine, look)

    def _write_facts(self, machine: int, facts: Iterable[Fact]) -> None:
        rows = self._connection.execute(
            "SELECT rowid, name, part, value FROM fact WHERE host = ? AND gone IS NULL", (machine,)
        ).fetchall()
        before = {Fact(name=name, part=part, value=value): row for row, name, part, value in rows}
        after = set(facts)
        read = {fact.name for fact in after}
        ended = [row for fact, row in before.items() if fact.name in read and fact not in after]
        self._end("fact", ended)
        self._connection.executemany(
            "INSERT INTO fact (host, name, part, value, first) VALUES (?, ?, ?, ?, ?)",
            [(machine, each.name, each.part, each.value, self._at) for each in sorted(after - set(before))],
        )

    def _write_seats(self, machine: int, look: HostLook) -> None:
        rows = self._connection.execute(
            "SELECT rowid, part, serial, model, lot FROM seat WHERE host = ? AND gone IS NULL", (machine,)
        ).fetchall()
        before = {
            part: (row, Seat(part=part, serial=serial, model=model, lot=lot)) for row, part, serial, model, lot in rows
        }
        for seat in look.seats:
            row, old = before.get(seat.part, (0, None))
            if old == seat:
                continue
            if old is not None:
                self._end("seat", [row])
            if old is None or old.serial != seat.serial:
                self._tell_of_seat(machine, look.host, seat, old)
            kind = seat.part.partition(" ")[0]
            self._connection.execute(
                "INSERT INTO seat (host, part, kind, serial, model, lot, first) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (machine, seat.part, kind, seat.serial, seat.model, seat.lot, self._at),
            )

    def _tell_of_seat(self, machine: int, name: str, seat: Seat, old: Seat | None) -> None:
        """Say that a part came from elsewhere, or that another one is in its place."""
        if seat.part == MACHINE:
            return
        if seat.part == INSTALLATION:
            if old is not None:
                self._event(machine, "reinstalled", seat.part, f"{name} was installed anew")
            return
        kind = seat.part.partition(" ")[0]
        last = self._connection.execute(
            "SELECT seat.rowid, seat.host, part, gone, name FROM seat JOIN host ON host.id = seat.host"
            " WHERE seat.kind = ? AND seat.serial = ? ORDER BY seat.first DESC, seat.rowid DESC LIMIT 1",
            (kind, seat.serial),
        ).fetchone()
        if last is not None:
            row, other, part, gone, other_name = last
            if gone is None:
                self._end("seat", [row])
            if other != machine or (part != seat.part and kind not in RENAMED_BY_THE_KERNEL):
                says = f"{kind} {seat.serial}, before in {other_name} {part}, is in {name} {seat.part}"
                self._event(machine, "part_moved", seat.part, says)
        elif old is not None:
            self._event(machine, "part_replaced", seat.part, f"{old.serial} was replaced by {seat.serial}")

    def _write_sights(self, machine: int, look: HostLook) -> None:
        rows = self._connection.execute(
            'SELECT f.rowid, f.id, "check", part, cause, serial, status, seen, checks'
            " FROM finding f JOIN plan p ON p.id = f.plan WHERE host = ? AND gone IS NULL",
            (machine,),
        ).fetchall()
        after = {(each.check, each.part, each.cause): each for each in look.sights}
        still = set()
        for row, id_, check, part, cause, serial, status, seen, checks in rows:
            again = after.get((check, part, cause))
            if again is not None and again.status == status and self._is_same(machine, part, serial):
                still.add(again.id)
                if seen is not None or again.id != id_:
                    # The id holds the name of the host and what is said of the part besides its place.
                    self._connection.execute("UPDATE finding SET seen = NULL, id = ? WHERE rowid = ?", (again.id, row))
            elif again is not None or self._would_see(check, look, checks):
                self._end("finding", [row])
            elif seen is None:
                self._connection.execute(
                    "UPDATE finding SET seen = ? WHERE rowid = ?", (self._look_before(machine), row)
                )
        for each in look.sights:
            if each.id not in still:
                self._begin(machine, each)

    def _is_same(self, machine: int, part: str, serial: str) -> bool:
        """Whether the part in a place is still the one that was blamed, as far as is known."""
        return not serial or self._serial_at(machine, part) in ("", serial)

    def _would_see(self, check: str, look: HostLook, earlier: str) -> bool:
        return bool(look.judged) and would_see(check, look.judged, as_much=set(earlier.split("\n")) <= set(self._put))

    def _look_before(self, machine: int) -> float:
        """When the machine was asked before this sweep: a Finding whose ``seen`` is empty was in that look."""
        (at,) = self._connection.execute(
            "SELECT max((SELECT max(at) FROM sweep WHERE sweep.plan = asked.plan)) FROM asked WHERE host = ?",
            (machine,),
        ).fetchone()
        return float(at)

    def _begin(self, machine: int, sight: Sight) -> None:
        self._connection.execute(
            'INSERT INTO finding (id, host, "check", part, serial, cause, owner, status, evidence, plan, first)'
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (sight.id, machine, sight.check, sight.part, self._serial_at(machine, sight.part), sight.cause,
             sight.owner, sight.status, msgspec.json.encode(sight.evidence).decode(), self._plan, self._at),
        )  # fmt: skip

    def _serial_at(self, machine: int, part: str) -> str:
        found = self._connection.execute(
            "SELECT serial FROM seat WHERE host = ? AND part = ? AND gone IS NULL", (machine, part)
        ).fetchone()
        return str(found[0]) if found else ""

    def _end(self, table: str, rows: Sequence[int]) -> None:
        self._connection.executemany(f"UPDATE {table} SET gone = ? WHERE rowid = ?", [(self._at, row) for row in rows])

    def _event(self, machine: int, kind: str, subject: str, says: str) -> None:
        write_event(self._connection, self._at, machine, kind, subject=subject, says=says)
