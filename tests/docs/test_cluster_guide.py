"""The guide to keeping a cluster healthy: its commands run in order on simulated hosts and a real Slurm."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.test_docs import ROOT
from tests.health.operations.slurm_cluster import MISSING, slurm_cluster

GUIDE = ROOT / "docs/guides/keep-a-cluster-healthy.md"
PATIENCE_S = 120.0
ANYTHING = "..."


def steps() -> list[tuple[str, str]]:
    """Every block, with its language."""
    return re.findall(r"```(sh|text|toml)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def plain(line: str, place: Path) -> str:
    """Without what differs from day to day: dates, and how long something took."""
    line = line.replace(f"{place}/", "")
    line = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", "DATE", line)
    return re.sub(r"(?<![\w-])[\d.]+ (s|min|h)\b", "A WHILE", line)


def fits(shown: list[str], said: list[str]) -> bool:
    """Whether the lines are those that are shown; ``...`` stands for any number of them."""
    if not shown:
        return not said
    if shown[0] == ANYTHING:
        return any(fits(shown[1:], said[start:]) for start in range(len(said) + 1))
    return bool(said) and shown[0] == said[0] and fits(shown[1:], said[1:])


class Follower:
    """Somebody at two terminals."""

    def __init__(self, place: Path, environment: dict[str, str]) -> None:
        self.place, self.environment = place, environment
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.server: subprocess.Popen[str] | None = None

    def close(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(30)

    def type(self, line: str) -> str:
        if "--serve" in line:
            self.serve(line)
            return ""
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.place, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1), f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, line: str) -> None:
        self.close()
        said = self.place / "server.txt"
        with said.open("w") as file:
            command = ["sh", "-c", f"exec {line} --port {self.port}"]
            self.server = subprocess.Popen(command, cwd=self.place, env=self.environment, stderr=file, text=True)
        end = time.monotonic() + PATIENCE_S
        while "hosts on port" not in said.read_text():
            if "cannot serve" in said.read_text():
                pytest.skip(said.read_text())
            assert self.server.poll() is None, said.read_text()
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.heavy
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_the_commands_run_and_say_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "wholestack"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m wholestack "$@"\n')
    command.chmod(0o755)
    place = tmp_path / "cluster"
    place.mkdir()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm"))  # short: sockets lie in it
        slurm = stack.enter_context(slurm_cluster(Path(folder), nodes=16, slurmds=16))
        environment = {
            **slurm.environment,
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "COLUMNS": "80",
        }
        follower = Follower(place, environment)
        stack.callback(follower.close)
        said, last = "", ""
        compared = 0
        for language, block in steps():
            if language == "toml":
                name = block.partition("\n")[0].removeprefix("# ")
                (place / name).write_text(block)
            elif language == "sh":
                said = "".join(follower.type(line) for line in block.splitlines())
                last = block
            else:
                shown, got = ([plain(each, place) for each in text.splitlines()] for text in (block, said))
                assert fits(shown, got), f"{last}\nshown:\n{chr(10).join(shown)}\nsaid:\n{chr(10).join(got)}"
                compared += 1
    assert compared >= 14
