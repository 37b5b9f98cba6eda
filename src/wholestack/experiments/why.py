"""Why a run did not land: every claim that is not held, explained once, from the top.

A claim is cleared (ruled out) for an explanation when it held, whether or not the broken claim rests on it: that the
data are as sealed matters also to whoever looks into a slow worker.
"""

from dataclasses import replace

from wholestack.claim import Claim, Explanation, explain
from wholestack.errors import InputError
from wholestack.experiments.claims import FOUNDATIONS
from wholestack.experiments.standing import standing
from wholestack.runs import RunReader


def broken_first(run: RunReader, *, now: float, only: str | None = None) -> list[Explanation]:
    """Explanations of the claims that are not held, broken ones first.

    Args:
        run: The run directory.
        now: Seconds since the epoch.
        only: Name, id or subject (a host, in a sweep) of claims.

    Raises:
        InputError: no claim has that name, id or subject.
    """
    claims, findings = run.claims(), run.findings()
    statuses = standing(run, claims, findings, now=now)
    if only is not None:
        chosen = [claim for claim in claims if only in (claim.name, claim.id, claim.subject)]
        if not chosen:
            names = ", ".join(dict.fromkeys(claim.name for claim in claims))
            raise InputError(f"{run.path}: no claim {only!r}", remedy=f"known are: {names}")
    else:
        failing = [claim for claim in claims if statuses[claim.id] != "held"]
        below = {lower for claim in failing for lower in claim.rests_on}
        chosen = [claim for claim in failing if claim.id not in below]
        chosen.sort(key=lambda claim: statuses[claim.id] != "broken")
    held = [claim for claim in claims if statuses[claim.id] == "held" and _is_ground(claim)]
    return [_with_cleared(explain(claim.id, claims, findings, now=now), held) for claim in chosen]


def _is_ground(claim: Claim) -> bool:
    return claim.name in FOUNDATIONS or claim.name.endswith(".settings")


def _with_cleared(explanation: Explanation, held: list[Claim]) -> Explanation:
    known = {claim.id for claim in explanation.ruled_out} | {explanation.claim.id}
    return replace(explanation, ruled_out=(*explanation.ruled_out, *(claim for claim in held if claim.id not in known)))
