"""Which trial comes next: a pure function of what was suggested and what was acknowledged.

So for the same journals a resumed rehearsal suggests, to the last bit, what an unbroken one would have.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wholestack.experiments.recipe import DimensionSpec, Recipe
from wholestack.experiments.records import Params, Plan, Role, SuggestionRecord, TrialRecord
from wholestack.experiments.settings import cost_flops
from wholestack.record import digest
from wholestack.search import Budget, Categorical, Linear, Log, Logit, Space, Suggestion, Trial, suggest
from wholestack.search.dimensions import Dimension
from wholestack.search.models import Memory

RANDOM_RADIUS = 0.6
"""Width of the random baseline round the centre, in search steps; the cost bound does the rest."""
RANDOM_TRIES = 1000


def search_space(recipe: Recipe) -> Space:
    """The dimensions of a recipe as the search wants them."""
    return Space([_dimension(spec) for spec in recipe.dimensions])


def next_suggestion(
    recipe: Recipe,
    plan: Plan,
    suggestions: Sequence[SuggestionRecord],
    trials: Sequence[TrialRecord],
    *,
    seed: int,
    memory: Memory | None = None,
) -> SuggestionRecord | None:
    """What to train next.

    Args:
        recipe: The space and its bounds.
        plan: Largest cost of a trial.
        suggestions: All that were ever made, oldest first.
        trials: All that were acknowledged, in order of acknowledgement.
        seed: The rehearsal's seed.
        memory: Keeps fits between calls; never changes the result.

    Returns:
        The next suggestion, or ``None`` when the recipe's ``max_trials`` are all suggested.
    """
    spent = {role: math.fsum(s.cost_flops for s in suggestions if s.role == role) for role in ("random", "search")}
    searched = sum(suggestion.role == "search" for suggestion in suggestions)
    wants_random = spent["random"] < recipe.random_share * (spent["random"] + spent["search"])
    if wants_random:
        return _random(recipe, plan, suggestions, seed)
    if recipe.max_trials is not None and searched >= recipe.max_trials:
        return None
    made = _searched(recipe, plan, suggestions, trials, seed=seed, memory=memory)
    return replace(made, after=len(trials))


def unfinished(suggestions: Sequence[SuggestionRecord], trials: Sequence[TrialRecord]) -> list[SuggestionRecord]:
    """Suggested but not acknowledged, oldest first: to be trained again after a kill."""
    done = {trial.name for trial in trials}
    return [suggestion for suggestion in suggestions if suggestion.name not in done]


def trial_seed(seed: int, role: Role, number: int) -> int:
    """Seed of one training run."""
    return int(digest(seed, role, number), 16) % (1 << 31)


def _searched(
    recipe: Recipe,
    plan: Plan,
    suggestions: Sequence[SuggestionRecord],
    trials: Sequence[TrialRecord],
    *,
    seed: int,
    memory: Memory | None,
) -> SuggestionRecord:
    asked = [suggestion for suggestion in suggestions if suggestion.role == "search"]
    number = len(asked)
    told = [search_trial(trial, recipe.metric) for trial in trials if trial.role == "search"]
    proposal = suggest(
        search_space(recipe),
        told,
        [Suggestion(number=each.number, params=each.params, origin="given") for each in unfinished(asked, trials)],
        Budget(max_cost=plan.max_trial_cost_flops),
        np.random.default_rng([seed, 1, number]),
        cost=lambda params: cost_flops(recipe, params),
        number=number,
        memory=memory,
    )
    return suggestion_record(
        recipe, "search", number, proposal.params, seed=seed, origin=proposal.origin, note=proposal.note
    )


def _random(recipe: Recipe, plan: Plan, suggestions: Sequence[SuggestionRecord], seed: int) -> SuggestionRecord:
    """One wide Gaussian round the centre, drawn again while it costs too much."""
    number = sum(suggestion.role == "random" for suggestion in suggestions)
    space = search_space(recipe)
    rng = np.random.default_rng([seed, 2, number])
    centre = space.encode([space.centre()])
    for _ in range(RANDOM_TRIES):
        moved = space.move(centre, np.array([RANDOM_RADIUS]), np.array([1.0]), rng)
        params = space.decode(moved[0])
        if cost_flops(recipe, params) <= plan.max_trial_cost_flops:
            return suggestion_record(recipe, "random", number, params, seed=seed, origin="random")
    return suggestion_record(
        recipe, "random", number, space.centre(), seed=seed, origin="centre", note="no draw was cheap enough"
    )


def suggestion_record(
    recipe: Recipe, role: Role, number: int, params: Params, *, seed: int, origin: str, note: str = ""
) -> SuggestionRecord:
    """What is about to be trained, with its name, seed and cost."""
    return SuggestionRecord(
        name=f"{role}-{number:04d}",
        role=role,
        number=number,
        params=params,
        seed=trial_seed(seed, role, number),
        cost_flops=cost_flops(recipe, params),
        origin=origin,
        note=note,
    )


def search_trial(trial: TrialRecord, metric: str) -> Trial:
    """A trial as the search learns it; one whose worker was ended from outside teaches nothing."""
    if trial.outcome == "ok":
        return Trial(
            number=trial.number,
            params=trial.params,
            status="ok",
            output=trial.metrics[metric],
            cost=trial.cost_flops,
        )
    return Trial(
        number=trial.number,
        params=trial.params,
        status="abandoned" if trial.outcome == "abandoned" else "failed",
        kind=trial.outcome,
        cost=trial.cost_flops,
    )


def _dimension(spec: DimensionSpec) -> Dimension:
    if spec.kind == "categorical":
        return Categorical(spec.name, choices=spec.choices, centre=spec.centre)
    kind = {"linear": Linear, "log": Log, "logit": Logit}[spec.kind]
    return kind(
        spec.name,
        centre=float(spec.centre),
        scale=spec.scale,
        low=spec.low,
        high=spec.high,
        integer=spec.rounding is not None,
        rounding=spec.rounding or 1,
    )
