"""Which devices this host has, and which of them can be reached."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from wholestack.health.active.cores import cores_here
from wholestack.health.active.device import Device

Which = Literal["gpu", "cpu", "all"]
DRIVER = Path("/proc/driver/nvidia/gpus")
"""A folder a GPU, made by the kernel's driver."""
AMD = Path("/dev/kfd")
"""There where a GPU of this maker has its driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Devices of this host."""

    devices: tuple[Device, ...]
    out_of_reach: str = ""
    """Which GPUs are there and why they cannot be probed; empty where there are none such."""


@contextmanager
def devices_here(
    which: Which | None, *, driver: Path = DRIVER, gpus: Callable[[], tuple[Sequence[Device], str]] | None = None
) -> Iterator[Found]:
    """The devices to probe; afterwards this process may run on every core again.

    Args:
        which: GPUs, cores or both; by default the GPUs of a host that has some, else its cores.
        driver: Where the GPUs' driver lists them.
        gpus: Gives those that can be reached, and why if none can.
    """
    there = sum(1 for _ in driver.glob("*")) if which != "cpu" else 0
    # torch takes seconds to load, for nothing on a host without a GPU.
    asks = which in ("gpu", "all") or (which is None and (there > 0 or AMD.exists()))
    reached, why = (gpus or _gpus)() if asks else ((), "")
    missing = f"{there} GPUs here, {len(reached)} within reach{why and f': {why}'}" if there > len(reached) else ""
    with cores_here() as cores:
        take_cores = which in ("cpu", "all") or (which is None and not reached and not there)
        yield Found(devices=(*reached, *(cores if take_cores else ())), out_of_reach=missing)


def _gpus() -> tuple[Sequence[Device], str]:
    if find_spec("torch") is None:
        return (), "torch is not installed"
    from wholestack.health.active.torch_device import gpus_here

    found = gpus_here()
    return found, "" if found else "torch sees none of them"
