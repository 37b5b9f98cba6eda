"""A recipe: everything that a rehearsal is told, as one plain value that is stored with the run."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.record import Record

SourceKind = Literal["python_code", "python_prose", "folder", "jsonl"]
DimensionKind = Literal["linear", "log", "logit", "categorical"]
Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "bfloat16"]
Metric = Literal["answer_bpb", "answer_bpb_macro", "choice_nll_raw", "choice_nll_per_byte", "choice_nll_per_token"]

MODEL_SETTINGS = ("layers", "width", "head_size")
OPTIMIZER_SETTINGS = ("batch_size", "lr", "weight_decay", "warmup_fraction")
REQUIRED_SETTINGS = (*MODEL_SETTINGS, "tokens", *OPTIMIZER_SETTINGS)
WHOLE_SETTINGS = (*MODEL_SETTINGS, "batch_size")
MIXTURE_SETTING = "prose_weight"

SMALLEST_TARGET_MULTIPLE = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec(Record):
    """Where text comes from."""

    kind: SourceKind
    name: str
    """Name in the ledger and in the mixture."""
    path: str = ""
    """Folder or JSONL file; empty for the standard library."""
    licence: str = ""
    """SPDX identifier of a folder without a licence file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionSpec(Record):
    """One hyperparameter of the search, and how it may be carried to a larger cost."""

    name: str
    kind: DimensionKind
    centre: float | int | str
    """Where the search starts."""
    scale: float = 1.0
    """One search step in the transformed space: decades for ``log``, logits for ``logit``, units for ``linear``."""
    low: float | None = None
    high: float | None = None
    rounding: int | None = None
    """Integers only, multiples of this. Counts need one; that of ``width`` must be a multiple of every head size."""
    choices: tuple[int | str, ...] = ()
    """Values of a categorical dimension."""
    extrapolated_high: float | None = None
    """Upper bound for rung and large run; default: ``high``."""
    prior_slope: float | None = None
    """Slope of the law while the evidence is weak, transformed units per natural log of the axis; ``None``: flat."""
    prior_slope_sd: float | None = None
    """How far that slope may be off."""
    prior_axis: Literal["cost", "tokens"] = "cost"
    """What the law runs along."""
    prior_source: str = ""
    """Where that slope comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(Record):
    """What to rehearse.

    Raises:
        InputError: a value is out of its bounds; the message names the key.
    """

    SCHEMA: ClassVar[str] = "recipe/1"

    name: str
    sources: tuple[SourceSpec, ...]
    """Text to train on; documents are held out of each for the evaluation."""
    dimensions: tuple[DimensionSpec, ...]
    """What is searched."""
    vocab_size: int
    """Tokens of the byte-level BPE."""
    context: int
    """Sequence length in tokens."""
    prose_source: str = ""
    """The source whose share of the mixture the setting ``prose_weight`` is."""
    items: str = ""
    """Another item set to measure by, a sealed folder or a JSON Lines file; empty: continuation choices."""
    item_count: int = 400
    items_per_document: int = 8
    """At most so many items from one held-out document; the error bars take documents as clusters."""
    held_out_fraction: float = 0.08
    """Share of the bytes of each source that is held out for the evaluation."""
    metric: Metric = "answer_bpb"
    """The primary metric, to be minimised."""
    fixed: dict[str, float | int | str] | None = None
    """Settings that are not searched."""
    mlp_ratio: float = 8 / 3
    tied_embeddings: bool = False
    query_heads_per_kv_head: int = 2
    """Grouped-query attention: this many query heads share keys and values, where it divides."""
    decay: Literal["cosine", "linear", "wsd"] = "linear"
    workers: int = 2
    """Trials at a time, one thread each."""
    large_threads: int = 2
    """Threads of rung and large run."""
    target_multiple: float = SMALLEST_TARGET_MULTIPLE
    """Cost of the large run over the largest that a trial may cost."""
    rung_multiple: float = 4.0
    """Cost of the rung over the largest that a trial may cost."""
    max_trial_cost_flops: float | None = None
    """Largest cost of a trial; default: from the budget and the measured speed."""
    max_trials: int | None = None
    """At most so many trials of the search; default: as many as the budget holds."""
    random_share: float = 0.12
    """Share of the search's FLOPs that goes to the random baseline."""
    level: float = 0.9
    """Probability that the intervals are meant to cover."""
    resident_limit_bytes: int = 3 << 30
    """A worker with more resident memory is ended."""
    device: Device = "cpu"
    """On CUDA the model is compiled as well."""
    precision: Precision = "float32"
    large_overrides: dict[str, float | int | str] | None = None
    """Settings of the large run to be taken from here instead of from the laws."""

    def __post_init__(self) -> None:
        _check_bounds(self)
        _check_dimensions(self)
        _check_shapes(self)
        _check_sources(self)


def metric_unit(metric: Metric) -> str:
    """Unit of a primary metric."""
    return "bits per byte" if metric.startswith("answer_bpb") else "nats per item"


def with_workers(recipe: Recipe, workers: int) -> Recipe:
    """The same recipe with another number of trials at a time; checked like any recipe."""
    return replace(recipe, workers=workers)


def with_evaluation(recipe: Recipe, *, items: str, metric: Metric | None) -> Recipe:
    """The same recipe measured by other items, and by another metric if one is given; checked like any recipe."""
    return replace(recipe, items=items, metric=metric or recipe.metric)


def _check_bounds(recipe: Recipe) -> None:
    for key, low, high in (
        ("vocab_size", 256, 65535),
        ("context", 8, 1 << 20),
        ("item_count", 20, 1_000_000),
        ("workers", 1, 1024),
        ("large_threads", 1, 1024),
        ("target_multiple", SMALLEST_TARGET_MULTIPLE, 1e6),
        ("rung_multiple", 1.5, 1e6),
        ("random_share", 0.0, 0.9),
        ("items_per_document", 1, 1000),
        ("held_out_fraction", 0.001, 0.5),
        ("level", 0.5, 0.999),
        ("query_heads_per_kv_head", 1, 1024),
    ):
        value = getattr(recipe, key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"recipe {recipe.name!r}: {key} is {value!r}, must be a number in {low}..{high}")
        if not (math.isfinite(value) and low <= value <= high):
            raise InputError(f"recipe {recipe.name!r}: {key} is {value}, must lie in {low}..{high}")
    if recipe.rung_multiple >= recipe.target_multiple:
        raise InputError(
            f"recipe {recipe.name!r}: rung_multiple {recipe.rung_multiple} must be below "
            f"target_multiple {recipe.target_multiple}"
        )


def _check_dimensions(recipe: Recipe) -> None:
    names = [dimension.name for dimension in recipe.dimensions]
    given = [*names, *(recipe.fixed or {})]
    known = {*REQUIRED_SETTINGS, MIXTURE_SETTING}
    for name in given:
        if name not in known:
            raise InputError(f"recipe {recipe.name!r}: unknown setting {name!r}", remedy=f"known are: {sorted(known)}")
        if given.count(name) > 1:
            raise InputError(f"recipe {recipe.name!r}: setting {name!r} is given twice")
    missing = [name for name in REQUIRED_SETTINGS if name not in given]
    if missing:
        raise InputError(f"recipe {recipe.name!r}: no value for {missing}", remedy="search them or put them in `fixed`")
    if "tokens" not in names:
        raise InputError(f"recipe {recipe.name!r}: 'tokens' must be searched: the cost of a run is set by it")
    for name in recipe.large_overrides or {}:
        if name not in given:
            raise InputError(f"recipe {recipe.name!r}: large_overrides names {name!r}, which is no setting of it")


def _check_shapes(recipe: Recipe) -> None:
    """Whatever is searched or extrapolated makes a model: counts are whole, and every head size divides every width."""
    steps = {name: _steps(recipe, name) for name in WHOLE_SETTINGS}
    overrides = recipe.large_overrides or {}
    large = {name: (_whole(recipe, name, overrides[name]),) if name in overrides else steps[name] for name in steps}
    for sizes in (steps, large):
        for head_size, width in itertools.product(sizes["head_size"], sizes["width"]):
            if head_size % 2:
                raise InputError(f"recipe {recipe.name!r}: head_size {head_size} is odd: rotary positions turn pairs")
            if width % head_size:
                raise InputError(
                    f"recipe {recipe.name!r}: width may be {width}, which is no multiple of head_size {head_size}",
                    remedy="make every width (its rounding) a multiple of every head size",
                )


def _steps(recipe: Recipe, name: str) -> tuple[int, ...]:
    """Numbers of which every value of a whole setting is a multiple: its rounding, or each value that it may have."""
    spec = next((each for each in recipe.dimensions if each.name == name), None)
    if spec is None:
        return (_whole(recipe, name, (recipe.fixed or {})[name]),)
    if spec.kind == "categorical":
        return tuple(_whole(recipe, name, choice) for choice in spec.choices)
    if name == "head_size":
        raise InputError(
            f"recipe {recipe.name!r}: head_size is {spec.kind}, but only a few sizes divide the width",
            remedy="make it categorical, or put it in `fixed`",
        )
    if spec.rounding is None:
        raise InputError(f"recipe {recipe.name!r}: {name} is a count and has no rounding", remedy="give it rounding=1")
    if spec.kind == "linear" and (spec.low is None or spec.low < 1):
        raise InputError(f"recipe {recipe.name!r}: {name} is a count and may fall below 1", remedy="give it low=1")
    return (_whole(recipe, name, spec.rounding),)


def _whole(recipe: Recipe, name: str, value: float | int | str) -> int:
    if isinstance(value, str) or not math.isfinite(value) or value != int(value) or value < 1:
        raise InputError(f"recipe {recipe.name!r}: {name} is {value!r}, must be a whole number of at least 1")
    return int(value)


def _check_sources(recipe: Recipe) -> None:
    names = [source.name for source in recipe.sources]
    if not names:
        raise InputError(f"recipe {recipe.name!r}: no sources")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"recipe {recipe.name!r}: source {name!r} is given twice")
    mixed = any(dimension.name == MIXTURE_SETTING for dimension in recipe.dimensions)
    if mixed and recipe.prose_source not in names:
        raise InputError(
            f"recipe {recipe.name!r}: {MIXTURE_SETTING!r} is searched but prose_source is {recipe.prose_source!r}",
            remedy=f"name one of the sources: {names}",
        )
