"""The guide to adding a model backend runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = "The tide comes in twice a day. The tides are late. Time and tide wait for nobody.\n"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/adding/model.md").read_text(), flags=re.DOTALL)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")]),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    backend, use, suite = blocks()
    (tmp_path / "bigram.py").write_text(backend)
    (tmp_path / "use.py").write_text(use)
    (tmp_path / "test_bigram.py").write_text(f"{use}\n{suite}")
    (tmp_path / "tides.txt").write_text(TEXT)
    (tmp_path / "other.txt").write_text(TEXT.upper())
    return tmp_path


def test_the_backend_of_the_guide_is_opened_and_scores(folder: Path) -> None:
    done = run(folder, "use.py")
    assert done.returncode == 0, done.stderr


def test_it_passes_the_suite(folder: Path) -> None:
    pytest.importorskip("wholestack.testing.evals_backend")
    done = run(folder, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "test_bigram.py")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
