"""From results to verdicts: which hosts may train, with the Findings and the Claim of each.

A host may not train if anything fails, cannot be told if anything that matters could not be read or too little applied
(:mod:`wholestack.health.coverage`), else it may; a warning is a reason to look, not to take a host away. Its Claim says
so and how many checks that rests on, and is settled in the same breath by the Findings that decide. It is another one
as soon as the host's boot, driver, firmware or any other trait is another; since nobody asks the host again, an old
claim only lapses by time, after :data:`VALID_S`, or is replaced by that of a newer sweep.

A sweep that left checks out (``--only``, ``--skip``) seals :data:`PART` instead: what was put, and nothing on training.
Where nothing is wrong that claim is settled as ``unknown``, since the host was not looked at in full.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wholestack.claim import Claim, seal
from wholestack.errors import InputError, RecordError
from wholestack.finding import WORST_FIRST, Finding, Status, finding, worst_first
from wholestack.health import catalog
from wholestack.health.check import Cause
from wholestack.health.claim_causes import CLAIM, IN_PART, NOTHING_APPLIES, PART, VALID_S, settled_by
from wholestack.health.cleaning import printable
from wholestack.health.coverage import asks_gpus, hosts_with_gpus, shortfall
from wholestack.health.diagnosis import CheckSymptom, diagnose, to_findings
from wholestack.health.fleet import compare
from wholestack.health.records import KIND, PLAN, RESULTS, SUMMARY, HostVerdict, SweepPlan, SweepSummary
from wholestack.health.result import HostResult, symptoms_of
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, to_json
from wholestack.runs import CLAIMS, FINDINGS, RunDirectory, RunReader

MOST_NAMES = 8
"""Checks that the statement of a claim on a part of them names."""
DELIVERED = ("gpu.name", "gpu.count", "gpu.driver", "ib.port_count", "ib.rate", "memory.size_gib", "cpu.count")
"""Traits that the statement of a claim names, where the host gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A concluded sweep."""

    folder: Path
    plan: SweepPlan
    verdicts: tuple[HostVerdict, ...]
    """In the order of the plan."""
    summary: SweepSummary


def conclude(run: RunDirectory, plan: SweepPlan, results: Sequence[HostResult], *, seconds: float, at: float) -> Sweep:
    """Compare, diagnose, seal, settle; and put all of it on the disk.

    Args:
        run: The run directory.
        plan: What was asked.
        results: One a host.
        seconds: Wall time of asking.
        at: Seconds since the epoch.
    """
    known = catalog.named_causes()
    causes = {code: cause for code, (cause, _) in known.items()}
    beside = compare(results, plan.expectations, known)
    replaced = {claim.subject: claim for claim in RunReader(Path(plan.since)).claims()} if plan.since else {}
    with_gpus = hosts_with_gpus(results, plan.checks, plan.expectations)
    verdicts: list[HostVerdict] = []
    claims: list[Claim] = []
    findings: list[Finding] = []
    for result in results:
        short = shortfall(plan.checks, result.skipped, gpus=result.host in with_gpus)
        verdict = _verdict(result, [*beside.get(result.host, ()), *short], causes)
        claim = claim_of(result, plan, replaces=replaced.get(result.host), sealed_at=at)
        verdicts.append(verdict)
        claims.append(claim)
        findings += settled(verdict, claim, at=at)
    summary = _summary(verdicts, seconds=seconds, at=at)
    _write_lines(run.path / CLAIMS, claims)
    _write_lines(run.path / FINDINGS, worst_first(findings))
    run.write(SUMMARY, summary)
    return Sweep(folder=run.path, plan=plan, verdicts=tuple(verdicts), summary=summary)


def read_sweep(folder: Path) -> Sweep:
    """A concluded sweep from its run directory.

    Raises:
        InputError: it is another kind of run, or has not ended.
        RunDirectoryError: it is no run directory.
        RecordError: its files do not belong together.
    """
    run = RunReader(folder)
    if run.manifest.kind != KIND:
        raise InputError(f"{folder}: a {run.manifest.kind}, not a sweep", remedy="name the --out of a sweep")
    summary = run.read_optional(SUMMARY, SweepSummary)
    if summary is None:
        raise InputError(f"{folder}: the sweep has not ended", remedy=f"wholestack health sweep --resume {folder}")
    plan = run.read(PLAN, SweepPlan)
    by_host: dict[str, list[Finding]] = {host.name: [] for host in plan.hosts}
    for each in run.findings():
        if each.status != "ok" and each.check not in (CLAIM, PART):
            by_host.setdefault(each.subject, []).append(replace(each, settles=""))
    results = {result.host: result for result in run.journal(RESULTS, HostResult)}
    if set(results) != set(by_host):
        raise RecordError(f"{folder}: is damaged: results and hosts do not belong together", remedy="sweep again")
    verdicts = tuple(_from_findings(results[host.name], by_host[host.name]) for host in plan.hosts)
    again = _summary(verdicts, seconds=summary.seconds, at=summary.at)
    if again != summary:
        # Findings that were lost must not make a broken host fit.
        raise RecordError(f"{folder}: is damaged: findings and summary do not belong together", remedy="sweep again")
    return Sweep(folder=folder, plan=plan, verdicts=verdicts, summary=summary)


def settled(verdict: HostVerdict, claim: Claim, *, at: float) -> list[Finding]:
    """The Findings of a host; those that decide settle its claim: what fails, else what is unknown, else an ``ok``."""
    found = settled_by(verdict.findings, verdict.status, claim)
    if not any(each.settles for each in found):
        found.append(_settling(verdict, claim, "unknown" if verdict.status == "unknown" else "ok", at))
    return found


def _settling(verdict: HostVerdict, claim: Claim, status: Status, at: float) -> Finding:
    said = f"{len(verdict.passed)} checks passed, {len(verdict.findings)} warnings, {len(verdict.skipped)} skipped"
    if status == "unknown":
        return NOTHING_APPLIES.finding(
            verdict.host, claim.name, evidence=(said, claim.statement), at=at, settles=claim.id
        )
    if claim.name == CLAIM:
        return finding(verdict.host, CLAIM, status, evidence=(said,), at=at, settles=claim.id)
    return IN_PART.finding(verdict.host, PART, evidence=(said, claim.statement), at=at, settles=claim.id)


def _verdict(result: HostResult, beside: Iterable[CheckSymptom], causes: Mapping[str, Cause]) -> HostVerdict:
    symptoms = diagnose([*symptoms_of(result, causes), *beside])
    return _from_findings(result, to_findings(result.host, symptoms, at=result.at))


def _from_findings(result: HostResult, findings: Sequence[Finding]) -> HostVerdict:
    ordered = tuple(worst_first(findings))
    nothing: Status = "ok" if result.passed else "unknown"
    fine = {each.check for each in ordered}
    return HostVerdict(
        host=result.host,
        kind=result.kind,
        status=ordered[0].status if ordered else nothing,
        findings=ordered,
        passed=tuple(name for name in result.passed if name not in fine),
        skipped=result.skipped,
        unjudged=result.unjudged,
    )


def claim_of(result: HostResult, plan: SweepPlan, *, replaces: Claim | None = None, sealed_at: float) -> Claim:
    """The claim that one host may train; of a sweep that left checks out, that it passed those that were put.

    Args:
        result: Of the host.
        plan: What was asked.
        replaces: The claim of the earlier sweep on this host; named, and that it is void where the host is another.
        sealed_at: Seconds since the epoch.
    """
    traits = sorted((trait.name, str(trait.value), len(trait.parts)) for trait in result.traits)
    predicted = digest(result.boot_id, traits)
    whole = not plan.left_out and not result.unjudged
    return seal(
        PART if plan.left_out else CLAIM,
        result.host,
        (_partial if plan.left_out else _statement)(result, plan) + _replacing(replaces, predicted if whole else None),
        quantity="digest of boot id and all traits",
        predicted=predicted,
        sealed_at=sealed_at,
        valid_until=sealed_at + VALID_S,
    )


def _statement(result: HostResult, plan: SweepPlan) -> str:
    delivers = ", ".join(f"{name} {_values(result, name)}" for name in DELIVERED if _values(result, name))
    what = f": {delivers}" if delivers else ""
    names = _judged(result, plan)
    without = "" if asks_gpus(names) else ", none of them of a GPU"
    judged = f"{len(names)} of {len(plan.checks)} checks judged{without}"
    until = f"until its boot, driver or firmware changes, at most {VALID_S / 3600:g} h"
    return f"{result.host} may train{what}; {judged}; {until}"


def _replacing(earlier: Claim | None, predicted: str | None) -> str:
    """Only what was read in full can tell that a host is another."""
    if earlier is None:
        return ""
    void = predicted is not None and earlier.name == CLAIM and earlier.predicted != predicted
    why = ", no longer valid: its boot, driver, firmware or another trait changed" if void else ""
    return f"; replaces {earlier.id[:8]}{why}"


def _partial(result: HostResult, plan: SweepPlan) -> str:
    judged = _judged(result, plan)
    names = ", ".join(judged[:MOST_NAMES]) or "nothing"
    more = f" and {len(judged) - MOST_NAMES} more" if len(judged) > MOST_NAMES else ""
    every = len(plan.checks) + len(plan.left_out)
    return f"{result.host} passed {names}{more}; {len(plan.checks)} of {every} checks put, nothing is said on training"


def _judged(result: HostResult, plan: SweepPlan) -> list[str]:
    """Checks that applied and could be read, in the order of the catalogue."""
    not_judged = {*(each.check for each in result.skipped), *result.unjudged}
    return [name for name in plan.checks if name not in not_judged]


def _values(result: HostResult, name: str) -> str:
    return "/".join(sorted({printable(str(trait.value)) for trait in result.traits if trait.name == name}))


def _summary(verdicts: Sequence[HostVerdict], *, seconds: float, at: float) -> SweepSummary:
    statuses = [verdict.status for verdict in verdicts]
    return SweepSummary(
        status=min(statuses, key=WORST_FIRST.index),
        may_train=statuses.count("ok") + statuses.count("warn"),
        may_not=statuses.count("fail"),
        unknown=statuses.count("unknown"),
        warnings=statuses.count("warn"),
        seconds=seconds,
        at=at,
    )


def _write_lines(path: Path, records: Sequence[Record]) -> None:
    """A whole journal at once, by atomic rename: there is no half of a conclusion."""
    write_atomic(path, b"".join(to_json(record) + b"\n" for record in records))
