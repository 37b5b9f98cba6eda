"""Phase 1: can this machine hold the run, does it multiply right, how fast does it train; then the plan."""

from pathlib import Path

from wholestack.errors import EngineError
from wholestack.experiments import claims
from wholestack.experiments.planning import make_plan, needs, probe_shapes
from wholestack.experiments.preflight import (
    NO_DEVICE,
    ProbeResult,
    judge_checksum,
    judge_device,
    judge_machine,
    read_machine,
    skipped_checks,
)
from wholestack.experiments.recipe import Device, Recipe
from wholestack.experiments.records import PLAN, RESULT
from wholestack.experiments.stage import Stage
from wholestack.finding import Finding, finding
from wholestack.launch.job import Engine, Job, JobState, Limits
from wholestack.record import from_json

PROBE_ENTRY = "wholestack.experiments.worker:probe"
PROBE_S = 1.2
PROBE_LIMIT_S: dict[Device, float] = {"cpu": 120.0, "cuda": 600.0}
"""A CUDA device compiles every shape before its first step."""


def run(stage: Stage) -> str:
    """Read the machine, probe it, seal its claims, write the plan; without the recipe's device there is no plan."""
    stage.tell("preflight", "reading the machine", left_s=stage.clock.left_s)
    reading = read_machine(stage.run.path, clock=lambda: stage.clock.now)
    for each in judge_machine(reading, needs(stage.recipe)):
        stage.run.report(each)
    for skipped in skipped_checks(stage.recipe.device):
        stage.skip(skipped)
    stage.tell("preflight", "multiplying integers, measuring speed", left_s=stage.clock.left_s)
    probe = run_probe(stage.engine, stage.run.folder("jobs/preflight"), stage.recipe)
    exact = claims.seal_machine(stage, reading.host)
    verdict = stage.run.report(judge_checksum(probe, reading.host, settles=exact.id, at=stage.clock.now))
    if stage.recipe.device == "cuda":
        stage.run.report(judge_device(probe, reading.host, at=stage.clock.now))
    multiplies = f"multiplies {'right' if verdict.status == 'ok' else 'WRONG'}"
    if probe.device is None:
        return f"{multiplies}; {NO_DEVICE}, so there is no plan"
    stage.run.report(_speed(probe, reading.host, stage.clock.now))
    plan = make_plan(stage.recipe, budget_s=stage.clock.budget_s, used_s=stage.clock.used_s, probe=probe)
    stage.run.write(PLAN, plan)
    rates = ", ".join(f"{rate:.2e} FLOP/s ({name})" for name, rate in probe.rates_flops_s.items())
    return f"{multiplies}; trains at {rates}"


def run_probe(engine: Engine, folder: Path, recipe: Recipe) -> ProbeResult:
    """Run the probes of a recipe, on its device and in its precision, as a job in a folder.

    Raises:
        EngineError: the probe did not end well; without it there is no plan.
    """
    shapes = probe_shapes(recipe, threads=recipe.large_threads)
    state = run_to_end(
        engine,
        Job(
            name="preflight",
            entry=PROBE_ENTRY,
            arguments={
                "folder": str(folder),
                "shapes": shapes,
                "seconds_each": PROBE_S,
                "device": recipe.device,
                "precision": recipe.precision,
            },
            folder=folder,
            limits=Limits(
                wall_s=PROBE_LIMIT_S[recipe.device], threads=max(shape["threads"] for shape in shapes.values())
            ),
        ),
    )
    if state.outcome != "done":
        raise EngineError(
            f"the preflight's probe ended as {state.outcome}: {state.detail}", remedy=f"see {state.stderr}"
        )
    return from_json(ProbeResult, (folder / RESULT).read_bytes(), where=str(folder / RESULT))


def run_to_end(engine: Engine, job: Job) -> JobState:
    """Start one job and wait for its last state."""
    job_id = engine.start(job)
    while True:
        for state in engine.poll(1.0):
            if state.id == job_id and state.ended:
                return state


def _speed(probe: ProbeResult, host: str, at: float) -> Finding:
    evidence = [f"{name}: {rate:.3e} training FLOP/s" for name, rate in probe.rates_flops_s.items()]
    return finding(host, "machine.speed", "ok", evidence=evidence, at=at)
