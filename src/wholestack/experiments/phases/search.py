"""Phase 4: trials until only the time for the rest is left."""

import itertools
import statistics

from wholestack.errors import EngineError
from wholestack.experiments.laws import front_trials
from wholestack.experiments.planning import RESERVE_S, SAFETY, slowed
from wholestack.experiments.records import PLAN, SMALL_ROLES, SUGGESTIONS, SuggestionRecord, TrialRecord
from wholestack.experiments.scheduling import next_suggestion, unfinished
from wholestack.experiments.settings import cost_flops
from wholestack.experiments.stage import Stage, training_seconds, undisturbed_s
from wholestack.experiments.training import TrainingRuns
from wholestack.finding import Status, finding
from wholestack.search.models import Memory

POLL_S = 0.25
SPARE = 1.15
"""Rung and large run may take this much longer than expected before they would overrun."""
FEWEST_FOR_PACE = 8
"""Trials before the machine's pace is judged by them."""
CRASHES_IN_A_ROW = 4
"""So many crashed trials at the start, and none that ended well, end the rehearsal."""
ENOUGH_TRIALS = 48
"""With fewer trials a search that has no time left makes the runs that are ahead smaller, if the machine is slow."""
SCORING_S = 1.0
"""Wall seconds of a trial beyond its training: start, load, score."""


def run(stage: Stage, runs: TrainingRuns) -> str:
    """Suggest, train, acknowledge, until the time for rung, large run and landing is all that is left."""
    memory = Memory()
    waiting = [each for each in unfinished(stage.suggestions, stage.trials) if each.role in ("search", "random")]
    more = True
    while True:
        while more and len(runs.running) < stage.recipe.workers:
            more = _start_next(stage, runs, waiting, memory)
        if not runs.running:
            break
        for trial in runs.collect(POLL_S):
            acknowledge(stage, trial)
            more = True  # a shorter trial may fit where the last suggestion did not
        _tell(stage, runs)
    trials = [trial for trial in stage.trials if trial.role == "search"]
    failed = sum(trial.outcome != "ok" for trial in trials)
    slower = stage.plan.slowdown
    note = f"; costs divided by {slower:.1f}: the machine is slower than the preflight measured" if slower > 1 else ""
    front = len(front_trials(stage.recipe, trials))
    return f"{len(trials)} trials, {failed} failed, {front} on the Pareto front{note}"


def acknowledge(stage: Stage, trial: TrialRecord) -> None:
    """Put a trial on the disk; a run that did not end well is a Finding too.

    In a search divergence, memory and time are outcomes that it learns from (ok); a crash is a warning, and a long run
    that did not end well a failure.

    Raises:
        EngineError: the first trials all crashed: it is not their settings.
    """
    stage.acknowledge(trial)
    if trial.outcome == "ok":
        return
    status, cause, remedy = _judge_failure(trial)
    stage.run.report(
        finding(
            trial.name,
            "trial.outcome",
            status,
            evidence=[trial.detail or trial.outcome, f"settings: {trial.params}"],
            part=trial.outcome,
            at=trial.ended_at,
            cause=cause,
            remedy=remedy,
            owner="" if status == "ok" else "job owner",
        )
    )
    trials = stage.trials
    if len(trials) == CRASHES_IN_A_ROW and all(each.outcome == "failed" for each in trials):
        raise EngineError(
            f"the first {CRASHES_IN_A_ROW} trials all crashed, the last with: {trial.detail}",
            remedy=f"see {stage.run.path / 'jobs' / trial.name / 'stderr.log'}, then start a new run",
        )


def _judge_failure(trial: TrialRecord) -> tuple[Status, str, str]:
    """Status, cause and remedy of a run that did not end well."""
    log = f"see jobs/{trial.name}/stderr.log"
    if trial.role not in SMALL_ROLES:
        return "fail", f"the {trial.role} run ended as {trial.outcome}", log
    if trial.outcome == "abandoned":
        return "unknown", "ended from outside, three times", "find out who ends processes on this host"
    if trial.outcome == "failed":
        return "warn", "the worker crashed", log
    return "ok", "", ""


def seconds_of_the_rest(stage: Stage, *, ladder_left: float = 1.0) -> float:
    """Expected wall seconds of ladder (or the share of it that is left), rung, large run and landing.

    As planned from the preflight's rates, stretched when the trials show that the machine has become slower since.
    """
    plan = stage.plan
    planned = ladder_left * plan.seconds["ladder"] + plan.seconds["rung"] + plan.seconds["large"]
    return planned * _slowdown(stage) + RESERVE_S


def _slowdown(stage: Stage) -> float:
    """How much slower than the plan assumes the trials ran: 1 or more.

    Read off the costliest third of the trials, which are most like the runs ahead, and off the queue for a processor.
    """
    plan = stage.plan
    trials = [trial for trial in stage.trials if trial.outcome == "ok"]
    if len(trials) < FEWEST_FOR_PACE:
        return 1.0
    costliest = sorted(trials, key=lambda trial: trial.cost_flops)[-(len(trials) // 3) :]
    times_assumed = statistics.median(
        trial.train_seconds * SAFETY * plan.rate_flops_s / trial.cost_flops for trial in costliest
    )
    recent = trials[-FEWEST_FOR_PACE:]
    undisturbed = sum(map(undisturbed_s, recent)) / sum(trial.train_seconds for trial in recent)
    return max(1.0, times_assumed, (1 - plan.queued_share) / undisturbed)


def _start_next(stage: Stage, runs: TrainingRuns, waiting: list[SuggestionRecord], memory: Memory) -> bool:
    """Start one trial: a left-over of an interrupted session first. ``False`` when no more may be started."""
    if waiting:
        left_over = waiting.pop(0)
        runs.start(left_over, expected_s=_wall_s(stage, left_over))
        return True
    suggestion = next_suggestion(
        stage.recipe, stage.plan, stage.suggestions, stage.trials, seed=stage.seed, memory=memory
    )
    if suggestion is None:
        return False
    if not _fits(stage, suggestion):
        # Asked again under the smaller bound: this one was not put on the disk, so nothing depends on it.
        return make_smaller(stage) and _start_next(stage, runs, waiting, memory)
    stage.run.append(SUGGESTIONS, suggestion)
    runs.start(suggestion, expected_s=_wall_s(stage, suggestion))
    return True


def make_smaller(stage: Stage) -> bool:
    """Divide the costs that are still ahead by the machine's slowdown, rather than end a search that hardly began."""
    recipe, plan, trials = stage.recipe, stage.plan, stage.trials
    done = [trial for trial in trials if trial.role == "search" and trial.outcome == "ok"]
    if recipe.max_trial_cost_flops is not None or len(done) >= ENOUGH_TRIALS:
        return False
    centre = cost_flops(recipe, {spec.name: spec.centre for spec in recipe.dimensions})
    least = max([centre, *(suggestion.cost_flops for suggestion in stage.suggestions)])
    smaller = slowed(plan, _slowdown(stage), least_flops=least)
    if smaller is None:
        return False
    stage.run.write(PLAN, smaller)
    return True


def _fits(stage: Stage, suggestion: SuggestionRecord) -> bool:
    """Whether a trial would end before the time for the rest begins."""
    return _wall_s(stage, suggestion) + SPARE * seconds_of_the_rest(stage) < stage.clock.left_s


def _wall_s(stage: Stage, suggestion: SuggestionRecord) -> float:
    return training_seconds(stage, suggestion.role, suggestion.params) + SCORING_S


def _tell(stage: Stage, runs: TrainingRuns) -> None:
    trials = [trial for trial in stage.trials if trial.role in ("search", "random")]
    search_left_s = max(0.0, stage.clock.left_s - SPARE * seconds_of_the_rest(stage))
    recent = [trial.seconds for trial in trials[-20:]]
    mean_s = sum(recent) / len(recent) if recent else 5.0
    total = len(trials) + len(runs.running) + int(search_left_s * stage.recipe.workers / max(mean_s, 0.2))
    if stage.recipe.max_trials is not None:
        total = max(len(trials), stage.recipe.max_trials)
    names = ", ".join(sorted(itertools.islice((each.suggestion.name for each in runs.running.values()), 4)))
    stage.tell(
        "search", f"training {names}", done=len(trials), total=total, left_s=search_left_s + seconds_of_the_rest(stage)
    )
