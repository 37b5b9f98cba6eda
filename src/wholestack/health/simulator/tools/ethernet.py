"""``/sys/class/net`` and ``ethtool -m``.

Sources: kernel documentation, ABI/testing/sysfs-class-net (``speed`` and ``duplex`` of a port that is down cannot be
read, so ``grep -s`` gives no line); ``ethtool`` ``qsfp.c`` for the lines of a module.
"""

import math

from wholestack.health.simulator.hardware import Nic, Optic
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer, grep

_STATISTICS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped")


def attributes(machine: Machine) -> Answer:
    """State, speed and error counters of every interface."""
    nics = sorted((nic for nic in machine.nics if nic.enumerated), key=lambda nic: nic.name)
    values = [(f"{nic.name}/operstate", nic.operstate) for nic in nics]
    values += [(f"{nic.name}/speed", _speed(nic)) for nic in nics]
    values += [(f"{nic.name}/duplex", nic.duplex if nic.pci or nic.slaves else "") for nic in nics]
    values += [(f"{nic.name}/mtu", str(nic.mtu)) for nic in nics]
    values += [(f"{nic.name}/carrier_changes", str(nic.carrier_changes)) for nic in nics]
    values += [(f"{nic.name}/type", str(nic.arp_type)) for nic in nics]
    values += [(f"{nic.name}/device/vendor", nic.vendor) for nic in nics]
    for name in _STATISTICS:
        values += [(f"{nic.name}/statistics/{name}", str(nic.statistics[name])) for nic in nics]
    bonds = [nic for nic in nics if nic.slaves]
    values += [(f"{nic.name}/bonding/mii_status", nic.mii_status) for nic in bonds]
    values += [(f"{nic.name}/bonding/slaves", " ".join(nic.slaves)) for nic in bonds]
    return grep(values)


def _speed(nic: Nic) -> str:
    if nic.speed_mb_s is None:
        return ""
    return str(nic.speed_mb_s) if nic.operstate == "up" else "-1" if nic.arp_type == 1 else ""


def optics(machine: Machine) -> Answer:
    """The modules of all interfaces with a device behind them."""
    if machine.os_release["ID"] == "debian":
        return Answer(
            stdout="".join(f"== {nic.name}\nsh: 1: ethtool: not found\n" for nic in machine.nics if nic.pci),
            exit_status=127,
        )
    text = "".join(f"== {nic.name}\n{_module(nic.optic)}" for nic in machine.nics if nic.pci and nic.enumerated)
    return Answer(stdout=text or "no network port with a device\n", seconds=0.3)


def _module(optic: Optic | None) -> str:
    if optic is None:
        return "netlink error: Operation not supported\n"
    rows = [
        ("Identifier", "0x11 (QSFP28)"),
        ("Extended identifier", "0xcc"),
        ("Connector", "0x23 (No separable connector)" if optic.copper else "0x0c (MPO Parallel Optic)"),
        ("Vendor name", optic.vendor),
        ("Vendor PN", optic.part_number),
        ("Vendor SN", optic.serial),
    ]
    if optic.copper:
        rows.append(("Transmitter technology", "0xa0 (Copper cable unequalized)"))
    else:
        rows += _diagnostics(optic)
    return "".join(f"\t{name:<42}: {value}\n" for name, value in rows)


def _diagnostics(optic: Optic) -> list[tuple[str, str]]:
    rows = [
        ("Module temperature", f"{optic.temperature_c:.2f} degrees C / {optic.temperature_c * 1.8 + 32:.2f} degrees F"),
        ("Module voltage", f"{optic.voltage_v:.4f} V"),
        ("Alarm/warning flags implemented", "Yes"),
    ]
    for lane in range(optic.lanes):
        rows.append((f"Laser tx bias current (Channel {lane + 1})", f"{optic.bias_ma:.3f} mA"))
    for lane, power in enumerate(optic.tx_mw):
        rows.append((f"Transmit avg optical power (Channel {lane + 1})", _power(power)))
    for lane, power in enumerate(optic.rx_mw):
        rows.append((f"Rcvr signal avg optical power(Channel {lane + 1})", _power(power)))
    for lane, power in enumerate(optic.rx_mw):
        rows.append((f"Laser rx power low alarm    (Channel {lane + 1})", "On" if power < 0.0912 else "Off"))
        rows.append((f"Laser rx power low warning  (Channel {lane + 1})", "On" if power < 0.2291 else "Off"))
    hot = optic.temperature_c
    rows += [
        ("Module temperature high alarm", "On" if hot > 75 else "Off"),
        ("Module temperature high warning", "On" if hot > 70 else "Off"),
        ("Module temperature low alarm", "Off"),
        ("Module temperature high alarm threshold", "75.00 degrees C / 167.00 degrees F"),
        ("Module temperature high warning threshold", "70.00 degrees C / 158.00 degrees F"),
        ("Laser rx power high alarm threshold", "3.4673 mW / 5.40 dBm"),
        ("Laser rx power low alarm threshold", "0.0912 mW / -10.40 dBm"),
        ("Laser rx power low warning threshold", "0.2291 mW / -6.40 dBm"),
    ]
    return rows


def _power(milliwatt: float) -> str:
    return f"{milliwatt:.4f} mW / {10 * math.log10(milliwatt) if milliwatt > 0 else -math.inf:.2f} dBm"
