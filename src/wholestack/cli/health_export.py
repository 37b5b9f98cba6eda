"""``wholestack health export``: health as metrics for Prometheus, with alert rules and a dashboard."""

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli.health_history import default_history
from wholestack.cli.output import parse_duration, print_json
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN
from wholestack.health.export.sources import Exporter

Json = Annotated[bool, Parameter(negative="")]

export = App(
    name="export",
    help="Metrics for Prometheus, as a text file or over HTTP, with alert rules and a dashboard.",
    help_format="plaintext",
    result_action="return_value",
)
PORT = 9843


@export.default
def write(
    sweeps: Path | None = None,
    /,
    *,
    history: Path | None = None,
    stale_after: str | None = None,
    out: Path | None = None,
    json: Json = False,
) -> int:
    """Write the metrics of now, once: to a file by atomic rename, or to the terminal.

    A source that cannot be read, or whose hosts were not asked within their stated time, says so in its own metric
    and takes its hosts with it: what was good is never exported when it is old.

    Exit codes: 0 written; 3 written, but a source could not be read or is stale; 2 usage.

    Parameters
    ----------
    sweeps
        Folder of a sweep, or of sweeps, of which the one that was concluded last counts.
    history
        File of the history; default, if no sweep is named either: see `wholestack health history add --help`.
    stale_after
        How long something is known of a host after it was asked, such as 1h. Default: four times its usual while, at
        least an hour; of a sweep without a history a day.
    out
        File to write, for the textfile collector of node_exporter; its name ends with .prom.
    json
        Print one JSON document: the sources and how many hosts are in which state.
    """
    from collections import Counter

    from wholestack.health.export.exposition import render
    from wholestack.health.export.metrics import HOST_STATE, SOURCE_STALE, SOURCE_UP
    from wholestack.journal import write_atomic

    exporter = _exporter(sweeps, history, stale_after)
    samples = exporter.samples()
    problems: dict[str, str] = {str(name): why for name, why in exporter.problems.items()}
    text = render(samples)
    if out is not None:
        write_atomic(out, text)
        out.chmod(0o644)
    if json:
        states = Counter(state for _, _, state in samples[HOST_STATE])
        stale = {name for (name,), value in samples[SOURCE_STALE].items() if value}
        print_json(
            {
                "out": str(out) if out else None,
                "bytes": len(text),
                "hosts": dict(sorted(states.items())),
                "sources": {
                    name: {"up": bool(up), "stale": name in stale, "problem": problems.get(name, "")}
                    for (name,), up in samples[SOURCE_UP].items()
                },
            }
        )
    elif out is None:
        sys.stdout.write(text.decode())
    lost = not all(samples[SOURCE_UP].values()) or any(samples[SOURCE_STALE].values())
    return EXIT_UNKNOWN if lost else EXIT_OK


@export.command
def serve(
    sweeps: Path | None = None,
    /,
    *,
    history: Path | None = None,
    stale_after: str | None = None,
    port: int = PORT,
    address: str = "127.0.0.1",
) -> int:
    """Answer GET /metrics until SIGTERM or Ctrl-C; sources are read again when they change.

    It asks nobody who they are: let it listen on loopback, or in a network that may know the state of the cluster.

    Parameters
    ----------
    sweeps
        Folder of a sweep, or of sweeps, of which the one that was concluded last counts.
    history
        File of the history; default, if no sweep is named either: see `wholestack health history add --help`.
    stale_after
        How long something is known of a host after it was asked; see `wholestack health export --help`.
    port
        Port; 0: a free one.
    address
        Address to listen on.
    """
    import asyncio

    from wholestack.health.export.serving import PATH, MetricsServer

    exporter = _exporter(sweeps, history, stale_after)

    async def answering() -> None:
        server = MetricsServer(exporter.text)
        got = await server.start(address, port)
        print(f"http://{f'[{address}]' if ':' in address else address}:{got}{PATH}", file=sys.stderr, flush=True)
        await server.until_told()

    asyncio.run(answering())
    return EXIT_OK


@export.command
def metrics(*, json: Json = False) -> int:
    """List the metrics with their labels and what they mean.

    Parameters
    ----------
    json
        Print one JSON document: a list.
    """
    import textwrap

    from wholestack.health.export.metrics import METRICS
    from wholestack.record import to_builtins

    if json:
        print_json([to_builtins(each) for each in METRICS])
        return EXIT_OK
    for each in METRICS:
        print(each.name)
        said = [each.help]
        if each.labels:
            said.append(f"Labels: {', '.join(each.labels)}.")
        if each.absent:
            said.append(f"Absent: {each.absent}.")
        print(textwrap.fill(" ".join(said), 78, initial_indent="  ", subsequent_indent="  "))
    return EXIT_OK


@export.command
def rules(*, tests: Json = False) -> int:
    """Print the alert rules, for a file that rule_files of Prometheus names.

    Parameters
    ----------
    tests
        Print their unit tests instead, for `promtool test rules`; they expect the rules beside them as alerts.yml.
    """
    from wholestack.health.export.files import packaged

    sys.stdout.write(packaged("alerts_test.yml" if tests else "alerts.yml"))
    return EXIT_OK


@export.command
def dashboard() -> int:
    """Print the dashboard, for the import of Grafana."""
    from wholestack.health.export.files import packaged

    sys.stdout.write(packaged("dashboard.json"))
    return EXIT_OK


def _exporter(sweeps: Path | None, history: Path | None, stale_after: str | None) -> Exporter:
    return Exporter(
        sweeps=sweeps,
        history=history or (default_history() if sweeps is None else None),
        clock=time.time,
        log=lambda line: print(f"wholestack: {line}", file=sys.stderr, flush=True),
        stale_after_s=parse_duration(stale_after) if stale_after else None,
    )
