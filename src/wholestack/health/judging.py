"""Judge one saved output: what a person pasted, a colleague sent or a cron job kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, ClassVar

from wholestack.errors import InputError
from wholestack.finding import Finding, Skipped, Status, finding, worst, worst_first
from wholestack.health.catalog import named
from wholestack.health.check import Check, Expectation, Symptom
from wholestack.health.cleaning import printable
from wholestack.health.diagnosis import diagnose, to_findings
from wholestack.health.examine import Examination, examine
from wholestack.health.probe import Probe
from wholestack.health.telemetry import LOST, ONE_FILE
from wholestack.record import Record
from wholestack.remote.batch import Output

MOST_BYTES = 16_000_000
"""Of a saved output; what is longer is cut, and what was cut is ``unknown``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Record):
    """What the checks say of one host or one saved output."""

    SCHEMA: ClassVar[str] = ""

    status: Status
    """The worst; ``unknown`` where nothing was looked at, but for what the part itself does not support: a card
    without ECC has no ECC fault."""
    findings: tuple[Finding, ...]
    """Worst first; with an ``ok`` for every check that passed."""
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A saved output as it was read."""

    subject: str
    """The file's path, or ``standard input``."""
    content: bytes
    truncated: bool = False
    """Whether there was more than :data:`MOST_BYTES`."""


def read_saved(file: str, stdin: BinaryIO) -> Saved:
    """Read a file, or standard input where it is called ``-``.

    Raises:
        InputError: it cannot be read.
    """
    try:
        if file == "-":
            content = stdin.read(MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}", remedy="name a file, or -") from error
    subject = "standard input" if file == "-" else file
    return Saved(subject=subject, content=content[:MOST_BYTES], truncated=len(content) > MOST_BYTES)


def judge(check_name: str, saved: Saved | str, *, expectation: Expectation | None = None, now: float) -> Judgement:
    """Judge a saved output.

    Args:
        check_name: A name of the catalogue.
        saved: The output; a text is judged as it is.
        expectation: Of the host's kind.
        now: Seconds since the epoch; where the output has times, its newest line counts instead.

    Returns:
        The worst status with its Findings. Empty or foreign text is ``unknown``, never ``ok``.

    Raises:
        InputError: no check has that name.
    """
    check = named(check_name)
    if isinstance(saved, str):
        saved = Saved(subject="text", content=saved.encode(errors="replace"))
    output = Output(name="", stdout=saved.content, truncated=saved.truncated)
    probe = _probe_for(check, output.text)
    outputs = {probe.name: Output(name=probe.name, stdout=saved.content, truncated=saved.truncated)}
    found = examine(outputs, (check,), expectation=expectation, now=now)
    return judgement(saved.subject, _of_one_file(found, check, probe), checks=(check,))


def judgement(subject: str, found: Examination, *, checks: Iterable[Check]) -> Judgement:
    """The Findings of one host by itself, not compared with others."""
    about = {check.name: check.about for check in checks}
    passed = [finding(subject, name, "ok", evidence=(f"none of: {about[name]}",), at=found.at) for name in found.passed]
    bad = [_printable(each) for each in to_findings(subject, diagnose(found.symptoms), at=found.at)]
    findings = worst_first([*bad, *passed])
    skipped = tuple(replace(each, detail=printable(each.detail)) for each in found.skipped)
    unsupported = bool(found.skipped) and all(each.reason == "not_supported" for each in found.skipped)
    status: Status = "ok" if unsupported and not findings else worst(findings)
    return Judgement(status=status, findings=tuple(findings), skipped=skipped)


def _printable(each: Finding) -> Finding:
    """A Finding without the control characters that a host may have sent."""
    return finding(
        each.subject,
        each.check,
        each.status,
        part=printable(each.part),
        evidence=tuple(printable(line) for line in each.evidence),
        cause=each.cause,
        owner=each.owner,
        remedy=each.remedy,
        at=each.at,
    )


def _probe_for(check: Check, text: str) -> Probe[object]:
    """The first probe of the check that knows the format; else its first, which then says that it does not."""
    return next((probe for probe in check.probes if probe.knows(text)), check.probes[0])


def _of_one_file(found: Examination, check: Check, given: Probe[object]) -> Examination:
    """Nobody asked a host: what is missing is another file, not an answer."""
    commands = {probe.name: probe.command.shell.splitlines()[0] for probe in check.probes}
    symptoms = tuple(
        replace(each, symptom=_needed(each.symptom, check, commands, given)) if each.symptom.cause is LOST else each
        for each in found.symptoms
    )
    return replace(found, symptoms=symptoms)


def _needed(lost: Symptom, check: Check, commands: Mapping[str, str], given: Probe[object]) -> Symptom:
    also = f"{check.name} also needs the output of: {commands[lost.part.key]}"
    return Symptom(
        cause=ONE_FILE, part=lost.part, evidence=(also, f"the one file was read as that of: {commands[given.name]}")
    )
