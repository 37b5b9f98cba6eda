"""Recipes: what is wrong is named by key and value, in a built-in one, in Python, and in a user's file."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.experiments.recipe import DimensionSpec, Recipe, SourceSpec
from wholestack.experiments.scheduling import search_space
from wholestack.recipes.gpu import gpu
from wholestack.recipes.laptop import laptop
from wholestack.recipes.load import load
from wholestack.record import from_json, to_json

GOOD = """
from dataclasses import replace
from wholestack.recipes.laptop import laptop

def recipe():
    return replace(laptop(), name="mine", workers=3)
"""


@pytest.mark.parametrize("make", [laptop, gpu])
def test_built_in_recipes_are_valid_and_come_back_from_json(make) -> None:
    recipe = make()
    assert from_json(Recipe, to_json(recipe)) == recipe
    assert len(search_space(recipe)) >= 8
    assert load(recipe.name) == recipe


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"vocab_size": 255}, "vocab_size is 255"),
        ({"vocab_size": "x"}, "vocab_size is 'x', must be a number"),
        ({"level": True}, "level is True, must be a number"),
        ({"target_multiple": 8.0}, "target_multiple is 8.0"),
        ({"rung_multiple": 16.0}, "rung_multiple 16.0"),
        ({"workers": 0}, "workers is 0"),
        ({"level": 1.0}, "level is 1.0"),
        ({"sources": ()}, "no sources"),
        ({"sources": (SourceSpec(kind="python_code", name="python-code"),) * 2}, "given twice"),
        ({"prose_source": "poems"}, "prose_source is 'poems'"),
        ({"large_overrides": {"lrr": 0.1}}, "'lrr'"),
        ({"dimensions": laptop().dimensions[1:]}, "layers"),
        ({"dimensions": (*laptop().dimensions, laptop().dimensions[0])}, "'layers' is given twice"),
        (
            {"dimensions": (*laptop().dimensions, DimensionSpec(name="momentum", kind="logit", centre=0.9))},
            "unknown setting 'momentum'",
        ),
    ],
)
def test_a_wrong_value_is_named(change: dict, named: str) -> None:
    with pytest.raises(InputError, match=r"laptop") as caught:
        replace(laptop(), **change)
    assert named in str(caught.value)


def searched(name: str, **changes: object) -> tuple[DimensionSpec, ...]:
    """The laptop's dimensions, one of them otherwise."""
    return tuple(replace(each, **changes) if each.name == name else each for each in laptop().dimensions)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"dimensions": searched("width", rounding=8)}, "width may be 8, which is no multiple of head_size 16"),
        ({"dimensions": searched("width", rounding=24)}, "width may be 24, which is no multiple of head_size 16"),
        ({"dimensions": searched("width", rounding=None)}, "width is a count and has no rounding"),
        ({"dimensions": searched("layers", rounding=None)}, "layers is a count and has no rounding"),
        ({"dimensions": searched("batch_size", rounding=None)}, "batch_size is a count and has no rounding"),
        ({"dimensions": searched("layers", kind="linear", low=None)}, "layers is a count and may fall below 1"),
        ({"dimensions": searched("layers", kind="linear", low=0)}, "layers is a count and may fall below 1"),
        ({"dimensions": searched("head_size", choices=(8, 16, 24))}, "which is no multiple of head_size 24"),
        ({"dimensions": searched("head_size", choices=(1, 16))}, "head_size 1 is odd"),
        ({"dimensions": searched("head_size", choices=("small", 16))}, "head_size is 'small'"),
        (
            {"dimensions": searched("head_size", kind="log", choices=(), low=8, high=16, rounding=8)},
            "head_size is log, but only a few sizes divide the width",
        ),
        ({"large_overrides": {"width": 100}}, "width may be 100, which is no multiple of head_size 8"),
        ({"large_overrides": {"width": 104}}, "width may be 104, which is no multiple of head_size 16"),
        ({"large_overrides": {"head_size": 12}}, "which is no multiple of head_size 12"),
        ({"large_overrides": {"layers": 2.5}}, "layers is 2.5, must be a whole number"),
        ({"large_overrides": {"layers": math.inf}}, "layers is inf, must be a whole number"),
        ({"large_overrides": {"batch_size": 0}}, "batch_size is 0, must be a whole number of at least 1"),
    ],
)
def test_settings_that_would_make_no_model_somewhere_in_the_space_are_refused_by_name(change: dict, named: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(laptop(), **change)
    assert named in str(caught.value)


def test_head_size_and_width_of_the_large_run_may_be_overridden_together() -> None:
    recipe = replace(laptop(), large_overrides={"width": 96, "head_size": 24, "layers": 3})
    assert recipe.large_overrides == {"width": 96, "head_size": 24, "layers": 3}


def test_a_fixed_width_is_held_against_every_head_size() -> None:
    others = tuple(each for each in laptop().dimensions if each.name != "width")
    assert replace(laptop(), dimensions=others, fixed={"width": 64}).fixed == {"width": 64}
    with pytest.raises(InputError, match="width may be 72, which is no multiple of head_size 16"):
        replace(laptop(), dimensions=others, fixed={"width": 72})


def test_a_crossed_bound_is_named() -> None:
    crossed = DimensionSpec(name="lr", kind="log", centre=1e-3, low=1e-2, high=1e-4)
    others = tuple(each for each in laptop().dimensions if each.name != "lr")
    with pytest.raises(InputError, match="'lr'"):
        search_space(replace(laptop(), dimensions=(*others, crossed)))


def test_a_users_file_is_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD)
    recipe = load(str(tmp_path / "mine.py"))
    assert (recipe.name, recipe.workers) == ("mine", 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("workers=3", "wrokers=3"), r"mine\.py:6: .*wrokers.*"),
        (GOOD.replace("def recipe", "def receipt"), r"no function recipe\(\)"),
        (GOOD.replace("return replace", "return str"), r"mine\.py:6"),
        (GOOD.replace('return replace(laptop(), name="mine", workers=3)', "return 3"), "returned int"),
        (GOOD.replace("workers=3", "workers=0"), "workers is 0"),
        ("def recipe(:\n", r"mine\.py:1: SyntaxError"),
        ("raise SystemExit(3)", r"mine\.py:1: SystemExit"),
    ],
)
def test_a_users_file_that_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=said):
        load(str(tmp_path / "mine.py"))


def test_a_misspelt_key_of_a_recipe_gets_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from wholestack.experiments.recipe import Recipe\ndef recipe():\n    return Recipe(nmae='x', sources=())\n"
    )
    with pytest.raises(InputError, match="did you mean 'name'"):
        load(str(tmp_path / "mine.py"))


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean 'laptop'"):
        load("laptp")
