"""Everything that a report is drawn from, read once from a run directory at any stage of the run.

A file that is missing means that the run has not come that far. A file that does not decode is damage: what stands
before the damage is used, the damage is listed in :attr:`Evidence.unreadable`, and no verdict is then shown as good.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from wholestack.claim import Claim, ClaimStatus, Explanation, explain, is_genuine, status_of
from wholestack.errors import RecordError
from wholestack.experiments.records import (
    BASELINES,
    CURVE,
    LAWS_RUNG,
    LAWS_SEARCH,
    OUTCOME,
    PHASES,
    PLAN,
    PREDICTED,
    SKIPPED,
    SUGGESTIONS,
    TRIALS,
    Baselines,
    CurvePoint,
    Landing,
    Laws,
    Outcome,
    PhaseRecord,
    Plan,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.finding import Finding, Skipped
from wholestack.journal import iterate_journal
from wholestack.record import Record
from wholestack.runs import CLAIMS, FINDINGS, RunManifest, RunReader

R = TypeVar("R", bound=Record)

JOBS = "jobs"
DATA_MANIFEST = "data/manifest.json"
ITEMS_MANIFEST = "items/manifest.json"

_MOST_POINTS = 200
_MOST_FOREIGN_BYTES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """A claim, how it stands, and why."""

    claim: Claim
    """The claim as sealed."""
    status: ClaimStatus
    """Its status by the Findings; ``unknown`` when the claim is not as it was sealed."""
    genuine: bool
    """Whether its id is still the hash of its content."""
    explanation: Explanation
    """What settled it and what it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run directory, read."""

    folder: Path
    now: float
    """Moment at which open claims are judged, seconds since the epoch."""
    manifest: RunManifest
    plan: Plan | None
    phases: tuple[PhaseRecord, ...]
    suggestions: tuple[SuggestionRecord, ...]
    trials: tuple[TrialRecord, ...]
    laws_search: Laws | None
    laws_rung: Laws | None
    claims: tuple[ClaimView, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    outcome: Outcome | None
    unigram_bpb: float | None
    """What a unigram model reaches."""
    unreadable: tuple[str, ...]
    """What could not be read, one line each."""

    @property
    def recipe(self) -> Mapping[str, object]:
        """The recipe as plain values, empty where the manifest has none."""
        recipe = self.manifest.config.get("recipe")
        return recipe if isinstance(recipe, Mapping) else {}

    @property
    def laws(self) -> Laws | None:
        """The last laws that were fitted."""
        return self.laws_rung or self.laws_search

    @property
    def metric(self) -> str:
        """Name of the metric among the metrics of a trial, without the hash of the evaluation."""
        asked = self.outcome.metric if self.outcome else self.recipe.get("metric")
        name = str(asked or "answer_bpb")
        known = {key for trial in self.trials for key in trial.metrics}
        return next((key for key in sorted(known, key=len, reverse=True) if name.startswith(key)), name)

    def completed(self, *roles: str) -> list[TrialRecord]:
        """Trials of these roles that have the metric, in the order in which they were acknowledged."""
        return [
            trial
            for trial in self.trials
            if trial.role in roles and trial.outcome == "ok" and self.metric in trial.metrics
        ]

    def last(self, role: str) -> TrialRecord | None:
        """The last trial of a role, whatever its outcome."""
        return next((trial for trial in reversed(self.trials) if trial.role == role), None)

    def landing(self, role: str) -> Landing | None:
        """Predicted against actual for the rung, the scaled baseline or the large run, from the outcome."""
        if self.outcome is None:
            return None
        return self.outcome.rung if role == "rung" else self.outcome.scaled if role == "scaled" else None

    @property
    def standing(self) -> list[Finding]:
        """Findings without those that a later one about the same claim has replaced."""
        last = {each.settles: index for index, each in enumerate(self.findings) if each.settles}
        return [each for index, each in enumerate(self.findings) if last.get(each.settles, index) == index]

    @property
    def failures(self) -> list[TrialRecord]:
        """Trials that did not complete."""
        return [trial for trial in self.trials if trial.outcome != "ok"]

    @property
    def phase(self) -> str:
        """The phase that began last, empty before the first."""
        return next((each.phase for each in reversed(self.phases) if each.event == "began"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Training curves by name of the trial, thinned to a few hundred points each."""

    measured: dict[str, tuple[CurvePoint, ...]]
    predicted: dict[str, tuple[CurvePoint, ...]]
    unreadable: tuple[str, ...]


def read_evidence(folder: Path, *, now: float) -> Evidence:
    """Read a run directory.

    Args:
        folder: The run directory.
        now: Seconds since the epoch, for claims that expire.

    Raises:
        RunDirectoryError: the folder is not a run directory.
        RecordError: ``run.json`` itself does not decode.
    """
    run = RunReader(folder)
    damage: list[str] = []
    claims = _journal(folder, CLAIMS, Claim, damage)
    findings = _journal(folder, FINDINGS, Finding, damage)
    baselines = _optional(run, BASELINES, Baselines, damage)
    return Evidence(
        folder=folder,
        now=now,
        manifest=run.manifest,
        plan=_optional(run, PLAN, Plan, damage),
        phases=_journal(folder, PHASES, PhaseRecord, damage),
        suggestions=_journal(folder, SUGGESTIONS, SuggestionRecord, damage),
        trials=_journal(folder, TRIALS, TrialRecord, damage),
        laws_search=_optional(run, LAWS_SEARCH, Laws, damage),
        laws_rung=_optional(run, LAWS_RUNG, Laws, damage),
        claims=tuple(_view(claim, claims, findings, now) for claim in claims),
        findings=findings,
        skipped=_journal(folder, SKIPPED, Skipped, damage),
        outcome=_optional(run, OUTCOME, Outcome, damage),
        unigram_bpb=baselines.unigram_bpb if baselines else None,
        unreadable=tuple(damage),
    )


def read_curves(folder: Path, names: Iterable[str]) -> Curves:
    """Read the training curves of some trials.

    Args:
        folder: The run directory.
        names: Names of trials; one without a curve is left out.
    """
    damage: list[str] = []
    measured: dict[str, tuple[CurvePoint, ...]] = {}
    predicted: dict[str, tuple[CurvePoint, ...]] = {}
    for name in names:
        if name in {"", ".", ".."} or "/" in name or "\0" in name:
            damage.append(f"{name}: not the name of a trial")
            continue
        for file, into in ((CURVE, measured), (PREDICTED, predicted)):
            points = _journal(folder, f"{JOBS}/{name}/{file}", CurvePoint, damage)
            if points:
                into[name] = _thinned(points)
    return Curves(measured=measured, predicted=predicted, unreadable=tuple(damage))


def read_foreign(folder: Path, name: str) -> tuple[Any, str]:
    """A JSON document of another package, as plain values, and why there is none."""
    path = folder / name
    text, why = read_text(folder, name)
    if text is None:
        return None, why
    try:
        return json.loads(text), ""
    except ValueError as error:
        return None, f"{path.name}: not JSON: {error}"


def read_text(folder: Path, name: str) -> tuple[str | None, str]:
    """A text file, and why there is none (empty when it does not exist)."""
    path = folder / name
    try:
        if path.stat().st_size > _MOST_FOREIGN_BYTES:
            return None, f"{name}: larger than {_MOST_FOREIGN_BYTES:,} bytes, not read"
        return path.read_text(encoding="utf-8", errors="replace"), ""
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        return None, f"{name}: cannot be read: {error.strerror}"


def _view(claim: Claim, claims: tuple[Claim, ...], findings: tuple[Finding, ...], now: float) -> ClaimView:
    genuine = is_genuine(claim)
    return ClaimView(
        claim=claim,
        status=status_of(claim, findings, now=now) if genuine else "unknown",
        genuine=genuine,
        explanation=explain(claim.id, claims, findings, now=now),
    )


def _journal(folder: Path, name: str, kind: type[R], damage: list[str]) -> tuple[R, ...]:
    """Records up to the first damage."""
    kept: list[R] = []
    try:
        for record in iterate_journal(folder / name, kind):
            kept.append(record)
    except RecordError as error:
        damage.append(_relative(error, folder))
    return tuple(kept)


def _optional(run: RunReader, name: str, kind: type[R], damage: list[str]) -> R | None:
    try:
        return run.read_optional(name, kind)
    except RecordError as error:
        damage.append(_relative(error, run.path))
        return None


def _relative(error: RecordError, folder: Path) -> str:
    return str(error).replace(f"{folder}/", "")


def _thinned(points: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
    """Every n-th point and the last."""
    if len(points) <= _MOST_POINTS:
        return points
    step = -(-len(points) // _MOST_POINTS)
    return (*points[:-1:step], points[-1])
