"""What can be bought: GPUs, drives and boards of simulated hosts, with the numbers that their tools print.

Sources: data sheets of NVIDIA (memory, power, clocks, PCIe generation, NVLink count and rate), the PCI id database
(device ids and names), recorded outputs of real tools for the forms of part numbers and versions. The version strings
are of the right form; that a site really runs them does not matter.
"""

from dataclasses import dataclass

from wholestack.health.simulator.hardware import GpuModel

H100 = GpuModel(
    name="NVIDIA H100 80GB HBM3",
    architecture="Hopper",
    chip="GH100 [H100 SXM5 80GB]",
    device_id=0x2330,
    subsystem_id=0x16C110DE,
    memory_mib=81559,
    reserved_mib=551,
    bar1_mib=131072,
    pcie_gen=5,
    idle_pcie_gen=5,
    power_w=700,
    min_power_w=200,
    idle_power_w=71,
    max_sm_mhz=1980,
    idle_sm_mhz=345,
    memory_mhz=2619,
    video_mhz=1545,
    nvlinks=18,
    nvlink_gb_s="26.562",
    vbios="96.00.A5.00.01",
    inforom_image="G520.0200.00.05",
    ecc_object="7.16",
    board_part="692-2G520-0200-000",
    gpu_part="2330-885-A1",
    remap_banks=2560,
    slow_c=87,
    max_c=92,
    hbm=True,
    mig=True,
)
H200 = GpuModel(
    name="NVIDIA H200",
    architecture="Hopper",
    chip="GH100 [H200 SXM 141GB]",
    device_id=0x2335,
    subsystem_id=0x18BE10DE,
    memory_mib=143771,
    reserved_mib=605,
    bar1_mib=262144,
    pcie_gen=5,
    idle_pcie_gen=5,
    power_w=700,
    min_power_w=200,
    idle_power_w=76,
    max_sm_mhz=1980,
    idle_sm_mhz=345,
    memory_mhz=3201,
    video_mhz=1545,
    nvlinks=18,
    nvlink_gb_s="26.562",
    vbios="96.00.D0.00.02",
    inforom_image="G520.0280.00.06",
    ecc_object="7.16",
    board_part="692-2G520-0280-000",
    gpu_part="2335-885-A1",
    remap_banks=3072,
    slow_c=87,
    max_c=92,
    hbm=True,
    mig=True,
)
B200 = GpuModel(
    name="NVIDIA B200",
    architecture="Blackwell",
    chip="GB100 [B200]",
    device_id=0x2901,
    subsystem_id=0x199910DE,
    memory_mib=183359,
    reserved_mib=671,
    bar1_mib=262144,
    pcie_gen=5,
    idle_pcie_gen=5,
    power_w=1000,
    min_power_w=200,
    idle_power_w=140,
    max_sm_mhz=1965,
    idle_sm_mhz=120,
    memory_mhz=3996,
    video_mhz=1965,
    nvlinks=18,
    nvlink_gb_s="53.125",
    vbios="97.00.88.00.0F",
    inforom_image="G525.0225.00.03",
    ecc_object="7.18",
    board_part="692-2G525-0225-001",
    gpu_part="2901-886-A1",
    remap_banks=4096,
    slow_c=88,
    max_c=93,
    hbm=True,
    mig=True,
)
A100 = GpuModel(
    name="NVIDIA A100-SXM4-80GB",
    architecture="Ampere",
    chip="GA100 [A100 SXM4 80GB]",
    device_id=0x20B2,
    subsystem_id=0x147F10DE,
    memory_mib=81920,
    reserved_mib=869,
    bar1_mib=131072,
    pcie_gen=4,
    idle_pcie_gen=4,
    power_w=400,
    min_power_w=100,
    idle_power_w=61,
    max_sm_mhz=1410,
    idle_sm_mhz=210,
    memory_mhz=1593,
    video_mhz=1290,
    nvlinks=12,
    nvlink_gb_s="25",
    vbios="92.00.9E.00.01",
    inforom_image="G506.0210.00.03",
    ecc_object="6.16",
    board_part="692-2G506-0210-003",
    gpu_part="20B2-886-A1",
    remap_banks=640,
    slow_c=89,
    max_c=92,
    hbm=True,
    mig=True,
)
V100 = GpuModel(
    name="Tesla V100-SXM2-32GB",
    brand="Tesla",
    architecture="Volta",
    chip="GV100GL [Tesla V100 SXM2 32GB]",
    device_id=0x1DB5,
    subsystem_id=0x124910DE,
    memory_mib=32768,
    reserved_mib=269,
    bar1_mib=32768,
    pcie_gen=3,
    idle_pcie_gen=3,
    power_w=300,
    min_power_w=150,
    idle_power_w=42,
    max_sm_mhz=1530,
    idle_sm_mhz=135,
    memory_mhz=877,
    video_mhz=1372,
    nvlinks=6,
    nvlink_gb_s="25.781",
    vbios="88.00.4F.00.09",
    inforom_image="G503.0203.00.05",
    ecc_object="5.0",
    board_part="900-2G503-0010-000",
    gpu_part="1DB5-895-A1",
    remap_banks=0,
    slow_c=87,
    max_c=90,
    hbm=True,
    mig=False,
)
L40S = GpuModel(
    name="NVIDIA L40S",
    architecture="Ada Lovelace",
    chip="AD102GL [L40S]",
    device_id=0x26B9,
    subsystem_id=0x185110DE,
    memory_mib=46068,
    reserved_mib=597,
    bar1_mib=65536,
    pcie_gen=4,
    idle_pcie_gen=1,
    power_w=350,
    min_power_w=100,
    idle_power_w=34,
    max_sm_mhz=2520,
    idle_sm_mhz=210,
    memory_mhz=9001,
    video_mhz=1965,
    nvlinks=0,
    nvlink_gb_s="",
    vbios="95.02.66.00.02",
    inforom_image="G133.0242.00.03",
    ecc_object="6.16",
    board_part="900-2G133-0080-000",
    gpu_part="26B9-896-A1",
    remap_banks=192,
    slow_c=89,
    max_c=94,
    hbm=False,
    mig=False,
)
A10 = GpuModel(
    name="NVIDIA A10",
    architecture="Ampere",
    chip="GA102GL [A10]",
    device_id=0x2236,
    subsystem_id=0x148210DE,
    memory_mib=23028,
    reserved_mib=511,
    bar1_mib=32768,
    pcie_gen=4,
    idle_pcie_gen=1,
    power_w=150,
    min_power_w=100,
    idle_power_w=16,
    max_sm_mhz=1695,
    idle_sm_mhz=210,
    memory_mhz=6251,
    video_mhz=1500,
    nvlinks=0,
    nvlink_gb_s="",
    vbios="94.02.5C.00.03",
    inforom_image="G133.0205.00.02",
    ecc_object="6.16",
    board_part="900-2G133-0020-100",
    gpu_part="2236-893-A1",
    remap_banks=192,
    slow_c=95,
    max_c=98,
    hbm=False,
    mig=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveModel:
    """What is the same for all drives of one product."""

    model: str
    firmware: str
    capacity_bytes: int
    protocol: str = "NVMe"
    spare_threshold: int = 10
    vendor_id: int = 0
    device_id: int = 0
    chip: str = ""
    power: str = "nvme"


SAMSUNG = DriveModel(
    model="SAMSUNG MZQL23T8HCLS-00A07",
    firmware="GDC5602Q",
    capacity_bytes=3_840_755_982_336,
    vendor_id=0x144D,
    device_id=0xA80A,
    chip="Samsung Electronics Co Ltd NVMe SSD Controller PM9A1/PM9A3/980PRO",
)
MICRON = DriveModel(
    model="Micron_7450_MTFDKCC3T8TFR",
    firmware="E2MU200",
    capacity_bytes=3_840_755_982_336,
    spare_threshold=5,
    vendor_id=0x1344,
    device_id=0x51C3,
    chip="Micron Technology Inc 7450 PRO NVMe SSD",
)
SOLIDIGM = DriveModel(
    model="SOLIDIGM SSDPF2KX038T1",
    firmware="9CV10490",
    capacity_bytes=3_840_755_982_336,
    vendor_id=0x025E,
    device_id=0x0B60,
    chip="Solidigm NVMe DC SSD [Sentinel Rock Plus controller]",
)
KIOXIA = DriveModel(
    model="KIOXIA KCD61LUL960G",
    firmware="0105",
    capacity_bytes=960_197_124_096,
    vendor_id=0x1E0F,
    device_id=0x0013,
    chip="KIOXIA Corporation NVMe SSD Controller CD6",
)
SATA_INTEL = DriveModel(
    model="INTEL SSDSC2KB480G8", firmware="XCV10132", capacity_bytes=480_103_981_056, protocol="ATA"
)
SATA_SEAGATE = DriveModel(
    model="ST16000NM000J-2TW103", firmware="SN02", capacity_bytes=16_000_900_661_248, protocol="ATA"
)

DATA_DRIVES = (SAMSUNG, MICRON, SOLIDIGM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A server: names in the firmware tables, memory, processors, sensors."""

    vendor: str
    product: str
    bios_vendor: str
    bios_version: str
    bios_date: str
    cpu: str
    """Name in :data:`CPUS`."""
    dimms_per_socket: int
    dimm_gib: int
    dimm_mt_s: int
    locator: str
    """Form of a DIMM locator with ``{socket}``, ``{letter}`` and ``{number}``."""
    psus: int
    psu: str
    """Form of the name of a power supply with ``{number}``."""
    fans: int
    fan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuModel:
    """A processor."""

    vendor: str
    model: str
    family: int
    model_number: int
    stepping: int
    cores: int
    threads: int
    nodes_per_socket: int
    min_mhz: float
    max_mhz: float
    controllers: int
    """Memory controllers of a socket."""
    mc_name: str


XEON_8480 = CpuModel(
    vendor="GenuineIntel",
    model="Intel(R) Xeon(R) Platinum 8480C",
    family=6,
    model_number=143,
    stepping=8,
    cores=56,
    threads=2,
    nodes_per_socket=1,
    min_mhz=800,
    max_mhz=3800,
    controllers=4,
    mc_name="Intel_10nm Socket#{socket} IMC#{controller}",
)
XEON_6248 = CpuModel(
    vendor="GenuineIntel",
    model="Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz",
    family=6,
    model_number=85,
    stepping=7,
    cores=20,
    threads=2,
    nodes_per_socket=1,
    min_mhz=1000,
    max_mhz=3900,
    controllers=2,
    mc_name="Skylake Socket#{socket} IMC#{controller}",
)
EPYC_7742 = CpuModel(
    vendor="AuthenticAMD",
    model="AMD EPYC 7742 64-Core Processor",
    family=23,
    model_number=49,
    stepping=0,
    cores=64,
    threads=2,
    nodes_per_socket=4,
    min_mhz=1500,
    max_mhz=2250,
    controllers=1,
    mc_name="F17h_M30h",
)
EPYC_9354 = CpuModel(
    vendor="AuthenticAMD",
    model="AMD EPYC 9354 32-Core Processor",
    family=25,
    model_number=17,
    stepping=1,
    cores=32,
    threads=2,
    nodes_per_socket=1,
    min_mhz=1500,
    max_mhz=3799,
    controllers=1,
    mc_name="F19h_M10h",
)

DELL_XE9680 = Board(
    vendor="Dell Inc.",
    product="PowerEdge XE9680",
    bios_vendor="Dell Inc.",
    bios_version="2.1.3",
    bios_date="04/03/2024",
    cpu="XEON_8480",
    dimms_per_socket=16,
    dimm_gib=64,
    dimm_mt_s=4800,
    locator="{letter}{number}",
    psus=6,
    psu="PS{number} Status",
    fans=16,
    fan="Fan{number} RPM",
)
SUPERMICRO_HGX = Board(
    vendor="Supermicro",
    product="SYS-821GE-TNHR",
    bios_vendor="American Megatrends International, LLC.",
    bios_version="2.3",
    bios_date="06/20/2024",
    cpu="XEON_8480",
    dimms_per_socket=16,
    dimm_gib=64,
    dimm_mt_s=4800,
    locator="P{socket}-DIMM{letter}1",
    psus=6,
    psu="PS{number} Status",
    fans=10,
    fan="FAN{number}",
)
DGX_A100 = Board(
    vendor="NVIDIA",
    product="DGXA100 920-23687-2530-000",
    bios_vendor="American Megatrends International, LLC.",
    bios_version="1.21",
    bios_date="03/30/2023",
    cpu="EPYC_7742",
    dimms_per_socket=16,
    dimm_gib=64,
    dimm_mt_s=3200,
    locator="DIMM_P{socket}_{letter}0",
    psus=6,
    psu="STATUS_PSU{number}",
    fans=8,
    fan="SPD_FAN_SYS{number}_F",
)
LENOVO_EPYC = Board(
    vendor="Lenovo",
    product="ThinkSystem SR675 V3",
    bios_vendor="Lenovo",
    bios_version="KAE126J-5.20",
    bios_date="05/21/2024",
    cpu="EPYC_9354",
    dimms_per_socket=12,
    dimm_gib=32,
    dimm_mt_s=4800,
    locator="DIMM {number}",
    psus=4,
    psu="PSU{number} Status",
    fans=5,
    fan="Fan {number} Tach",
)
DELL_R750XA = Board(
    vendor="Dell Inc.",
    product="PowerEdge R750xa",
    bios_vendor="Dell Inc.",
    bios_version="1.13.2",
    bios_date="12/19/2023",
    cpu="XEON_6248",
    dimms_per_socket=8,
    dimm_gib=32,
    dimm_mt_s=2933,
    locator="{letter}{number}",
    psus=2,
    psu="PS{number} Status",
    fans=6,
    fan="Fan{number} RPM",
)

CPUS = {"XEON_8480": XEON_8480, "XEON_6248": XEON_6248, "EPYC_7742": EPYC_7742, "EPYC_9354": EPYC_9354}
