"""``nvidia-smi -q -x``: what it says of every GPU, as a flat table of paths to texts, and how a text is to be taken.

Every DTD version names things a little differently (``clocks_throttle_reasons`` became ``clocks_event_reasons``,
``sram_uncorrectable`` was split in two), so nothing is renamed here: a check asks for several paths. What other
front ends say (:mod:`~wholestack.health.formats.nvidia_query`) is brought into the same paths.

Three kinds of text are no number and differ in meaning: *not supported* (``N/A``) is no trouble, *lost* (``GPU is
lost``) and *broken* (``ERR!``, ``Unknown Error``) are. Every real file has a DOCTYPE with an external DTD, which is
never fetched; a document that declares entities is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal
from xml.etree import ElementTree

from wholestack.health.parts import Part, pci_key
from wholestack.health.probe import UnreadableError

Kind = Literal["number", "word", "unsupported", "lost", "broken", "missing"]
Trouble = Literal["", "no_driver", "mismatch", "none_found", "nvml"]

_UNSUPPORTED = {"n/a", "not supported", "requested functionality has been deprecated", "deprecated"}
_LOST = {"gpu is lost", "gpu requires reset"}
_BROKEN = re.compile(r"err!|unknown error|error|insufficient permissions|\ufffd|.*\bfailed\b.*", re.IGNORECASE)
_NUMBER = re.compile(r"(-?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?)\s{0,2}(?:%|[A-Za-z][A-Za-z/()]{0,12})?")
LONGEST = 120
"""No reading is longer than this."""
_SKIPPED = {"supported_clocks", "accounted_processes", "processes", "mig_devices"}
_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:gpu)?\s?(?P<index>\d{1,3}(?![\da-f]{0,8}:[\da-f]))?"
    r"[: ]{0,3}(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)?[^\n]{0,200}",
    re.IGNORECASE,
)
_TROUBLES: tuple[tuple[Trouble, re.Pattern[str]], ...] = (
    ("mismatch", re.compile(r"Driver/library version mismatch", re.IGNORECASE)),
    ("no_driver", re.compile(r"couldn't communicate with the NVIDIA driver|Driver Not Loaded", re.IGNORECASE)),
    ("none_found", re.compile(r"No devices were found", re.IGNORECASE)),
    ("nvml", re.compile(r"Failed to initialize NVML|GPU access blocked|NVIDIA-SMI has failed", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process that holds memory of a GPU."""

    pid: int
    name: str
    used_mib: float | None
    """``None`` where it is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU."""

    key: str
    """PCI address as :func:`~wholestack.health.parts.pci_key` spells it, else ``index N`` or the UUID."""
    index: int
    """Place in the output, from 0."""
    fields: dict[str, str]
    """Path below the ``gpu`` element to its text."""
    part: Part
    """With what helps to find it: index, module, serial."""
    processes: tuple[Process, ...] = ()
    mig_devices: tuple[dict[str, str], ...] = ()
    """Fields of every MIG device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one of several paths holds."""

    kind: Kind
    text: str = ""
    number: float = 0.0


MISSING = Reading(kind="missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A GPU that the tool names but cannot reach."""

    key: str
    """PCI address, or ``index N``, or empty."""
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Smi:
    """One run of ``nvidia-smi``."""

    gpus: tuple[Gpu, ...]
    source: Literal["xml", "csv", "metrics", "message"]
    attached: int | None = None
    """How many GPUs it says there are."""
    driver: str = ""
    cuda: str = ""
    notes: tuple[str, ...] = ()
    """Lines around the document."""
    lost: tuple[Lost, ...] = ()
    trouble: Trouble = ""
    miscount: str = ""
    """Where it says that there are other GPUs than it describes."""
    contradictions: tuple[str, ...] = field(default=())
    """Where it disagrees with itself, so that nothing in it can be relied on."""


def make_gpu(
    key: str,
    index: int,
    fields: dict[str, str],
    *,
    processes: tuple[Process, ...] = (),
    mig_devices: tuple[dict[str, str], ...] = (),
) -> Gpu:
    """A GPU with its part."""
    said = [f"index {index}"]
    for word, path in (("module", "platformInfo/module_id"), ("module", "gpu_module_id"), ("serial", "serial")):
        text = fields.get(path, "")
        if text and kind_of(text) in ("number", "word") and not any(each.startswith(word) for each in said):
            said.append(f"{word} {text[:40]}")
    part = Part(kind="gpu", key=key, label=", ".join(said))
    return Gpu(key=key, index=index, fields=fields, part=part, processes=processes, mig_devices=mig_devices)


def kind_of(text: str) -> Kind:
    """How a text is to be taken."""
    return _kind_of(text) if len(text) <= LONGEST else "word"


@lru_cache(maxsize=4096)
def _kind_of(text: str) -> Kind:
    """A document repeats few texts many times, so that answers are kept."""
    plain = text.strip().strip("[]").strip().lower()
    if plain in _UNSUPPORTED:
        return "unsupported"
    if plain in _LOST:
        return "lost"
    if not plain or _BROKEN.fullmatch(plain):
        return "broken"
    return "number" if _NUMBER.fullmatch(text.strip()) else "word"


def reading(gpu: Gpu, *paths: str) -> Reading:
    """The first of the paths that is there; a parent that holds one text (``N/A``) speaks for all below it."""
    for path in paths:
        text = gpu.fields.get(path)
        if text is None:
            text = _above(gpu.fields, path)
        if text is not None:
            return _taken(text) if len(text) <= LONGEST else Reading(kind="word", text=text)
    return MISSING


@lru_cache(maxsize=4096)
def _taken(text: str) -> Reading:
    kind = kind_of(text)
    found = _NUMBER.fullmatch(text.strip()) if kind == "number" else None
    return Reading(kind=kind, text=text, number=float(found[1]) if found else 0.0)


def looks_like_xml(text: str) -> bool:
    """Has the root element near its beginning; warnings may stand before it."""
    return "<nvidia_smi_log" in text[:8000]


def looks_like_message(text: str) -> bool:
    """No document, but one of the lines with which the tool gives up."""
    return len(text) < 8000 and bool(_HANDLE.search(text) or any(words.search(text) for _, words in _TROUBLES))


def read_xml(text: str) -> Smi:
    """The document and the lines around it.

    Raises:
        UnreadableError: cut, not well-formed, declares entities, or a GPU block without address.
    """
    begin, end = text.find("<nvidia_smi_log"), text.rfind("</nvidia_smi_log>")
    if end < begin:
        raise UnreadableError("the document is cut: its last tag is missing")
    # After the root element has begun, the parser itself refuses a DOCTYPE.
    if "<!ENTITY" in text or re.search(r"<!DOCTYPE[^>\[]{0,400}\[", text[:begin]):
        raise UnreadableError("the document declares entities")
    root = _parse(text[begin:end] + "</nvidia_smi_log>")
    gpus = tuple(_gpu(element, index) for index, element in enumerate(root.findall("gpu")))
    around = text[:begin] + "\n" + text[end + len("</nvidia_smi_log>") :]
    notes = tuple(line.strip() for line in around.splitlines() if line.strip() and not line.lstrip().startswith("<"))
    attached = _whole(root.findtext("attached_gpus"))
    return Smi(
        gpus=gpus,
        source="xml",
        attached=attached,
        driver=(root.findtext("driver_version") or root.findtext("kmd_version") or "").strip(),
        cuda=(root.findtext("cuda_version") or root.findtext("cuda_umd_version") or "").strip(),
        notes=notes[:50],
        lost=tuple(_lost(around)),
        miscount=_miscount(gpus, attached),
        contradictions=tuple(_contradictions(gpus)),
    )


def read_message(text: str) -> Smi:
    """What the tool says when it gives up."""
    trouble: Trouble = next((name for name, words in _TROUBLES if words.search(text)), "")
    notes = tuple(line.strip() for line in text.splitlines() if line.strip())
    return Smi(gpus=(), source="message", notes=notes[:50], lost=tuple(_lost(text)), trouble=trouble)


def lost_of(smi: Smi) -> Iterator[Lost]:
    """GPUs that are named but lost, from lines around the document or from readings that say so."""
    yield from smi.lost
    for gpu in smi.gpus:
        said = [f"{path}: {text}" for path, text in gpu.fields.items() if "GPU" in text and kind_of(text) == "lost"]
        if said:
            yield Lost(key=gpu.key, line=f"{gpu.key}: {'; '.join(said[:3])}")


def _above(fields: dict[str, str], path: str) -> str | None:
    """The text of the nearest parent that holds one."""
    text = None
    while text is None and "/" in path:
        path = path.rpartition("/")[0]
        text = fields.get(path)
    return text


def _parse(document: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(_without_clock_tables(document))
    except (ElementTree.ParseError, ValueError) as error:
        raise UnreadableError(f"not well-formed: {error}") from error


def _without_clock_tables(document: str) -> str:
    """The tables of supported clocks are nine tenths of a document and nobody asks for them here."""
    kept = []
    position = 0
    while (begin := document.find("<supported_clocks>", position)) >= 0:
        end = document.find("</supported_clocks>", begin)
        if end < 0 or "<gpu" in document[begin:end]:
            break
        kept.append(document[position:begin])
        position = end + len("</supported_clocks>")
    return "".join(kept) + document[position:]


def _gpu(element: ElementTree.Element, index: int) -> Gpu:
    fields: dict[str, str] = {}
    _flatten(element, "", fields)
    address = fields.get("pci/pci_bus_id") or element.get("id") or ""
    try:
        key = pci_key(address)
    except ValueError as error:
        raise UnreadableError(f"GPU block {index + 1} has no PCI address: {address[:40]!r}") from error
    return make_gpu(
        key,
        index,
        fields,
        processes=tuple(_processes(element)),
        mig_devices=tuple(_mig_devices(element)),
    )


def _flatten(element: ElementTree.Element, prefix: str, fields: dict[str, str]) -> None:
    for child in element:
        tag, text = child.tag, child.text
        if len(child):
            if tag not in _SKIPPED:
                _flatten(child, f"{prefix}{tag}/", fields)
        elif tag not in _SKIPPED:
            fields[prefix + tag] = text.strip() if text else ""


def _processes(element: ElementTree.Element) -> Iterator[Process]:
    for each in element.iterfind("processes/process_info"):
        pid = _whole(each.findtext("pid"))
        used = _NUMBER.fullmatch((each.findtext("used_memory") or "").strip())
        if pid is not None:
            name = (each.findtext("process_name") or "").strip()
            yield Process(pid=pid, name=name[:200], used_mib=float(used[1]) if used else None)


def _mig_devices(element: ElementTree.Element) -> Iterator[dict[str, str]]:
    for each in element.iterfind("mig_devices/mig_device"):
        fields: dict[str, str] = {}
        _flatten(each, "", fields)
        yield fields


def _whole(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def _lost(text: str) -> Iterator[Lost]:
    for found in _HANDLE.finditer(text):
        key = f"index {found['index']}" if found["index"] else ""
        if found["address"]:
            key = pci_key(found["address"])
        yield Lost(key=key, line=found[0].strip())


def _miscount(gpus: tuple[Gpu, ...], attached: int | None) -> str:
    if attached is None:
        return "attached_gpus is missing or no number"
    return "" if attached == len(gpus) else f"attached_gpus is {attached}, but {len(gpus)} GPUs are described"


def _contradictions(gpus: tuple[Gpu, ...]) -> Iterator[str]:
    if len({gpu.key for gpu in gpus}) != len(gpus):
        yield "two GPUs are described with the same PCI address"
