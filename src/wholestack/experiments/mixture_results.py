"""From the trials of a comparison to a verdict on each mixture."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.scores import ItemScores
from wholestack.experiments.held_out import HeldOutLosses
from wholestack.experiments.mixture_plan import Comparison, ComparisonPlan, Forgetting, MixtureResult
from wholestack.experiments.mixture_verdict import Difference, Verdict, judge, judged
from wholestack.experiments.records import HELD_OUT, ITEM_SCORES, TrialRecord

MIXTURE = "mixture"
"""The setting that names the mixture of a trial."""


def results_of(
    folder: Path,
    trials: Sequence[TrialRecord],
    comparison: Comparison,
    plan: ComparisonPlan,
    *,
    metric: str,
    finished: bool = True,
) -> tuple[MixtureResult, ...]:
    """One result a mixture, in the order that they were given.

    Args:
        folder: The run directory.
        trials: All acknowledged.
        comparison: The mixtures.
        plan: Seeds and level.
        metric: The primary metric.
        finished: Whether all that was wanted was trained. If not, the seeds that every mixture has are compared, and
            no verdict is given.
    """
    used = trials if finished else _whole_seeds(trials, comparison, plan)
    found = (_result(folder, used, comparison.baseline, name, plan, metric=metric) for name in comparison.mixtures)
    return tuple(found) if finished else tuple(_not_yet(each, comparison.baseline, plan) for each in found)


def best_rate(trials: Sequence[TrialRecord], mixture: str, metric: str) -> float | None:
    """The learning rate of a mixture's best trial; ``None`` if none of them ended well."""
    ended = [trial for trial in _of(trials, "rate", mixture) if trial.outcome == "ok" and metric in trial.metrics]
    best = min(ended, key=lambda trial: trial.metrics[metric], default=None)
    return None if best is None else float(best.params["lr"])


def sentence(name: str, baseline: str, difference: Difference) -> str:
    """The verdict in plain words."""
    low, high = difference.interval.low, difference.interval.high
    spread = difference.spread
    larger = (
        f"seeds vary more than items ({spread.seeds:.4f} against {spread.items:.4f}): more seeds would narrow it"
        if spread.larger == "seeds"
        else f"items vary more than seeds ({spread.items:.4f} against {spread.seeds:.4f}): more items would narrow it"
    )
    unit = "nats" if difference.metric.startswith("choice_nll") else "bits per byte"
    if difference.verdict == "cannot be told":
        return (
            f"Whether {name} is better or worse than {baseline} cannot be told: the difference is"
            f" {difference.value:+.4f} {unit} ({low:+.4f} to {high:+.4f}); one of {difference.detectable:.4f} would"
            f" probably have been seen; {larger}."
        )
    least, most = sorted((abs(low), abs(high)))
    return (
        f"{name} is {difference.verdict} than {baseline} by {abs(difference.value):.4f} {unit}"
        f" ({least:.4f} to {most:.4f}); {larger}."
    )


def _result(
    folder: Path, trials: Sequence[TrialRecord], baseline: str, name: str, plan: ComparisonPlan, *, metric: str
) -> MixtureResult:
    losses = {
        f"{float(trial.params['lr']):.3g}": trial.metrics.get(metric) if trial.outcome == "ok" else None
        for trial in _of(trials, "rate", name)
    }
    lr = best_rate(trials, name, metric)
    ours, theirs = _of(trials, "repeat", name), _of(trials, "repeat", baseline)
    difference: Difference | None = None
    verdict: Verdict | Literal["baseline"] = "baseline"
    told = f"{name} is the baseline."
    if name != baseline:
        difference, told = _difference(folder, theirs, ours, (name, baseline), level=plan.level, metric=metric)
        verdict = "cannot be told" if difference is None else difference.verdict
    return MixtureResult(
        name=name,
        lr=lr,
        rate_losses=losses,
        at_edge=lr is not None and lr in (plan.lr * min(plan.rates), plan.lr * max(plan.rates)),
        values=tuple(trial.metrics[metric] for trial in ours if trial.outcome == "ok"),
        difference=difference,
        verdict=verdict,
        sentence=told,
        forgetting=_forgetting(folder, ours, plan),
    )


def _difference(
    folder: Path,
    theirs: Sequence[TrialRecord],
    ours: Sequence[TrialRecord],
    names: tuple[str, str],
    *,
    level: float,
    metric: str,
) -> tuple[Difference | None, str]:
    """The difference in words too; a failed seed is no verdict rather than a verdict on those that are left."""
    name, baseline = names
    if not ours or not theirs:
        which = name if not ours else baseline
        return None, f"Whether {name} is better than {baseline} cannot be told: no learning rate of {which} trained."
    failed = [trial for trial in (*theirs, *ours) if trial.outcome != "ok"]
    if failed:
        first = failed[0]
        return None, (
            f"Whether {name} is better than {baseline} cannot be told: {first.params[MIXTURE]} ended as"
            f" {first.outcome} with seed {first.seed} ({len(failed)} of {len(ours) + len(theirs)} trainings failed)."
        )
    try:
        difference = judge(_scores(folder, theirs), _scores(folder, ours), metric=metric, level=level)
    except InputError as error:
        return None, f"Whether {name} is better than {baseline} cannot be told: {error.message}."
    return difference, sentence(name, baseline, difference)


def _forgetting(folder: Path, trials: Sequence[TrialRecord], plan: ComparisonPlan) -> Forgetting | None:
    """What the old mixture's held-out text lost; ``None`` from scratch."""
    done = [trial for trial in trials if trial.outcome == "ok"]
    paths = [folder / "jobs" / trial.name / HELD_OUT for trial in done]
    if not paths or not all(path.exists() for path in paths):
        return None
    return forgotten([HeldOutLosses.load(path) for path in paths], level=plan.level)


def forgotten(losses: Sequence[HeldOutLosses], *, level: float) -> Forgetting | None:
    """What was forgotten, over documents and over seeds; ``None`` where nothing was known before.

    Args:
        losses: On the same pieces, one a seed.
        level: Of the interval.
    """
    before, documents = losses[0].before_bpb, losses[0].documents
    tokens = losses[0].tokens.astype(np.float64)
    if before is None:
        return None
    lost = np.stack([(each.after_bpb - before) * tokens for each in losses])
    value = float(lost.sum() / tokens.sum() / len(lost))
    known = float((before * tokens).sum() / tokens.sum())
    many = len(lost) > 1 and len(np.unique(documents)) > 1
    return Forgetting(
        before_bpb=known,
        after_bpb=known + value,
        difference=value,
        interval=judged(lost, tokens, documents, metric="held-out loss", level=level).interval if many else None,
        documents=len(np.unique(documents)),
    )


def _whole_seeds(trials: Sequence[TrialRecord], comparison: Comparison, plan: ComparisonPlan) -> list[TrialRecord]:
    """Trials without those of seeds that some mixture has not trained with yet."""
    repeats = [{trial.number % plan.seeds for trial in _of(trials, "repeat", name)} for name in comparison.mixtures]
    whole = set.intersection(*repeats)
    return [trial for trial in trials if trial.role != "repeat" or trial.number % plan.seeds in whole]


def _not_yet(result: MixtureResult, baseline: str, plan: ComparisonPlan) -> MixtureResult:
    """The numbers so far without their verdict."""
    if result.verdict == "baseline":
        return result
    told = f"Whether {result.name} is better or worse than {baseline} cannot be told: the budget was used up"
    if result.difference is None:
        return replace(result, sentence=f"{told} before two seeds of each were trained.")
    value, interval = result.difference.value, result.difference.interval
    return replace(
        result,
        verdict="cannot be told",
        difference=replace(result.difference, verdict="cannot be told"),
        sentence=(
            f"{told} after {result.difference.spread.runs} of {plan.seeds} seeds; the difference so far is {value:+.4f}"
            f" ({interval.low:+.4f} to {interval.high:+.4f})."
        ),
    )


def _of(trials: Sequence[TrialRecord], role: str, mixture: str) -> list[TrialRecord]:
    """Trials of a mixture in the order of their numbers, so that seeds pair whatever order they ended in."""
    found = [trial for trial in trials if trial.role == role and trial.params.get(MIXTURE) == mixture]
    return sorted(found, key=lambda trial: trial.number)


def _scores(folder: Path, trials: Sequence[TrialRecord]) -> list[ItemScores]:
    return [ItemScores.load(folder / "jobs" / trial.name / ITEM_SCORES) for trial in trials]
