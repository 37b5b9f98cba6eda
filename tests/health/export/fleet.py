"""A small history, its metrics as a dictionary, and ports that are free."""

import re
import socket

from tests.health.history.looks import HOUR, host, sight, sweep
from wholestack.health.export.sources import Exporter
from wholestack.health.history.store import History

SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def write_history(path, *, until=5, broken=("b",)):
    """Three hosts asked every hour until then; ``b`` fails from the third time on."""
    with History(path, write=True) as opened:
        for at in range(1, until + 1):
            opened.add(sweep(at, *(
                host(name, sights=[sight(host=name)] if name in broken and at > 2 else []) for name in "abc"
            )))  # fmt: skip


def exporter(*, history=None, sweeps=None, now=5 * HOUR, log=None, **more):
    """An exporter whose clock is ``now``: a number, or a function."""
    clock = now if callable(now) else lambda: now
    return Exporter(sweeps=sweeps, history=history, clock=clock, log=log or (lambda line: None), **more)


def parsed(text):
    """Samples of a text, by name without prefix and labels as a sorted tuple of pairs; refuses what is no sample."""
    found = {}
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            key = (name.removeprefix("wholestack_health_"), tuple(sorted(LABEL.findall(labels or ""))))
            assert key not in found, f"twice: {key}"
            found[key] = float(value)
    return found


def states(samples):
    """State by host."""
    rows = [dict(labels) for (name, labels), value in samples.items() if name == "host_state" and value == 1]
    assert len({row["host"] for row in rows}) == len(rows)
    return {row["host"]: row["state"] for row in rows}


def value(samples, name, **labels):
    """Value of one series; ``None`` where it is not there."""
    return samples.get((name, tuple(sorted(labels.items()))))


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]
