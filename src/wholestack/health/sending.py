"""What is sent to a host: the commands of the probes, those with an option only where its profile has it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wholestack.health.check import Expectation
from wholestack.health.probe import Probe
from wholestack.remote.batch import Command


def commands_for(probes: Sequence[Probe[Any]], expectation: Expectation) -> list[Command]:
    """The batch of commands.

    Args:
        probes: Of all checks that are put.
        expectation: Of the host's kind; its options become shell variables, quoted.
    """
    return [
        _with_option(probe, expectation.options)
        for probe in probes
        if not probe.option or probe.option in expectation.options
    ]


def _with_option(probe: Probe[Any], options: Mapping[str, str]) -> Command:
    if not probe.option:
        return probe.command
    setting = f"{probe.option.upper()}={shlex.quote(options[probe.option])}"
    return replace(probe.command, shell=f"{setting}; {probe.command.shell}")
