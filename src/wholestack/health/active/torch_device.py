"""GPUs as devices, by torch. Imported only where torch is installed; no GPU was at hand when this was written.

The class also takes torch's CPU device, with which the tests run it.
"""

import csv
import os
import subprocess
from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from wholestack.health.active.device import Handle
from wholestack.health.active.operands import IntArray, PrecisionName, WordArray
from wholestack.health.parts import Part, pci_key

SMI_LIMIT_S = 20.0
_DTYPES: dict[PrecisionName, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
Query = Callable[[str, str], list[list[str]] | None]
"""What nvidia-smi says of a device: (``--query-...`` with fields, PCI address or UUID) to rows; ``None`` where it
fails, which is another answer than no row."""


def smi(query: str, address: str) -> list[list[str]] | None:
    """Ask nvidia-smi of one GPU, with a limit; rows of fields, or ``None`` where it is missing, silent or fails."""
    if not address:
        return None
    command = ["nvidia-smi", f"--id={address}", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return [[field.strip() for field in row] for row in csv.reader(done.stdout.splitlines()) if row]


class TorchDevice:
    """One device of torch.

    Args:
        device: For instance ``cuda:0``.
        query: Asks its driver.
    """

    def __init__(self, device: torch.device, *, query: Query = smi) -> None:
        self._device, self._query = device, query
        self.part, self.kind, self.serial, self._address = _identity(device)
        on_gpu = device.type == "cuda"
        self.precisions: tuple[PrecisionName, ...] = (
            ("float64", "float32", "tf32", "float16", "bfloat16") if on_gpu else ("float64", "float32", "bfloat16")
        )

    def free_bytes(self) -> int:
        """What the driver says is free."""
        return int(torch.cuda.mem_get_info(self._device)[0]) if self._device.type == "cuda" else 1 << 30

    def in_use(self) -> str | None:
        """Processes that compute on it, but for this one."""
        rows = self._query("--query-compute-apps=pid,process_name", self._address)
        if rows is None or any(not row[0].isdigit() for row in rows):
            return None
        others = [row for row in rows if row[0] != str(os.getpid())]
        return "; ".join(f"process {' '.join(row)} computes on it" for row in others[:4])

    def corrections(self) -> tuple[str, ...]:
        """Rows that were remapped, and errors that were corrected over its life."""
        fields = ("remapped_rows.correctable", "remapped_rows.uncorrectable", "remapped_rows.pending")
        remapped = self._query(f"--query-remapped-rows={','.join(fields)}", self._address)
        corrected = self._query("--query-gpu=ecc.errors.corrected.aggregate.total", self._address)
        names = (*fields, "ecc.errors.corrected.aggregate.total")
        values = [*(remapped[0] if remapped else [""] * 3), *(corrected[0] if corrected else [""])]
        said = zip(names, values, strict=False)
        return tuple(f"{name} {value}" for name, value in said if value.lower() not in ("", "0", "no", "[n/a]", "n/a"))

    def put(self, values: IntArray, precision: PrecisionName) -> Handle:
        """See :class:`Device`."""
        return torch.from_numpy(values).to(self._device).to(_DTYPES[precision])

    def write(self, words: WordArray) -> Handle:
        """See :class:`Device`."""
        return torch.from_numpy(words.view(np.int64)).to(self._device, copy=True)

    def multiply(self, left: Handle, right: Handle, precision: PrecisionName) -> Handle:
        """See :class:`Device`."""
        matmul = torch.backends.cuda.matmul
        before, matmul.allow_tf32 = matmul.allow_tf32, precision == "tf32"
        try:
            return left @ right
        finally:
            matmul.allow_tf32 = before

    def copy(self, held: Handle) -> Handle:
        """See :class:`Device`."""
        return held.clone()

    def fetch(self, held: Handle) -> NDArray[np.generic]:
        """See :class:`Device`."""
        if held.dtype == torch.int64:
            words: NDArray[np.generic] = held.cpu().numpy().view(np.uint64)
            return words
        found: NDArray[np.generic] = (held.float() if held.dtype == torch.bfloat16 else held).cpu().numpy()
        return found

    def timed(self, work: Callable[[], object]) -> float:
        """By the device's own events; else by the clock."""
        if self._device.type != "cuda":
            started = perf_counter()
            work()
            return perf_counter() - started
        with torch.cuda.device(self._device):
            start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            start.record()
            work()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1000


def gpus_here() -> list[TorchDevice]:
    """Every GPU that torch sees."""
    return [TorchDevice(torch.device("cuda", index)) for index in range(torch.cuda.device_count())]


def _identity(device: torch.device) -> tuple[Part, str, str, str]:
    """Part, kind, serial (burnt-in UUID), address; of torch's CPU device a stand-in."""
    if device.type != "cuda":
        return Part(kind="cpu", key=str(device)), f"torch on {device.type}", "", ""
    properties = torch.cuda.get_device_properties(device)
    uuid = str(getattr(properties, "uuid", ""))
    known = [getattr(properties, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    numbers = [each for each in known if isinstance(each, int)]
    # Not torch's own number of it: the driver's may be another (CUDA_VISIBLE_DEVICES).
    by_uuid = f"GPU-{uuid.removeprefix('GPU-')}" if uuid else ""
    address = f"{numbers[0]:08x}:{numbers[1]:02x}:{numbers[2]:02x}.0" if len(numbers) == 3 else by_uuid
    key = pci_key(address) if len(numbers) == 3 else f"index {device.index}"
    return Part(kind="gpu", key=key, label=f"{properties.name}, {uuid}"), properties.name, uuid, address
