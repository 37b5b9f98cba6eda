"""``wholestack ready``, ``settle`` and ``why``: the claims of a run directory."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.claim import Explanation, exit_code
from wholestack.cli.output import findings_document, print_json
from wholestack.experiments.phases.landing import claim_lines
from wholestack.experiments.records import ClaimLine
from wholestack.experiments.settlement import keep_new
from wholestack.experiments.settlement import settle as settle_claims
from wholestack.experiments.why import broken_first
from wholestack.finding import EXIT_UNKNOWN
from wholestack.finding import exit_code as findings_exit_code
from wholestack.record import to_builtins
from wholestack.runs import RunDirectory, RunReader

Json = Annotated[bool, Parameter(negative="")]


def ready(folder: Path, /, *, json: Json = False) -> int:
    """Go or no-go: 0 when every claim of the run held; names every claim that is open, expired, unknown or broken.

    Parameters
    ----------
    folder
        A run directory.
    json
        Print one JSON document.
    """
    lines = claim_lines(RunReader(folder), now=time.time())
    code = exit_code([line.status for line in lines]) if lines else EXIT_UNKNOWN
    not_held = [line for line in lines if line.status != "held"]
    if json:
        print_json({"go": code == 0, "claims": [to_builtins(line) for line in lines]})
    elif not lines:
        print("no-go: the run has sealed no claim yet")
    else:
        print("go: every claim held" if code == 0 else f"no-go: {len(not_held)} of {len(lines)} claims are not held")
        _print_lines(not_held)
    return code


def settle(folder: Path, /, *, json: Json = False, all: Json = False) -> int:
    """Settle the claims that the run's evidence allows: hash again, put actual beside predicted, keep the Findings.

    Parameters
    ----------
    folder
        A run directory that no live process is at work in.
    json
        Print one JSON document.
    all
        Show what is ok as well.
    """
    with RunDirectory.resume(folder) as run:
        found = settle_claims(run, at=time.time())
        keep_new(run, found)
    if json:
        print_json(findings_document(found, everything=all))
    else:
        for each in found:
            if all or each.status != "ok":
                print(f"{each.status:<8} {each.check}: {'; '.join(each.evidence)}")
        print(f"settled {len(found)} claims, {sum(each.status == 'ok' for each in found)} held")
    return findings_exit_code(found) if found else EXIT_UNKNOWN


def why(folder: Path, claim: str | None = None, /, *, json: Json = False) -> int:
    """Which claim broke, what it rests on, and what is ruled out because it held.

    Parameters
    ----------
    folder
        A run directory.
    claim
        Name or id of one claim; default: every claim that is not held and that no other such claim rests on.
    json
        Print one JSON document.
    """
    run = RunReader(folder)
    explanations = broken_first(run, now=time.time(), only=claim)
    lines = claim_lines(run, now=time.time())
    if json:
        print_json({"explanations": [to_builtins(each) for each in explanations]})
    elif not explanations:
        print(
            "nothing to explain: every claim held" if lines else "nothing to explain: the run has sealed no claim yet"
        )
    for each in explanations if not json else ():
        _print_explanation(each, lines)
    return exit_code([line.status for line in lines]) if lines else EXIT_UNKNOWN


def _print_explanation(each: Explanation, lines: tuple[ClaimLine, ...]) -> None:
    status = next(line.status for line in lines if line.id == each.claim.id)
    print(f"{status.upper()}: {each.claim.name}: {each.claim.statement}")
    for finding in each.findings[-1:]:
        print(f"  evidence: {'; '.join(finding.evidence)}")
        if finding.cause:
            print(f"  cause: {finding.cause}")
        if finding.remedy:
            print(f"  do: {finding.remedy}")
    for title, claims in (("suspect", each.suspects), ("not decided", each.undecided), ("ruled out", each.ruled_out)):
        for claim in claims:
            print(f"  {title}: {claim.name}: {claim.statement}")


def _print_lines(lines: list[ClaimLine]) -> None:
    for line in lines:
        print(f"  {line.status:<8} {line.name}: {line.statement}")
