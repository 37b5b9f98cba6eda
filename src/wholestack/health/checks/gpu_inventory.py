"""What a GPU is and how it is set: driver, VBIOS, infoROM, MIG, persistence, memory size, name.

Most of it is right or wrong only by comparison: with the profile, with the fleet, or with the siblings in the host.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from wholestack.health.check import Cause, Check, Identity, Seen, Symptom, Trait
from wholestack.health.checks.nvidia import (
    NVIDIA_SMI,
    SILENT_TOOLS,
    UNREADABLE,
    Reader,
    listed,
    per_gpu,
    text_of,
    unreliable,
)
from wholestack.health.formats.nvidia_smi import Gpu, Smi, reading
from wholestack.health.parts import Part, pci_key
from wholestack.health.probe import Format, Probe, UnreadableError
from wholestack.remote.batch import Command

_BLINDS = ("gpu.unreadable", "gpu.none_listed", "gpu.count", "container.gpu", "container.fewer_gpus", *SILENT_TOOLS)

NOT_LOADED = Cause(
    code="driver.not_loaded",
    says="the NVIDIA driver does not run",
    owner="cluster team",
    remedy="modprobe nvidia and read dmesg; rebuild the module for this kernel (dkms status) or reinstall the driver",
    explains=(*_BLINDS, "nvlink.all_inactive", "fabric_manager.down", "gpu.peer_memory"),
)
MISMATCH = Cause(
    code="driver.mismatch",
    says="kernel module and libraries of the NVIDIA driver have different versions",
    owner="cluster team",
    remedy="drain and reboot, or unload and load the modules; stop unattended upgrades of the driver",
    explains=(*_BLINDS, "driver.version", "fabric_manager.down"),
)
NVML = Cause(
    code="driver.nvml",
    says="the NVIDIA driver's library does not start",
    owner="cluster team",
    remedy="run nvidia-smi by hand as root; check device files (/dev/nvidia*) and cgroup rules; reboot",
    explains=_BLINDS,
)
DRIVER = Cause(
    code="driver.version",
    says="another version of the NVIDIA driver than expected",
    owner="cluster team",
    remedy="install the fleet's version of the driver and reboot",
)
CUDA = Cause(
    code="driver.cuda_version",
    says="another CUDA version of the driver than expected",
    owner="cluster team",
    remedy="install the fleet's version of the driver and reboot",
    status="warn",
)
VBIOS = Cause(
    code="gpu.vbios",
    says="another VBIOS than expected",
    owner="cluster team",
    remedy="flash the fleet's VBIOS with the vendor's tool when the host is drained",
    status="warn",
)
INFOROM = Cause(
    code="gpu.inforom_corrupted",
    says="infoROM of the GPU is corrupted; the GPU works",
    owner="vendor",
    remedy="reset the GPU or reboot; have it replaced when convenient if the warning stays",
    status="warn",
)
INFOROM_IMAGE = Cause(
    code="gpu.inforom_image",
    says="another infoROM image than expected",
    owner="vendor",
    remedy="compare part numbers: it may be another board than the rest",
    status="warn",
)
BOARD = Cause(
    code="gpu.board",
    says="another kind of GPU than expected",
    owner="vendor",
    remedy="compare with the order and the other hosts; correct the kind of this host, or have the board exchanged",
)
MEMORY = Cause(
    code="gpu.memory_size",
    says="the GPU has another amount of memory than expected",
    owner="vendor",
    remedy="reset the GPU or reboot; have it replaced if memory is missing",
)
MIG_PENDING = Cause(
    code="gpu.mig_pending",
    says="MIG mode changes at the next reset",
    owner="cluster team",
    remedy="drain and reset the GPU, or set the mode back (nvidia-smi -mig 0|1 -i ID)",
    status="warn",
)
MIG_MODE = Cause(
    code="gpu.mig_mode",
    says="another MIG mode than expected",
    owner="cluster team",
    remedy="drain, then nvidia-smi -mig 0|1 -i ID",
    status="warn",
)
PERSISTENCE = Cause(
    code="gpu.persistence",
    says="persistence mode is off, unlike on other GPUs",
    owner="cluster team",
    remedy="enable nvidia-persistenced (systemctl enable --now nvidia-persistenced)",
    status="warn",
)
_MODULE = re.compile(
    r"NVRM version: NVIDIA UNIX (?P<kind>[^\n]{0,80}?)\s{1,4}(?P<version>\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)\s"
)
_INFOROM = re.compile(
    r"infoROM is corrupted at gpu (?P<address>[0-9a-fA-F:.]{7,20})|(?P<any>infoROM is corrupted)", re.IGNORECASE
)


def _read_module(text: str) -> tuple[str, bool]:
    """Version of the loaded kernel module, and whether it is the open one."""
    found = _MODULE.search(text)
    if found is None:
        raise UnreadableError(f"names no version: {text[:80]!r}")
    return found["version"], "open" in found["kind"].lower()


MODULE_VERSION: Probe[tuple[str, bool]] = Probe(
    command=Command(name="driver_version", shell="cat /proc/driver/nvidia/version", limit_s=5, max_bytes=4_000),
    formats=(
        Format(name="/proc/driver/nvidia/version", matches=lambda text: "NVRM version" in text, read=_read_module),
    ),
)
_TROUBLES = {"mismatch": MISMATCH, "no_driver": NOT_LOADED, "nvml": NVML}


def _judge_driver(seen: Seen) -> Iterator[Symptom]:
    smi = listed(seen)
    part = Part(kind="driver", key="nvidia")
    cause = _TROUBLES.get(smi.trouble)
    if cause is not None:
        yield Symptom(cause=cause, part=part, evidence=smi.notes[:4])
    module = seen.maybe(MODULE_VERSION)
    if module is not None and smi.driver and module[0] != smi.driver:
        evidence = (f"kernel module {module[0]}, libraries {smi.driver}",)
        yield Symptom(cause=MISMATCH, part=part, evidence=evidence)
    if cause is None:
        yield from unreliable(smi)
    if smi.gpus and not smi.driver and smi.source == "xml":
        yield Symptom(
            cause=NVML, part=part, evidence=("nvidia-smi does not tell the driver's version",), status="unknown"
        )


def _driver_traits(seen: Seen) -> Iterator[Trait]:
    smi, module = listed(seen), seen.maybe(MODULE_VERSION)
    part = Part(kind="driver", key="nvidia")
    version = smi.driver or (module[0] if module is not None and smi.trouble else "")
    if version:
        yield Trait(name="gpu.driver", value=version, differs=DRIVER, part=part)
    if smi.cuda:
        yield Trait(name="gpu.cuda", value=smi.cuda, differs=CUDA, part=part)


def _odd(gpus: Sequence[Gpu], *paths: str) -> Iterator[tuple[Gpu, str, str]]:
    """GPUs whose text differs from what most of the same product in this host have: GPU, its text, theirs."""
    by_name: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        by_name.setdefault(gpu.fields.get("product_name", ""), []).append(gpu)
    for siblings in by_name.values():
        texts = Tally(text for gpu in siblings if (text := text_of(gpu, *paths)))
        if len(texts) < 2:
            continue
        (usual, most), (_, next_most) = texts.most_common(2)
        for gpu in siblings:
            text = text_of(gpu, *paths)
            if text and text != usual and most > next_most:
                yield gpu, text, usual


def _judge_vbios(seen: Seen) -> Iterator[Symptom]:
    smi = listed(seen)
    for gpu, text, usual in _odd(smi.gpus, "vbios_version"):
        yield Symptom(cause=VBIOS, part=gpu.part, evidence=(f"VBIOS {text}, its siblings have {usual}",))
    yield from unreliable(smi)


def _traits_of(name: str, path: str, cause: Cause, seen: Seen) -> Iterator[Trait]:
    for gpu in listed(seen).gpus:
        if text := text_of(gpu, path):
            yield Trait(name=name, value=text, differs=cause, part=gpu.part)


def _judge_inforom(seen: Seen) -> Iterator[Symptom]:
    smi = listed(seen)
    yield from unreliable(smi)
    for note in smi.notes:
        found = _INFOROM.search(note)
        if found is not None:
            yield Symptom(cause=INFOROM, part=_named(smi, found["address"] or ""), evidence=(note,))
    for gpu in smi.gpus:
        if reading(gpu, "inforom_version/img_version").kind == "broken":
            text = gpu.fields.get("inforom_version/img_version", "")
            yield Symptom(cause=INFOROM, part=gpu.part, evidence=(f"infoROM image: {text}",))
    for gpu, text, usual in _odd(smi.gpus, "inforom_version/img_version"):
        yield Symptom(cause=INFOROM_IMAGE, part=gpu.part, evidence=(f"image {text}, its siblings have {usual}",))


def _named(smi: Smi, address: str) -> Part:
    try:
        key = pci_key(address)
    except ValueError:
        return smi.gpus[0].part if len(smi.gpus) == 1 else Part(kind="gpu", key=address or "not named")
    return next((gpu.part for gpu in smi.gpus if gpu.key == key), Part(kind="gpu", key=key))


def _judge_board(seen: Seen) -> Iterator[Symptom]:
    smi = listed(seen)
    yield from unreliable(smi)
    for gpu, text, usual in _odd(smi.gpus, "fb_memory_usage/total"):
        yield Symptom(cause=MEMORY, part=gpu.part, evidence=(f"{text} of memory, its siblings have {usual}",))


def _board_traits(seen: Seen) -> Iterator[Trait]:
    yield from _traits_of("gpu.name", "product_name", BOARD, seen)
    for gpu in listed(seen).gpus:
        total = reading(gpu, "fb_memory_usage/total")
        if total.kind == "number":
            yield Trait(name="gpu.memory_mib", value=int(total.number), differs=MEMORY, part=gpu.part)


def _board_identities(seen: Seen) -> Iterator[Identity]:
    """Boards without a serial number, as workstation boards are, have their UUID."""
    for gpu in listed(seen).gpus:
        serial = text_of(gpu, "serial", "uuid")
        yield Identity(part=gpu.part, serial=serial, model=text_of(gpu, "board_part_number", "product_name"))


def _judge_mig(reader: Reader, _: Seen) -> Iterator[Symptom]:
    """GPUs without MIG say N/A. A MIG device is no GPU of its own here."""
    current = reader.word("mig_mode/current_mig", required=False)
    pending = reader.word("mig_mode/pending_mig", required=False)
    if current and pending and current != pending:
        evidence = (f"MIG mode: current {current}, pending {pending}",)
        yield Symptom(cause=MIG_PENDING, part=reader.gpu.part, evidence=evidence)


def _judge_persistence(seen: Seen) -> Iterator[Symptom]:
    """Off on all GPUs is how a driver comes, and then the fleet decides; off on some of a host is an oversight."""
    smi = listed(seen)
    yield from unreliable(smi)
    modes = {text_of(gpu, "persistence_mode") for gpu in smi.gpus}
    for gpu in smi.gpus:
        if len(modes) > 1 and text_of(gpu, "persistence_mode") == "Disabled":
            yield Symptom(cause=PERSISTENCE, part=gpu.part, evidence=("persistence mode: Disabled; siblings: Enabled",))


CHECKS = (
    Check(
        name="gpu.driver",
        about="the NVIDIA driver runs, its parts fit together, its version is the fleet's",
        probes=(NVIDIA_SMI, MODULE_VERSION),
        parts=("driver",),
        causes=(NOT_LOADED, MISMATCH, NVML, DRIVER, CUDA, UNREADABLE),
        judge=_judge_driver,
        traits=_driver_traits,
        trait_names=(
            "gpu.driver",
            "gpu.cuda",
        ),
    ),
    Check(
        name="gpu.board",
        about="name and memory size of the GPUs",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(BOARD, MEMORY, UNREADABLE),
        judge=_judge_board,
        traits=_board_traits,
        identities=_board_identities,
        trait_names=(
            "gpu.name",
            "gpu.memory_mib",
        ),
    ),
    Check(
        name="gpu.vbios",
        about="VBIOS version, against siblings, fleet or profile",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(VBIOS, UNREADABLE),
        judge=_judge_vbios,
        traits=lambda seen: _traits_of("gpu.vbios", "vbios_version", VBIOS, seen),
        trait_names=("gpu.vbios",),
    ),
    Check(
        name="gpu.inforom",
        about="corrupted infoROM (the GPU works all the same) and odd infoROM images",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(INFOROM, INFOROM_IMAGE, UNREADABLE),
        judge=_judge_inforom,
        traits=lambda seen: _traits_of("gpu.inforom_image", "inforom_version/img_version", INFOROM_IMAGE, seen),
        trait_names=("gpu.inforom_image",),
    ),
    Check(
        name="gpu.mig",
        about="MIG mode that waits for a reset, or differs from the fleet's",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(MIG_PENDING, MIG_MODE, UNREADABLE),
        judge=per_gpu(_judge_mig),
        traits=lambda seen: _traits_of("gpu.mig_mode", "mig_mode/current_mig", MIG_MODE, seen),
        trait_names=("gpu.mig_mode",),
    ),
    Check(
        name="gpu.persistence",
        about="persistence mode off where siblings or fleet have it on",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(PERSISTENCE, UNREADABLE),
        judge=_judge_persistence,
        traits=lambda seen: _traits_of("gpu.persistence", "persistence_mode", PERSISTENCE, seen),
        trait_names=("gpu.persistence",),
    ),
)
