"""A real Slurm on this machine: slurmctld, and a slurmd for each of its nodes; no munge, no root needed."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60.0
_PATH = f"{os.environ['PATH']}:/usr/sbin"
MISSING = [name for name in ("slurmctld", "slurmd", "scontrol", "sinfo") if shutil.which(name, path=_PATH) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmCluster:
    """It runs."""

    conf: Path
    nodes: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """For Slurm's commands."""
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def run(self, words: Sequence[str]) -> str:
        """A command of Slurm; standard output."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def reasons(self) -> str:
        """What ``sinfo -R`` shows."""
        return self.run(["sinfo", "-R", "-h", "-o", "%n|%u|%E"])


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def slurm_cluster(folder: Path, *, nodes: int = 4, slurmds: int = 1) -> Iterator[SlurmCluster]:
    """Start it, wait until it answers, and end it.

    Args:
        folder: For its files; a short path, since sockets lie in it.
        nodes: How many.
        slurmds: How many of them really run and take jobs; the others are known and do not answer.
    """
    names = tuple(f"node{index:04d}" for index in range(nodes))
    user, host = (
        subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip(),
        socket.gethostname(),
    )
    conf = folder / "slurm.conf"
    lines = [
        f"ClusterName=t{os.getpid()}", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={_port()}",
        f"SlurmUser={user}", f"SlurmdUser={user}", "AuthType=auth/none", "CredType=cred/none",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/%n", f"SlurmctldPidFile={folder}/ctld.pid", f"SlurmdPidFile={folder}/%n.pid",
        f"SlurmctldLogFile={folder}/ctld.log", f"SlurmdLogFile={folder}/%n.log", "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none", "SelectType=select/cons_tres", "SwitchType=switch/none", "MpiDefault=none",
        "ReturnToService=2", "SlurmdParameters=config_overrides", "SlurmdTimeout=600",
        "AccountingStorageType=accounting_storage/none",
    ]  # fmt: skip
    lines += [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={_port()} CPUs=2 RealMemory=100 State=UNKNOWN"
        for name in names
    ]
    lines.append(f"PartitionName=all Nodes={','.join(names)} Default=YES MaxTime=INFINITE State=UP")
    conf.write_text("\n".join(lines) + "\n")
    (folder / "state").mkdir()
    cluster = SlurmCluster(conf=conf, nodes=names)
    started = []
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    environment = {**cluster.environment, "PATH": path}

    def start(*words: str) -> None:
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    try:
        start("slurmctld", "-D", "-f", str(conf))
        for name in names[:slurmds]:
            (folder / name).mkdir()
            start("slurmd", "-D", "-N", name, "-f", str(conf))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(AssertionError):
                states = cluster.run(["sinfo", "-h", "-N", "-o", "%n %T"]).split()
                if states.count("idle") >= slurmds:
                    break
            assert time.monotonic() < deadline, (folder / "ctld.log").read_text()[-2000:]
            time.sleep(0.2)
        yield cluster
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
