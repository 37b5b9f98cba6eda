"""The guide to adding a model backend runs as it stands."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.installing import install

ROOT = Path(__file__).parents[2]
TEXT = "The tide comes in twice a day. The tides are late. Time and tide wait for nobody.\n"


GUIDE = (ROOT / "docs/adding/model.md").read_text()


def blocks(language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


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
    backend, kind, use, suite = blocks()
    (tmp_path / "bigram.py").write_text(backend)
    (tmp_path / "bigram_kind.py").write_text(kind)
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


def test_installed_as_a_plug_in_it_is_scored_by_the_command(folder: Path) -> None:
    (text,) = blocks("toml")
    install(folder, "bigrams", "1.5", tomllib.loads(text)["project"]["entry-points"])
    row = {"id": "t", "context": "The ti", "choices": ["de", "qx"], "gold": 0, "delimiter": ""}
    (folder / "tides.jsonl").write_text(json.dumps(row) + "\n")
    done = run(folder, "-m", "wholestack", "evals", "score", "tides.jsonl", "--model", "tides.txt", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["metrics"]["accuracy_raw"] == 1
    assert document["model"]["parts"]["plug-in"] == "bigrams 1.5"
