"""The guide to comparing two models, its commands run in order with a real model on real text."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.docs.test_docs import ROOT, blocks
from tests.experiments.tiny import tiny_recipe

from wholestack.experiments import rehearsal

GUIDE = ROOT / "docs/guides/compare-two-models.md"
COULD_NOT_TELL = 3


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the command on its path, and with what `make demo` would have left behind."""
    recipe = tiny_recipe(tmp_path / "text")
    with rehearsal.create(tmp_path / "rehearsal", recipe, budget_s=600, seed=0, at=time.time()) as run:
        rehearsal.rehearse(run)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "wholestack"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m wholestack "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.heavy
@pytest.mark.timeout(1500)
def test_the_commands_run_and_a_difference_that_cannot_be_seen_is_said_to_be_none_that_can(place: Path) -> None:
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "COLUMNS": "80"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line], cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    said = []
    for line in "".join(blocks(GUIDE, "sh")).splitlines():
        done = subprocess.run(
            ["sh", "-c", line], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        expected = COULD_NOT_TELL if "fine/" in line else 0
        assert done.returncode == expected, f"{line}: {done.stdout}{done.stderr}"
        said.append(done.stdout + done.stderr)
    assert len(said) == 7
    cut, estimate, _, _, plain, _, unseen = said
    assert "60 items" in cut
    assert re.search(r"answer_bpb\s+0\.\d+ bits per byte", estimate)
    assert "smollm2" in plain
    assert "is better" in plain
    assert "cannot be told apart" in unseen
    scored = {path.parent.name.split("-")[1] for path in place.glob("results/*/metrics.json")}
    assert scored == {"smollm2", "rehearsal"}
