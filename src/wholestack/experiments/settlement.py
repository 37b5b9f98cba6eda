"""Settle the claims of a rehearsal from what lies in its run directory. Reads only; the caller keeps the Findings.

What cannot be read, or did not happen, settles a claim as ``unknown``, never as held.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from wholestack.claim import Claim, is_genuine
from wholestack.data.corpus import Corpus
from wholestack.errors import DataError, WholestackError
from wholestack.evals.items import ItemSet
from wholestack.experiments import claims
from wholestack.experiments.preflight import ProbeResult, judge_checksum
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.records import (
    CURVE,
    LAWS_RUNG,
    LAWS_SEARCH,
    PLAN,
    RESULT,
    TRIALS,
    CurvePoint,
    Laws,
    Plan,
    TrialRecord,
)
from wholestack.experiments.settings import training_plan
from wholestack.experiments.stage import MACHINE_PACE, ended_trial, expected_seconds, pace_of
from wholestack.finding import Finding, Status, finding, worst
from wholestack.health import settlement as health_settlement
from wholestack.journal import read_journal
from wholestack.record import digest, from_builtins
from wholestack.runs import RunDirectory, RunReader

SHORTEST_JUDGED_S = 3.0
"""Trials that train for less say nothing about the pace: start-up and the first touch of memory rule them."""
SLOW_WINDOW_SHARE = 0.2
"""A slow stretch counts from this share of a long run on."""
HAD_THE_PROCESSOR = 0.7
"""CPU seconds a second and thread from which a worker is said to have had it."""


def recipe_of(run: RunReader) -> Recipe:
    """The recipe that a rehearsal was started with."""
    return from_builtins(Recipe, run.manifest.config["recipe"], where=f"{run.path}: recipe")


def settle(run: RunReader, *, at: float) -> list[Finding]:
    """A Finding for every claim that the run's evidence allows to settle; claims on what has not ended stay open.

    The run may also be a sweep of hosts.

    Args:
        run: The run directory.
        at: Seconds since the epoch.
    """
    if run.manifest.kind in health_settlement.KINDS:
        return health_settlement.settle(run, at=at)
    found: list[Finding] = []
    for claim in run.claims():
        judged = _forged(claim, at) if not is_genuine(claim) else _judge(run, claim, at)
        if judged is not None:
            found.append(judged)
    return found


def keep_new(run: RunDirectory, found: Iterable[Finding]) -> list[Finding]:
    """Put on the disk what says something new: another verdict or other evidence than a claim's last Finding."""
    last = {each.settles: (each.status, each.evidence) for each in run.findings() if each.settles}
    return [run.report(each) for each in found if last.get(each.settles) != (each.status, each.evidence)]


def _judge(run: RunReader, claim: Claim, at: float) -> Finding | None:
    if claim.name == claims.MACHINE_EXACT:
        probe = run.read_optional("jobs/preflight/" + RESULT, ProbeResult)
        return judge_checksum(probe, claim.subject, settles=claim.id, at=at) if probe else None
    if claim.name == MACHINE_PACE:
        return _judge_pace(run, claim, at)
    if claim.name == claims.DATA:
        return judge_data(run.path / "data", claim, at)
    if claim.name == claims.EVALUATION:
        return _judge_evaluation(run.path / "items", claim, at)
    role, _, what = claim.name.partition(".")
    if what == "metric" and claim.predicted is None:
        return _not_predicted(run, claim, role, at)
    trial = ended_trial(run.journal(TRIALS, TrialRecord), role)  # type: ignore[arg-type]
    if trial is None:
        return None
    judge = {"settings": _judge_settings, "metric": _judge_metric, "duration": _judge_duration}[what]
    return judge(run, claim, trial, at)


def _forged(claim: Claim, at: float) -> Finding:
    return _settling(
        claim, "fail", [f"id {claim.id} is not the hash of the claim"], at,
        cause="the claim was changed after it was sealed", remedy="restore claims.jsonl from a copy",
    )  # fmt: skip


def judge_data(folder: Path, claim: Claim, at: float) -> Finding:
    """Hash every shard again; the worst thing found settles the claim."""
    try:
        corpus = Corpus.open(folder)
        bad = [each for each in corpus.verify() if each.status != "ok"]
    except DataError as error:
        return _settling(claim, "fail", [str(error)], at, cause="the corpus is missing or was changed", owner="data")
    except (WholestackError, OSError) as error:
        return _settling(claim, "unknown", [str(error)], at, cause="the data cannot be read", remedy="restore them")
    if bad:
        return _settling(
            claim, worst(bad), [f"{each.subject}: {line}" for each in bad[:3] for line in each.evidence], at,
            part=bad[0].subject, cause=f"corrupted data: {', '.join(each.subject for each in bad[:3])}",
            remedy="do not believe runs that read it; make the corpus again and compare hashes", owner="data",
        )  # fmt: skip
    if corpus.manifest.digest != claim.predicted:
        return _settling(
            claim, "fail", [f"hash {corpus.manifest.digest}, sealed as {claim.predicted}"], at,
            cause="other data than sealed", remedy="make the corpus again", owner="data",
        )  # fmt: skip
    return _settling(claim, "ok", [f"every shard has its hash; corpus {corpus.manifest.digest}"], at)


def _judge_evaluation(folder: Path, claim: Claim, at: float) -> Finding:
    try:
        items = ItemSet.load(folder)
    except WholestackError as error:
        return _settling(
            claim, "fail", [str(error)], at, cause="the items are not what was sealed",
            remedy="restore the folder; numbers of other items are not comparable", owner="evaluation",
        )  # fmt: skip
    same = items.digest == claim.predicted
    return _settling(
        claim, "ok" if same else "fail", [f"item set {items.digest}, sealed as {claim.predicted}"], at,
        cause="" if same else "another item set", remedy="" if same else "compare only numbers of one item set",
    )  # fmt: skip


def _judge_metric(run: RunReader, claim: Claim, trial: TrialRecord, at: float) -> Finding:
    if trial.outcome == "diverged":
        return _settling(
            claim,
            "fail",
            [trial.detail],
            at,
            cause="the run diverged",
            remedy="look at its settings, its data and its loss curve",
            owner="job owner",
        )
    if trial.outcome != "ok" or claim.interval is None or not isinstance(claim.predicted, float):
        return _settling(
            claim, "unknown", [f"the run ended as {trial.outcome}: {trial.detail}"], at,
            cause=f"no actual value: {trial.outcome}", remedy="see the run's log",
        )  # fmt: skip
    actual = trial.metrics[recipe_of(run).metric]
    low, high = claim.interval
    inside = low <= actual <= high
    side = "better (lower)" if actual < low else "worse (higher)"
    return _settling(
        claim, "ok" if inside else "fail",
        [f"actual {actual:.4f}, predicted {claim.predicted:.4f}, interval {low:.4f} to {high:.4f}"], at,
        cause="" if inside else f"landed {side} than its interval",
        remedy="" if inside else _where_to_look(actual > high), owner="" if inside else "job owner",
    )  # fmt: skip


def _not_predicted(run: RunReader, claim: Claim, role: str, at: float) -> Finding:
    laws = run.read_optional(LAWS_RUNG if role == "large" else LAWS_SEARCH, Laws)
    if laws is not None and not laws.supported:
        return _settling(
            claim, "unknown", [laws.refusal, *laws.warnings], at,
            cause="no prediction was possible", remedy=claims.TO_PREDICT, owner="job owner",
        )  # fmt: skip
    return _settling(
        claim, "unknown", [claim.statement], at, cause="the run was not started",
        remedy="clear away what kept it from starting, then start afresh", owner="job owner",
    )  # fmt: skip


def _where_to_look(worse: bool) -> str:
    if worse:
        return "look at the run's settings, its data and its loss curve; then at the law: did it bend?"
    return "the law was too cautious: look at its form, and at whether the small runs were well tuned"


def _judge_duration(_: RunReader, claim: Claim, trial: TrialRecord, at: float) -> Finding:
    if trial.outcome not in ("ok", "diverged") or claim.interval is None:
        return _settling(claim, "unknown", [f"the run ended as {trial.outcome}"], at, cause="no duration")
    slow = trial.outcome == "ok" and trial.train_seconds > claim.interval[1]
    return _settling(
        claim, "fail" if slow else "ok",
        [f"trained for {trial.train_seconds:.1f} s, {claim.predicted:.1f} s foreseen"], at,
        cause="took much longer than foreseen" if slow else "", remedy="see machine.pace" if slow else "",
    )  # fmt: skip


def _judge_settings(run: RunReader, claim: Claim, trial: TrialRecord, at: float) -> Finding:
    laws = run.read_optional(LAWS_RUNG if trial.role == "large" else LAWS_SEARCH, Laws)
    if laws is None:
        return _settling(claim, "unknown", ["the laws are not in the run directory"], at, cause="no laws to compare")
    lawful = laws.target_params if trial.role == "large" else laws.rung_params
    off = _settings_off(laws, trial)
    different = [name for name, value in trial.params.items() if lawful.get(name) != value and name != "tokens"]
    if off or digest(trial.params) != claim.predicted:
        return _settling(
            claim, "fail", off or [f"trained with {claims.shown(trial.params)}"], at,
            part=", ".join(different),
            cause=f"not the {'setting of the laws' if laws.supported else 'scaled setting'}:"
            f" {', '.join(different) or 'tokens'}",
            remedy="take the setting from the laws, or search again with bounds that allow it", owner="job owner",
        )  # fmt: skip
    return _settling(claim, "ok", [f"trained with {claims.shown(trial.params)}"], at)


def _settings_off(laws: Laws, trial: TrialRecord) -> list[str]:
    """Settings outside the interval of their law at the run's cost."""
    lines = []
    for law in laws.settings:
        value = trial.params.get(law.name)
        lawful = law.target if trial.role == "large" else law.rung
        if value == lawful or not isinstance(value, float | int) or not law.curve or law.name == "tokens":
            continue
        point = min(law.curve, key=lambda each: abs(math.log(each.cost_flops / trial.cost_flops)))
        if not point.low <= value <= point.high:
            lines.append(
                f"{law.name} is {value:.4g}; its law gives {lawful:.4g} ({point.low:.4g} to {point.high:.4g})"
                if isinstance(lawful, float | int)
                else f"{law.name} is {value}; its law gives {lawful}"
            )
    return lines


def _judge_pace(run: RunReader, claim: Claim, at: float) -> Finding | None:
    """The slowest worker against the modelled time; CPU time and queue tell what it waited for.

    Judged by the clock, and again without the time that other work had the processor: on a busy machine all workers
    wait in that queue, which would hide one that is slow for a reason of its own.
    """
    plan = run.read_optional(PLAN, Plan)
    trials = [trial for trial in run.journal(TRIALS, TrialRecord) if trial.outcome == "ok"]
    if plan is None or not trials:
        return None
    recipe = recipe_of(run)
    paces = [pace_of(recipe, plan, trials, undisturbed=undisturbed) for undisturbed in (False, True)]
    judged = [
        _slowest_stretch(
            trial,
            training_plan(recipe, trial.params).work.steps,
            [expected_seconds(recipe, plan, pace, trial.params, trial.threads) for pace in paces],
            read_journal(run.path / "jobs" / trial.name / CURVE, CurvePoint),
        )
        for trial in trials
        if trial.train_seconds >= SHORTEST_JUDGED_S
    ]
    if not judged:
        return _settling(claim, "unknown", ["no run trained long enough to be judged"], at, cause="nothing to judge")
    ratio, line, name = max(judged)
    slow = ratio > claims.SLOWEST_PACE
    return _settling(
        claim, "fail" if slow else "ok", [line, f"{len(judged)} runs judged"], at,
        part=name if slow else "", cause=f"worker of {name} was slow" if slow else "",
        remedy="look for other load, throttling or a stopped process on that host" if slow else "",
        owner="cluster team" if slow else "",
    )  # fmt: skip


def _slowest_stretch(
    trial: TrialRecord, all_steps: int, expected_s: list[float], curve: list[CurvePoint]
) -> tuple[float, str, str]:
    """Ratio of actual to modelled time over the slowest stretch of a run, with its evidence.

    Args:
        trial: The run.
        all_steps: Its steps.
        expected_s: Modelled seconds of it, by the clock and without the time that other work had the processor.
        curve: Its points.
    """
    whole = _Stretch(0, all_steps, trial.train_seconds, trial.cpu_seconds, trial.queued_seconds)
    if trial.seconds > 0:  # the CPU time is that of the whole process
        whole = replace(whole, cpu_s=trial.cpu_seconds * trial.train_seconds / trial.seconds)
    span = max(1, math.ceil(SLOW_WINDOW_SHARE * len(curve)))
    windows = [
        _Stretch(
            first.step, last.step, last.seconds - first.seconds,
            last.cpu_seconds - first.cpu_seconds, last.queued_seconds - first.queued_seconds,
        )
        for sitting in _sittings(curve)
        for first, last in zip(sitting, sitting[span:], strict=False)
    ]  # fmt: skip
    judged = [whole, *(each for each in windows if each.steps > 0 and each.seconds > SHORTEST_JUDGED_S)]
    per_step = [seconds / all_steps for seconds in expected_s]
    ratio, stretch = max(((each.slowness(per_step), each) for each in judged), key=lambda pair: pair[0])
    line = (
        f"{trial.name}: {ratio:.2f} times the modelled time in steps {stretch.first} to {stretch.last}"
        f" ({stretch.waited_for(trial.threads)})"
    )
    return ratio, line, trial.name


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some steps of a run: from and to which, and where their time went."""

    first: int
    last: int
    seconds: float
    cpu_s: float
    queued_s: float

    @property
    def steps(self) -> int:
        return self.last - self.first

    def slowness(self, per_step: list[float]) -> float:
        """Times the modelled seconds a step: by the clock, or without the queue where that is worse."""
        by_clock, undisturbed = per_step
        return max(self.seconds / by_clock, (self.seconds - self.queued_s) / undisturbed) / self.steps

    def waited_for(self, threads: int) -> str:
        cpu = self.cpu_s / (self.seconds * threads) if self.seconds > 0 else 1.0
        queued = self.queued_s / self.seconds if self.seconds > 0 else 0.0
        if cpu >= HAD_THE_PROCESSOR:
            reason = "it had the processor"
        elif queued > (1 - cpu) / 2:
            reason = f"other work had the processor for {queued:.0%} of the time"
        else:
            reason = "it was stopped or waited for something else than a processor"
        return f"{cpu:.2f} CPU s a second and thread: {reason}"


def _sittings(curve: list[CurvePoint]) -> list[list[CurvePoint]]:
    """The curve cut where a process went on from a checkpoint: it counts its CPU time from zero again."""
    sittings: list[list[CurvePoint]] = []
    for point in curve:
        if not sittings or point.cpu_seconds < sittings[-1][-1].cpu_seconds:
            sittings.append([])
        sittings[-1].append(point)
    return sittings


def _settling(
    claim: Claim, status: Status, evidence: list[str], at: float, *,
    part: str = "", cause: str = "", remedy: str = "", owner: str = "",
) -> Finding:  # fmt: skip
    return finding(
        claim.subject, claim.name, status,
        evidence=evidence, part=part, cause=cause, remedy=remedy, owner=owner, at=at, settles=claim.id,
    )  # fmt: skip
