"""What a long job tells whoever watches it. The command draws it; the library only calls a function."""

from collections.abc import Callable
from dataclasses import dataclass

from wholestack.experiments.records import PhaseName


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One moment of a rehearsal."""

    phase: PhaseName
    done: int
    """Trials or steps done in this phase."""
    total: int | None
    """About how many there will be; ``None`` if nobody can say."""
    best: float | None
    """Best value of the metric so far."""
    unit: str
    """Of the metric."""
    left_s: float
    """Honest guess of the wall seconds until everything is done."""
    note: str
    """What is happening, in a few words."""


Watcher = Callable[[Progress], None]


def nobody(_: Progress) -> None:
    """A watcher that does not look."""
