"""Output of gpu_burn: progress, overwritten with carriage returns, and the verdict of each GPU at the end.

Source: wilicc/gpu-burn ``gpu_burn-drv.cpp``.
"""

import re
from dataclasses import dataclass

from wholestack.health.probe import UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Burnt:
    """One GPU."""

    index: int
    uuid: str
    verdict: str
    """``OK`` or ``FAULTY``; empty if the run did not end."""
    errors: int
    """Most that one progress line shows."""
    died: bool
    gflops: float | None
    """Last speed shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuBurn:
    """One run."""

    gpus: tuple[Burnt, ...]
    ended: bool
    """Whether it gives a verdict for as many GPUs as it says it tested."""
    failure: str


def looks_like_gpu_burn(text: str) -> bool:
    """``GPU 0: ... (UUID: ...)`` or the progress, early."""
    return re.search(r"^GPU \d+: [^\n]*\(UUID: |proc'd: \d+", text[:20_000], re.MULTILINE) is not None


def read_gpu_burn(text: str) -> GpuBurn:
    """Read one run.

    Raises:
        UnreadableError: no GPU is in it.
    """
    plain = text.replace("\r", "\n")
    uuids = {int(i): uuid for i, uuid in re.findall(r"^GPU (\d{1,3}): [^\n]*\(UUID: ([\w-]+)\)", plain, re.MULTILINE)}
    verdicts = {int(i): word for i, word in re.findall(r"^[ \t]*GPU (\d{1,3}): (OK|FAULTY)\b", plain, re.MULTILINE)}
    errors: dict[int, int] = {}
    died: set[int] = set()
    speeds: dict[int, float] = {}
    for line in re.findall(r"^.*proc'd: .*$", plain, re.MULTILINE):
        _progress(line, errors, died, speeds)
    indices = sorted({*uuids, *verdicts, *errors})
    failure = re.search(r"^.*(?:No clients are alive|Couldn't init|No CUDA devices|CUDA_ERROR).*$", plain, re.MULTILINE)
    if not indices and failure is None:
        raise UnreadableError("no GPU is in it")
    tested = re.search(r"^Tested (\d{1,3}) GPUs:", plain, re.MULTILINE)
    return GpuBurn(
        gpus=tuple(
            Burnt(
                index=index,
                uuid=uuids.get(index, ""),
                verdict=verdicts.get(index, ""),
                errors=errors.get(index, 0),
                died=index in died,
                gflops=speeds.get(index),
            )
            for index in indices
        ),
        ended=tested is not None and int(tested[1]) == len(verdicts) == len(indices),
        failure=failure[0].strip()[:300] if failure else "",
    )


def _progress(line: str, errors: dict[int, int], died: set[int], speeds: dict[int, float]) -> None:
    for index, speed in enumerate(re.findall(r"\((\d{1,9}) Gflop/s\)", line)):
        speeds[index] = float(speed)
    counts = re.search(r"errors: (.*?)(?:temps:|$)", line)
    for index, cell in enumerate(counts[1].split(" - ") if counts else ()):
        number = re.match(r"\s*(-?\d{1,12})", cell)
        if number is not None:
            errors[index] = max(errors.get(index, 0), abs(int(number[1])))
        if "DIED" in cell or (number is not None and int(number[1]) < 0):
            died.add(index)
