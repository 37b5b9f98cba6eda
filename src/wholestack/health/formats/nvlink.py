"""``nvidia-smi nvlink -s`` (state of every link) and ``nvidia-smi nvlink -e`` (its error counters)."""

import re
from dataclasses import dataclass

from wholestack.health.probe import NotThereError, UnreadableError

_LINE = re.compile(
    r"^(?:GPU (?P<gpu>\d{1,3}): (?P<name>[^\n]{0,200}?)(?: \(UUID: (?P<uuid>[^)\s]{1,80})\))?"
    r"|\s{0,16}Link (?P<link>\d{1,3}): (?P<what>[A-Za-z][A-Za-z \-]{0,60}?): (?P<count>[^\n]{1,80}?))\s{0,8}$",
    re.MULTILINE,
)
_GPU = re.compile(r"GPU (\d{1,3}): ([^\n]{0,200}?)(?: \(UUID: ([^)\s]{1,80})\))?\s*")
_STATE = re.compile(r"\s*Link (\d{1,3}): (?:([\d.]{1,12}) GB/s|<?(inactive)>?)\s*", re.IGNORECASE)
_ALL_INACTIVE = re.compile(r"all links are inactive", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"not supported|N/A|No devices were found|NVLink is not", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """One link of one GPU."""

    link: int
    gb_per_s: float | None
    """``None``: inactive."""
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLinks:
    """All links of one GPU."""

    index: int
    name: str
    uuid: str
    links: tuple[LinkState, ...]
    all_inactive: bool = False
    """Whether the tool said so instead of listing them."""

    @property
    def active(self) -> int:
        """How many links are up."""
        return sum(link.gb_per_s is not None for link in self.links)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkErrors:
    """Error counters of one link."""

    index: int
    """Of the GPU."""
    uuid: str
    """Of the GPU, or empty."""
    link: int
    counts: dict[str, int]
    """By the tool's name in lower case, for instance ``replay errors``."""
    unread: tuple[str, ...]
    """Lines whose count is no number."""


def looks_like_states(text: str) -> bool:
    """Begins with a GPU and has a link with a speed or none."""
    return (
        text.lstrip().startswith("GPU ")
        and re.search(r"Link \d{1,3}: [A-Za-z][A-Za-z \-]{0,60}: ", text[:4000]) is None
    )


def looks_like_errors(text: str) -> bool:
    """Has a link with a named counter, or GPUs without any link."""
    begin = text[:4000]
    named = re.search(r"Link \d{1,3}: [A-Za-z][A-Za-z \-]{0,60}: ", begin) is not None
    return named or (begin.lstrip().startswith("GPU ") and "Link " not in begin)


def read_states(text: str) -> tuple[GpuLinks, ...]:
    """Every GPU with its links.

    Raises:
        NotThereError: no GPU has NVLink.
        UnreadableError: a line is neither GPU nor link, or no GPU is there.
    """
    gpus: list[tuple[re.Match[str], list[LinkState], bool]] = []
    for line in text.splitlines():
        if found := _STATE.fullmatch(line):
            speed = float(found[2]) if found[2] else None
            gpus[-1][1].append(LinkState(link=int(found[1]), gb_per_s=speed, line=line.strip()))
        elif found := _GPU.fullmatch(line):
            gpus.append((found, [], False))
        elif gpus and _ALL_INACTIVE.search(line):
            gpus[-1] = (gpus[-1][0], gpus[-1][1], True)
        elif line.strip() and not line.startswith("WARNING") and not _UNSUPPORTED.search(line):
            raise UnreadableError(f"not a line about NVLink: {line.strip()[:80]!r}")
    if not gpus:
        raise UnreadableError("no GPU is named")
    if not any(links or silent for _, links, silent in gpus):
        raise NotThereError("not_supported", "no GPU has NVLink")
    return tuple(
        GpuLinks(index=int(gpu[1]), name=gpu[2], uuid=gpu[3] or "", links=tuple(links), all_inactive=silent)
        for gpu, links, silent in gpus
    )


def read_errors(text: str) -> tuple[LinkErrors, ...]:
    """Counters of every link that has some.

    Raises:
        NotThereError: GPUs are named, but no counter.
        UnreadableError: a counter comes before any GPU, or neither is there.
    """
    index: int | None = None
    uuids: dict[int, str] = {}
    counts: dict[tuple[int, int], dict[str, int]] = {}
    unread: dict[tuple[int, int], list[str]] = {}
    for gpu, _, uuid, link, what, count in _LINE.findall(text):
        if gpu:
            index = int(gpu)
            uuids[index] = uuid
            continue
        if index is None:
            raise UnreadableError("a counter comes before any GPU")
        key = (index, int(link))
        of_link = counts.setdefault(key, {})
        if count.isascii() and count.isdigit() and len(count) <= 20:
            of_link[what.lower()] = int(count)
        elif what.lower().endswith(("error", "errors")) and count.strip("[]<> ").lower() != "n/a":
            unread.setdefault(key, []).append(f"Link {link}: {what}: {count}")
    if not counts and uuids:
        raise NotThereError("not_supported", "no GPU has counters of NVLinks")
    if not counts:
        raise UnreadableError("no counter is there")
    return tuple(
        LinkErrors(index=gpu, uuid=uuids[gpu], link=link, counts=each, unread=tuple(unread.get((gpu, link), ())))
        for (gpu, link), each in counts.items()
    )
