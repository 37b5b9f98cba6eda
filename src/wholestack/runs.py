"""Run directories: a folder that is the whole truth about a run.

It holds ``run.json`` (what was asked, with versions), append-only journals, and files that appear by atomic
rename. Resume, report and ``wholestack why`` only read it. One live process at a time may write.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from wholestack.claim import Claim
from wholestack.errors import RecordError, RunBusyError, RunDirectoryError
from wholestack.finding import Finding
from wholestack.journal import JournalWriter, hold, read_journal, write_atomic
from wholestack.record import Record, from_json, to_json

R = TypeVar("R", bound=Record)

MANIFEST = "run.json"
CLAIMS = "claims.jsonl"
FINDINGS = "findings.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest(Record):
    """What a run is: written once, first of all, and never changed."""

    SCHEMA: ClassVar[str] = "run/1"

    kind: str
    """What sort of run, for instance ``rehearsal``."""
    created_at: float
    """Seconds since the epoch."""
    seed: int
    """The one seed that everything random in the run derives from."""
    config: dict[str, object]
    """Everything that was asked for, as plain values."""
    versions: dict[str, str]
    """Versions of Python and of the libraries that produced the numbers."""


class RunReader:
    """Read access to a run directory; needs no lock and changes nothing.

    Raises:
        RunDirectoryError: the folder is not a run directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / MANIFEST).is_file():
            raise RunDirectoryError(f"{path}: not a run directory (no {MANIFEST})", remedy="name the --out of a run")

    @property
    def manifest(self) -> RunManifest:
        """What the run is."""
        return self.read(MANIFEST, RunManifest)

    def read(self, name: str, kind: type[R]) -> R:
        """One record from a file of its own."""
        try:
            return from_json(kind, (self.path / name).read_bytes(), where=str(self.path / name))
        except OSError as error:
            raise RecordError(f"{self.path / name}: cannot be read: {error.strerror}") from error

    def read_optional(self, name: str, kind: type[R]) -> R | None:
        """Like :meth:`read`, ``None`` when the run has not come that far."""
        return self.read(name, kind) if (self.path / name).exists() else None

    def journal(self, name: str, kind: type[R]) -> list[R]:
        """All acknowledged records of a journal."""
        return read_journal(self.path / name, kind)

    def claims(self) -> list[Claim]:
        """All claims of the run, oldest first."""
        return self.journal(CLAIMS, Claim)

    def findings(self) -> list[Finding]:
        """All findings of the run, oldest first."""
        return self.journal(FINDINGS, Finding)


class RunDirectory(RunReader):
    """Write access to a run directory, exclusive while it is open; use as a context manager.

    Make one with :meth:`create` or :meth:`resume`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock = lock_folder(path)
        self._writers: dict[str, JournalWriter[Record]] = {}

    @classmethod
    def create(cls, path: Path, manifest: RunManifest) -> Self:
        """Make a new run directory.

        Raises:
            RunDirectoryError: it exists and is not empty, or it cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            taken = next(path.iterdir(), None)
        except OSError as error:
            raise RunDirectoryError(
                f"{path}: cannot be made: {error.strerror}", remedy="choose another --out"
            ) from error
        if taken is not None:
            known = (path / MANIFEST).is_file()
            remedy = f"go on with --resume {path}, or choose another --out" if known else "choose another --out"
            raise RunDirectoryError(f"{path}: is not empty", remedy=remedy)
        write_atomic(path / MANIFEST, to_json(manifest, indent=2))
        return cls(path)

    @classmethod
    def resume(cls, path: Path, *, kind: str | None = None) -> Self:
        """Open an existing run directory for writing.

        Args:
            path: The folder.
            kind: Of the run that is wanted; default whatever it is.

        Raises:
            RunDirectoryError: it is not one, or of another kind.
            RunBusyError: a live process holds it.
        """
        run = cls(path)
        if kind is not None and run.manifest.kind != kind:
            run.close()
            raise RunDirectoryError(f"{path}: is a {run.manifest.kind!r} run, not a {kind!r} run")
        return run

    def write(self, name: str, record: Record) -> None:
        """One record into a file of its own, by atomic rename."""
        write_atomic(self.path / name, to_json(record, indent=2))

    def append(self, name: str, record: Record) -> None:
        """One record onto a journal; on return it is on the disk. A journal holds one class of record."""
        self.extend(name, (record,))

    def extend(self, name: str, records: Sequence[Record]) -> None:
        """Several at the price of one: on return all are on the disk, on an error none is."""
        if not records:
            return
        if name not in self._writers:
            self._writers[name] = JournalWriter(self.path / name, type(records[0]))
        self._writers[name].extend(records)

    def seal(self, claim: Claim) -> Claim:
        """Put a claim on the disk and hand it back."""
        self.append(CLAIMS, claim)
        return claim

    def report(self, finding: Finding) -> Finding:
        """Put a finding on the disk and hand it back."""
        self.append(FINDINGS, finding)
        return finding

    def folder(self, name: str) -> Path:
        """A folder inside the run, made if it is missing."""
        path = self.path / name
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunDirectoryError(f"{path}: cannot be made: {error.strerror}") from error
        return path

    def close(self) -> None:
        """Close the journals and let the next process in."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock_folder(path: Path) -> int:
    """Hold a folder for this process; the handle to close. See :func:`~wholestack.journal.hold`.

    Raises:
        RunBusyError: a live process holds it.
        RunDirectoryError: it cannot be written.
    """
    name = path / "lock"
    try:
        handle = hold(name)
    except BlockingIOError:
        holder = name.read_text(errors="replace")[:64].strip() or "unknown"
        raise RunBusyError(
            f"{path}: process {holder} is at work in it", remedy="wait for it, or end that process and resume"
        ) from None
    except OSError as error:
        raise RunDirectoryError(
            f"{name}: cannot be written: {error.strerror}", remedy="check owner and disk"
        ) from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle
