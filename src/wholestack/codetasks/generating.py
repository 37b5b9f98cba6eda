"""Generating files of items: draft, run, ask, run again, keep what is new.

A file is a row of slots, and slot ``i`` belongs to cell ``i % cells``, a cell being a kind at a level. Each cell has
a stream of drafts, one for each counter 0, 1, 2, ...; a slot takes the next accepted item of its cell's stream that the
file does not have yet. How many drafts share a process decides nothing but the time.
"""

import contextlib
import fcntl
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path

from wholestack.codetasks.drafting import draft, settle
from wholestack.codetasks.draws import item_seed
from wholestack.codetasks.interpreters import require_known
from wholestack.codetasks.item import CodeItem, asked, item_line
from wholestack.codetasks.kinds.catalog import KINDS, find_kind
from wholestack.codetasks.kinds.kind import Kind
from wholestack.codetasks.levels import HIGHEST, LEVELS, LOWEST
from wholestack.codetasks.running import Runs
from wholestack.errors import InputError

MOST_ITEMS = 1_000_000
BATCH = 1000
"""Drafts that are run together."""
BARREN = 3000
"""Drafts of one cell in a row without a new item, after which the cell counts as used up."""
REPEATED = "the same question was there before"


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
    asked = [find_kind(name) for name in dict.fromkeys(kinds)] or list(KINDS.values())
    for level in difficulties:
        if level not in LEVELS:
            raise InputError(f"difficulty is {level}: {LOWEST} to {HIGHEST} is allowed")
    return tuple(Cell(kind, level) for level in sorted(set(difficulties)) or LEVELS for kind in asked)


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
    if not 1 <= count <= MOST_ITEMS:
        raise InputError(f"count is {count}: 1 to {MOST_ITEMS} is allowed")
    if processes < 1:
        raise InputError(f"processes is {processes}: 1 or more is needed")
    if not 0 <= seed < 1 << 63:
        raise InputError(f"seed is {seed}: 0 to 2**63 - 1 is allowed")
    tally = Tally(count)
    streams = [_Stream(cell, seed) for cell in cells]
    seen: set[bytes] = set()
    if progress is not None:
        progress(tally)
    while tally.written < count:
        _fill(streams, min(count - tally.written, batch), tally, run=run, batch=batch, processes=processes)
        while tally.written < count:
            item = streams[tally.written % len(streams)].take(seen, tally)
            if item is None:
                break
            tally.written += 1
            yield item
        if progress is not None:
            progress(tally)


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

    Args: as of :func:`make_items`, and ``path``, which must not exist.

    Raises:
        InputError: the file exists or cannot be written, the Python that runs the programs is none of those that are
            known to give the same file, or as of :func:`make_items`.
        SandboxError: programs could not be run.
    """
    require_known(run)
    tally = Tally(count)

    def keep(now: Tally) -> None:
        nonlocal tally
        tally = now
        if progress is not None:
            progress(now)

    items = make_items(cells, count=count, seed=seed, run=run, batch=batch, processes=processes, progress=keep)
    write_new(path, map(item_line, items))
    return tally


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


def write_new(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file that does not exist yet; it appears when all lines are in it.

    Raises:
        InputError: it exists, or cannot be written.
    """
    exists = InputError(f"{path}: exists", remedy="name another file, or remove it")
    if path.exists() or path.is_symlink():
        raise exists
    beside = path.with_name(f".{path.name}.tmp")
    try:
        file = _locked(beside)
    except OSError as error:
        raise _unwritable(path, error) from error
    with file:
        try:
            for line in lines:
                try:
                    file.write(line)
                except OSError as error:
                    raise _unwritable(path, error) from error
            try:
                file.flush()
                os.fsync(file.fileno())
                os.link(beside, path)  # unlike a rename it takes nobody's place
            except FileExistsError:
                raise exists from None
            except OSError as error:
                raise _unwritable(path, error) from error
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()


def _locked(beside: Path) -> BufferedWriter:
    """The file in the making, empty and ours alone; what a killed generation left there is written over.

    Raises:
        InputError: another process is writing it.
    """
    file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644), "wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate()
    except BlockingIOError:
        file.close()
        raise InputError(
            f"{beside}: another process is writing it", remedy="wait for it, or name another file"
        ) from None
    return file


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be written: {error.strerror}", remedy="name a file in a folder of yours")
