"""What every way to a BMC must do, as a list of the rules that one breaks.

Use it in a test of your own protocol, with a BMC whose host may be switched off and on::

    def test_my_protocol_keeps_the_rules():
        bmc = MyProtocol(address, Credentials(user="root", password="s3cret"))
        assert asyncio.run(broken_rules(bmc, "s3cret")) == []
"""

from collections.abc import Iterator, Mapping

from wholestack.health.checks.bmc_states import BMC_TIME, SEL, SENSORS
from wholestack.health.connection import power_in
from wholestack.health.outofband.bmc import Bmc, Power
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.remote.batch import Output

PROBES = {probe.name: probe for probe in (SEL, SENSORS, BMC_TIME)}
_ORDERS: tuple[Power, ...] = ("off", "off", "on", "on")


async def broken_rules(bmc: Bmc, password: str) -> list[str]:
    """Every rule that a way to a BMC breaks; none if it is sound. Its host is off for a moment, and on in the end.

    Args:
        bmc: Of a host that may be switched.
        password: With which it was made.
    """
    outputs = [await bmc.power()]
    broken: list[str] = []
    if power_in(outputs[0]) not in ("on", "off"):
        broken.append(f"power() cannot be read: {outputs[0]}")
    if nothing := await bmc.log(()):
        broken.append(f"log() gives {', '.join(nothing)}, although nothing was wanted")
    log = await bmc.log((*PROBES, "nonsense"))
    broken += _of_log(log)
    outputs += log.values()
    for to in _ORDERS:
        said, after = await bmc.set_power(to), await bmc.power()
        outputs += (said, after)
        if said.ending != "ended" or said.exit_status or power_in(after) != to:
            broken.append(f"set_power({to!r}) gives {said}, and then power() {after}")
    lines = [bmc.shown("on"), bmc.shown("off")]
    if lines[0] == lines[1] or not all(line.isprintable() and line for line in lines):
        broken.append(f"shown() gives {lines}: one line each, and not the same")
    if password in repr((outputs, lines, bmc)):
        broken.append("the password is in what it says or shows")
    return broken


def _of_log(log: Mapping[str, Output]) -> Iterator[str]:
    for name, output in log.items():
        if name not in PROBES:
            yield f"log() gives {name}, which is none of {', '.join(PROBES)}"
        elif output.name != name:
            yield f"log() gives {output.name} under the name {name}"
        elif output.exit_status:
            if len(output.stderr.splitlines()) != 1:
                yield f"{name} failed without one line why: {output.stderr!r}"
        else:
            try:
                PROBES[name].read(output)
            except (UnreadableError, NotThereError) as error:
                yield f"{name} cannot be read by the probe of that name: {error}"
