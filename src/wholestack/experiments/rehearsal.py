"""The main job: tune small, predict large, train it, show where it landed.

Phases run in order; each puts its end on the disk, and a resumed rehearsal begins with the first that has not ended.
Within a phase every trial is written down before it starts and acknowledged when it ended, so that a kill at any
moment loses nothing acknowledged and doubles nothing.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from wholestack.data.corpus import Corpus
from wholestack.experiments.budget import BudgetClock
from wholestack.experiments.phases import data, landing, long_runs, preflight, scaling, search
from wholestack.experiments.planning import check_budget
from wholestack.experiments.preflight import versions
from wholestack.experiments.progress import Watcher, nobody
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import KIND, OUTCOME, PHASE_ORDER, Outcome, PhaseName
from wholestack.experiments.scheduling import search_space
from wholestack.experiments.settings import check_ends, training_plan
from wholestack.experiments.settlement import recipe_of
from wholestack.experiments.sources import sources_of
from wholestack.experiments.stage import Stage, unfit
from wholestack.experiments.training import TrainingRuns
from wholestack.finding import Finding
from wholestack.launch.local import LocalEngine, end_leftovers
from wholestack.record import digest, to_builtins
from wholestack.runs import RunDirectory, RunManifest, RunReader

PRELOAD = ("wholestack.experiments.worker",)


def create(
    path: Path,
    recipe: Recipe,
    *,
    budget_s: float,
    seed: int,
    stop_if_off: bool = False,
    recipe_given: str = "",
    at: float,
) -> RunDirectory:
    """Make the run directory of a new rehearsal.

    Args:
        path: Made if it is missing.
        recipe: What to rehearse.
        budget_s: Wall time of the whole rehearsal.
        seed: Everything random derives from it.
        stop_if_off: Do not train the large run when the rung lands outside its interval.
        recipe_given: What the user named to get this recipe, a built-in name or a file; empty if it came as a value.
            The report says with it how to do it again.
        at: Seconds since the epoch.

    Raises:
        InputError: the space has a wrong bound, its centre or a bound makes no run, a source or item set is not
            there, or the budget is too short.
        RunDirectoryError: it is not empty or cannot be written.
    """
    training_plan(recipe, search_space(recipe).centre())
    check_ends(recipe)
    check_budget(recipe, budget_s)
    sources_of(recipe)
    if recipe.items:
        data.given_items(Path(recipe.items))
    config: dict[str, object] = {
        "recipe": to_builtins(recipe),
        "recipe_given": recipe_given,
        "budget_s": budget_s,
        "stop_if_off": stop_if_off,
    }
    return RunDirectory.create(
        path, RunManifest(kind=KIND, created_at=at, seed=seed, config=config, versions=versions())
    )


def resume(path: Path) -> RunDirectory:
    """Open the run directory of an interrupted rehearsal.

    Raises:
        RunDirectoryError: it is no rehearsal.
        RunBusyError: a live process is at work in it.
    """
    return RunDirectory.resume(path, kind=KIND)


def rehearse(
    run: RunDirectory, *, watch: Watcher = nobody, budget_s: float | None = None, clock: Callable[[], float] = time.time
) -> Outcome:
    """Run a rehearsal to its end, from wherever it stands.

    Args:
        run: Made by :func:`create` or :func:`resume`.
        watch: Told about progress.
        budget_s: Another budget than the one it was created with.
        clock: Seconds since the epoch.

    Returns:
        The outcome, also in ``outcome.json``.

    Raises:
        WholestackError: it could not be carried on; the run directory can be resumed.
    """
    with opened(run, watch=watch, budget_s=budget_s, clock=clock) as stage:
        works = _works(stage)
        for phase in PHASE_ORDER:
            if stage.clock.has_ended(phase):
                continue
            stage.clock.began(phase)
            forbidden = unfit(run) if phase != "landing" else []
            stage.clock.ended(phase, _not_run(forbidden[0]) if forbidden else works[phase]())
    return run.read(OUTCOME, Outcome)


@contextmanager
def opened(
    run: RunDirectory, *, watch: Watcher = nobody, budget_s: float | None = None, clock: Callable[[], float] = time.time
) -> Iterator[Stage]:
    """The stage of a run directory, with an engine whose processes end with the block; left-overs are ended first."""
    token = token_of(run)
    end_leftovers(token)
    with LocalEngine(run.folder("jobs"), preload=PRELOAD, token=token) as engine:
        config = run.manifest.config
        yield Stage(
            run=run,
            recipe=recipe_of(run),
            seed=run.manifest.seed,
            stop_if_off=bool(config["stop_if_off"]),
            clock=BudgetClock(run, budget_s or float(str(config["budget_s"])), clock),
            engine=engine,
            watch=watch,
        )


def training_runs(stage: Stage) -> TrainingRuns:
    """What trains models for a stage, once its data and its plan are there."""
    corpus = Corpus.open(stage.run.path / "data")
    return TrainingRuns(
        stage.run,
        stage.recipe,
        stage.engine,
        bytes_per_token=bytes_per_token(corpus),
        large_threads=stage.plan.large_threads,
        clock=lambda: stage.clock.now,
    )


def token_of(run: RunReader) -> str:
    """Marks the processes of this run directory, the same after a resume."""
    return "rehearsal-" + digest(os.fspath(run.path.resolve()), run.manifest.created_at)


def _works(stage: Stage) -> Mapping[PhaseName, Callable[[], str]]:
    """What each phase does; it hands back one line on what came out."""
    return {
        "preflight": lambda: preflight.run(stage),
        "data": lambda: data.run_data(stage),
        "evaluation": lambda: data.run_evaluation(stage),
        "search": lambda: search.run(stage, training_runs(stage)),
        "scaling": lambda: scaling.run(stage, training_runs(stage)),
        "rung": lambda: long_runs.run_rung(stage, training_runs(stage)),
        "large": lambda: long_runs.run_large(stage, training_runs(stage)),
        "landing": lambda: landing.run(stage),
    }


def _not_run(forbidden: Finding) -> str:
    return f"not run: {forbidden.check} failed ({forbidden.cause})"


def bytes_per_token(corpus: Corpus) -> dict[str, float]:
    """Mean UTF-8 bytes of a training token of each source."""
    totals: dict[str, tuple[int, int]] = {}
    for entry in corpus.ledger:
        if entry.split == "train":
            size, tokens = totals.get(entry.source, (0, 0))
            totals[entry.source] = size + entry.size_bytes, tokens + entry.tokens
    return {source: size / tokens for source, (size, tokens) in totals.items()}
