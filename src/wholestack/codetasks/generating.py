"""Generating files of items: draft, run, ask, run again, keep what is new.

A file is a row of slots, and slot ``i`` belongs to cell ``i % cells``, a cell being a kind at a level. Each cell has
a stream of drafts, one for each counter 0, 1, 2, ...; a slot takes the next accepted item of its cell's stream that the
file does not have yet. How many drafts share a process decides nothing but the time.

So the lines that a killed generation left say how far every stream was, and the same command goes on behind them.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wholestack.codetasks.drafting import draft, settle
from wholestack.codetasks.draws import item_seed
from wholestack.codetasks.interpreters import require_known
from wholestack.codetasks.item import LONGEST_LINE, VERSION, CodeItem, asked, item_line, read_line
from wholestack.codetasks.kinds.catalog import KINDS, find_kind
from wholestack.codetasks.kinds.kind import Kind
from wholestack.codetasks.levels import HIGHEST, LEVELS, LOWEST
from wholestack.codetasks.running import Runs
from wholestack.codetasks.writing import new_file
from wholestack.errors import InputError, RecordError

MOST_ITEMS = 1_000_000
BATCH = 1000
"""Drafts that are run together."""
BARREN = 3000
"""Drafts of one cell in a row without a new item, after which the cell counts as used up."""
REPEATED = "the same question was there before"
BEFORE = "before the interruption; the reasons were not kept"


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind at one level."""

    kind: Kind
    """The kind."""
    difficulty: int
    """1 to 10."""


@dataclass(slots=True)
class Tally:
    """How far a generation is; handed to the progress callback after every batch."""

    wanted: int
    """Items asked for."""
    written: int = 0
    """Items written."""
    dropped: int = 0
    """Lines that were there from before and are not gone on with."""
    drafted: int = 0
    """Drafts that were run."""
    refused: Counter[str] = field(default_factory=Counter)
    """Drafts that gave no item, by reason."""


Progress = Callable[[Tally], None]


def cells_of(kinds: Sequence[str] = (), difficulties: Sequence[int] = ()) -> tuple[Cell, ...]:
    """Cells in turn, every kind at the first level, then at the next.

    Args:
        kinds: Names; none for all.
        difficulties: Levels; none for all.

    Raises:
        InputError: a kind or level that there is not.
    """
    chosen = [find_kind(name) for name in dict.fromkeys(kinds)] or list(KINDS.values())
    for level in difficulties:
        if level not in LEVELS:
            raise InputError(f"difficulty is {level}: {LOWEST} to {HIGHEST} is allowed")
    return tuple(Cell(kind, level) for level in sorted(set(difficulties)) or LEVELS for kind in chosen)


def make_items(
    cells: Sequence[Cell],
    *,
    count: int,
    seed: int,
    run: Runs,
    batch: int = BATCH,
    processes: int = 1,
    progress: Progress | None = None,
) -> Iterator[CodeItem]:
    """Distinct items in the order of the file.

    Args:
        cells: Kinds and levels, which take turns.
        count: How many items.
        seed: Of the whole; zero or more.
        run: The sandbox's.
        batch: Drafts to run together.
        processes: Sandboxed processes at one time.
        progress: Told before the first batch and after every one.

    Raises:
        InputError: count or seed out of range, or a cell has no more new items.
        SandboxError: programs could not be run.
    """
    generation = _Generation(
        cells, count=count, seed=seed, run=run, batch=batch, processes=processes, progress=progress
    )
    return generation.items()


def generate(
    path: Path,
    cells: Sequence[Cell],
    *,
    count: int,
    seed: int,
    run: Runs,
    batch: int = BATCH,
    processes: int = 1,
    progress: Progress | None = None,
) -> Tally:
    """Write a file of distinct items; it appears when it is whole.

    Killed, interrupted or ended by an error it leaves the lines that it has beside the file, under a hidden name; the
    same call goes on behind them. What was left by a call for other items is dropped, and counted.

    The bytes are those of a call that was not interrupted as long as nobody changes what is left. Of what is left every
    line's hash, seed and turn is looked at, and the last line of each cell is made again; a line with a new hash in the
    middle, or one that was taken out of a file of one cell, is not noticed, for whoever can write there can as well
    change the whole file or any record beside it. :func:`~wholestack.codetasks.checking.check_file` proves each line.

    Args: as of :func:`make_items`, and ``path``, which must not exist.

    Raises:
        InputError: the file exists or cannot be written, the Python that runs the programs is none of those that are
            known to give the same file, or as of :func:`make_items`.
        SandboxError: programs could not be run.
    """
    require_known(run)
    generation = _Generation(
        cells, count=count, seed=seed, run=run, batch=batch, processes=processes, progress=progress
    )
    with new_file(path, resumable=True) as file:
        size = generation.take_over(file.kept_lines(LONGEST_LINE))
        generation.tally.dropped = file.cut(size)
        for item in generation.items():
            file.write(item_line(item))
    return generation.tally


class _Generation:
    """The streams of all cells, and how far they are; the arguments are those of :func:`make_items`."""

    def __init__(
        self,
        cells: Sequence[Cell],
        *,
        count: int,
        seed: int,
        run: Runs,
        batch: int,
        processes: int,
        progress: Progress | None,
    ) -> None:
        if not 1 <= count <= MOST_ITEMS:
            raise InputError(f"count is {count}: 1 to {MOST_ITEMS} is allowed")
        if processes < 1:
            raise InputError(f"processes is {processes}: 1 or more is needed")
        if not 0 <= seed < 1 << 63:
            raise InputError(f"seed is {seed}: 0 to 2**63 - 1 is allowed")
        self._cells = cells
        self._count = count
        self._seed = seed
        self._run = run
        self._batch = batch
        self._processes = processes
        self._progress = progress
        self._start()

    def take_over(self, lines: Iterable[bytes]) -> int:
        """Go on behind lines that are there from before.

        Of every cell the last one is made again: where it comes out otherwise, a kind was changed since, and nothing
        is kept.

        Returns:
            How many bytes of the lines are kept.

        Raises:
            SandboxError: programs could not be run.
        """
        size = 0
        last: dict[int, CodeItem] = {}
        for line in lines:
            place = self.tally.written % len(self._streams)
            item = self._fitting(line, self._streams[place])
            if item is None:
                break
            last[place] = item
            size += len(line)
            self.tally.written += 1
        trials = [draft(self._streams[place].cell.kind, item.difficulty, item.seed) for place, item in last.items()]
        settle(trials, self._run, processes=self._processes)
        if [trial.result for trial in trials] == list(last.values()):
            return size
        self._start()
        return 0

    def _fitting(self, line: bytes, stream: "_Stream") -> CodeItem | None:
        """The item of a line, if it is the next one of its stream, which then goes on behind it."""
        try:
            item = read_line(line, where="")
        except RecordError:
            return None
        fits = self.tally.written < self.tally.wanted and item_line(item) == line
        return item if fits and stream.takes_over(item, self._seen, self.tally) else None

    def _start(self) -> None:
        """Nothing is there yet."""
        self.tally = Tally(self._count)
        self._streams = [_Stream(cell, self._seed) for cell in self._cells]
        self._seen: set[bytes] = set()

    def items(self) -> Iterator[CodeItem]:
        """The items that are missing, in the order of the file."""
        tally, streams = self.tally, self._streams
        self._tell()
        while tally.written < tally.wanted:
            slots = min(tally.wanted - tally.written, self._batch)
            _fill(streams, slots, tally, run=self._run, batch=self._batch, processes=self._processes)
            while tally.written < tally.wanted:
                item = self._next_stream.take(self._seen, tally)
                if item is None:
                    break
                tally.written += 1
                yield item
            self._tell()

    @property
    def _next_stream(self) -> "_Stream":
        return self._streams[self.tally.written % len(self._streams)]

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.tally)


class _Stream:
    """The accepted items of one cell, in the order of their counters."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self.cell = cell
        self._seed = seed
        self._counter = 0
        self._barren = 0
        self._drafted = 0
        self._new = 0
        self.ready: deque[CodeItem | str] = deque()
        """Of every draft that was run, in order, its item or why there is none."""

    @property
    def items_ready(self) -> int:
        """Drafts that became items and wait."""
        return sum(isinstance(each, CodeItem) for each in self.ready)

    def next_seeds(self, number: int) -> list[int]:
        """Seeds of the next drafts."""
        start, self._counter = self._counter, self._counter + number
        cell = self.cell
        return [item_seed(self._seed, cell.kind.name, cell.difficulty, at) for at in range(start, self._counter)]

    def takes_over(self, item: CodeItem, seen: set[bytes], tally: Tally) -> bool:
        """Whether a next draft of this stream gives the item, by its seed; then the stream goes on behind that."""
        if (item.kind, item.difficulty, item.version) != (self.cell.kind.name, self.cell.difficulty, VERSION):
            return False
        content = asked(item)
        if content in seen:
            return False
        for counter in range(self._counter, self._counter + BARREN):
            if item_seed(self._seed, item.kind, item.difficulty, counter) == item.seed:
                passed_over = counter - self._counter
                tally.drafted += passed_over + 1
                tally.refused.update({BEFORE: passed_over} if passed_over else {})
                self._drafted += passed_over + 1
                self._new += 1
                self._counter = counter + 1
                seen.add(content)
                return True
        return False

    def take(self, seen: set[bytes], tally: Tally) -> CodeItem | None:
        """The next item that is new, or ``None`` when more drafts have to be run."""
        while self.ready:
            found = self.ready.popleft()
            tally.drafted += 1
            self._drafted += 1
            if isinstance(found, CodeItem):
                content = asked(found)
                if content not in seen:
                    seen.add(content)
                    self._barren = 0
                    self._new += 1
                    return found
                found = REPEATED
            tally.refused[found] += 1
            self._barren += 1
            if self._barren >= BARREN:
                raise InputError(
                    f"{self.cell.kind.name} at difficulty {self.cell.difficulty} gave no new item in {BARREN} drafts",
                    remedy="ask for fewer items",
                )
        return None

    def drafts_for(self, items: int) -> int:
        """How many drafts will give so many items, by the share that was new so far."""
        missing = max(0, items - self.items_ready)
        return -(-missing * (self._drafted + 2) // (self._new + 1)) if missing else 0


def _fill(streams: Sequence[_Stream], slots: int, tally: Tally, *, run: Runs, batch: int, processes: int) -> None:
    """Draft and run for the next slots, about ``batch`` drafts at most, at least one for each stream that is empty."""
    first = tally.written % len(streams)
    plan = []
    for place, stream in enumerate(streams):
        items = (slots - 1 - (place - first) % len(streams)) // len(streams) + 1
        number = min(stream.drafts_for(items), max(1, batch // len(streams)))
        cell = stream.cell
        plan.append((stream, [draft(cell.kind, cell.difficulty, each) for each in stream.next_seeds(number)]))
    settle([trial for _, trials in plan for trial in trials], run, processes=processes)
    for stream, trials in plan:
        stream.ready.extend(trial.result for trial in trials)
