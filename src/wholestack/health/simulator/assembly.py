"""Putting the parts of a host together: serial numbers, addresses, labels, counters of a new part."""

from random import Random

from wholestack.health.simulator.hardware import (
    Cpu,
    Dimm,
    Drive,
    Gpu,
    GpuModel,
    Hca,
    HcaPort,
    Nic,
    NvLink,
    NvSwitch,
    Optic,
    Sensor,
)
from wholestack.health.simulator.products import CPUS, Board, DriveModel

IB_COUNTERS = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "multicast_rcv_packets",
    "multicast_xmit_packets",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
    "unicast_rcv_packets",
    "unicast_xmit_packets",
)
"""Names under ``ports/N/counters`` (kernel documentation, ABI/stable/sysfs-class-infiniband)."""
IB_HW_COUNTERS = (
    "duplicate_request",
    "implied_nak_seq_err",
    "lifespan",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_cqe_error",
    "req_cqe_flush_error",
    "req_remote_access_errors",
    "req_remote_invalid_request",
    "resp_cqe_error",
    "resp_cqe_flush_error",
    "resp_local_length_error",
    "resp_remote_access_errors",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_atomic_requests",
    "rx_dct_connect",
    "rx_icrc_encapsulated",
    "rx_read_requests",
    "rx_write_requests",
)
"""Names under ``ports/N/hw_counters`` of mlx5 (vendor document "Understanding mlx5 ethtool and RDMA counters")."""
NIC_STATISTICS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped")

_HCAS = {
    "CX7": ("MT4129", "MT_0000000838", "28.39.1002", 0x1021, "MT2910 Family [ConnectX-7]", 5, "400 Gb/sec (4X NDR)"),
    "CX6": ("MT4123", "MT_0000000224", "20.39.1002", 0x101B, "MT28908 Family [ConnectX-6]", 4, "200 Gb/sec (4X HDR)"),
    "CX5": ("MT4119", "MT_0000000080", "16.35.3502", 0x1017, "MT27800 Family [ConnectX-5]", 3, "100 Gb/sec (4X EDR)"),
}


def build_cpu(board: Board, governor: str | None) -> Cpu:
    """Two sockets of the board's processor."""
    model = CPUS[board.cpu]
    return Cpu(
        vendor=model.vendor,
        model=model.model,
        family=model.family,
        model_number=model.model_number,
        stepping=model.stepping,
        sockets=2,
        cores_per_socket=model.cores,
        threads_per_core=model.threads,
        nodes=2 * model.nodes_per_socket,
        min_mhz=model.min_mhz,
        max_mhz=model.max_mhz,
        governor=governor,
    )


def build_gpus(model: GpuModel, addresses: tuple[str, ...], rng: Random) -> list[Gpu]:
    """GPUs in the order of their addresses; the module number is another one on SXM boards."""
    modules = [2, 4, 3, 1, 6, 8, 7, 5] if len(addresses) == 8 else [1, 2, 3, 4]
    return [
        Gpu(
            model=model,
            index=index,
            pci=pci,
            numa=index * 2 // len(addresses),
            serial=f"16{rng.randrange(10**11):011d}",
            uuid=_gpu_uuid(rng),
            board_id=int(pci[5:7], 16) << 8,
            module_id=modules[index] if model.nvlinks else 1,
            vbios=model.vbios,
            inforom_image=model.inforom_image,
            links=[NvLink() for _ in range(model.nvlinks if len(addresses) == 8 else 0)],
            power_limit_w=model.power_w,
            slot_c=rng.uniform(0, 3) + (index % 4) * 1.2,
            volatile=dict.fromkeys(("sram_c", "sram_parity", "sram_secded", "dram_c", "dram_u"), 0),
            aggregate=dict.fromkeys(("sram_c", "sram_parity", "sram_secded", "dram_c", "dram_u"), 0),
        )
        for index, pci in enumerate(addresses)
    ]


def build_switches(addresses: tuple[str, ...], device_id: int) -> list[NvSwitch]:
    """NVSwitches of the baseboard."""
    return [NvSwitch(index=index, pci=pci, device_id=device_id) for index, pci in enumerate(addresses)]


def build_hcas(addresses: tuple[str, ...], model: str, link_layer: str, nodes: int, rng: Random) -> list[Hca]:
    """Adapters ``mlx5_0`` and on, one port each."""
    hca_type, board_id, firmware, device_id, chip, gen, rate = _HCAS[model]
    return [
        Hca(
            name=f"mlx5_{index}",
            pci=pci,
            numa=index * nodes // len(addresses),
            firmware=firmware,
            board_id=board_id,
            hca_type=hca_type,
            guid=_guid(rng),
            device_id=device_id,
            chip=chip,
            pcie_gen=gen,
            port=HcaPort(
                number=1,
                link_layer=link_layer,
                rate=rate,
                counters=dict.fromkeys(IB_COUNTERS, 0),
                hw_counters=dict.fromkeys(IB_HW_COUNTERS, 0) | {"lifespan": 12},
            ),
            netdev=f"ibp{int(pci[5:7], 16)}s0" if link_layer == "InfiniBand" else f"ens{int(pci[5:7], 16)}np0",
        )
        for index, pci in enumerate(addresses)
    ]


def build_nics(hcas: list[Hca], rng: Random, *, bond: bool, docker: bool) -> list[Nic]:
    """Loopback, management, what the adapters give, and a bond or a second port for storage."""
    nics = [
        Nic(name="lo", pci=None, operstate="unknown", mtu=65536, arp_type=772, carrier_changes=0),
        _ethernet("eno1", "0000:02:00.0", 10_000, 1500, rng),
    ]
    if bond:
        slaves = [_ethernet(f"ens{slot}f{slot % 2}np{slot % 2}", f"0000:e{slot - 6}:00.0", 100_000, 9000, rng)
                  for slot in (10, 11)]  # fmt: skip
        nics += slaves
        nics.append(
            Nic(
                name="bond0",
                pci=None,
                speed_mb_s=200_000,
                full_speed_mb_s=200_000,
                mtu=9000,
                slaves=tuple(nic.name for nic in slaves),
            )
        )
    for hca in hcas:
        rate = int(hca.port.rate.split()[0]) * 1000
        infiniband = hca.port.link_layer == "InfiniBand"
        nics.append(
            Nic(
                name=hca.netdev,
                pci=hca.pci,
                vendor="0x15b3",
                speed_mb_s=rate,
                full_speed_mb_s=rate,
                mtu=2044 if infiniband else 9000,
                arp_type=32 if infiniband else 1,
                optic=None if infiniband else _optic(rng, lanes=4),
            )
        )
    if docker:
        nics.append(Nic(name="docker0", pci=None, operstate="down", carrier_changes=1, duplex="unknown"))
    for nic in nics:
        nic.statistics = dict.fromkeys(NIC_STATISTICS, 0)
    return nics


def _ethernet(name: str, pci: str, speed: int, mtu: int, rng: Random) -> Nic:
    broadcom = speed == 10_000
    return Nic(
        name=name,
        pci=pci,
        vendor="0x14e4" if broadcom else "0x15b3",
        device_id=0x16D8 if broadcom else 0x101D,
        chip="BCM57416 NetXtreme-E Dual-Media 10G RDMA Ethernet Controller"
        if broadcom
        else "MT2892 Family [ConnectX-6 Dx]",
        speed_mb_s=speed,
        full_speed_mb_s=speed,
        mtu=mtu,
        optic=None if broadcom else _optic(rng, lanes=4, copper=rng.random() < 0.3),
    )


def _optic(rng: Random, *, lanes: int, copper: bool = False) -> Optic:
    return Optic(
        vendor=rng.choice(("Mellanox", "FINISAR CORP.", "INNOLIGHT")),
        part_number="MCP1600-C003E26N" if copper else "MMA1B00-C100D",
        serial=f"MT{rng.randrange(10**4):04d}VS{rng.randrange(10**5):05d}",
        lanes=lanes,
        temperature_c=rng.uniform(34, 52),
        voltage_v=rng.uniform(3.25, 3.34),
        bias_ma=rng.uniform(6.2, 7.4),
        rx_mw=[rng.uniform(0.55, 1.15) for _ in range(lanes)],
        tx_mw=[rng.uniform(0.7, 1.2) for _ in range(lanes)],
        copper=copper,
    )


def build_drives(
    count: int, nvme_models: tuple[DriveModel, ...], sata: tuple[DriveModel, ...], rng: Random
) -> list[Drive]:
    """NVMe drives of one of the models (a tenth of them replaced by another since) and SATA drives."""
    main = rng.choice(nvme_models)
    drives = []
    for index in range(count):
        model = main if rng.random() > 0.1 else rng.choice(nvme_models)
        drive = _drive(f"/dev/nvme{index}", model, rng)
        drive.pci = f"0000:{0xF0 + index:02x}:00.0" if index < 16 else None
        drives.append(drive)
    drives += [_drive(f"/dev/sd{'abcdefgh'[index]}", model, rng) for index, model in enumerate(sata)]
    return drives


def _drive(device: str, model: DriveModel, rng: Random) -> Drive:
    letters = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"
    return Drive(
        device=device,
        protocol=model.protocol,
        model=model.model,
        firmware=model.firmware,
        serial="S" + "".join(rng.choice(letters) for _ in range(13)),
        capacity_bytes=model.capacity_bytes,
        spare_threshold=model.spare_threshold,
        vendor_id=model.vendor_id,
        device_id=model.device_id,
        chip=model.chip,
    )


def build_dimms(board: Board, rng: Random) -> list[Dimm]:
    """All slots filled, one vendor a host."""
    model = CPUS[board.cpu]
    vendor, part = rng.choice((("Samsung", "M321R8GA0BB0-CQKZJ"), ("Hynix", "HMCG94MEBRA123N"), ("Micron Technology",
                              "MTC40F2046S1RC48BA1")))  # fmt: skip
    dimms = []
    for socket in range(2):
        for position in range(board.dimms_per_socket):
            per_controller = board.dimms_per_socket // model.controllers
            controller = socket * model.controllers + position // per_controller
            local = position % per_controller
            channel, slot = divmod(local, 2) if per_controller > 2 else (local, 0)
            label = (
                f"CPU_SrcID#{socket}_MC#{position // per_controller}_Chan#{channel}_DIMM#{slot}"
                if model.vendor == "GenuineIntel"
                else f"mc#{controller}csrow#{slot}channel#{channel}"
            )
            dimms.append(
                Dimm(
                    locator=_locator(board, socket, position),
                    bank=f"P{socket}_Node0_Channel{channel}_Dimm{slot}",
                    controller=controller,
                    channel=channel,
                    slot=slot,
                    edac_label=label,
                    size_gib=board.dimm_gib,
                    speed_mt_s=board.dimm_mt_s,
                    manufacturer=vendor,
                    part_number=part,
                    serial=f"{rng.getrandbits(32):08X}",
                    node=socket * model.nodes_per_socket,
                )
            )
    return dimms


def _locator(board: Board, socket: int, position: int) -> str:
    if board.locator == "{letter}{number}":
        return f"{'AB'[socket]}{position + 1}"
    number = socket * board.dimms_per_socket + position + 1
    return board.locator.format(socket=socket + (0 if "_P" in board.locator else 1), number=number,
                                letter="ABCDEFGHIJKLMNOP"[position])  # fmt: skip


def build_sensors(board: Board, inlet_c: float) -> list[Sensor]:
    """Temperatures, fans, supplies and voltages as the board's BMC names them."""
    sensors = [
        Sensor(name="Inlet Temp", number="04h", entity="7.1", reading=f"{inlet_c:.0f} degrees C"),
        Sensor(name="CPU1 Temp", number="0Eh", entity="3.1", reading=f"{inlet_c + 24:.0f} degrees C"),
        Sensor(name="CPU2 Temp", number="0Fh", entity="3.2", reading=f"{inlet_c + 26:.0f} degrees C"),
        Sensor(name="Exhaust Temp", number="01h", entity="7.1", reading=f"{inlet_c + 17:.0f} degrees C"),
    ]
    sensors += [
        Sensor(
            name=board.fan.format(number=number),
            number=f"{0x30 + number:02X}h",
            entity=f"29.{number}",
            reading=f"{8400 + 120 * (number % 3)} RPM",
        )
        for number in range(1, board.fans + 1)
    ]
    sensors += [
        Sensor(
            name=board.psu.format(number=number),
            number=f"{0x85 + number:02X}h",
            entity=f"10.{number}",
            reading="Presence detected",
        )
        for number in range(1, board.psus + 1)
    ]
    sensors += [
        Sensor(name="CMOS Battery", number="53h", entity="7.1", reading=""),
        Sensor(name="Intrusion", number="73h", entity="7.1", reading=""),
        Sensor(name="SEL", number="72h", entity="7.1", reading="No Reading", status="ns"),
        Sensor(name="PCIe Slot5", number="A5h", entity="11.5", reading="No Reading", status="ns"),
    ]
    return sensors


def _gpu_uuid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _guid(rng: Random) -> str:
    low = f"{rng.getrandbits(24):06x}"
    return f"946d:ae03:00{low[:2]}:{low[2:]}"
