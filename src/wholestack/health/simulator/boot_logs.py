"""Boot logs of simulated hosts as they vary from boot to boot, healthy or with planted faults whose lines are known.

The words are those of :mod:`wholestack.health.simulator.boot`, with more of what Linux says; around them: the main
thread in its fixed order, drivers that start side by side with times of their own, lines that not every boot has,
addresses, times and amounts that differ, and now and then a harmless line that hardly anybody has seen.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from wholestack.health.simulator import boot
from wholestack.health.simulator.machine import Machine

FaultKind = Literal["missing", "unknown", "value", "order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message."""

    at_s: float
    text: str
    thread: str
    """Messages of one thread always come in their order."""
    always: bool = True
    """Whether every boot has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fault, and the lines that are there, gone or elsewhere because of it."""

    kind: FaultKind
    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BootLog:
    """One boot."""

    said: tuple[Said, ...]
    faults: tuple[Planted, ...] = ()
    booted_s: float = 0.0
    """Seconds since the epoch."""

    def render(self, style: str = "seconds", *, host: str = "host") -> str:
        """As ``dmesg`` (``seconds``), ``dmesg -T`` (``ctime``), ``journalctl -k`` (``short``, ``short-iso``,
        ``short-monotonic``) and syslog (``kern.log``) print it."""
        return "".join(f"{_STYLES[style](self.booted_s, each.at_s, host)}{each.text}\n" for each in self.said)


_STYLES: dict[str, Callable[[float, float, str], str]] = {
    "seconds": lambda booted, at, host: f"[{at:12.6f}] ",
    "ctime": lambda booted, at, host: f"[{time.asctime(time.gmtime(booted + at))}] ",
    "short": lambda booted, at, host: f"{_syslog(booted + at)} {host} kernel: ",
    "short-iso": lambda booted, at, host: (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S+0000', time.gmtime(booted + at))} {host} kernel: "
    ),
    "short-monotonic": lambda booted, at, host: f"[{at:12.6f}] {host} kernel: ",
    "kern.log": lambda booted, at, host: f"{_syslog(booted + at)} {host} kernel: [{at:12.6f}] ",
}


def _syslog(moment: float) -> str:
    date = time.gmtime(moment)
    return f"{time.strftime('%b', date)} {date.tm_mday:2d} {time.strftime('%H:%M:%S', date)}"


_FIXED = """\
NX (Execute Disable) protection: active
e820: update [mem 0x00000000-0x00000fff] usable ==> reserved
x86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP  UC- WT
Using GB pages for direct mapping
Secure boot disabled
ACPI: Early table checksum verification disabled
ACPI: Using ACPI (MADT) for SMP configuration information
Booting paravirtualized kernel on bare hardware
random: get_random_u64 called from __kmem_cache_create with crng_init=0
Dentry cache hash table entries: 16777216 (order: 15, 134217728 bytes, linear)
Inode-cache hash table entries: 16777216 (order: 15, 134217728 bytes, linear)
mem auto-init: stack:off, heap alloc:on, heap free:off
ftrace: allocating 49562 entries in 194 pages
Dynamic Preempt: voluntary
rcu: 	RCU restricting CPUs from NR_CPUS=8192.
rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.
Console: colour dummy device 80x25
x2apic enabled
LSM: Security Framework initializing
AppArmor: AppArmor initialized
Mount-cache hash table entries: 262144 (order: 9, 2097152 bytes, linear)
Spectre V1 : Mitigation: usercopy/swapgs barriers and __user pointer sanitization
Spectre V2 : Mitigation: Enhanced / Automatic IBRS
Performance Events: PEBS fmt4+-baseline, full-width counters
smp: Bringing up secondary CPUs ...
devtmpfs: initialized
NET: Registered PF_NETLINK/PF_ROUTE protocol family
audit: initializing netlink subsys (disabled)
cpuidle: using governor menu
PCI: Using configuration type 1 for base access
HugeTLB: registered 1.00 GiB page size, pre-allocated 0 pages
ACPI: Interpreter enabled
ACPI: PM: (supports S0 S5)
iommu: Default domain type: Translated
SCSI subsystem initialized
vgaarb: loaded
clocksource: Switched to clocksource tsc-early
VFS: Disk quotas dquot_6.6.0
pnp: PnP ACPI init
NET: Registered PF_INET protocol family
TCP: Hash tables configured (established 524288 bind 65536)
Trying to unpack rootfs image as initramfs...
Initialise system trusted keyrings
Key type asymmetric registered
io scheduler mq-deadline registered
Serial: 8250/16550 driver, 32 ports, IRQ sharing enabled
Linux agpgart interface v0.103
loop: module loaded
rtc_cmos 00:00: RTC can wake from S4
NET: Registered PF_INET6 protocol family
IPI shorthand broadcast: enabled
registered taskstats version 1
Loading compiled-in X.509 certificates
Run /init as init process
""".splitlines()
_SOMETIMES = """\
hpet0: at MMIO 0xfed00000, IRQs 2, 8, 0
usb 1-14: new low-speed USB device number 5 using xhci_hcd
ACPI: video: Video Device [VGA] (multi-head: yes  rom: no  post: no)
kauditd_printk_skb: hold queue overflow
resource sanity check: requesting [mem 0x000c0000-0x000fffff], which spans more than PCI Bus 0000:00
perf: interrupt took too long, lowering kernel.perf_event_max_sample_rate
systemd-journald[612]: File /var/log/journal/system.journal corrupted or uncleanly shut down, renaming and replacing.
EXT4-fs (sda2): recovery complete
EXT4-fs (sda2): orphan cleanup on readonly fs
process '/usr/bin/fstype' started with executable stack
clocksource: timekeeping watchdog: Marking clocksource hpet as unstable
""".splitlines()
_SELDOM = """\
pcieport: AER: Corrected error message received once
thermal: invalid trip point reported by firmware
snd_hda_intel: no codecs found
nvme: missing or invalid SUBNQN field
scsi host: scan took longer than usual
i2c i2c-0: adapter quirk for slow bus applied
tpm tpm: [Firmware Bug]: TPM interrupt not working, polling instead
mei_me: unexpected reset of the management engine
""".splitlines()
_SERVICES = """\
systemd[1]: Created slice Slice /system/modprobe.
systemd[1]: Started Dispatch Password Requests to Console Directory Watch.
systemd[1]: Reached target Local Encrypted Volumes.
systemd[1]: Listening on Journal Socket.
systemd[1]: Mounting Huge Pages File System...
systemd[1]: Mounting Kernel Debug File System...
systemd[1]: Starting Load Kernel Module configfs...
systemd[1]: Starting Load Kernel Module fuse...
systemd[1]: Mounted Kernel Trace File System.
systemd[1]: Finished Create List of Static Device Nodes.
systemd[1]: Started Journal Service.
""".splitlines()
_NEW = """\
qat_dh895xcc: heartbeat check failed, restarting accelerator
dell_smbios: unable to run on this platform revision
power_meter ACPI000D: ignoring unsafe software power cap
ccp: command queue stuck after wakeup
firewire_ohci: isochronous cycle lost
ixgbe: Detected Tx Unit Hang
megaraid_sas: FW in FAULT state, resetting adapter
hfi1: SDMA engine halted
bnxt_en: Error recovery info error
efivars: duplicate variable found, skipping
sgx: EPC section failed sanitization
gpio_ich: GPIO region conflict detected
""".splitlines()
_TRACE = """\
------------[ cut here ]------------
WARNING: CPU: {cpu} PID: {pid} at drivers/net/core/queue.c:{line} queue_reset+0x{a:x}/0x2b0
Modules linked in: queue(+) dca igb
CPU: {cpu} PID: {pid} Comm: kworker/{cpu}:1 Not tainted
RIP: 0010:queue_reset+0x{a:x}/0x2b0
Call Trace:
 <TASK>
 queue_probe+0x{b:x}/0x4f0
 local_pci_probe+0x47/0xa0
 worker_thread+0x{c:x}/0x3c0
 </TASK>
---[ end trace {e:016x} ]---
"""
_NO_DRIVER = "{driver}: probe of device aborted by firmware request"


def boot_log(machine: Machine, rng: Random, *, sometimes: Sequence[float], seldom: float = 0.01) -> BootLog:
    """One healthy boot.

    Args:
        machine: Which host.
        rng: Of this boot.
        sometimes: Probability of each of the lines that not every boot of this kind of host has.
        seldom: Probability that there is a line which hardly any boot has.
    """
    booted_s = rng.uniform(1_700_000_000, 1_760_000_000)
    said = _main_thread(machine, rng, booted_s)
    loaded_s = said[-1].at_s
    for name, texts in _drivers(machine):
        said += _thread(name, texts, loaded_s + abs(rng.gauss(0.5, 0.4)), rng, gap_s=0.03)
    said += _thread("nvidia", _gpu_driver(machine), loaded_s + rng.uniform(4, 7), rng, gap_s=0.2)
    said += _thread("late", _late(machine), loaded_s + rng.uniform(12, 14), rng, gap_s=0.1)
    services = rng.sample(_SERVICES, len(_SERVICES))
    said += [_one(text, loaded_s + rng.uniform(2, 4)) for text in services]
    said.append(_one("random: crng init done", rng.uniform(0.5, loaded_s + 3)))
    chosen = [text for text, chance in zip(_SOMETIMES, sometimes, strict=False) if rng.random() < chance]
    chosen += [rng.choice(_SELDOM)] if rng.random() < seldom else []
    said += [replace(_one(text, rng.uniform(1.0, loaded_s + 10)), always=False) for text in chosen]
    return BootLog(said=tuple(sorted(said, key=lambda each: each.at_s)), booted_s=booted_s)


def sometimes_of(rng: Random) -> tuple[float, ...]:
    """How often a kind of host says each of the lines that not every boot has."""
    return tuple(rng.uniform(0.02, 0.98) for _ in _SOMETIMES)


def plant(log: BootLog, rng: Random, faults: int) -> BootLog:
    """The boot with so many faults in it, of kinds and at places that are drawn."""
    said, planted = list(log.said), []
    for way in rng.sample(_WAYS, min(faults, len(_WAYS))):
        fault = way(said, rng)
        if fault is not None:
            planted.append(fault)
    return replace(log, said=tuple(said), faults=tuple(planted))


def _one(text: str, at_s: float) -> Said:
    return Said(at_s=at_s, text=text, thread=text)


def _thread(name: str, texts: Sequence[str], start_s: float, rng: Random, *, gap_s: float) -> list[Said]:
    at_s, found = start_s, []
    for text in texts:
        at_s += gap_s * rng.lognormvariate(0, 0.8)
        found.append(Said(at_s=at_s, text=text, thread=name))
    return found


def _main_thread(machine: Machine, rng: Random, booted_s: float) -> list[Said]:
    cpu = machine.cpu
    memory_kb = sum(dimm.size_gib for dimm in machine.dimms) * 1024 * 1024
    mhz = rng.choice((2000.000, 2000.000, 2000.002, 1999.998))
    ramdisk = rng.randrange(0x30000000, 0x60000000) & ~0xFFF
    varying = [
        f"tsc: Detected {mhz:.3f} MHz processor",
        f"RAMDISK: [mem 0x{ramdisk:08x}-0x{ramdisk + 0x4A3FFFF:08x}]",
        f"setup_percpu: NR_CPUS:8192 nr_cpumask_bits:{cpu.count} nr_cpu_ids:{cpu.count} nr_node_ids:{cpu.nodes}",
        f"Memory: {memory_kb - rng.randrange(9_000_000, 9_400_000)}K/{memory_kb}K available (20480K kernel code)",
        f"smpboot: Total of {cpu.count} processors activated ({cpu.count * mhz * 2:.2f} BogoMIPS)",
        f"audit: type=2000 audit({booted_s:.3f}:1): state=initialized audit_enabled=0 res=1",
        f"rtc_cmos 00:00: setting system clock to {time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(booted_s))} UTC"
        f" ({booted_s:.0f})",
        f"Freeing unused kernel image (initmem) memory: {rng.randrange(3, 5) * 1024}K",
    ]
    early = [text for _, text in boot.early(machine)]
    middle = _FIXED[:]
    for place, text in enumerate(varying):
        middle.insert(6 * place + 6, text)
    texts = [*early, *middle, *(text for _, text in boot.devices(machine) if text.startswith("pci "))]
    at_s, found = 0.0, []
    for place, text in enumerate(texts):
        at_s += 0.0 if place < 12 else rng.uniform(0.001, 0.02)
        found.append(Said(at_s=at_s + place * 1e-6, text=text, thread="main"))
    return found


def _drivers(machine: Machine) -> list[tuple[str, list[str]]]:
    """What starts side by side: each drive and adapter, and every bus, in a thread of its own."""
    by_thread: dict[str, list[str]] = {}
    texts = [text for _, text in boot.devices(machine) if not text.startswith("pci ")]
    texts += [text for _, text in boot.drivers(machine) if text.startswith("mlx5_core")]
    for text in texts:
        name = re.match(r"mlx5_core \S+|nvme \w+|\w+", text)
        by_thread.setdefault(name[0] if name is not None else text, []).append(text)
    return list(by_thread.items())


def _gpu_driver(machine: Machine) -> list[str]:
    return [text for _, text in boot.drivers(machine) if not text.startswith("mlx5_core")]


def _late(machine: Machine) -> list[str]:
    return [text for _, text in boot.late(machine)]


def _delete_line(said: list[Said], rng: Random) -> Planted | None:
    found = rng.choice([each for each in said if each.always and not each.text.startswith("Linux version")])
    said.remove(found)
    return Planted(kind="missing", name="line", lines=(found.text,))


def _delete_driver(said: list[Said], rng: Random) -> Planted | None:
    threads: dict[str, list[Said]] = {}
    for each in said:
        threads.setdefault(each.thread, []).append(each)
    names = [name for name, of_thread in threads.items() if len(of_thread) >= 2 and name not in ("main", "late")]
    name = rng.choice(names)
    gone = threads[name]
    for each in gone:
        said.remove(each)
    lines = [each.text for each in gone]
    if rng.random() < 0.5:
        error = _NO_DRIVER.format(driver=gone[0].text.partition(": ")[0])
        place = next((place for place, each in enumerate(said) if each.at_s > gone[0].at_s), len(said))
        said.insert(place, replace(gone[0], text=error))
        lines.append(error)
    return Planted(kind="missing", name="driver", lines=tuple(lines))


def _insert_line(said: list[Said], rng: Random) -> Planted | None:
    place = rng.randrange(1, len(said))
    text = f"{rng.choice(_NEW)} ({rng.randrange(1_000_000):#x})"
    said.insert(place, replace(_one(text, said[place - 1].at_s), always=False))
    return Planted(kind="unknown", name="line", lines=(text,))


def _insert_trace(said: list[Said], rng: Random) -> Planted | None:
    text = _TRACE.format(
        cpu=rng.randrange(64), pid=rng.randrange(100, 9000), line=rng.randrange(1, 4000), a=rng.randrange(1, 600),
        b=rng.randrange(1, 900), c=rng.randrange(1, 600), e=rng.getrandbits(64),
    )  # fmt: skip
    place = rng.randrange(len(said) // 2, len(said))
    lines = text.splitlines()
    at_s = said[place - 1].at_s
    said[place:place] = [replace(_one(line, at_s), always=False) for line in lines]
    return Planted(kind="unknown", name="trace", lines=tuple(lines))


def _move_line(said: list[Said], rng: Random) -> Planted | None:
    """A line of the main thread, past at least fifteen others of it."""
    main = [place for place, each in enumerate(said) if each.thread == "main"][1:]
    start, end = rng.sample(range(len(main)), 2)
    if abs(start - end) < 15:
        end = start + 15 if start + 15 < len(main) else start - 15
    to = main[end]
    moved = said.pop(main[start])
    said.insert(to, replace(moved, at_s=said[min(to, len(said) - 1)].at_s))
    return Planted(kind="order", name="moved", lines=(moved.text,))


def _swap_lines(said: list[Said], rng: Random) -> Planted | None:
    """Two lines that follow each other in the thread of one adapter."""
    adapters = sorted({each.thread for each in said if each.thread.startswith("mlx5_core ")})
    if not adapters:
        return None
    name = rng.choice(adapters)
    places = [place for place, each in enumerate(said) if each.thread == name]
    first = rng.randrange(len(places) - 1)
    one, other = places[first], places[first + 1]
    texts = (said[one].text, said[other].text)
    said[one], said[other] = replace(said[one], text=texts[1]), replace(said[other], text=texts[0])
    return Planted(kind="order", name="swapped", lines=texts)


def _fewer_cpus(said: list[Said], rng: Random) -> Planted | None:
    found = next((each for each in said if each.text.startswith("smp: Brought up")), None)
    if found is None:
        return None
    count = int(found.text.split()[-2])
    left = str(count - rng.choice((1, 2, 16)))
    return _change(
        said, "cpus", "value", lambda text: re.sub(rf"\b{count}\b", left, text), ("smp: ", "smpboot: T", "setup_")
    )


def _less_memory(said: list[Said], rng: Random) -> Planted | None:
    share = rng.choice((0.5, 0.75, 0.9375))

    def smaller(text: str) -> str:
        return re.sub(r"(\d+)K/(\d+)K", lambda m: f"{int(int(m[1]) * share)}K/{int(int(m[2]) * share)}K", text)

    return _change(said, "memory", "value", smaller, ("Memory: ",))


def _narrow_link(said: list[Said], rng: Random) -> Planted | None:
    adapters = sorted({each.thread for each in said if each.thread.startswith("mlx5_core ")})
    if not adapters:
        return None
    return _change(said, "link", "value", lambda text: text.replace("x16 link", "x8 link"), (rng.choice(adapters),))


def _gpu_lost(said: list[Said], rng: Random) -> Planted | None:
    found = [each for each in said if each.text.startswith("nvidia 0000:")]
    if not found:
        return None
    gone = rng.choice(found)
    address = gone.text.split()[1].rstrip(":")
    lines = [each for each in said if address in each.text]
    for each in lines:
        said.remove(each)
    return Planted(kind="missing", name="gpu", lines=tuple(each.text for each in lines))


def _change(
    said: list[Said], name: str, kind: FaultKind, change: Callable[[str], str], heads: tuple[str, ...]
) -> Planted | None:
    lines = []
    for place, each in enumerate(said):
        if each.text.startswith(heads) and change(each.text) != each.text:
            said[place] = replace(each, text=change(each.text))
            lines.append(said[place].text)
    return Planted(kind=kind, name=name, lines=tuple(lines)) if lines else None


_WAYS = (
    _delete_line, _delete_driver, _insert_line, _insert_trace, _move_line, _swap_lines, _fewer_cpus, _less_memory,
    _narrow_link, _gpu_lost,
)  # fmt: skip
