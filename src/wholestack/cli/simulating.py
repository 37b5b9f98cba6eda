"""What ``wholestack health simulate`` does with its options."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from wholestack.cli.output import print_json
from wholestack.cli.sweep_progress import SweepWatcher
from wholestack.cli.sweeping import processes_for
from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK
from wholestack.health.simulation import describe_simulation, document, planned_or_drawn, simulate

if TYPE_CHECKING:
    from wholestack.health.simulator.fleet import Fleet


EXAMPLE = "lspci -Dnn"
"""A command that every simulated host knows, also one without GPUs; ``nvidia-smi`` without options none does."""


def run(hosts: int, seed: int, faults: Path | None, *, folder: Path | None, json: bool, everything: bool) -> int:
    """Simulate and print; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="wholestack-") as temporary, SweepWatcher(hosts, sys.stderr) as watcher:
        place = folder or Path(temporary)
        simulated = asyncio.run(
            simulate(
                hosts,
                seed=seed,
                folder=place,
                planned=planned_or_drawn(faults),
                watch=watcher,
                processes=processes_for(hosts),
            )
        )
    figures = simulated.figures
    if json:
        print_json(document(simulated))
    else:
        print(describe_simulation(simulated, everything=everything))
    right = figures.found == figures.injected and not figures.false_alarms
    return EXIT_OK if right else EXIT_FINDINGS


def serve(hosts: int, seed: int, faults: Path | None, *, folder: Path, port: int) -> int:
    """Keep simulated hosts up behind an SSH server until Ctrl-C."""
    try:
        from wholestack.health.simulator.serve import FleetServer
    except ModuleNotFoundError as error:
        if error.name != "asyncssh":
            raise
        raise InputError(
            "the server needs asyncssh", remedy="in a clone: make venv; or pip install asyncssh pyyaml"
        ) from error
    from wholestack.health.simulation import broken_fleet

    fleet = broken_fleet(hosts, seed=seed, planned=planned_or_drawn(faults), now=time.time())

    async def up() -> None:
        server = FleetServer(fleet, folder, port=port, clock=time.time)
        await server.start()
        print(f"{hosts} hosts on port {server.port} of this machine; Ctrl-C ends them", file=sys.stderr)
        print(f"wholestack health sweep {folder}/hosts.toml --known-hosts {folder}/known_hosts", file=sys.stderr)
        print(f"ssh -F {folder}/ssh_config {_reached(fleet)} {EXAMPLE}", file=sys.stderr)
        try:
            await server.wait()
        finally:
            await server.close()

    asyncio.run(up())
    return EXIT_OK


def _reached(fleet: "Fleet") -> str:
    """The first host that lets one in."""
    return next((machine.name for machine in fleet if not machine.trouble), next(iter(fleet)).name)
