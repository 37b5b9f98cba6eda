"""Stories for a person: what was done about a fault, and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass

from wholestack.health.describing import bullet, indented
from wholestack.health.fixes.catalog import mended
from wholestack.health.history.account import find_machine
from wholestack.health.history.describing import stamp
from wholestack.health.history.spans import Event
from wholestack.health.history.store import History
from wholestack.health.operations.story import TRANSITIONS, FaultStory, Step, next_step, stories
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Record):
    """One story with its host's name, its events and its next step."""

    host: str
    story: FaultStory
    next: Step
    events: tuple[Event, ...]

    @property
    def is_open(self) -> bool:
        """Whether something is still to be seen or done."""
        return self.story.gone is None or self.next.action != "nothing"


def told_stories(history: History, host: str | None, *, now: float, everything: bool = False) -> list[Told]:
    """The stories of one host, or of all.

    Args:
        history: Open.
        host: Name or serial number; ``None`` for all.
        now: Seconds since the epoch.
        everything: Also those that are over.

    Raises:
        InputError: the history has no such host.
    """
    machine = find_machine(history, host).id if host is not None else None
    names = {each.id: each.name for each in history.machines()}
    events = history.events(machine)
    by_story: dict[str, list[Event]] = {}
    for event in events:
        if event.kind in TRANSITIONS:
            by_story.setdefault(event.subject, []).append(event)
    fixable = mended()
    told = [
        Told(
            host=names[each.host],
            story=each,
            next=next_step(each, fixable=(each.check, each.cause) in fixable),
            events=tuple(by_story.get(each.id, ())),
        )
        for each in stories(history.findings(machine), events, history.silences(), now=now)
    ]
    return [each for each in told if everything or each.is_open]


def describe_stories(told: Sequence[Told]) -> str:
    """For a terminal."""
    lines: list[str] = []
    for each in told:
        story = each.story
        part = f", {story.part}" if story.part not in ("", "host") else ""
        gone = f", gone {stamp(story.gone)}" if story.gone is not None else ""
        lines.append(f"{each.host}{part}: {story.cause} [{story.finding[:8]}]")
        lines.append(bullet("seen", f"{stamp(story.first)}{gone}; story {story.repeat} of its host in 30 days"))
        for event in each.events:
            lines.append(bullet("done", f"{stamp(event.at)} {event.kind.replace('_', ' ')} by {event.by}"))
            lines.append(indented(event.says, cut=True))
        lines.append(bullet("next", f"{each.next.action.replace('_', ' ')}: {each.next.why}"))
    lines.append(f"{len(told)} {'story' if len(told) == 1 else 'stories'}")
    return "\n".join(lines)
