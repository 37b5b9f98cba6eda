"""How the budget is shared, from the measured speed of the machine. Pure.

The large run, the rung and a reserve for fits and report are fixed shares; the search takes what is left, and gives
way when they turn out slower than planned. All costs hang on one number, the largest cost of a trial.
"""

from dataclasses import replace

from wholestack.errors import InputError
from wholestack.experiments.preflight import Needs, ProbeResult
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import Plan
from wholestack.experiments.settings import cost_flops

SMALL = "small, 1 thread"
LARGE_ALONE = "large, 1 thread"
LARGE = "large, all threads"

LARGE_SHARE = 0.27
"""Of the time left after the preflight, planned for the large run."""
SAFETY = 0.65
"""Rates of probes are seldom met by whole runs: checkpoints, other shapes, a busy machine."""
WORTHWHILE_SPEED_UP = 1.1
"""Below it the threads of the large run wait for each other: on a crowded machine one is faster."""
WORTHWHILE_SHARE = 0.87
"""Costs are not made smaller by less than this."""
LADDER_STEPS, LADDER_FACTOR, LADDER_SEEDS = 5, 2.0, 2
LADDER_TOP = 0.98
"""Of the largest cost of a trial: whole steps may overshoot a little."""
FIXED_S = {"preflight": 8.0, "data": 20.0, "evaluation": 4.0, "scaling": 12.0, "landing": 10.0}
"""Planned wall seconds of the phases whose work does not grow with the budget."""
RESERVE_S = FIXED_S["scaling"] + FIXED_S["landing"]
SHORTEST_BUDGET_S = 90.0
BYTES_PER_TRIAL = 60_000
BYTES_OF_DATA = 90_000_000


SMALL_LAYERS, SMALL_WIDTH, SMALL_BATCH, HEAD_SIZE = 2, 64, 4, 16


def probe_shapes(recipe: Recipe, *, threads: int) -> dict[str, dict[str, int]]:
    """Shapes of the speed probe: a middling trial on one thread, a large run on one thread and on all it may have."""
    base = {"vocab_size": recipe.vocab_size, "context": recipe.context, "head_size": HEAD_SIZE}
    large = {**base, "layers": 3, "width": 96, "batch_size": 12}
    alone = {
        SMALL: {**base, "layers": SMALL_LAYERS, "width": SMALL_WIDTH, "batch_size": SMALL_BATCH, "threads": 1},
        LARGE_ALONE: {**large, "threads": 1},
    }
    return {**alone, LARGE: {**large, "threads": threads}} if threads > 1 else alone


def make_plan(recipe: Recipe, *, budget_s: float, used_s: float, probe: ProbeResult) -> Plan:
    """Share what is left of the budget.

    Args:
        recipe: What to rehearse; may fix the largest cost of a trial.
        budget_s: Wall time of the whole rehearsal.
        used_s: Used so far.
        probe: Training FLOP/s of the probes, and how much they were disturbed.

    Raises:
        InputError: the budget is too short for any search.
    """
    check_budget(recipe, budget_s)
    rates_flops_s = probe.rates_flops_s
    left_s = max(0.0, budget_s - used_s - FIXED_S["data"] - FIXED_S["evaluation"] - RESERVE_S)
    speed_up = rates_flops_s.get(LARGE, 0.0) / rates_flops_s[LARGE_ALONE]
    threads = recipe.large_threads if speed_up >= WORTHWHILE_SPEED_UP else 1
    rate_large = SAFETY * rates_flops_s[LARGE if threads > 1 else LARGE_ALONE]
    largest = recipe.max_trial_cost_flops or LARGE_SHARE * left_s * rate_large / recipe.target_multiple
    centre = cost_flops(recipe, {spec.name: spec.centre for spec in recipe.dimensions})
    if largest < centre:
        raise InputError(
            f"in {budget_s:.0f} s here a trial may cost {largest:.1e} FLOPs, the search starts at {centre:.1e}",
            remedy="give a longer --budget, or a recipe with a smaller centre",
        )
    large_s = largest * recipe.target_multiple / rate_large
    rung_s = largest * recipe.rung_multiple / rate_large
    ladder = largest * LADDER_SEEDS * sum(LADDER_FACTOR**-step for step in range(LADDER_STEPS))
    ladder_s = ladder / (SAFETY * rates_flops_s[SMALL]) / recipe.workers
    return Plan(
        budget_s=budget_s,
        rate_flops_s=rates_flops_s[SMALL],
        large_threads=threads,
        speed_up=speed_up if threads > 1 else 1.0,
        queued_share=probe.queued_share,
        max_trial_cost_flops=largest,
        rung_cost_flops=largest * recipe.rung_multiple,
        target_cost_flops=largest * recipe.target_multiple,
        workers=recipe.workers,
        seconds={
            **FIXED_S,
            "search": max(0.0, left_s - large_s - rung_s - ladder_s),
            "ladder": ladder_s,
            "rung": rung_s,
            "large": large_s,
        },
        disk_bytes=disk_bytes(recipe),
    )


def slowed(plan: Plan, slowdown: float, *, least_flops: float) -> Plan | None:
    """The plan with all costs made smaller for a machine that became slower, so that a search still fits.

    Args:
        plan: As it is, perhaps made smaller before.
        slowdown: How much slower than the preflight measured, 1 or more.
        least_flops: No trial's bound below this: what a trial cost already, or the search's centre.

    Returns:
        The smaller plan, or ``None`` where that would save too little to matter.
    """
    share = max(plan.slowdown / slowdown, least_flops / plan.max_trial_cost_flops)
    if share > WORTHWHILE_SHARE:
        return None
    costly = ("ladder", "rung", "large")
    return replace(
        plan,
        max_trial_cost_flops=share * plan.max_trial_cost_flops,
        rung_cost_flops=share * plan.rung_cost_flops,
        target_cost_flops=share * plan.target_cost_flops,
        seconds={name: seconds * (share if name in costly else 1.0) for name, seconds in plan.seconds.items()},
        slowdown=plan.slowdown / share,
    )


def check_budget(recipe: Recipe, budget_s: float) -> None:
    """Refuse a budget that no plan can be made from.

    Raises:
        InputError: it is too short.
    """
    if budget_s < SHORTEST_BUDGET_S and recipe.max_trial_cost_flops is None:
        raise InputError(
            f"a budget of {budget_s:.0f} s is too short to plan from", remedy=f"give at least {SHORTEST_BUDGET_S:.0f} s"
        )


def ladder_costs(plan: Plan) -> list[float]:
    """Costs of the ladder's trials: five steps by a factor of two below the largest, each with two seeds."""
    steps = (plan.max_trial_cost_flops * LADDER_TOP / LADDER_FACTOR**step for step in range(LADDER_STEPS))
    return [cost for cost in steps for _ in range(LADDER_SEEDS)]


def disk_bytes(recipe: Recipe) -> int:
    """Expected size of the run directory: data, trials, checkpoints, page."""
    return BYTES_OF_DATA + (recipe.max_trials or 200) * BYTES_PER_TRIAL


def needs(recipe: Recipe) -> Needs:
    """What the preflight asks of the machine: workers at once, with room for the supervisor and the parent."""
    return Needs(
        cores=max(recipe.workers, recipe.large_threads),
        memory_bytes=(recipe.workers + 2) * (400 << 20),
        disk_bytes=2 * disk_bytes(recipe),
    )
