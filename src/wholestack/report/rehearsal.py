"""The page of a rehearsal: which sections, in which order, from which evidence.

Drawn from the run directory alone and at any stage of the run: a section that the run has not reached says so.
"""

import time
from collections.abc import Callable
from pathlib import Path

from wholestack.experiments.records import REPORT
from wholestack.journal import write_atomic
from wholestack.report.baselines import baselines
from wholestack.report.comparisons import accuracy_against_loss, mixture
from wholestack.report.curves import training
from wholestack.report.evidence import Evidence, read_evidence
from wholestack.report.landing import verdict
from wholestack.report.laws import pareto, settings
from wholestack.report.ledger import everything, failures_and_findings, time_told
from wholestack.report.page import Markup, Section, document, element, join, paragraph
from wholestack.report.quantities import moment, printable
from wholestack.report.statements import data_and_evaluation

SECTIONS: tuple[tuple[str, str, Callable[[Evidence], Markup]], ...] = (
    ("verdict", "Verdict and claims", verdict),
    ("front", "The Pareto front", pareto),
    ("settings", "The law of every setting", settings),
    ("curves", "Training curves", training),
    ("accuracy", "Accuracy against answer loss", accuracy_against_loss),
    ("mixture", "Effect of the mixture", mixture),
    ("baselines", "Baselines", baselines),
    ("data", "Data and evaluation", data_and_evaluation),
    ("findings", "Failures and findings", failures_and_findings),
    ("everything", "Every setting, every trial, versions", everything),
)
"""(anchor, title, what draws it), in the order of the page."""


def write_report(run_folder: Path, *, now: float | None = None) -> Path:
    """Draw ``report.html`` into a run directory.

    Args:
        run_folder: A run directory at any stage, also interrupted.
        now: Seconds since the epoch at which claims that expire are judged; by default the clock's.

    Returns:
        Path of the page, which appears whole or not at all.

    Raises:
        RunDirectoryError: the folder is not a run directory, or the page cannot be written.
        RecordError: ``run.json`` does not decode.
    """
    evidence = read_evidence(run_folder, now=time.time() if now is None else now)
    path = run_folder / REPORT
    write_atomic(path, page(evidence))
    return path


def page(evidence: Evidence) -> bytes:
    """The whole page, UTF-8."""
    sections = [Section(anchor=anchor, title=title, body=draw(evidence)) for anchor, title, draw in SECTIONS]
    name = printable(evidence.folder.resolve().name, limit=80)
    return document(f"Rehearsal {name}", _header(evidence, name), sections, _footer(evidence))


def _header(evidence: Evidence, name: str) -> Markup:
    began = moment(evidence.manifest.created_at)
    told = (
        f"Tune small, predict large, train it, see where it landed. Began {began}, at work for {time_told(evidence)}."
    )
    return element("header", element("h1", f"Rehearsal “{name}”"), paragraph(told))


def _footer(evidence: Evidence) -> Markup:
    version = evidence.manifest.versions.get("wholestack", "")
    drawn = f"Drawn {moment(evidence.now)} from the run directory alone; nothing on this page is fetched."
    return join([paragraph(f"Wholestack {printable(version, limit=40)}. {drawn}" if version else drawn)])
