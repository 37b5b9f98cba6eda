"""The short version of a rehearsal's report for a terminal of 80 columns."""

import time
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wholestack.experiments.records import REPORT, ForecastPoint
from wholestack.finding import worst_first
from wholestack.report.evidence import ClaimView, Evidence, read_evidence
from wholestack.report.quantities import number, plural, printable
from wholestack.report.verdict import BROKEN, Verdict, judge, key_numbers, metric_label, target

_STYLES = {
    "ok": "green",
    "held": "green",
    "warn": "yellow",
    "fail": "bold red",
    "broken": "bold red",
    "altered": "bold red",
    "unknown": "magenta",
    "expired": "magenta",
    "open": "dim",
}
_GLYPHS = {"ok": "✓", "held": "✓", "warn": "▲", "fail": "✕", "broken": "✕", "altered": "✕", "open": "○"}
_BAR = 56
_MOST_FINDINGS = 8
_MOST_CLAIMS = 24


def summary(run_folder: Path, *, now: float | None = None) -> RenderableType:
    """Verdict, landing, key numbers, claims and the worst findings.

    Args:
        run_folder: A run directory at any stage.
        now: Seconds since the epoch at which claims that expire are judged; by default the clock's.

    Raises:
        RunDirectoryError: the folder is not a run directory.
        RecordError: ``run.json`` does not decode.
    """
    evidence = read_evidence(run_folder, now=time.time() if now is None else now)
    judged = judge(evidence)
    parts: list[RenderableType] = [_verdict(judged), *_landing(evidence), _numbers(evidence)]
    if evidence.claims:
        parts.append(_claims(evidence.claims))
    parts.extend(_findings(evidence))
    if (run_folder / REPORT).exists():
        parts.append(Text(f"The whole report: {printable(str(run_folder / REPORT))}"))
    return Group(*parts)


def _verdict(judged: Verdict) -> Text:
    text = Text(f"{_GLYPHS.get(judged.tone, '?')} ", style=_STYLES[judged.tone])
    text.append(judged.sentence, style="bold")
    for line in judged.further:
        text.append(f"\n  {line}", style=_STYLES["broken"] if line.startswith(BROKEN) else "")
    return text


def _landing(evidence: Evidence) -> list[Text]:
    forecast, outcome = target(evidence), evidence.outcome
    if forecast is None:
        return []
    actual = outcome.actual if outcome else None
    drawn = Text(f"\n  {metric_label(evidence)}: [ ] interval, | predicted, * actual\n  ")
    drawn.append(landing_bar(forecast, actual), style="cyan")
    return [drawn]


def landing_bar(forecast: ForecastPoint, actual: float | None, width: int = _BAR) -> str:
    """Interval, predicted and actual value on one line, with the numbers at its ends."""
    shown = [forecast.low, forecast.high, forecast.value, *([] if actual is None else [actual])]
    low, high = min(shown), max(shown)
    span = (high - low) or abs(low) or 1.0

    def place(value: float) -> int:
        return round((value - low) / span * (width - 1))

    cells = [" "] * width
    for column in range(place(forecast.low), place(forecast.high) + 1):
        cells[column] = "-"
    marks = [(forecast.low, "["), (forecast.high, "]"), (forecast.value, "|")]
    for value, sign in [*marks, *([] if actual is None else [(actual, "*")])]:
        cells[place(value)] = sign
    return f"{number(low)} {''.join(cells)} {number(high)}"


def _numbers(evidence: Evidence) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    for name, value, remark in key_numbers(evidence):
        table.add_row(Text(f"  {name}", style="dim"), Text(value, style="bold"), Text(remark))
    return table


def _claims(views: tuple[ClaimView, ...]) -> Table:
    order = ("broken", "unknown", "expired", "open", "held")
    ordered = sorted(views, key=lambda view: order.index(view.status))
    table = Table(box=SIMPLE, pad_edge=False, expand=False)
    table.add_column("status", no_wrap=True)
    table.add_column("claim", overflow="fold", max_width=24)
    table.add_column("statement", overflow="fold")
    for view in ordered[:_MOST_CLAIMS]:
        status = view.status if view.genuine else "altered"
        told = printable(view.claim.statement, limit=160)
        table.add_row(_status(status), Text(printable(view.claim.name, limit=60)), Text(told))
    if len(ordered) > _MOST_CLAIMS:
        table.add_row("", "", Text(f"and {len(ordered) - _MOST_CLAIMS} more"))
    return table


def _findings(evidence: Evidence) -> list[Text]:
    latest = {(each.id, each.settles): each for each in evidence.standing}
    bad = [each for each in worst_first(latest.values()) if each.status != "ok"]
    lines = []
    for each in bad[:_MOST_FINDINGS]:
        line = _status(each.status)
        told = each.cause or (each.evidence[0] if each.evidence else "")
        line.append(f" {printable(each.subject, limit=60)}, {printable(each.check, limit=40)}", style="default")
        line.append(f": {printable(told, limit=160)}", style="default")
        lines.append(line)
    if len(bad) > _MOST_FINDINGS:
        lines.append(Text(f"and {plural(len(bad) - _MOST_FINDINGS, 'more finding')}"))
    return lines


def _status(status: str) -> Text:
    return Text(f"{_GLYPHS.get(status, '?')} {status}", style=_STYLES.get(status, "magenta"))
