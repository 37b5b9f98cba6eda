"""Time synchronisation and containers: ``chronyc``, ``timedatectl``, ``ntpq``, ``docker info``, ``ctr version``.

Sources: ``chronyc(1)``, ``timedatectl(1)``, the NTP documentation of ``ntpq``, the Docker Engine API (GET /info), and
the messages of the clients where their daemon does not answer.
"""

import json
import time

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools import nvlink
from wholestack.health.simulator.tools.answer import Answer


def time_sync(machine: Machine) -> Answer:
    """The first of three clients that works."""
    sync = machine.time
    if sync.daemon == "chrony":
        if sync.running:
            return Answer(stdout=_chrony(machine))
        return Answer(
            stdout="506 Cannot talk to daemon\n",
            stderr="Failed to query server: Unit systemd-timesyncd.service not found.\nsh: 1: ntpq: not found\n",
            exit_status=127,
        )
    missing = "sh: 1: chronyc: not found\n"
    if sync.daemon == "timesyncd":
        if sync.running:
            return Answer(stdout=_timesyncd(machine), stderr=missing)
        return Answer(
            stderr=f"{missing}Failed to query server: The name org.freedesktop.timesync1 was not provided by any "
            ".service files\nsh: 1: ntpq: not found\n",
            exit_status=127,
        )
    missing += "Failed to query server: Could not activate remote peer.\n"
    if not sync.running:
        return Answer(stderr=f"{missing}ntpq: read: Connection refused\n", exit_status=1)
    return Answer(stdout=_ntpq(machine), stderr=missing)


def _chrony(machine: Machine) -> str:
    sync, clock = machine.time, time.gmtime(machine.clock - 37)
    if not sync.synchronised:
        return (
            "Reference ID    : 00000000 ()\nStratum         : 0\nRef time (UTC)  : Thu Jan 01 00:00:00 1970\n"
            "System time     : 0.000000000 seconds fast of NTP time\nLast offset     : +0.000000000 seconds\n"
            "RMS offset      : 0.000000000 seconds\nFrequency       : 11.412 ppm slow\n"
            "Residual freq   : +0.000 ppm\nSkew            : 0.000 ppm\nRoot delay      : 1.000000000 seconds\n"
            "Root dispersion : 1.000000000 seconds\nUpdate interval : 0.0 seconds\n"
            "Leap status     : Not synchronised\n"
        )
    slow = "slow" if sync.offset_s < 0 else "fast"
    quads = [int(part) for part in sync.server.split(".")]
    return (
        f"Reference ID    : {''.join(f'{part:02X}' for part in quads)} ({sync.server})\n"
        f"Stratum         : {sync.stratum}\nRef time (UTC)  : {time.strftime('%a %b %d %H:%M:%S %Y', clock)}\n"
        f"System time     : {abs(sync.offset_s):.9f} seconds {slow} of NTP time\n"
        f"Last offset     : {sync.offset_s * 0.7:+.9f} seconds\nRMS offset      : {abs(sync.offset_s):.9f} seconds\n"
        "Frequency       : 11.412 ppm slow\nResidual freq   : +0.001 ppm\nSkew            : 0.022 ppm\n"
        "Root delay      : 0.000412311 seconds\nRoot dispersion : 0.000231004 seconds\n"
        "Update interval : 64.6 seconds\nLeap status     : Normal\n"
    )


def _timesyncd(machine: Machine) -> str:
    sync = machine.time
    if not sync.synchronised:
        return "       Server: n/a (ntp.ubuntu.com)\nPoll interval: 0 (min: 32s; max 34min 8s)\n Packet count: 0\n"
    offset = sync.offset_s
    amount = f"{offset:+.6f}s" if abs(offset) >= 1 else f"{offset * 1e3:+.3f}ms" if abs(offset) >= 1e-3 else (
        f"{round(offset * 1e6):+d}us")  # fmt: skip
    return (
        f"       Server: {sync.server} (ntp.ubuntu.com)\nPoll interval: 34min 8s (min: 32s; max 34min 8s)\n"
        f"         Leap: normal\n      Version: 4\n      Stratum: {sync.stratum}\n    Reference: 11FD1E7B\n"
        "    Precision: 1us (-23)\nRoot distance: 14.404ms (max: 5s)\n"
        f"       Offset: {amount}\n        Delay: 412us\n       Jitter: 1.201ms\n Packet count: 4211\n"
        "    Frequency: +9.611ppm\n"
    )


def _ntpq(machine: Machine) -> str:
    sync = machine.time
    mark, reach = ("*", 377) if sync.synchronised else (" ", 0)
    offset = sync.offset_s * 1000
    rows = [
        f"{mark}{sync.server:<16}10.0.0.1{'':9}{sync.stratum:1d} u {37:4d} {64 * 16:4d} {reach:4d} "
        f"{0.312:8.3f} {offset:+8.3f} {0.041:7.3f}\n",
        f"{'+' if sync.synchronised else ' '}{'10.0.9.9':<16}10.0.0.1{'':9}{sync.stratum:1d} u {122:4d} {1024:4d} "
        f"{reach:4d} {0.402:8.3f} {offset + 0.02:+8.3f} {0.061:7.3f}\n",
    ]
    return (
        "     remote           refid      st t when poll reach   delay   offset  jitter\n"
        "==============================================================================\n" + "".join(rows)
    )


def docker(machine: Machine) -> Answer:
    """``docker info --format '{{json .}}'``."""
    containers = machine.containers
    if not containers.docker_installed:
        return Answer(stderr="sh: 1: docker: not found\n", exit_status=127)
    client = {"Debug": False, "Version": containers.docker_version, "GitCommit": "ce12230", "Context": "default"}
    if not containers.docker_running:
        refused = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
        body = {"ID": "", "Containers": 0, "Images": 0, "Driver": "", "ServerVersion": "", "ServerErrors": [refused],
                "ClientInfo": client}  # fmt: skip
        return Answer(stdout=json.dumps(body) + "\n", stderr="errors pretty printing info\n", exit_status=1)
    body = {
        "ID": machine.system_uuid,
        "Containers": containers.containers + 1,
        "ContainersRunning": containers.containers,
        "ContainersPaused": 0,
        "ContainersStopped": 1,
        "Images": containers.images,
        "Driver": containers.storage_driver,
        "DriverStatus": [["Backing Filesystem", "extfs"], ["Supports d_type", "true"]],
        "LoggingDriver": "json-file",
        "CgroupDriver": "systemd",
        "CgroupVersion": "2",
        "KernelVersion": machine.kernel,
        "OperatingSystem": machine.os_release["PRETTY_NAME"].strip('"'),
        "OSType": "linux",
        "Architecture": "x86_64",
        "NCPU": machine.cpu.count,
        "DockerRootDir": "/var/lib/docker",
        "Name": machine.name,
        "ServerVersion": containers.docker_version,
        "Runtimes": _runtimes(machine),
        "DefaultRuntime": "runc",
        "LiveRestoreEnabled": False,
        "ContainerdCommit": {"ID": "7f7fdf5fed64eb6a7caf99b3e12efcf9d60e311c"},
        "Warnings": None,
        "ClientInfo": client,
    }
    return Answer(stdout=json.dumps(body) + "\n", seconds=0.3)


def _runtimes(machine: Machine) -> dict[str, dict[str, str]]:
    runtimes = {"io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"}}
    if machine.containers.nvidia_runtime:
        runtimes["nvidia"] = {"path": "nvidia-container-runtime"}
    return runtimes


def containerd(machine: Machine) -> Answer:
    """``ctr version``."""
    containers = machine.containers
    if not containers.docker_installed:
        return Answer(stderr="sh: 1: ctr: not found\n", exit_status=127)
    part = f"  Version:  {containers.containerd_version}\n  Revision: 57f17b0a6295a39009d861b89e3b3b87b005ca27\n"
    client = f"Client:\n{part}  Go version: go1.22.7\n\n"
    if not containers.containerd_running:
        socket = "/run/containerd/containerd.sock"
        return Answer(
            stdout=client,
            stderr=f'ctr: failed to dial "{socket}": connection error: desc = "transport: error while dialing: dial '
            f'unix {socket}: connect: connection refused"\n',
            exit_status=1,
        )
    return Answer(stdout=f"{client}Server:\n{part}  UUID: {machine.boot_id}\n")


def container_gpu(machine: Machine) -> Answer:
    """A container with all GPUs that runs ``nvidia-smi -L``."""
    containers = machine.containers
    if not containers.docker_installed:
        return Answer(stderr="sh: 1: docker: not found\n", exit_status=127)
    if not containers.docker_running:
        return Answer(
            stderr="docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
            "running?.\nSee 'docker run --help'.\n",
            exit_status=125,
        )
    if not containers.nvidia_runtime or not machine.gpus:
        return Answer(
            stderr='docker: Error response from daemon: could not select device driver "" with capabilities: '
            "[[gpu]].\n",
            exit_status=125,
        )
    return nvlink.listing(machine)
