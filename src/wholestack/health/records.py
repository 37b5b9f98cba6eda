"""What a sweep writes into its run directory, file by file.

=====================  =========================  ==================================================
file                   record                     appears
=====================  =========================  ==================================================
``run.json``           ``runs.RunManifest``       first of all
``plan.json``          :class:`SweepPlan`         with it: hosts, checks, expectations
``results.jsonl``      ``result.HostResult``      a line a host, when it has answered or is given up
``claims.jsonl``       ``claim.Claim``            when all hosts are done: one a host
``findings.jsonl``     ``finding.Finding``        with it, worst first; they settle the claims
``summary.json``       :class:`SweepSummary`      last of all
=====================  =========================  ==================================================

Other files may join them (tickets, metrics); a reader takes no notice of files that it does not know. What many sweeps
came to is kept in a history of its own (:mod:`wholestack.health.history`).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from wholestack.finding import Finding, Skipped, Status
from wholestack.health.check import Expectation
from wholestack.record import Record
from wholestack.remote.host import Host

KIND = "sweep"
"""``RunManifest.kind`` of a sweep."""
PLAN = "plan.json"
RESULTS = "results.jsonl"
SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan(Record):
    """What was asked of whom; never changed, so that a resumed sweep asks the rest the same."""

    SCHEMA: ClassVar[str] = "health-plan/1"

    hosts: tuple[Host, ...]
    checks: tuple[str, ...]
    """Names, in the order of the catalogue."""
    left_out: tuple[str, ...] = ()
    """Passive checks of the catalogue that were not to be put: such a sweep says nothing on who may train."""
    expectations: dict[str, Expectation] = field(default_factory=dict)
    """By kind of host."""
    deadline_s: float
    """Wall seconds for the round trip of one host."""
    concurrency: int
    """Hosts at a time."""
    retries: int = 2
    """Further connections tried."""
    sudo: bool = False
    """Whether ``sudo -n`` may be used."""
    since: str = ""
    """Folder of the sweep whose counters rates are counted from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostVerdict(Record):
    """How one host stands after its sweep."""

    host: str
    kind: str
    status: Status
    """The worst of its Findings; ``warn`` may train."""
    findings: tuple[Finding, ...]
    """Worst first, what is not ok."""
    passed: tuple[str, ...]
    """Checks that saw nothing."""
    skipped: tuple[Skipped, ...]
    unjudged: tuple[str, ...]
    """Checks that could not be put."""

    @property
    def may_train(self) -> bool | None:
        """``None`` where it cannot be told."""
        return {"ok": True, "warn": True, "fail": False, "unknown": None}[self.status]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSummary(Record):
    """What a sweep came to."""

    SCHEMA: ClassVar[str] = "health-summary/1"

    status: Status
    """The worst of all hosts."""
    may_train: int
    may_not: int
    unknown: int
    warnings: int
    """Hosts among those that may train that something is to be said of."""
    seconds: float
    """Wall time of asking the hosts, the last run of a resumed sweep only."""
    at: float
    """Seconds since the epoch, when it ended."""
