"""Study: the stateful, durable side of a search. Ask for a suggestion, tell its outcome; everything else is `suggest`.

Whatever happens becomes one `StudyEvent`, and a study is nothing but the fold of its events. So a journal of events is
its whole state: a study made from a journal goes on as if it had never been interrupted, and its next suggestion is the
same bit by bit (on the same machine and libraries). One process at a time holds a study; its workers may be many.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, TypeAlias

import numpy as np

from wholestack.errors import InputError
from wholestack.journal import JournalWriter, read_journal
from wholestack.record import Record
from wholestack.search.carbs import CostFunction, Settings, suggest
from wholestack.search.dimensions import Value
from wholestack.search.models import Memory
from wholestack.search.pareto import FrontPoint, pareto_front
from wholestack.search.space import Space
from wholestack.search.trials import Budget, Direction, Suggestion, Trial, spent


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyHeader(Record):
    """What a study is; a journal begins with it and may not be continued with another."""

    space: tuple[str, ...]
    """Description of every dimension."""
    seed: int
    """The seed."""
    direction: Direction
    """Whether less or more output is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyEvent(Record):
    """One line of a study's journal: exactly one of the three is given."""

    SCHEMA: ClassVar[str] = "study-event/1"

    began: StudyHeader | None = None
    """The study was made."""
    asked: Suggestion | None = None
    """A suggestion was handed out."""
    told: Trial | None = None
    """An outcome became known."""


Recorder: TypeAlias = Callable[[StudyEvent], None]


class Study:
    """A search that is asked and told.

    Args:
        space: The search space.
        seed: The random stream of suggestion k derives from (seed, k).
        budget: Limits of cost; may differ when a study goes on.
        direction: Whether less or more output is better.
        cost: Known cost of params, used in place of the cost model.
        settings: Constants of the method.
        events: Earlier events, to go on from.
        record: Called with every new event before it counts; it must put it on the disk, or raise.

    Raises:
        InputError: the events are of another space, seed or direction.

    Example:
        >>> from wholestack.search import Budget, Log, Space, Study
        >>> study = Study(Space([Log("lr", centre=1e-3)]), seed=1)
        >>> asked = study.ask()
        >>> _ = study.tell(asked, output=2.5, cost=10.0)
        >>> study.best().params
        {'lr': 0.001}
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        budget: Budget | None = None,
        direction: Direction = "minimise",
        cost: CostFunction | None = None,
        settings: Settings | None = None,
        events: Iterable[StudyEvent] = (),
        record: Recorder | None = None,
    ) -> None:
        self.space = space
        self.seed = seed
        self.budget = budget or Budget()
        self.direction = direction
        self._cost = cost
        self._settings = settings or Settings()
        self._memory = Memory()
        self._record = record
        self._writer: JournalWriter[StudyEvent] | None = None
        self._trials: list[Trial] = []
        self._pending: dict[int, Suggestion] = {}
        self._count = 0
        self._header = StudyHeader(space=space.describe(), seed=seed, direction=direction)
        self._begin(list(events))

    @classmethod
    def open(
        cls,
        path: Path,
        space: Space,
        *,
        seed: int = 0,
        budget: Budget | None = None,
        direction: Direction = "minimise",
        cost: CostFunction | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """A study with a journal of its own: made if the file is missing, else gone on with.

        Raises:
            InputError: the journal is of another space, seed or direction.
            RecordError: the journal is damaged; names file and line.
            RunDirectoryError: it cannot be written.
        """
        writer = JournalWriter(path, StudyEvent)
        try:
            study = cls(
                space,
                seed=seed,
                budget=budget,
                direction=direction,
                cost=cost,
                settings=settings,
                events=read_journal(path, StudyEvent),
                record=writer.append,
            )
        except BaseException:
            writer.close()
            raise
        study._writer = writer
        return study

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Outcomes, in the order in which they were told."""
        return tuple(self._trials)

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions without an outcome, oldest first."""
        return tuple(self._pending.values())

    @property
    def spent(self) -> float:
        """Cost of all trials so far."""
        return spent(self._trials)

    def ask(self) -> Suggestion:
        """The next suggestion; it is pending until its outcome is told.

        Raises:
            InputError: the budget is spent, or nothing affordable was found.
        """
        suggestion = suggest(
            self.space,
            self._trials,
            self.pending,
            self.budget,
            np.random.default_rng([self.seed, self._count]),
            direction=self.direction,
            cost=self._cost,
            number=self._count,
            settings=self._settings,
            memory=self._memory,
        )
        self._happen(StudyEvent(asked=suggestion))
        return suggestion

    def tell(
        self,
        suggestion: Suggestion | int,
        *,
        output: float | None = None,
        cost: float | None = None,
        failed: str = "",
        abandoned: str = "",
    ) -> Trial:
        """The outcome of a suggestion: output and cost, or why it failed, or why it was abandoned.

        Args:
            suggestion: A pending suggestion or its number.
            output: The metric; finite.
            cost: What it cost; above 0. Of a failed trial what it cost until then, if known.
            failed: Kind of a failure that lies in the params: ``diverged``, ``out_of_memory``, ``timed_out``.
            abandoned: Kind of a failure that does not, such as ``worker_killed``; the models pass over it.

        Raises:
            InputError: it is not pending, or the outcome is not one of the three.
        """
        number = suggestion if isinstance(suggestion, int) else suggestion.number
        if number not in self._pending:
            raise InputError(f"suggestion {number} is not pending", remedy=f"pending are: {list(self._pending)}")
        if failed and abandoned:
            raise InputError(f"suggestion {number} is told as failed {failed!r} and as abandoned {abandoned!r}")
        trial = Trial(
            number=number,
            params=dict(self._pending[number].params),
            status="failed" if failed else "abandoned" if abandoned else "ok",
            output=output,
            cost=cost,
            kind=failed or abandoned,
        )
        self._happen(StudyEvent(told=trial))
        return trial

    def add(self, params: dict[str, Value], *, output: float, cost: float) -> Trial:
        """A trial that was run elsewhere.

        Raises:
            InputError: the params do not fit the space.
        """
        self.space.check(params)
        trial = Trial(number=self._count, params=dict(params), status="ok", output=output, cost=cost)
        self._happen(StudyEvent(asked=Suggestion(number=self._count, params=dict(params), origin="given")))
        self._happen(StudyEvent(told=trial))
        return trial

    def front(self, *, min_cost_fraction: float = 0.2) -> tuple[FrontPoint, ...]:
        """Pareto front of the trials, see `pareto_front`."""
        return pareto_front(self._trials, direction=self.direction, min_cost_fraction=min_cost_fraction)

    def best(self, *, max_cost: float | None = None) -> FrontPoint:
        """The best front point, of those that cost no more than ``max_cost``.

        Raises:
            InputError: there is none.
        """
        front = self.front(min_cost_fraction=0.0)
        affordable = [point for point in front if max_cost is None or point.cost <= max_cost]
        if not affordable:
            raise InputError(
                "no successful trial" + ("" if max_cost is None else f" at a cost of at most {max_cost:g}")
            )
        return affordable[-1]

    def close(self) -> None:
        """Close the journal, if the study has one of its own."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, events: list[StudyEvent]) -> None:
        if not events:
            self._happen(StudyEvent(began=self._header))
            return
        if events[0].began is None:
            raise InputError("the journal does not begin with the header of a study")
        self._compare(events[0].began)
        for event in events:
            self._apply(event)

    def _compare(self, stored: StudyHeader) -> None:
        mine = self._header
        for before, now in zip(stored.space, mine.space, strict=False):
            if before != now:
                raise InputError(f"the study was begun with {before}, not with {now}", remedy="start a new study")
        for key in ("seed", "direction", "space"):
            before, now = getattr(stored, key), getattr(mine, key)
            if before != now:
                raise InputError(f"the study was begun with {key} {before!r}, not {now!r}", remedy="start a new study")

    def _happen(self, event: StudyEvent) -> None:
        if self._record is not None:
            self._record(event)
        self._apply(event)

    def _apply(self, event: StudyEvent) -> None:
        if event.asked is not None:
            self._pending[event.asked.number] = event.asked
            self._count = max(self._count, event.asked.number + 1)
        if event.told is not None:
            self._pending.pop(event.told.number, None)
            self._trials.append(event.told)
