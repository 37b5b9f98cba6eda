"""Time passing on a simulated host: jobs come and go, counters advance, lines are logged.

Rates are per hour of the host's life. Traffic is that of a data-parallel job at the load of the moment.
"""

from random import Random

from wholestack.health.simulator.boot import DAY_S, boot_messages, noise
from wholestack.health.simulator.chance import events, log_uniform
from wholestack.health.simulator.hardware import Gpu, GpuProcess, Hca
from wholestack.health.simulator.machine import FileSystem, Job, Machine, Process

REBOOT_EVERY_S = 60 * DAY_S
USERS = ("amara", "bdavis", "chen", "dmitri", "elif", "fatou", "goto", "hannes")


IDLE_SHARE = 0.65
"""Of the hosts without a job, those that have none ten minutes later either."""


def advance(machine: Machine, seconds: float) -> None:
    """Let time pass."""
    rng, hours = machine.rng, seconds / 3600
    machine.now += seconds
    for what in list(machine.ongoing):
        count = events(rng, seconds / what.every_s)
        if count:
            what.act(machine, count)
    if not machine.broken and events(rng, seconds / REBOOT_EVERY_S):
        reboot(machine, rng)
    _jobs(machine, rng, seconds)
    _counters(machine, rng, hours)
    _lines(machine, rng, seconds)
    machine.time.offset_s = 0.8 * machine.time.offset_s + rng.gauss(0, 2e-5) if machine.time.synchronised else (
        machine.time.offset_s + 2e-5 * seconds * rng.random()
    )  # fmt: skip


def reboot(machine: Machine, rng: Random) -> None:
    """Maintenance: another boot id, an empty log, counters at zero."""
    end_job(machine)
    machine.boot_at = machine.now - rng.uniform(120, 400)
    digits = f"{rng.getrandbits(128):032x}"
    machine.boot_id = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
    machine.log.clear()
    machine.log.extend(boot_messages(machine))
    machine.sel.append((machine.boot_at - 60, "System Boot Initiated", "Initiated by warm reset", "Asserted"))
    machine.processes.clear()
    start_daemons(machine)
    for gpu in machine.gpus:
        gpu.volatile = dict.fromkeys(gpu.volatile, 0)
        gpu.pcie_replays = 0
        for link in gpu.links:
            link.replay = link.recovery = link.crc = 0
    for hca in machine.hcas:
        hca.port.counters = dict.fromkeys(hca.port.counters, 0)
        hca.port.hw_counters = dict.fromkeys(hca.port.hw_counters, 0) | {"lifespan": 12}
    for nic in machine.nics:
        nic.statistics = dict.fromkeys(nic.statistics, 0)
        nic.carrier_changes = min(nic.carrier_changes, 2)
    for dimm in machine.dimms:
        dimm.corrected = 0
    machine.cpu.package_throttles = dict.fromkeys(machine.cpu.package_throttles, 0)
    machine.version += 1


def start_daemons(machine: Machine) -> None:
    """What runs on every host."""
    daemons = [("systemd", "root"), ("kthreadd", "root"), ("rcu_sched", "root"), ("kworker/0:1H", "root"),
               ("systemd-journal", "root"), ("sshd", "root"), ("dbus-daemon", "messagebus"), ("rsyslogd", "syslog"),
               ("cron", "root"), ("rasdaemon", "root"), ("node_exporter", "nobody"), ("slurmd", "root")]  # fmt: skip
    if machine.containers.docker_running:
        daemons += [("dockerd", "root"), ("containerd", "root")]
    if machine.driver:
        daemons += [("nvidia-persiste", "nvidia-persistenced"), ("nv-hostengine", "root"), ("irq/207-nvidia", "root")]
    if machine.fabric:
        daemons.append(("nv-fabricmanage", "root"))
    for index, (command, user) in enumerate(daemons):
        pid = 1 if index == 0 else 2 if index == 1 else 300 + 173 * index
        state = "Ss" if index == 0 else "I" if command.startswith(("kworker", "rcu")) else "S" if index < 5 else "Ssl"
        machine.processes.append(
            Process(pid=pid, ppid=0 if pid <= 2 else 1, state=state, started_s=2.0 + index, user=user, command=command)
        )


def _jobs(machine: Machine, rng: Random, seconds: float) -> None:
    if not machine.gpus or not machine.takes_jobs:
        return
    job = machine.job
    if job and machine.uptime_s >= job.ends_s:
        end_job(machine)
    elif not job and rng.random() < 1 - IDLE_SHARE ** (seconds / 600):
        start_job(machine, rng)


def start_job(machine: Machine, rng: Random, *, already_s: float = 0.0) -> None:
    """A job on all GPUs, one process each."""
    start_s = max(30.0, machine.uptime_s - already_s)
    parent = machine.pid()
    user, command = rng.choice(USERS), rng.choice(("python3", "python", "pt_main_thread"))
    job = Job(
        user=user,
        command=command,
        pids=[],
        parent=parent,
        started_s=start_s,
        ends_s=machine.uptime_s + log_uniform(rng, 1_800, 5 * DAY_S),
        intensity=rng.uniform(0.55, 1.0),
    )
    machine.processes.append(
        Process(pid=parent, ppid=1, state="Ssl", started_s=start_s, user=user, command="slurmstepd")
    )
    for gpu in machine.seen_gpus():
        pid = machine.pid()
        job.pids.append(pid)
        used = int(gpu.model.memory_mib * (0.9 if not gpu.mig_current else 0.2) * rng.uniform(0.6, 1.0))
        gpu.processes.append(GpuProcess(pid=pid, name=f"/usr/bin/{command}", used_mib=used))
        machine.processes.append(
            Process(pid=pid, ppid=parent, state="Rl", started_s=start_s + 9, user=user, command=command)
        )
    machine.job = job


def end_job(machine: Machine) -> None:
    """The job's processes go, and with them what they held."""
    job = machine.job
    if not job:
        return
    gone = {*job.pids, job.parent}
    machine.processes = [each for each in machine.processes if each.pid not in gone]
    for gpu in machine.gpus:
        gpu.processes = [each for each in gpu.processes if each.pid not in gone]
    machine.job = None


def make_idle(machine: Machine) -> None:
    """Drain it: the job that runs there is over, and no other begins."""
    end_job(machine)
    machine.takes_jobs = False


def _counters(machine: Machine, rng: Random, hours: float) -> None:
    for hca in machine.hcas:
        _traffic(hca, rng, machine.load, hours)
    for nic in machine.nics:
        if nic.pci and nic.arp_type == 1:
            nic.statistics["rx_dropped"] += events(rng, hours * 90)
    for drive in machine.drives:
        drive.units_written += int(hours * (800 + 9_000 * machine.load))
        drive.units_read += int(hours * (500 + 20_000 * machine.load))
        drive.power_on_hours += _whole_hours(machine.now, hours)
    for gpu in machine.gpus:
        if events(rng, hours / (24 * 60)):
            name = rng.choice(("sram_c", "dram_c", "dram_c"))
            gpu.volatile[name] += 1
            gpu.aggregate[name] += 1
        if events(rng, hours / (24 * 40)):
            gpu.pcie_replays += 1
        if gpu.links and events(rng, hours / (24 * 60)):
            rng.choice(gpu.links).replay += 1
    if machine.dimms and events(rng, hours * len(machine.dimms) / (24 * 900)):
        corrected_memory(machine, rng)
    for package in machine.cpu.package_throttles:
        machine.cpu.package_throttles[package] += events(rng, hours * machine.load / (24 * 6))
    for system in machine.file_systems:
        if system.busy_kib_per_s:
            _fill(system, hours, rng)


def _whole_hours(now: float, hours: float) -> int:
    return int(now // 3600) - int((now - hours * 3600) // 3600)


def _fill(system: FileSystem, hours: float, rng: Random) -> None:
    """Files come; a cleaner takes what is over four fifths."""
    system.used_kib += int(hours * 3600 * system.busy_kib_per_s * rng.random() * 20)
    if system.used_kib > 0.8 * system.size_kib and not system.crowded:
        system.used_kib = int(system.size_kib * rng.uniform(0.3, 0.6))


def _traffic(hca: Hca, rng: Random, load: float, hours: float) -> None:
    counters, extra = hca.port.counters, hca.port.hw_counters
    if hca.port.state != "4: ACTIVE":
        return
    packets = int((2_000 + 9e8 * load) * hours)
    for way in ("xmit", "rcv"):
        counters[f"port_{way}_packets"] += packets
        counters[f"port_{way}_data"] += packets * 640
        counters[f"unicast_{way}_packets"] += packets
    counters["port_xmit_wait"] += int(packets * 0.007)
    counters["symbol_error"] += events(rng, hours / (24 * 20))
    counters["port_rcv_switch_relay_errors"] += events(rng, hours / (24 * 15))
    extra["rx_write_requests"] += packets // 90
    extra["rx_read_requests"] += packets // 9_000
    if hca.port.link_layer == "Ethernet":
        extra["rp_cnp_handled"] += int(packets * 2e-6)
        extra["np_cnp_sent"] += int(packets * 2e-6)
        extra["np_ecn_marked_roce_packets"] += int(packets * 4e-6)
        extra["local_ack_timeout_err"] += events(rng, hours / 30)
        extra["out_of_sequence"] += events(rng, hours / 6)


def _lines(machine: Machine, rng: Random, seconds: float) -> None:
    for _ in range(events(rng, seconds / DAY_S * 14)):
        level, text = noise(machine, rng)
        machine.say(text, level=level, ago_s=rng.uniform(0, seconds))
    if machine.job and events(rng, seconds / (12 * DAY_S)):
        crashed_job(machine, rng, ago_s=rng.uniform(0, min(seconds, machine.uptime_s - machine.job.started_s)))
        end_job(machine)
    if events(rng, seconds / (20 * DAY_S)):
        out_of_memory(machine, rng, ago_s=rng.uniform(0, seconds))


def crashed_job(machine: Machine, rng: Random, *, ago_s: float) -> None:
    """A job that read where it must not: Xid 31 or 13, then 45 or 43 for its channels."""
    gpu = rng.choice(machine.gpus)
    pid = rng.randint(20_000, 4_000_000)
    who = f"NVRM: Xid (PCI:{gpu.kernel_address})"
    if rng.random() < 0.6:
        machine.say(
            f"{who}: 31, pid={pid}, name=python3, Ch 0000000{rng.randrange(8, 16):x}, intr 00000000. MMU Fault: "
            f"ENGINE GRAPHICS GPCCLIENT_T1_{rng.randrange(8)} faulted @ 0x7f{rng.getrandbits(20):05x}_"
            f"{rng.getrandbits(32):08x}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
            level="warn",
            ago_s=ago_s,
        )
    else:
        machine.say(
            f"{who}: 13, pid={pid}, name=python3, Graphics SM Warp Exception on (GPC {rng.randrange(8)}, TPC "
            f"{rng.randrange(9)}, SM {rng.randrange(2)}): Out Of Range Address",
            level="warn",
            ago_s=ago_s,
        )
        machine.say(f"{who}: 43, pid={pid}, name=python3, Ch 00000008", level="warn", ago_s=ago_s)


def out_of_memory(machine: Machine, rng: Random, *, ago_s: float) -> None:
    """The kernel ends a process of a job that took more memory than its group may."""
    pid, user = rng.randint(20_000, 4_000_000), rng.randint(1_000, 9_000)
    machine.say(f"python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj={rng.randrange(900)}",
                level="warn", ago_s=ago_s)  # fmt: skip
    machine.say(
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0-1,oom_memcg=/slurm/uid_{user}"
        f"/job_{pid},task=python3,pid={pid},uid={user}",
        ago_s=ago_s,
    )
    machine.say(
        f"Memory cgroup out of memory: Killed process {pid} (python3) total-vm:{rng.randint(9, 900)}123456kB, "
        f"anon-rss:201234567kB, file-rss:65536kB, shmem-rss:0kB, UID:{user} pgtables:402344kB oom_score_adj:0",
        level="err",
        ago_s=ago_s,
    )


def old_nfs_pause(machine: Machine, rng: Random, *, ago_s: float) -> None:
    """A server that was away for a minute and came back."""
    server = next((each.source.split(":")[0] for each in machine.file_systems if each.remote), None)
    if server:
        machine.say(f"nfs: server {server} not responding, still trying", level="notice", ago_s=ago_s)
        machine.say(f"nfs: server {server} OK", level="notice", ago_s=ago_s - 71)


def healed_trouble(machine: Machine, rng: Random, *, ago_s: float) -> None:
    """What broke more than a week ago and was put right without a reboot: only the lines are left."""
    if machine.gpus and rng.random() < 0.6:
        gpu = rng.choice(machine.gpus)
        head = f"NVRM: Xid (PCI:{gpu.kernel_address})"
        unknown = "pid='<unknown>', name=<unknown>"
        if gpu.model.remap_banks and rng.random() < 0.5:
            row = "Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to activate."
            machine.say(f"{head}: 63, {unknown}, {row}", level="warn", ago_s=ago_s)
            contained = "Contained: SM (0x1). RST: No, D-RST: No"
            machine.say(f"{head}: 94, {unknown}, {contained}", level="warn", ago_s=ago_s)
            gpu.remapped_uncorrectable, gpu.aggregate["dram_u"] = 1, 1
        else:
            text = f"Timeout after 6s of waiting for RPC response from GPU{gpu.index} GSP! Expected function 103"
            machine.say(f"{head}: 119, {unknown}, {text} (GSP_RM_ALLOC) (0x2081 0x4).", level="warn", ago_s=ago_s)
    elif machine.hcas:
        hca = rng.choice(machine.hcas)
        machine.say(f"mlx5_core {hca.pci}: Port: 1 Link DOWN", ago_s=ago_s)
        machine.say(f"mlx5_core {hca.pci}: Port: 1 Link ACTIVE", ago_s=ago_s - 900)
        hca.port.counters["link_downed"] += 1
    elif machine.drives:
        name = machine.drives[0].device[5:]
        machine.say(f"nvme {name}: I/O 345 QID 12 timeout, completion polled", level="warn", ago_s=ago_s)


def corrected_memory(machine: Machine, rng: Random) -> None:
    """One corrected error of one module, as the EDAC driver counts and logs it."""
    dimm = rng.choice([each for each in machine.dimms if each.present])
    dimm.corrected += 1
    page = rng.getrandbits(28)
    machine.say(
        f"EDAC MC{dimm.controller}: 1 CE memory read error on {dimm.edac_label} (channel:{dimm.channel} "
        f"slot:{dimm.slot} page:0x{page:x} offset:0x{rng.getrandbits(12):x} grain:32 syndrome:0x0)",
        level="warn",
    )


def gpu_marks(gpu: Gpu, rng: Random, *, age_h: float, uptime_h: float) -> None:
    """What a GPU of that age has behind it and keeps: aggregate counters, rows remapped long ago and since active."""
    gpu.aggregate["dram_c"] = events(rng, age_h / 2_000)
    gpu.aggregate["sram_c"] = events(rng, age_h / 20_000)
    gpu.volatile["dram_c"] = min(gpu.aggregate["dram_c"], events(rng, uptime_h / (24 * 90)))
    gpu.pcie_replays = events(rng, uptime_h / (24 * 40))
    for link in gpu.links:
        link.replay = events(rng, uptime_h / (24 * 60 * len(gpu.links)))
    if rng.random() < 0.02 and age_h > 4_000:
        if gpu.model.remap_banks:
            gpu.remapped_uncorrectable = 1
            gpu.aggregate["dram_u"] = 1
        else:
            gpu.retired_single = rng.randint(1, 2)


def hca_marks(hca: Hca, rng: Random, *, uptime_h: float) -> None:
    """Counters since boot of a port that is well; links went down once or twice when a switch was upgraded."""
    port = hca.port
    packets = int(uptime_h * 3e8 * rng.uniform(0.3, 1))
    for way in ("xmit", "rcv"):
        port.counters[f"port_{way}_packets"] = packets
        port.counters[f"unicast_{way}_packets"] = packets
        port.counters[f"port_{way}_data"] = packets * 640
    port.counters["port_xmit_wait"] = int(packets * 0.007)
    port.counters["symbol_error"] = events(rng, uptime_h / (24 * 20))
    port.counters["port_rcv_switch_relay_errors"] = events(rng, uptime_h / (24 * 15))
    if uptime_h > 24 * 30:
        port.counters["link_downed"] = rng.choice((0, 0, 0, 1, 1, 2))
    if port.link_layer == "Ethernet":
        port.hw_counters["rp_cnp_handled"] = int(packets * 2e-6)
        port.hw_counters["out_of_sequence"] = events(rng, uptime_h / 6)
        port.hw_counters["local_ack_timeout_err"] = events(rng, uptime_h / 30)
