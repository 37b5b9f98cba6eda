"""A synthetic host with eight H100 GPUs for the tests: outputs in the formats of the real tools, written by us."""

import re
from pathlib import Path

from wholestack.health.catalog import CHECKS
from wholestack.health.check import Before, Expectation
from wholestack.health.diagnosis import CheckSymptom, diagnose
from wholestack.health.examine import Examination, examine
from wholestack.remote.batch import Output

BUSES = ("19", "3B", "4C", "5D", "9B", "BB", "CB", "DB")
NOW = 1_764_460_800.0  # 2025-11-30T00:00:00Z
UPTIME_S = 30 * 86_400.0
BLOCK = (Path(__file__).parent / "recorded" / "nvidia_smi" / "gpu_v13.xml").read_text()


def key(index):
    """Key of the part."""
    return f"0000:{BUSES[index].lower()}:00"


def block(index, *changes):
    """One GPU of the document, with ``(path's last tag, text)`` or ``(pattern, replacement)`` changed."""
    text = BLOCK.replace("@BUS@", BUSES[index]).replace("@INDEX@", str(index))
    for what, new in changes:
        pattern = rf"(<{what}>)[^<]*(</{what}>)" if re.fullmatch(r"\w+", what) else what
        replacement = rf"\g<1>{new}\g<2>" if re.fullmatch(r"\w+", what) else new
        changed = re.sub(pattern, replacement, text, count=1, flags=re.DOTALL)
        assert changed != text, what
        text = changed
    return text


def document(blocks, *, attached=None):
    """``nvidia-smi -q -x``."""
    count = len(blocks) if attached is None else attached
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n<nvidia_smi_log>\n'
        "\t<timestamp>Sun Nov 30 00:00:00 2025</timestamp>\n\t<driver_version>580.105.08</driver_version>\n"
        f"\t<cuda_version>13.0</cuda_version>\n\t<attached_gpus>{count}</attached_gpus>\n"
        + "".join(blocks)
        + "</nvidia_smi_log>\n"
    )


def smi(changes=None, *, without=()):
    """Eight GPUs, some of them changed: index to changes."""
    changes = changes or {}
    return document([block(index, *changes.get(index, ())) for index in range(8) if index not in without])


def lspci(*, without=(), gone=()):
    """``lspci -Dnn`` with eight GPUs, four NVSwitches and two adapters."""
    lines = [
        f"0000:{bus.lower()}:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] "
        f"(rev {'ff' if index in gone else 'a1'})"
        for index, bus in enumerate(BUSES)
        if index not in without
    ]
    lines += [
        f"0000:0{number}:00.0 Bridge [0680]: NVIDIA Corporation GH100 [H100 NVSwitch] [10de:22a3] (rev a1)"
        for number in range(5, 9)
    ]
    lines += [
        f"0000:1{number}:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family "
        f"[ConnectX-7] [15b3:1021]"
        for number in (8, 9)
    ]
    return "\n".join(lines) + "\n"


def nvlink(*, down=(), slow=(), without=()):
    """``nvidia-smi nvlink -s``; links as (GPU, link)."""
    lines = []
    for index in range(8):
        if index in without:
            continue
        lines.append(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-00000000000{index})")
        for link in range(18):
            speed = "<inactive>" if (index, link) in down else "13.281 GB/s" if (index, link) in slow else "26.562 GB/s"
            lines.append(f"\t Link {link}: {speed}")
    return "\n".join(lines) + "\n"


def nvlink_errors(counts=None):
    """``nvidia-smi nvlink -e``; (GPU, link) to replay errors."""
    counts = counts or {}
    lines = []
    for index in range(8):
        lines.append(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-00000000000{index})")
        for link in range(18):
            lines.append(f"\t Link {link}: Replay Errors: {counts.get((index, link), 0)}")
            lines.append(f"\t Link {link}: Recovery Errors: 0")
            lines.append(f"\t Link {link}: CRC Errors: 0")
    return "\n".join(lines) + "\n"


def line(hours_ago, message, level="warn"):
    """One line of ``dmesg -x --time-format iso``."""
    from datetime import UTC, datetime

    stamp = datetime.fromtimestamp(NOW - 3600 * hours_ago, UTC).strftime("%Y-%m-%dT%H:%M:%S,123456+00:00")
    return f"kern  :{level:<6}: {stamp} {message}\n"


LOG = line(719, "Linux version 5.15.0-112-generic (buildd@host) (gcc 11.4.0) #122-Ubuntu SMP", "notice") + line(
    718, "nvidia-nvswitch0: open (major=510)", "info"
)
MOMENT = f"now={NOW:.0f}\nboot_id=b1\nuptime={UPTIME_S:.2f} 1.0\nkernel=5.15.0-112-generic\nhostname=gpu001\nuid=0\n"
PS = "    PID    PPID STAT ELAPSED USER COMMAND\n      1       0 Ss   2592000 root systemd\n"
MODULES = (
    "nvidia_peermem 20480 0 - Live 0x0000000000000000 (OE)\nnvidia_uvm 4931584 6 - Live 0x0000000000000000 (OE)\n"
    "nvidia 104165376 900 nvidia_uvm,nvidia_peermem, Live 0x0000000000000000 (OE)\n"
    "mlx5_ib 528384 0 - Live 0x0000000000000000 (OE)\n"
)
MODULE_VERSION = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Wed Oct 29 23:15:11 UTC 2025\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
FABRIC = "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nNRestarts=0\n"
FABRIC_LOG = (
    "[Nov 29 2025 13:59:45] [INFO] [tid 1803] Received an inband message:  Message header details: magic Id:adbc\n"
)


def outputs(**changed):
    """What a healthy host answers, with some of it changed: a text, or an Output."""
    plain = {
        "moment": MOMENT,
        "nvidia_smi": smi(),
        "nvlink_status": nvlink(),
        "nvlink_errors": nvlink_errors(),
        "kernel_log": LOG,
        "pci": lspci(),
        "processes": PS,
        "modules": MODULES,
        "driver_version": MODULE_VERSION,
        "fabric_manager": FABRIC,
        "fabric_manager_log": FABRIC_LOG,
    } | changed
    return {
        name: given if isinstance(given, Output) else Output(name=name, stdout=given.encode())
        for name, given in plain.items()
    }


NAMES = frozenset(outputs())
OURS = tuple(
    check
    for check in CHECKS
    if check.name.startswith(("gpu.", "nvlink.", "fabric_manager.", "kernel.")) and check.probes[0].name in NAMES
)


def look(
    given=None, *, expectation: Expectation | None = None, before: Before | None = None, checks=OURS, **changed
) -> Examination:
    """Examine the host."""
    return examine(given or outputs(**changed), checks, expectation=expectation, before=before, now=NOW)


def found(given=None, **kwargs) -> list[CheckSymptom]:
    """What is left after diagnosis."""
    return diagnose(look(given, **kwargs).symptoms)


def told(given=None, **kwargs) -> list[tuple[str, str, str]]:
    """(code, part, status) of what is left."""
    return [(each.symptom.cause.code, each.symptom.part.identity, each.status) for each in found(given, **kwargs)]
