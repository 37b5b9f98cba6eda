"""The budget's clock: wall time that a rehearsal has used, not counting pauses between a kill and a resume."""

from collections.abc import Callable

from wholestack.experiments.records import (
    CURVE,
    PHASES,
    SUGGESTIONS,
    TRIALS,
    CurvePoint,
    PhaseName,
    PhaseRecord,
    SuggestionRecord,
    TrialRecord,
)
from wholestack.experiments.scheduling import unfinished
from wholestack.runs import RunDirectory, RunReader


def used_before(run: RunReader) -> float:
    """Seconds that earlier sessions used, up to the last thing that they acknowledged."""
    phases = run.journal(PHASES, PhaseRecord)
    if not phases:
        return 0.0
    last = phases[-1]
    return last.used_s + max(0.0, _last_sign(run) - last.at)


def _last_sign(run: RunReader) -> float:
    """When a trial last ended or a training run that was cut short last wrote onto its curve; 0 if none did."""
    trials = run.journal(TRIALS, TrialRecord)
    cut_short = unfinished(run.journal(SUGGESTIONS, SuggestionRecord), trials)
    curves = (run.journal(f"jobs/{each.name}/{CURVE}", CurvePoint) for each in cut_short)
    written = (point.at for curve in curves for point in curve[-1:])
    return max([trial.ended_at for trial in trials] + list(written), default=0.0)


class BudgetClock:
    """Counts from where earlier sessions stopped.

    Args:
        run: The run directory, open for writing.
        budget_s: Wall time of the whole rehearsal.
        clock: Seconds since the epoch.
    """

    def __init__(self, run: RunDirectory, budget_s: float, clock: Callable[[], float]) -> None:
        self._run = run
        self._clock = clock
        self._started = clock() - used_before(run)
        self.budget_s = budget_s

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock()

    @property
    def used_s(self) -> float:
        """Seconds used so far."""
        return self._clock() - self._started

    @property
    def left_s(self) -> float:
        """Seconds left; below zero when overrun."""
        return self.budget_s - self.used_s

    def began(self, phase: PhaseName) -> None:
        """Put the beginning of a phase on the disk."""
        self._run.append(PHASES, PhaseRecord(phase=phase, event="began", at=self.now, used_s=self.used_s))

    def ended(self, phase: PhaseName, note: str) -> None:
        """Put the end of a phase on the disk: it will not be run again."""
        self._run.append(PHASES, PhaseRecord(phase=phase, event="ended", at=self.now, used_s=self.used_s, note=note))

    def has_ended(self, phase: PhaseName) -> bool:
        """Whether an earlier session, or this one, finished the phase."""
        return any(each.phase == phase and each.event == "ended" for each in self._run.journal(PHASES, PhaseRecord))
