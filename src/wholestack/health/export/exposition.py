"""Metrics as text that Prometheus reads: the text format 0.0.4 of its public documentation ("Exposition formats").

A label value is whatever a host said, so it is cleaned: printable, at most :data:`MOST_CHARACTERS` long, and never two
values made one by that. One metric has one sample a set of labels: two would make Prometheus refuse the whole answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wholestack.health.cleaning import printable
from wholestack.record import Record, digest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_CHARACTERS = 120
"""Of a label value."""
_MARKED = re.compile(r"~[0-9a-f]{8}\Z")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Record):
    """One metric; all are gauges."""

    name: str
    """Ends with its unit, where it has one."""
    help: str
    labels: tuple[str, ...] = ()
    absent: str = ""
    """When there is no sample, where that is not plain from the help."""


Samples = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""By metric, then by label values in the order of its labels."""


def clean(text: str) -> str:
    """A label value: what was changed ends with a mark of the whole, so that two texts never become one."""
    shown = printable(text)
    if shown == text and len(text) <= MOST_CHARACTERS and not _MARKED.search(text):
        return text
    mark = digest(text.encode(errors="surrogatepass").hex())[:8]
    return f"{shown[: MOST_CHARACTERS - 9]}~{mark}"


def render(samples: Samples) -> bytes:
    """The text of all metrics that have samples."""
    lines: list[str] = []
    for metric, values in samples.items():
        if values:
            lines += [f"# HELP {metric.name} {_help(metric)}", f"# TYPE {metric.name} gauge"]
            lines += [f"{metric.name}{_labels(metric.labels, of)} {_number(value)}" for of, value in values.items()]
    return ("\n".join(lines) + "\n").encode() if lines else b""


def _help(metric: Metric) -> str:
    return metric.help.replace("\\", r"\\").replace("\n", r"\n")


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(float(value))
