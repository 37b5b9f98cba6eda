"""Simulated hosts know every command of the catalogue: else its checks are skipped on all of them, silent and green."""

import pytest

from tests.health.simulator.hosts import ALL_KINDS, one_host, only
from wholestack.health import catalog
from wholestack.health.check import Expectation
from wholestack.health.examine import examine
from wholestack.health.sending import commands_for
from wholestack.health.simulator.remote import FleetRemote
from wholestack.health.simulator.tools.table import tool_of

PROBES = catalog.probes_of(catalog.chosen())
STEPS = """
no simulated host knows this command: it answers "not found" (127), and the checks are skipped on every one. Teach it:
1. src/wholestack/health/simulator/machine.py: a field of Machine (or of its parts) for what the command shows
2. src/wholestack/health/simulator/tools/*.py: a function from Machine to Answer, in the very form of the real tool
3. src/wholestack/health/simulator/tools/table.py: one Tool line with words of the command
4. src/wholestack/health/simulator/faults/*.py: a fault that changes the field, in the table of its file
5. src/wholestack/health/simulator/truth.py: words in SAID, if the fault's part is the host as a whole
6. tests/health/simulator/hosts.py: one line in SHELLS
7. PYTHONPATH=. python -m tests.health.write_faults
docs/adding/check.md shows them on its example."""


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_every_command_of_a_sweep_is_known_to_simulated_hosts(probe):
    assert tool_of(probe.command.shell) is not None, f"{probe.name}: {probe.command.shell}{STEPS}"


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_every_command_is_answered_by_a_tool_of_its_own_on_some_host(probe):
    """Words of another tool in the command would have that one answer, and the format not be known."""
    commands = commands_for([probe], Expectation(options={probe.option: "image"} if probe.option else {}))
    outputs = [FleetRemote(fleet).output(only(fleet), commands[0]) for fleet in map(one_host, ALL_KINDS)]
    assert any(probe.knows(output.text) for output in outputs), f"{probe.name}: {[each.text[:60] for each in outputs]}"


def test_every_check_of_a_sweep_passes_or_sees_something_on_some_healthy_simulated_host():
    told = set()
    for fleet in map(one_host, ALL_KINDS):
        remote, commands = FleetRemote(fleet), commands_for(PROBES, Expectation())
        (host,) = fleet.hosts()
        found = examine(remote.reply(host, commands, deadline_s=60).outputs, catalog.chosen(), now=fleet.now)
        told |= {*found.passed, *(each.check for each in found.symptoms)}
    skipped = {check.name for check in catalog.chosen()} - told - {"container_gpu"}
    assert not skipped, f"{sorted(skipped)}: skipped on every kind of host; {STEPS}"
