"""A history as text for a person: 80 columns, what matters first."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from wholestack.health.describing import WORDS, bullet, indented
from wholestack.health.history.account import STANDINGS, FleetHistory, HostHistory, Story
from wholestack.health.history.batches import Batch
from wholestack.health.history.changes import Effect
from wholestack.health.history.failures import Offender
from wholestack.health.history.rates import Rate
from wholestack.health.history.silences import YEAR_S, Silence
from wholestack.health.history.spans import Event
from wholestack.health.names import fold

MOST = 10
"""Lines of one section; ``--json`` has all."""
LAST_S = 253_402_300_799.0
"""End of the year 9999."""
CLEAR = 0.05
"""q below which a change of version is said to have done something."""


def describe_fleet(found: FleetHistory) -> str:
    """Counts, then repeat offenders, what flaps, what shares a batch, what changes did."""
    ago = duration(found.at - found.last)
    lines = [
        f"{_count(found.hosts, 'host')}, {_count(found.sweeps, 'sweep')} in {duration(found.last - found.since)};"
        f" the latest {ago} ago",
        bullet("now", _standings(found)),
        bullet("failures", _failures(found.failures, "of a host")),
        *_section("repeats", _of_offenders(found), [_offender(each) for each in found.offenders]),
        *_section(
            "flapping",
            f"{_count(len(found.flapping), 'finding')} came back at least three times in 90 days",
            [f"{each.host} {each.part}: {each.cause}, {each.returns} times" for each in found.flapping],
        ),
        *_section("batch", _of_batches(found), [_batch(each) for each in found.batches]),
        *_section("changes", *_of_effects(found.effects)),
    ]
    return "\n".join(lines)


def describe_host(found: HostHistory) -> str:
    """How it stands, what was found and is, how often it failed, what it is made of and what was changed."""
    serial = f", serial {found.host.serial}" if found.host.serial else ", its serial number is not known"
    lines = [
        f"{found.host.name} ({found.host.kind}{serial}): {found.standing}",
        bullet("seen", f"first {stamp(found.first)}, last {stamp(found.last)}, {_count(found.looks, 'look')}"),
        *_asked_in_part(found),
        bullet("failures", _failures(found.rate, "")),
    ]
    if found.offender is not None:
        lines.append(bullet("repeats", _offender(found.offender, names_host=False)))
    for each in found.stories[: 2 * MOST]:
        lines += _story(each)
    if len(found.stories) > 2 * MOST:
        lines.append(indented(f"and {len(found.stories) - 2 * MOST} more findings (--json has them)"))
    lines += [
        bullet("event", f"{stamp(each.at)} {each.kind.replace('_', ' ')}: {each.says}{_who(each.by, each.why)}")
        for each in tuple(without_begun(found.events))[-MOST:]
    ]
    lines += [
        bullet("changed", f"{stamp(each.gone or 0.0)} {each.name}{_at(each.part)} was {each.value}")
        for each in sorted(found.changes, key=lambda each: each.gone or 0.0)[-MOST:]
    ]
    facts = ", ".join(f"{each.name}{_at(each.part)} {each.value}" for each in found.facts if not each.part)
    lines.append(bullet("facts", facts or "none known"))
    lines.append(bullet("parts", f"{len(found.seats)} with a serial number (--json has them)"))
    lines += [describe_silence(each) for each in found.silences]
    return "\n".join(lines)


def _asked_in_part(found: HostHistory) -> list[str]:
    if found.last_in_full == found.last:
        return []
    last = f"last {stamp(found.last_in_full)}" if found.last_in_full is not None else "never"
    return [bullet("in full", f"{last}; since then only with checks left out, which says nothing of the rest")]


def without_begun(events: Sequence[Event]) -> Iterator[Event]:
    """What ended needs no line that it was begun."""
    for event, after in zip_longest(events, events[1:]):
        deed, _, how = event.kind.rpartition("_")
        if how != "begun" or after is None or (after.kind, after.subject) != (f"{deed}_ended", event.subject):
            yield event


def describe_silence(each: Silence, host: str = "") -> str:
    """One silence, a line or two."""
    where = f" on {host}" if host else ""
    return bullet("silence", f"{each.id}: {each.scope}{where} until {stamp(each.end)}, by {each.by}: {each.reason}")


def duration(seconds: float) -> str:
    """In the largest unit that leaves at least two of it: ``45 s``, ``12 min``, ``3 h``, ``40 d``, ``2.5 years``."""
    for unit, size in (("years", YEAR_S), ("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            number = seconds / size
            return f"{number:.1f} {unit}" if number < 10 and unit == "years" else f"{number:,.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def stamp(at: float) -> str:
    """Date and time in UTC; of a time that no calendar has, the nearest one that has a date."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(max(min(at, LAST_S), 0.0)))


def _standings(found: FleetHistory) -> str:
    counts = [f"{found.standings[each]:,} {each}" for each in reversed(STANDINGS) if found.standings[each]]
    silenced = f"; {_count(found.silenced, 'finding')} silenced" if found.silenced else ""
    return ", ".join(counts) + silenced


def _failures(found: Rate, of: str) -> str:
    if not found.time_s:
        return "it was never watched while fit"
    watched = f"{found.count:,} in {duration(found.time_s)} watched and fit" if not of else f"{found.count:,}"
    low, high = found.mean_time_low_s, found.mean_time_high_s
    if found.mean_time_s is None:
        return f"{watched}; mean time between failures {of} at least {duration(low)} (95 %)".replace("  ", " ")
    ends = f"{duration(low)} to {duration(high) if high is not None else 'any'}"
    mean = duration(found.mean_time_s)
    return f"{watched}; mean time between failures {of} {mean} (95 %: {ends})".replace("  ", " ")


def _section(word: str, head: str, rows: Sequence[str]) -> list[str]:
    lines = [bullet(word, head)]
    lines += [indented(f"- {row}", hang=2) for row in rows[:MOST]]
    if len(rows) > MOST:
        lines.append(indented(f"- and {len(rows) - MOST} more (--json has them)"))
    return lines


def _of_offenders(found: FleetHistory) -> str:
    chance = f"{found.by_chance:.1f}" if found.by_chance < 10 else f"{found.by_chance:.0f}"
    return (
        f"{_count(len(found.offenders), 'host')} failed again sooner than {1 - found.false_rate:.0%} of sound ones"
        f" would; if all were sound, up to {chance} would be here"
    )


def _offender(each: Offender, *, names_host: bool = True) -> str:
    name = f"{each.host}: " if names_host else ""
    causes = f" ({'; '.join(each.causes)})" if each.causes else ""
    return (
        f"{name}{_count(each.failures, 'failure')}, a sound one has as many with p {each.p_all:.1g}; again after"
        f" {duration(each.gap_s)}, named at the {_ordinal(each.at_failure)}{causes}"
    )


def _of_batches(found: FleetHistory) -> str:
    head = f"{_count(len(found.batches), 'batch', 'batches')} with too many of one fault"
    return f"{head} ({found.tests:,} tests of {_count(found.families, 'kind')} of fault; at most 5 % false)"


def _batch(each: Batch) -> str:
    said = (
        f"{each.cause}: {each.hits} of {each.cases} {each.units} with it have {each.factor} {each.value}, as"
        f" {each.having:,} of {each.total:,} have (q {each.q:.1g}); {fold(each.hosts)}"
    )
    return said + (f"; cannot be told apart from {', '.join(each.alike[:4])}" if each.alike else "")


def _of_effects(found: Sequence[Effect]) -> tuple[str, list[str]]:
    clear = [each for each in found if each.q <= CLEAR]
    head = f"{len(clear)} of {_count(len(found), 'change')} of version made hosts fail more or less often"
    return head, [_effect(each) for each in clear]


def _effect(each: Effect) -> str:
    before, after = (side.count / side.time_s * YEAR_S for side in (each.before, each.after))
    times = f"{each.ratio:.2g} times" if each.ratio is not None else "from none"
    ends = f"{each.low:.2g} to {f'{each.high:.2g}' if each.high is not None else 'any'}"
    return (
        f"{each.fact} {each.old} -> {each.new} on {_count(each.hosts, 'host')}: {before:.2g} -> {after:.2g} failures"
        f" a host and year, {times} ({ends}), q {each.q:.1g}"
    )


def _story(each: Story) -> Iterable[str]:
    word = "silenced" if each.silenced_until and each.is_open else WORDS[each.status] if each.is_open else "was"
    again = f", came back {each.returns} times" if each.returns > 1 else ", came back once" if each.returns else ""
    blind = " (not looked at since)" if each.is_blind else ""
    part = f", {each.part}" if each.part not in ("", "host") else ""
    until = f", silenced until {stamp(each.silenced_until)}" if each.silenced_until else ""
    yield bullet(word, f"{each.cause}{part}  [{each.check} {each.id[:8]}]")
    yield indented(f"first {stamp(each.first)}, last {stamp(each.last)}{blind}{again}{until}")
    if each.is_open:
        yield from (indented(line, cut=True) for line in each.evidence[:1])


def _ordinal(number: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(number, f"{number}th")


def _who(by: str, why: str) -> str:
    return f" ({by}: {why})" if by else ""


def _at(part: str) -> str:
    return f" of {part}" if part else ""


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
