"""The default: a rehearsal for two CPU cores in eight minutes, on the text that every Python installation has."""

from wholestack.experiments.recipe import DimensionSpec, Recipe, SourceSpec


def laptop() -> Recipe:
    """Nine hyperparameters over two decades of cost; the ranges and centres were measured (docs/decisions/0003)."""
    return Recipe(
        name="laptop",
        sources=(
            SourceSpec(kind="python_code", name="python-code"),
            SourceSpec(kind="python_prose", name="python-prose"),
        ),
        prose_source="python-prose",
        vocab_size=512,
        context=128,
        dimensions=(
            DimensionSpec(name="layers", kind="log", centre=2, scale=0.2, low=1, high=8, rounding=1),
            DimensionSpec(name="width", kind="log", centre=96, scale=0.25, low=32, high=512, rounding=32),
            DimensionSpec(name="head_size", kind="categorical", centre=16, choices=(16, 32)),
            DimensionSpec(name="tokens", kind="log", centre=150_000, scale=0.35, low=20_000),
            DimensionSpec(name="batch_size", kind="log", centre=8, scale=0.25, low=1, high=256, rounding=1),
            DimensionSpec(name="lr", kind="log", centre=5e-3, scale=0.3, low=1e-5, high=0.3),
            DimensionSpec(name="weight_decay", kind="log", centre=0.1, scale=0.5, low=1e-4, high=10.0),
            DimensionSpec(name="warmup_fraction", kind="logit", centre=0.1, scale=0.5, low=0.005, high=0.6),
            DimensionSpec(name="prose_weight", kind="logit", centre=0.3, scale=0.5, low=0.02, high=0.98),
        ),
    )
