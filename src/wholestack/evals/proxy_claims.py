"""The claim that a cheap metric ranks as a goal does: sealed on what is known today, settled by models measured later.

Ranking the models that a metric was chosen on proves little: somebody who tries enough metrics finds one that fits,
and a metric that is optimised drifts away from what it stood for. So only pairs with at least one model that was
first measured after the sealing count.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from wholestack.claim import Claim, seal, status_of
from wholestack.errors import InputError
from wholestack.evals.goals import read_goal, targets
from wholestack.evals.proxies import DRAWS, LEVEL, Agreement, Ranked, proxy_of, rank_share, turned
from wholestack.evals.ranking import Pairs, draw_models, pairs_told_apart
from wholestack.finding import Finding, Status, finding
from wholestack.runs import RunDirectory, RunReader

CHECK = "proxy.ranks"


def seal_proxy(path: Path, agreement: Agreement, *, at_least: float, at: float, valid_until: float | None) -> Claim:
    """Seal "this metric ranks as the goal does", to be settled by models that are measured later.

    Args:
        path: Folder of the goal.
        agreement: What is known today.
        at_least: Share of pairs that must be ranked alike.
        at: Seconds since the epoch; measurements made later settle it.
        valid_until: Seconds since the epoch.

    Raises:
        InputError: the share is not above one half and at most 1.
    """
    if not 0.5 < at_least <= 1:
        raise InputError(f"a share of {at_least:g} is no claim", remedy="claim more than 0.5, which chance reaches")
    claim = seal(
        f"proxy.{agreement.metric}",
        f"{agreement.target} {agreement.definition}",
        f"{agreement.metric} ranks as goal '{agreement.target}' does in at least {at_least:g} of the pairs with a model"
        " measured from now on that the goal tells apart",
        quantity="share of pairs ranked alike",
        predicted=agreement.share.value if agreement.share else None,
        interval=(at_least, 1.0),
        level=None,
        sealed_at=at,
        valid_until=valid_until,
    )
    with RunDirectory.resume(path) as run:
        return run.seal(claim)


def settle_proxies(
    path: Path, ranked: Ranked, *, at: float, rng: np.random.Generator, level: float = LEVEL, draws: int = DRAWS
) -> list[Finding]:
    """Settle the open claims of a goal by pairs with at least one model that was first measured after the sealing.

    Held where the interval of those pairs' share lies at or above the claimed share, broken where it lies below,
    and unknown, with the share so far, where it does neither.

    Args:
        path: Folder of the goal.
        ranked: Models with target and proxies, as of now.
        at: Seconds since the epoch.
        rng: Source of the bootstrap's draws.
        level: Of the interval.
        draws: Bootstrap draws.
    """
    goal = read_goal(path)
    first_at = {each.model: each.first_at for each in targets(path)}
    known = RunReader(path).findings()
    found = []
    for claim in RunReader(path).claims():
        metric = claim.name.removeprefix("proxy.")
        mine = claim.subject == f"{goal.name} {goal.definition}" and metric in ranked.proxies
        if mine and status_of(claim, known, now=at) in {"open", "unknown"}:
            new = np.array([first_at[model] > claim.sealed_at for model in ranked.models])
            found.append(_settle(claim, ranked, metric, new, at=at, rng=rng, level=level, draws=draws))
    with RunDirectory.resume(path) as run:
        for each in found:
            run.report(each)
    return found


def _settle(
    claim: Claim,
    ranked: Ranked,
    metric: str,
    new: npt.NDArray[np.bool_],
    *,
    at: float,
    rng: np.random.Generator,
    level: float,
    draws: int,
) -> Finding:
    at_least = claim.interval[0] if claim.interval else 0.5
    rank, pairs = None, 0
    if new.any() and len(new) >= 3:
        all_pairs = pairs_told_apart(turned(ranked.values, ranked.better), ranked.errors, matters=ranked.matters)
        sign = all_pairs.sign * (new[:, None] | new[None, :])
        fresh = Pairs(sign=sign, count=int(np.abs(sign).sum()) // 2, all=all_pairs.all)
        pairs = fresh.count
        drawn = draw_models(len(new), draws=draws, rng=rng)
        # Every fresh pair holds a new model, so the new models bound how many independent comparisons there are.
        rank = rank_share(fresh, proxy_of(ranked, metric), drawn, models=max(2, int(new.sum())), level=level)
    status: Status = "unknown"
    cause = f"{int(new.sum())} models measured since, {pairs} pairs told apart: too few to tell"
    said = "no pair of models to judge by yet"
    if rank is not None:
        low, high = rank.interval.low, rank.interval.high
        said = f"{rank.value:.3f} ({low:.3f} to {high:.3f}) of {pairs} pairs ranked alike, claimed {at_least:g}"
        if low >= at_least:
            status, cause = "ok", ""
        elif high < at_least:
            status, cause = "fail", "the metric does not rank new models as it ranked the old ones"
    remedies: dict[Status, str] = {
        "fail": "stop choosing by it; look at which models changed places",
        "unknown": "measure the goal on more models",
    }
    return finding(
        claim.subject,
        CHECK,
        status,
        evidence=[said],
        part=metric,
        cause=cause,
        owner="evaluation",
        remedy=remedies.get(status, ""),
        at=at,
        settles=claim.id,
    )
