"""What the machine is and runs: vendor, product, BIOS, kernel, distribution; all by comparison."""

from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Identity, Seen, Trait
from wholestack.health.formats.dmidecode import looks_like_dmidecode, no_tables, read_machine
from wholestack.health.formats.proc import (
    looks_like_machine_id,
    looks_like_os_release,
    read_machine_id,
    read_os_release,
)
from wholestack.health.parts import HOST, Part
from wholestack.health.probe import Format, Probe
from wholestack.health.telemetry import MOMENT
from wholestack.remote.batch import Command

DMI_SYSTEM = Probe(
    command=Command(
        name="dmi_system", shell="dmidecode -t system -t bios", limit_s=10, max_bytes=200_000, needs_root=True
    ),
    formats=(Format(name="dmidecode", matches=looks_like_dmidecode, read=read_machine),),
    absent=no_tables,
)
OS_RELEASE = Probe(
    command=Command(name="os_release", shell="cat /etc/os-release", limit_s=5, max_bytes=20_000),
    formats=(Format(name="/etc/os-release", matches=looks_like_os_release, read=read_os_release),),
)
MACHINE_ID = Probe(
    command=Command(name="machine_id", shell="cat /etc/machine-id", limit_s=5, max_bytes=1_000),
    formats=(Format(name="/etc/machine-id", matches=looks_like_machine_id, read=read_machine_id),),
)
INSTALLATION = Part(kind="host", key="installation")

OTHER_MACHINE = Cause(
    code="host.other_machine",
    says="another model of machine than its kind",
    owner="cluster team",
    remedy="correct the inventory: a host of another model needs a kind of its own",
    status="warn",
)
OTHER_BIOS = Cause(
    code="host.bios_differs",
    says="BIOS version differs",
    owner="cluster team",
    remedy="bring it to the fleet's version in the next maintenance; then compare its settings",
    status="warn",
)
OTHER_KERNEL = Cause(
    code="kernel.version_differs",
    says="kernel version differs",
    owner="cluster team",
    remedy="install the fleet's kernel and reboot into it",
    status="warn",
)
OTHER_SYSTEM = Cause(
    code="host.os_differs",
    says="distribution or its release differs",
    owner="cluster team",
    remedy="install the host anew from the fleet's image",
    status="warn",
)


def _machine(seen: Seen) -> Iterator[Trait]:
    machine = seen.of(DMI_SYSTEM)
    for name, value in (("host.vendor", machine.vendor), ("host.product", machine.product)):
        if value:
            yield Trait(name=name, value=value, differs=OTHER_MACHINE)
    if machine.bios_version:
        yield Trait(name="host.bios_version", value=machine.bios_version, differs=OTHER_BIOS)


def _machine_identity(seen: Seen) -> Iterator[Identity]:
    machine = seen.of(DMI_SYSTEM)
    yield Identity(part=HOST, serial=machine.serial, model=machine.product)


def _kernel(seen: Seen) -> Iterator[Trait]:
    yield Trait(name="kernel.version", value=seen.of(MOMENT).kernel, differs=OTHER_KERNEL, part=Part(kind="kernel"))


def _distribution(seen: Seen) -> Iterator[Trait]:
    yield Trait(name="host.os", value=seen.of(OS_RELEASE), differs=OTHER_SYSTEM)


def _installation(seen: Seen) -> Iterator[Identity]:
    installed = seen.maybe(MACHINE_ID)
    if installed is not None:
        yield Identity(part=INSTALLATION, serial=installed)


CHECKS = (
    Check(
        name="host.system",
        about="vendor, product and BIOS version of the machine, against profile or fleet",
        probes=(DMI_SYSTEM,),
        parts=("host",),
        causes=(OTHER_MACHINE, OTHER_BIOS),
        traits=_machine,
        identities=_machine_identity,
        trait_names=("host.vendor", "host.product", "host.bios_version"),
    ),
    Check(
        name="kernel.version",
        about="version of the kernel, against profile or fleet",
        probes=(MOMENT,),
        parts=("kernel",),
        causes=(OTHER_KERNEL,),
        traits=_kernel,
        trait_names=("kernel.version",),
    ),
    Check(
        name="host.os",
        about="distribution and release, against profile or fleet",
        probes=(OS_RELEASE, MACHINE_ID),
        parts=("host",),
        causes=(OTHER_SYSTEM,),
        traits=_distribution,
        identities=_installation,
        trait_names=("host.os",),
    ),
)
