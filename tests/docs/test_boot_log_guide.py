"""The guide to boot logs, its commands run in order on written boots."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_docs import ROOT, blocks
from tests.health.bootlog.written import dressed, written

GUIDE = ROOT / "docs/guides/boot-logs.md"
LINE = "hpet: rate limit"


def test_the_commands_run_and_the_accepted_line_is_quiet_afterwards(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.mkdir()
    for seed in range(20):
        (good / f"gpu{seed % 5:03d}.{seed}.log").write_text(dressed(written(seed), "short-monotonic"))
    (tmp_path / "gpu007.log").write_text(dressed([*written(30), LINE]))
    command = tmp_path / "bin" / "wholestack"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m wholestack "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "80"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    learn, judge, accept = "".join(blocks(GUIDE, "sh")).splitlines()
    assert run(learn).returncode == 0
    before = run(judge)
    assert before.returncode == 1
    assert LINE in before.stdout
    assert run(accept).returncode == 0
    after = run(judge)
    assert after.returncode == 0, after.stdout
    assert "1 accepted" in after.stdout
