"""Progress without a terminal: a numbered line at the beginning of every phase."""

import io

import pytest

from wholestack.cli import progress
from wholestack.cli.progress import TerminalWatcher
from wholestack.experiments.progress import Progress
from wholestack.experiments.records import PHASE_ORDER, PhaseName


def moment(phase: PhaseName, done: int, best: float | None = None) -> Progress:
    return Progress(phase=phase, done=done, total=None, best=best, unit="nats per item", left_s=75.0, note="at work")


def test_the_best_value_has_the_unit_of_its_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_EVERY_S", 0.0)
    stream = io.StringIO()
    with TerminalWatcher(stream) as watch:
        watch(moment("search", 0, best=1.25))
    assert "best 1.250 nats per item" in stream.getvalue()


def test_every_phase_is_announced_once_with_its_place_among_all() -> None:
    stream = io.StringIO()
    with TerminalWatcher(stream) as watch:
        for phase in PHASE_ORDER:
            watch(moment(phase, 0))
            watch(moment(phase, 1))
    announced = [line.split()[1:] for line in stream.getvalue().splitlines() if "[" in line]
    assert announced == [[f"[{place}/8]", phase] for place, phase in enumerate(PHASE_ORDER, start=1)]
