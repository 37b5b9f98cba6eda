"""Deeds: what is done to a host is written down before it happens and again when it ended, in the history's events.

Killed in between, the story says ``X_begun``, and ``X_unknown`` where the connection broke: the next run looks first
whether it is so, and writes the end, or does it again where that is allowed. One process at a time acts on the hosts of
a history: the lock is the kernel's and ends with the process.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import HistoryError
from wholestack.health.history.spans import Event
from wholestack.health.history.store import History
from wholestack.health.operations.story import Doing, FaultStory
from wholestack.journal import held

Clock = Callable[[], float]


@dataclass(slots=True)
class Deed:
    """One that is going on."""

    unknown: str = ""
    """Set where nobody knows how far it came: why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Writes down what one process does."""

    history: History
    by: str
    """Who runs it."""
    clock: Clock
    """Seconds since the epoch."""

    @contextmanager
    def deed(self, story: FaultStory, deed: Doing, *, says: str, why: str) -> Iterator[Deed]:
        """Around an action: it failed if the block raises, is unknown if the block says so, else it ended.

        Args:
            story: In which it happens.
            deed: What is done.
            says: The exact command.
            why: The cause.
        """
        self.note(story, f"{deed}_begun", says=says, why=why)
        going = Deed()
        try:
            yield going
        except Exception as error:
            self.note(story, f"{deed}_failed", says=str(error), why=why)
            raise
        self.note(story, f"{deed}_unknown" if going.unknown else f"{deed}_ended", says=going.unknown or says, why=why)

    def note(self, story: FaultStory, kind: str, *, says: str, why: str) -> None:
        """One event of a story."""
        self.history.tell(
            Event(at=self.clock(), host=story.host, kind=kind, subject=story.id, says=says, by=self.by, why=why)
        )


@contextmanager
def acting_alone(history: Path) -> Iterator[None]:
    """Keep other processes from acting by the same history.

    Raises:
        HistoryError: one does, or the lock cannot be made.
    """
    path = history.with_name(history.name + "-acting")
    with ExitStack() as stack:
        try:
            stack.enter_context(held(path))
        except BlockingIOError as error:
            raise HistoryError(
                f"{history}: another process acts by it", remedy="try again when that one is done"
            ) from error
        except OSError as error:
            raise HistoryError(f"{path}: {error.strerror}", remedy="make its folder writable") from error
        yield
