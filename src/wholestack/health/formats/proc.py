"""Small tables of Linux: memory, release, machine id, ``lscpu``, ``ps``, counted governors.

Sources: proc(5), os-release(5), machine-id(5), lscpu(1), ps(1).
"""

import re
from dataclasses import dataclass

from wholestack.health.formats.sysfs import filled_lines, number, whole
from wholestack.health.probe import UnreadableError
from wholestack.record import digest


def looks_like_meminfo(text: str) -> bool:
    """Has the first line of meminfo."""
    return re.search(r"^MemTotal:", text, re.MULTILINE) is not None


def read_meminfo(text: str) -> int:
    """The total in KiB.

    Raises:
        UnreadableError: it is no number.
    """
    found = re.search(r"^MemTotal:[ \t]+([0-9]{1,15}) kB$", text, re.MULTILINE)
    if found is None or int(found[1]) == 0:
        raise UnreadableError("MemTotal is no number")
    return int(found[1])


def looks_like_os_release(text: str) -> bool:
    """Has an ID."""
    return re.search(r"^ID=", text, re.MULTILINE) is not None


def read_os_release(text: str) -> str:
    """``ubuntu 22.04``.

    Raises:
        UnreadableError: the ID is empty.
    """
    found = {key: value.strip("\"' ")[:60] for key, value in re.findall(r"^([A-Z_]{1,40})=(.*)$", text, re.MULTILINE)}
    if not found["ID"]:
        raise UnreadableError("the ID is empty")
    return f"{found['ID']} {found.get('VERSION_ID', '')}".strip()


def looks_like_machine_id(text: str) -> bool:
    """Nothing but 32 hexadecimal digits."""
    return re.fullmatch(r"[0-9a-f]{32}\s*", text) is not None


def read_machine_id(text: str) -> str:
    """What tells one installation from another; machine-id(5) asks not to show the id itself, so its hash."""
    return digest("installation", text.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """``lscpu``."""

    count: int
    """All, also those off-line."""
    offline: str
    """As a list, ``3,7-8``; empty if none is."""
    offline_count: int
    sockets: int | None
    threads_per_core: int | None
    model: str


def looks_like_lscpu(text: str) -> bool:
    """Has an architecture and a number of CPUs."""
    return "Architecture:" in text[:2000] and re.search(r"^[ \t]*CPU\(s\):", text, re.MULTILINE) is not None


def read_lscpu(text: str) -> Processors:
    """Numbers and model.

    Raises:
        UnreadableError: the number of CPUs is no number, or a list no list.
    """
    # The first one counts: NUMA nodes repeat "CPU(s)" further down.
    fields = re.findall(r"^([^:\n]{1,60}):(.*)$", whole(text), re.MULTILINE)
    found = {key.strip(): value.strip() for key, value in reversed(fields)}
    count = number(found["CPU(s)"])
    if not count:
        raise UnreadableError("CPU(s) is no number")
    offline = found.get("Off-line CPU(s) list", "")
    return Processors(
        count=count,
        offline=offline[:200],
        offline_count=cpu_count(offline) if offline else 0,
        sockets=number(found.get("Socket(s)")),
        threads_per_core=number(found.get("Thread(s) per core")),
        model=found.get("Model name", "")[:200],
    )


def cpu_count(text: str) -> int:
    """How many CPUs ``0-3,8`` names.

    Raises:
        UnreadableError: it is no such list.
    """
    parts = [re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part) for part in text.replace(" ", "").split(",")]
    if any(part is None for part in parts):
        raise UnreadableError(f"{text[:40]!r} is no list of CPUs")
    return sum(int(part[2] or part[1]) - int(part[1]) + 1 for part in parts if part)


def looks_like_counted(text: str) -> bool:
    """``uniq -c``."""
    return re.fullmatch(r"[ \t]*[0-9]{1,9} \S+[ \t]*", text.lstrip("\n").partition("\n")[0]) is not None


def read_counted(text: str) -> dict[str, int]:
    """Count by word.

    Raises:
        UnreadableError: a line is neither.
    """
    found = re.findall(r"^[ \t]*([0-9]{1,9}) (\S{1,100})[ \t]*$", text, re.MULTILINE)
    if len(found) != len(filled_lines(text)):
        raise UnreadableError("a line is not `count word`")
    return {word: int(count) for count, word in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One line of ``ps``."""

    pid: int
    parent: int
    state: str
    age_s: int
    user: str
    name: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """One table of ``ps``: only those that wait in the kernel (state D) or are dead (Z) are taken apart."""

    count: int
    odd: tuple[Process, ...]
    text: str

    def named(self, pid: int) -> str:
        """The line of one process, or its number."""
        found = re.search(rf"^[ \t]*{pid}[ \t].*$", self.text, re.MULTILINE)
        return " ".join(found[0].split())[:200] if found else str(pid)


_HEADING = re.compile(r"^[ \t]*PID[ \t]+PPID[ \t]+STAT[ \t]+ELAPSED[ \t]+USER[ \t]+COMMAND[ \t]*$", re.MULTILINE)
_STATE = re.compile(r"^[ \t]*[0-9]{1,9}[ \t]+[0-9]{1,9}[ \t]+([A-Za-z])\S*[ \t]+[0-9]{1,12}[ \t]+\S", re.MULTILINE)
_ODD = re.compile(
    r"^[ \t]*([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([DZ]\S*)[ \t]+([0-9]{1,12})[ \t]+(\S+)[ \t]+(\S.*)$", re.MULTILINE
)


def looks_like_ps(text: str) -> bool:
    """The heading of the probe's columns."""
    return _HEADING.match(text.lstrip("\n")) is not None


def read_ps(text: str) -> list[Processes]:
    """Tables of processes: all, and perhaps those that wait in the kernel some seconds later.

    Raises:
        UnreadableError: a line is no process, or the first table is empty.
    """
    tables = [_table(part) for part in _HEADING.split(whole(text))[1:]]
    if not tables[0].count:
        raise UnreadableError("no process")
    return tables


def _table(text: str) -> Processes:
    states = _STATE.findall(text)
    lines = text.strip("\n").count("\n") + 1 if text.strip() else 0
    if len(states) != lines:
        raise UnreadableError(f"{len(states)} of {lines} lines are processes")
    odd = [_process(words) for words in _ODD.finditer(text)] if {"D", "Z"} & set(states) else []
    if len(odd) != states.count("D") + states.count("Z"):
        raise UnreadableError("a process without user or name")
    return Processes(count=lines, odd=tuple(odd), text=text)


def _process(words: re.Match[str]) -> Process:
    return Process(
        pid=int(words[1]),
        parent=int(words[2]),
        state=words[3],
        age_s=int(words[4]),
        user=words[5],
        name=words[6].strip()[:100],
        line=" ".join(words[0].split())[:200],
    )
