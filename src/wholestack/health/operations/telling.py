"""Stories for a person: what was done about a fault, and what comes next."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wholestack.finding import WORST_FIRST
from wholestack.health.describing import bullet, headed, indented
from wholestack.health.fixes.catalog import mended
from wholestack.health.history.account import find_machine
from wholestack.health.history.describing import stamp, without_begun
from wholestack.health.history.spans import Event
from wholestack.health.history.store import History
from wholestack.health.operations.story import TRANSITIONS, Action, FaultStory, Step, next_step, stories
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Record):
    """One story with its host's name, its events and its next step."""

    host: str
    story: FaultStory
    next: Step
    command: str
    """For the next step; empty where a person has nothing to do here."""
    events: tuple[Event, ...]

    @property
    def is_open(self) -> bool:
        """Whether something is still to be seen or done."""
        return self.story.gone is None or self.next.action != "nothing"


def told_stories(history: History, host: str | None, *, now: float, everything: bool = False) -> list[Told]:
    """The stories of one host, or of all that are there, the worst first, of these the oldest.

    Args:
        history: Open.
        host: Name or serial number; ``None`` for all, without hosts that were retired or moved on.
        now: Seconds since the epoch.
        everything: Also those that are over, and those of such hosts.

    Raises:
        InputError: the history has no such host.
    """
    machine = find_machine(history, host).id if host is not None else None
    machines = history.machines()
    names = {each.id: each.name for each in machines}
    hidden = {each.id for each in machines if not each.is_named} if machine is None and not everything else set()
    events = history.events(machine)
    by_story: dict[str, list[Event]] = {}
    for event in events:
        if event.kind in TRANSITIONS:
            by_story.setdefault(event.subject, []).append(event)
    fixable = mended()
    spans = history.findings(machine)
    seen = {each.id: now if each.seen is None and each.gone is None else each.seen or each.first for each in spans}
    told = []
    for each in stories(spans, events, history.silences(), now=now):
        if each.host in hidden:
            continue
        step = next_step(each, fixable=(each.check, each.cause) in fixable)
        told.append(
            Told(
                host=names[each.host],
                story=each,
                next=step,
                command=_command(step, names[each.host], each, history.folder_at(each.host, seen[each.finding])),
                events=tuple(by_story.get(each.id, ())),
            )
        )
    shown = [each for each in told if everything or each.is_open]
    return sorted(shown, key=lambda each: (each.story.gone is not None, WORST_FIRST.index(each.story.status)))


def _command(step: Step, host: str, story: FaultStory, sweep: str) -> str:
    """What a person types for a step; it shows what would be done, and does it with ``--apply``."""
    words: Mapping[Action, tuple[str, ...]] = {
        "drain": ("drain", host),
        "undrain": ("undrain", host),
        "fix": ("fix", story.finding[:8], "--in", sweep),
        "prove": ("fix", story.finding[:8], "--in", sweep),
        "hand_over": ("ticket", story.finding[:8], "--in", sweep),
    }
    return shlex.join(("wholestack", "health", *words[step.action])) if step.action in words else ""


def describe_stories(told: Sequence[Told]) -> str:
    """For a terminal."""
    lines: list[str] = []
    for each in told:
        story = each.story
        part = f", {story.part}" if story.part not in ("", "host") else ""
        gone = f", gone {stamp(story.gone)}" if story.gone is not None else ""
        lines.append(headed(f"{each.host}{part}: {story.cause} [{story.finding[:8]}]"))
        lines.append(bullet("seen", f"{stamp(story.first)}{gone}; story {story.repeat} of its host in 30 days"))
        for event in without_begun(each.events):
            lines.append(bullet("done", f"{stamp(event.at)} {event.kind.replace('_', ' ')} by {event.by}"))
            lines.append(indented(event.says, cut=True))
        lines.append(bullet("next", f"{each.next.action.replace('_', ' ')}: {each.next.why}"))
        if each.command:
            lines.append(f"         {each.command}")
    lines.append(f"{len(told)} {'story' if len(told) == 1 else 'stories'}")
    return "\n".join(lines)
