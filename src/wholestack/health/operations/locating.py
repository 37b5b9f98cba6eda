"""A Finding of a sweep, and what is known of it without its results."""

from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import InputError
from wholestack.finding import Finding
from wholestack.health.check import Cause
from wholestack.health.explaining import explain
from wholestack.health.records import PLAN, SweepPlan
from wholestack.remote.host import Host
from wholestack.runs import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where a Finding is from."""

    finding: Finding
    cause: Cause
    host: Host
    plan: SweepPlan
    beside: tuple[Finding, ...]
    """The others of its host that are not ok, worst first."""


def locate(folder: Path, name: str) -> Located:
    """A Finding of a sweep.

    Args:
        folder: Of the sweep.
        name: Id of the Finding or its beginning.

    Raises:
        InputError: there is no such Finding, or it is of another version.
        RunDirectoryError: it is no run directory.
    """
    run = RunReader(folder)
    findings = run.findings()
    meaning = explain(name, findings)
    plan = run.read(PLAN, SweepPlan)
    found = meaning.finding
    if found is None or meaning.cause is None:
        raise InputError(f"{name!r} is no finding of {folder}", remedy="give the id of a finding")
    host = next((each for each in plan.hosts if each.name == found.subject), None)
    if host is None:
        raise InputError(f"{found.subject!r} is no host of {folder}", remedy="sweep again")
    beside = tuple(
        each for each in findings if each.subject == host.name and each.status != "ok" and each.id != found.id
    )
    return Located(finding=found, cause=meaning.cause, host=host, plan=plan, beside=beside)
