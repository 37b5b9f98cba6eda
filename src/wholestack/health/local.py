"""Check the machine that this runs on."""

import time
from collections.abc import Sequence
from dataclasses import replace

from wholestack.health import catalog
from wholestack.health.check import Check, Expectation, Seen
from wholestack.health.cleaning import printable
from wholestack.health.coverage import expects_gpus, shortfall
from wholestack.health.examine import examine
from wholestack.health.judging import Judgement, judgement
from wholestack.health.result import LONGEST_NAME
from wholestack.health.sending import commands_for
from wholestack.health.telemetry import MOMENT
from wholestack.remote.batch import Remote
from wholestack.remote.host import Host

MARGIN_S = 10.0
"""Beyond the slowest probe."""


async def check_this_machine(checks: Sequence[Check], remote: Remote, *, expectation: Expectation | None) -> Judgement:
    """Put the checks to this machine; it is not compared with others.

    Args:
        checks: Those to put.
        remote: The way to it: :class:`~wholestack.remote.local.LocalRemote`.
        expectation: What it should be like.
    """
    expectation = expectation or Expectation()
    probes = catalog.probes_of(tuple(checks))
    deadline_s = max(probe.command.limit_s for probe in probes) + MARGIN_S
    reply = await remote.run(Host(name="localhost"), commands_for(probes, expectation), deadline_s=deadline_s)
    found = examine(reply.outputs, checks, expectation=expectation, now=time.time(), round_trip_s=reply.seconds)
    short = shortfall([check.name for check in checks], found.skipped, gpus=expects_gpus(expectation))
    found = replace(found, symptoms=(*found.symptoms, *short))
    moment = Seen(reply.outputs, now=found.at).maybe(MOMENT)
    name = printable(moment.hostname)[:LONGEST_NAME] if moment is not None else ""
    return judgement(name or "localhost", found, checks=checks)
