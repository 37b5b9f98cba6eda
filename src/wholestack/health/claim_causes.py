"""Why the claim of a host does not hold although no check of the host says so."""

from wholestack.health.check import Cause

CLAIM = "host.fit"
"""Name of the claim that a host may train."""
PART = "host.part"
"""Name of the claim of a sweep that left checks out: that the host passed those that were put."""

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
}
"""What each claims, by name."""
