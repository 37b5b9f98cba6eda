"""The file of a history: SQLite in WAL mode, its tables, and every way in which it cannot be opened or written.

A transaction is on the disk when it was acknowledged (``synchronous = FULL``); killed before, it never was. All times
are seconds since the epoch by the clock of the machine that swept. ``gone`` and ``seen`` are empty while a span lasts.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wholestack.errors import HistoryError

MAGIC = b"SQLite format 3\0"
OTHER_FILE = "name another file with --history"
DAMAGED = "the file is damaged; restore it, or begin a new one and add the kept sweeps again"
VERSION = 2
"""``PRAGMA user_version``."""
APPLICATION = 0x57_48_69_73
"""``PRAGMA application_id``, by which the file is known for what it is."""
PATIENCE_S = 5.0
"""How long another writer is waited for; it writes a sweep in less."""
SCHEMA = """
CREATE TABLE host (           -- one row a machine, by its serial number; the name is where it is now
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, serial TEXT UNIQUE, first REAL NOT NULL,
    is_named INTEGER NOT NULL DEFAULT 1,  -- 0: another machine answers under this name now, or it was retired
    state TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX host_name ON host (name) WHERE is_named;
CREATE TABLE plan (           -- what was asked of whom; many sweeps share one
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, checks TEXT NOT NULL,
    in_full INTEGER NOT NULL DEFAULT 0);  -- 0: checks were left out, or it is not known
CREATE TABLE asked (host INTEGER NOT NULL, plan INTEGER NOT NULL, PRIMARY KEY (host, plan)) WITHOUT ROWID;
CREATE TABLE sweep (
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, plan INTEGER NOT NULL, at REAL NOT NULL, folder TEXT NOT NULL);
CREATE INDEX sweep_of_plan ON sweep (plan, at);
CREATE INDEX sweep_at ON sweep (at);
CREATE TABLE finding (        -- a span of one Finding with one status
    id TEXT NOT NULL, host INTEGER NOT NULL, "check" TEXT NOT NULL, part TEXT NOT NULL, serial TEXT NOT NULL,
    cause TEXT NOT NULL, owner TEXT NOT NULL, status TEXT NOT NULL, evidence TEXT NOT NULL, plan INTEGER NOT NULL,
    first REAL NOT NULL,
    seen REAL,                -- when it was seen last, where the latest look could not look; empty: in the latest look
    gone REAL);
CREATE INDEX finding_open ON finding (host) WHERE gone IS NULL;
CREATE INDEX finding_host ON finding (host, first);
CREATE TABLE fact (           -- a span of one value: a version, a place
    host INTEGER NOT NULL, name TEXT NOT NULL, part TEXT NOT NULL, value TEXT NOT NULL, first REAL NOT NULL, gone REAL);
CREATE INDEX fact_host ON fact (host, name);
CREATE TABLE seat (           -- a span of one part in one slot
    host INTEGER NOT NULL, part TEXT NOT NULL, kind TEXT NOT NULL, serial TEXT NOT NULL, model TEXT NOT NULL,
    lot TEXT NOT NULL, first REAL NOT NULL, gone REAL);
CREATE INDEX seat_host ON seat (host, part);
CREATE INDEX seat_serial ON seat (kind, serial, first);
CREATE INDEX seat_lot ON seat (kind, lot, model);
CREATE TABLE silence (
    id INTEGER PRIMARY KEY, "check" TEXT NOT NULL, finding TEXT NOT NULL, host INTEGER, part TEXT NOT NULL,
    reason TEXT NOT NULL, by TEXT NOT NULL, since REAL NOT NULL, until REAL NOT NULL, lifted REAL);
CREATE TABLE event (          -- only added to: what happened to whom, when, by whom, why
    id INTEGER PRIMARY KEY, at REAL NOT NULL, host INTEGER, kind TEXT NOT NULL, subject TEXT NOT NULL,
    says TEXT NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL);
CREATE INDEX event_host ON event (host, at);
CREATE TRIGGER event_kept BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
CREATE TRIGGER event_stays BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are only added'); END;
"""


UPGRADE = "ALTER TABLE plan ADD COLUMN in_full INTEGER NOT NULL DEFAULT 0"
"""From version 1, which did not keep whether a sweep left checks out: what it says is not taken for a look in full."""


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """Open a history; with ``write`` make it if it is missing.

    Raises:
        HistoryError: it is missing, no history, of a later version (to read: of another), or cannot be opened.
    """
    if not write and not path.exists():
        raise HistoryError(f"{path}: no history yet", remedy="wholestack health history add SWEEP")
    with speaking_of(path):
        _refuse_other_files(path)
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'rwc' if write else _reading(path)}",
            uri=True,
            timeout=PATIENCE_S,
            isolation_level=None,
        )
        try:
            _prepare(connection, path, write=write)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def speaking_of(path: Path) -> Iterator[None]:
    """Turn what SQLite and the disk say into one line that says what to do."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        raise HistoryError(f"{path}: {error}", remedy=_remedy(path, error)) from error


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All or nothing, and on the disk when it ends."""
    with speaking_of(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _refuse_other_files(path: Path) -> None:
    """SQLite takes a file of a few bytes for an empty database, and would write over it."""
    if path.exists():
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
        if head and head != MAGIC:
            raise HistoryError(f"{path}: is no history of health", remedy=OTHER_FILE)


def _reading(path: Path) -> str:
    """A reader writes a list of readers beside the file; where it may not, a file that nobody writes is read as is."""
    journal = path.with_name(path.name + "-wal")
    alone = not os.access(path.parent, os.W_OK) and not (journal.exists() and journal.stat().st_size)
    return "ro&immutable=1" if alone else "ro"


def _prepare(connection: sqlite3.Connection, path: Path, *, write: bool) -> None:
    found = _marks(connection)
    if found == (0, 0, 0) and write:
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection, path):
            # Another process may have made the tables since.
            found = _marks(connection)
            if found == (0, 0, 0):
                for statement in _statements():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                found = _marks(connection)
    application, version, _ = found
    if application == APPLICATION and version < VERSION:
        if not write:
            remedy = "wholestack health history add SWEEP brings it up"
            raise HistoryError(f"{path}: is of version {version}, this one reads {VERSION}", remedy=remedy)
        with transaction(connection, path):
            _, version, _ = _marks(connection)  # another process may have done it since
            if version < VERSION:
                connection.execute(UPGRADE)
                connection.execute(f"PRAGMA user_version = {VERSION}")
                version = VERSION
    if application != APPLICATION:
        raise HistoryError(f"{path}: is no history of health", remedy=OTHER_FILE)
    if version > VERSION:
        remedy = "use the version of wholestack that wrote it"
        raise HistoryError(f"{path}: is of version {version}, this one reads {VERSION}", remedy=remedy)
    connection.execute("PRAGMA synchronous = FULL")


def _marks(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose file it is, of which version, and how many tables it has."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return application, version, tables


def _statements() -> Iterator[str]:
    text = ""
    for line in SCHEMA.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""


def _remedy(path: Path, error: Exception) -> str:
    said = str(error)
    if "locked" in said:
        return "another process writes it; try again when that one is done"
    if "full" in said:
        return "make room on the disk and do the same again; what was written before is whole"
    if "readonly" in said or "unable to open" in said or isinstance(error, OSError):
        return f"make {path.parent} and the file writable, or name another file with --history"
    return DAMAGED
