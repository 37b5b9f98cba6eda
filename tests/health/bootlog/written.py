"""A boot written by hand, after what Linux 5.15 says on a server with two adapters and four accelerators."""

import io
import time
from random import Random

from wholestack.health.bootlog.boots import Boot, read_boots
from wholestack.health.bootlog.expecting import Expectations
from wholestack.health.bootlog.learning import Learner
from wholestack.health.bootlog.records import BootModel

MAIN = """\
Linux version 5.15.0-91-generic (buildd@bos03) (gcc (Ubuntu 11.4.0) 11.4.0, GNU ld 2.38) #101-Ubuntu SMP
Command line: BOOT_IMAGE=/vmlinuz-5.15.0-91-generic root=/dev/mapper/vg0-root ro console=tty0
BIOS-provided physical RAM map:
BIOS-e820: [mem 0x0000000000000000-0x000000000009ffff] usable
BIOS-e820: [mem 0x0000000000100000-0x000000006c2cefff] usable
BIOS-e820: [mem 0x0000000100000000-0x000000403fffffff] usable
tsc: Detected {mhz} MHz processor
RAMDISK: [mem 0x{ramdisk:x}-0x6c2cefff]
ACPI: Core revision 20210730
Memory: {free}K/263834240K available (16393K kernel code, 4382K rwdata)
x2apic enabled
smp: Bringing up secondary CPUs ...
smp: Brought up 2 nodes, {cpus} CPUs
smpboot: Total of {cpus} processors activated ({bogomips} BogoMIPS)
devtmpfs: initialized
NET: Registered PF_NETLINK/PF_ROUTE protocol family
audit: type=2000 audit({epoch}.184:1): state=initialized audit_enabled=0 res=1
PCI: Using configuration type 1 for base access
ACPI: Interpreter enabled
SCSI subsystem initialized
clocksource: Switched to clocksource tsc-early
pnp: PnP ACPI init
NET: Registered PF_INET protocol family
Trying to unpack rootfs image as initramfs...
Initialise system trusted keyrings
io scheduler mq-deadline registered
Run /init as init process""".splitlines()
ADAPTER = """\
mlx5_core {address}: firmware version: 28.39.1002
mlx5_core {address}: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)
mlx5_core {address}: Rate limit: 127 rates are supported
mlx5_core {address}: Port module event: module 0, Cable plugged""".splitlines()
GPUS = """\
nvidia: loading out-of-tree module taints kernel.
nvidia-nvlink: Nvlink Core is being initialized, major device number 236
NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03
nvidia 0000:17:00.0: enabling device (0140 -> 0142)
nvidia 0000:65:00.0: enabling device (0140 -> 0142)
nvidia 0000:ca:00.0: enabling device (0140 -> 0142)
nvidia 0000:e3:00.0: enabling device (0140 -> 0142)
nvidia-uvm: Loaded the UVM driver, major device number 511.""".splitlines()
LATE = """\
EXT4-fs (dm-0): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.
eno1: renamed from eth0
IPv6: ADDRCONF(NETDEV_CHANGE): eno1: link becomes ready""".splitlines()
SOMETIMES = "systemd-journald[811]: File /var/log/journal/system.journal corrupted or uncleanly shut down"


def written(seed: int, *, cpus: int = 64) -> list[str]:
    """Messages of one boot; two adapters and the accelerators come up side by side."""
    rng = Random(seed)
    main = [
        line.format(
            mhz=f"{rng.choice((2000.0, 2000.1, 1999.9)):.3f}",
            ramdisk=rng.randrange(0x30000000, 0x60000000) // 4096 * 4096,
            free=rng.randrange(259_000_000, 260_000_000),
            cpus=cpus,
            bogomips=f"{rng.uniform(255_000, 257_000):.2f}",
            epoch=1_700_000_000 + seed * 1000,
        )
        for line in MAIN
    ]
    threads = [[line.format(address=address) for line in ADAPTER] for address in ("0000:18:00.0", "0000:9a:00.0")]
    threads.append(list(GPUS))
    side = []
    while any(threads):
        side.append(rng.choice([thread for thread in threads if thread]).pop(0))
    sometimes = [SOMETIMES] if rng.random() < 0.5 else []
    return [*main, *side, *sometimes, *LATE]


def dressed(messages: list[str], style: str = "dmesg", *, host: str = "node7", start: float = 1_738_000_000.0) -> str:
    """As a tool prints them, a hundredth of a second apart."""
    return "".join(f"{_head(style, 0.01 * place, start, host)}{message}\n" for place, message in enumerate(messages))


STYLES = ("dmesg", "dmesg -T", "dmesg -x", "iso", "short", "short-iso", "short-monotonic", "kern.log", "kmsg", "bare")


def _head(style: str, at: float, start: float, host: str) -> str:
    date = time.gmtime(start + at)
    iso = time.strftime("%Y-%m-%dT%H:%M:%S", date)
    syslog = f"{time.strftime('%b', date)} {date.tm_mday:2d} {time.strftime('%H:%M:%S', date)}"
    return {
        "dmesg": f"[{at:12.6f}] ",
        "dmesg -T": f"[{time.asctime(date)}] ",
        "dmesg -x": f"kern  :info  : [{at:12.6f}] ",
        "iso": f"{iso},000000+00:00 ",
        "short": f"{syslog} {host} kernel: ",
        "short-iso": f"{iso}+0000 {host} kernel: ",
        "short-monotonic": f"[{at:12.6f}] {host} kernel: ",
        "kern.log": f"{syslog} {host} kernel: [{at:12.6f}] ",
        "kmsg": f"6,{int(at * 100)},{int(at * 1e6)},-;",
        "bare": "",
    }[style]


def read(text: str | bytes) -> list[Boot]:
    """All boots of a text."""
    return list(read_boots(io.BytesIO(text.encode() if isinstance(text, str) else text)))


def learnt(boots: int = 20, *, hosts: int = 5) -> BootModel:
    """A model of so many written boots."""
    learner = Learner()
    for seed in range(boots):
        (boot,) = read(dressed(written(seed)))
        learner.add(boot, host=f"node{seed % hosts}")
    return learner.model()


def expecting(boots: int = 20, *, hosts: int = 5) -> Expectations:
    """The same, ready to judge."""
    return Expectations(learnt(boots, hosts=hosts))
