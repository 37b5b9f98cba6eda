"""Boot logs in files: a folder to learn from, one file to judge, and which decision a person takes about what."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import ClassVar

from wholestack.errors import InputError
from wholestack.health.bootlog.boots import Boot, read_boots, without_escapes
from wholestack.health.bootlog.expecting import Expectations
from wholestack.health.bootlog.judging import BootJudgement, judge_boot
from wholestack.health.bootlog.learning import MOST_BOOTS, Learner
from wholestack.health.bootlog.records import BootModel
from wholestack.health.cleaning import printable
from wholestack.health.formats.kernel_log import looks_like_kernel_log
from wholestack.health.probe import UnreadableError
from wholestack.record import Record

MOST_FILES = 100_000
MOST_NAMED = 20
"""Files that are named one by one in a summary."""
SHORTEST_PREFIX = 4
BEGINNING_BYTES = 1 << 16
CRASH_WORDS = ("Call Trace:", "Kernel panic", "Oops: ", "BUG: ", "[ cut here ]", "[Hardware Error]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt(Record):
    """What was learnt from files."""

    SCHEMA: ClassVar[str] = ""

    boots: int
    """New ones."""
    known: int
    """That the model had already, or that were in two files."""
    hosts: int
    """In the whole model."""
    all_boots: int
    """In the whole model."""
    parts: int
    """New boots that are not whole: they tell what is familiar, not what is missing."""
    left_out: tuple[str, ...]
    """Files that are no kernel logs, and why; the first of them."""
    left_out_count: int
    crashes: tuple[str, ...]
    """Files of boots called good that hold a crash."""
    formats: dict[str, int] = field(default_factory=dict)
    """Boots by format."""
    kernels: tuple[str, ...] = ()
    """In the whole model."""


def learn_files(
    paths: tuple[Path, ...],
    learner: Learner,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Learnt:
    """Learn every boot of every kernel log.

    Args:
        paths: Files, and folders that are walked through. A host is named by its log; where that does not, by the
            folder under the given one, else by the file's name up to the first dot.
        learner: Takes the boots.
        progress: Is told how many files of how many are done.

    Raises:
        InputError: there is no file, or no boot in any of them.
    """
    files = [found for path in paths for found in _files(path)]
    known = parts = 0
    formats: dict[str, int] = {}
    left_out: list[str] = []
    crashes: dict[str, None] = {}
    before = len(learner.boots)
    for place, (file, host) in enumerate(files):
        progress(place, len(files))
        try:
            for boot in _boots(file, learner.window_s):
                if not learner.add(boot, host=host, file=file.name):
                    if len(learner.boots) >= MOST_BOOTS:
                        raise InputError(f"a model holds {MOST_BOOTS} boots: it is full", remedy="learn from fewer")
                    known += 1
                    continue
                formats[boot.format] = formats.get(boot.format, 0) + 1
                parts += not learner.boots[-1].whole
                if any(word in message for message in boot.messages for word in CRASH_WORDS):
                    crashes[str(file)] = None
        except UnreadableError as error:
            left_out.append(f"{file}: {error}")
    progress(len(files), len(files))
    if not learner.boots:
        why = f"; {left_out[0]}" if left_out else ""
        raise InputError(
            f"{', '.join(map(str, paths))}: no boot of a kernel in {len(files)} files{why}",
            remedy="give files of dmesg, journalctl -k or syslog",
        )
    return Learnt(
        boots=len(learner.boots) - before,
        known=known,
        hosts=len({boot.host for boot in learner.boots}),
        all_boots=len(learner.boots),
        parts=parts,
        left_out=tuple(left_out[:MOST_NAMED]),
        left_out_count=len(left_out),
        crashes=tuple(crashes)[:MOST_NAMED],
        formats=formats,
        kernels=tuple(sorted({boot.kernel for boot in learner.boots if boot.kernel})),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One boot of a file, judged."""

    subject: str
    number: int
    """Of the boot in the file, from 1."""
    boots: int
    """In the file."""
    judgement: BootJudgement


def judge_file(model: BootModel, file: Path, *, boot: int | None = None, host: str = "", now: float) -> Judged:
    """Judge one boot of a file.

    Args:
        model: What is expected.
        file: A kernel log.
        boot: Which one, from 1; default: the last.
        host: Whose log it is; default: as the log says, else the file's name.
        now: Seconds since the epoch.

    Raises:
        InputError: the file cannot be read, is no kernel log, or has no such boot.
    """
    chosen, count = None, 0
    try:
        for each in _boots(file, model.window_s):
            count += 1
            if boot is None or count == boot:
                chosen = each
    except UnreadableError as error:
        raise InputError(f"{file}: {error}", remedy="give a file of dmesg, journalctl -k or syslog") from error
    if chosen is None:
        raise InputError(f"{file}: has no boot {boot}, only {count}", remedy="leave --boot out for the last one")
    subject = host or chosen.host or file.name
    judged = judge_boot(chosen, Expectations(model), subject=printable(subject), now=now)
    return Judged(subject=printable(subject), number=boot or count, boots=count, judgement=judged)


def lines_to_accept(model: BootModel, what: str, log: Path | None, *, now: float) -> list[tuple[str, str]]:
    """What a person names: a line as it is, or every line of a Finding.

    Args:
        model: That judged.
        what: A line without its date, or the beginning of a Finding's id.
        log: The file that the Finding is about; ``None`` if ``what`` is a line.
        now: Seconds since the epoch.

    Returns:
        Kind (empty: any) and line.

    Raises:
        InputError: no Finding, or several, begin so; or the line is empty.
    """
    if log is None:
        boots = list(read_boots_of_text(what))
        return [("", message) for boot in boots for message in boot.messages]
    found = judge_file(model, log, now=now).judgement.lines
    ids = {each.finding for each in found if each.finding.startswith(what) and len(what) >= SHORTEST_PREFIX}
    if len(ids) != 1:
        known = ", ".join(dict.fromkeys(each.finding[:8] for each in found)) or "none"
        raise InputError(f"{what!r} begins {len(ids)} findings of {log}", remedy=f"there are: {known}")
    return [(each.kind, each.line) for each in found if each.finding in ids]


def read_boots_of_text(text: str) -> Iterator[Boot]:
    """Boots of a text; used for a line that a person pasted, with or without its date.

    Raises:
        InputError: there is no line in it.
    """
    try:
        yield from read_boots(BytesIO(text.encode(errors="replace")), window_s=float("inf"))
    except UnreadableError as error:
        raise InputError(f"{text[:40]!r}: {error}", remedy="give the line as judge shows it") from error


def _boots(file: Path, window_s: float) -> Iterator[Boot]:
    try:
        with BufferedReader(file.open("rb", buffering=0), BEGINNING_BYTES) as opened:
            beginning = opened.peek(BEGINNING_BYTES)
            if beginning[:2] in (b"\x1f\x8b", b"\xfd7", b"BZ", b"\x28\xb5"):
                raise UnreadableError("is compressed: unpack it first")
            if b"\x00" not in beginning and not _is_log(beginning.decode(errors="replace")):
                raise UnreadableError("no line of a kernel log at its beginning")
            yield from read_boots(opened, window_s=window_s)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}", remedy="name a file") from error


def _is_log(beginning: str) -> bool:
    return looks_like_kernel_log(without_escapes(beginning)) or "Linux version " in beginning


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    """Ordinary files and whose log each is, in a fixed order."""
    if path.is_file():
        yield path, path.name.partition(".")[0]
        return
    if not path.is_dir():
        raise InputError(f"{path}: there is no such file or folder", remedy="name a folder of good boots")
    found = 0
    for file in sorted(path.rglob("*")):
        if not file.is_file():
            continue
        found += 1
        if found > MOST_FILES:
            raise InputError(f"{path}: has more than {MOST_FILES} files", remedy="name a folder of boot logs alone")
        below = file.relative_to(path).parts
        yield file, below[0] if len(below) > 1 else file.name.partition(".")[0]
    if not found:
        raise InputError(f"{path}: is an empty folder", remedy="put some good boots in it: dmesg > HOST.dmesg")
