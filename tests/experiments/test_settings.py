"""From settings to a run: every point of a recipe's space makes one, also far beyond the trials."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.test_scheduling import trained
from tests.experiments.tiny import tiny_recipe
from wholestack.errors import InputError
from wholestack.experiments.laws import scale_up
from wholestack.experiments.recipe import DimensionSpec, Recipe
from wholestack.experiments.records import Params
from wholestack.experiments.scheduling import search_space, suggestion_record
from wholestack.experiments.settings import TrainingPlan, check_ends, cost_flops, training_plan, with_cost
from wholestack.recipes.gpu import gpu
from wholestack.recipes.laptop import laptop

RECIPES = [laptop(), gpu()]


def ends(spec: DimensionSpec) -> list[float | int | str]:
    """The choices, or the bounds of search and extrapolation; without bounds the centre."""
    bounds = [each for each in (spec.low, spec.high, spec.extrapolated_high) if each is not None]
    return list(spec.choices) or bounds or [spec.centre]


def check(recipe: Recipe, params: Params) -> TrainingPlan:
    """It makes a run whose model is the settings', not something rounded on the way."""
    plan = training_plan(recipe, params)
    model = plan.model
    assert (model.layers, model.width, model.head_size) == (params["layers"], params["width"], params["head_size"])
    assert model.heads * model.head_size == model.width
    assert model.heads % model.kv_heads == 0
    assert plan.tokens == plan.optimizer.steps * plan.optimizer.batch_size * recipe.context
    assert plan.optimizer.batch_size == params["batch_size"]
    assert sum(plan.mixture.values()) == pytest.approx(1.0)
    assert plan.cost_flops > 0
    return plan


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_corner_of_the_space_makes_a_run(recipe: Recipe) -> None:
    names = [spec.name for spec in recipe.dimensions]
    corners = list(itertools.product(*(ends(spec) for spec in recipe.dimensions)))
    assert len(corners) == 2 * 3 * 3 * 3 * 2**4
    for corner in corners:
        check(recipe, dict(zip(names, corner, strict=True)))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_width_up_to_the_largest_takes_every_head_size(recipe: Recipe) -> None:
    width = next(spec for spec in recipe.dimensions if spec.name == "width")
    centre = {spec.name: spec.centre for spec in recipe.dimensions}
    for size in range(int(width.low or 0), int(width.extrapolated_high or 0) + 1, width.rounding or 1):
        for head_size in (8, 16):
            check(recipe, {**centre, "width": size, "head_size": head_size})


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
@given(coordinates=st.lists(st.floats(-50, 50), min_size=9, max_size=9))
def test_wherever_the_search_steps_there_is_a_run(recipe: Recipe, coordinates: list[float]) -> None:
    space = search_space(recipe)
    check(recipe, space.decode(coordinates))  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
@given(coordinates=st.lists(st.floats(-3, 3), min_size=9, max_size=9), multiple=st.floats(1, 1000))
def test_scaled_up_any_trial_makes_a_run_of_about_the_cost_that_was_asked_for(
    recipe: Recipe, coordinates: list[float], multiple: float
) -> None:
    params = search_space(recipe).decode(coordinates)  # type: ignore[arg-type]
    suggestion = suggestion_record(recipe, "search", 0, params, seed=0, origin="test")
    target = multiple * suggestion.cost_flops
    scaled = scale_up(recipe, trained(suggestion, 2.0), target)
    plan = check(recipe, scaled)
    assert plan.cost_flops == pytest.approx(target, abs=plan.cost_flops / plan.optimizer.steps)


def test_a_cost_is_met_to_within_one_step() -> None:
    recipe = laptop()
    centre = {spec.name: spec.centre for spec in recipe.dimensions}
    for target in (1e10, 3.3e11, 1e14):
        params = with_cost(recipe, centre, target)
        one_step = cost_flops(recipe, {**params, "tokens": recipe.context * 4})
        assert abs(cost_flops(recipe, params) - target) <= one_step


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("warmup_fraction", {"kind": "linear", "low": 0.0, "high": 1.5}, "warmup_fraction is 1.5"),
        ("lr", {"kind": "linear", "low": 0.0}, "lr is 0.0"),
        ("weight_decay", {"kind": "linear", "low": -1.0}, "weight_decay is -1.0"),
    ],
)
def test_a_bound_that_makes_no_run_is_refused_before_the_search(
    tmp_path: Path, name: str, changes: dict, says: str
) -> None:
    recipe = tiny_recipe(tmp_path)
    check_ends(recipe)
    dimensions = tuple(replace(each, **changes) if each.name == name else each for each in recipe.dimensions)
    with pytest.raises(InputError, match=says):
        check_ends(replace(recipe, dimensions=dimensions))
