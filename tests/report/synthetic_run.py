"""Synthetic run directories of a rehearsal, complete in form, with numbers drawn from a made-up law.

They are written with the project's own Records and journals, so they are what a rehearsal writes; only the models
behind them were never trained. Every stage at which a run can stand is a value of :data:`STAGES`.
"""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

from wholestack.claim import Claim, seal
from wholestack.experiments import records
from wholestack.experiments.records import (
    PHASE_ORDER,
    ClaimLine,
    CurvePoint,
    ForecastPoint,
    Landing,
    Laws,
    Outcome,
    PhaseRecord,
    Plan,
    SettingLaw,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.finding import Skipped, finding
from wholestack.record import to_json
from wholestack.runs import RunDirectory, RunManifest

STAGES = ("preflight", "interrupted", "refused", "stopped", "inside", "outside")
START = 1_796_000_000.0
END = START + 470.0
METRIC = "answer_bpb@3f9a0c1d2e4b5a69"
TARGET = 4.1e12
RUNG = 8.2e11
SECONDS = (6.0, 21.0, 9.0, 236.0, 4.0, 31.0, 142.0, 3.0)
REACHED = {"preflight": 1, "interrupted": 4, "refused": 8, "stopped": 6, "inside": 8, "outside": 8}


def loss(cost: float) -> float:
    """The made-up law, in bits per byte."""
    return 1.15 + 1.9 * (cost / 1e10) ** -0.21


def write_run(folder: Path, stage: str, *, trials: int = 80, hostile: str = "") -> Path:
    """Write a run directory.

    Args:
        folder: Made if it is missing.
        stage: One of :data:`STAGES`.
        trials: Trials of the search.
        hostile: Text that is put into every field that the run's user, data or programs could fill.
    """
    rng = random.Random(7)
    config = {
        "recipe": {"schema": "recipe/1", "name": "laptop" + hostile, "metric": "answer_bpb"},
        "budget_s": 480.0,
        "level": 0.9,
        "space": {"lr": {"low": 1e-4, "high": 3e-2, "scale": "log"}, "layers": {"low": 1, "high": 12}},
        "note": "synthetic run, nothing was trained" + hostile,
    }
    versions = {"python": "3.11.2", "torch": "2.13.0+cpu", "numpy": "2.3.1", "wholestack": "0.1.0" + hostile}
    manifest = RunManifest(kind="rehearsal", created_at=START, seed=7, config=config, versions=versions)
    with RunDirectory.create(folder, manifest) as run:
        _phases(run, stage)
        claims = _first_claims(run, hostile)
        _skip(run)
        if stage != "preflight":
            _plan_and_files(run, hostile)
            found = _search(run, rng, 37 if stage == "interrupted" else trials, hostile)
        if stage not in {"preflight", "interrupted"}:
            _later(run, rng, stage, found, claims, hostile)
    return folder


def _phases(run: RunDirectory, stage: str) -> None:
    at = 0.0
    for number, (name, seconds) in enumerate(zip(PHASE_ORDER, SECONDS, strict=True)):
        if number >= REACHED[stage]:
            return
        run.append(records.PHASES, PhaseRecord(phase=name, event="began", at=START + at, used_s=at))
        if stage == "interrupted" and number == REACHED[stage] - 1:
            run.append(records.PHASES, PhaseRecord(phase=name, event="began", at=START + at + 400, used_s=at + 88))
            return
        at += seconds
        ended = PhaseRecord(phase=name, event="ended", at=START + at, used_s=at, note=f"{name} came out as planned")
        run.append(records.PHASES, ended)


def _first_claims(run: RunDirectory, hostile: str) -> dict[str, Claim]:
    machine = _claim(run, "machine.multiplies", "this machine multiplies right", "checksum", "9f2c11aa", 2.0)
    _settle(run, machine, "preflight.product", "ok", 3.0, ["checksum 9f2c11aa" + hostile, "expected 9f2c11aa"])
    rate = _claim(
        run, "machine.rate", "one worker trains at 15 to 25 GFLOP/s", "FLOP/s", 2.0e10, 4.0, (1.5e10, 2.5e10), [machine]
    )
    _settle(run, rate, "preflight.rate", "ok", 5.0, ["1.98e10 FLOP/s over 2.0 s"])
    memory = finding(
        "this machine" + hostile,
        "preflight.memory",
        "warn",
        evidence=["5.1 GB free", "two workers and the large run want 6.0 GB"],
        cause="less free memory than planned" + hostile,
        remedy="close other programs, or use --workers 1",
        owner="whoever runs this",
        at=START + 5.5,
    )
    run.report(memory)
    return {"machine": machine, "rate": rate}


def _claim(
    run: RunDirectory,
    name: str,
    statement: str,
    quantity: str,
    predicted,
    at: float,
    interval=None,
    rests_on=(),
    **more,
) -> Claim:
    level = None if interval is None else 0.9
    lower = [each.id for each in rests_on]
    return run.seal(
        seal(
            name,
            "the run",
            statement,
            quantity=quantity,
            predicted=predicted,
            interval=interval,
            level=level,
            rests_on=lower,
            sealed_at=START + at,
            **more,
        )
    )


def _settle(run: RunDirectory, claim: Claim, check: str, status: str, at: float, evidence, cause="", remedy="") -> None:
    found = finding(
        claim.name, check, status, evidence=evidence, cause=cause, remedy=remedy, at=START + at, settles=claim.id
    )
    run.report(found)


def _skip(run: RunDirectory) -> None:
    detail = "the recipe trains on the CPU: no CUDA device is asked for"
    run.append(records.SKIPPED, Skipped(check="machine.device", reason="not_expected", detail=detail))


def _plan_and_files(run: RunDirectory, hostile: str) -> None:
    plan = Plan(
        budget_s=480.0,
        rate_flops_s=2.0e10,
        large_threads=2,
        speed_up=1.7,
        max_trial_cost_flops=2.1e11,
        rung_cost_flops=RUNG,
        target_cost_flops=TARGET,
        workers=2,
        seconds=dict(zip(PHASE_ORDER, (8.0, 25.0, 10.0, 230.0, 6.0, 35.0, 150.0, 5.0), strict=True)),
        disk_bytes=48_000_000,
    )
    run.write(records.PLAN, plan)
    (run.path / "data-statement.txt").write_text(
        "Data statement, corpus 5c1e9a77\n3,412 documents, 14,201,338 bytes, 4,310,442 tokens from 2 source(s)\n\n"
        f"Source code{hostile}\n  licence: PSF-2.0, read from LICENSE of Python 3.11.2\n"
        "  train: 1,540 documents, 10,904,112 bytes\n  held out: 171 documents, 1,190,233 bytes\n\n"
        "Source prose\n  licence: PSF-2.0\n  refused, not UTF-8: 3\n    lib2to3/tests/data/bom.py\n"
    )
    manifest = {
        "schema": "item-set/1",
        "digest": "3f9a0c1d2e4b5a69",
        "kind": "continuation choices",
        "sources": {"code": 200, "prose": 200},
        "item_ids": [f"{number:016x}" for number in range(400)],
        "prompt": "context, then each choice",
        "documents": {f"{number:08x}": f"email/part{number}.py{hostile}" for number in range(90)},
        "python_version": "3.11.2",
        "seed": 7,
        "passed_over": {"too short": 31, "near-duplicate choice": 4},
    }
    items = run.folder("items")
    (items / "manifest.json").write_text(json.dumps(manifest))
    choice = {"choices": ["a", "b", "c", "d"], "gold": 0}
    (items / "items.jsonl").write_text("".join(json.dumps(choice) + "\n" for _ in range(400)))
    run.write(records.BASELINES, records.Baselines(unigram_bpb=4.873))


def _params(rng: random.Random, cost: float, hostile: str) -> records.Params:
    growth = math.log10(cost / 1e10)
    return {
        "layers": max(1, round(2 + 2 * growth + rng.uniform(-1, 1))),
        "width": 16 * max(2, round(5 + 6 * growth + rng.uniform(-2, 2))),
        "head_size": rng.choice((16, 32)),
        "tokens": round(2e5 * 10 ** (0.55 * growth + rng.uniform(-0.1, 0.1))),
        "batch_size": 2 ** max(2, round(3 + growth + rng.uniform(-1, 1))),
        "lr": 8e-3 * 10 ** (-0.25 * growth + rng.uniform(-0.25, 0.25)),
        "weight_decay": 10 ** rng.uniform(-3, -0.7),
        "warmup_fraction": rng.uniform(0.02, 0.2),
        "prose_weight": min(0.95, max(0.05, rng.gauss(0.45, 0.18))),
        **({f"activation{hostile}": "silu" + hostile} if hostile else {}),
    }


def _search(run: RunDirectory, rng: random.Random, count: int, hostile: str) -> list[TrialRecord]:
    trials = []
    clock = START + 36.0
    for number in range(count + 14):
        role = "random" if number % 6 == 5 and number < 84 else "search"
        cost = 10 ** (rng.uniform(9.8, 11.3) if role == "random" else 9.8 + 1.5 * rng.betavariate(1.1, 1.4))
        excess = abs(rng.gauss(0, 0.09 if role == "search" else 0.22)) * max(0.25, 1 - number / count)
        value = loss(cost) * (1 + excess)
        trial = _trial(rng, role, number, cost, value, clock, hostile)
        if number % 23 == 11:
            kind = ("diverged", "out_of_memory", "timeout")[number // 23 % 3]
            trial = replace(
                trial, outcome=kind, metrics={}, errors={}, detail="loss is not finite at step 41" + hostile
            )
        clock += 2.35
        trials.append(_written(run, trial))
    for number in range(10):
        cost = 2e11 / 2 ** (number // 2)
        trial = _trial(rng, "ladder", number, cost, loss(cost) * (1 + rng.gauss(0, 0.004)), clock, hostile)
        trials.append(_written(run, trial))
    return trials


def _trial(
    rng: random.Random, role: str, number: int, cost: float, value: float, start: float, hostile: str, threads: int = 1
) -> TrialRecord:
    params = _params(rng, cost, hostile)
    seconds = cost / 4.2e10 / threads + 0.6
    hits = 0.25 + 0.5 / (1 + math.exp(6 * (value - 2.35))) + rng.gauss(0, 0.018)
    return TrialRecord(
        name=role if role in {"rung", "large", "scaled"} else f"{role}-{number:04d}",
        role=role,
        number=number,
        params=params,
        seed=number,
        outcome="ok",
        cost_flops=cost,
        parameters=12 * params["layers"] * params["width"] ** 2,
        tokens=params["tokens"],
        seconds=seconds,
        train_seconds=seconds - 0.6,
        cpu_seconds=seconds,
        peak_bytes=410_000_000,
        threads=threads,
        metrics={"answer_bpb": value, "choice_nll": value * 0.6, "accuracy": hits},
        errors={"answer_bpb": 0.021, "choice_nll": 0.02, "accuracy": 0.0217},
        stability={"loss_spikes": float(number % 17 == 3), "max_gradient_norm": 4.2, "median_gradient_norm": 0.8},
        origin="near a point of the front" if role == "search" else role,
        started_at=start,
        ended_at=start + seconds,
    )


def _written(run: RunDirectory, trial: TrialRecord) -> TrialRecord:
    suggestion = SuggestionRecord(
        name=trial.name,
        role=trial.role,
        number=trial.number,
        params=trial.params,
        seed=trial.seed,
        cost_flops=trial.cost_flops,
    )
    run.append(records.SUGGESTIONS, suggestion)
    run.append(records.TRIALS, trial)
    job = run.folder(f"jobs/{trial.name}")
    final = trial.metrics.get("answer_bpb", 9.0) + 0.05
    _write_curve(job / records.CURVE, trial, final, noise=0.02)
    if trial.role == "large":
        _write_curve(job / "predicted.jsonl", trial, final * 0.985, noise=0.0)
    return trial


def _write_curve(path: Path, trial: TrialRecord, final: float, noise: float) -> None:
    rng = random.Random(trial.number)
    steps = 240 if trial.role == "large" else 24
    lines = []
    for step in range(1, steps + 1):
        share = step / steps
        value = final + (8.0 - final) * math.exp(-14 * share) + 0.5 * (1 - share) ** 2 + rng.gauss(0, noise)
        point = CurvePoint(
            step=step * 10,
            tokens=round(trial.tokens * share),
            cost_flops=trial.cost_flops * share,
            train_bpb=value,
            gradient_norm=0.8 + abs(rng.gauss(0, 0.2)),
            lr=1e-3 * (1 - share),
            seconds=trial.train_seconds * share,
            cpu_seconds=trial.train_seconds * share,
        )
        lines.append(to_json(point) + b"\n")
    path.write_bytes(b"".join(lines))


def _forecast(cost: float, lowest: float = 2e11) -> ForecastPoint:
    width = 0.012 + 0.012 * max(0.0, math.log10(cost / lowest))
    value = loss(cost)
    return ForecastPoint(cost_flops=cost, value=value, low=value * (1 - width), high=value * (1 + width))


def _laws(trials: list[TrialRecord], *, supported: bool, hostile: str) -> Laws:
    front, best = [], math.inf
    for trial in sorted((each for each in trials if each.outcome == "ok"), key=lambda each: each.cost_flops):
        if trial.metrics["answer_bpb"] < best:
            best = trial.metrics["answer_bpb"]
            front.append(trial)
    grid = [10 ** (9.8 + 0.07 * number) for number in range(40)] + [TARGET]
    return Laws(
        pareto=tuple(each.name for each in front),
        form="L(C) = E + A * C^-a, a = 0.21" + hostile,
        basis="10 runs with the laws' own settings" + hostile if supported else "",
        supported=supported,
        refusal=""
        if supported
        else "5 Pareto points over 0.7 decades of cost; 8 points and 1 decade are needed" + hostile,
        level=0.9,
        curve=tuple(_forecast(cost) for cost in grid) if supported else (),
        rung=_forecast(RUNG) if supported else None,
        target=_forecast(TARGET) if supported else None,
        straight=replace(_forecast(TARGET), value=loss(TARGET) * 0.955) if supported else None,
        free_asymptote=1.66 if supported else None,
        fixed_asymptote=1.69 if supported else None,
        settings=tuple(_setting(front, name, grid, hostile) for name in front[0].params) if supported else (),
        rung_params=_params(random.Random(3), RUNG, hostile),
        target_params=_params(random.Random(4), TARGET, hostile),
        scaled_params=_params(random.Random(5), TARGET, hostile),
        warnings=("tokens per parameter vary by 1.3 only, so the law is nearly blind to the horizon" + hostile,),
    )


def _setting(front: list[TrialRecord], name: str, grid: list[float], hostile: str) -> SettingLaw:
    values = [each.params[name] for each in front]
    numeric = all(not isinstance(value, str) for value in values)
    transform = "linear"
    if name in {"width", "tokens", "batch_size", "lr", "weight_decay"}:
        transform = "log"
    elif name in {"prose_weight", "warmup_fraction"}:
        transform = "logit"
    elif not numeric:
        transform = "categorical"
    points = tuple((each.cost_flops, float(each.params[name]) if numeric else 0.0) for each in front)
    middle = sum(y for _, y in points) / len(points)
    curve = tuple(ForecastPoint(cost_flops=cost, value=middle, low=middle * 0.8, high=middle * 1.15) for cost in grid)
    return SettingLaw(
        name=name,
        form="constant along cost" + hostile,
        transform=transform,
        why="a slope did not lower the regret in loss when the costliest points were held out" + hostile,
        points=points,
        curve=curve,
        rung=_params(random.Random(3), RUNG, hostile)[name],
        target=_params(random.Random(4), TARGET, hostile)[name],
    )


def _later(
    run: RunDirectory, rng: random.Random, stage: str, found: list[TrialRecord], claims: dict[str, Claim], hostile: str
) -> None:
    supported = stage != "refused"
    laws = _laws(found, supported=supported, hostile=hostile)
    run.write(records.LAWS_SEARCH, laws)
    data = _claim(
        run, "data.sources", "training text is from code and prose only" + hostile, "ledger", "5c1e9a77", 27.0
    )
    _settle(run, data, "data.verify", "ok", 30.0, ["3,412 documents, every hash as in the ledger"])
    items = _claim(
        run, "evaluation.items", "400 items detect a difference of 0.03 bits per byte", "hash", "3f9a0c1d", 35.0
    )
    if stage == "outside":
        _settle(run, items, "evaluation.verify", "unknown", 462.0, ["items/items.jsonl: could not be read"])
    else:
        _settle(run, items, "evaluation.verify", "ok", 36.0, ["hash 3f9a0c1d"])
    below = [claims["rate"], data, items]
    rung_value = loss(RUNG) * (1.09 if stage == "stopped" else 1.006)
    rung = _land(run, rng, "rung", RUNG, rung_value, below, supported, hostile)
    large = None
    if stage != "stopped":
        run.write(records.LAWS_RUNG, laws)
        actual = loss(TARGET) * (1.094 if stage == "outside" else 1.008)
        large = _land(run, rng, "large", TARGET, actual, below, supported, hostile)
        _written(run, _trial(rng, "scaled", 0, TARGET, actual * 1.03, START + 448, hostile, threads=2))
    if stage == "outside":
        _claim(
            run,
            "machine.clock",
            "the clock is not set during the run",
            "s",
            0.0,
            2.0,
            (-0.5, 0.5),
            valid_until=START + 9,
        )
        step = _claim(
            run, "large.step", "a step of the large run takes 0.055 to 0.065 s", "s", 0.06, 310, (0.055, 0.065), below
        )
        cause = "steps slowed from 0.06 s to 0.17 s at step 900" + hostile
        _settle(run, step, "large.step", "fail", 455.0, ["0.171 s at the median"], cause, "look at what else ran")
    run.write(records.OUTCOME, _outcome(run, stage, laws, rung, large, found))


def _land(
    run: RunDirectory, rng: random.Random, role: str, cost: float, actual: float, below, supported: bool, hostile: str
) -> Landing:
    start = 277.0 if role == "rung" else 309.0
    trial = _written(
        run, _trial(rng, role, 0, cost, actual, START + start, hostile, threads=1 if role == "rung" else 2)
    )
    forecast = _forecast(cost)
    inside = forecast.low <= actual <= forecast.high
    if supported:
        interval = (forecast.low, forecast.high)
        claim = _claim(
            run,
            f"{role}.metric",
            f"the {role} run reaches {forecast.value:.3f} bits per byte",
            "bits per byte",
            forecast.value,
            start - 1,
            interval,
            below,
        )
        cause = "" if inside else "above the interval" + hostile
        status = "ok" if inside else "fail"
        remedy = "" if inside else "look at the settings whose laws bend"
        _settle(run, claim, f"{role}.landing", status, start + 100, [f"actual {actual:.4f}"], cause, remedy)
    return Landing(
        metric=METRIC,
        predicted=forecast.value if supported else None,
        interval=(forecast.low, forecast.high) if supported else None,
        actual=actual,
        inside=inside if supported else None,
        relative_error=actual / forecast.value - 1 if supported else None,
        cost_flops=cost,
        params=trial.params,
    )


def _outcome(
    run: RunDirectory, stage: str, laws: Laws, rung: Landing, large: Landing | None, found: list[TrialRecord]
) -> Outcome:
    forecast = laws.target
    done = [each for each in found if each.outcome == "ok"]
    failures: dict[str, int] = {}
    for each in found:
        if each.outcome != "ok":
            failures[each.outcome] = failures.get(each.outcome, 0) + 1
    scaled = None if large is None else replace(large, actual=large.actual * 1.03, predicted=None, interval=None)
    reasons = {
        "stopped": "the rung came out 9.0 % worse than predicted, outside its interval, and --stop-if-off was given",
        "refused": laws.refusal,
    }
    return Outcome(
        metric=METRIC,
        predicted=forecast.value if forecast else None,
        interval=(forecast.low, forecast.high) if forecast else None,
        actual=large.actual if large else None,
        inside=large.inside if large else None,
        relative_error=large.relative_error if large else None,
        rung=rung,
        straight_line=laws.straight,
        scaled=scaled,
        target_cost_flops=TARGET,
        largest_trial_cost_flops=max(each.cost_flops for each in done),
        trials=sum(each.role == "search" for each in done),
        failures=failures,
        seconds=452.0,
        go=None if stage == "refused" else stage != "stopped",
        reason=reasons.get(stage, "the rung landed inside its interval"),
        claims=tuple(
            ClaimLine(id=each.id, name=each.name, status="open", statement=each.statement) for each in run.claims()
        ),
        exit_code={"inside": 0, "refused": 3}.get(stage, 1),
        report=records.REPORT,
    )
