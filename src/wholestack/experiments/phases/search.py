"""Phase 4: trials until only the time for the rest is left."""

import itertools

from wholestack.experiments.laws import front_trials, scale_up
from wholestack.experiments.planning import RESERVE_S, ladder_costs
from wholestack.experiments.records import SUGGESTIONS, SuggestionRecord, TrialRecord
from wholestack.experiments.scheduling import next_suggestion, unfinished
from wholestack.experiments.stage import Stage, expected_seconds, pace_of
from wholestack.experiments.training import TrainingRuns
from wholestack.finding import finding
from wholestack.search.models import Memory

POLL_S = 0.25
SPARE = 1.15
"""Rung and large run may take this much longer than expected before they would overrun."""
FEWEST_FOR_PACE = 6
"""Trials on the front before the rest is reckoned from them."""
BATCH_GROWTH = 0.2
"""Exponent of the batch against cost in that reckoning: 0.4 against tokens (Step Law), tokens as the root of cost."""
SCORING_S = 1.0
"""Wall seconds of a trial beyond its training: start, load, score."""


def run(stage: Stage, runs: TrainingRuns) -> str:
    """Suggest, train, acknowledge, until the time for rung, large run and landing is all that is left."""
    memory = Memory()
    waiting = [each for each in unfinished(stage.suggestions, stage.trials) if each.role in ("search", "random")]
    while True:
        more = True
        while more and len(runs.running) < stage.recipe.workers:
            more = _start_next(stage, runs, waiting, memory)
        if not runs.running:
            break
        for trial in runs.collect(POLL_S):
            acknowledge(stage, trial)
        _tell(stage, runs)
    trials = [trial for trial in stage.trials if trial.role == "search"]
    failed = sum(trial.outcome != "ok" for trial in trials)
    return f"{len(trials)} trials, {failed} failed, {len(front_trials(stage.recipe, trials))} on the Pareto front"


def acknowledge(stage: Stage, trial: TrialRecord) -> None:
    """Put a trial on the disk; a failure that says something is a Finding too."""
    stage.acknowledge(trial)
    if trial.outcome != "ok":
        stage.run.report(
            finding(
                trial.name,
                "trial.outcome",
                "unknown" if trial.outcome == "abandoned" else "ok",
                evidence=[trial.detail or trial.outcome, f"settings: {trial.params}"],
                part=trial.outcome,
                at=trial.ended_at,
                cause="ended from outside, three times" if trial.outcome == "abandoned" else "",
                remedy="find out who ends processes on this host" if trial.outcome == "abandoned" else "",
            )
        )


def seconds_of_the_rest(stage: Stage) -> float:
    """Expected wall seconds of ladder, rung, large run and landing.

    As planned while few trials have ended; then from their pace, for the best trial's settings scaled to each cost
    with a batch that grows with it: a batch that stayed small would cost more steps than the laws will ask for.
    """
    plan, trials = stage.plan, stage.trials
    front = front_trials(stage.recipe, trials)
    if len(front) < FEWEST_FOR_PACE:
        return plan.seconds["ladder"] + plan.seconds["rung"] + plan.seconds["large"] + RESERVE_S
    pace = pace_of(stage.recipe, plan, trials)

    def seconds(cost: float, threads: int) -> float:
        params = scale_up(stage.recipe, front[-1], cost)
        growth = max(1.0, cost / front[-1].cost_flops) ** BATCH_GROWTH
        params["batch_size"] = max(1, round(float(params["batch_size"]) * growth))
        return expected_seconds(stage.recipe, plan, pace, params, threads)

    ladder_s = sum(seconds(cost, 1) + SCORING_S for cost in ladder_costs(plan)) / plan.workers
    long_s = seconds(plan.rung_cost_flops, plan.large_threads) + seconds(plan.target_cost_flops, plan.large_threads)
    return ladder_s + long_s + RESERVE_S


def _start_next(stage: Stage, runs: TrainingRuns, waiting: list[SuggestionRecord], memory: Memory) -> bool:
    """Start one trial: a left-over of an interrupted session first. ``False`` when no more may be started."""
    if waiting:
        left_over = waiting.pop(0)
        runs.start(left_over, expected_s=_expected_s(stage, left_over))
        return True
    suggestion = next_suggestion(
        stage.recipe, stage.plan, stage.suggestions, stage.trials, seed=stage.seed, memory=memory
    )
    if suggestion is None or not _fits(stage, suggestion):
        return False
    stage.run.append(SUGGESTIONS, suggestion)
    runs.start(suggestion, expected_s=_expected_s(stage, suggestion))
    return True


def _fits(stage: Stage, suggestion: SuggestionRecord) -> bool:
    """Whether a trial would end before the time for the rest begins."""
    if stage.recipe.max_trials is not None:
        return True
    return _expected_s(stage, suggestion) + SPARE * seconds_of_the_rest(stage) < stage.clock.left_s


def _expected_s(stage: Stage, suggestion: SuggestionRecord) -> float:
    pace = pace_of(stage.recipe, stage.plan, stage.trials)
    return expected_seconds(stage.recipe, stage.plan, pace, suggestion.params, 1) + SCORING_S


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
