"""How the claims of a run stand today, whatever kind of run it is."""

from collections.abc import Sequence

from wholestack.claim import Claim, ClaimStatus, status_of
from wholestack.finding import Finding
from wholestack.health import settlement as sweeps
from wholestack.runs import RunReader


def standing(
    run: RunReader, claims: Sequence[Claim], findings: Sequence[Finding], *, now: float
) -> dict[str, ClaimStatus]:
    """Status by id of the claim; a claim on a host lapses even if it held, since machines change by themselves.

    Args:
        run: The run directory.
        claims: Its claims.
        findings: Its findings, oldest first.
        now: Seconds since the epoch.
    """
    settling: dict[str, list[Finding]] = {claim.id: [] for claim in claims}
    for each in findings:
        if each.settles in settling:
            settling[each.settles].append(each)
    status = sweeps.standing if run.manifest.kind in sweeps.KINDS else status_of
    return {claim.id: status(claim, settling[claim.id], now=now) for claim in claims}
