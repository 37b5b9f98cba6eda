"""From settings by name to what is trained: model, optimizer, mixture, and their cost. Pure; needs no torch."""

from dataclasses import dataclass

from wholestack.experiments.pace import Work
from wholestack.experiments.recipe import MIXTURE_SETTING, Recipe
from wholestack.experiments.records import Params
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.flops import parameter_count, training_flops
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan(Record):
    """One training run, fully determined but for its seed."""

    model: ModelConfig
    optimizer: OptimizerConfig
    mixture: dict[str, float]
    """Weight by source; they sum to one."""
    tokens: int
    """Tokens trained on: whole steps."""
    cost_flops: float
    parameters: int
    """Parameters without the embedding tables."""

    @property
    def work(self) -> Work:
        """What the pace model needs to know."""
        return Work(steps=self.optimizer.steps, layers=self.model.layers, cost_flops=self.cost_flops)


def training_plan(recipe: Recipe, params: Params) -> TrainingPlan:
    """Turn settings into a run; ``tokens`` is rounded to whole steps.

    Raises:
        InputError: the settings make no model.
    """
    values = {**(recipe.fixed or {}), **params}
    model = _model(recipe, values)
    batch_size = int(values["batch_size"])
    steps = max(1, round(float(values["tokens"]) / (batch_size * recipe.context)))
    tokens = steps * batch_size * recipe.context
    optimizer = OptimizerConfig(
        lr=float(values["lr"]),
        batch_size=batch_size,
        steps=steps,
        weight_decay=float(values["weight_decay"]),
        warmup_fraction=float(values["warmup_fraction"]),
        decay=recipe.decay,
    )
    return TrainingPlan(
        model=model,
        optimizer=optimizer,
        mixture=_mixture(recipe, values),
        tokens=tokens,
        cost_flops=training_flops(model, tokens),
        parameters=parameter_count(model).without_embeddings,
    )


def check_ends(recipe: Recipe) -> None:
    """Refuse a space one of whose bounds makes no run: better before the search than in the middle of it.

    Raises:
        InputError: names the setting.
    """
    centre: Params = {spec.name: spec.centre for spec in recipe.dimensions}
    for spec in recipe.dimensions:
        for value in (*spec.choices, spec.low, spec.high, spec.extrapolated_high):
            if value is not None:
                training_plan(recipe, {**centre, spec.name: value})


def cost_flops(recipe: Recipe, params: Params) -> float:
    """Training FLOPs of settings, a known function of them."""
    return training_plan(recipe, params).cost_flops


def with_cost(recipe: Recipe, params: Params, target_flops: float) -> Params:
    """The same settings with as many tokens as meet a cost, to within one step."""
    per_token = training_flops(_model(recipe, {**(recipe.fixed or {}), **params}), 1)
    return {**params, "tokens": float(target_flops / per_token)}


def _model(recipe: Recipe, values: Params) -> ModelConfig:
    width, head_size = int(values["width"]), int(values["head_size"])
    heads = width // head_size
    return ModelConfig(
        vocab_size=recipe.vocab_size,
        context=recipe.context,
        layers=int(values["layers"]),
        width=width,
        head_size=head_size,
        kv_heads=_kv_heads(heads, recipe.query_heads_per_kv_head),
        mlp_ratio=recipe.mlp_ratio,
        tied_embeddings=recipe.tied_embeddings,
    )


def _kv_heads(heads: int, shared: int) -> int:
    """The most key and value heads that divide the query heads and are each shared by at least ``shared`` of them."""
    return max((count for count in range(1, heads + 1) if heads % count == 0 and heads >= count * shared), default=1)


def _mixture(recipe: Recipe, values: Params) -> dict[str, float]:
    """The named source gets ``prose_weight``, the others share the rest alike."""
    names = [source.name for source in recipe.sources]
    if MIXTURE_SETTING not in values:
        return {name: 1 / len(names) for name in names}
    weight = float(values[MIXTURE_SETTING])
    others = [name for name in names if name != recipe.prose_source]
    if not others:
        return {recipe.prose_source: 1.0}
    return {recipe.prose_source: weight, **{name: (1 - weight) / len(others) for name in others}}
