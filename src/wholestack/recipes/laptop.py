"""The default: a rehearsal for two CPU cores in eight minutes, on the text that every Python installation has."""

from wholestack.experiments.recipe import DimensionSpec, Recipe, SourceSpec

SIZES = "Hoffmann et al. 2022, table 2: size and tokens grow alike; size shared by depth and width at one aspect"
BATCH = "Step Law (arXiv:2503.04715): the best batch depends on tokens"
LR = "the model scales the learning rate with width; what is left falls slowly with the horizon (Delphi 2026)"


def laptop() -> Recipe:
    """Nine hyperparameters over two decades of cost; the ranges and centres were measured (docs/decisions/0003)."""
    return Recipe(
        name="laptop",
        sources=(
            SourceSpec(kind="python_code", name="python-code"),
            SourceSpec(kind="python_prose", name="python-prose"),
        ),
        prose_source="python-prose",
        vocab_size=1024,
        context=64,
        query_heads_per_kv_head=8,
        large_threads=1,
        dimensions=(
            DimensionSpec(
                name="layers",
                kind="log",
                centre=2,
                scale=0.6,
                low=1,
                high=4,
                rounding=1,
                extrapolated_high=12,
                prior_slope=0.17,
                prior_slope_sd=0.04,
                prior_source=SIZES,
            ),
            DimensionSpec(
                name="width",
                kind="log",
                centre=32,
                scale=0.5,
                low=16,
                high=192,
                rounding=16,
                extrapolated_high=1024,
                prior_slope=0.2,
                prior_slope_sd=0.04,
                prior_source=SIZES,
            ),
            DimensionSpec(name="head_size", kind="categorical", centre=16, choices=(8, 16)),
            DimensionSpec(
                name="tokens",
                kind="log",
                centre=80_000,
                scale=0.8,
                low=15_000,
                prior_slope=0.48,
                prior_slope_sd=0.05,
                prior_source=SIZES,
            ),
            DimensionSpec(
                name="batch_size",
                kind="log",
                centre=4,
                scale=0.7,
                low=4,
                high=64,
                rounding=1,
                extrapolated_high=256,
                prior_slope=0.4,
                prior_slope_sd=0.2,
                prior_axis="tokens",
                prior_source=BATCH,
            ),
            DimensionSpec(
                name="lr",
                kind="log",
                centre=8e-3,
                scale=0.8,
                low=1e-4,
                high=0.1,
                prior_slope=-0.1,
                prior_slope_sd=0.1,
                prior_axis="tokens",
                prior_source=LR,
            ),
            DimensionSpec(name="weight_decay", kind="log", centre=0.1, scale=1.0, low=1e-3, high=2.0),
            DimensionSpec(name="warmup_fraction", kind="logit", centre=0.02, scale=0.8, low=0.002, high=0.5),
            DimensionSpec(name="prose_weight", kind="logit", centre=0.4, scale=0.8, low=0.02, high=0.98),
        ),
    )
