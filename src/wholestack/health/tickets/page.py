"""A ticket as a page of markdown. What a host said stands in blocks of code that it cannot close."""

import re
import time
from collections.abc import Iterable, Iterator

from wholestack.health.owners.owner import SAYS
from wholestack.health.tickets.ticket import CounterRow, Past, Ticket

WIDTH = max(map(len, SAYS.values()))
"""Of the first column."""


def page(ticket: Ticket) -> str:
    """The page, the same for the same ticket."""
    return "\n".join(_lines(ticket)) + "\n"


def _lines(ticket: Ticket) -> Iterator[str]:
    yield f"# {ticket.host}: {_plain(ticket.cause)}"
    yield ""
    yield f"To: {ticket.to}. Finding `{ticket.finding}` ({ticket.status}), seen {stamp(ticket.at)} UTC by the check"
    yield f"`{ticket.check}`."
    yield ""
    if ticket.is_complete:
        yield "This ticket is complete."
    else:
        yield "**This ticket is not complete.** Missing:"
        yield ""
        yield from (f"- {SAYS[each.item]}: {_plain(each.missing)}" for each in ticket.missing)
    yield from _section("What is asked for", [ticket.remedy])
    yield from _section("The part", _facts(ticket))
    yield from _section("Serial numbers", _parts(ticket))
    yield from _section("Versions", _versions(ticket))
    yield from _section("Evidence", ticket.evidence)
    yield from _section("Log lines", ticket.log_lines)
    yield from _section("Counters", _counters(ticket.counters))
    yield from _section("History", _past(ticket.past) if ticket.past else ["not known"])
    yield from _section("Also found on this host", [f"{each.status:7} {each.part or 'host'}: {each.cause} ({each.id})"
                                                   for each in ticket.beside])  # fmt: skip
    yield from _section("Often asked for besides", ticket.asks)
    yield from _section("Left out", [*ticket.cut, *_about_masked(ticket.masked)])


def stamp(at: float | None) -> str:
    """Date and time in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) if at is not None else "-"


def _section(title: str, rows: Iterable[str]) -> Iterator[str]:
    lines = list(rows)
    if not lines:
        return
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ("", f"## {title}", "", f"{fence}text", *lines, fence)


def _plain(text: str) -> str:
    """In a line of markdown: without what means something there."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)


def _facts(ticket: Ticket) -> Iterator[str]:
    yield f"{'host':{WIDTH}} {ticket.host} (kind {ticket.kind})"
    yield f"{'part':{WIDTH}} {ticket.part}"
    skipped = ("evidence", "log_lines", "counters", "counters_before", "history", "remedy")
    for each in ticket.data:
        if each.item not in skipped and not each.missing:
            source = f"  [{each.source}]" if each.source != "this sweep" else ""
            yield f"{SAYS[each.item]:{WIDTH}} {each.value}{source}"


def _parts(ticket: Ticket) -> Iterator[str]:
    for each in ticket.parts:
        lot = f", lot {each.lot}" if each.lot else ""
        yield f"{each.place:{WIDTH}} {each.serial}  {each.model}{lot}  [{each.source}]"


def _versions(ticket: Ticket) -> Iterator[str]:
    for each in ticket.versions:
        yield f"{each.name:{WIDTH}} {each.value}{'  [' + ', '.join(each.parts[:8]) + ']' if each.parts else ''}"


def _counters(rows: Iterable[CounterRow]) -> list[str]:
    lines = [f"{'before':>20} {'after':>20}  counter"]
    times = set()
    for each in rows:
        lines.append(f"{_number(each.before):>20} {_number(each.after):>20}  {each.name} of {each.part}")
        times.add((each.before_at, each.after_at))
    spans = sorted(times, key=lambda pair: (pair[0] or 0.0, pair[1] or 0.0))
    lines += [f"read {stamp(before)} and {stamp(after)} UTC by the host's clock" for before, after in spans[:8]]
    return lines if len(lines) > 1 else []


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _past(past: Past) -> Iterator[str]:
    gone = f", no longer seen {stamp(past.gone)}" if past.gone is not None else ", still there"
    yield f"first seen {stamp(past.first)}{gone}; came back {past.returns} times"
    yield f"story {past.repeat} of this host within 30 days"
    if not past.tried:
        yield "nothing was tried"
    for event in past.tried:
        by = f" by {event.by}" if event.by else ""
        why = f" ({event.why})" if event.why else ""
        yield f"{stamp(event.at)} {event.kind.replace('_', ' ')}{by}: {event.says}{why}"


def _about_masked(count: int) -> list[str]:
    return [f"in {count} texts something was masked that looks like a secret"] if count else []
