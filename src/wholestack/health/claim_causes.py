"""The claims on a host: their names, which Findings settle one, and why one does not hold though no check says so."""

from collections.abc import Sequence
from dataclasses import replace

from wholestack.claim import Claim
from wholestack.finding import Finding, Status
from wholestack.health.check import Cause

VALID_S = 24 * 3600.0
"""How long a claim on a host is believed."""

CLAIM = "host.fit"
"""Name of the claim that a host may train."""
PART = "host.part"
"""Name of the claim of a sweep that left checks out: that the host passed those that were put."""

COMPUTES = "host.computes"
"""Name of the claim of a probe: that the devices of a host multiply right and keep what they are given."""

NOTHING_APPLIES = Cause(
    code="host.nothing_applies",
    says="none of the checks that were put applies",
    owner="cluster team",
    remedy="put others too (leave out --only), or install what the skipped ones lack",
    status="unknown",
)
IN_PART = Cause(
    code="host.in_part",
    says="the host was not looked at in full",
    owner="cluster team",
    remedy="sweep without --only and --skip",
    status="unknown",
)
CHANGED = Cause(
    code="host.changed",
    says="the sweep was changed after it was sealed",
    owner="cluster team",
    remedy="restore claims.jsonl and results.jsonl from a copy, or sweep again",
)
CAUSES = (NOTHING_APPLIES, IN_PART, CHANGED)
CHECKS = {
    CLAIM: "whether a host may train",
    PART: "whether a host passed the checks that were put",
    COMPUTES: "whether the devices of a host multiply right, keep what they are given and keep pace",
}
"""What each claims, by name."""


def settled_by(findings: Sequence[Finding], status: Status, claim: Claim) -> list[Finding]:
    """The same Findings, of which those that decide settle the claim: what fails, else what is unknown; else none.

    Args:
        findings: Of the host.
        status: Its verdict.
        claim: Of the host.
    """
    deciding = status if status in ("fail", "unknown") else None
    return [replace(each, settles=claim.id if each.status == deciding else "") for each in findings]
