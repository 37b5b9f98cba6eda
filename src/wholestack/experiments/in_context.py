"""Demonstrations in the context against fine-tuning on the same ones, and a needle test only beside it.

Every episode is a table of its own. The same demonstrations, in the same seeded order, are put in front of each
question (in context) or trained on (fine-tuned, from the same weights); the same questions are asked behind both. Rate
and length of fine-tuning are chosen, for each number of demonstrations, on episodes that are not measured; reading
demonstrations has nothing to choose. Episodes are the unit of every interval, and of the paired contrast.

Any backend is read: demonstrations are nothing but context. Fine-tuning needs a model whose weights are in this
process, whatever library it is of (``tuning.py``); an endpoint and the model in memory are only read.
"""

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.backend import Backend, ItemScore, ModelIdentity
from wholestack.evals.items import Item
from wholestack.evals.models.local import LocalBackend
from wholestack.experiments.in_context_plan import (
    ARMS,
    CONTEXT,
    KIND,
    MODEL,
    PLAN,
    PRETRAINED,
    TRIED,
    TUNING,
    WAYS,
    Arm,
    ContextOutcome,
    ContextPlan,
    Stage,
    TinyModel,
    Tried,
    Tuning,
    Tunings,
    Way,
)
from wholestack.experiments.in_context_results import summed_up
from wholestack.experiments.in_context_task import (
    Episode,
    TableTask,
    best_losses,
    check_template,
    demonstrated,
    items_of,
    make_episode,
    make_needle,
    shortened,
)
from wholestack.experiments.preflight import versions
from wholestack.experiments.table_model import pretrain
from wholestack.experiments.tuning import tuned
from wholestack.record import from_builtins, to_builtins
from wholestack.runs import RunDirectory, RunManifest

TINY = "tiny"
TINY_TEMPLATE = "{key}{label}"
TEXT_TEMPLATE = "{key}: {label}\n"
TRIED_TINY = tuple(Tuning(lr=lr, steps=steps) for lr in (1e-3, 4e-3, 1.6e-2) for steps in (20, 80, 320))
TRIED_ELSEWHERE = tuple(Tuning(lr=lr, steps=steps) for lr in (1e-5, 1e-4, 1e-3) for steps in (30, 120))
"""Fewer, for a step of a larger model takes long; from gentle to more than most models bear, for nothing is known."""
TUNING_SEED, EPISODE_SEED, NEEDLE_SEED = 1, 2, 3
PRETRAINING_SHARE = 0.4
"""Of a budget; the rest is choosing, tuning and reading."""
STEPS_WORTH = 4000.0
"""All stages together, in steps on short rows."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """What a model made of some questions."""

    loss_nats: float
    accuracy: float
    scored: int
    unscorable: dict[str, int]
    truncated: int


def plan_for(
    model: str,
    *,
    effort: float = 1.0,
    demonstrations: Sequence[int] = (10, 100, 1000),
    episodes: int = 8,
    questions: int = 16,
    template: str = "",
    tune: bool = True,
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
        tune: Whether to fine-tune at all.
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
        tried=() if not tune else TRIED_TINY if model == TINY else TRIED_ELSEWHERE,
        tuning_episodes=3 if model == TINY else 2,
    )


def effort_within(budget_s: float, step_s: float) -> float:
    """How long to pretrain in a budget: 1 is enough to learn, and no more is taken.

    Args:
        budget_s: Wall time of the whole comparison.
        step_s: Measured wall seconds of a step on short rows.
    """
    return min(1.0, PRETRAINING_SHARE * budget_s / (step_s * STEPS_WORTH))


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
    return RunDirectory.resume(path, kind=KIND)


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
    model = backend if backend is not None else _tiny(run, plan, seed, say)
    _bind(run, model.identity)
    trainable = model if isinstance(model, LocalBackend) and model.module is not None and plan.tried else None
    tunings = None if trainable is None else _tunings(run, plan, trainable, seed=seed, say=say)
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
        not_tuned=_why_not_tuned(plan, model) if trainable is None else "",
        seconds=clock() - began,
    )
    run.write(CONTEXT, outcome)
    return outcome


def task_of(plan: ContextPlan) -> TableTask:
    """What episodes are made by."""
    return TableTask(keys=plan.keys, labels=plan.labels, noise=plan.noise)


def _why_not_tuned(plan: ContextPlan, model: Backend) -> str:
    if not plan.tried:
        return "it was asked only to read"
    return f"{model.identity.name} has no weights in this process"


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


def _tiny(run: RunDirectory, plan: ContextPlan, seed: int, say: Say) -> LocalBackend:
    lengths = ", ".join(f"{stage.steps} steps of {stage.context} tokens" for stage in plan.stages)
    say(f"pretraining a tiny model on episodes: {lengths}")
    return pretrain(task_of(plan), plan.tiny, plan.stages, seed=seed, folder=run.folder(PRETRAINED))


def episode_of(plan: ContextPlan, *, seed: int, kind: int, number: int) -> Episode:
    """An episode with the most demonstrations; smaller numbers are its first ones."""
    rng = np.random.default_rng([seed, kind, number])
    return make_episode(task_of(plan), demonstrations=max(plan.demonstrations), questions=plan.questions, rng=rng)


def _tunings(run: RunDirectory, plan: ContextPlan, model: LocalBackend, *, seed: int, say: Say) -> Tunings:
    """Rate and length for each number of demonstrations, by the loss on episodes that are not measured."""
    known = run.read_optional(TUNING, Tunings)
    if known is not None:
        return known
    say(f"choosing among {len(plan.tried)} rates and lengths of fine-tuning on {plan.tuning_episodes} other episodes")
    tried = {(each.demonstrations, each.number, each.episode): each.loss_nats for each in run.journal(TRIED, Tried)}
    wanted = itertools.product(plan.demonstrations, range(len(plan.tried)), range(plan.tuning_episodes))
    for key in wanted:
        if key in tried:
            continue
        demonstrations, number, episode = key
        whole = episode_of(plan, seed=seed, kind=TUNING_SEED, number=episode)
        shown = shortened(whole, demonstrations)
        tried[key] = _ask_tuned(model, plan, shown, plan.tried[number], number=episode).loss_nats
        run.append(TRIED, Tried(demonstrations=demonstrations, number=number, episode=episode, loss_nats=tried[key]))
    losses = {
        count: tuple(
            fmean(tried[count, number, episode] for episode in range(plan.tuning_episodes))
            for number in range(len(plan.tried))
        )
        for count in plan.demonstrations
    }
    tunings = Tunings(
        chosen={str(count): plan.tried[int(np.argmin(found))] for count, found in losses.items()},
        losses={str(count): found for count, found in losses.items()},
    )
    run.write(TUNING, tunings)
    return tunings


def _ask_tuned(model: LocalBackend, plan: ContextPlan, episode: Episode, tuning: Tuning, *, number: int) -> _Answers:
    """The questions of an episode with nothing in front of them, after its demonstrations were trained on."""
    task, shown = task_of(plan), demonstrated(episode)
    demonstrations = items_of(task, shown, name=f"shown-{number}", template=plan.template)
    bare = items_of(task, shortened(episode, 0), name=f"bare-{number}", template=plan.template)
    with tuned(model, demonstrations, tuning, seed=number) as learnt:
        return _ask(learnt, bare)


def _measure(
    way: Way,
    plan: ContextPlan,
    *,
    model: Backend,
    tunings: Tunings | None,
    demonstrations: int,
    number: int,
    seed: int,
) -> Arm:
    began, task = time.monotonic(), task_of(plan)
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
        whole = episode_of(plan, seed=seed, kind=EPISODE_SEED, number=number)
        episode = shortened(whole, demonstrations)
        losses, right = best_losses(task, episode)
        best = float(losses.mean()), float(right.mean())
        if way == "fine-tuned" and isinstance(model, LocalBackend) and tunings is not None:
            answers = _ask_tuned(model, plan, episode, tunings.chosen[str(demonstrations)], number=number)
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
