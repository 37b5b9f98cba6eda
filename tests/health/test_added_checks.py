"""Checks of installed packages: put behind ours, and one that cannot be loaded is one line and never left out."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.installing import install
from wholestack.health.catalog import ENTRY_POINTS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/adding/check.md").read_text(encoding="utf-8")


def health(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}
    command = [sys.executable, "-m", "wholestack", "health", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "entropy.py").write_text(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0])
    (tmp_path / "low.txt").write_text("63\n")
    return tmp_path


def test_the_check_of_the_guide_works_from_a_package(folder):
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[:1]
    install(folder, "entropies", "1.0", tomllib.loads(text)["project"]["entry-points"])
    done = health(folder, "judge", "kernel.entropy", "low.txt")
    assert (done.returncode, done.stderr) == (1, "")
    assert "the kernel has no random numbers left on kernel" in done.stdout
    assert "kernel.entropy" in health(folder, "checks").stdout


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"a": "nowhere:CHECKS"}, "cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
        ({"a": "entropy:LOW"}, "entropy:LOW is a Limit, not a tuple"),
        ({"a": "wrong:CHECKS"}, "holds a str, not only checks"),
        ({"a": "entropy:CHECKS", "b": "entropy:CHECKS"}, "the name kernel.entropy is taken"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_one_line(folder, entries, says):
    (folder / "wrong.py").write_text("CHECKS = ('kernel.entropy',)\n")
    install(folder, "entropies", "1.0", {ENTRY_POINTS: entries})
    done = health(folder, "checks")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    named = f"of package entropies 1.0 ({ENTRY_POINTS})"
    assert named in done.stderr
    assert says in done.stderr
