"""Checks a file of questions again: every line is what its seed gives, and what its program does.

A line of this grammar is made anew from its kind, difficulty and seed, with its programs run in two processes, and
compared byte for byte: that proves the program, the choices, the gold answer and the trace at once. A line that its
seed does not give was made or changed by somebody else. Its program is then run alone, with limits of its own, so that
the reason can be told; it is refused in any case, for nothing shows which answer is right.

With a Python that is not known to give the same lines (:mod:`~wholestack.codetasks.interpreters`) a line that differs
may be right: it is ``unknown``, and so is the whole file, however many of its lines come out to the byte.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wholestack.codetasks.drafting import draft, settle
from wholestack.codetasks.draws import SEED_BITS
from wholestack.codetasks.interpreters import REMEDY, interpreter_of
from wholestack.codetasks.item import LONGEST_LINE, VERSION, CodeItem, asked, item_line, open_items, read_line
from wholestack.codetasks.kinds.catalog import find_kind
from wholestack.codetasks.kinds.kind import Kind
from wholestack.codetasks.levels import LEVELS
from wholestack.codetasks.running import Runs
from wholestack.data.folder import numbered_lines
from wholestack.errors import InputError, RecordError
from wholestack.finding import Finding, Status, finding
from wholestack.sandbox import Ending, Limits, Outcome

BATCH = 500
MOST_SHOWN = 1000
"""Findings of one cause that are kept; all are counted."""
LONGEST_EVIDENCE = 1000
"""Characters."""
MOST_FOREIGN = 50
"""Programs of lines that are not ours that are run for a reason, each in a sandbox of its own."""
_OURS_OR_NONE = "remove it, or generate the file again from its seed"
_REMEDIES = {
    "changed": _OURS_OR_NONE,
    "foreign": _OURS_OR_NONE,
    "repeated": "remove one of them",
    "version": "check it with the wholestack that made it, or generate a new file with this one",
    "kind": "install the package that makes it",
    "python": REMEDY,
}
"""By cause: who reads of many lines needs one way out of each."""
_FOREIGN = Limits(wall_s=2.0, memory_bytes=256 << 20, processes=4, output_bytes=1 << 16)

Progress = Callable[[int, int], None]
"""Lines that were checked, and about how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of a file."""

    items: int
    """Lines that hold something."""
    proved: int
    """Of them those that are to the byte what their seed gives here."""
    refused: int
    """Of them those that are not."""
    unknown: int
    """Of them those of another version of the grammar, of a kind that is not installed, or that differ with a Python
    that may differ: neither proved nor refuted."""
    findings: tuple[Finding, ...]
    """One for each line that is not proved, in the order of the file, the first :data:`MOST_SHOWN` of each cause;
    before them one for a Python that may differ."""


def check_file(
    path: Path,
    run: Runs,
    *,
    processes: int = 1,
    progress: Progress | None = None,
    decoded: Callable[[CodeItem], None] | None = None,
) -> Checked:
    """Check every line of a file, which is read once.

    Args:
        path: As ``codetasks generate`` writes it.
        run: The sandbox's.
        processes: Sandboxed processes at one time.
        progress: Told after every batch.
        decoded: Handed every question that is whole, proved or not, in the order of the file.

    Raises:
        InputError: the file cannot be read, or is empty.
        SandboxError: programs could not be run.
    """
    if processes < 1:
        raise InputError(f"processes is {processes}: 1 or more is needed")
    check = _Check(path, run, processes, decoded)
    if progress is not None:
        progress(0, 1)
    with open_items(path) as file:
        size = os.fstat(file.fileno()).st_size
        for lines in _batches(numbered_lines(file.readline, longest_bytes=LONGEST_LINE)):
            check.take(lines)
            if progress is not None:
                progress(check.items, max(check.items, round(check.items * size / file.tell())))
    if not check.items:
        raise InputError(f"{path}: holds no question", remedy="name a file that codetasks generate wrote")
    return check.result()


def _batches(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    batch = []
    for each in lines:
        batch.append(each)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


class _Check:
    """Counts what became of lines."""

    def __init__(self, path: Path, run: Runs, processes: int, decoded: Callable[[CodeItem], None] | None) -> None:
        self._path = path
        self._run = run
        self._processes = processes
        self._tell = decoded
        self._python = interpreter_of(run)
        self._first_line: dict[bytes, int] = {}
        self._foreign = 0
        self._said: Counter[str] = Counter()
        self._kinds: dict[str, Kind] = {}
        self._missing: set[str] = set()
        self._findings: list[tuple[int, Finding]] = []
        self.items = self._proved = self._refused = self._unknown = 0

    def result(self) -> Checked:
        """All that was taken."""
        return Checked(
            items=self.items,
            proved=self._proved,
            refused=self._refused,
            unknown=self._unknown,
            findings=(*self._about_python(), *(each for _, each in sorted(self._findings, key=lambda pair: pair[0]))),
        )

    def _about_python(self) -> list[Finding]:
        """That of the whole file where the Python may differ."""
        doubt = self._python.doubt
        if not doubt:
            return []
        return [
            finding(str(self._path), "codetasks.python", "unknown", cause="python", evidence=[doubt], remedy=REMEDY)
        ]

    def take(self, lines: list[tuple[int, bytes]]) -> None:
        """Check a batch: what decodes and may be ours is made again together."""
        again = []
        for number, line in lines:
            self.items += 1
            item = self._decoded(number, line)
            if item is not None:
                again.append((number, line, item))
        trials = [draft(self._kinds[item.kind], item.difficulty, item.seed) for _, _, item in again]
        settle(trials, self._run, processes=self._processes)
        strange = []
        for (number, line, item), trial in zip(again, trials, strict=True):
            made = trial.result
            if isinstance(made, CodeItem) and item_line(made).rstrip() == line.rstrip(b"\r\n"):
                self._proved += 1
            else:
                strange.append((number, line, item, made))
        does = self._what_they_do(
            [
                (number, item)
                for number, _, item, made in strange
                if not isinstance(made, CodeItem) or made.program != item.program
            ]
        )
        for number, line, item, made in strange:
            self._refuse_foreign(number, line, item, made, does.get(number))

    def _decoded(self, number: int, line: bytes) -> CodeItem | None:
        """The item, if it can be ours; else a Finding says why not."""
        where = f"{self._path}:{number}"
        try:
            item = read_line(line, where=where)
        except RecordError as error:
            if (schema := _schema_of(line)) not in ("", CodeItem.SCHEMA):
                evidence = f"{where}: schema {schema[:100]!r}, its fields are not those of {CodeItem.SCHEMA!r}"
                self._say(number, "version", [evidence], status="unknown")
                return None
            self._say(number, "changed", [error.message])
            return None
        if self._tell is not None:
            self._tell(item)
        if (before := self._first_line.setdefault(asked(item), number)) != number:
            self._say(number, "repeated", [f"{where}: the same question as line {before}"])
            return None
        if item.version != VERSION:
            evidence = (
                f"{where}: made with version {item.version[:100]!r} of the grammar, this is version {VERSION!r}, "
                "in which the same seed gives another program: its answer is neither proved nor refuted here"
            )
            self._say(number, "version", [evidence], status="unknown")
            return None
        if item.difficulty not in LEVELS or not 0 <= item.seed < 1 << SEED_BITS:
            evidence = f"{where}: difficulty {item.difficulty}, seed {item.seed}: there is no such question"
            self._say(number, "foreign", [evidence])
            return None
        if not self._knows(item.kind):
            evidence = f"{where}: kind {item.kind[:100]!r} is not installed here"
            self._say(number, "kind", [evidence], status="unknown")
            return None
        return item

    def _knows(self, kind: str) -> bool:
        """Whether the kind is built in or installed; looked for once."""
        if kind not in self._kinds and kind not in self._missing:
            try:
                self._kinds[kind] = find_kind(kind)
            except InputError:
                self._missing.add(kind)
        return kind in self._kinds

    def _refuse_foreign(self, number: int, line: bytes, item: CodeItem, made: CodeItem | str, does: str | None) -> None:
        where = f"{self._path}:{number}"
        python = self._python
        if isinstance(made, str):
            evidence = [f"{where}: its seed gives no question here: {made} ({python})"]
        elif made.context == item.context:
            evidence = [f"{where}: the same question has other {_differing(item, made)} here ({python})"]
        else:
            evidence = [f"{where}: its seed gives another question ({python})"]
        if does is not None:
            evidence.append(f"its program {does}")
        elif item_line(item).rstrip() != line.rstrip(b"\r\n"):
            evidence.append("the line is written in another way than ours: spaces, or the order of its keys")
        if python.doubt:
            self._say(number, "python", evidence, status="unknown")
        else:
            self._say(number, "foreign", evidence)

    def _what_they_do(self, strangers: list[tuple[int, CodeItem]]) -> dict[int, str]:
        """Of the first strange programs the behaviour by line, for the reader of the Finding; it decides nothing."""
        run = strangers[: max(0, MOST_FOREIGN - self._foreign)]
        self._foreign += len(run)
        with ThreadPoolExecutor(self._processes) as pool:
            outcomes = pool.map(lambda each: self._run(each[1].program, limits=_FOREIGN), run)
            return {number: _behaviour(outcome, item) for (number, item), outcome in zip(run, outcomes, strict=True)}

    def _say(self, number: int, cause: str, evidence: list[str], *, status: Status = "fail") -> None:
        self._refused += status == "fail"
        self._unknown += status == "unknown"
        self._said[cause] += 1
        if self._said[cause] <= MOST_SHOWN:
            found = finding(
                str(self._path),
                "codetasks.line",
                status,
                part=f"line {number}",
                cause=cause,
                evidence=[each[:LONGEST_EVIDENCE] for each in evidence],
                remedy=_REMEDIES[cause],
            )
            self._findings.append((number, found))


def _schema_of(line: bytes) -> str:
    """What a line says that it is; empty if it does not say."""
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    schema = said.get("schema") if isinstance(said, dict) else None
    return schema if isinstance(schema, str) else ""


def _differing(item: CodeItem, made: CodeItem) -> str:
    """What two items of one question do not share, in words."""
    names = ("choices", "gold", "trace", "misreadings", "id", "program_hash")
    return ", ".join(name for name in names if getattr(item, name) != getattr(made, name)) or "fields"


def _behaviour(outcome: Outcome, item: CodeItem) -> str:
    if outcome.ending is Ending.TIMED_OUT:
        return f"does not end within {_FOREIGN.wall_s:g} s"
    if outcome.ending is Ending.OUTPUT_EXCEEDED:
        return f"prints more than {_FOREIGN.output_bytes} bytes"
    if outcome.ending is not Ending.EXITED:
        return f"was ended: {outcome.ending.replace('_', ' ')}"
    if not outcome.ok:
        last = outcome.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return f"fails: {last[:200] or outcome.describe()}"
    printed = outcome.stdout.decode(errors="replace").strip()
    gold = item.choices[item.gold] if 0 <= item.gold < len(item.choices) else f"choice {item.gold}, which is not there"
    return f"prints {printed[:200]!r}; called right is {gold[:200]!r}"
