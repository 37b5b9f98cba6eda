"""``lspci -Dnn`` and the link files of ``/sys/bus/pci/devices``.

A device that no longer answers reads as all ones: ``lspci`` prints ``(rev ff)``, the kernel a width of 63 and the speed
``Unknown`` (``drivers/pci/pci-sysfs.c``: the width is six bits of the link status); vendor, device and class were read
at boot and stay.
"""

from dataclasses import dataclass, replace

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer, grep

_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One PCI device as the tools see it."""

    pci: str
    class_name: str
    class_id: int
    name: str
    vendor_id: int
    device_id: int
    revision: int
    numa: int
    gen: int
    """0: no PCIe link of its own."""
    max_gen: int
    width: int
    max_width: int
    answers: bool = True


def devices(machine: Machine) -> list[Device]:
    """All devices that the kernel found, in the order of their addresses."""
    found = [*_board(), *_gpus(machine), *_switches(machine), *_adapters(machine), *_drives(machine)]
    return sorted(found, key=lambda device: device.pci)


def _board() -> list[Device]:
    """Two devices without a link of their own, as every board has them."""
    graphics = Device(
        pci="0000:03:00.0",
        class_name="VGA compatible controller",
        class_id=0x030000,
        name="ASPEED Technology, Inc. ASPEED Graphics Family",
        vendor_id=0x1A03,
        device_id=0x2000,
        revision=0x41,
        numa=0,
        gen=0,
        max_gen=0,
        width=0,
        max_width=0,
    )
    bridge = replace(
        graphics,
        pci="0000:00:00.0",
        class_name="Host bridge",
        class_id=0x060000,
        name="Intel Corporation Device",
        vendor_id=0x8086,
        device_id=0x09A2,
        revision=4,
    )
    return [graphics, bridge]


def _switches(machine: Machine) -> list[Device]:
    return [
        Device(
            pci=switch.pci,
            class_name="Bridge",
            class_id=0x068000,
            name="NVIDIA Corporation Device",
            vendor_id=0x10DE,
            device_id=switch.device_id,
            revision=0xA1,
            numa=0,
            gen=2,
            max_gen=2,
            width=2,
            max_width=2,
            answers=switch.on_bus,
        )
        for switch in machine.nvswitches
    ]


def _drives(machine: Machine) -> list[Device]:
    return [
        Device(
            pci=drive.pci,
            class_name="Non-Volatile memory controller",
            class_id=0x010802,
            name=drive.chip,
            vendor_id=drive.vendor_id,
            device_id=drive.device_id,
            revision=0,
            numa=drive.numa,
            gen=drive.pcie_gen,
            max_gen=4,
            width=drive.pcie_width,
            max_width=4,
        )
        for drive in machine.drives
        if drive.pci and drive.present
    ]


def _gpus(machine: Machine) -> list[Device]:
    found = []
    for gpu in machine.gpus:
        if not gpu.enumerated:
            continue
        free = gpu.model.pcie_gen if machine.load > 0.05 and not gpu.mig_current else gpu.model.idle_pcie_gen
        found.append(
            Device(
                pci=gpu.pci,
                class_name="3D controller",
                class_id=0x030200,
                name=f"NVIDIA Corporation {gpu.model.chip}",
                vendor_id=0x10DE,
                device_id=gpu.model.device_id,
                revision=0xA1,
                numa=gpu.numa,
                gen=min(free, gpu.pcie_gen_cap or free),
                max_gen=gpu.model.pcie_gen,
                width=gpu.pcie_width,
                max_width=16,
                answers=gpu.on_bus,
            )
        )
    return found


def _adapters(machine: Machine) -> list[Device]:
    layers = {"InfiniBand": ("Infiniband controller", 0x020700), "Ethernet": ("Ethernet controller", 0x020000)}
    found = [
        Device(
            pci=hca.pci,
            class_name=layers[hca.port.link_layer][0],
            class_id=layers[hca.port.link_layer][1],
            name=f"Mellanox Technologies {hca.chip}",
            vendor_id=0x15B3,
            device_id=hca.device_id,
            revision=0,
            numa=hca.numa,
            gen=min(hca.pcie_gen, hca.pcie_gen_cap or 9),
            max_gen=hca.pcie_gen,
            width=hca.pcie_width,
            max_width=16,
        )
        for hca in machine.hcas
        if hca.enumerated
    ]
    names = {"0x14e4": "Broadcom Inc. and subsidiaries", "0x15b3": "Mellanox Technologies"}
    found += [
        Device(
            pci=nic.pci,
            class_name="Ethernet controller",
            class_id=0x020000,
            name=f"{names[nic.vendor]} {nic.chip}",
            vendor_id=int(nic.vendor, 16),
            device_id=nic.device_id,
            revision=1,
            numa=0,
            gen=3,
            max_gen=3,
            width=8,
            max_width=8,
        )
        for nic in machine.nics
        if nic.pci and nic.enumerated and nic.chip
    ]
    return found


def listing(machine: Machine) -> Answer:
    """``lspci -Dnn``."""
    lines = []
    for device in devices(machine):
        revision = device.revision if device.answers else 0xFF
        lines.append(
            f"{device.pci} {device.class_name} [{device.class_id >> 8:04x}]: {device.name} "
            f"[{device.vendor_id:04x}:{device.device_id:04x}]{f' (rev {revision:02x})' if revision else ''}\n"
        )
    return Answer(stdout="".join(lines), seconds=0.06)


def links(machine: Machine) -> Answer:
    """The files of each device, grouped by file as the shell expands the patterns."""
    found = devices(machine)
    values = [(f"{device.pci}/vendor", f"0x{device.vendor_id:04x}") for device in found]
    values += [(f"{device.pci}/device", f"0x{device.device_id:04x}") for device in found]
    values += [(f"{device.pci}/class", f"0x{device.class_id:06x}") for device in found]
    linked = [device for device in found if device.max_gen]
    values += [(f"{device.pci}/current_link_speed", _speed(device, device.gen)) for device in linked]
    values += [(f"{device.pci}/current_link_width", _width(device, device.width)) for device in linked]
    values += [(f"{device.pci}/max_link_speed", _speed(device, device.max_gen)) for device in linked]
    values += [(f"{device.pci}/max_link_width", _width(device, device.max_width)) for device in linked]
    values += [(f"{device.pci}/numa_node", str(device.numa)) for device in found]
    return grep(values)


def _speed(device: Device, gen: int) -> str:
    return f"{_SPEEDS[gen]} GT/s PCIe" if device.answers else "Unknown"


def _width(device: Device, width: int) -> str:
    return str(width) if device.answers else "63"
