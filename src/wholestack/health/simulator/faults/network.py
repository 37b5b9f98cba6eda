"""Faults of RDMA adapters, Ethernet, cables and optics.

Counters are those of kernel documentation, ABI/stable/sysfs-class-infiniband: the 8-bit ``link_downed`` and
``link_error_recovery`` stop at 255, the 16-bit ``symbol_error`` and ``port_rcv_errors`` at 65535 where the port has no
extended counters.
"""

from collections.abc import Callable

from wholestack.health.simulator.faults.fault import (
    HOUR_S,
    Draw,
    Fault,
    again,
    fault,
    repeat_line,
)
from wholestack.health.simulator.hardware import Hca, Nic
from wholestack.health.simulator.machine import Machine

SYSFS_IB = "Linux, ABI/stable/sysfs-class-infiniband"
SYSFS_NET = "Linux, ABI/testing/sysfs-class-net"


def _names(hca: Hca) -> tuple[str, ...]:
    """The port, by its own name; nothing less names a port."""
    return (f"{hca.name}/{hca.port.number}",)


def _adapter_names(hca: Hca) -> tuple[str, ...]:
    return (hca.name, *_names(hca), hca.pci, hca.guid)


def _netdev(machine: Machine, hca: Hca) -> Nic:
    return next(nic for nic in machine.nics if nic.name == hca.netdev)


def _down(phys: str, state: str) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        hca, ago_s = draw.one(machine.hcas), draw.ago_s()
        hca.port.state, hca.port.phys_state = state, phys
        nic = _netdev(machine, hca)
        nic.operstate = "down"
        nic.carrier_changes += 1
        if not phys.startswith("5"):
            hca.port.counters["link_downed"] += 1
        machine.say(f"mlx5_core {hca.pci}: Port: 1 Link DOWN", ago_s=ago_s)
        return (*_names(hca), nic.name)

    return inject


def _slower(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Up at a lower rate: a cable that trains at an older generation."""
    hca = draw.one(machine.hcas)
    lower = {"400": "200 Gb/sec (4X HDR)", "200": "100 Gb/sec (2X HDR)", "100": "56 Gb/sec (4X FDR)"}
    _rate(machine, hca, lower[hca.port.rate.split(maxsplit=1)[0]])
    # A RoCE port is its network interface; on an InfiniBand one the interface only runs over it.
    return (*_names(hca), hca.netdev) if hca.port.link_layer == "Ethernet" else _names(hca)


def _narrower(machine: Machine, draw: Draw) -> tuple[str, ...]:
    hca = draw.one(machine.hcas)
    lower = {"400": "100 Gb/sec (1X NDR)", "200": "50 Gb/sec (1X HDR)", "100": "25 Gb/sec (1X EDR)"}
    _rate(machine, hca, lower[hca.port.rate.split(maxsplit=1)[0]])
    return _names(hca)


def _rate(machine: Machine, hca: Hca, rate: str) -> None:
    hca.port.rate = rate
    _netdev(machine, hca).speed_mb_s = int(rate.split(maxsplit=1)[0]) * 1000


def _counts(counter: str, low: float, high: float, *, hardware: bool = False) -> Callable[
    [Machine, Draw], tuple[str, ...]
]:  # fmt: skip
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        hca, per_hour = draw.one(machine.hcas), draw.between(low, high)
        counters = hca.port.hw_counters if hardware else hca.port.counters

        def add(host: Machine, count: int) -> None:
            counters[counter] += count

        add(machine, int(per_hour * min(3.0, machine.uptime_s / HOUR_S)))
        again(machine, HOUR_S / per_hour, add)
        return _names(hca)

    return inject


def _flapping(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Down and up again every few minutes."""
    hca, per_hour = draw.one(machine.hcas), draw.between(12, 40)
    nic = _netdev(machine, hca)

    def flap(host: Machine, count: int) -> None:
        downed = hca.port.counters["link_downed"]
        hca.port.counters["link_downed"] = min(downed + count, max(255, downed))
        hca.port.counters["link_error_recovery"] += count
        nic.carrier_changes += 2 * count
        for _ in range(min(count, 12)):
            ago_s = host.rng.uniform(3, 580)
            host.say(f"mlx5_core {hca.pci}: Port: 1 Link DOWN", ago_s=ago_s)
            host.say(f"mlx5_core {hca.pci}: Port: 1 Link ACTIVE", ago_s=ago_s - 2.4)

    flap(machine, draw.whole(6, 30))
    again(machine, HOUR_S / per_hour, flap)
    return (*_names(hca), nic.name)


def _saturated(counter: str, top: int) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        hca = draw.one(machine.hcas)
        hca.port.counters[counter] = top
        return _names(hca)

    return inject


def _firmware(machine: Machine, draw: Draw) -> tuple[str, ...]:
    hca = draw.one(machine.hcas)
    hca.firmware = f"{hca.firmware.split('.', maxsplit=1)[0]}.{draw.rng.choice(('37.1014', '36.1010', '38.1900'))}"
    return _adapter_names(hca)


def _missing(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Not found at boot: no device, no port, no interface."""
    hca = draw.one(machine.hcas)
    hca.enumerated = False
    _netdev(machine, hca).enumerated = False
    return ()


def _pcie(machine: Machine, draw: Draw) -> tuple[str, ...]:
    hca = draw.one(machine.hcas)
    capable = {5: "504.112", 4: "252.048", 3: "126.016"}[hca.pcie_gen]
    speed = {5: "32.0", 4: "16.0", 3: "8.0"}[hca.pcie_gen]
    hca.pcie_width = 8
    machine.say(
        f"mlx5_core {hca.pci}: {float(capable) / 2:.3f} Gb/s available PCIe bandwidth, limited by {speed} GT/s PCIe x8 "
        f"link at 0000:{hca.pci[5:7]}:01.0 (capable of {capable} Gb/s with {speed} GT/s PCIe x16 link)",
        level="warn",
        ago_s=machine.uptime_s - 20,
    )
    return _adapter_names(hca)


def _no_peer_memory(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.modules.remove("nvidia_peermem")
    return ()


def _module_error(machine: Machine, draw: Draw) -> tuple[str, ...]:
    hca = draw.one(machine.hcas)
    text = f"mlx5_core {hca.pci}: Port module event[error]: module 0, Cable error, High Temperature"
    repeat_line(machine, text, level="err", ago_s=draw.ago_s(), every_s=2 * HOUR_S)
    return (*_adapter_names(hca), hca.netdev)


def _ports(machine: Machine) -> list[Nic]:
    """Interfaces with a device of their own that are no port of an RDMA adapter."""
    return [nic for nic in machine.nics if nic.pci and nic.chip and nic.enumerated]


def _port_down(machine: Machine, draw: Draw) -> tuple[str, ...]:
    nic = draw.one([each for each in _ports(machine) if each.name != "eno1"])
    nic.operstate = "down"
    nic.carrier_changes += 1
    machine.say(f"mlx5_core {nic.pci} {nic.name}: Link down", ago_s=draw.ago_s())
    bond = next((each for each in machine.nics if nic.name in each.slaves), None)
    if bond:
        bond.speed_mb_s = (bond.full_speed_mb_s or 0) // 2
        machine.say(f"bond0: (slave {nic.name}): link status definitely down, disabling slave", ago_s=draw.ago_s())
    return (nic.name, nic.pci or "")


def _port_slow(machine: Machine, draw: Draw) -> tuple[str, ...]:
    nic = draw.one(_ports(machine))
    nic.speed_mb_s = {10_000: 1_000, 100_000: draw.rng.choice((25_000, 50_000))}[nic.full_speed_mb_s or 10_000]
    bond = next((each for each in machine.nics if nic.name in each.slaves), None)
    if bond:
        bond.speed_mb_s = 100_000 + (nic.speed_mb_s or 0)
    return (nic.name, nic.pci or "")


def _port_counts(counter: str, low: float, high: float) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        nic, per_hour = draw.one(_ports(machine)), draw.between(low, high)

        def add(host: Machine, count: int) -> None:
            nic.statistics[counter] += count
            if counter == "rx_crc_errors":
                nic.statistics["rx_errors"] += count

        add(machine, int(per_hour * min(3.0, machine.uptime_s / HOUR_S)))
        again(machine, HOUR_S / per_hour, add)
        return (nic.name, nic.pci or "")

    return inject


def _port_flaps(machine: Machine, draw: Draw) -> tuple[str, ...]:
    nic, per_hour = draw.one(_ports(machine)), draw.between(18, 60)

    def flap(host: Machine, count: int) -> None:
        nic.carrier_changes += 2 * count
        for _ in range(min(count, 10)):
            ago_s = host.rng.uniform(4, 580)
            host.say(f"{nic.name}: NIC Link is Down", level="err", ago_s=ago_s)
            host.say(f"{nic.name}: NIC Link is Up, {nic.speed_mb_s} Mbps full duplex", ago_s=ago_s - 3)

    flap(machine, draw.whole(10, 40))
    again(machine, HOUR_S / per_hour, flap)
    return (nic.name, nic.pci or "")


def _half_duplex(machine: Machine, draw: Draw) -> tuple[str, ...]:
    nic = next(each for each in machine.nics if each.name == "eno1")
    nic.duplex, nic.speed_mb_s = "half", 100
    return (nic.name, nic.pci or "")


def _mtu(machine: Machine, draw: Draw) -> tuple[str, ...]:
    nic = draw.one([each for each in machine.nics if each.mtu == 9000])
    nic.mtu = 1500
    return (nic.name, nic.pci or "")


def _bond_down(machine: Machine, draw: Draw) -> tuple[str, ...]:
    bond = next(each for each in machine.nics if each.slaves)
    bond.mii_status = bond.operstate = "down"
    for slave in machine.nics:
        if slave.name in bond.slaves:
            slave.operstate = "down"
    return (bond.name,)


def _optical(machine: Machine) -> list[Nic]:
    return [nic for nic in machine.nics if nic.optic and not nic.optic.copper and nic.enumerated]


def _dim(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """One lane receives too little light: dirt or a bent fibre."""
    nic = draw.one(_optical(machine))
    if nic.optic:
        nic.optic.rx_mw[draw.rng.randrange(nic.optic.lanes)] = draw.between(0.085, 0.004)
    return _optic_names(nic)


def _hot_optic(machine: Machine, draw: Draw) -> tuple[str, ...]:
    nic = draw.one(_optical(machine))
    if nic.optic:
        nic.optic.temperature_c = draw.between(75.5, 88)
    return _optic_names(nic)


def _optic_names(nic: Nic) -> tuple[str, ...]:
    return (nic.name, nic.pci or "", nic.optic.serial if nic.optic else "")


def _ib(machine: Machine) -> bool:
    return bool(machine.hcas) and machine.hcas[0].port.link_layer == "InfiniBand"


def _roce(machine: Machine) -> bool:
    return bool(machine.hcas) and machine.hcas[0].port.link_layer == "Ethernet"


def _rdma(machine: Machine) -> bool:
    return bool(machine.hcas)


def _several(machine: Machine) -> bool:
    return len(machine.hcas) > 1


def _gdr(machine: Machine) -> bool:
    return "nvidia_peermem" in machine.modules


def _bonded(machine: Machine) -> bool:
    return any(nic.slaves for nic in machine.nics)


def _jumbo(machine: Machine) -> bool:
    return any(nic.mtu == 9000 for nic in machine.nics)


def _wired(machine: Machine) -> bool:
    return bool(_ports(machine))


def _lit(machine: Machine) -> bool:
    return bool(_optical(machine)) and machine.os_release["ID"] != "debian"


FAULTS: tuple[Fault, ...] = (
    fault("ib_port_down", "hca", SYSFS_IB, _down("3: Disabled", "1: DOWN"), "network", "data centre", applies=_ib),
    fault("ib_port_polling", "hca", f"{SYSFS_IB}; ibstat(8)", _down("2: Polling", "1: DOWN"), "network", "data centre",
          applies=_ib),
    fault("ib_port_init", "hca", f"{SYSFS_IB}; opensm(8)", _down("5: LinkUp", "2: INIT"), "network", applies=_ib),
    fault("roce_port_down", "hca", SYSFS_IB, _down("3: Disabled", "1: DOWN"), "network", "data centre", applies=_roce),
    fault("rdma_rate_low", "hca", SYSFS_IB, _slower, "network", "data centre", applies=_rdma),
    fault("rdma_width_low", "hca", SYSFS_IB, _narrower, "network", "data centre", applies=_ib),
    fault("ib_symbol_errors", "hca", SYSFS_IB, _counts("symbol_error", 120, 20_000), "network", "data centre",
          applies=_ib, by_rate=True),
    fault("ib_receive_errors", "hca", SYSFS_IB, _counts("port_rcv_errors", 60, 4_000), "network", "data centre",
          applies=_ib, by_rate=True),
    fault("ib_link_integrity_errors", "hca", SYSFS_IB, _counts("local_link_integrity_errors", 30, 800), "network",
          "data centre", applies=_ib, by_rate=True),
    fault("rdma_flapping", "hca", f"{SYSFS_IB}; leptonai/gpud#1110", _flapping, "network", "data centre",
          applies=_rdma),
    fault("ib_link_downed_saturated", "hca", "leptonai/gpud, recorded sysfs of an H100 host (link_downed 255)",
          _saturated("link_downed", 255), "network", "data centre", applies=_ib),
    fault("ib_symbol_error_saturated", "hca", SYSFS_IB, _saturated("symbol_error", 65_535), "network", "data centre",
          applies=_ib),
    fault("roce_out_of_sequence", "hca", "NVIDIA, Understanding mlx5 RDMA counters",
          _counts("packet_seq_err", 4_000, 200_000, hardware=True), "network", applies=_roce, by_rate=True),
    fault("roce_ack_timeouts", "hca", "NVIDIA, Understanding mlx5 RDMA counters",
          _counts("local_ack_timeout_err", 400, 20_000, hardware=True), "network", applies=_roce, by_rate=True),
    fault("hca_firmware_drift", "hca", SYSFS_IB, _firmware, "cluster team", "network", applies=_several),
    fault("hca_missing", "hca", f"{SYSFS_IB}; leptonai/gpud#1055", _missing, "vendor", "data centre",
          applies=_several),
    fault("hca_pcie_narrow", "hca", "Linux, pcie_print_link_status: lines limited by ...", _pcie, "vendor",
          "data centre", applies=_rdma),
    fault("hca_cable_hot", "hca", "Linux, mlx5 port module events", _module_error, "network", "data centre",
          applies=_rdma),
    fault("peer_memory_missing", "service", "proc(5), /proc/modules; NVIDIA GPUDirect RDMA", _no_peer_memory,
          "cluster team", applies=_gdr),
    fault("nic_down", "nic", SYSFS_NET, _port_down, "network", "data centre", applies=_bonded),
    fault("nic_slow", "nic", SYSFS_NET, _port_slow, "network", "data centre", applies=_wired),
    fault("nic_crc_errors", "nic", SYSFS_NET, _port_counts("rx_crc_errors", 100, 20_000), "network", "data centre",
          applies=_wired, by_rate=True),
    fault("nic_transmit_errors", "nic", SYSFS_NET, _port_counts("tx_errors", 100, 5_000), "network", "data centre",
          "vendor", applies=_wired, by_rate=True),
    fault("nic_flapping", "nic", SYSFS_NET, _port_flaps, "network", "data centre", applies=_wired, by_rate=True),
    fault("nic_half_duplex", "nic", SYSFS_NET, _half_duplex, "network", "data centre", applies=_wired),
    fault("nic_mtu_drift", "nic", SYSFS_NET, _mtu, "cluster team", "network", applies=_jumbo),
    fault("bond_down", "nic", "Linux, networking/bonding: mii_status", _bond_down, "network", "data centre",
          applies=_bonded),
    fault("optic_low_power", "nic", "ethtool(8), -m; SFF-8636", _dim, "network", "data centre", applies=_lit),
    fault("optic_hot", "nic", "ethtool(8), -m; SFF-8636", _hot_optic, "network", "data centre", applies=_lit),
)  # fmt: skip
