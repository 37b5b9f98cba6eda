"""What an earlier sweep left behind, read a host at a time: what thousands of hosts said stays on the disk."""

from pathlib import Path
from typing import BinaryIO

import msgspec

from wholestack.errors import RecordError, RunDirectoryError
from wholestack.health.check import Before
from wholestack.health.records import RESULTS
from wholestack.health.result import HostResult
from wholestack.record import from_builtins
from wholestack.runs import RunReader


class _Named(msgspec.Struct):
    """Of a line, the host alone: the rest is passed over, four times as fast as it is read."""

    host: str = ""


_NAMED = msgspec.json.Decoder(_Named)


class EarlierSweep:
    """Counters by host of an earlier sweep, ended or not.

    Args:
        folder: Its run directory.

    Raises:
        RunDirectoryError: it is none, or cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = RunReader(folder).path / RESULTS
        self._places: dict[str, tuple[int, int]] = {}
        if self._path.exists():
            try:
                with self._path.open("rb") as file:
                    self._index(file)
            except OSError as error:
                raise RunDirectoryError(f"{self._path}: cannot be read: {error.strerror}") from error

    def before(self, host: str) -> Before | None:
        """What the last look at a host left behind, or carried over; ``None`` if there was none, or none said a time.

        Raises:
            RecordError: the line was damaged since.
        """
        raw, where = self._line(host)
        after = raw.get("after") if raw is not None else None
        return None if after is None else from_builtins(Before, after, where=where)

    def result(self, host: str) -> HostResult | None:
        """What a host said, ``None`` if it was not asked, or not yet.

        Raises:
            RecordError: the line was damaged, or is of another version.
        """
        raw, where = self._line(host)
        return None if raw is None else from_builtins(HostResult, raw, where=where)

    def _line(self, host: str) -> tuple[dict[str, object] | None, str]:
        if host not in self._places:
            return None, ""
        start, number = self._places[host]
        where = f"{self._path}:{number}"
        with self._path.open("rb") as file:
            file.seek(start)
            return _decoded(file.readline(), where), where

    def _index(self, file: BinaryIO) -> None:
        """The latest line of a host counts; an unfinished last line was never acknowledged."""
        start = 0
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                try:
                    named = _NAMED.decode(line)
                except msgspec.DecodeError as error:
                    raise RecordError(f"{self._path}:{number}: {error}") from error
                self._places[named.host] = (start, number)
            start += len(line)


def _decoded(line: bytes, where: str) -> dict[str, object]:
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise RecordError(f"{where}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise RecordError(f"{where}: expected an object")
    return found
