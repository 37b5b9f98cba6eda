"""The claim that a cheap metric ranks as a goal does: sealed on what is known today, settled by models measured later.

Ranking the models that a metric was chosen on proves little: somebody who tries enough metrics finds one that fits,
and a metric that is optimised drifts away from what it stood for. So only pairs with at least one model that was
first measured after the sealing count.

Whoever may look after every further model until an interval happens to lie on one side is wrong more often than the
interval's level says. So a claim names its **looks** when it is sealed: after n, 2n, 4n, ... new models, n the fewest
that could hold it if every pair were ranked alike. Look k = 1, 2, ... takes the first 2^(k-1) n models in the order in
which they were first measured, all of them with today's numbers, at level 1 - ERROR / 2^k. The errors allowed at all
looks sum to ERROR, however many there are and whenever somebody asks (alpha spending: Lan and DeMets, Biometrika 70,
1983; by the union bound, so whatever the looks have in common). Nothing is left to choose afterwards: a model without
the metric's number is waited for, draws follow from the claim's id, and a look that was taken is on the disk and is not
taken again with other numbers. Between looks a claim is ``unknown``.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from wholestack.claim import Claim, seal, status_of
from wholestack.errors import InputError
from wholestack.evals.goals import Target, read_goal, targets
from wholestack.evals.proxies import DRAWS, Agreement, Ranked, proxy_of, rank_share, turned
from wholestack.evals.ranking import Pairs, RankAgreement, draw_models, interval_of_share, pairs_told_apart
from wholestack.finding import Finding, Status, finding
from wholestack.record import Record
from wholestack.runs import RunDirectory, RunReader

CHECK = "proxy.ranks"
LOOKS = "looks.jsonl"
ERROR = 0.1
"""Most probability that a claim is decided wrongly, over all looks and both sides."""
FEWEST = 5
"""New models before the first look."""
MOST = 2000
"""New models that a first look may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(Record):
    """What one look at a claim saw."""

    SCHEMA: ClassVar[str] = "proxy-look/1"

    claim: str
    """Its id."""
    number: int
    """1, 2, ..."""
    models: tuple[str, ...]
    """New models, in the order in which they were first measured."""
    pairs: int
    """Pairs with one of them that the goal tells apart."""
    share: RankAgreement | None
    """Of these ranked alike; ``None`` where there are none."""
    at: float
    """Seconds since the epoch."""


def default_share(agreement: Agreement) -> float:
    """The lower end of today's interval.

    Raises:
        InputError: it is no more than chance.
    """
    if agreement.share is None or agreement.share.interval.low <= 0.5:
        raise InputError(
            f"{agreement.metric}: today's models do not show more than chance, there is nothing to seal",
            remedy="measure the goal on more models, or say what you claim with --at-least",
        )
    return agreement.share.interval.low


def level_of(look: int) -> float:
    """Level of the interval of the k-th look."""
    return 1 - ERROR * 0.5**look


@cache
def models_at(look: int, at_least: float) -> int:
    """New models of the k-th look at a claim of so large a share.

    Raises:
        InputError: the share is not above one half, or so near one that too many models could not hold it.
    """
    if not 0.5 < at_least < 1:
        raise InputError(
            f"a share of {at_least:g} is no claim",
            remedy="claim more than 0.5, which chance reaches, and less than 1, which no models can show",
        )
    for models in range(FEWEST, MOST + 1):
        best = interval_of_share(1.0, 0.0, models=models, most=models**2, level=level_of(1))
        if best.low >= at_least:
            return models << (look - 1)
    raise InputError(f"a share of {at_least:g} would take more than {MOST:,} models to show", remedy="claim less")


def seal_proxy(path: Path, agreement: Agreement, *, at_least: float, at: float, valid_until: float | None) -> Claim:
    """Seal "this metric ranks as the goal does", to be settled by models that are measured later.

    Args:
        path: Folder of the goal.
        agreement: What is known today.
        at_least: Share of pairs that must be ranked alike.
        at: Seconds since the epoch; measurements made later settle it.
        valid_until: Seconds since the epoch; models first measured after it do not count.

    Raises:
        InputError: the share is not above one half, or too near 1 to be shown.
    """
    first = models_at(1, at_least)
    claim = seal(
        f"proxy.{agreement.metric}",
        f"{agreement.target} {agreement.definition}",
        f"{agreement.metric} ranks as goal '{agreement.target}' does in at least {at_least:.4g} of the pairs with a"
        f" model measured from now on that the goal tells apart; looked at after {first}, {2 * first}, {4 * first}, ..."
        f" such models, wrong with probability {ERROR:g} at most",
        quantity="share of pairs ranked alike",
        predicted=agreement.share.value if agreement.share else None,
        interval=(at_least, 1.0),
        level=None,
        sealed_at=at,
        valid_until=valid_until,
    )
    with RunDirectory.resume(path) as run:
        return run.seal(claim)


def settle_proxies(path: Path, ranked: Ranked, *, at: float, draws: int = DRAWS) -> list[Finding]:
    """Take the looks that are due at the open claims of a goal.

    Held where the interval of a look's share lies at or above the claimed share, broken where it lies below, and
    unknown, with what is waited for, where it does neither.

    Args:
        path: Folder of the goal.
        ranked: Models with target and proxies, as of now.
        at: Seconds since the epoch.
        draws: Bootstrap draws.
    """
    goal, measured = read_goal(path), targets(path)
    reader = RunReader(path)
    known, before = reader.findings(), reader.journal(LOOKS, Look)
    found = []
    with RunDirectory.resume(path) as run:
        for claim in reader.claims():
            mine = claim.subject == f"{goal.name} {goal.definition}" and _metric(claim) in ranked.proxies
            if not mine or status_of(claim, known, now=at) not in {"open", "unknown"}:
                continue
            looks = [each for each in before if each.claim == claim.id]
            # A look that was taken just before a kill has decided, though no Finding says so yet.
            if not looks or judged(claim, looks[-1]) == "unknown":
                for look in due_looks(claim, ranked, measured, taken=len(looks), at=at, draws=draws):
                    run.append(LOOKS, look)
                    looks.append(look)
            found.append(run.report(_finding(claim, looks, ranked, measured, at=at)))
    return found


def due_looks(
    claim: Claim, ranked: Ranked, measured: list[Target], *, taken: int, at: float, draws: int = DRAWS
) -> list[Look]:
    """Looks that today's models allow and that were not taken before, up to the one that decides.

    Args:
        claim: Sealed.
        ranked: Models with target and proxies, as of now.
        measured: Every model that the goal knows, whether its proxies are known or not.
        taken: Looks before.
        at: Seconds since the epoch.
        draws: Bootstrap draws.
    """
    new = counted(claim, measured)
    old = {each.model for each in measured if each.first_at <= claim.sealed_at}
    found: list[Look] = []
    while not found or judged(claim, found[-1]) == "unknown":
        number = taken + len(found) + 1
        wanted = models_at(number, _claimed(claim))
        if len(new) < wanted or set(new[:wanted]) - set(ranked.models):
            break
        found.append(_look(claim, ranked, number, new[:wanted], old, at=at, draws=draws))
    return found


def counted(claim: Claim, measured: list[Target]) -> list[str]:
    """Models that count for a claim, in the order in which they were first measured."""
    until = math.inf if claim.valid_until is None else claim.valid_until
    new = [each for each in measured if claim.sealed_at < each.first_at <= until]
    return [each.model for each in sorted(new, key=lambda each: (each.first_at, each.model))]


def judged(claim: Claim, look: Look) -> Status:
    """What a look says of its claim."""
    if look.share is None or look.share.interval.low < _claimed(claim) <= look.share.interval.high:
        return "unknown"
    return "ok" if look.share.interval.low >= _claimed(claim) else "fail"


def _metric(claim: Claim) -> str:
    return claim.name.removeprefix("proxy.")


def _claimed(claim: Claim) -> float:
    return claim.interval[0] if claim.interval else 0.0


def _look(claim: Claim, ranked: Ranked, number: int, new: list[str], old: set[str], *, at: float, draws: int) -> Look:
    used = np.array([model in old or model in new for model in ranked.models])
    fresh = np.array([model in new for model in ranked.models])[used]
    pairs = pairs_told_apart(turned(ranked.values, ranked.better)[used], ranked.errors[used], matters=ranked.matters)
    sign = pairs.sign * (fresh[:, None] | fresh[None, :])
    told = Pairs(sign=sign, count=int(np.abs(sign).sum()) // 2, all=pairs.all)
    drawn = draw_models(len(fresh), draws=draws, rng=np.random.default_rng([int(claim.id, 16), number]))
    # Every such pair holds a new model, so the new models bound how many independent comparisons there are.
    share = rank_share(told, proxy_of(ranked, _metric(claim))[used], drawn, models=len(new), level=level_of(number))
    return Look(claim=claim.id, number=number, models=tuple(new), pairs=told.count, share=share, at=at)


def _finding(claim: Claim, looks: list[Look], ranked: Ranked, measured: list[Target], *, at: float) -> Finding:
    status: Status = judged(claim, looks[-1]) if looks else "unknown"
    evidence = [_said(look, _claimed(claim)) for look in looks]
    cause = {"fail": "the metric does not rank new models as it ranked the old ones"}.get(status, "")
    remedy = {"fail": "stop choosing by it; look at which models changed places"}.get(status, "")
    if status == "unknown":
        new, wanted = counted(claim, measured), models_at(len(looks) + 1, _claimed(claim))
        without = [model for model in new[:wanted] if model not in ranked.models]
        cause = f"the next look is after {wanted} new models, {len(new)} are measured"
        remedy = "measure the goal on more models"
        if len(new) >= wanted and without:
            cause = f"of the {wanted} new models of the next look {len(without)} have no number: {', '.join(without)}"
            remedy = "score these models too: none of them may be left out"
    return finding(
        claim.subject,
        CHECK,
        status,
        evidence=evidence or ["not looked at yet"],
        part=_metric(claim),
        cause=cause,
        owner="evaluation",
        remedy=remedy,
        at=at,
        settles=claim.id,
    )


def _said(look: Look, claimed: float) -> str:
    seen = f"look {look.number}, {len(look.models)} new models: "
    if look.share is None:
        return seen + "no pair told apart"
    low, high = look.share.interval.low, look.share.interval.high
    return (
        f"{seen}{look.share.value:.3f} ({low:.3f} to {high:.3f}, level {level_of(look.number):g}) of {look.pairs} pairs"
        f" ranked alike, claimed {claimed:.4g}"
    )
