"""Phase 5: the laws of the settings, a ladder of trials that take their settings from them, and the law of the metric.

A search tunes costly trials less well than cheap ones, for it can afford fewer of them, so its front flattens towards
the costly end and a law fitted to it bends where the truth does not. The ladder removes that: a few trials over a good
decade of cost take their settings from the very laws that rung and large run will take theirs from, and the law of the
metric is fitted to these, like to like (docs/decisions/0005).
"""

from wholestack.experiments.claims import TO_PREDICT
from wholestack.experiments.laws import fit_laws, ladder_settings
from wholestack.experiments.phases.search import POLL_S, acknowledge, seconds_of_the_rest
from wholestack.experiments.planning import ladder_costs
from wholestack.experiments.records import LAWS_SEARCH, SUGGESTIONS, Laws
from wholestack.experiments.scheduling import suggestion_record, unfinished
from wholestack.experiments.stage import Stage, training_seconds
from wholestack.experiments.training import TrainingRuns
from wholestack.finding import finding


def run(stage: Stage, runs: TrainingRuns) -> str:
    """Fit the laws of the settings, climb the ladder with them, fit everything again."""
    stage.tell("scaling", "fitting laws of the settings", left_s=seconds_of_the_rest(stage))
    _climb(stage, runs)
    stage.tell("scaling", "fitting laws", left_s=seconds_of_the_rest(stage, ladder_left=0.0))
    laws = fit_laws(stage.recipe, stage.plan, stage.trials, seed=stage.seed)
    stage.run.write(LAWS_SEARCH, laws)
    report_support(stage, laws)
    return describe(laws)


def describe(laws: Laws) -> str:
    """One line on what the laws say."""
    if laws.target is None:
        return f"no prediction: {laws.refusal}"
    return f"{laws.target.value:.3f} ({laws.target.low:.3f} to {laws.target.high:.3f}) at {laws.target.cost_flops:.2e}"


def report_support(stage: Stage, laws: Laws) -> None:
    """A Finding on whether the trials support a prediction."""
    if laws.supported:
        stage.run.report(
            finding("laws", "scaling.support", "ok", evidence=[describe(laws), *laws.warnings], at=stage.clock.now)
        )
        return
    stage.run.report(
        finding(
            "laws",
            "scaling.support",
            "unknown",
            evidence=[laws.refusal, *laws.warnings],
            at=stage.clock.now,
            cause="the trials cannot support a prediction",
            remedy=f"{TO_PREDICT}, or with a recipe of a wider range of costs",
            owner="job owner",
        )
    )


def _climb(stage: Stage, runs: TrainingRuns) -> None:
    """Train the ladder, costliest first so that two workers end at about the same time."""
    known = {each.number for each in stage.suggestions if each.role == "ladder"}
    costs = sorted(ladder_costs(stage.plan), reverse=True)
    for number, params in enumerate(ladder_settings(stage.recipe, stage.trials, costs, seed=stage.seed)):
        if number not in known:
            step = suggestion_record(stage.recipe, "ladder", number, params, seed=stage.seed, origin="laws")
            stage.run.append(SUGGESTIONS, step)
    waiting = [each for each in unfinished(stage.suggestions, stage.trials) if each.role == "ladder"]
    total = len(waiting)
    while waiting or runs.running:
        while waiting and len(runs.running) < stage.recipe.workers:
            step = waiting.pop(0)
            runs.start(step, expected_s=training_seconds(stage, step.role, step.params))
        for trial in runs.collect(POLL_S):
            acknowledge(stage, trial)
        done = total - len(waiting) - len(runs.running)
        left_s = seconds_of_the_rest(stage, ladder_left=1 - done / total)
        stage.tell("scaling", "climbing the ladder", done=done, total=total, left_s=left_s)
