"""The guide to fresh code questions, its commands run in order with a real model."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.test_docs import ROOT, blocks

from wholestack.recipes.load import load

GUIDE = ROOT / "docs/guides/fresh-code-questions.md"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the command on its path."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "wholestack"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m wholestack "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.heavy
@pytest.mark.timeout(1500)
def test_the_commands_run_from_generation_to_a_scored_model_and_training_text(place: Path) -> None:
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "COLUMNS": "80"}
    said = {}
    for line in "".join(blocks(GUIDE, "sh")).splitlines():
        done = subprocess.run(
            ["sh", "-c", line], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        expected = (0, 1) if "--against" in line else (0,)
        assert done.returncode in expected, f"{line}: {done.stdout}{done.stderr}"
        said[line] = done.stdout + done.stderr
    check, score, against = (
        next(text for line, text in said.items() if re.search(words, line))
        for words in (r"check fresh\.jsonl$", "evals score", "--against")
    )
    assert "100 questions, 100 proved" in check
    assert re.search(r"choice_nll_raw\s+\d+\.\d+", score)
    assert "0 of the programs stand there word for word" in against
    (metrics,) = place.glob("results/*/metrics.json")
    assert json.loads(metrics.read_text())
    rows = [json.loads(line) for line in (place / "practice-text.jsonl").read_text().splitlines()]
    assert len(rows) == 300


def test_the_recipe_of_the_guide_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks(GUIDE, "python")
    (tmp_path / "questions.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "practice-text.jsonl").write_text("")
    recipe = load("questions.py")
    assert (recipe.name, recipe.context) == ("questions", 256)
    assert [source.name for source in recipe.sources] == ["practice", "python-code"]
