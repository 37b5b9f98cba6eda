"""The past of a healthy host: how long it has been up, what has worn, what its logs still remember.

A healthy old machine is not a machine without a mark. Rates are those of ordinary operation, as far as public reports
give them: a corrected memory error now and then, a few symbol errors, jobs that crashed with an Xid of their own
doing, an out-of-memory kill, drives at a few per cent of their life, power events of the day of installation.
"""

from random import Random

from wholestack.health.simulator.ageing import (
    crashed_job,
    gpu_marks,
    hca_marks,
    healed_trouble,
    old_nfs_pause,
    out_of_memory,
    start_daemons,
    start_job,
)
from wholestack.health.simulator.boot import DAY_S, boot_messages, noise
from wholestack.health.simulator.chance import events, log_uniform
from wholestack.health.simulator.machine import Machine, Process


def give_past(machine: Machine, rng: Random) -> None:
    """Age a new host: set its uptime and everything that follows from it."""
    uptime_s = log_uniform(rng, 900, 300 * DAY_S)
    machine.boot_at = machine.now - uptime_s
    machine.log.extend(boot_messages(machine))
    _daily_lines(machine, rng, uptime_s)
    _wear(machine, rng, uptime_s)
    if uptime_s > 12 * DAY_S and rng.random() < 0.06:
        healed_trouble(machine, rng, ago_s=rng.uniform(8 * DAY_S, min(uptime_s * 0.95, 60 * DAY_S)))
    start_daemons(machine)
    for _ in range(rng.choice((0, 0, 0, 0, 1, 2))):
        machine.processes.append(_zombie(machine, rng))
    _bmc_events(machine, rng)
    _fabric_lines(machine, rng, uptime_s)
    for array in machine.arrays:
        array.checking_percent = rng.uniform(1, 99) if rng.random() < 0.03 else None
    machine.time.offset_s = rng.gauss(0, 4e-5)
    if machine.gpus and rng.random() < 0.7:
        start_job(machine, rng, already_s=min(uptime_s * 0.8, log_uniform(rng, 300, 4 * DAY_S)))


def _daily_lines(machine: Machine, rng: Random, uptime_s: float) -> None:
    remembered_s = min(uptime_s, 40 * DAY_S)
    lines = [
        (uptime_s - rng.uniform(0, remembered_s), *noise(machine, rng))
        for _ in range(min(400, events(rng, remembered_s / DAY_S * 14)))
    ]
    machine.log.extend(lines)
    for _ in range(events(rng, remembered_s / (12 * DAY_S)) if machine.gpus else 0):
        crashed_job(machine, rng, ago_s=rng.uniform(0, remembered_s * 0.9))
    for _ in range(events(rng, remembered_s / (20 * DAY_S))):
        out_of_memory(machine, rng, ago_s=rng.uniform(0, remembered_s * 0.9))
    if rng.random() < 0.1 and remembered_s > 4 * DAY_S:
        old_nfs_pause(machine, rng, ago_s=rng.uniform(3 * DAY_S, remembered_s * 0.9))


def _wear(machine: Machine, rng: Random, uptime_s: float) -> None:
    age_h = max(uptime_s / 3600, log_uniform(rng, 400, 30_000))
    for drive in machine.drives:
        drive.power_on_hours = int(age_h * rng.uniform(0.9, 1.0))
        drive.power_cycles = rng.randint(6, 60)
        drive.used_percent = min(45, int(age_h / 26_000 * 40 * rng.random()))
        drive.units_written = int(age_h * rng.uniform(2_000, 40_000))
        drive.units_read = int(drive.units_written * rng.uniform(0.4, 3))
        drive.unsafe_shutdowns = rng.randint(0, 30)
        drive.error_entries = rng.choice((0, 0, rng.randint(1, 60)))
        drive.temperature_c = round(machine.inlet_c + rng.uniform(8, 20))
        if drive.protocol == "NVMe" and age_h > 15_000 and rng.random() < 0.1:
            drive.spare = 99
    for gpu in machine.gpus:
        gpu_marks(gpu, rng, age_h=age_h, uptime_h=uptime_s / 3600)
    for hca in machine.hcas:
        hca_marks(hca, rng, uptime_h=uptime_s / 3600)
    for nic in machine.nics:
        nic.statistics["rx_dropped"] = int(uptime_s / 40) if nic.pci and nic.arp_type == 1 else 0
        nic.carrier_changes += rng.choice((0, 0, 2, 4)) if nic.pci else 0
    for dimm in machine.dimms:
        dimm.corrected = events(rng, uptime_s / (900 * DAY_S))
    for package in range(machine.cpu.sockets):
        machine.cpu.package_throttles[package] = events(rng, uptime_s / (6 * DAY_S))


def _zombie(machine: Machine, rng: Random) -> Process:
    """A child that somebody forgot: one or two are on many a host."""
    started_s = machine.uptime_s * rng.random()
    return Process(pid=machine.pid(), ppid=1338, state="Z", started_s=started_s, user="root", command="sh")


def _bmc_events(machine: Machine, rng: Random) -> None:
    installed = machine.now - rng.uniform(310, 900) * DAY_S
    machine.sel = [(installed, "Event Logging Disabled SEL", "Log area reset/cleared", "Asserted")]
    if rng.random() < 0.4:
        name = next(each.name for each in machine.sensors if each.reading == "Presence detected")
        machine.sel.append((installed + 900, f"Power Supply {name}", "Power Supply AC lost", "Asserted"))
        machine.sel.append((installed + 1_260, f"Power Supply {name}", "Power Supply AC lost", "Deasserted"))
    if rng.random() < 0.03:
        dimm = rng.choice(machine.dimms)  # replaced since; nobody cleared the log
        machine.sel.append((installed + 30 * DAY_S, f"Memory {dimm.locator}", "Correctable ECC", "Asserted"))
    if rng.random() < 0.3:
        machine.sel.append(
            (installed + 40 * DAY_S, "Physical Security Intrusion", "General Chassis intrusion", "Asserted")
        )
        machine.sel.append((installed + 40 * DAY_S + 900, "Physical Security Intrusion", "General Chassis intrusion",
                            "Deasserted"))  # fmt: skip
    machine.sel.append((machine.boot_at - 60, "System Boot Initiated", "Initiated by power up", "Asserted"))


def _fabric_lines(machine: Machine, rng: Random, uptime_s: float) -> None:
    if machine.fabric is None:
        return
    start = machine.boot_at + 41.0
    log = [
        (start, "INFO", f"Fabric Manager version {machine.driver} is running with the following configuration options"),
        (start + 1, "INFO", "Logging level = 4"),
        (start + 6, "INFO", "Connected to 1 node."),
        (start + 20, "INFO", "Getting fabric node FM version"),
        (start + 31, "INFO", "Successfully configured all the available NVSwitches to route GPU NVLink traffic. "
         "NVLink Peer-to-Peer support will be enabled once the GPUs are successfully registered with the NVLink "
         "fabric."),
    ]  # fmt: skip
    for _ in range(min(60, events(rng, uptime_s / DAY_S))):
        at_s = machine.now - rng.uniform(0, min(uptime_s * 0.95, 60 * DAY_S))
        group = rng.randrange(4)
        log.append((at_s, "INFO", f"multicast group {group} is allocated."))
        log.append((at_s + 9, "INFO", f"multicast group {group} is freed."))
    machine.fabric_log = sorted(log)
