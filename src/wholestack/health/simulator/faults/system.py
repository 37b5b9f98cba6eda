"""Faults of the operating system, its services, its clock and its processes."""

from collections.abc import Callable

from wholestack.health.simulator.faults.fault import HOUR_S, Draw, Fault, fault, has_gpus, repeat_line
from wholestack.health.simulator.machine import Machine, Process


def _parameter(path: str, *values: str) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        machine.parameters[path] = draw.rng.choice(values)
        return ()

    return inject


def _command_line(machine: Machine, draw: Draw) -> tuple[str, ...]:
    path = "/proc/cmdline"
    machine.parameters[path] = machine.parameters[path].replace("iommu=pt ", "")
    return ()


def _kernel(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """One host was booted into another kernel than its like."""
    old = machine.kernel
    parts = machine.kernel.split("-", 1)
    machine.kernel = f"{parts[0]}-{'101' + parts[1][parts[1].find('-') :] if '-' in parts[1] else 'old'}"
    machine.parameters["/proc/cmdline"] = machine.parameters["/proc/cmdline"].replace(old, machine.kernel)
    return ()


def _bios(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.bios_version = f"{machine.bios_version.split('.', maxsplit=1)[0]}.0.1"
    machine.bios_date = "01/09/2023"
    return ()


def _unsynchronised(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.time.synchronised = False
    machine.time.offset_s = draw.between(0.01, 2)
    machine.clock_error_s = machine.time.offset_s
    return ()


def _time_daemon_dead(machine: Machine, draw: Draw) -> tuple[str, ...]:
    unit = {"chrony": "chrony.service", "timesyncd": "systemd-timesyncd.service", "ntpd": "ntp.service"}
    machine.time.running = False
    machine.time.synchronised = False
    machine.failed_units.append((unit[machine.time.daemon], "NTP client/server"))
    return ()


def _offset(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The daemon runs and the clock is off all the same."""
    machine.time.offset_s = draw.rng.choice((-1, 1)) * draw.between(0.6, 30)
    machine.clock_error_s = machine.time.offset_s
    machine.time.synchronised = machine.time.daemon != "ntpd"

    return ()


def _clock_jump(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The clock went forward or back by hours, the daemon says that all is well with a source that is wrong too."""
    machine.clock_error_s = draw.rng.choice((-1, 1)) * draw.between(2, 90 * 24) * HOUR_S
    return ()


def _docker_dead(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.containers.docker_running = False
    machine.processes = [each for each in machine.processes if each.command != "dockerd"]
    machine.failed_units.append(("docker.service", "Docker Application Container Engine"))
    return ()


def _containerd_dead(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.containers.containerd_running = False
    machine.processes = [each for each in machine.processes if each.command != "containerd"]
    machine.failed_units.append(("containerd.service", "containerd container runtime"))
    return ()


def _no_runtime(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.containers.nvidia_runtime = False
    return ()


def _storage_driver(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.containers.storage_driver = draw.rng.choice(("vfs", "devicemapper"))
    return ()


def _docker_version(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.containers.docker_version = "20.10.21"
    return ()


def _unit_failed(machine: Machine, draw: Draw) -> tuple[str, ...]:
    unit, text = draw.rng.choice(
        (
            ("nvidia-persistenced.service", "NVIDIA Persistence Daemon"),
            ("slurmd.service", "Slurm node daemon"),
            ("prometheus-node-exporter.service", "Prometheus exporter for machine metrics"),
            ("openibd.service", "openibd - configure Mellanox devices"),
            ("systemd-networkd-wait-online.service", "Wait for Network to be Configured"),
            ("rasdaemon.service", "RAS daemon to log the RAS events"),
        )
    )
    machine.failed_units.append((unit, text))
    return (unit, unit.removesuffix(".service"))


def _swap(machine: Machine, draw: Draw) -> tuple[str, ...]:
    size = 8 * 1024 * 1024
    machine.swaps.append(("/swap.img", "file", size - 4, int(size * draw.between(0, 0.8))))
    return ()


def _zombies(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Children that nobody waits for."""
    parent = machine.pid()
    machine.processes.append(
        Process(pid=parent, ppid=1, state="Sl", started_s=machine.uptime_s * 0.3, user="judith", command="python3")
    )
    for _ in range(draw.whole(25, 300)):
        machine.processes.append(
            Process(
                pid=machine.pid(),
                ppid=parent,
                state="Z",
                started_s=machine.uptime_s * 0.4,
                user="judith",
                command="python3",
            )
        )
    return ()


def _blocked(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Processes in state D for a long while: what they wait for does not come."""
    command = draw.rng.choice(("nvidia-smi", "sg_inq", "python3", "umount"))
    pids = [machine.pid() for _ in range(draw.whole(2, 40))]
    start_s = max(1.0, machine.uptime_s - draw.between(2, 48) * HOUR_S)
    for pid in pids:
        machine.processes.append(Process(pid=pid, ppid=1, state="D", started_s=start_s, user="root", command=command))
    text = f"INFO: task {command}:{pids[0]} blocked for more than 120 seconds."
    repeat_line(machine, text, level="err", ago_s=draw.ago_s(), every_s=3_000)
    return ()


def _oops(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The kernel hit a bug of its own and went on, tainted."""
    ago_s = draw.ago_s()
    machine.say("BUG: kernel NULL pointer dereference, address: 0000000000000048", level="alert", ago_s=ago_s)
    machine.say("Oops: 0000 [#1] PREEMPT SMP NOPTI", level="warn", ago_s=ago_s)
    machine.say("RIP: 0010:nfs4_setup_sequence+0x2b/0x1c0 [nfsv4]", level="warn", ago_s=ago_s)
    machine.say("---[ end trace 0000000000000000 ]---", level="warn", ago_s=ago_s)
    path = "/proc/sys/kernel/tainted"
    machine.parameters[path] = str(int(machine.parameters[path]) | 128)
    return ()


def _old_kernel(machine: Machine) -> bool:
    return "-" in machine.kernel and machine.os_release["ID"] == "ubuntu"


def _dockered(machine: Machine) -> bool:
    return machine.containers.docker_installed and machine.containers.docker_running


def _gpu_containers(machine: Machine) -> bool:
    return _dockered(machine) and has_gpus(machine)


def _passthrough(machine: Machine) -> bool:
    return "iommu=pt " in machine.parameters["/proc/cmdline"]


SYSCTL = "Linux, admin-guide/sysctl"

FAULTS: tuple[Fault, ...] = (
    fault("numa_balancing_on", "host", SYSCTL, _parameter("/proc/sys/kernel/numa_balancing", "1"), "cluster team",
          applies=has_gpus),
    fault("zone_reclaim_on", "host", SYSCTL, _parameter("/proc/sys/vm/zone_reclaim_mode", "1", "3"), "cluster team"),
    fault("huge_pages_drift", "host", "Linux, admin-guide/mm/transhuge",
          _parameter("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"), "cluster team"),
    fault("overcommit_drift", "host", SYSCTL, _parameter("/proc/sys/vm/overcommit_memory", "2"), "cluster team"),
    fault("command_line_drift", "host", "Linux, admin-guide/kernel-parameters", _command_line, "cluster team",
          applies=_passthrough),
    fault("kernel_drift", "host", "uname(1)", _kernel, "cluster team", applies=_old_kernel),
    fault("bios_drift", "host", "SMBIOS specification, type 0; dmidecode(8)", _bios, "cluster team", "vendor",
          "data centre"),
    fault("kernel_oops", "host", "Linux, admin-guide/bug-hunting and tainted-kernels", _oops, "cluster team"),
    fault("clock_not_synchronised", "clock", "chronyc(1), timedatectl(1), ntpq", _unsynchronised, "cluster team"),
    fault("time_daemon_dead", "clock", "chronyc(1): 506 Cannot talk to daemon", _time_daemon_dead, "cluster team"),
    fault("clock_offset", "clock", "chronyc(1), timedatectl(1), ntpq", _offset, "cluster team"),
    fault("clock_jump", "clock", "date(1): the clock of the host against that of the observer", _clock_jump,
          "cluster team"),
    fault("docker_dead", "service", "Docker, docker info without a daemon", _docker_dead, "cluster team",
          applies=_dockered),
    fault("containerd_dead", "service", "containerd, ctr version without a daemon", _containerd_dead, "cluster team",
          applies=_dockered),
    fault("docker_gpu_runtime_missing", "service", "Docker Engine API, GET /info; NVIDIA Container Toolkit",
          _no_runtime, "cluster team", applies=_gpu_containers),
    fault("docker_storage_driver", "service", "Docker Engine API, GET /info", _storage_driver, "cluster team",
          applies=_dockered),
    fault("docker_version_drift", "service", "Docker Engine API, GET /info", _docker_version, "cluster team",
          applies=_dockered),
    fault("unit_failed", "service", "systemctl(1); recorded systemctl (kellyjonbrazil/jc)", _unit_failed,
          "cluster team"),
    fault("swap_on", "host", "proc(5), /proc/swaps", _swap, "cluster team"),
    fault("zombies", "process", "ps(1)", _zombies, "cluster team", "job owner"),
    fault("processes_blocked", "process", "ps(1); Linux, hung task detector", _blocked, "cluster team", "vendor",
          "data centre"),
)  # fmt: skip
