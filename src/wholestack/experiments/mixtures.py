"""Compare data mixtures and schedules of mixtures on one fixed evaluation, at equal cost, against a tuned baseline.

Every mixture trains the same model on the same number of tokens: equal training FLOPs. Each, the baseline included,
tries the same few learning rates with one seed; the best of them trains again with seeds of their own, the same for
every mixture, and only these are compared, item by item and seed by seed. Training may continue given weights; then
loss on held-out text of the mixture that made them is measured before and after.

It runs in a run directory like a rehearsal: every training is written down before it starts and acknowledged when it
ended, so that a kill at any moment loses and doubles nothing. A training that would overrun the budget is not started,
one that does is stopped and goes on from its checkpoint when the run is given more time. The seeds go round all
mixtures in turn, so that what is there when the time is up can be compared; a verdict is given only when all are there,
for a look at some of the seeds and another at all of them would be two chances to be wrong.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from wholestack.data.corpus import Corpus
from wholestack.data.tokenizer import Tokenizer
from wholestack.errors import InputError
from wholestack.evals.items import ItemSet, metric_name
from wholestack.evals.statistics import ASSUMED_PAIRED_SD_BPB
from wholestack.experiments.mixture_plan import (
    COMPARISON_PLAN,
    INITIAL,
    KIND,
    MIXTURES,
    Comparison,
    ComparisonPlan,
    MixturesOutcome,
    Start,
    overall,
    stretches,
)
from wholestack.experiments.mixture_results import MIXTURE, best_rate, results_of
from wholestack.experiments.mixture_verdict import ASSUMED_SEED_SD_BPB, expected_spread
from wholestack.experiments.phases import data
from wholestack.experiments.phases.preflight import run_probe
from wholestack.experiments.phases.search import POLL_S, SCORING_S, acknowledge
from wholestack.experiments.planning import SAFETY, SMALL
from wholestack.experiments.preflight import versions
from wholestack.experiments.progress import Watcher, nobody
from wholestack.experiments.recipe import MIXTURE_SETTING, Recipe
from wholestack.experiments.records import SPEC, SUGGESTIONS, Params, Role, SuggestionRecord
from wholestack.experiments.rehearsal import bytes_per_token, opened
from wholestack.experiments.scheduling import search_space, trial_seed, unfinished
from wholestack.experiments.settings import training_plan, with_cost
from wholestack.experiments.sources import sources_of
from wholestack.experiments.specs import HeldOutProbe, TrainingSpec
from wholestack.experiments.stage import Stage
from wholestack.experiments.training import TrainingRuns
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import from_builtins, from_json, to_builtins
from wholestack.runs import RunDirectory, RunManifest

RATES_FROM_SCRATCH = (0.5, 1.0, 2.0)
RATES_CONTINUED = (0.1, 0.3, 1.0)
"""Times the peak rate of the given weights: mid-training begins lower, but whether lower is better is measured."""
FEWEST_STEPS = 20
RESERVE_S = 15.0
HELD_OUT_WINDOWS = 400
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a comparison was started with, read back from its run directory."""

    comparison: Comparison
    seeds: int
    start: Start | None


def create(
    path: Path,
    recipe: Recipe,
    comparison: Comparison,
    *,
    seeds: int,
    budget_s: float,
    seed: int,
    start: Path | None = None,
    at: float,
) -> RunDirectory:
    """Make the run directory of a new comparison.

    Args:
        path: Made if it is missing.
        recipe: Sources, tokenizer, model, evaluation.
        comparison: The mixtures.
        seeds: Trainings of each mixture that are compared, two or more.
        budget_s: Wall time of everything; sets the length of the trainings unless the comparison does.
        seed: Everything random derives from it.
        start: Weights to continue: the job folder of a run, or its checkpoints.
        at: Seconds since the epoch.

    Raises:
        InputError: an unknown source, too few seeds, or weights that do not fit the recipe.
        RunDirectoryError: it is not empty or cannot be written.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}", remedy="compare with two or more: one seed says nothing on another")
    known = [source.name for source in recipe.sources]
    for name, phases in comparison.mixtures.items():
        for source in overall(phases):
            if source not in known:
                raise InputError(
                    f"mixture {name!r} names an unknown source {source!r}", remedy=f"known are: {', '.join(known)}"
                )
    sources_of(recipe)
    begun = None if start is None else find_start(start)
    settings = base_params(recipe, comparison, begun)
    if begun is not None and training_plan(recipe, settings).model != begun.spec.model:
        raise InputError(
            f"{start}: the recipe {recipe.name!r} makes another model than these weights are of",
            remedy="use the recipe that they were trained with",
        )
    config: dict[str, object] = {
        "recipe": to_builtins(recipe),
        "comparison": to_builtins(comparison),
        "seeds": seeds,
        "start": None if begun is None else to_builtins(begun),
        "budget_s": budget_s,
        "stop_if_off": False,
    }
    run = RunDirectory.create(
        path, RunManifest(kind=KIND, created_at=at, seed=seed, config=config, versions=versions())
    )
    if start is not None:
        _copy_weights(start, run)
    return run


def resume(path: Path) -> RunDirectory:
    """Open the run directory of an interrupted comparison.

    Raises:
        RunDirectoryError: it is none.
        RunBusyError: a live process is at work in it.
    """
    return RunDirectory.resume(path, kind=KIND)


def compare(
    run: RunDirectory,
    *,
    watch: Watcher = nobody,
    announce: Callable[[ComparisonPlan], None] = lambda _: None,
    budget_s: float | None = None,
    clock: Callable[[], float] = time.time,
) -> MixturesOutcome:
    """Run a comparison to its end or to that of its budget, from wherever it stands.

    Args:
        run: Made by :func:`create` or :func:`resume`.
        watch: Told about progress.
        announce: Told what the comparison can see, before anything is trained.
        budget_s: Another budget than the one it was created with.
        clock: Seconds since the epoch.

    Returns:
        The outcome, also in ``mixtures.json``.

    Raises:
        WholestackError: it could not be carried on; the run directory can be resumed.
    """
    asked = asked_of(run)
    with opened(run, watch=watch, budget_s=budget_s, clock=clock) as stage:
        if not stage.clock.has_ended("data"):
            stage.clock.began("data")
            stage.clock.ended("data", data.run_data(stage, tokenizer=_tokenizer(asked.start)))
        warnings = _warnings(stage, asked.start)
        if not stage.clock.has_ended("evaluation"):
            stage.clock.began("evaluation")
            stage.clock.ended("evaluation", data.run_evaluation(stage))
        plan = run.read_optional(COMPARISON_PLAN, ComparisonPlan) or _plan(stage, asked)
        announce(plan)
        if not stage.clock.has_ended("search"):
            stage.clock.began("search")
            if _train_all(stage, asked, plan):
                stage.clock.ended("search", _trained(stage))
        outcome = _outcome(stage, asked, plan, warnings)
        run.write(MIXTURES, outcome)
    return outcome


def asked_of(run: RunDirectory) -> Asked:
    """What a comparison was started with."""
    config, where = run.manifest.config, str(run.path)
    start = config["start"]
    return Asked(
        comparison=from_builtins(Comparison, config["comparison"], where=where),
        seeds=int(str(config["seeds"])),
        start=None if start is None else from_builtins(Start, start, where=where),
    )


def find_start(path: Path) -> Start:
    """How given weights were trained: ``spec.json`` of their job folder.

    Raises:
        InputError: there are no checkpoints, or nothing says how they were trained.
    """
    if not _checkpoints(path):
        raise InputError(f"{path}: holds no checkpoint", remedy="name the job folder of a run, or its checkpoints")
    for folder in (path, *list(path.resolve().parents)[:2]):
        if (folder / SPEC).is_file():
            spec = from_json(TrainingSpec, (folder / SPEC).read_bytes(), where=str(folder / SPEC))
            return Start(given=str(path), spec=spec)
    raise InputError(
        f"{path}: no {SPEC} beside it says how these weights were trained",
        remedy="name the job folder of a run, for instance RUN/jobs/large-0000",
    )


def base_params(recipe: Recipe, comparison: Comparison, start: Start | None) -> Params:
    """The settings that all trainings share; the centre of the recipe, or those of the given weights."""
    centre: Params = {**(recipe.fixed or {}), **search_space(recipe).centre(), **(comparison.params or {})}
    centre.pop(MIXTURE_SETTING, None)
    if start is None:
        return centre
    model, optimizer = start.spec.model, start.spec.optimizer
    return {
        **centre,
        "layers": model.layers,
        "width": model.width,
        "head_size": model.head_size,
        "batch_size": optimizer.batch_size,
        "weight_decay": optimizer.weight_decay,
        "lr": optimizer.lr,
    }


def _checkpoints(path: Path) -> list[Path]:
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    return sorted(folder.glob("step-*.pt")) if folder.is_dir() else [path] if path.is_file() else []


def _copy_weights(start: Path, run: RunDirectory) -> None:
    """Into the run directory: what is resumed tomorrow continues the same weights."""
    folder = run.folder(INITIAL)
    for each in _checkpoints(start):
        shutil.copyfile(each, folder / each.name)


def _tokenizer(start: Start | None) -> Tokenizer | None:
    """That of the given weights: they know no other tokens.

    Raises:
        DataError: the corpus that they were trained on is no longer there.
    """
    return None if start is None else Corpus.open(Path(start.spec.corpus)).tokenizer


def _warnings(stage: Stage, start: Start | None) -> tuple[str, ...]:
    """Say when held-out text may have been trained on, and when the old distribution is not all there."""
    if start is None:
        return ()
    ours, theirs = Corpus.open(stage.run.path / "data"), Corpus.open(Path(start.spec.corpus))
    found = []
    known, held_out = held_out_but_read(ours, theirs)
    if known:
        found.append(
            f"the given weights have read {known} of the {held_out} documents that are held out here: loss on these"
            " looks better than it is, before more than after"
        )
    if old_mixture(start, ours) is None:
        missing = sorted(set(start.spec.mixture) - set(ours.sources))
        found.append(
            f"what is forgotten was not measured: the recipe has no source {', '.join(missing)}, which the given"
            " weights were trained on"
        )
    return tuple(found)


def held_out_but_read(ours: Corpus, theirs: Corpus) -> tuple[int, int]:
    """Documents that are held out of our corpus and trained on in theirs, by content; and all that are held out."""
    held_out = {entry.sha256 for entry in ours.ledger if entry.split == "held_out"}
    read = {entry.sha256 for entry in theirs.ledger if entry.split == "train"}
    return len(held_out & read), len(held_out)


def old_mixture(start: Start | None, corpus: Corpus) -> dict[str, float] | None:
    """The mixture whose held-out text shows what is forgotten; ``None`` where there is none or not all of it."""
    if start is None or set(start.spec.mixture) - set(corpus.sources):
        return None
    return start.spec.mixture


def _plan(stage: Stage, asked: Asked) -> ComparisonPlan:
    """Measure the speed, share the time that is left, and say what will be seen; on the disk before any training."""
    run, comparison, recipe = stage.run, asked.comparison, stage.recipe
    stage.tell("preflight", "measuring speed", left_s=stage.clock.left_s)
    rate = run_probe(stage.engine, run.folder("jobs/preflight"), recipe).rates_flops_s.get(SMALL, 0.0)
    if rate <= 0:
        raise InputError(f"this machine has no {recipe.device}", remedy="use a recipe for a device that is there")
    rates = comparison.rates or (RATES_CONTINUED if asked.start else RATES_FROM_SCRATCH)
    runs = len(comparison.mixtures) * (len(rates) + asked.seeds)
    params = base_params(recipe, comparison, asked.start)
    if comparison.tokens is not None:
        params = {**params, "tokens": float(comparison.tokens)}
    else:
        usable_s = max(0.0, stage.clock.left_s - RESERVE_S - runs * SCORING_S / recipe.workers)
        params = with_cost(recipe, params, SAFETY * rate * usable_s * recipe.workers / runs)
    planned = training_plan(recipe, params)
    if comparison.tokens is None and planned.optimizer.steps < FEWEST_STEPS:
        raise InputError(
            f"{runs} trainings in {stage.clock.budget_s:.0f} s leave {planned.optimizer.steps} steps for each",
            remedy="give a longer --budget, fewer mixtures or fewer --seeds",
        )
    plan = _expected(stage, asked, runs=runs, rates=rates, rate_flops_s=rate, tokens=planned.tokens)
    run.write(COMPARISON_PLAN, plan)
    return plan


def _expected(
    stage: Stage, asked: Asked, *, runs: int, rates: tuple[float, ...], rate_flops_s: float, tokens: int
) -> ComparisonPlan:
    items = ItemSet.load(stage.run.path / "items")
    params = {**base_params(stage.recipe, asked.comparison, asked.start), "tokens": float(tokens)}
    planned = training_plan(stage.recipe, params)
    contenders = len(asked.comparison.mixtures) - 1
    level = 1 - (1 - LEVEL) / contenders
    clusters = len({item.cluster for item in items.items})
    spread = expected_spread(
        items=len(items.items),
        clusters=clusters,
        seeds=asked.seeds,
        paired_sd=ASSUMED_PAIRED_SD_BPB,
        seed_sd=ASSUMED_SEED_SD_BPB,
    )
    return ComparisonPlan(
        runs=runs,
        tokens=planned.tokens,
        steps=planned.optimizer.steps,
        cost_flops=planned.cost_flops,
        lr=float(params["lr"]),
        rates=rates,
        rate_flops_s=rate_flops_s,
        expected_s=runs * (planned.cost_flops / (SAFETY * rate_flops_s) + SCORING_S) / stage.recipe.workers,
        seeds=asked.seeds,
        items=len(items.items),
        clusters=clusters,
        level=level,
        detectable=spread.detectable(level),
        basis=(
            f"assumed: one item's difference spreads by {ASSUMED_PAIRED_SD_BPB} bits per byte, one recipe's seeds by"
            f" {ASSUMED_SEED_SD_BPB}"
        ),
    )


def _train_all(stage: Stage, asked: Asked, plan: ComparisonPlan) -> bool:
    """The rates of every mixture, then the seeds at its best rate; whether the budget sufficed."""
    runs = _training_runs(stage, asked)
    return _train(stage, runs, _rate_trials(stage, asked, plan), plan) and _train(
        stage, runs, _repeat_trials(stage, asked, plan), plan
    )


def _trained(stage: Stage) -> str:
    failed = sum(trial.outcome != "ok" for trial in stage.trials)
    return f"{len(stage.trials)} trainings, {failed} failed"


def _train(stage: Stage, runs: TrainingRuns, wanted: list[SuggestionRecord], plan: ComparisonPlan) -> bool:
    """Train what is wanted and not acknowledged; what was suggested before a kill is not suggested again.

    Returns:
        Whether all of it was trained before the budget was used up.
    """
    known = {each.name for each in stage.suggestions}
    for suggestion in wanted:
        if suggestion.name not in known:
            stage.run.append(SUGGESTIONS, suggestion)
    waiting = unfinished(wanted, stage.trials)
    expected_s = plan.cost_flops / (SAFETY * plan.rate_flops_s) + SCORING_S
    while waiting or runs.running:
        taken_s = [trial.seconds for trial in stage.trials if trial.outcome == "ok"]
        each_s = fmean(taken_s) if taken_s else expected_s
        while waiting and len(runs.running) < stage.recipe.workers and each_s <= stage.clock.left_s:
            runs.start(waiting.pop(0), expected_s=expected_s)
        if not runs.running or stage.clock.left_s <= 0:
            runs.stop()
            return False
        for trial in runs.collect(min(POLL_S, stage.clock.left_s)):
            acknowledge(stage, trial)
        done = len(stage.trials)
        left_s = min(stage.clock.left_s, (plan.runs - done) * each_s / stage.recipe.workers)
        names = ", ".join(sorted(f"{each.suggestion.params[MIXTURE]}" for each in runs.running.values()))
        stage.tell("search", f"training {names}", done=done, total=plan.runs, left_s=left_s)
    return True


def _rate_trials(stage: Stage, asked: Asked, plan: ComparisonPlan) -> list[SuggestionRecord]:
    pairs = [(name, plan.lr * rate) for name in asked.comparison.mixtures for rate in plan.rates]
    return [
        _suggestion(stage, asked, plan, role="rate", number=number, mixture=name, lr=lr, repeat=0)
        for number, (name, lr) in enumerate(pairs)
    ]


def _repeat_trials(stage: Stage, asked: Asked, plan: ComparisonPlan) -> list[SuggestionRecord]:
    """Seed by seed for all mixtures; none of one that no learning rate trained."""
    best = {name: best_rate(stage.trials, name, stage.recipe.metric) for name in asked.comparison.mixtures}
    return [
        _suggestion(
            stage,
            asked,
            plan,
            role="repeat",
            number=place * asked.seeds + seed,
            mixture=name,
            lr=lr,
            repeat=seed,
        )
        for seed in range(asked.seeds)
        for place, (name, lr) in enumerate(best.items())
        if lr is not None
    ]


def _suggestion(
    stage: Stage, asked: Asked, plan: ComparisonPlan, *, role: Role, number: int, mixture: str, lr: float, repeat: int
) -> SuggestionRecord:
    """One training; its seed is the same for every mixture."""
    shared = base_params(stage.recipe, asked.comparison, asked.start)
    return SuggestionRecord(
        name=f"{role}-{number:04d}",
        role=role,
        number=number,
        params={**shared, "tokens": float(plan.tokens), "lr": lr, MIXTURE: mixture},
        seed=trial_seed(stage.seed, role, repeat),
        cost_flops=plan.cost_flops,
        origin="rates" if role == "rate" else "seeds",
    )


def _training_runs(stage: Stage, asked: Asked) -> TrainingRuns:
    path = stage.run.path
    corpus = Corpus.open(path / "data")
    old = old_mixture(asked.start, corpus)
    probe = None if old is None else HeldOutProbe(mixture=old, windows=HELD_OUT_WINDOWS, seed=data.DATA_SEED)

    def amend(suggestion: SuggestionRecord, spec: TrainingSpec) -> TrainingSpec:
        phases = asked.comparison.mixtures[str(suggestion.params[MIXTURE])]
        sequences = spec.optimizer.steps * spec.optimizer.batch_size
        return replace(
            spec,
            mixture=overall(phases),
            schedule=stretches(phases, sequences),
            checkpoints=True,
            keep_items=suggestion.role == "repeat",
            initial=str(path / INITIAL) if asked.start else "",
            held_out=probe if suggestion.role == "repeat" else None,
        )

    return TrainingRuns(
        stage.run,
        stage.recipe,
        stage.engine,
        bytes_per_token=bytes_per_token(corpus),
        large_threads=1,
        clock=lambda: stage.clock.now,
        amend=amend,
    )


def _outcome(stage: Stage, asked: Asked, plan: ComparisonPlan, warnings: tuple[str, ...]) -> MixturesOutcome:
    items = ItemSet.load(stage.run.path / "items")
    finished = stage.clock.has_ended("search")
    results = results_of(
        stage.run.path, stage.trials, asked.comparison, plan, metric=stage.recipe.metric, finished=finished
    )
    untold = any(each.verdict == "cannot be told" for each in results)
    return MixturesOutcome(
        metric=metric_name(stage.recipe.metric, items),
        baseline=asked.comparison.baseline,
        plan=plan,
        trainings=len(stage.trials),
        finished=finished,
        results=results,
        warnings=warnings,
        seconds=stage.clock.used_s,
        budget_s=stage.clock.budget_s,
        exit_code=EXIT_UNKNOWN if untold or not finished else EXIT_OK,
    )
