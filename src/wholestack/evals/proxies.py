"""Proxies: how well a cheap metric ranks models as the goal does, and the note that stands beside its score.

``measure_proxies`` compares; ``proxy_note`` says in a few words what a metric's number stands for. The claim "metric P
ranks as goal G" is in ``wholestack.evals.proxy_claims``; what the statistics are and where they are from, in
``wholestack.evals.ranking``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.goals import Better, Goal, Target, goals_in, read_goal, targets
from wholestack.evals.measured import Numbers, better_of
from wholestack.evals.ranking import (
    TOLD_APART_Z,
    Draws,
    Pairs,
    RankAgreement,
    corrected,
    difference_p_value,
    draw_models,
    kendall_tau_b,
    pairs_told_apart,
    rank_with_interval,
    regret,
    reliability,
    rho_of_true_values,
    share_alike,
    spearman_rho,
    tau_of_true_values,
)
from wholestack.evals.statistics import Floats, Interval, holm
from wholestack.finding import Status
from wholestack.record import Record
from wholestack.runs import RunDirectory, RunReader

AGREEMENTS = "agreements.jsonl"
LEVEL = 0.9
DRAWS = 2000
WIDEST = 0.3
"""An interval of the share that is wider than this is said to come from too few models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret(Record):
    """What choosing by a proxy loses, in the unit of the target."""

    value: float
    """Target of the best model minus target of the model that the proxy takes."""
    interval: Interval
    """Over models."""
    by_chance: float
    """What a choice at random loses."""
    picked: str
    """Model that the proxy takes; all of them where it ties."""
    best: str
    """Model that the target takes."""
    told: bool | None
    """Whether the target tells the two apart; ``None`` where its errors are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Record):
    """How well one metric ranks models as a target does."""

    SCHEMA: ClassVar[str] = "proxy-agreement/1"

    target: str
    """Name of the goal or of the target's column."""
    definition: str
    """Of the goal; empty for a column of a table."""
    metric: str
    """The proxy."""
    better: Better
    """Its direction."""
    models: int
    """Models that have both."""
    pairs: int
    """Pairs of them that the target tells apart."""
    all_pairs: int
    """Pairs of them."""
    share: RankAgreement | None
    """Of the pairs told apart, how many the proxy ranks alike; ``None`` where there are none."""
    tau: RankAgreement | None
    """Kendall's tau-b of the measured values."""
    spearman: RankAgreement | None
    """Spearman's rho of the measured values."""
    tau_corrected: RankAgreement | None
    """Kendall's tau of the true values; ``None`` where no errors are known, or errors are all there is."""
    spearman_corrected: RankAgreement | None
    """Spearman's rho of the true values; ``None`` where no errors are known, or errors are all there is."""
    target_reliability: float | None
    """Share of the target's variance between models that is not error; ``None`` where no errors are known."""
    regret: Regret
    """What choosing by it loses."""
    enough: bool
    """Whether the models are enough for an interval of the share no wider than 0.3."""
    models_wanted: int | None
    """About how many models would be, at this share; ``None`` where there is no share."""
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus(Record):
    """Two proxies on the same pairs of models."""

    first: str
    """The one with the larger share."""
    second: str
    """The other."""
    difference: float
    """Share of the first minus share of the second."""
    p_value: float
    """Two-sided, against no difference, adjusted by Holm for all comparisons made."""
    told_apart: bool
    """Whether it is below 0.05."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyReport(Record):
    """All proxies beside one target."""

    SCHEMA: ClassVar[str] = "proxy-report/1"

    target: str
    """Name of the goal or of the target's column."""
    better: Better
    """Direction of the target."""
    matters: float
    """Smallest difference of the target that counts; 0 where nobody says."""
    level: float
    """Of all intervals."""
    target_errors: bool
    """Whether the errors of the target are known; where not, every pair counts as told apart."""
    agreements: tuple[Agreement, ...]
    """Largest share first."""
    versus: tuple[Versus, ...]
    """Every two proxies."""
    left_out: dict[str, str]
    """Models that could not be used, with the reason."""

    @property
    def status(self) -> Status:
        """``fail`` where a metric ranks the other way round, ``unknown`` where one cannot be told from chance."""
        shares = [each.share for each in self.agreements]
        if any(each is not None and each.interval.high < 0.5 for each in shares):
            return "fail"
        return "unknown" if any(each is None or each.interval.low <= 0.5 for each in shares) else "ok"

    def agreement(self, metric: str) -> Agreement:
        """That of one metric.

        Raises:
            InputError: it is not among them.
        """
        for each in self.agreements:
            if each.metric == metric:
                return each
        raise InputError(f"no metric {metric!r} to seal", remedy="name one that was measured just now")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Models with target and proxies, as given; :func:`beside_target` makes it."""

    target: str
    better: Better
    matters: float
    definition: str
    models: tuple[str, ...]
    values: Floats
    """``[models]``."""
    errors: Floats
    """``[models]``, zero where not known."""
    errors_known: bool
    """Whether every model's is."""
    errors_all_or_none: bool
    """Whether every model's is, or none's: known in part they would be taken for zero."""
    proxies: Mapping[str, tuple[Better, Floats, Floats]]
    """Direction, values and errors (zero where not known), ``[models]`` each."""
    left_out: Mapping[str, str]


def beside_target(
    known: Sequence[Target],
    rows: Sequence[Numbers],
    directions: Mapping[str, Better],
    *,
    target: str,
    better: Better,
    matters: float = 0.0,
    definition: str = "",
) -> Ranked:
    """Put target and proxies of the same models side by side.

    Args:
        known: Target values.
        rows: Proxy values, joined by the model's name.
        directions: Proxies that are wanted, with their direction.
        target: Name of the target.
        better: Direction of the target.
        matters: Smallest difference of the target that counts.
        definition: Of the goal, where it is one.

    Raises:
        InputError: a model stands twice, or no proxy is left.
    """
    if not directions:
        raise InputError(f"there is no proxy beside {target}", remedy="give a table with further columns of numbers")
    by_model: dict[str, Numbers] = {}
    for row in rows:
        if row.model in by_model:
            raise InputError(
                f"{row.where}: model {row.model!r} stands also at {by_model[row.model].where}",
                remedy="give every model one row",
            )
        by_model[row.model] = row
    left_out = {row.model: "the target was not measured" for row in rows} | {
        each.model: "no proxy was given" for each in known
    }
    used = []
    for each in known:
        lacking = [name for name in directions if each.model in by_model and name not in by_model[each.model].values]
        if lacking:
            left_out[each.model] = f"lacks {', '.join(lacking)}"
        elif each.model in by_model:
            used.append(each)
            del left_out[each.model]
    found = [by_model[each.model] for each in used]
    return Ranked(
        target=target,
        better=better,
        matters=matters,
        definition=definition,
        models=tuple(each.model for each in used),
        values=np.array([each.value for each in used]),
        errors=np.array([each.error or 0.0 for each in used]),
        errors_known=bool(used) and all(each.error is not None for each in used),
        errors_all_or_none=len({each.error is None for each in used}) < 2,
        proxies={
            name: (
                way,
                np.array([row.values[name] for row in found]),
                np.array([row.errors.get(name, 0.0) for row in found]),
            )
            for name, way in directions.items()
        },
        left_out=left_out,
    )


def measure_proxies(
    ranked: Ranked, *, at: float, rng: np.random.Generator, level: float = LEVEL, draws: int = DRAWS
) -> ProxyReport:
    """Compare every proxy with the target and the proxies with each other.

    Args:
        ranked: Models with target and proxies.
        at: Seconds since the epoch.
        rng: Source of the bootstrap's draws.
        level: Probability that each interval covers.
        draws: Bootstrap draws.

    Raises:
        InputError: there are fewer than three models with both.
    """
    drawn = draw_models(len(ranked.models), draws=draws, rng=rng)
    target = turned(ranked.values, ranked.better)
    pairs = pairs_told_apart(target, ranked.errors, matters=ranked.matters)
    found = {name: _agreement(ranked, name, pairs, drawn, at=at, level=level) for name in ranked.proxies}
    best_first = sorted(found.values(), key=lambda each: (-_share(each), each.metric))
    return ProxyReport(
        target=ranked.target,
        better=ranked.better,
        matters=ranked.matters,
        level=level,
        target_errors=ranked.errors_known,
        agreements=tuple(best_first),
        versus=_versus(ranked, best_first, pairs, drawn),
        left_out=dict(ranked.left_out),
    )


def proxy_note(goal: Path | None, metric: str) -> str:
    """What a metric's number stands for, in a few words to print beside it.

    Args:
        goal: Folder of the goal, ``None`` where none is recorded.
        metric: Name of the metric, with or without the item set in brackets.

    Example:
        >>> proxy_note(None, "answer_bpb")
        'no goal is recorded: nobody knows what this number stands for'
    """
    if goal is None or not (goal / "goal.jsonl").is_file():
        return "no goal is recorded: nobody knows what this number stands for"
    wanted = read_goal(goal)
    bare = metric.partition("[")[0]
    known = [each for each in RunReader(goal).journal(AGREEMENTS, Agreement) if each.metric.partition("[")[0] == bare]
    exact = [each for each in known if each.metric == metric] or known
    current = [each for each in exact if each.definition == wanted.definition]
    if not current:
        why = "was measured for an earlier definition only" if known else "was never measured"
        return f"how it ranks beside the goal '{wanted.name}' {why}"
    return describe(current[-1])


def proxy_notes(goals: Path, metrics: Iterable[str]) -> dict[str, str]:
    """The note of each metric, beside every goal that a folder of goals holds."""
    known: list[Path | None] = [goals / name for name in goals_in(goals)] or [None]
    return {metric: "; ".join(proxy_note(goal, metric) for goal in known) for metric in metrics}


def describe(agreement: Agreement) -> str:
    """One line of how a metric ranks beside its target."""
    if agreement.share is None:
        return f"'{agreement.target}' tells no pair of the {agreement.models} models apart: its rank is not known"
    share, interval = agreement.share.value, agreement.share.interval
    said = (
        f"ranks as '{agreement.target}' does in {share:.2f} of pairs"
        f" ({interval.low:.2f} to {interval.high:.2f}, {agreement.models} models)"
    )
    if interval.high < 0.5:
        return f"{said}: it ranks the other way round"
    if interval.low <= 0.5:
        return f"{said}: not told apart from chance by these models"
    return said if agreement.enough else f"{said}: too few models to rely on"


def keep(path: Path, report: ProxyReport) -> None:
    """Put agreements into the folder of their goal, where :func:`proxy_note` finds them."""
    with RunDirectory.resume(path) as run:
        for each in report.agreements:
            run.append(AGREEMENTS, each)


def goal_ranked(path: Path, rows: Sequence[Numbers], directions: Mapping[str, Better]) -> Ranked:
    """:func:`beside_target` with the target of a recorded goal."""
    goal: Goal = read_goal(path)
    return beside_target(
        targets(path),
        rows,
        directions,
        target=goal.name,
        better=goal.better,
        matters=goal.matters,
        definition=goal.definition,
    )


def column_ranked(
    rows: Sequence[Numbers],
    directions: Mapping[str, Better],
    *,
    target: str,
    better: Better | None = None,
    matters: float = 0.0,
) -> Ranked:
    """:func:`beside_target` with one of the numbers themselves as the target.

    Args:
        rows: Numbers of every model.
        directions: Proxies that are wanted, with their direction.
        target: The column of a table, or a metric of result folders.
        better: Direction of the target; default as its name says.
        matters: Smallest difference of the target that counts.

    Raises:
        InputError: no model has it, or its direction is not known.
    """
    known = [
        Target(model=row.model, value=row.values[target], error=row.errors.get(target), measurements=1, first_at=0.0)
        for row in rows
        if target in row.values
    ]
    if not known:
        raise InputError(f"no column {target!r} with numbers", remedy="name the column of the target with --target")
    return beside_target(known, rows, directions, target=target, better=better or better_of(target), matters=matters)


def turned(values: Floats, better: Better) -> Floats:
    """So that larger is better."""
    return values if better == "higher" else -values


def proxy_of(ranked: Ranked, metric: str) -> Floats:
    """Values of a proxy, turned so that larger is better."""
    better, values, _ = ranked.proxies[metric]
    return turned(values, better)


def _share(agreement: Agreement) -> float:
    return agreement.share.value if agreement.share else -1.0


def rank_share(pairs: Pairs, proxy: Floats, drawn: Draws, *, models: int, level: float) -> RankAgreement | None:
    """Share of pairs that a proxy ranks alike, with its interval."""
    value = float(share_alike(pairs, proxy, np.ones((1, len(proxy))))[0])
    most = float(pairs.count)
    draws = share_alike(pairs, proxy, drawn.times)
    return rank_with_interval(value, draws, models=models, level=level, least=0.0, most=most)


def _agreement(ranked: Ranked, metric: str, pairs: Pairs, drawn: Draws, *, at: float, level: float) -> Agreement:
    target, proxy = turned(ranked.values, ranked.better), proxy_of(ranked, metric)
    models = len(target)
    share = rank_share(pairs, proxy, drawn, models=models, level=level)
    target_draws, proxy_draws = target[drawn.places], proxy[drawn.places]
    ranks = [
        rank_with_interval(
            float(statistic(target[None], proxy[None])[0]),
            statistic(target_draws, proxy_draws),
            models=models,
            level=level,
        )
        for statistic in (kendall_tau_b, spearman_rho)
    ]
    proxy_errors = ranked.proxies[metric][2]
    reliabilities = reliability(target, ranked.errors), reliability(proxy, proxy_errors)
    factor = reliabilities[0] * reliabilities[1]
    # Where some errors are unknown, or are all there is, nothing is known of the true values.
    known = bool(ranked.errors.any() or proxy_errors.any()) and min(reliabilities) > 0 and ranked.errors_all_or_none
    width = share.interval.high - share.interval.low if share else math.inf
    return Agreement(
        target=ranked.target,
        definition=ranked.definition,
        metric=metric,
        better=ranked.proxies[metric][0],
        models=models,
        pairs=pairs.count,
        all_pairs=pairs.all,
        share=share,
        tau=ranks[0],
        spearman=ranks[1],
        tau_corrected=corrected(ranks[0], factor, tau_of_true_values) if known else None,
        spearman_corrected=corrected(ranks[1], factor, rho_of_true_values) if known else None,
        target_reliability=_reliability(ranked),
        regret=_regret(ranked, target, proxy, drawn, level=level),
        enough=width <= WIDEST,
        models_wanted=max(models + 1, math.ceil(models * (width / WIDEST) ** 2)) if width > WIDEST and share else None,
        at=at,
    )


def _reliability(ranked: Ranked) -> float | None:
    found = reliability(ranked.values, ranked.errors)
    return max(0.0, found) if ranked.errors_known and math.isfinite(found) else None


def _regret(ranked: Ranked, target: Floats, proxy: Floats, drawn: Draws, *, level: float) -> Regret:
    lost = regret(target[drawn.places], proxy[drawn.places])
    low, high = np.quantile(lost, [0.5 - level / 2, 0.5 + level / 2])
    taken = np.flatnonzero(proxy == proxy.max())
    best = int(np.argmax(target))
    value = float(regret(target[None], proxy[None])[0])
    error = math.hypot(float(ranked.errors[best]), float(ranked.errors[taken[0]]))
    return Regret(
        value=value,
        interval=Interval(low=float(low), high=float(high), level=level),
        by_chance=float(target.max() - target.mean()),
        picked=", ".join(ranked.models[place] for place in taken),
        best=ranked.models[best],
        told=value > TOLD_APART_Z * error if ranked.errors_known else None,
    )


def _versus(ranked: Ranked, best_first: Sequence[Agreement], pairs: Pairs, drawn: Draws) -> tuple[Versus, ...]:
    if pairs.count == 0:
        return ()
    names = [each.metric for each in best_first]
    everything = np.ones((1, len(ranked.models)))
    whole = {name: float(share_alike(pairs, proxy_of(ranked, name), everything)[0]) for name in names}
    draws = {name: share_alike(pairs, proxy_of(ranked, name), drawn.times) for name in names}
    two = [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
    plain = [
        difference_p_value(whole[first] - whole[second], draws[first] - draws[second], models=len(ranked.models))
        for first, second in two
    ]
    adjusted = holm(plain)
    return tuple(
        Versus(
            first=first,
            second=second,
            difference=whole[first] - whole[second],
            p_value=p_value,
            told_apart=p_value < 0.05,
        )
        for (first, second), p_value in zip(two, adjusted, strict=True)
        if p_value is not None
    )
