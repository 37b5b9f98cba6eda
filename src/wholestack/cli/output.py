"""What every command does alike: durations in, JSON and findings out."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from wholestack.errors import InputError
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN, Finding, Skipped, Status, exit_code, worst, worst_first
from wholestack.journal import read_at_most
from wholestack.record import to_builtins

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

MOST_BYTES = 16_000_000
"""Of a profile, an inventory or a program."""


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``8m``, ``90s``, ``1.5h`` or ``2h30m``; a bare number is seconds.

    Raises:
        InputError: it is no duration, or not above zero.
    """
    plain = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        plain += "s"
    if not re.fullmatch(r"(\d+(\.\d+)?[smhd])+", plain):
        raise InputError(f"{text!r} is no duration", remedy="write for instance 8m, 90s or 1.5h")
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", plain))
    if seconds <= 0:
        raise InputError(f"{text!r} is no time at all", remedy="give more than zero")
    return seconds


def parse_end(text: str, now: float) -> float:
    """When something ends, in seconds since the epoch: a time from now such as ``90d``, or a date, without a zone UTC.

    Raises:
        InputError: it is neither.
    """
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        pass
    try:
        return now + parse_duration(text)
    except InputError as error:
        raise InputError(
            f"--until {text!r} is no duration and is no date", remedy="write for instance 2027-03-31 or 90d"
        ) from error


def parse_size(text: str) -> int:
    """Bytes of a size such as ``512MiB``, ``1.5GB`` or ``1000``.

    Raises:
        InputError: it is no size, or not above zero.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(i?)b?", text.strip().lower())
    if found is None or (found[3] and not found[2]):
        raise InputError(f"{text!r} is no size", remedy="write for instance 512MiB, 2GB or a number of bytes")
    size = int(float(found[1]) * (1024 if found[3] else 1000) ** " kmg".index(found[2] or " "))
    if size <= 0:
        raise InputError(f"{text!r} is no room at all", remedy="give more than zero")
    return size


def print_json(document: Mapping[str, object] | Sequence[object]) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def findings_document(
    findings: Iterable[Finding],
    *,
    status: Status | None = None,
    skipped: Iterable[Skipped] | None = None,
    everything: bool = False,
) -> dict[str, object]:
    """Findings as JSON has them, of whatever command.

    Args:
        findings: In any order.
        status: Where it is more than the worst of them, for instance of a host on which nothing could be looked at.
        skipped: Checks that did not apply, where the command knows them.
        everything: Also what is ok.
    """
    ordered = worst_first(findings)
    shown = [each for each in ordered if everything or each.status != "ok"]
    document: dict[str, object] = {
        "status": status or worst(ordered),
        "findings": [to_builtins(each) for each in shown],
    }
    return document if skipped is None else document | {"skipped": [to_builtins(each) for each in skipped]}


def code_for(status: Status, findings: Iterable[Finding]) -> int:
    """Exit code of a command that prints a status and Findings: never 0 where the status is ``unknown``.

    Args:
        status: As printed.
        findings: Those that it rests on; a warning among them is 1 even where the worst of all is ``unknown``.
    """
    code = exit_code(findings)
    return EXIT_UNKNOWN if status == "unknown" and code == EXIT_OK else code


def read_text(path: Path) -> str:
    """Text of a file that the user named; see :func:`read_bytes`."""
    return read_bytes(path).decode(errors="replace")


def read_bytes(path: Path) -> bytes:
    """A file that the user named.

    Raises:
        InputError: it cannot be read, or is larger than anything that a person writes.
    """
    return read_at_most(path, MOST_BYTES, remedy="name an existing file")


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """Say how to go on where the block is interrupted.

    Args:
        command: That goes on.
    """
    try:
        yield
    except KeyboardInterrupt:
        print(f"wholestack: interrupted; go on with: {command}", file=sys.stderr)
        raise


def refuse_with_resume(**given: object) -> None:
    """A run keeps what it was started with: options of a new one cannot be given with ``--resume``.

    Raises:
        InputError: names the first option that was given.
    """
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(
                f"--{name.strip('_').replace('_', '-')} cannot be given with --resume",
                remedy="a run keeps what it was started with",
            )
