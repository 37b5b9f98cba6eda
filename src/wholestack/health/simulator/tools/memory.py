"""Memory: EDAC, ``/proc/meminfo``, ``dmidecode``.

Sources: kernel documentation, admin-guide/ras (``dimm*`` only where the driver is not per chip select: AMD's
``amd64_edac`` names its entries ``rank*``, so on those hosts only the controller's counters are seen);
``dmidecode(8)`` and the SMBIOS specification for types 0, 1, 16 and 17.
"""

from wholestack.health.simulator.hardware import Dimm
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.products import EPYC_7742, EPYC_9354, XEON_6248, XEON_8480
from wholestack.health.simulator.tools.answer import Answer, grep

_MC_NAMES = {model.model: model.mc_name for model in (EPYC_7742, EPYC_9354, XEON_6248, XEON_8480)}
_GIB_KIB = 1024 * 1024


def edac(machine: Machine) -> Answer:
    """Controllers and modules with their error counters."""
    if not machine.edac:
        return Answer(exit_status=2)
    controllers: dict[int, list[Dimm]] = {}
    for dimm in machine.dimms:
        if dimm.present:
            controllers.setdefault(dimm.controller, []).append(dimm)
    name = _MC_NAMES[machine.cpu.model]
    per_socket = max(1, len(controllers) // machine.cpu.sockets)
    values = [
        (f"mc{mc}/mc_name", name.format(socket=mc // per_socket, controller=mc % per_socket)) for mc in controllers
    ]
    values += [(f"mc{mc}/ce_count", str(sum(dimm.corrected for dimm in dimms))) for mc, dimms in controllers.items()]
    values += [(f"mc{mc}/ue_count", str(sum(dimm.uncorrected for dimm in dimms))) for mc, dimms in controllers.items()]
    if machine.cpu.vendor == "GenuineIntel":
        values += _modules(controllers)
    return grep(values)


def _modules(controllers: dict[int, list[Dimm]]) -> list[tuple[str, str]]:
    named = [
        (f"mc{mc}/dimm{dimm.channel * 2 + dimm.slot}", dimm) for mc, dimms in controllers.items() for dimm in dimms
    ]
    return [
        *((f"{path}/dimm_label", dimm.edac_label) for path, dimm in named),
        *((f"{path}/dimm_location", f"channel {dimm.channel} slot {dimm.slot} ") for path, dimm in named),
        *((f"{path}/dimm_ce_count", str(dimm.corrected)) for path, dimm in named),
        *((f"{path}/dimm_ue_count", str(dimm.uncorrected)) for path, dimm in named),
    ]


def total_kib(machine: Machine, node: int | None = None) -> int:
    """Memory that the kernel can use, of all nodes or of one."""
    dimms = [dimm for dimm in machine.dimms if dimm.present]
    if node is not None:
        sharing = machine.cpu.nodes // machine.cpu.sockets
        of_socket = [dimm for dimm in dimms if dimm.node // sharing == node // sharing]
        return int(sum(dimm.size_gib for dimm in of_socket) * _GIB_KIB * 0.983) // sharing
    return int(sum(dimm.size_gib for dimm in dimms) * _GIB_KIB * 0.983)


def used_share(machine: Machine) -> float:
    """Share of the memory in use by processes."""
    return 0.04 + 0.3 * machine.load


def meminfo(machine: Machine) -> Answer:
    """``/proc/meminfo``."""
    total = total_kib(machine)
    free = int(total * (1 - used_share(machine)) * 0.6)
    available = int(total * (1 - used_share(machine)))
    swap = sum(size for _, _, size, _ in machine.swaps)
    swap_used = sum(used for _, _, _, used in machine.swaps)
    rows = [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", available),
        ("Buffers", 1_204_112),
        ("Cached", available - free),
        ("SwapCached", 0),
        ("Active", total - available),
        ("SwapTotal", swap),
        ("SwapFree", swap - swap_used),
        ("Dirty", 1_420),
        ("Writeback", 0),
        ("Slab", total // 130),
        ("CommitLimit", total // 2),
        ("Committed_AS", int(total * used_share(machine) * 1.2)),
        ("HardwareCorrupted", 0),
    ]
    text = "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in rows)
    return Answer(stdout=text + "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n")


def modules(machine: Machine) -> Answer:
    """``dmidecode -t memory``."""
    capacity = sum(dimm.size_gib for dimm in machine.dimms) * 2
    head = (
        "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n"
        "Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: System Board Or Motherboard\n"
        "\tUse: System Memory\n\tError Correction Type: Multi-bit ECC\n"
        f"\tMaximum Capacity: {capacity} GB\n\tError Information Handle: Not Provided\n"
        f"\tNumber Of Devices: {len(machine.dimms)}\n\n"
    )
    return Answer(stdout=head + "".join(_module(index, dimm) for index, dimm in enumerate(machine.dimms)))


def _module(index: int, dimm: Dimm) -> str:
    if not dimm.present:
        return (
            f"Handle 0x{0x1100 + index:04X}, DMI type 17, 92 bytes\nMemory Device\n\tArray Handle: 0x1000\n"
            "\tError Information Handle: Not Provided\n\tTotal Width: Unknown\n\tData Width: Unknown\n"
            f"\tSize: No Module Installed\n\tForm Factor: Unknown\n\tSet: None\n\tLocator: {dimm.locator}\n"
            f"\tBank Locator: {dimm.bank}\n\tType: Unknown\n\tType Detail: Unknown\n\n"
        )
    return (
        f"Handle 0x{0x1100 + index:04X}, DMI type 17, 92 bytes\nMemory Device\n\tArray Handle: 0x1000\n"
        "\tError Information Handle: Not Provided\n\tTotal Width: 80 bits\n\tData Width: 64 bits\n"
        f"\tSize: {dimm.size_gib} GB\n\tForm Factor: DIMM\n\tSet: None\n\tLocator: {dimm.locator}\n"
        f"\tBank Locator: {dimm.bank}\n\tType: {'DDR5' if dimm.speed_mt_s > 3200 else 'DDR4'}\n"
        "\tType Detail: Synchronous Registered (Buffered)\n"
        f"\tSpeed: {dimm.speed_mt_s} MT/s\n\tManufacturer: {dimm.manufacturer}\n\tSerial Number: {dimm.serial}\n"
        f"\tAsset Tag: Not Specified\n\tPart Number: {dimm.part_number}\n\tRank: 2\n"
        f"\tConfigured Memory Speed: {dimm.speed_mt_s} MT/s\n\n"
    )


def firmware(machine: Machine) -> Answer:
    """``dmidecode -t system -t bios``."""
    return Answer(
        stdout="# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n"
        "Handle 0x0000, DMI type 0, 26 bytes\nBIOS Information\n"
        f"\tVendor: {machine.bios_vendor}\n\tVersion: {machine.bios_version}\n\tRelease Date: {machine.bios_date}\n"
        "\tROM Size: 32 MB\n\tCharacteristics:\n\t\tPCI is supported\n\t\tUEFI is supported\n\n"
        "Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n"
        f"\tManufacturer: {machine.vendor}\n\tProduct Name: {machine.product}\n\tVersion: Not Specified\n"
        f"\tSerial Number: {machine.serial}\n\tUUID: {machine.system_uuid}\n\tWake-up Type: Power Switch\n"
        f"\tSKU Number: Not Specified\n\tFamily: Not Specified\n\n"
    )
