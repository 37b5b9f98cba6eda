"""``wholestack evals proxy``: how well does a cheap metric rank models as the goal does?"""

import time
from pathlib import Path
from textwrap import fill
from typing import Annotated, Literal

import numpy as np
from cyclopts import Parameter

from wholestack.claim import Claim
from wholestack.cli.evals_goal import GOALS, goal_folder
from wholestack.cli.output import parse_duration, print_json
from wholestack.errors import InputError
from wholestack.evals.gathering import read_models
from wholestack.evals.goals import read_goal
from wholestack.evals.measured import directions_of
from wholestack.evals.proxies import (
    Agreement,
    ProxyReport,
    column_ranked,
    describe,
    goal_ranked,
    keep,
    measure_proxies,
)
from wholestack.evals.proxy_claims import default_share, seal_proxy, settle_proxies
from wholestack.evals.ranking import RankAgreement
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, Finding
from wholestack.finding import exit_code as findings_exit_code
from wholestack.record import to_builtins

Flag = Annotated[bool, Parameter(negative="")]
Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]


def proxy(
    *inputs: str,
    goal: str | None = None,
    target: str | None = None,
    better: Literal["higher", "lower"] | None = None,
    matters: float = 0.0,
    metric: Names = (),
    higher: Names = (),
    lower: Names = (),
    seal: Names = (),
    at_least: float | None = None,
    valid: str = "180d",
    settle: Flag = False,
    by: Literal["content", "id"] = "content",
    goals: Path = GOALS,
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Measure how well cheap metrics rank models or settings as the target does, with intervals over models.

    Exit codes: 0 every metric ranks better than chance; 1 one ranks the other way round, or a claim broke; 3 the
    models are too few to tell; 2 usage, bad input, or results of different items.

    Parameters
    ----------
    inputs
        Tables (CSV, TSV or JSONL: one row a model, columns model, NAME and NAME_se) or result folders of evals score
        and evals write, which give share_right; MODEL=FOLDER where the goal knows the model by another name. Folders
        of one model stand in one row; those of one purpose must be of the same items.
    goal
        Name of a recorded goal, whose measurements are the target; default the only one there is.
    target
        Column of the table, or metric of the folders, that is the target, instead of a goal; for instance
        share_right.
    better
        Direction of the target column.
    matters
        Smallest difference of the target column that counts.
    metric
        Metrics to look at; default every column of numbers.
    higher
        Metrics that are better when higher, where the name does not say it.
    lower
        Metrics that are better when lower, where the name does not say it.
    seal
        Metrics for which to seal the claim that they rank as the goal does.
    at_least
        Share of pairs that such a claim states; default the lower end of today's interval. From it follows after
        how many new models the claim is looked at.
    valid
        How long such a claim stands open; models first measured later do not count.
    settle
        Settle the open claims of the goal by models that were measured since. Ask as often as you like: a claim is
        looked at after the numbers of new models that it names, and is unknown in between.
    by
        content: folders are of the same items where all that was read and judged by is the same. id: the prompts may
        differ.
    goals
        Folder of all goals.
    seed
        Of the bootstrap.
    json
        Print one JSON document.
    """
    rows = read_models(inputs, by=by)
    if seed < 0:
        raise InputError(f"seed is {seed}, must not be negative")
    rng = np.random.default_rng(seed)
    now = time.time()
    folder = None if target else goal_folder(goals, goal)
    if folder is None and (seal or settle):
        raise InputError("only a recorded goal has claims", remedy="record it: wholestack evals goal set")
    directions = directions_of(rows, wanted=metric, higher=higher, lower=lower, aside=target)
    ranked = (
        goal_ranked(folder, rows, directions)
        if folder
        else column_ranked(rows, directions, target=target or "", better=better, matters=matters)
    )
    report = measure_proxies(ranked, at=now, rng=rng)
    settled: list[Finding] = []
    sealed: list[Claim] = []
    if folder is not None:
        keep(folder, report)
        settled = settle_proxies(folder, ranked, at=now) if settle else []
        sealed = [_seal(folder, report, each, at_least, now=now, valid_s=parse_duration(valid)) for each in seal]
    if json:
        print_json(
            {
                **to_builtins(report),
                "notes": {each.metric: describe(each) for each in report.agreements},
                "settled": [to_builtins(each) for each in settled],
                "sealed": [to_builtins(each) for each in sealed],
            }
        )
    else:
        _print(report, measure=read_goal(folder).measure if folder else "")
        for each in settled:
            print(
                "\n" + _wrapped(f"{each.status} {each.part}: {'; '.join(filter(None, [*each.evidence, each.cause]))}")
            )
        for claim in sealed:
            print("\n" + _wrapped(f"sealed {claim.id}: {claim.statement}"))
    return _code(report, settled)


def _seal(
    folder: Path, report: ProxyReport, metric: str, at_least: float | None, *, now: float, valid_s: float
) -> Claim:
    found = report.agreement(metric)
    at_least = default_share(found) if at_least is None else at_least
    return seal_proxy(folder, found, at_least=at_least, at=now, valid_until=now + valid_s)


def _code(report: ProxyReport, settled: list[Finding]) -> int:
    code = findings_exit_code(settled) if settled else EXIT_OK
    if report.status == "fail" or code == EXIT_FINDINGS:
        return EXIT_FINDINGS
    return EXIT_UNKNOWN if report.status == "unknown" or code else EXIT_OK


def _print(report: ProxyReport, *, measure: str) -> None:
    first = report.agreements[0]
    print(_wrapped(f"target {report.target}{f': {measure}' if measure else ''}"))
    print(f"  {report.better} is better; {first.models} models")
    print(f"  {first.pairs} of {first.all_pairs} pairs are told apart by the target itself{_why(report)}")
    if first.target_reliability is not None:
        print(f"  {100 * first.target_reliability:.0f} % of its variance between models is not measurement error")
    print(f"\n{'':<22}  {'pairs ranked alike':<19}  {'Kendall tau-b':<22}  regret")
    for each in report.agreements:
        print(f"{_cut(each.metric):<22}  {_rank(each.share):<19}  {_rank(each.tau):<22}  {each.regret.value:.3g}")
    print(f"{'a choice at random':<22}  {'0.50':<19}  {'0.00':<22}  {first.regret.by_chance:.3g}")
    print(f"intervals cover with probability {report.level:g}; regret: lost by choosing with the metric")
    print()
    for each in report.agreements:
        print(_wrapped(f"{each.metric}: {describe(each)}"))
        for line in _more(each):
            print(_wrapped(f"  {line}"))
    _print_versus(report)
    for model, reason in report.left_out.items():
        print(f"left out {model}: {reason}")


def _why(report: ProxyReport) -> str:
    floor = f" by {report.matters:g} or more" if report.matters else ""
    return floor if report.target_errors else f"{floor}\n  (its errors are not known, so every difference counts)"


def _more(each: Agreement) -> list[str]:
    lines = [f"Spearman {_rank(each.spearman)}"]
    if each.tau_corrected is not None:
        lines.append(
            f"measurement errors taken out: tau {_rank(each.tau_corrected)}, Spearman {_rank(each.spearman_corrected)}"
        )
    lost = each.regret
    told = {True: "", False: ", which the target's own errors do not tell apart", None: ""}[lost.told]
    lines.append(
        f"it takes {lost.picked}"
        + ("" if lost.value == 0 else f" where {lost.best} is best{told}")
        + f"; regret {lost.value:.3g} ({lost.interval.low:.3g} to {lost.interval.high:.3g})"
    )
    if each.models_wanted is not None:
        lines.append(f"too few models: about {each.models_wanted} would give an interval no wider than 0.3")
    return lines


def _print_versus(report: ProxyReport) -> None:
    if not report.versus:
        return
    apart = [each for each in report.versus if each.told_apart]
    alike = [each for each in report.versus if not each.told_apart]
    for each in apart:
        difference = f"{each.difference:+.2f} of pairs, p = {each.p_value:.2g}"
        print(_wrapped(f"{each.first} ranks better than {each.second} ({difference})"))
    best = report.agreements[0].metric
    with_best = [each.second for each in alike if each.first == best]
    if with_best:
        print(_wrapped(f"cannot be told apart from {best}: {', '.join(with_best)}"))
    others = len(alike) - len(with_best)
    if others:
        noun = "pair of metrics" if others == 1 else "pairs of metrics"
        print(f"{others} further {noun} cannot be told apart either (--json lists all)")


def _rank(rank: RankAgreement | None) -> str:
    return "not known" if rank is None else f"{rank.value:.2f} ({rank.interval.low:.2f} to {rank.interval.high:.2f})"


def _wrapped(line: str) -> str:
    indent = "    " if line.startswith(" ") else "  "
    return fill(line, width=80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _cut(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"
