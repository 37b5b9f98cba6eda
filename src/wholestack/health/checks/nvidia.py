"""What the checks of GPUs share: their probes, and how one takes readings without taking silence for health.

A :class:`Reader` hands out numbers and words of one GPU and notes what it could not read; :func:`per_gpu` turns a
judge of one GPU into a judge of a host, in which every such note becomes a symptom of its own (``unknown``).
"""

import re
from collections.abc import Callable, Iterable, Iterator

from wholestack.health.check import Cause, Limit, Seen, Symptom
from wholestack.health.formats.kernel_log import MOST_LOG_BYTES, KernelLog, Line, looks_like_kernel_log, read_kernel_log
from wholestack.health.formats.nvidia_query import looks_like_csv, looks_like_metrics, read_csv, read_metrics
from wholestack.health.formats.nvidia_smi import (
    Gpu,
    Reading,
    Smi,
    kind_of,
    looks_like_message,
    looks_like_xml,
    read_message,
    read_xml,
    reading,
)
from wholestack.health.parts import Part
from wholestack.health.probe import Format, NotThereError, Probe
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command, Output


def _smi_failure(output: Output) -> str:
    """Its exit status says little: 1 or 14 for an infoROM warning on a good GPU (Datura-ai/lium-io#707).

    A text that one of the readers knows is left to that reader.
    """
    text = output.text + output.stderr.decode(errors="replace")
    known = looks_like_xml(text) or looks_like_message(text)
    return "" if known or not output.exit_status else f"exit status {output.exit_status}"


NVIDIA_SMI: Probe[Smi] = Probe(
    command=Command(name="nvidia_smi", shell="nvidia-smi -q -x", limit_s=20, max_bytes=3_000_000),
    formats=(
        Format(name="nvidia-smi -q -x", matches=looks_like_xml, read=read_xml),
        Format(name="nvidia-smi's last words", matches=looks_like_message, read=read_message),
        Format(name="nvidia-smi --query-gpu=... --format=csv", matches=looks_like_csv, read=read_csv),
        Format(name="nvidia_smi_* metrics (nvidia_gpu_exporter)", matches=looks_like_metrics, read=read_metrics),
    ),
    failure=_smi_failure,
    with_stderr=True,
)


def _dmesg_failure(output: Output) -> str:
    """``tail`` hides the exit status; without the right to read, dmesg prints nothing and says so."""
    return "nothing printed" if not output.stdout.strip() and output.stderr.strip() else ""


KERNEL_LOG: Probe[KernelLog] = Probe(
    command=Command(
        name="kernel_log",
        shell=f"(dmesg -x --time-format iso || dmesg -T || dmesg) | tail -c {MOST_LOG_BYTES}",
        limit_s=10,
        max_bytes=1_600_000,
    ),
    formats=(Format(name="dmesg, /dev/kmsg, journalctl -k", matches=looks_like_kernel_log, read=read_kernel_log),),
    failure=_dmesg_failure,
)
UNREADABLE = Cause(
    code="gpu.unreadable",
    says="nvidia-smi tells of the GPUs nothing that can be relied on",
    owner="cluster team",
    remedy="run nvidia-smi -q by hand; see what the other findings say of the driver",
    status="unknown",
)
SILENT_TOOLS = tuple(
    f"telemetry.{what} {probe}"
    for what in ("hung", "garbled")
    for probe in (NVIDIA_SMI.name, "nvlink_status", "nvlink_errors")
)
"""What a fault that makes nvidia-smi hang or give up explains: the silence of its outputs, not that of other tools."""
QUIET_HOURS = Limit(
    name="kernel.quiet_hours",
    default=24.0,
    about="hours without the event after which a fault that only the kernel log shows counts as healed",
)
JOB_HOURS = Limit(
    name="kernel.job_quiet_hours",
    default=6.0,
    about="hours after which a job's own error (out of memory, a program's Xid) is of no more interest",
)
_DESKTOP = re.compile(r"GeForce|Quadro|TITAN|\bRTX\b|GTX", re.IGNORECASE)


class Reader:
    """Readings of one GPU; what could not be read is kept in :attr:`unread`."""

    def __init__(self, gpu: Gpu, *, whole: bool = True) -> None:
        self.gpu = gpu
        self.whole = whole
        """Whether the output holds everything there is; a query holds what was asked for."""
        self.unread: list[str] = []
        self.supported = 0
        self.spoken = False
        """Whether any reading was there that could not be understood."""

    def number(self, *paths: str, required: bool = True) -> float | None:
        """The number at the first of the paths that is there; ``None`` if it has none."""
        found = reading(self.gpu, *paths)
        if found.kind == "number":
            self.supported += 1
            return found.number
        self._note(paths[0], found, required=required)
        return None

    def word(self, *paths: str, required: bool = True) -> str:
        """The word at the first of the paths that is there; empty if there is none."""
        found = reading(self.gpu, *paths)
        if found.kind in ("word", "number"):
            self.supported += 1
            return found.text
        self._note(paths[0], found, required=required)
        return ""

    def is_yes(self, *paths: str, required: bool = True) -> bool:
        """Whether the word there is a yes; anything but yes or no is noted as not read."""
        word = self.word(*paths, required=required).lower()
        if word not in ("", "yes", "no", "active", "not active", "enabled", "disabled", "true", "false"):
            self.unread.append(f"{paths[0]}: {word[:80]}")
        return word in ("yes", "active", "enabled", "true")

    def _note(self, path: str, found: Reading, *, required: bool) -> None:
        if found.kind == "unsupported" or (found.kind == "missing" and not required):
            return
        self.unread.append(f"{path}: {found.text[:80] or found.kind}")
        self.spoken = self.spoken or found.kind != "missing"

    @property
    def symptom(self) -> Symptom:
        """What could not be read."""
        return Symptom(cause=FIELD, part=self.gpu.part, evidence=tuple(dict.fromkeys(self.unread)))


def listed(seen: Seen) -> Smi:
    """What nvidia-smi said.

    Raises:
        NotThereError: it found no GPU.
        UnreadableError: see :meth:`Seen.of`.
    """
    smi = seen.of(NVIDIA_SMI)
    if smi.trouble == "none_found":
        raise NotThereError("not_expected", "nvidia-smi finds no GPU")
    return smi


def raise_if_hung(seen: Seen) -> None:
    """Where ``nvidia-smi -q`` hangs, its other calls do too: their silence is its, once.

    Raises:
        UnreadableError: it hung.
    """
    output = seen.outputs.get(NVIDIA_SMI.name)
    if output is not None and output.ending in ("hung", "timed_out"):
        seen.of(NVIDIA_SMI)


def unreliable(smi: Smi) -> Iterator[Symptom]:
    """What makes the whole output doubtful, for every check the same symptom."""
    said = list(smi.contradictions)
    if not smi.gpus:
        said += smi.notes[:3] or ["no GPU is described"]
    if said:
        yield Symptom(cause=UNREADABLE, part=Part(kind="probe", key=NVIDIA_SMI.name), evidence=tuple(said))


def gpu_part(seen: Seen, key: str) -> Part:
    """A GPU by its address, with index and serial where nvidia-smi knows it."""
    smi = seen.maybe(NVIDIA_SMI)
    found = (gpu.part for gpu in smi.gpus if gpu.key == key) if smi is not None else iter(())
    return next(found, Part(kind="gpu", key=key))


def per_gpu(judge_one: Callable[[Reader, Seen], Iterable[Symptom]]) -> Callable[[Seen], list[Symptom]]:
    """A judge of a host from a judge of one GPU.

    The host's judge raises NotThereError if no GPU supports any reading that the judge asked for.
    """

    def judge(seen: Seen) -> list[Symptom]:
        smi = listed(seen)
        readers = [Reader(gpu, whole=smi.source == "xml") for gpu in smi.gpus]
        found = [symptom for reader in readers for symptom in judge_one(reader, seen)]
        if not found and not any(reader.whole or reader.supported or reader.spoken for reader in readers) and readers:
            raise NotThereError("not_supported", "the query did not ask for these readings")
        found += [reader.symptom for reader in readers if reader.unread]
        found += unreliable(smi)
        if not found and not any(reader.supported for reader in readers):
            raise NotThereError("not_supported", "no GPU here supports these readings")
        return found

    return judge


def is_desktop(gpu: Gpu) -> bool:
    """Boards whose owners set clocks, power and ECC as they like; data-centre boards are left as they come."""
    name = gpu.fields.get("product_name", "") + " " + gpu.fields.get("product_brand", "")
    return _DESKTOP.search(name) is not None


def text_of(gpu: Gpu, *paths: str) -> str:
    """A text that is neither missing, unsupported, lost nor broken; else empty."""
    for path in paths:
        text = gpu.fields.get(path, "")
        if text and kind_of(text) in ("word", "number"):
            return text
    return ""


def recent(seen: Seen, hours: float, *words: str) -> list[Line]:
    """Lines of the running kernel with one of these words, not older than this, in the log's order.

    Args:
        seen: The host.
        hours: Age beyond which a line counts no more.
        words: Of :data:`~wholestack.health.formats.kernel_log.WORDS`.

    Raises:
        NotThereError, UnreadableError: see :meth:`Seen.of`.
    """
    log = seen.of(KERNEL_LOG)
    live = seen.uptime_s is not None
    found = []
    for line in log.holding(*words):
        age = log.age_hours(line, now=seen.now if live else None, uptime_s=seen.uptime_s)
        before_boot = seen.uptime_s is not None and line.clock == "epoch" and age > seen.uptime_s / 3600 + 1
        if age <= hours and not before_boot:
            found.append(line)
    return found
