"""A real BMC on loopback: OpenIPMI's simulator with two fans, an inlet and two power supplies, asked by ipmitool.

Sensor records are laid out as the IPMI 2.0 specification has them (table 43-1, 43-2).
"""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from wholestack.remote.batch import Output

PASSWORD = "s3cret-word"
"""Of the user ADMIN."""
LAN = """name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{folder}/chassis 0x20"
  user 1 true "" "{password}" user 10 none md2 md5 straight
  user 2 true "ADMIN" "{password}" admin 10 none md2 md5 straight
"""
CHASSIS = """#!/bin/sh
shift
[ "$1" = set ] && [ "$2" = power ] && {{ echo "$3" >{folder}/power; echo "$3" >>{folder}/switched; }}
[ "$1" = get ] && echo "$2:$(cat {folder}/power)"
exit 0
"""
"""What the simulator runs to get and set the power of its host: 1 is on."""
FAN_1, FAN_2, INLET, SUPPLY_1, SUPPLY_2 = 0x30, 0x31, 0x05, 0x63, 0x64


def full_record(number, kind, unit, name, *, factor=1, upper=(0, 0, 0), lower=(0, 0, 0)):
    """A sensor with limits, in the order unrecoverable, critical, non-critical."""
    head = [0x20, 0, number, 0x07, 0x01, 0x7F, 0x68, kind, 0x01, 0, 0, 0, 0, 0x3F, 0x3F, 0, unit, 0, 0, factor]
    tail = [*[0] * 9, 255, 0, *upper, *lower, 0, 0, 0, 0, 0, 0xC0 | len(name), *name.encode()]
    return [0x51, 0x01, len(head + tail), *head, *tail]


def compact_record(number, kind, name):
    """A sensor with states."""
    head = [0x20, 0, number, 0x0A, 0x01, 0x7F, 0x40, kind, 0x6F, 0x0F, 0, 0x0F, 0, 0x0F, 0, 0xC0, 0, 0, 1]
    return [0x51, 0x02, len(head) + 8 + len(name), *head, *[0] * 7, 0xC0 | len(name), *name.encode()]


def emulation():
    """Commands of the simulator."""
    records = [
        full_record(FAN_1, 0x04, 18, "Fan1A", factor=100, lower=(0, 6, 8)),
        full_record(FAN_2, 0x04, 18, "Fan2A", factor=100, lower=(0, 6, 8)),
        full_record(INLET, 0x01, 1, "Inlet Temp", upper=(50, 42, 38)),
        compact_record(SUPPLY_1, 0x08, "PS1 Status"),
        compact_record(SUPPLY_2, 0x08, "PS2 Status"),
    ]
    lines = ["mc_setbmc 0x20", "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02", "sel_enable 0x20 1000 0x0a"]
    for index, record in enumerate(records, start=1):
        lines.append("main_sdr_add 0x20 " + " ".join(f"{byte:#04x}" for byte in (index, 0, *record)))
    for fan in (FAN_1, FAN_2):
        lines += [f"sensor_add 0x20 0 {fan} 4 1", f"sensor_set_threshold 0x20 0 {fan} settable 000011 0 0 0 0 6 8"]
    lines += [f"sensor_add 0x20 0 {INLET} 1 1", f"sensor_set_threshold 0x20 0 {INLET} settable 111000 50 42 38 0 0 0"]
    for supply in (SUPPLY_1, SUPPLY_2):
        lines += [f"sensor_add 0x20 0 {supply} 8 0x6f", f"sensor_set_bit 0x20 0 {supply} 0 1 0"]
    none = "000000000000000"
    for sensor in (FAN_1, FAN_2, INLET, SUPPLY_1, SUPPLY_2):
        lines.append(f"sensor_set_event_support 0x20 0 {sensor} enable scanning per-state {none} {none} {none} {none}")
    # 80 x 100 RPM and 300 RPM, 24 degrees, no input at the second supply.
    values = (f"sensor_set_value 0x20 0 {FAN_1} 80 0", f"sensor_set_value 0x20 0 {FAN_2} 3 0")
    lines += [
        *values,
        f"sensor_set_value 0x20 0 {INLET} 24 0",
        f"sensor_set_bit 0x20 0 {SUPPLY_2} 3 1 0",
        "mc_enable 0x20",
    ]
    return "\n".join(lines) + "\n"


class Bmc:
    """The simulator and how to ask it."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder

    def shell(self, command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a probe's command with every ``ipmitool`` in it sent to this BMC."""
        login = f"-I lanplus -C 3 -H 127.0.0.1 -p {self.port} -U ADMIN -P {PASSWORD} -R 2 -N 5"
        words = f'ipmitool() {{ command ipmitool {login} "$@"; }}; {command}'
        environment = {**os.environ, "LC_ALL": "C", "HOME": str(self.folder)}
        return subprocess.run(["sh", "-c", words], capture_output=True, check=False, timeout=90, env=environment)

    def output(self, command: str, name: str) -> Output:
        """What the probe's command gave."""
        done = self.shell(command)
        return Output(name=name, stdout=done.stdout, stderr=done.stderr[:2000], exit_status=done.returncode)

    def set_power(self, *, on: bool) -> None:
        """As somebody at the host would, not by way of the BMC."""
        (self.folder / "power").write_text(f"{int(on)}\n")

    def switched(self) -> list[str]:
        """What the BMC was told to do with the power, in order: ``1`` on, ``0`` off."""
        path = self.folder / "switched"
        return path.read_text().split() if path.exists() else []

    def set_time(self, at: int) -> None:
        """Set the clock of the event log; ipmitool's own words for it are not understood by 1.8.19."""
        self.shell("ipmitool raw 0x0a 0x49 " + " ".join(f"{byte:#04x}" for byte in at.to_bytes(4, "little")))

    def add(self, *events: tuple[int, int, int, int]) -> None:
        """Add events: type and number of the sensor, direction and type of the event, first byte of its data."""
        lines = [" ".join(f"{byte:#04x}" for byte in (4, *event, 0, 0)) for event in events]
        path = self.folder / "events.txt"
        path.write_text("\n".join(lines) + "\n")
        self.shell(f"ipmitool sel add {path}")


@contextlib.contextmanager
def running_bmc(folder: Path):
    """Start it, end it by its own process."""
    if shutil.which("ipmi_sim") is None or shutil.which("ipmitool") is None:
        pytest.skip("ipmi_sim (openipmi) or ipmitool is not installed")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "lan.conf").write_text(LAN.format(port=port, folder=folder, password=PASSWORD))
    (folder / "chassis").write_text(CHASSIS.format(folder=folder))
    (folder / "chassis").chmod(0o755)
    (folder / "power").write_text("1\n")
    (folder / "commands.emu").write_text(emulation())
    (folder / "state").mkdir()
    arguments = ["ipmi_sim", "-c", "lan.conf", "-f", "commands.emu", "-s", "state", "-n"]
    simulator = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        bmc = Bmc(port, folder)
        for _ in range(10):
            if bmc.shell("ipmitool mc info").returncode == 0:
                break
        yield bmc
    finally:
        simulator.terminate()
        simulator.wait(timeout=20)
