"""``nvidia-smi nvlink`` and ``nvidia-smi -L``.

Forms: ``-s`` prints a rate or ``<inactive>`` a link; ``-e`` three counters a link with an empty line after each link
(NVIDIA System Management Interface documentation; the same in public notes on H100 and A100 hosts).
"""

from collections.abc import Callable

from wholestack.health.simulator.hardware import Gpu
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer
from wholestack.health.simulator.tools.smi_query import smi_failure


def status(machine: Machine) -> Answer:
    """``nvidia-smi nvlink -s``."""
    return _each(machine, _links)


def errors(machine: Machine) -> Answer:
    """``nvidia-smi nvlink -e``."""
    return _each(machine, _counters)


def listing(machine: Machine) -> Answer:
    """``nvidia-smi -L``, as it comes out of a container too."""
    failure = smi_failure(machine)
    if failure:
        return failure
    return Answer(stdout="".join(_head(gpu) for gpu in machine.seen_gpus() if not gpu.lost_as), seconds=1.5)


def _each(machine: Machine, body: Callable[[Gpu], str]) -> Answer:
    failure = smi_failure(machine)
    if failure:
        return failure
    text = "".join(_lost(gpu) if gpu.lost_as else _head(gpu) + body(gpu) for gpu in machine.seen_gpus())
    return Answer(stdout=text, seconds=0.4)


def _head(gpu: Gpu) -> str:
    return f"GPU {gpu.index}: {gpu.model.name} (UUID: {gpu.uuid})\n"


def _lost(gpu: Gpu) -> str:
    return f"Unable to determine the device handle for GPU{gpu.pci.upper()}: {gpu.lost_as}\n"


def _links(gpu: Gpu) -> str:
    if gpu.links and not any(link.active for link in gpu.links):
        return "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    return "".join(
        f"\t Link {index}: {f'{gpu.model.nvlink_gb_s} GB/s' if link.active else '<inactive>'}\n"
        for index, link in enumerate(gpu.links)
    )


def _counters(gpu: Gpu) -> str:
    return "".join(
        f"\t Link {index}: Replay Errors: {link.replay}\n\t Link {index}: Recovery Errors: {link.recovery}\n"
        f"\t Link {index}: CRC Errors: {link.crc}\n\n"
        for index, link in enumerate(gpu.links)
        if link.active
    )
