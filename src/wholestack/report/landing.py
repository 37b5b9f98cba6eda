"""First section of the page: the verdict, where the large run landed, and the claims with what settled them."""

from collections.abc import Sequence

from wholestack.claim import Claim
from wholestack.experiments.records import ForecastPoint, Landing
from wholestack.finding import Finding
from wholestack.report import plots
from wholestack.report.evidence import ClaimView, Evidence
from wholestack.report.page import Markup, badge, element, figure, join, listing, not_reached, paragraph
from wholestack.report.quantities import moment, number, percent, printable
from wholestack.report.tables import Table, draw, folded
from wholestack.report.verdict import judge, key_numbers, metric_label, target

_MOST_CASES = 20
_MOST_EVIDENCE = 6


def verdict(evidence: Evidence) -> Markup:
    """The verdict and the claims."""
    judged = judge(evidence)
    spoken = element(
        "div",
        paragraph(judged.sentence),
        listing(judged.further) if judged.further else Markup(""),
        class_=f"verdict {judged.tone}",
        role="status",
    )
    return join([spoken, _graphic(evidence), _tiles(evidence), element("h3", "Claims"), _claims(evidence)])


def _graphic(evidence: Evidence) -> Markup:
    forecast, outcome = target(evidence), evidence.outcome
    if forecast is None:
        return not_reached("There is no prediction for the large run, so there is no landing to draw.")
    actual = outcome.actual if outcome else None
    straight = outcome.straight_line if outcome else (evidence.laws.straight if evidence.laws else None)
    drawn = plots.landing(
        forecast,
        actual,
        axis=metric_label(evidence),
        inside=outcome.inside if outcome else None,
        straight=straight.value if straight else None,
    )
    caption = (
        "The bar is the interval that was predicted before the large run started, the tick the predicted value, the"
        " star where the run landed; the cross is what a straight line through the same points predicted."
    )
    return figure(drawn, caption, folded("The numbers", _landing_table(evidence, forecast)))


def _landing_table(evidence: Evidence, forecast: ForecastPoint) -> Table:
    outcome = evidence.outcome
    large = Landing(
        metric=evidence.metric,
        predicted=forecast.value,
        interval=(forecast.low, forecast.high),
        actual=outcome.actual if outcome else None,
        inside=outcome.inside if outcome else None,
        relative_error=outcome.relative_error if outcome else None,
        cost_flops=forecast.cost_flops,
        params={},
    )
    rows = [_row("large run", large)]
    if outcome is not None and outcome.rung is not None:
        rows.insert(0, _row("rung", outcome.rung))
    columns = ("run", "predicted", "interval", "actual", "actual / predicted - 1", "inside")
    return Table(caption=f"Predicted against actual, {metric_label(evidence)}", columns=columns, rows=rows)


def _row(name: str, landed: Landing) -> tuple[str, ...]:
    interval = landed.interval
    return (
        name,
        "–" if landed.predicted is None else number(landed.predicted),
        "–" if interval is None else f"{number(interval[0])} to {number(interval[1])}",
        "–" if landed.actual is None else number(landed.actual),
        "–" if landed.relative_error is None else percent(landed.relative_error),
        {True: "yes", False: "no", None: "–"}[landed.inside],
    )


def _tiles(evidence: Evidence) -> Markup:
    tiles = []
    for name, value, remark in key_numbers(evidence):
        shown = [value, element("small", remark)] if remark else [value]
        tiles.append(element("div", element("dt", name), element("dd", *shown)))
    return element("dl", *tiles, class_="tiles")


def _claims(evidence: Evidence) -> Markup:
    if not evidence.claims:
        return not_reached("No claim has been sealed yet.")
    intro = paragraph(
        "A claim is sealed before the fact and settled afterwards by findings. Only a finding can make it held."
    )
    order = {"broken": 0, "unknown": 1, "expired": 2, "open": 3, "held": 4}
    views = sorted(evidence.claims, key=lambda view: order[view.status])
    table = Table(
        caption=f"{len(views)} claims, worst first, as of {moment(evidence.now)}",
        columns=("status", "claim", "statement", "predicted, interval", "settled by"),
        rows=[_claim_row(view) for view in views],
        source="claims.jsonl",
    )
    cases = [_case(view) for view in views if view.status != "held"]
    more = [paragraph(f"{len(cases) - _MOST_CASES} more are in claims.jsonl.")] if len(cases) > _MOST_CASES else []
    return join([intro, draw(table), *cases[:_MOST_CASES], *more])


def _claim_row(view: ClaimView) -> tuple[str, ...]:
    claim = view.claim
    return (
        badge(view.status if view.genuine else "altered"),
        element("code", claim.name),
        claim.statement,
        _predicted(claim),
        join(_settling(each) for each in latest(view.explanation.findings)) or "nothing yet",
    )


def _predicted(claim: Claim) -> str:
    if claim.predicted is None and claim.interval is None:
        return "–"
    value = printable(claim.predicted, limit=80) if isinstance(claim.predicted, str) else ""
    if isinstance(claim.predicted, int | float):
        value = number(claim.predicted)
    if claim.interval is None:
        return join([value, element("div", claim.quantity, class_="small-text")])
    level = f" at {100 * claim.level:.0f} %" if claim.level is not None else ""
    interval = element("div", f"{number(claim.interval[0])} to {number(claim.interval[1])}{level}")
    return join([value, interval, element("div", claim.quantity, class_="small-text")])


def latest(findings: Sequence[Finding]) -> list[Finding]:
    """Findings without those that were made again later: the same trouble has the same id."""
    return list({(each.id, each.settles): each for each in findings}.values())


def _settling(finding: Finding) -> Markup:
    told = finding.cause or "; ".join(finding.evidence[:2])
    return element("div", badge(finding.status), f" {finding.check}: {printable(told, limit=240)}")


def _case(view: ClaimView) -> Markup:
    """One claim that is not held: what settled it, what is suspect, what is ruled out."""
    why = view.explanation
    parts: list[str] = [element("h4", badge(view.status if view.genuine else "altered"), f" {view.claim.name}")]
    if not view.genuine:
        parts.append(paragraph("Its id is not the hash of its content: it was changed after it was sealed."))
    for finding in latest(why.findings):
        parts.append(_finding(finding))
    if view.status == "broken":
        parts.append(_names("Suspect below it", why.suspects, none="no claim that it rests on broke"))
        parts.append(_names("Not ruled out", why.undecided, none=""))
        parts.append(_names("Ruled out", why.ruled_out, none="nothing, for no claim below it held"))
    elif not why.findings:
        waiting = {"expired": f"Nothing settled it before {moment(view.claim.valid_until or 0)}."}
        parts.append(paragraph(waiting.get(view.status, "Nothing has settled it yet.")))
    kind = "fail" if view.status == "broken" or not view.genuine else "unknown"
    return element("div", *parts, class_=f"case {'open' if view.status == 'open' else kind}")


def _finding(finding: Finding) -> Markup:
    told = [printable(line, limit=300) for line in finding.evidence[:_MOST_EVIDENCE]]
    advice = [paragraph(element("strong", "Do: "), finding.remedy)] if finding.remedy else []
    cause = [paragraph(finding.cause)] if finding.cause else []
    return join([*cause, listing(told) if told else Markup(""), *advice])


def _names(title: str, claims: tuple[Claim, ...], *, none: str) -> Markup:
    if not claims:
        return paragraph(element("strong", f"{title}: "), none) if none else Markup("")
    told = [f"{claim.name} ({printable(claim.statement, limit=160)})" for claim in claims[:_MOST_CASES]]
    return paragraph(element("strong", f"{title}: "), "; ".join(told))
