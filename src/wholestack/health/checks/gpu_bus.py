"""PCIe links of GPUs: width and speed against what the two ends can do."""

from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Counter, Limit, Seen, Symptom, Trait
from wholestack.health.checks.nvidia import NVIDIA_SMI, UNREADABLE, Reader, gpu_part, per_gpu, unreliable
from wholestack.health.checks.pci import LINKS
from wholestack.health.formats.nvidia_smi import Gpu, reading
from wholestack.health.growth import Growth, Levels, Memory
from wholestack.health.probe import NotThereError

WIDTH = Cause(
    code="gpu.pcie_width",
    says="PCIe link of the GPU has fewer lanes than it could",
    owner="data centre",
    remedy="reseat the GPU, riser or cable; clean the contacts; if it stays, have GPU or board replaced",
    status="warn",
    explains=("gpu.pcie_width_max",),
)
SPEED = Cause(
    code="gpu.pcie_speed",
    says="PCIe link of the GPU runs slower than it could",
    owner="data centre",
    remedy="reseat the GPU, riser or cable; look at the slot's speed in the BIOS set-up",
    status="warn",
    explains=("gpu.pcie_speed_max",),
)
WIDTH_MAX = Cause(
    code="gpu.pcie_width_max",
    says="the GPU's slot offers another number of lanes than on other hosts",
    owner="data centre",
    remedy="check slot, riser and bifurcation in the BIOS set-up",
    status="warn",
)
SPEED_MAX = Cause(
    code="gpu.pcie_speed_max",
    says="the GPU's slot offers another generation of PCIe than on other hosts",
    owner="data centre",
    remedy="check the slot's speed in the BIOS set-up",
    status="warn",
)
REPLAYS = Cause(
    code="gpu.pcie_replays",
    says="PCIe link of the GPU repeats many packets",
    owner="data centre",
    remedy="reseat the GPU, riser or cable; clean the contacts; if it goes on, have GPU or board replaced",
    status="warn",
)
REPLAYS_PER_HOUR = Limit(
    name="gpu.pcie_replays_per_hour", default=480, about="repeated PCIe packets an hour that are a warning"
)
"""DCGM's health watch warns at 8 a minute."""
_WIDTHS = "pci/pci_gpu_link_info/link_widths/"
_GENERATIONS = "pci/pci_gpu_link_info/pcie_gen/"


def _judge_one(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    width, most = reader.number(_WIDTHS + "current_link_width"), reader.number(_WIDTHS + "max_link_width")
    if width is not None and most is not None and width < most:
        yield Symptom(cause=WIDTH, part=reader.gpu.part, evidence=(f"link width {width:g}x of {most:g}x",))
    speed = reader.number(_GENERATIONS + "current_link_gen", required=reader.whole)
    best = reader.number(_GENERATIONS + "max_link_gen", required=reader.whole)
    if speed is not None and best is not None and speed < best and _should_be_fast(reader.gpu, speed):
        state = reader.word("performance_state", required=False)
        evidence = (f"link generation {speed:g} of {best:g} in performance state {state or 'not told'}",)
        yield Symptom(cause=SPEED, part=reader.gpu.part, evidence=evidence)
    yield from _judge_replays(reader.gpu, seen)


def _judge_replays(gpu: Gpu, seen: Seen) -> Iterator[Symptom]:
    for growth in _growths(gpu, seen):
        if growth.status != "ok":
            yield Symptom(cause=REPLAYS, part=gpu.part, evidence=(growth.says,))


def _growths(gpu: Gpu, seen: Seen) -> Iterator[Growth]:
    found = reading(gpu, "pci/replay_counter")
    if found.kind == "number" and found.number >= 0:
        counter = Counter(name="gpu.pcie_replays", value=int(found.number), part=gpu.part.identity)
        yield Memory(seen).growth(counter, Levels(warn=seen.limit(REPLAYS_PER_HOUR)))


def _counters(seen: Seen) -> Iterator[Counter]:
    smi = seen.maybe(NVIDIA_SMI)
    gpus = smi.gpus if smi is not None else ()
    return (counter for gpu in gpus for growth in _growths(gpu, seen) for counter in growth.keep)


def _should_be_fast(gpu: Gpu, generation: float) -> bool:
    """An idle GPU may bring its link down to the first generation, in lower performance states to any."""
    used = reading(gpu, "utilization/gpu_util")
    busy = used.kind == "number" and used.number >= 10
    return busy or (reading(gpu, "performance_state").text == "P0" and generation > 1)


def _judge(seen: Seen) -> Iterator[Symptom]:
    """From nvidia-smi; what the bus says of the same GPUs is added, and stands alone where the tool is silent."""
    yield from _told_by_bus(seen)
    if NVIDIA_SMI.name in seen.outputs or LINKS.name not in seen.outputs:
        yield from per_gpu(_judge_one)(seen)
    elif not any(link.is_gpu for link in seen.of(LINKS)):
        raise NotThereError("not_expected", "no NVIDIA GPU with a link")


def _told_by_bus(seen: Seen) -> Iterator[Symptom]:
    """Its width only: sysfs does not tell whether the GPU is idle."""
    for link in seen.maybe(LINKS) or ():
        if link.is_gpu and link.width is not None and link.most_width is not None and 0 < link.width < link.most_width:
            yield Symptom(cause=WIDTH, part=gpu_part(seen, link.key), evidence=(link.line,))


def _traits(seen: Seen) -> Iterator[Trait]:
    smi = seen.maybe(NVIDIA_SMI)
    if smi is None or any(unreliable(smi)):
        return
    for gpu in smi.gpus:
        for name, path, cause in (
            ("gpu.pcie_width_max", _WIDTHS + "max_link_width", WIDTH_MAX),
            ("gpu.pcie_generation_max", _GENERATIONS + "max_link_gen", SPEED_MAX),
        ):
            found = reading(gpu, path)
            if found.kind == "number":
                yield Trait(name=name, value=int(found.number), differs=cause, part=gpu.part)


CHECKS = (
    Check(
        name="gpu.pcie",
        about="width and speed of the GPUs' PCIe links (an idle GPU may slow its link down)",
        probes=(NVIDIA_SMI, LINKS),
        parts=("gpu",),
        causes=(WIDTH, SPEED, WIDTH_MAX, SPEED_MAX, REPLAYS, UNREADABLE),
        limits=(REPLAYS_PER_HOUR,),
        judge=_judge,
        counters=_counters,
        traits=_traits,
        trait_names=(
            "gpu.pcie_width_max",
            "gpu.pcie_generation_max",
        ),
    ),
)
