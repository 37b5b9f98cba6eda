"""This machine, asked as a host is; it may be as broken as one."""

import asyncio

import pytest

from tests.health.looking import moment
from wholestack.health import catalog
from wholestack.health.local import check_this_machine
from wholestack.remote.batch import Output
from wholestack.remote.simulated import SimulatedRemote

CLOCK = (catalog.named("kernel.version"),)


def checked(output: Output):
    """Findings where only the probe of the moment answers, with this."""

    def answer(_host, command):
        return output if command.name == "moment" else Output(name=command.name, exit_status=127)

    return asyncio.run(check_this_machine(CLOCK, SimulatedRemote(answer), expectation=None))


@pytest.mark.parametrize(
    "output",
    [
        Output(name="moment", stdout=b"now=\nboot_id=\n"),
        Output(name="moment", stdout=b"", exit_status=1),
        Output(name="moment", exit_status=127),
        Output(name="moment", exit_status=None, ending="timed_out"),
    ],
)
def test_a_machine_that_cannot_tell_its_time_is_unknown_and_goes_by_localhost(output):
    found = checked(output)
    assert found.status == "unknown"
    assert {each.subject for each in found.findings} == {"localhost"}


def test_a_name_that_steers_the_terminal_is_cleaned_and_cut():
    text = moment().replace("hostname=h", "hostname=h\x1b[2J" + "x" * 2000)
    (finding,) = checked(Output(name="moment", stdout=text.encode())).findings
    assert "\x1b" not in finding.subject
    assert len(finding.subject) == 200
