"""One simulated host: its parts, its operating system, its clock and its kernel log.

Times are seconds: ``now`` is the true time since the epoch, what the host believes is :attr:`Machine.clock`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from wholestack.health.simulator.hardware import Cpu, Dimm, Drive, Gpu, Hca, Nic, NvSwitch, Sensor
from wholestack.health.simulator.kernel_log import KernelLog


@dataclass(slots=True, kw_only=True)
class FileSystem:
    """One mounted file system."""

    source: str
    type: str
    mount: str
    options: str = "rw,relatime"
    size_kib: int = 0
    used_kib: int = 0
    inodes: int = 0
    inodes_used: int = 0
    mounted: bool = True
    in_fstab: bool = True
    hung: bool = False
    busy_kib_per_s: float = 0.0
    crowded: bool = False
    """Whether nobody cleans it up."""

    @property
    def remote(self) -> bool:
        """Whether it comes over the network."""
        return self.type.startswith("nfs") or self.type == "lustre"


@dataclass(slots=True, kw_only=True)
class Pool:
    """A ZFS pool with one RAID-Z or mirror group."""

    name: str
    group: str
    devices: list[str]
    states: dict[str, str] = field(default_factory=dict)
    """Devices that are not ONLINE."""
    errors: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Read, write and checksum errors of a device."""


@dataclass(slots=True, kw_only=True)
class Array:
    """A Linux md array (RAID 1)."""

    name: str
    members: list[str]
    failed: set[str] = field(default_factory=set)
    blocks: int = 1_875_241_984
    checking_percent: float | None = None


@dataclass(slots=True, kw_only=True)
class TimeSync:
    """How the host keeps its time."""

    daemon: str
    """``chrony``, ``timesyncd`` or ``ntpd``."""
    server: str
    stratum: int = 3
    synchronised: bool = True
    running: bool = True
    offset_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Containers:
    """Docker and containerd."""

    docker_version: str
    containerd_version: str
    docker_running: bool = True
    containerd_running: bool = True
    docker_installed: bool = True
    nvidia_runtime: bool = True
    storage_driver: str = "overlay2"
    images: int = 12
    containers: int = 0


@dataclass(slots=True, kw_only=True)
class Process:
    """A line of ``ps``."""

    pid: int
    ppid: int
    state: str
    started_s: float
    """Uptime of the host when it started."""
    user: str
    command: str


@dataclass(slots=True, kw_only=True)
class Job:
    """What the host is doing for its users; idle where there is none."""

    user: str
    command: str
    pids: list[int]
    parent: int
    started_s: float
    ends_s: float
    """Both in seconds of uptime."""
    intensity: float


@dataclass(slots=True, kw_only=True)
class Ongoing:
    """Something that happens again and again at random, once in ``every_s`` on average."""

    every_s: float
    act: Callable[["Machine", int], None]
    """Gets how often it happened in the step."""


@dataclass(slots=True, kw_only=True)
class ToolEffect:
    """What becomes of the answer of one tool."""

    kind: str
    """``hung``, ``timed_out``, ``endless``, ``truncated``, ``garbled``, ``locale``, ``empty``, ``crashed``."""
    amount: float = 0.5
    """How much of it, from 0 to 1."""


@dataclass(slots=True, kw_only=True)
class Machine:
    """One host."""

    name: str
    kind: str
    rng: Random
    log: KernelLog
    cpu: Cpu
    boot_id: str
    boot_at: float
    """True time of the last boot."""
    now: float
    vendor: str
    product: str
    serial: str
    system_uuid: str
    bios_vendor: str
    bios_version: str
    bios_date: str
    kernel: str
    os_release: dict[str, str]
    time: TimeSync
    containers: Containers
    utc_offset_h: int = 0
    dmesg_style: str = "iso"
    """``iso``, ``ctime`` or ``seconds``: what the ``dmesg`` of the host can print."""
    clock_error_s: float = 0.0
    """What the host's clock is ahead of the true time."""
    root: bool = True
    gpus: list[Gpu] = field(default_factory=list)
    nvswitches: list[NvSwitch] = field(default_factory=list)
    hcas: list[Hca] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    dimms: list[Dimm] = field(default_factory=list)
    driver: str = ""
    """Version of the loaded NVIDIA module; empty without one."""
    cuda: str = ""
    open_module: bool = False
    driver_answers: str = ""
    """What ``nvidia-smi`` says instead of an answer, if it does."""
    modules: list[str] = field(default_factory=list)
    fabric: dict[str, str] | None = None
    """State of the fabric manager as systemd has it; ``None``: not installed."""
    fabric_log: list[tuple[float, str, str]] = field(default_factory=list)
    """True time, level, text."""
    file_systems: list[FileSystem] = field(default_factory=list)
    pools: list[Pool] | None = None
    arrays: list[Array] = field(default_factory=list)
    swaps: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Name, type, size and use in KiB."""
    failed_units: list[tuple[str, str]] = field(default_factory=list)
    """Unit and description."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Kernel parameters by path."""
    processes: list[Process] = field(default_factory=list)
    job: Job | None = None
    takes_jobs: bool = True
    edac: bool = True
    bmc: bool = True
    bmc_offset_s: float = 0.0
    sel: list[tuple[float, str, str, str]] = field(default_factory=list)
    """True time, sensor, event, direction."""
    sensors: list[Sensor] = field(default_factory=list)
    inlet_c: float = 23.0
    ongoing: list[Ongoing] = field(default_factory=list)
    effects: dict[str, ToolEffect] = field(default_factory=dict)
    """By name of the tool."""
    slow: dict[str, float] = field(default_factory=dict)
    """Seconds that a tool takes longer than usual."""
    trouble: str = ""
    """Why the host cannot be reached or does not answer in full, in the words of ``remote.batch.Trouble``."""
    installations: int = 1
    """How often an operating system was installed."""
    broken: bool = False
    """Whether a fault was injected: then nobody reboots it."""
    version: int = 0
    """Grows with every change that is not the mere passing of time: outputs kept from before are stale."""
    next_pid: int = 20_000

    @property
    def uptime_s(self) -> float:
        """Seconds since boot."""
        return self.now - self.boot_at

    @property
    def clock(self) -> float:
        """What the host believes the time is."""
        return self.now + self.clock_error_s

    @property
    def load(self) -> float:
        """How busy the GPUs are, 0 to 1."""
        return self.job.intensity if self.job else 0.0

    def say(self, text: str, *, level: str = "info", ago_s: float = 0.0) -> None:
        """A line in the kernel log, ``ago_s`` seconds before now but not before boot."""
        self.log.add(max(self.uptime_s - ago_s, 1.0), level, text)

    def pid(self) -> int:
        """A process id not given before."""
        self.next_pid += self.rng.randint(1, 90)
        return self.next_pid

    def seen_gpus(self) -> list[Gpu]:
        """GPUs that the driver has."""
        return [gpu for gpu in self.gpus if gpu.listed and gpu.enumerated]
