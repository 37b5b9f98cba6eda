"""What a rehearsal would do: the speed of this machine is measured, nothing is written where the user looks."""

import tempfile
from pathlib import Path

from wholestack.errors import InputError
from wholestack.experiments.phases.preflight import run_probe
from wholestack.experiments.planning import FIXED_S, make_plan
from wholestack.experiments.preflight import NO_DEVICE, NO_DEVICE_REMEDY
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import Plan
from wholestack.launch.local import LocalEngine


def dry_run(recipe: Recipe, *, budget_s: float) -> Plan:
    """Measure, then plan.

    Raises:
        EngineError: the probe did not end well.
        InputError: the budget is too short, or the device that the recipe asks for is not there.
    """
    with (
        tempfile.TemporaryDirectory(prefix="wholestack-") as name,
        LocalEngine(Path(name), preload=(), token="dry-run") as engine,
    ):
        probe = run_probe(engine, Path(name) / "preflight", recipe)
    if probe.device is None:
        raise InputError(f"recipe {recipe.name!r}: {NO_DEVICE} to measure", remedy=NO_DEVICE_REMEDY)
    return make_plan(recipe, budget_s=budget_s, used_s=FIXED_S["preflight"], probe=probe)


def describe_plan(recipe: Recipe, plan: Plan) -> str:
    """The plan as lines that a person can read."""
    lines = [
        f"recipe {recipe.name}: {len(recipe.dimensions)} hyperparameters, {plan.workers} trials at a time",
        f"speed: {plan.rate_flops_s:.2e} training FLOP/s a thread, {plan.speed_up:.2f} times that for the large run",
        f"a trial costs at most {plan.max_trial_cost_flops:.2e} FLOPs, the rung {plan.rung_cost_flops:.2e},"
        f" the large run {plan.target_cost_flops:.2e}",
        f"disk: about {plan.disk_bytes / 1e6:.0f} MB",
        "time:",
        *(f"  {phase:<11} {seconds:6.0f} s" for phase, seconds in plan.seconds.items()),
        f"  {'all':<11} {sum(plan.seconds.values()):6.0f} s of {plan.budget_s:.0f} s",
    ]
    return "\n".join(lines)
