"""``wholestack evals signal``: how far models are apart against how far one is from itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.evals_goal import GOALS, stands_for
from wholestack.cli.output import print_json
from wholestack.errors import InputError
from wholestack.evals.loading import load_scored
from wholestack.evals.patterns import TOO_SLOW, Bounded, TooSlowError, compiled
from wholestack.evals.proxies import proxy_notes
from wholestack.evals.scored import ScoredItems
from wholestack.evals.signal import ITEMS_SHOWN, MetricSignal, SignalReport, SignalToNoise, signal_report
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]


def signal(
    *results: str,
    pattern: str = "",
    metric: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    common: Json = False,
    shown: int = ITEMS_SHOWN,
    goals: Path = GOALS,
    json: Json = False,
) -> int:
    """Say how far models are apart against how far one model is from itself over seeds or last checkpoints.

    Exit codes: 0 measured; 3 fewer than three models, or repeats that do not differ at all, so that the noise is
    unknown; 2 usage, bad input, or results that do not belong together.

    Parameters
    ----------
    results
        Two or more results for each of two or more models, as model=folder; or folders alone with --pattern.
    pattern
        Regular expression (of the library regex, reads as Python's re) with one group, searched in each result's model
        name: the group is the model, and what differs besides it is a repeat, for instance '^(.*)-seed'.
    metric
        Metrics, each with its own --metric, as in wholestack evals compare; default answer_bpb, choice_nll and
        accuracy, of written answers share_right.
    common
        Take the items in common where the results are of different items.
    shown
        Most items listed for a metric.
    goals
        Folder of all goals, for the note on what a metric stands for.
    json
        Print one JSON document.
    """
    found = signal_report(_grouped(results, pattern), metrics=metric, common=common)
    notes = proxy_notes(goals, (each.metric for each in found.metrics))
    if json:
        print_json(to_builtins(found) | {"stands_for": notes})
    else:
        print("\n".join([*_lines(found, max(0, shown)), "", stands_for(notes)]))
    return EXIT_OK if found.can_tell else EXIT_UNKNOWN


def _grouped(results: Sequence[str], pattern: str) -> dict[str, list[ScoredItems]]:
    groups: dict[str, list[ScoredItems]] = {}
    for each in results:
        name, equals, folder = each.partition("=")
        named = bool(equals) and not Path(each).exists()
        result = load_scored(Path(folder if named else each))
        groups.setdefault(name if named else _model_of(result, pattern, each), []).append(result)
    return groups


def _model_of(result: ScoredItems, pattern: str, given: str) -> str:
    if not pattern:
        raise InputError(f"{given}: of which model is it a repeat?", remedy="write model=folder, or give --pattern")
    try:
        groups = compiled(pattern)
    except InputError as error:
        raise InputError(f"--pattern {pattern!r} {error.message}") from error
    try:
        match = Bounded(f"--pattern {pattern!r}")(lambda left: groups.search(result.name, timeout=left()))
    except TooSlowError as error:
        raise InputError(f"--pattern {pattern!r}: {TOO_SLOW}: {result.name!r}", remedy="write it simpler") from error
    if match is None or not match.re.groups:
        raise InputError(
            f"{given}: --pattern {pattern!r} finds no group in its model name {result.name!r}",
            remedy="put the model into brackets, for instance '^(.*)-seed'",
        )
    return str(match[1])


def _lines(found: SignalReport, shown: int) -> Iterator[str]:
    yield f"{len(found.models)} models, {found.repeats} repeats of each, {found.items:,} items scored in every result"
    if found.not_by_all:
        yield f"{found.not_by_all:,} items were not scored in every result and are left out"
    if found.passed_over:
        yield f"{found.passed_over} results are left out: other models have fewer repeats"
    for warning in found.warnings:
        yield f"note: {warning}"
    yield ""
    yield f"{'metric':<24} {'signal':>8} {'noise':>8} {'ratio':>7}  {f'{found.level:.0%} interval':<16} {'decides':>8}"
    for each in found.metrics:
        yield _row(each.metric.partition("[")[0], each.whole)
    for each in found.metrics:
        yield from _by_source(each)
        yield from _by_item(each, shown)
    yield ""
    yield "signal: spread between models, noise taken out; noise: spread over repeats."
    yield "decides: pairs of models that single runs order as the mean of their other"
    yield "runs does. Below a ratio of 1, one run of each model decides little."
    if any(part.ratio is None for each in found.metrics for part in (each.whole, *(s.found for s in each.sources))):
        yield "unknown: the repeats of each model are all alike there, which does not say that"
        yield "others would be; the signal may then hold noise as well."
    yield "surely: at most one in ten of the items named carries none; more models and"
    yield "repeats would name more."


def _row(name: str, found: SignalToNoise, *, indent: str = "") -> str:
    ratio = "-" if found.ratio is None else f"{found.ratio:.2f}"
    span = f"{found.interval.low:.2f} to {found.interval.high:.2f}" if found.interval else "unknown"
    decides = "unknown" if found.decision_accuracy is None else f"{found.decision_accuracy:.0%}"
    noise = "unknown" if found.ratio is None else f"{found.noise:.4f}"
    label = f"{indent}{name}"
    label = label if len(label) <= 24 else f"{label[:21]}..."
    return f"{label:<24} {found.signal:>8.4f} {noise:>8} {ratio:>7}  {span:<16} {decides:>8}"


def _by_source(each: MetricSignal) -> Iterator[str]:
    if each.sources:
        yield ""
        yield f"{each.metric.partition('[')[0]} by source, the clearest first"
        for part in each.sources:
            yield _row(part.source, part.found, indent="  ")


def _by_item(each: MetricSignal, shown: int) -> Iterator[str]:
    items = each.per_item
    yield ""
    yield f"{each.metric.partition('[')[0]}: {items.carrying:,} of {items.items:,} items surely carry signal"
    for item in [item for item in items.ratios if item.carries_signal][:shown]:
        ratio = "      -" if item.ratio is None else f"{item.ratio:>7.2f}"
        label = f"{item.id}  {item.source}"
        yield f"  {ratio}  {label if len(label) <= 68 else f'{label[:65]}...'}"
