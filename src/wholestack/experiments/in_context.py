"""Demonstrations in the context against fine-tuning on the same ones, and a needle test only beside it.

Every episode is a table of its own. The same demonstrations, in the same seeded order, are put in front of each
question (in context) or trained on (fine-tuned, from the same weights); the same questions are asked behind both. Rate
and length of fine-tuning are chosen, for each number of demonstrations, on episodes that are not measured; reading
demonstrations has nothing to choose. Episodes are the unit of every interval, and of the paired contrast.

Any backend is read: demonstrations are nothing but context. Fine-tuning needs weights that this package trains.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from wholestack.errors import InputError, RunDirectoryError
from wholestack.evals.backend import Backend, ItemScore, ModelIdentity
from wholestack.evals.items import Item
from wholestack.evals.statistics import mean_estimate, t_interval
from wholestack.experiments.in_context_plan import (
    ARMS,
    CONTEXT,
    KIND,
    MODEL,
    PLAN,
    PRETRAINED,
    TUNING,
    WAYS,
    Arm,
    ContextOutcome,
    ContextPlan,
    Contrast,
    Measured,
    Point,
    Stage,
    TinyModel,
    Tuning,
    Tunings,
    Way,
)
from wholestack.experiments.in_context_task import (
    Episode,
    TableTask,
    best_losses,
    check_template,
    items_of,
    make_episode,
    make_needle,
    shortened,
)
from wholestack.experiments.preflight import versions
from wholestack.experiments.table_model import TableModel, pretrain, tune
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import from_builtins, to_builtins
from wholestack.runs import RunDirectory, RunManifest

TINY = "tiny"
TINY_TEMPLATE = "{key}{label}"
TEXT_TEMPLATE = "{key}: {label}\n"
TRIED = tuple(Tuning(lr=lr, steps=steps) for lr in (1e-3, 4e-3, 1.6e-2) for steps in (20, 80, 320))
TUNING_SEED, EPISODE_SEED, NEEDLE_SEED = 1, 2, 3
LEVEL = 0.95
PRETRAINING_SHARE = 0.45
"""Of a budget; the rest is choosing, tuning and reading."""
STEPS_WORTH = 4000.0
"""All stages together, in steps on short rows."""

Say = Callable[[str], None]


def plan_for(
    model: str,
    *,
    effort: float = 1.0,
    demonstrations: Sequence[int] = (10, 100, 1000),
    episodes: int = 8,
    questions: int = 16,
    template: str = "",
    task: TableTask | None = None,
) -> ContextPlan:
    """What will be done.

    Args:
        model: ``tiny``, or the name of a model to open.
        effort: Length of the tiny model's pretraining, see :func:`effort_within`.
        demonstrations: Numbers of them.
        episodes: Tables measured.
        questions: Of each.
        template: How a demonstration is written; default for the tiny model without any space.
        task: Keys, labels, noise.

    Raises:
        InputError: numbers that say nothing, or a template by which nothing can be asked.
    """
    task = task or TableTask(keys=16)
    if not demonstrations or min(demonstrations) < 1 or episodes < 2 or questions < 1:
        raise InputError(
            f"{list(demonstrations)} demonstrations, {episodes} episodes, {questions} questions",
            remedy="one demonstration, two episodes and one question at least",
        )
    template = template or (TINY_TEMPLATE if model == TINY else TEXT_TEMPLATE)
    check_template(template)
    longest = 2 * max(demonstrations) + 1
    return ContextPlan(
        demonstrations=tuple(sorted(set(demonstrations))),
        episodes=episodes,
        questions=questions,
        keys=task.keys,
        labels=task.labels,
        noise=task.noise,
        model=model,
        template=template,
        tiny=TinyModel(),
        stages=_stages(longest, effort) if model == TINY else (),
        tried=TRIED if model == TINY else (),
        tuning_episodes=3,
    )


def effort_within(budget_s: float, step_s: float) -> float:
    """How long to pretrain in a budget: 1 is enough to learn, more than 1.25 is not needed.

    Args:
        budget_s: Wall time of the whole comparison.
        step_s: Measured wall seconds of a step on short rows.
    """
    return min(1.25, PRETRAINING_SHARE * budget_s / (step_s * STEPS_WORTH))


def _stages(longest: int, effort: float) -> tuple[Stage, ...]:
    """From short rows to the longest."""
    scale = max(0.01, effort)
    found = [Stage(context=min(64, longest), rows=16, steps=max(20, round(1600 * scale)), lr=3e-3)]
    if longest > 256:
        found.append(Stage(context=256, rows=4, steps=max(5, round(400 * scale)), lr=2e-3))
    if longest > 64:
        found.append(Stage(context=longest, rows=1, steps=max(5, round(250 * scale)), lr=1.5e-3))
    return tuple(found)


def create(path: Path, plan: ContextPlan, *, seed: int, at: float) -> RunDirectory:
    """Make the run directory of a new comparison.

    Raises:
        RunDirectoryError: it is not empty or cannot be written.
    """
    config: dict[str, object] = {"plan": to_builtins(plan)}
    run = RunDirectory.create(
        path, RunManifest(kind=KIND, created_at=at, seed=seed, config=config, versions=versions())
    )
    run.write(PLAN, plan)
    return run


def resume(path: Path) -> RunDirectory:
    """Open the run directory of an interrupted comparison.

    Raises:
        RunDirectoryError: it is none.
        RunBusyError: a live process is at work in it.
    """
    run = RunDirectory.resume(path)
    if run.manifest.kind != KIND:
        run.close()
        raise RunDirectoryError(f"{path}: is a {run.manifest.kind!r} run, not a context comparison")
    return run


def plan_of(run: RunDirectory) -> ContextPlan:
    """What a comparison was started with."""
    return from_builtins(ContextPlan, run.manifest.config["plan"], where=str(run.path))


def compare(
    run: RunDirectory,
    *,
    backend: Backend | None = None,
    say: Say = lambda _: None,
    clock: Callable[[], float] = time.time,
) -> ContextOutcome:
    """Run a comparison to its end, from wherever it stands.

    Args:
        run: Made by :func:`create` or :func:`resume`.
        backend: The model; without one the tiny model is pretrained.
        say: Told what happens, a line at a time.
        clock: Seconds since the epoch.

    Returns:
        The outcome, also in ``context.json``.

    Raises:
        WholestackError: it could not be carried on; the run directory can be resumed.
    """
    began, plan, seed = clock(), plan_of(run), run.manifest.seed
    task = TableTask(keys=plan.keys, labels=plan.labels, noise=plan.noise)
    model = backend if backend is not None else _tiny(run, plan, task, seed, say)
    _bind(run, model.identity)
    tuned = model if isinstance(model, TableModel) else None
    tunings = _tunings(run, plan, tuned, seed, say) if tuned is not None else None
    ways = WAYS if tunings else tuple(way for way in WAYS if way != "fine-tuned")
    known = {(arm.way, arm.demonstrations, arm.episode) for arm in run.journal(ARMS, Arm)}
    for demonstrations in plan.demonstrations:
        for number in range(plan.episodes):
            for way in ways:
                if (way, demonstrations, number) in known:
                    continue
                arm = _measure(
                    way,
                    plan,
                    task,
                    model=model,
                    tunings=tunings,
                    demonstrations=demonstrations,
                    number=number,
                    seed=seed,
                )
                run.append(ARMS, arm)
        say(f"{demonstrations} demonstrations: measured on {plan.episodes} episodes")
    outcome = summed_up(
        plan,
        run.journal(ARMS, Arm),
        model=model.identity.digest,
        not_tuned="" if tunings else "this command tunes only the tiny model that it pretrains itself",
        seconds=clock() - began,
    )
    run.write(CONTEXT, outcome)
    return outcome


def _bind(run: RunDirectory, identity: ModelIdentity) -> None:
    """Every arm of a run is of one model: it is written down before the first, and no other may go on."""
    known = run.read_optional(MODEL, ModelIdentity)
    if known is None and not run.journal(ARMS, Arm):
        run.write(MODEL, identity)
    elif known is None or known.digest != identity.digest:
        before = f"model {known.digest} ({known.name})" if known else "a model that it does not name"
        raise InputError(
            f"{run.path}: was measured with {before}, not with {identity.digest} ({identity.name})",
            remedy="go on with that model, or start a new run with --out",
        )


def _tiny(run: RunDirectory, plan: ContextPlan, task: TableTask, seed: int, say: Say) -> TableModel:
    lengths = ", ".join(f"{stage.steps} steps of {stage.context} tokens" for stage in plan.stages)
    say(f"pretraining a tiny model on episodes: {lengths}")
    return pretrain(task, plan.tiny, plan.stages, seed=seed, folder=run.folder(PRETRAINED))


def episode_of(plan: ContextPlan, task: TableTask, *, seed: int, kind: int, number: int) -> Episode:
    """An episode with the most demonstrations; smaller numbers are its first ones."""
    rng = np.random.default_rng([seed, kind, number])
    return make_episode(task, demonstrations=max(plan.demonstrations), questions=plan.questions, rng=rng)


def _tunings(run: RunDirectory, plan: ContextPlan, model: TableModel, seed: int, say: Say) -> Tunings:
    """Rate and length for each number of demonstrations, by the loss on episodes that are not measured."""
    known = run.read_optional(TUNING, Tunings)
    if known is not None:
        return known
    say(f"choosing among {len(plan.tried)} rates and lengths of fine-tuning on {plan.tuning_episodes} other episodes")
    chosen, losses = {}, {}
    for demonstrations in plan.demonstrations:
        found = []
        for tuning in plan.tried:
            each = []
            for number in range(plan.tuning_episodes):
                whole = episode_of(plan, model.task, seed=seed, kind=TUNING_SEED, number=number)
                episode = shortened(whole, demonstrations)
                answered = _ask(tune(model, episode, tuning, seed=number), _bare(model.task, episode, plan, number))
                each.append(answered.loss_nats)
            found.append(fmean(each))
        losses[str(demonstrations)] = tuple(found)
        chosen[str(demonstrations)] = plan.tried[int(np.argmin(found))]
    tunings = Tunings(chosen=chosen, losses=losses)
    run.write(TUNING, tunings)
    return tunings


def _measure(
    way: Way,
    plan: ContextPlan,
    task: TableTask,
    *,
    model: Backend,
    tunings: Tunings | None,
    demonstrations: int,
    number: int,
    seed: int,
) -> Arm:
    began = time.monotonic()
    best: tuple[float, float] | None = None
    name = f"{number}-{demonstrations}"
    if way == "needle":
        rng = np.random.default_rng([seed, NEEDLE_SEED, number, demonstrations])
        hidden = make_needle(task, demonstrations=demonstrations, questions=plan.questions, rng=rng)
        items = [
            item
            for question, episode in enumerate(hidden)
            for item in items_of(task, episode, name=f"{name}-{question}", template=plan.template)
        ]
        answers = _ask(model, items)
    else:
        whole = episode_of(plan, task, seed=seed, kind=EPISODE_SEED, number=number)
        episode = shortened(whole, demonstrations)
        losses, right = best_losses(task, episode)
        best = float(losses.mean()), float(right.mean())
        if way == "fine-tuned" and isinstance(model, TableModel) and tunings is not None:
            tuned = tune(model, episode, tunings.chosen[str(demonstrations)], seed=number)
            answers = _ask(tuned, _bare(task, episode, plan, number))
        else:
            answers = _ask(model, items_of(task, episode, name=name, template=plan.template))
    return Arm(
        way=way,
        demonstrations=demonstrations,
        episode=number,
        loss_nats=answers.loss_nats,
        accuracy=answers.accuracy,
        best_loss_nats=best[0] if best else None,
        best_accuracy=best[1] if best else None,
        questions=answers.scored,
        unscorable=answers.unscorable,
        truncated=answers.truncated,
        seconds=time.monotonic() - began,
    )


def _bare(task: TableTask, episode: Episode, plan: ContextPlan, number: int) -> list[Item]:
    """The questions with nothing in front of them."""
    return items_of(task, shortened(episode, 0), name=f"bare-{number}", template=plan.template)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """What a model made of some questions."""

    loss_nats: float
    accuracy: float
    scored: int
    unscorable: dict[str, int]
    truncated: int


def _ask(model: Backend, items: Sequence[Item]) -> _Answers:
    """Mean loss among the choices and accuracy; what could not be scored is counted by reason.

    Raises:
        InputError: not one of the items could be scored.
    """
    scores = list(model.score(items))
    done = [(item, score) for item, score in zip(items, scores, strict=True) if not score.reason]
    reasons = dict(Counter(score.reason for score in scores if score.reason))
    if not done:
        raise InputError(
            f"none of {len(items)} questions could be scored: {reasons}",
            remedy="give fewer --demonstrations, or a model with a longer context",
        )
    found = [_outcome(item, score) for item, score in done]
    return _Answers(
        loss_nats=fmean(loss for loss, _ in found),
        accuracy=fmean(credit for _, credit in found),
        scored=len(done),
        unscorable=reasons,
        truncated=sum(score.truncated for _, score in done),
    )


def _outcome(item: Item, score: ItemScore) -> tuple[float, float]:
    """-log of the answer's share among the choices, and whether it is the likeliest; a tie of k counts 1/k."""
    values = -np.array(score.nll_nats)
    best = float(values.max())
    loss = best + math.log(float(np.exp(values - best).sum())) - float(values[item.gold])
    return loss, float(values[item.gold] == best) / int((values == best).sum())


def summed_up(plan: ContextPlan, arms: Sequence[Arm], *, model: str, not_tuned: str, seconds: float) -> ContextOutcome:
    """Means over episodes, and the paired contrast of the two ways."""
    points = [
        _point(way, count, found)
        for way in WAYS
        for count in plan.demonstrations
        if (found := [arm for arm in arms if (arm.way, arm.demonstrations) == (way, count)])
    ]
    contrasts = [each for count in plan.demonstrations if (each := _contrast(count, arms)) is not None]
    untold = any(each.loss_nats.interval is None or _holds_zero(each.loss_nats) for each in contrasts)
    return ContextOutcome(
        plan=plan,
        model=model,
        points=tuple(points),
        contrasts=tuple(contrasts),
        not_tuned=not_tuned,
        chance_accuracy=1 / plan.labels,
        chance_loss_nats=math.log(plan.labels),
        seconds=seconds,
        exit_code=EXIT_UNKNOWN if untold else EXIT_OK,
    )


def _point(way: Way, demonstrations: int, arms: Sequence[Arm]) -> Point:
    bests = [(arm.best_loss_nats, arm.best_accuracy) for arm in arms]
    losses = [loss for loss, _ in bests if loss is not None]
    accuracies = [accuracy for _, accuracy in bests if accuracy is not None]
    return Point(
        way=way,
        demonstrations=demonstrations,
        loss_nats=measured([arm.loss_nats for arm in arms]),
        accuracy=measured([arm.accuracy for arm in arms]),
        best_loss_nats=fmean(losses) if losses else None,
        best_accuracy=fmean(accuracies) if accuracies else None,
        episodes=len(arms),
        unscorable=sum(sum(arm.unscorable.values()) for arm in arms),
        truncated=sum(arm.truncated for arm in arms),
    )


def measured(values: Sequence[float]) -> Measured:
    """Mean over episodes with Student's interval."""
    estimate = mean_estimate(np.array(values), np.arange(len(values)))
    return Measured(value=estimate.value, interval=t_interval(estimate, level=LEVEL))


def _contrast(demonstrations: int, arms: Sequence[Arm]) -> Contrast | None:
    here = {(arm.way, arm.episode): arm for arm in arms if arm.demonstrations == demonstrations}
    pairs = [
        (arm, here["fine-tuned", number])
        for (way, number), arm in sorted(here.items())
        if way == "in context" and ("fine-tuned", number) in here
    ]
    if not pairs:
        return None
    loss = measured([one.loss_nats - other.loss_nats for one, other in pairs])
    accuracy = measured([one.accuracy - other.accuracy for one, other in pairs])
    return Contrast(
        demonstrations=demonstrations, loss_nats=loss, accuracy=accuracy, sentence=_told(demonstrations, loss)
    )


def _told(demonstrations: int, loss: Measured) -> str:
    interval = loss.interval
    if interval is None or _holds_zero(loss):
        said = f" ({interval.low:+.3f} to {interval.high:+.3f})" if interval else ""
        return (
            f"{demonstrations} demonstrations: whether context or fine-tuning is better cannot be told; the loss"
            f" differs by {loss.value:+.3f} nats{said}."
        )
    better, worse = ("the context", "fine-tuning") if loss.value < 0 else ("fine-tuning", "the context")
    least, most = sorted((abs(interval.low), abs(interval.high)))
    return (
        f"{demonstrations} demonstrations: {better} is better than {worse} by {abs(loss.value):.3f} nats"
        f" ({least:.3f} to {most:.3f})."
    )


def _holds_zero(difference: Measured) -> bool:
    return difference.interval is not None and difference.interval.low <= 0 <= difference.interval.high
