"""Kinds of host: which parts each has and at which addresses. One line of :data:`KINDS` a kind.

Within a kind the site rolled out one driver, one firmware and one configuration; drives, memory vendors, time zone,
age and load differ from host to host, as they do.
"""

from dataclasses import dataclass
from random import Random

from wholestack.health.simulator import products
from wholestack.health.simulator.assembly import (
    build_cpu,
    build_dimms,
    build_drives,
    build_gpus,
    build_hcas,
    build_nics,
    build_sensors,
    build_switches,
)
from wholestack.health.simulator.hardware import GpuModel
from wholestack.health.simulator.kernel_log import KernelLog
from wholestack.health.simulator.machine import Array, Containers, Machine, Pool, TimeSync
from wholestack.health.simulator.mounts import build_file_systems
from wholestack.health.simulator.products import Board, DriveModel
from wholestack.health.simulator.software import (
    DEBIAN_12,
    ROCKY_9,
    UBUNTU_20,
    UBUNTU_22,
    kernel_parameters,
    module_names,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of host."""

    name: str
    weight: float
    """Share in a drawn fleet."""
    board: Board
    gpu: GpuModel | None = None
    gpus: tuple[str, ...] = ()
    """PCI addresses."""
    nvswitches: tuple[str, ...] = ()
    nvswitch_id: int = 0
    hcas: tuple[str, ...] = ()
    hca: str = "CX7"
    link_layer: str = "InfiniBand"
    driver: str = ""
    cuda: str = ""
    open_module: bool = False
    fabric_manager: bool = False
    mig: bool = False
    os: dict[str, str]
    kernel: str
    nvme: int = 2
    nvme_models: tuple[DriveModel, ...] = products.DATA_DRIVES
    sata: tuple[DriveModel, ...] = ()
    storage: str = "plain"
    """What the data drives are: ``plain``, ``md`` (RAID 1) or ``zfs``."""
    shared: str = "nfs4"
    """Type of the shared file system; empty: none."""
    bond: bool = False
    time_daemon: str = "chrony"
    docker: str = "27.3.1"
    containerd: str = "1.7.22"
    dmesg_style: str = "iso"
    governor: str | None = "performance"


KINDS: tuple[Kind, ...] = (
    Kind(
        name="h100-8-ndr",
        weight=4,
        board=products.DELL_XE9680,
        gpu=products.H100,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("1b", "3d", "4e", "5f", "9d", "bd", "cd", "dd")),
        nvswitches=tuple(f"0000:{bus}:00.0" for bus in ("07", "08", "09", "0a")),
        nvswitch_id=0x22A3,
        hcas=tuple(f"0000:{bus}:00.0" for bus in ("18", "3a", "4b", "5c", "9a", "ba", "ca", "da")),
        driver="535.183.06",
        cuda="12.2",
        fabric_manager=True,
        os=UBUNTU_22,
        kernel="5.15.0-124-generic",
        nvme=8,
        storage="zfs",
        bond=True,
    ),
    Kind(
        name="h200-8-roce",
        weight=2,
        board=products.SUPERMICRO_HGX,
        gpu=products.H200,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")),
        nvswitches=tuple(f"0000:{bus}:00.0" for bus in ("07", "08", "09", "0a")),
        nvswitch_id=0x22A3,
        hcas=tuple(f"0000:{bus}:00.0" for bus in ("1a", "3c", "4d", "5e", "9c", "bc", "cc", "dc")),
        link_layer="Ethernet",
        driver="570.158.01",
        cuda="12.8",
        open_module=True,
        fabric_manager=True,
        os=UBUNTU_22,
        kernel="6.8.0-60-generic",
        nvme=6,
        storage="md",
    ),
    Kind(
        name="b200-8-ndr",
        weight=1.5,
        board=products.SUPERMICRO_HGX,
        gpu=products.B200,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("17", "3d", "60", "70", "98", "bb", "dd", "ed")),
        nvswitches=(),
        hcas=tuple(f"0000:{bus}:00.0" for bus in ("18", "3e", "61", "71", "99", "bc", "de", "ee")),
        driver="580.95.05",
        cuda="13.0",
        open_module=True,
        fabric_manager=True,
        os=UBUNTU_22,
        kernel="6.8.0-60-generic",
        nvme=6,
        storage="md",
    ),
    Kind(
        name="a100-8-hdr",
        weight=3,
        board=products.DGX_A100,
        gpu=products.A100,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")),
        nvswitches=tuple(f"0000:{bus}:00.0" for bus in ("c4", "c5", "c6", "c7", "c8", "c9")),
        nvswitch_id=0x1AF1,
        hcas=tuple(f"0000:{bus}:00.0" for bus in ("0c", "12", "4b", "54", "8d", "94", "ba", "cc")),
        hca="CX6",
        driver="550.127.08",
        cuda="12.4",
        fabric_manager=True,
        os=UBUNTU_20,
        kernel="5.4.0-200-generic",
        nvme=4,
        storage="md",
        time_daemon="ntpd",
    ),
    Kind(
        name="a100-4-mig",
        weight=1.5,
        board=products.LENOVO_EPYC,
        gpu=products.A100,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("01", "41", "81", "c1")),
        driver="550.127.08",
        cuda="12.4",
        mig=True,
        os=UBUNTU_22,
        kernel="5.15.0-124-generic",
        sata=(products.SATA_INTEL, products.SATA_INTEL),
        time_daemon="timesyncd",
    ),
    Kind(
        name="v100-8-edr",
        weight=1,
        board=products.DELL_R750XA,
        gpu=products.V100,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("1a", "1c", "1d", "1e", "3d", "3f", "40", "41")),
        hcas=("0000:18:00.0", "0000:5e:00.0"),
        hca="CX5",
        driver="525.147.05",
        cuda="12.0",
        os=ROCKY_9,
        kernel="5.14.0-427.el9.x86_64",
        sata=(products.SATA_INTEL, products.SATA_SEAGATE, products.SATA_SEAGATE),
        dmesg_style="ctime",
    ),
    Kind(
        name="l40s-8",
        weight=2,
        board=products.LENOVO_EPYC,
        gpu=products.L40S,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("01", "11", "41", "61", "81", "a1", "c1", "e1")),
        driver="570.158.01",
        cuda="12.8",
        os=UBUNTU_22,
        kernel="6.8.0-60-generic",
        bond=True,
        docker="28.0.1",
    ),
    Kind(
        name="a10-4",
        weight=1.5,
        board=products.DELL_R750XA,
        gpu=products.A10,
        gpus=tuple(f"0000:{bus}:00.0" for bus in ("17", "65", "ca", "e3")),
        driver="515.105.01",
        cuda="11.7",
        os=UBUNTU_20,
        kernel="5.4.0-200-generic",
        sata=(products.SATA_INTEL,),
        nvme=1,
        time_daemon="timesyncd",
        governor=None,
    ),
    Kind(
        name="cpu-intel",
        weight=1,
        board=products.DELL_R750XA,
        os=DEBIAN_12,
        kernel="6.1.0-25-amd64",
        sata=(products.SATA_INTEL, products.SATA_INTEL),
        nvme=0,
    ),
    Kind(
        name="storage-amd",
        weight=1,
        board=products.LENOVO_EPYC,
        hcas=("0000:41:00.0",),
        hca="CX6",
        os=ROCKY_9,
        kernel="5.14.0-427.el9.x86_64",
        sata=(products.SATA_INTEL, products.SATA_SEAGATE, products.SATA_SEAGATE, products.SATA_SEAGATE),
        nvme=12,
        storage="zfs",
        shared="",
        bond=True,
        docker="",
    ),
)


def kind_named(name: str) -> Kind | None:
    """The kind of that name, if there is one."""
    return next((kind for kind in KINDS if kind.name == name), None)


def build(kind: Kind, name: str, rng: Random, *, now: float) -> Machine:
    """A new host of a kind, just booted: no past yet.

    Args:
        kind: What it is made of.
        name: Its name.
        rng: Draws serial numbers, vendors and places.
        now: True time, seconds since the epoch.
    """
    cpu = build_cpu(kind.board, kind.governor)
    drives = build_drives(kind.nvme, kind.nvme_models, kind.sata, rng)
    machine = Machine(
        name=name,
        kind=kind.name,
        rng=rng,
        log=KernelLog(),
        cpu=cpu,
        boot_id=_uuid(rng),
        boot_at=now,
        now=now,
        vendor=kind.board.vendor,
        product=kind.board.product,
        serial=f"{rng.randrange(36**7):07d}"[:7].upper(),
        system_uuid=_uuid(rng),
        bios_vendor=kind.board.bios_vendor,
        bios_version=kind.board.bios_version,
        bios_date=kind.board.bios_date,
        kernel=kind.kernel,
        os_release=kind.os,
        time=TimeSync(daemon=kind.time_daemon, server=f"10.0.{rng.randrange(4)}.{rng.randrange(2, 6)}"),
        containers=Containers(
            docker_version=kind.docker,
            containerd_version=kind.containerd,
            docker_installed=bool(kind.docker),
            docker_running=bool(kind.docker),
            nvidia_runtime=kind.gpu is not None,
        ),
        utc_offset_h=rng.choices((0, 1, 2, -5, -8, 9), (16, 1, 1, 1, 1, 1))[0],
        dmesg_style=kind.dmesg_style,
        gpus=build_gpus(kind.gpu, kind.gpus, rng) if kind.gpu else [],
        nvswitches=build_switches(kind.nvswitches, kind.nvswitch_id),
        hcas=build_hcas(kind.hcas, kind.hca, kind.link_layer, cpu.nodes, rng),
        drives=drives,
        dimms=build_dimms(kind.board, rng),
        driver=kind.driver,
        cuda=kind.cuda,
        open_module=kind.open_module,
        inlet_c=rng.uniform(19.0, 26.0),
        bmc_offset_s=rng.choice((0.0, 0.0, 0.0, rng.uniform(-400, 400))),
    )
    _configure(machine, kind, rng)
    return machine


def _configure(machine: Machine, kind: Kind, rng: Random) -> None:
    if kind.mig:
        for gpu in machine.gpus:
            gpu.mig_current = gpu.mig_pending = True
    if kind.fabric_manager:
        for gpu in machine.gpus:
            gpu.fabric_state, gpu.fabric_status = "Completed", "Success"
        machine.fabric = {"Result": "success", "NRestarts": "0", "ActiveState": "active", "SubState": "running"}
    machine.nics = build_nics(machine.hcas, rng, bond=kind.bond, docker=bool(kind.docker))
    _store(machine, kind)
    machine.file_systems = build_file_systems(machine, kind.storage, kind.shared, rng)
    machine.parameters = kernel_parameters(machine)
    machine.modules = module_names(machine)
    machine.sensors = build_sensors(kind.board, machine.inlet_c)
    if kind.board.product.startswith("SYS-821") and rng.random() < 0.1:
        machine.dmesg_style = "ctime"


def _store(machine: Machine, kind: Kind) -> None:
    """Put the data drives together as the kind has them."""
    data = [drive for drive in machine.drives if drive.protocol == "NVMe"]
    if kind.storage == "zfs":
        machine.pools = [Pool(name="tank", group="raidz2-0", devices=[drive.device[5:] + "n1" for drive in data])]
    if kind.storage == "md":
        pairs = zip(data[0::2], data[1::2], strict=False)
        machine.arrays = [
            Array(name=f"md{index}", members=[f"{left.device[5:]}n1", f"{right.device[5:]}n1"])
            for index, (left, right) in enumerate(pairs)
        ]


def _uuid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
