"""Settle the claims of a sweep or probe again from what lies in its run directory, and say how they stand today.

Nothing is asked of the hosts: another boot, driver or firmware shows in the next sweep. A claim that held lapses when
its time is over, since a verdict on a machine is only as good as it is young.
"""

from collections.abc import Sequence

from wholestack.claim import Claim, ClaimStatus, is_genuine, status_of
from wholestack.finding import Finding
from wholestack.health.active.concluding import claim_on
from wholestack.health.active.records import DEVICES, DeviceOutcome
from wholestack.health.active.records import KIND as PROBE
from wholestack.health.claim_causes import CHANGED
from wholestack.health.records import KIND as SWEEP
from wholestack.health.records import PLAN, RESULTS, SweepPlan
from wholestack.health.result import HostResult
from wholestack.health.verdicts import claim_of
from wholestack.runs import RunReader

KINDS = (SWEEP, PROBE)
"""Of run directories whose claims are on hosts."""


def settle(run: RunReader, *, at: float) -> list[Finding]:
    """A Finding for every claim: the one that settled it, unless claim or results were changed since.

    Args:
        run: The run directory of a sweep or probe.
        at: Seconds since the epoch.
    """
    if run.manifest.kind == PROBE:
        return _settle_probe(run, at=at)
    results = {each.host: each for each in run.journal(RESULTS, HostResult)}
    plan = run.read(PLAN, SweepPlan)
    last = {each.settles: each for each in run.findings() if each.settles}
    found = [_judge(claim, plan, results.get(claim.subject), last.get(claim.id), at) for claim in run.claims()]
    return [each for each in found if each is not None]


def _settle_probe(run: RunReader, *, at: float) -> list[Finding]:
    """One that was killed has settled nothing: its claim stays open."""
    devices = [(each.part, each.kind, each.serial) for each in run.journal(DEVICES, DeviceOutcome)]
    last = {each.settles: each for each in run.findings() if each.settles}
    found = []
    for claim in run.claims():
        settling = last.get(claim.id)
        again = claim_on(claim.subject, devices, sealed_at=claim.sealed_at)
        if not is_genuine(claim):
            found.append(_changed(claim, f"id {claim.id} is not the hash of the claim", at))
        elif settling is not None and again.predicted != claim.predicted:
            found.append(_changed(claim, f"devices {again.predicted}, sealed as {claim.predicted}", at))
        elif settling is not None:
            found.append(settling)
    return found


def standing(claim: Claim, findings: Sequence[Finding], *, now: float) -> ClaimStatus:
    """How a claim on a host stands; ``expired`` also where it once held."""
    status = status_of(claim, findings, now=now)
    late = claim.valid_until is not None and now > claim.valid_until
    return "expired" if late and status == "held" else status


def _judge(claim: Claim, plan: SweepPlan, result: HostResult | None, last: Finding | None, at: float) -> Finding | None:
    if not is_genuine(claim):
        return _changed(claim, f"id {claim.id} is not the hash of the claim", at)
    if result is None:
        return _changed(claim, f"no result of {claim.subject}", at)
    again = claim_of(result, plan, sealed_at=claim.sealed_at)
    if again.predicted != claim.predicted:
        said = f"traits {again.predicted}, sealed as {claim.predicted}"
        return _changed(claim, said, at)
    return last


def _changed(claim: Claim, said: str, at: float) -> Finding:
    return CHANGED.finding(claim.subject, claim.name, evidence=(said,), at=at, settles=claim.id)
