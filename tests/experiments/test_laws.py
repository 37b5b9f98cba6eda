"""The laws say in plain words how a setting moves, also where the trials showed no slope and the prior one is kept."""

import math
import random
from dataclasses import replace

import pytest

from tests.experiments.tiny import probed, tiny_recipe
from wholestack.experiments.laws import fit_laws, form_in_words
from wholestack.experiments.planning import LARGE_ALONE, SMALL, make_plan
from wholestack.experiments.recipe import DimensionSpec
from wholestack.experiments.records import Laws, TrialRecord
from wholestack.experiments.settings import cost_flops

LR = DimensionSpec(name="lr", kind="log", centre=1e-2, prior_slope=-0.1, prior_axis="tokens")


@pytest.mark.parametrize(
    ("spec", "form", "words"),
    [
        (LR, "constant", "goes as tokens^-0.1: its prior slope, for the trials favour no other"),
        (replace(LR, prior_slope=None), "constant", "the same at every number of tokens"),
        (replace(LR, prior_slope=None, prior_axis="cost"), "constant", "the same at every cost"),
        (
            replace(LR, kind="logit", prior_axis="cost"),
            "constant",
            "its logit moves by -0.1 a unit of ln cost: its prior slope, for the trials favour no other",
        ),
        (LR, "straight", "straight line against ln tokens"),
        (LR, "bent", "bent line against ln tokens"),
    ],
)
def test_a_form_is_told_with_its_axis_and_the_slope_that_it_keeps(spec: DimensionSpec, form, words: str) -> None:
    assert form_in_words(spec, form) == words


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> Laws:
    """Laws of 24 made trials over two decades that never move weight decay, whose prior says that it moves."""
    recipe = tiny_recipe(tmp_path_factory.mktemp("text"))
    specs = [replace(each, prior_slope=0.17) if each.name == "weight_decay" else each for each in recipe.dimensions]
    recipe = replace(recipe, dimensions=tuple(specs))
    rng, trials = random.Random(0), []
    for number in range(24):
        params = {spec.name: spec.centre for spec in recipe.dimensions}
        params |= {"tokens": round(600 * 1.25**number), "width": rng.choice((16, 32, 48))}
        params |= {"lr": 1e-2 * math.exp(rng.gauss(0, 0.3))}
        cost = cost_flops(recipe, params)
        loss = 5 * cost**-0.03 * (1 + 0.02 * math.log(params["width"] / 32) ** 2)
        trials.append(
            TrialRecord(
                name=f"search-{number:04d}", role="search", number=number, params=params, seed=number, outcome="ok",
                cost_flops=cost, parameters=1000 * params["width"], tokens=params["tokens"], seconds=1.0,
                train_seconds=1.0, cpu_seconds=1.0, peak_bytes=1, threads=1, metrics={"answer_bpb": loss},
                started_at=1.0, ended_at=1.0,
            )
        )  # fmt: skip
    plan = make_plan(recipe, budget_s=600, used_s=0, probe=probed({SMALL: 1e8, LARGE_ALONE: 1e8}))
    return fit_laws(recipe, plan, trials, seed=0)


def test_a_setting_that_keeps_its_prior_slope_is_not_called_constant(laws: Laws) -> None:
    assert laws.supported, laws.refusal
    for law in laws.settings:
        assert "constant in" not in law.form
    decay = next(law for law in laws.settings if law.name == "weight_decay")
    assert decay.form == "goes as cost^0.17: its prior slope, for the trials favour no other"
    assert decay.why.startswith("regret in loss on costlier trials: prior slope ")
    layers = next(law for law in laws.settings if law.name == "layers")
    assert layers.form == "the same at every cost"
    assert layers.why.startswith("regret in loss on costlier trials: constant ")
