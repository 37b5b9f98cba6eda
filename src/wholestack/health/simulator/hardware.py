"""The parts of a simulated host: what they are and the state that the tools print.

These are mutable on purpose: time passes, counters advance, parts break. Addresses are in the form of sysfs
(``0000:1b:00.0``); each tool prints its own form of them.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """What is the same for all GPUs of one product."""

    name: str
    brand: str = "NVIDIA"
    architecture: str
    chip: str
    """As ``lspci`` calls it."""
    device_id: int
    subsystem_id: int
    memory_mib: int
    reserved_mib: int
    bar1_mib: int
    pcie_gen: int
    idle_pcie_gen: int
    """Generation to which the link is clocked down when idle; the same as ``pcie_gen`` where it is not."""
    power_w: float
    min_power_w: float
    idle_power_w: float
    max_sm_mhz: int
    idle_sm_mhz: int
    memory_mhz: int
    video_mhz: int
    nvlinks: int
    nvlink_gb_s: str
    vbios: str
    inforom_image: str
    ecc_object: str
    board_part: str
    gpu_part: str
    remap_banks: int
    """Banks of the row remapper; 0: the product retires pages instead."""
    slow_c: int
    max_c: int
    hbm: bool
    mig: bool
    has_fan: bool = False


@dataclass(slots=True, kw_only=True)
class NvLink:
    """One NVLink of a GPU and its error counters."""

    active: bool = True
    replay: int = 0
    recovery: int = 0
    crc: int = 0


@dataclass(slots=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    name: str
    used_mib: int


@dataclass(slots=True, kw_only=True)
class Gpu:
    """One GPU."""

    model: GpuModel
    index: int
    pci: str
    numa: int
    serial: str
    uuid: str
    board_id: int
    module_id: int
    vbios: str
    inforom_image: str
    links: list[NvLink]
    power_limit_w: float
    on_bus: bool = True
    """Whether it answers on PCIe."""
    enumerated: bool = True
    """Whether the kernel found it at boot."""
    listed: bool = True
    """Whether the driver has it."""
    lost_as: str = ""
    """Text that the driver gives instead of values once it lost the GPU."""
    heat_c: float = 0.0
    """Degrees above what load and inlet explain."""
    slot_c: float = 0.0
    """Its place in the air stream, degrees above the coolest."""
    memory_heat_c: float = 0.0
    volatile: dict[str, int] = field(default_factory=dict)
    """ECC errors since the driver was loaded, by name: ``sram_c``, ``sram_parity``, ``sram_secded``, ``dram_c``,
    ``dram_u``."""
    aggregate: dict[str, int] = field(default_factory=dict)
    """ECC errors of the whole life, same names."""
    sram_threshold_exceeded: bool = False
    remapped_correctable: int = 0
    remapped_uncorrectable: int = 0
    remap_pending: bool = False
    remap_failure: bool = False
    retired_single: int = 0
    retired_double: int = 0
    retired_pending: bool = False
    throttle: set[str] = field(default_factory=set)
    """Active reasons by the end of their tag, for instance ``hw_slowdown``."""
    pcie_gen_cap: int | None = None
    """Generation at which the link is stuck, if it is."""
    pcie_width: int = 16
    pcie_replays: int = 0
    persistence: bool = True
    mig_current: bool = False
    mig_pending: bool = False
    ecc_current: bool = True
    ecc_pending: bool = True
    inforom_corrupt: bool = False
    recovery_action: str = "None"
    fan_percent: int | None = None
    fabric_state: str = "N/A"
    fabric_status: str = "N/A"
    thin: dict[str, str] = field(default_factory=dict)
    """Values that the driver no longer gives, by tag: the text printed instead."""
    processes: list[GpuProcess] = field(default_factory=list)

    @property
    def smi_address(self) -> str:
        """The bus id as ``nvidia-smi`` prints it."""
        return f"0000{self.pci}".upper()

    @property
    def kernel_address(self) -> str:
        """The bus id as the driver logs it, without the function."""
        return self.pci.rsplit(".", 1)[0]


@dataclass(slots=True, kw_only=True)
class NvSwitch:
    """One NVSwitch of the baseboard."""

    index: int
    pci: str
    device_id: int
    on_bus: bool = True


@dataclass(slots=True, kw_only=True)
class HcaPort:
    """One port of an HCA."""

    number: int
    link_layer: str
    rate: str
    state: str = "4: ACTIVE"
    phys_state: str = "5: LinkUp"
    counters: dict[str, int] = field(default_factory=dict)
    hw_counters: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Hca:
    """One RDMA adapter (InfiniBand or RoCE)."""

    name: str
    pci: str
    numa: int
    firmware: str
    board_id: str
    hca_type: str
    guid: str
    device_id: int
    chip: str
    pcie_gen: int
    port: HcaPort
    netdev: str
    enumerated: bool = True
    pcie_gen_cap: int | None = None
    pcie_width: int = 16


@dataclass(slots=True, kw_only=True)
class Optic:
    """A pluggable module with diagnostics; ``None`` lanes: copper."""

    vendor: str
    part_number: str
    serial: str
    lanes: int
    temperature_c: float
    voltage_v: float
    bias_ma: float
    rx_mw: list[float]
    tx_mw: list[float]
    copper: bool = False


@dataclass(slots=True, kw_only=True)
class Nic:
    """One network interface of the kernel."""

    name: str
    pci: str | None
    vendor: str = ""
    speed_mb_s: int | None = None
    """``None``: the kernel gives no speed (loopback, tunnels)."""
    full_speed_mb_s: int | None = None
    duplex: str = "full"
    mtu: int = 1500
    operstate: str = "up"
    carrier_changes: int = 2
    arp_type: int = 1
    statistics: dict[str, int] = field(default_factory=dict)
    slaves: tuple[str, ...] = ()
    mii_status: str = "up"
    optic: Optic | None = None
    chip: str = ""
    device_id: int = 0
    enumerated: bool = True


@dataclass(slots=True, kw_only=True)
class Drive:
    """One drive."""

    device: str
    protocol: str
    """``NVMe`` or ``ATA``."""
    model: str
    firmware: str
    serial: str
    capacity_bytes: int
    pci: str | None = None
    numa: int = 0
    present: bool = True
    passed: bool = True
    temperature_c: int = 35
    power_on_hours: int = 10_000
    power_cycles: int = 20
    critical_warning: int = 0
    spare: int = 100
    spare_threshold: int = 10
    used_percent: int = 0
    units_read: int = 0
    units_written: int = 0
    unsafe_shutdowns: int = 3
    media_errors: int = 0
    error_entries: int = 0
    warning_temperature_minutes: int = 0
    critical_temperature_minutes: int = 0
    reallocated: int = 0
    pending: int = 0
    uncorrectable: int = 0
    crc_errors: int = 0
    device_id: int = 0
    vendor_id: int = 0
    chip: str = ""
    pcie_gen: int = 4
    pcie_width: int = 4


@dataclass(slots=True, kw_only=True)
class Dimm:
    """One memory module."""

    locator: str
    bank: str
    controller: int
    channel: int
    slot: int
    edac_label: str
    size_gib: int
    speed_mt_s: int
    manufacturer: str
    part_number: str
    serial: str
    node: int
    present: bool = True
    corrected: int = 0
    uncorrected: int = 0


@dataclass(slots=True, kw_only=True)
class Cpu:
    """All processors of the host."""

    vendor: str
    """``GenuineIntel`` or ``AuthenticAMD``."""
    model: str
    family: int
    model_number: int
    stepping: int
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    nodes: int
    min_mhz: float
    max_mhz: float
    offline: set[int] = field(default_factory=set)
    core_throttles: dict[int, int] = field(default_factory=dict)
    package_throttles: dict[int, int] = field(default_factory=dict)
    governor: str | None = "performance"
    odd_governors: dict[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Logical processors."""
        return self.sockets * self.cores_per_socket * self.threads_per_core

    def of_node(self, node: int) -> list[int]:
        """Logical processors of a NUMA node: first threads, then their siblings, as Linux numbers them."""
        cores = self.sockets * self.cores_per_socket
        share = cores // self.nodes
        return [
            thread * cores + core
            for thread in range(self.threads_per_core)
            for core in range(node * share, (node + 1) * share)
        ]


@dataclass(slots=True, kw_only=True)
class Sensor:
    """One sensor of the BMC as ``ipmitool sdr elist`` prints it."""

    name: str
    number: str
    entity: str
    reading: str
    status: str = "ok"
