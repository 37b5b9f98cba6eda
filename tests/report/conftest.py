"""Synthetic runs, drawn once a test process for each stage."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from wholestack.report.evidence import Evidence, read_evidence
from wholestack.report.rehearsal import write_report

from .synthetic_run import END, write_run

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>$\\frac{&amp;\x1b[31m\u202e[bold]"


@dataclass(frozen=True)
class Drawn:
    """A run directory and its page."""

    folder: Path
    html: str
    evidence: Evidence


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Callable[..., Drawn]:
    root = tmp_path_factory.mktemp("runs")

    @cache
    def draw(stage: str, hostile: bool) -> Drawn:
        folder = root / f"{stage}{'-hostile' if hostile else ''}"
        write_run(folder, stage, trials=26, hostile=HOSTILE if hostile else "")
        page = write_report(folder, now=END)
        return Drawn(folder=folder, html=page.read_text(encoding="utf-8"), evidence=read_evidence(folder, now=END))

    return lambda stage, hostile=False: draw(stage, hostile)
