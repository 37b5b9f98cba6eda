"""The text of a comparison, 80 columns wide."""

import textwrap
from collections.abc import Iterator

from wholestack.evals.comparison import FEWEST_CLUSTERS, MOST_ITEMS, Comparison, Pair
from wholestack.evals.statistics import DetectableDifference, Interval
from wholestack.evals.tasks import PURPOSES

WIDTH = 80
SOURCES_SHOWN = 10
_NAME_WIDTH = 44


def comparison_text(found: Comparison) -> str:
    """Everything that a comparison says, the verdict of every pair in plain words."""
    return "\n".join(
        [
            *_heading(found),
            *_models(found),
            *(_order(found) if len(found.models) > 2 else ()),
            *(line for pair in found.pairs for line in _pair(found, pair)),
        ]
    )


def letter(place: int) -> str:
    """Name of a model in the text: A, B, ... Z, A2, B2, ..."""
    return chr(ord("A") + place % 26) + (str(place // 26 + 1) if place >= 26 else "")


def verdict_text(found: Comparison, pair: Pair) -> str:
    """One sentence or two: which is better by how much, or what would have to be done to see it."""
    one, other = letter(pair.first), letter(pair.second)
    unit = f" {found.unit}" if found.unit else ""
    if pair.verdict == "same":
        return f"{one} and {other} are equal: {found.equal}."
    if pair.verdict == "unknown":
        return f"{one} and {other} cannot be told apart: {_why_not(found, pair, unit)}"
    better, worse = (other, one) if pair.verdict == "second" else (one, other)
    return (
        f"{better} is better than {worse} by {abs(pair.difference):.4g}{unit}{_interval(found, pair, absolute=True)}."
    )


def _why_not(found: Comparison, pair: Pair, unit: str) -> str:
    one, other = letter(pair.first), letter(pair.second)
    said = f"{other} - {one} is {pair.difference:+.4g}{unit}{_interval(found, pair)}. "
    if found.clusters < 2:
        return said + "All items are of one cluster, so nothing says how far the difference would scatter."
    if pair.detectable is None and pair.difference == 0:
        most = 1 - (1 - found.level) ** (1 / found.clusters)
        return f"alike on all {found.clusters:,} independent items; up to {most:.1%} of such items may yet differ."
    if pair.detectable is None or found.clusters < FEWEST_CLUSTERS:
        return said + f"{found.clusters} independent items are too few to say how far it would scatter."
    said += f"These items show {_detectable(pair.detectable)}; "
    if pair.items_needed:
        return (
            said + f"if the true one is as found, about {_rounded(pair.items_needed)} items like these would show it."
        )
    if pair.detectable.difference <= abs(pair.difference):
        reason = "with so many comparisons" if len(found.pairs) > 1 else "on so few items that only one has right"
        return said + f"the one found is larger, but {reason} it may be chance (p = {pair.p_holm:.2g})."
    return said + f"one as small as found would take more than {MOST_ITEMS:,} items."


def _rounded(count: int) -> str:
    """Two digits say as much as can be known."""
    step = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // step) * step:,}"


def _interval(found: Comparison, pair: Pair, *, absolute: bool = False) -> str:
    if pair.interval is None:
        return ""
    turned = pair.interval
    if absolute and pair.difference < 0:
        turned = Interval(low=-turned.high, high=-turned.low, level=turned.level)
    sign = "" if absolute else "+"
    alone = " for this pair alone" if len(found.pairs) > 1 else ""
    return f" ({turned.level:.0%} interval{alone} {turned.low:{sign}.4g} to {turned.high:{sign}.4g})"


def _heading(found: Comparison) -> Iterator[str]:
    direction = "lower" if found.lower_is_better else "higher"
    yield f"{found.metric}, {direction} is better{f', {found.unit}' if found.unit else ''}"
    yield from textwrap.wrap(PURPOSES[found.purpose], WIDTH)
    independent = "each taken as independent" if found.clusters == found.items else f"{found.clusters:,} clusters"
    yield f"{found.items:,} items scored by all, {independent}"
    if found.not_by_all:
        yield f"{found.not_by_all:,} more were not scored by every model and are not compared"
    if found.matched_by == "id":
        said = f"matched by id: the prompts of {found.prompts_differ:,} items differ, what is asked does not"
        yield from textwrap.wrap(said, WIDTH)
    for way in found.written_with:
        yield from textwrap.wrap(f"written in different ways: {way}", WIDTH, subsequent_indent="  ")
    yield ""


def _models(found: Comparison) -> Iterator[str]:
    yield f"   {'model':<{_NAME_WIDTH}}  {'value':>10}  {'error alone':>11}"
    ambiguous = _ambiguous(found)
    for place, model in enumerate(found.models):
        name = _tail(model.path, _NAME_WIDTH) if ambiguous else _cut(model.name, _NAME_WIDTH)
        error = "-" if model.standard_error is None else f"{model.standard_error:.4f}"
        yield f"{letter(place):<2} {name:<{_NAME_WIDTH}}  {model.value:>10.4f}  {error:>11}"
        for reason, count in model.unscorable.items():
            yield _cut(f"   {count:,} not scored: {reason}", WIDTH)
        if model.left_out:
            yield f"   {model.left_out:,} items of it are not in all results and are left out"


def _ambiguous(found: Comparison) -> bool:
    """Whether models are called alike where they are cut to fit, so that only their folders tell them apart."""
    return len({model.name[: _NAME_WIDTH - 3] for model in found.models}) < len(found.models)


def _pair(found: Comparison, pair: Pair) -> Iterator[str]:
    yield ""
    yield from textwrap.wrap(verdict_text(found, pair), WIDTH)
    if pair.verdict == "same":
        return
    yield from _indented(_evidence(found, pair))
    if not _neighbours(found, pair):
        return
    if pair.sources:
        yield from _sources(pair)
    flips = pair.flips
    variant = f" ({flips.normalisation})" if flips.normalisation else ""
    yield from _indented(
        f"right answers{variant}: only {letter(pair.first)} {flips.only_first:,},"
        f" only {letter(pair.second)} {flips.only_second:,}"
    )
    if pair.items_apart:
        yield from _items(found, pair)


def _neighbours(found: Comparison, pair: Pair) -> bool:
    """Whether nothing stands between the two in the order; of others the text gives the verdict alone."""
    places = {rank.model: place for place, rank in enumerate(found.ranking)}
    return abs(places[pair.first] - places[pair.second]) == 1


def _evidence(found: Comparison, pair: Pair) -> str:
    parts = []
    if pair.p_holm is not None:
        adjusted = f" for {len(found.pairs)} pairs (Holm)" if len(found.pairs) > 1 else ""
        parts.append(f"p = {pair.p_holm:.2g}{adjusted}")
    if pair.exact is not None:
        parts.append(
            f"exact test on {pair.exact.only_first_right + pair.exact.only_second_right:,} items that only one has"
            f" right: p = {pair.exact.p_value:.2g}"
        )
    if pair.detectable is not None and pair.verdict != "unknown":
        parts.append(f"these items show {_detectable(pair.detectable)}")
    return "; ".join(parts)


def _detectable(found: DetectableDifference) -> str:
    return f"a true difference of {found.difference:.2g} or more ({found.power:.0%} of times)"


def _sources(pair: Pair) -> Iterator[str]:
    judged = sorted(
        (each for each in pair.sources if each.interval), key=lambda each: (not each.differs, -abs(each.difference))
    )
    if judged:
        yield f"  {'source':<28} {'items':>7}  {f'{letter(pair.second)} - {letter(pair.first)}':>9}  interval"
    for each in judged[:SOURCES_SHOWN]:
        span = f"{each.interval.low:+.4f} to {each.interval.high:+.4f}" if each.interval else ""
        mark = "differs" if each.differs else ""
        yield f"  {_cut(each.source, 28):<28} {each.items:>7,}  {each.difference:>+9.4f}  {span:<22}{mark}".rstrip()
    said = []
    if len(judged) > SOURCES_SHOWN:
        said.append(f"{len(judged) - SOURCES_SHOWN} more sources (--json has all)")
    if judged:
        said.append(f"intervals are of one source; 'differs' holds for all {len(judged)} together (Holm)")
    if few := len(pair.sources) - len(judged):
        said.append(f"{few} sources of fewer than {FEWEST_CLUSTERS} independent items are not judged by themselves")
    yield from _indented("; ".join(said))


def _items(found: Comparison, pair: Pair) -> Iterator[str]:
    one, other = letter(pair.first), letter(pair.second)
    yield f"  furthest apart in the {found.standing}: {one}, {other}"
    for each in pair.items_apart:
        context = _tail(each.context, 34)
        yield f"  {each.first:>9.2f} {each.second:>9.2f}  {_cut(f'{context} | {each.answer}', 56)}".rstrip()
        if found.purpose != "base":
            yield _cut(f"{'':>24}{one}: {_cut(each.first_given, 24)} | {other}: {_cut(each.second_given, 24)}", WIDTH)


def _order(found: Comparison) -> Iterator[str]:
    yield ""
    yield "from best to worst (details below for neighbours; --json has all pairs):"
    ambiguous = _ambiguous(found)
    for rank in found.ranking:
        apart = ", ".join(letter(other) for other in rank.not_apart_from)
        note = f"  not to be told from {apart}" if apart else ""
        model = found.models[rank.model]
        name = _tail(model.path, 30) if ambiguous else _cut(model.name, 30)
        yield _cut(f"  {letter(rank.model):<2} {model.value:>10.4f}  {name:<30}{note}".rstrip(), WIDTH)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _tail(text: str, width: int) -> str:
    return text if len(text) <= width else f"...{text[3 - width :]}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
