"""``wholestack health probe``: active checks of this host's devices, before a job and between jobs."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from wholestack.cli.live import LiveWatcher
from wholestack.cli.output import code_for, findings_document, parse_duration, parse_size, print_json, read_bytes
from wholestack.errors import InputError
from wholestack.finding import EXIT_OK
from wholestack.record import to_builtins

Flag = Annotated[bool, Parameter(negative="")]
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

app = App(
    name="probe",
    help="Active checks of this host: exact products, memory, pace; `probe learn` learns the pace of a fleet.",
    help_format="plaintext",
    result_action="return_value",
)


@app.default
def probe(
    *,
    devices: Literal["gpu", "cpu", "all"] | None = None,
    seconds: str = "60s",
    memory: str | None = None,
    reference: Path | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    even_if_busy: Flag = False,
    idle: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    out: Path | None = None,
    json: Flag = False,
    all: Flag = False,
) -> int:
    """Probe this host: does each device multiply right, keep what it is given, and keep pace with its kind?

    Multiplies integers whose product is exact in the precision used, in many patterns and shapes, and checks every
    element; writes and copies patterns over the memory; times products and copies. GPUs are reached by torch (not tried
    on a GPU yet); without any the cores of the CPU are probed by numpy, each pinned.
    Not for a host with a running job: a device in use, or of which that cannot be told, is left alone and unknown.

    Exit codes: 0 nothing wrong; 1 a device is wrong or slow; 3 something could not be told; 2 usage; 130 interrupted.

    Parameters
    ----------
    devices
        Which: gpu, cpu or all. Default: the GPUs of a host that has some, else the cores.
    seconds
        Wall time of all of it, such as 90s or 5m.
    memory
        Most to fill on each device, such as 4GiB. Default: 80 % of what is free on a GPU, 40 % of a core's share.
    reference
        File of `wholestack health probe learn`. Without it a device's pace is compared with four or more of its kind
        on this host, and where there are fewer not at all.
    rounds
        End after so many rounds, although there is time left.
    seed
        Same seed, same operands; default: another one each time.
    even_if_busy
        Probe devices in use too; their pace is not judged.
    idle
        Probe these devices although it cannot be told whether something uses them (nvidia-smi is missing, silent or
        fails), since you know that nothing does: address as findings show it, or serial. Their pace is not judged.
    out
        Folder for the results; made if it is missing. Default: probe-<time>.
    json
        Print one JSON document.
    all
        Show what is ok as well.
    """
    for variable in ONE_THREAD:  # before numpy loads: other threads would multiply on other cores
        os.environ[variable] = "1"
    from wholestack.health.active.command import Asked, run_probe
    from wholestack.health.describing import describe_judgement

    asked = Asked(
        devices=devices,
        seconds=parse_duration(seconds),
        room_bytes=parse_size(memory) if memory else None,
        reference=reference,
        rounds=rounds,
        seed=time.time_ns() % 2**31 if seed is None else seed,
        even_if_busy=even_if_busy,
        idle=idle,
    )
    folder = out or Path(time.strftime("probe-%Y%m%d-%H%M%S"))
    with _Progress() as progress:
        host, found = run_probe(asked, folder, content=read_bytes(reference) if reference else None, tell=progress.tell)
    if json:
        judged = found.judgement
        document = findings_document(judged.findings, status=judged.status, skipped=judged.skipped, everything=all)
        print_json({"host": host, "run": str(folder), **document, "devices": [to_builtins(e) for e in found.outcomes]})
    else:
        print(describe_judgement(found.judgement, everything=all))
        print(f"{len(found.outcomes)} devices of {host}; results in {folder}")
    return code_for(found.judgement.status, found.judgement.findings)


@app.command
def learn(*results: Path, out: Path, add: Path | None = None, json: Flag = False) -> int:
    """Learn how fast devices of each kind are, from probes; devices in which something was found are left out.

    With 2,000 devices or more the bound of sound paces keeps its false rate whatever their distribution; from fewer it
    is drawn as for a normal one and never above the slowest learnt.

    Parameters
    ----------
    results
        Folders of `wholestack health probe`.
    out
        File of the reference.
    add
        An earlier reference to add to; it may be the same file.
    json
        Print one JSON document.
    """
    from wholestack.health.active.probing import read_measured
    from wholestack.health.active.speed import Reference, learn
    from wholestack.journal import changing, write_atomic
    from wholestack.record import from_json, to_json

    if not results:
        raise InputError("no probes to learn from", remedy="name folders of `wholestack health probe`")
    with changing(out):
        old = from_json(Reference, read_bytes(add), where=str(add)) if add else None
        learnt, left_out = learn(read_measured(_once(results)), old)
        write_atomic(out, to_json(learnt, indent=2))
    counts = {key: len(levels) for key, levels in learnt.levels.items()}
    if json:
        print_json({"out": str(out), "levels": counts, "left_out": left_out})
        return EXIT_OK
    for key, count in counts.items():
        print(f"{count:6} levels  {key}")
    for line in left_out:
        print(f"left out: {line}")
    return EXIT_OK


def _once(folders: Sequence[Path]) -> list[Path]:
    """A probe that is named twice counts once."""
    return list({folder.resolve(): folder for folder in folders}.values())


class _Progress(LiveWatcher):
    """What goes on, on a terminal."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._started = time.monotonic()

    def tell(self, what: str) -> None:
        if self._console.is_terminal:
            self._draw(f"{time.monotonic() - self._started:.0f} s: {what}")
