"""Claims: statements sealed before the fact and settled by Findings; and the walk from a broken claim to its cause.

A claim names what it rests on, so claims form a directed graph without cycles (a claim's id is the hash of its
content, and it can only name ids that existed before it). :func:`explain` walks that graph: when a claim broke,
the broken or unsettled claims below it are suspects, and the claims below it that held are ruled out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, Finding, Status
from wholestack.record import Record, digest

ClaimStatus = Literal["open", "held", "broken", "unknown", "expired"]

_STATUS_OF_FINDING: Mapping[Status, ClaimStatus] = {
    "ok": "held",
    "warn": "broken",
    "fail": "broken",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Record):
    """One sealed statement. Make it with :func:`seal`, which computes the id from everything else."""

    SCHEMA: ClassVar[str] = "claim/1"

    id: str
    """Hash of all other fields."""
    name: str
    """Short name within the run, for instance ``machine.rate``."""
    subject: str
    """What the claim is about."""
    statement: str
    """The claim as one sentence that a person can read."""
    quantity: str
    """What is predicted, with its unit."""
    predicted: float | str | None
    """The predicted value: a number, or a hash or word that must be met."""
    interval: tuple[float, float] | None
    """Where the actual value will lie, for a number."""
    level: float | None
    """Probability that the interval is meant to cover, or ``None`` for a hard bound."""
    rests_on: tuple[str, ...]
    """Ids of the claims that this one takes for granted."""
    sealed_at: float
    """Seconds since the epoch."""
    valid_until: float | None
    """Seconds since the epoch, or ``None`` while the run's evidence stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Record):
    """Why a claim is not held: what it rests on, sorted into suspects and ruled out."""

    claim: Claim
    """The claim that broke."""
    findings: tuple[Finding, ...]
    """What settled it."""
    suspects: tuple[Claim, ...]
    """Claims below it that broke, deepest first: the deepest rests on nothing else that broke."""
    undecided: tuple[Claim, ...]
    """Claims below it that are open, unknown or expired: not ruled out."""
    ruled_out: tuple[Claim, ...]
    """Claims below it that held."""


def seal(
    name: str,
    subject: str,
    statement: str,
    *,
    quantity: str,
    predicted: float | str | None,
    interval: tuple[float, float] | None = None,
    level: float | None = None,
    rests_on: Sequence[str] = (),
    sealed_at: float,
    valid_until: float | None = None,
) -> Claim:
    """Seal a claim: from here on any change of it changes its id."""
    content = [name, subject, statement, quantity, predicted, interval, level, list(rests_on), sealed_at, valid_until]
    return Claim(
        id=digest(content),
        name=name,
        subject=subject,
        statement=statement,
        quantity=quantity,
        predicted=predicted,
        interval=interval,
        level=level,
        rests_on=tuple(rests_on),
        sealed_at=sealed_at,
        valid_until=valid_until,
    )


def is_genuine(claim: Claim) -> bool:
    """Whether the claim still has the id that it was sealed with."""
    again = seal(
        claim.name,
        claim.subject,
        claim.statement,
        quantity=claim.quantity,
        predicted=claim.predicted,
        interval=claim.interval,
        level=claim.level,
        rests_on=claim.rests_on,
        sealed_at=claim.sealed_at,
        valid_until=claim.valid_until,
    )
    return again.id == claim.id


def status_of(claim: Claim, findings: Iterable[Finding], *, now: float) -> ClaimStatus:
    """Status of a claim from the last Finding that settles it.

    A settled claim stays settled; an unsettled one is ``open`` until ``valid_until``, then ``expired``.
    """
    settling = [each for each in findings if each.settles == claim.id]
    if settling:
        return _STATUS_OF_FINDING[settling[-1].status]
    if claim.valid_until is not None and now > claim.valid_until:
        return "expired"
    return "open"


def exit_code(statuses: Iterable[ClaimStatus]) -> int:
    """0 when every claim held; 1 when any broke; else 3 when any is open, expired or unknown."""
    seen = set(statuses)
    if "broken" in seen:
        return EXIT_FINDINGS
    return EXIT_OK if seen <= {"held"} else EXIT_UNKNOWN


def explain(claim_id: str, claims: Sequence[Claim], findings: Sequence[Finding], *, now: float) -> Explanation:
    """Walk from one claim to everything that it rests on.

    Raises:
        InputError: no claim has that id.
    """
    by_id = {claim.id: claim for claim in claims}
    if claim_id not in by_id:
        raise InputError(f"no claim {claim_id!r}", remedy=f"known are: {', '.join(by_id)}")
    sorted_by_status: dict[ClaimStatus, list[Claim]] = {}
    for below in _below(claim_id, by_id):
        sorted_by_status.setdefault(status_of(below, findings, now=now), []).append(below)
    return Explanation(
        claim=by_id[claim_id],
        findings=tuple(each for each in findings if each.settles == claim_id),
        suspects=tuple(sorted_by_status.get("broken", ())),
        undecided=tuple(
            claim for status in ("unknown", "expired", "open") for claim in sorted_by_status.get(status, ())
        ),
        ruled_out=tuple(sorted_by_status.get("held", ())),
    )


def _below(claim_id: str, by_id: Mapping[str, Claim]) -> list[Claim]:
    """Claims under one claim, each once, deepest first."""
    order: list[Claim] = []
    seen: set[str] = set()

    def visit(current: str) -> None:
        for lower in by_id[current].rests_on:
            if lower in by_id and lower not in seen:
                seen.add(lower)
                visit(lower)
                order.append(by_id[lower])

    visit(claim_id)
    return order
