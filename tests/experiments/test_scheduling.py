"""Scheduling: a pure function of the journals; what is unfinished comes back; the baseline gets its share."""

from pathlib import Path

import pytest

from tests.experiments.tiny import probed, tiny_recipe
from wholestack.experiments.planning import LARGE, LARGE_ALONE, SMALL, make_plan
from wholestack.experiments.records import SuggestionRecord, TrialRecord
from wholestack.experiments.scheduling import next_suggestion, search_trial, unfinished
from wholestack.search.models import Memory


def trained(suggestion: SuggestionRecord, loss: float, outcome: str = "ok") -> TrialRecord:
    return TrialRecord(
        name=suggestion.name, role=suggestion.role, number=suggestion.number, params=suggestion.params, seed=0,
        outcome=outcome, cost_flops=suggestion.cost_flops, parameters=1, tokens=1, seconds=1.0, train_seconds=1.0,
        cpu_seconds=1.0, peak_bytes=1, threads=1, metrics={"answer_bpb": loss} if outcome == "ok" else {},
        started_at=0.0, ended_at=1.0,
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def setting(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    plan = make_plan(recipe, budget_s=100, used_s=0, probe=probed({SMALL: 1e10, LARGE_ALONE: 1e10, LARGE: 1e10}))
    return recipe, plan


def loss_of(suggestion: SuggestionRecord) -> float:
    return 1.0 + (suggestion.cost_flops / 1e8) ** -0.2 + abs(float(suggestion.params["lr"]) - 0.01)


def unroll(recipe, plan, count: int, *, memory: Memory | None) -> tuple[list, list]:
    suggestions: list[SuggestionRecord] = []
    trials: list[TrialRecord] = []
    for _ in range(count):
        made = next_suggestion(recipe, plan, suggestions, trials, seed=5, memory=memory)
        assert made is not None
        suggestions.append(made)
        # One stays pending, so suggestions are made beside a running trial.
        if len(suggestions) > 1:
            trials.append(trained(suggestions[-2], loss_of(suggestions[-2])))
    return suggestions, trials


def test_from_the_same_journals_the_next_suggestion_is_the_same_to_the_last_bit(setting) -> None:
    recipe, plan = setting
    suggestions, trials = unroll(recipe, plan, 15, memory=Memory())
    for cut in (0, 1, 4, 9, 14):
        again = next_suggestion(recipe, plan, suggestions[:cut], trials[: max(0, cut - 1)], seed=5)
        assert again == suggestions[cut]


def test_a_suggestion_says_after_how_many_trials_it_was_made_unless_it_is_random(setting) -> None:
    recipe, plan = setting
    suggestions, _ = unroll(recipe, plan, 8, memory=None)
    assert {each.after for each in suggestions if each.role == "random"} <= {None}
    searched = [(place, each) for place, each in enumerate(suggestions) if each.role == "search"]
    assert [each.after for _, each in searched] == [max(0, place - 1) for place, _ in searched]


def test_from_other_trials_another_suggestion_follows(setting) -> None:
    """So a journal that is one trial short cannot pass for the right one."""
    recipe, plan = setting
    suggestions, trials = unroll(recipe, plan, 15, memory=None)
    index, made = next((i, each) for i, each in enumerate(suggestions) if i > 10 and each.role == "search")
    short = next_suggestion(recipe, plan, suggestions[:index], trials[: (made.after or 0) - 1], seed=5)
    assert short is not None
    assert short.params != made.params


def test_another_seed_gives_other_suggestions(setting) -> None:
    recipe, plan = setting
    made = {str(next_suggestion(recipe, plan, [], [], seed=seed)) for seed in range(4)}
    assert len(made) == 4


def test_no_suggestion_costs_more_than_the_plan_allows_and_names_are_unique(setting) -> None:
    recipe, plan = setting
    suggestions, _ = unroll(recipe, plan, 15, memory=Memory())
    assert max(each.cost_flops for each in suggestions) <= plan.max_trial_cost_flops
    assert len({each.name for each in suggestions}) == len(suggestions)
    assert len({each.seed for each in suggestions}) == len(suggestions)


def test_the_random_baseline_gets_about_its_share_and_the_count_of_trials_is_kept(setting) -> None:
    recipe, plan = setting
    suggestions, trials = [], []
    while (made := next_suggestion(recipe, plan, suggestions, trials, seed=1)) is not None:
        suggestions.append(made)
        trials.append(trained(made, loss_of(made)))
    searched = [each for each in suggestions if each.role == "search"]
    assert len(searched) == recipe.max_trials
    costs = {role: sum(s.cost_flops for s in suggestions if s.role == role) for role in ("random", "search")}
    assert costs["random"] >= recipe.random_share * sum(costs.values())
    assert costs["random"] - max(s.cost_flops for s in suggestions if s.role == "random") < recipe.random_share * sum(
        costs.values()
    )


def test_unfinished_is_what_was_suggested_and_not_acknowledged(setting) -> None:
    recipe, plan = setting
    suggestions, trials = unroll(recipe, plan, 6, memory=None)
    assert unfinished(suggestions, trials) == [suggestions[-1]]


def test_the_search_learns_from_failures_but_not_from_a_worker_that_was_ended(setting) -> None:
    recipe, plan = setting
    suggestion = next_suggestion(recipe, plan, [], [], seed=1)
    assert suggestion is not None
    kinds = {outcome: search_trial(trained(suggestion, 1.0, outcome), "answer_bpb").status
             for outcome in ("ok", "diverged", "out_of_memory", "timeout", "failed", "abandoned")}  # fmt: skip
    assert kinds.pop("ok") == "ok"
    assert kinds.pop("abandoned") == "abandoned"
    assert set(kinds.values()) == {"failed"}
