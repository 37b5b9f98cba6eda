"""Faults of memory, processors, power and cooling.

Formats: kernel documentation, admin-guide/ras (EDAC), ``mce`` lines of ``arch/x86/kernel/cpu/mce``, SMBIOS, IPMI 2.0
event names as ``ipmitool sel elist`` prints them.
"""

import re

from wholestack.health.simulator.faults.fault import HOUR_S, Draw, Fault, again, fault, repeat_line
from wholestack.health.simulator.hardware import Dimm, Sensor
from wholestack.health.simulator.machine import Machine

EDAC = "Linux, admin-guide/ras"
IPMI = "IPMI 2.0 specification, tables 42-2 and 42-3; ipmitool(1)"


def _dimm_names(machine: Machine, dimm: Dimm) -> tuple[str, ...]:
    """The module; where the kernel only sees the controller, that too."""
    names = (dimm.edac_label, dimm.locator, dimm.serial)
    return names if machine.cpu.vendor == "GenuineIntel" else (*names, f"mc{dimm.controller}")


def _dimms(machine: Machine) -> list[Dimm]:
    return [dimm for dimm in machine.dimms if dimm.present]


def _uncorrected(machine: Machine, draw: Draw) -> tuple[str, ...]:
    dimm, ago_s = draw.one(_dimms(machine)), draw.ago_s()
    dimm.uncorrected += draw.whole(1, 3)
    page = draw.rng.getrandbits(28)
    machine.say("mce: [Hardware Error]: Machine check events logged", level="emerg", ago_s=ago_s)
    machine.say(
        f"EDAC MC{dimm.controller}: 1 UE memory read error on {dimm.edac_label} (channel:{dimm.channel} "
        f"slot:{dimm.slot} page:0x{page:x} offset:0x0 grain:32)",
        level="emerg",
        ago_s=ago_s,
    )
    machine.say(f"Memory failure: 0x{page:x}: recovery action for dirty LRU page: Recovered", level="err",
                ago_s=max(0.0, ago_s - 1))  # fmt: skip
    return _dimm_names(machine, dimm)


def _corrected_storm(machine: Machine, draw: Draw) -> tuple[str, ...]:
    dimm, per_hour = draw.one(_dimms(machine)), draw.between(400, 20_000)

    def add(host: Machine, count: int) -> None:
        dimm.corrected += count
        host.say(
            f"EDAC MC{dimm.controller}: {count} CE memory read error on {dimm.edac_label} (channel:{dimm.channel} "
            f"slot:{dimm.slot} page:0x{draw.rng.getrandbits(28):x} offset:0x0 grain:32 syndrome:0x0)",
            level="warn",
        )

    add(machine, int(per_hour * min(4.0, machine.uptime_s / HOUR_S)) + 1)
    again(machine, HOUR_S / per_hour, add)
    return _dimm_names(machine, dimm)


def _module_missing(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The firmware mapped it out: less memory, an empty slot."""
    dimm = draw.one(_dimms(machine))
    dimm.present = False
    return _dimm_names(machine, dimm)


def _module_slow(machine: Machine, draw: Draw) -> tuple[str, ...]:
    for dimm in machine.dimms:
        dimm.speed_mt_s = {4800: 4000, 3200: 2666, 2933: 2400}[dimm.speed_mt_s]
    return ()


def _cpu_offline(machine: Machine, draw: Draw) -> tuple[str, ...]:
    cpu = machine.cpu
    first = draw.rng.randrange(1, cpu.count - 20)
    cpu.offline = set(range(first, first + draw.whole(1, 16)))
    return ()


def _cpu_throttled(machine: Machine, draw: Draw) -> tuple[str, ...]:
    cpu, package = machine.cpu, draw.rng.randrange(machine.cpu.sockets)
    per_hour = draw.between(600, 20_000)

    def add(host: Machine, count: int) -> None:
        cpu.package_throttles[package] = cpu.package_throttles.get(package, 0) + count
        for core in range(package * cpu.cores_per_socket, package * cpu.cores_per_socket + 4):
            cpu.core_throttles[core] = cpu.core_throttles.get(core, 0) + count // 2
        host.say(
            f"mce: CPU{package * cpu.cores_per_socket}: Package temperature above threshold, cpu clock throttled "
            f"(total events = {cpu.package_throttles[package]})",
            level="crit",
        )

    add(machine, int(per_hour * min(2.0, machine.uptime_s / HOUR_S)) + 10)
    again(machine, HOUR_S / per_hour, add)
    return ()


def _machine_check(machine: Machine, draw: Draw) -> tuple[str, ...]:
    number, bank, ago_s = draw.rng.randrange(machine.cpu.count), draw.rng.choice((0, 1, 5, 8)), draw.ago_s()
    head = "mce: [Hardware Error]:"
    machine.say(f"{head} CPU {number}: Machine Check: 0 Bank {bank}: bd80000000100134", level="emerg", ago_s=ago_s)
    machine.say(f"{head} TSC 0 ADDR 3f2a94f480 MISC 86", level="emerg", ago_s=ago_s)
    machine.say(
        f"{head} PROCESSOR 0:806f8 TIME 1793577000 SOCKET {number % 2} APIC {number:x} microcode 2b000603",
        level="emerg",
        ago_s=ago_s,
    )
    again(
        machine,
        3 * HOUR_S,
        lambda host, count: host.say(
            f"{head} CPU {number}: Machine Check: 0 Bank {bank}: bd80000000100134", level="emerg"
        ),
    )
    return ()


def _governor(machine: Machine, draw: Draw) -> tuple[str, ...]:
    if draw.severity > 0.5:
        machine.cpu.governor = "powersave"
    else:
        machine.cpu.odd_governors = dict.fromkeys(range(draw.whole(4, 40)), "powersave")
    return ()


def _unbalanced(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """All modules of one channel of one socket are gone: the nodes differ in memory."""
    socket = draw.rng.randrange(2)
    half = len(machine.dimms) // 2
    gone = machine.dimms[socket * half : socket * half + max(2, half // 4)]
    for dimm in gone:
        dimm.present = False
    return (*(name for dimm in gone for name in _dimm_names(machine, dimm)), *_nodes(machine, socket))


def _nodes(machine: Machine, socket: int) -> tuple[str, ...]:
    share = machine.cpu.nodes // machine.cpu.sockets
    return tuple(f"node{node}" for node in range(socket * share, (socket + 1) * share))


def _soft_lockup(machine: Machine, draw: Draw) -> tuple[str, ...]:
    number = draw.rng.randrange(machine.cpu.count)
    text = f"watchdog: BUG: soft lockup - CPU#{number} stuck for {draw.whole(22, 90)}s! [kworker/{number}:1:3123]"
    repeat_line(machine, text, level="emerg", ago_s=draw.ago_s(), every_s=1_800)
    return ()


def _pcie_fatal(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Errors of a PCIe link, as AER reports them; the address is that of the port above a drive or an adapter."""
    parts = [hca.pci for hca in machine.hcas] + [drive.pci for drive in machine.drives if drive.pci]
    address = draw.one(parts)

    def say(host: Machine, count: int) -> None:
        host.say(
            f"pcieport 0000:{address[5:7]}:01.0: AER: Uncorrected (Non-Fatal) error received: {address}", level="warn"
        )
        host.say(f"pci {address}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, "
                 "(Requester ID)", level="err")  # fmt: skip
        host.say(f"pci {address}:   device [15b3:1021] error status/mask=00004000/00000000", level="err")

    say(machine, 1)
    again(machine, 2 * HOUR_S, say)
    owners = [hca.name for hca in machine.hcas if hca.pci == address]
    owners += [drive.device for drive in machine.drives if drive.pci == address]
    return (address, *owners)


def _sensor(machine: Machine, start: str) -> Sensor:
    return next(each for each in machine.sensors if each.name.lower().startswith(start))


def _sensor_names(sensor: Sensor) -> tuple[str, ...]:
    """With and without the word that says what the sensor measures."""
    short = re.sub(r" (Status|RPM|Tach)$", "", sensor.name)
    return tuple(dict.fromkeys((sensor.name, short)))


def _psu(machine: Machine, draw: Draw) -> tuple[str, ...]:
    supply = draw.one([each for each in machine.sensors if each.reading == "Presence detected"])
    event = draw.rng.choice(("Failure detected", "Power Supply AC lost"))
    supply.reading = f"Presence detected, {event}"
    if draw.severity > 0.4:
        supply.status = "cr"
    machine.sel.append((machine.now - draw.ago_s(), f"Power Supply {supply.name}", event, "Asserted"))
    return _sensor_names(supply)


def _fan(machine: Machine, draw: Draw) -> tuple[str, ...]:
    fan = draw.one([each for each in machine.sensors if each.reading.endswith("RPM")])
    fan.reading, fan.status = f"{draw.whole(900, 0)} RPM", "cr"
    machine.sel.append((machine.now - draw.ago_s(), f"Fan {fan.name}", "Lower Critical going low", "Asserted"))
    return _sensor_names(fan)


def _hot_inlet(machine: Machine, draw: Draw) -> tuple[str, ...]:
    inlet = _sensor(machine, "inlet")
    degrees = draw.whole(44, 52)
    inlet.reading, inlet.status = f"{degrees} degrees C", "nc" if degrees < 47 else "cr"
    machine.sel.append(
        (machine.now - draw.ago_s(), f"Temperature {inlet.name}", "Upper Critical going high", "Asserted")
    )
    return (inlet.name,)


def _bmc_memory(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The firmware logs it; the operating system does not see it."""
    dimm = draw.one(_dimms(machine))
    event = draw.rng.choice(("Uncorrectable ECC", "Correctable ECC logging limit reached"))
    machine.sel.append((machine.now - draw.ago_s(), f"Memory {dimm.locator}", event, "Asserted"))
    return _dimm_names(machine, dimm)


def _bmc_pci(machine: Machine, draw: Draw) -> tuple[str, ...]:
    number = draw.rng.randrange(1, 9)
    machine.sel.append((machine.now - draw.ago_s(), f"Critical Interrupt PCIe Slot{number}", "PCI SERR", "Asserted"))
    return (f"PCIe Slot{number}", f"Slot{number}")


def _intel(machine: Machine) -> bool:
    return machine.cpu.vendor == "GenuineIntel"


def _scaling(machine: Machine) -> bool:
    return machine.cpu.governor is not None


def _on_pcie(machine: Machine) -> bool:
    return bool(machine.hcas) or any(drive.pci for drive in machine.drives)


FAULTS: tuple[Fault, ...] = (
    fault("memory_uncorrected", "memory", EDAC, _uncorrected, "vendor"),
    fault("memory_corrected_storm", "memory", EDAC, _corrected_storm, "vendor", by_rate=True),
    fault("memory_module_missing", "memory", "SMBIOS specification, type 17; dmidecode(8)", _module_missing, "vendor",
          "data centre"),
    fault("memory_speed_low", "memory", "SMBIOS specification, type 17 (configured speed)", _module_slow,
          "cluster team", "vendor", "data centre"),
    fault("numa_unbalanced", "memory", "Linux, ABI/stable/sysfs-devices-node", _unbalanced, "vendor", "data centre"),
    fault("cpu_offline", "cpu", "lscpu(1)", _cpu_offline, "cluster team", "vendor"),
    fault("cpu_throttled", "cpu", "Linux, x86 thermal throttling; sysfs thermal_throttle", _cpu_throttled,
          "data centre", "vendor", applies=_intel, by_rate=True),
    fault("machine_check", "cpu", "Linux, arch/x86/kernel/cpu/mce", _machine_check, "vendor"),
    fault("cpu_governor", "cpu", "Linux, admin-guide/pm/cpufreq", _governor, "cluster team", applies=_scaling),
    fault("cpu_soft_lockup", "cpu", "Linux, admin-guide/lockup-watchdogs", _soft_lockup, "cluster team", "vendor"),
    fault("pcie_uncorrected", "host", "Linux, PCI/pcieaer-howto", _pcie_fatal, "vendor", "data centre",
          applies=_on_pcie),
    fault("power_supply_failed", "power and cooling", IPMI, _psu, "data centre", "vendor"),
    fault("fan_failed", "power and cooling", IPMI, _fan, "data centre", "vendor"),
    fault("inlet_hot", "power and cooling", IPMI, _hot_inlet, "data centre"),
    fault("bmc_memory_event", "memory", IPMI, _bmc_memory, "vendor"),
    fault("bmc_pcie_event", "power and cooling", IPMI, _bmc_pci, "vendor", "data centre"),
)  # fmt: skip
