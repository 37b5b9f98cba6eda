"""Last sections: failures, findings, every setting, every trial, where the time went, versions and commands."""

import itertools
import shlex
from collections import Counter

from wholestack.experiments.records import PHASE_ORDER, PhaseRecord, TrialRecord
from wholestack.finding import Finding, worst_first
from wholestack.report import plots
from wholestack.report.evidence import Evidence
from wholestack.report.page import Markup, badge, element, figure, join, not_reached, paragraph
from wholestack.report.quantities import duration, flops, moment, number, plural, printable, setting, size
from wholestack.report.statements import rows as plain_rows
from wholestack.report.tables import Table, draw, folded
from wholestack.report.verdict import metric_label

_BETWEEN = "between"
_LONGEST_PATH = 4096


def failures_and_findings(evidence: Evidence) -> Markup:
    """What failed and why, and every Finding, worst first."""
    failed = [element("h3", "Failed trials"), _failures(evidence)]
    return join([*failed, element("h3", "Findings"), _findings(evidence), _skipped(evidence)])


def _failures(evidence: Evidence) -> Markup:
    failed = evidence.failures
    if not failed:
        return paragraph("No trial failed." if evidence.trials else "No trial has ended yet.")
    kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in Counter(_kinds(failed)).most_common())
    table = Table(
        caption="Failed trials; the search learns from all but the abandoned, which were ended from outside",
        columns=("trial", "role", "kind", "why", "cost", "after"),
        rows=[_failure_row(each) for each in failed],
        source="trials.jsonl",
    )
    share = f"{plural(len(failed), 'trial')} of {len(evidence.trials)} failed: {kinds}."
    return join([paragraph(share), draw(table)])


def _kinds(failed: list[TrialRecord]) -> list[str]:
    return [trial.outcome for trial in failed]


def _failure_row(trial: TrialRecord) -> tuple[str, ...]:
    why = printable(trial.detail, limit=300) or "no reason is recorded"
    kind = trial.outcome.replace("_", " ")
    return trial.name, trial.role, kind, why, flops(trial.cost_flops), f"{trial.seconds:.1f} s"


def _findings(evidence: Evidence) -> Markup:
    if not evidence.findings:
        return not_reached("No finding has been recorded; nothing was checked yet.")
    ordered = worst_first(evidence.findings)
    begin = evidence.manifest.created_at
    table = Table(
        caption=f"{plural(len(ordered), 'finding')}, worst first",
        columns=("status", "subject", "check", "evidence", "cause", "do", "at"),
        rows=[_finding_row(each, begin) for each in ordered],
        source="findings.jsonl",
    )
    return draw(table)


def _finding_row(finding: Finding, begin: float) -> tuple[str, ...]:
    told = join(element("div", printable(line, limit=300)) for line in finding.evidence[:4])
    more = element("div", f"and {len(finding.evidence) - 4} more lines") if len(finding.evidence) > 4 else Markup("")
    when = "–" if finding.at is None else f"{finding.at - begin:.1f} s"
    when = when if finding.step is None else f"{when}, step {finding.step:,}"
    subject = f"{finding.subject} {finding.part}".strip()
    owner = f" ({finding.owner})" if finding.owner else ""
    remedy = f"{finding.remedy}{owner}" if finding.remedy else "–"
    return badge(finding.status), subject, finding.check, join([told, more]), finding.cause or "–", remedy, when


def _skipped(evidence: Evidence) -> Markup:
    if not evidence.skipped:
        return Markup("")
    rows = [(each.check, each.reason.replace("_", " "), each.detail) for each in evidence.skipped]
    table = Table(caption="Checks that did not apply; not verdicts", columns=("check", "why", "detail"), rows=rows)
    return join([element("h3", "Skipped"), draw(table)])


def everything(evidence: Evidence) -> Markup:
    """Every setting, every trial, where the time went, versions, commands."""
    return join(
        [
            element("h3", "Where the time went"),
            _phases(evidence),
            element("h3", "Settings of the rung and the large run"),
            _chosen(evidence),
            element("h3", "Everything that was asked for"),
            folded("The recipe, from run.json", _recipe_table(evidence)),
            element("h3", "Every trial"),
            folded(
                f"{plural(len(evidence.trials), 'trial')}, in the order in which they ended", *_trial_tables(evidence)
            ),
            element("h3", "Versions and seed"),
            draw(_versions_table(evidence)),
            element("h3", "Do it again"),
            *_commands(evidence),
        ]
    )


def time_by_phase(phases: tuple[PhaseRecord, ...]) -> dict[str, float]:
    """Budget used by each phase, in seconds; a phase that was interrupted counts until the next record."""
    used: dict[str, float] = {}
    for here, after in itertools.pairwise(phases):
        name = here.phase if here.event == "began" else _BETWEEN
        used[name] = used.get(name, 0.0) + max(0.0, after.used_s - here.used_s)
    return used


def _phases(evidence: Evidence) -> Markup:
    if not evidence.phases:
        return not_reached("No phase has begun yet.")
    used = time_by_phase(evidence.phases)
    planned = evidence.plan.seconds if evidence.plan else {}
    bars = [("used", _shares(used)), ("planned", _shares(planned))]
    drawn = plots.time_bar([(name, shares) for name, shares in bars if shares])
    caption = (
        "Each bar is the wall time of the whole rehearsal, cut by phase; pauses between a kill and a resume do not"
        " count."
    )
    return figure(drawn, caption, folded("The numbers", _phase_table(evidence, used, planned)))


def _shares(seconds: dict[str, float]) -> list[plots.Share]:
    ordered = [*PHASE_ORDER, *(name for name in seconds if name not in PHASE_ORDER)]
    return [
        plots.Share(label=name, seconds=seconds[name], colour=_colour(name))
        for name in ordered
        if seconds.get(name, 0.0) > 0
    ]


def _colour(phase: str) -> str:
    places: dict[str, int] = {name: place for place, name in enumerate(PHASE_ORDER, start=1)}
    return f"phase-{places[phase]}" if phase in places else "muted"


def _phase_table(evidence: Evidence, used: dict[str, float], planned: dict[str, float]) -> Table:
    notes: dict[str, str] = {each.phase: each.note for each in evidence.phases if each.event == "ended"}
    began = {each.phase for each in evidence.phases}
    rows = []
    for name in [*PHASE_ORDER, *(key for key in {**planned, **used} if key not in PHASE_ORDER)]:
        state = "ended" if name in notes else "began, did not end" if name in began else "not reached"
        shown = (_seconds(planned.get(name)), _seconds(used.get(name)))
        rows.append((name, "–" if name == _BETWEEN else state, *shown, notes.get(name, "")))
    columns = ("phase", "state", "planned", "used", "what came out")
    return Table(caption="Phases", columns=columns, rows=rows)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"


def _chosen(evidence: Evidence) -> Markup:
    laws = evidence.laws
    large, rung = evidence.last("large"), evidence.last("rung")
    rung_params = rung.params if rung else (laws.rung_params if laws else {})
    target_params = large.params if large else (laws.target_params if laws else {})
    if not rung_params and not target_params:
        return not_reached("No settings have been chosen yet.")
    names = list(dict.fromkeys([*target_params, *rung_params]))
    rows = [(name, setting(rung_params.get(name, "–")), setting(target_params.get(name, "–"))) for name in names]
    state = "as trained" if large else "as chosen, not trained"
    return draw(Table(caption=f"Large run {state}", columns=("setting", "rung", "large run"), rows=rows))


def _recipe_table(evidence: Evidence) -> Table:
    rows = list(plain_rows(evidence.manifest.config))
    return Table(caption="Every setting of the rehearsal", columns=("setting", "value"), rows=rows, source="run.json")


def _trial_tables(evidence: Evidence) -> tuple[Table, Table]:
    names = list(dict.fromkeys(name for trial in evidence.trials for name in trial.params))[:24]
    metrics = list(dict.fromkeys(name for trial in evidence.trials for name in trial.metrics))[:8]
    outcomes = Table(
        caption=f"Outcomes ({metric_label(evidence)} is the metric of the search)",
        columns=("trial", "outcome", "cost", "parameters", "tokens", "wall", "peak memory", *metrics),
        rows=[_outcome_row(trial, metrics) for trial in evidence.trials],
        source="trials.jsonl",
    )
    params = Table(
        caption="Settings",
        columns=("trial", "role", "seed", *names, "how suggested"),
        rows=[
            (
                each.name,
                each.role,
                str(each.seed),
                *(setting(each.params.get(name, "–")) for name in names),
                each.origin,
            )
            for each in evidence.trials
        ],
        source="trials.jsonl",
    )
    return outcomes, params


def _outcome_row(trial: TrialRecord, metrics: list[str]) -> tuple[str, ...]:
    return (
        trial.name,
        trial.outcome.replace("_", " "),
        flops(trial.cost_flops),
        f"{trial.parameters:,}",
        f"{trial.tokens:,}",
        f"{trial.seconds:.1f} s",
        size(trial.peak_bytes),
        *(number(trial.metrics[name]) if name in trial.metrics else "–" for name in metrics),
    )


def _versions_table(evidence: Evidence) -> Table:
    manifest = evidence.manifest
    rows = [
        ("seed", str(manifest.seed)),
        ("began", moment(manifest.created_at)),
        *((name, version) for name, version in sorted(manifest.versions.items())),
    ]
    return Table(caption="What produced these numbers", columns=("what", "value"), rows=rows)


def _commands(evidence: Evidence) -> list[Markup]:
    folder = shlex.quote(printable(evidence.folder.resolve().name))
    resume = (
        [] if evidence.outcome else [paragraph("Go on with it:"), _command(f"wholestack rehearse --resume {folder}")]
    )
    return [
        paragraph("The same rehearsal, with the same seed, into a new folder:"),
        _command(_again(evidence)),
        *resume,
        paragraph("Draw this page again, and ask what broke:"),
        _command(f"wholestack report {folder}", f"wholestack why {folder}"),
    ]


def _again(evidence: Evidence) -> str:
    manifest, plan = evidence.manifest, evidence.plan
    # Older runs, and recipes that came as a value, have a name alone.
    recipe = manifest.config.get("recipe_given") or evidence.recipe.get("name")
    words = ["wholestack", "rehearse"]
    if isinstance(recipe, str):
        words.append(shlex.quote(printable(recipe, limit=_LONGEST_PATH)))
    words += ["--out", "again", "--seed", str(manifest.seed)]
    if plan is not None:
        words += ["--budget", _budget(plan.budget_s), "--workers", str(plan.workers)]
    for option in ("items", "metric") if evidence.recipe.get("items") else ():
        words += [f"--{option}", shlex.quote(printable(str(evidence.recipe.get(option)), limit=_LONGEST_PATH))]
    if manifest.config.get("stop_if_off") is True:
        words.append("--stop-if-off")
    return " ".join(words)


def _budget(seconds: float) -> str:
    return f"{seconds / 60:g}m" if seconds % 60 == 0 else f"{seconds:g}s"


def _command(*lines: str) -> Markup:
    return element("pre", element("code", join(part for line in lines for part in (line, Markup("\n")))))


def time_told(evidence: Evidence) -> str:
    """How long it has been at work so far."""
    used = max((each.used_s for each in evidence.phases), default=0.0)
    return duration(evidence.outcome.seconds if evidence.outcome else used)
