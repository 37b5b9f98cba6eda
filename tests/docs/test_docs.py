"""The docs' own tests: what they show runs, what they name exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from wholestack.experiments.mixture_plan import overall, read_comparison
from wholestack.recipes.load import load

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_and_command_that_is_named_exists(path: Path) -> None:
    text = path.read_text()
    for named in re.findall(r"`((?:src|docs|tests|benchmarks)/[\w./-]+\.\w+)`", text):
        assert (ROOT / named).exists(), f"{path.name} names {named}"
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (path.parent / link).exists(), f"{path.name} links to {link}"
    for target in re.findall(r"`make (\w+)`", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), target


def test_the_recipe_of_the_guide_loads(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "docs/adding/recipe.md", "python")
    (tmp_path / "mine.py").write_text(code)
    recipe = load(str(tmp_path / "mine.py"))
    assert recipe.name == "notes"
    assert next(each for each in recipe.dimensions if each.name == "lr").high == 2e-2


def test_the_help_in_the_readme_is_what_the_command_prints() -> None:
    shown = next(block for block in blocks(ROOT / "README.md", "text") if block.startswith("Usage: wholestack COMMAND"))
    printed = subprocess.run(
        [sys.executable, "-m", "wholestack", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "80"},
    ).stdout
    assert printed.strip() == shown.strip()


def test_the_comparison_of_the_mixtures_guide_is_one(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "docs/guides/compare-mixtures.md", "json")
    (tmp_path / "mixtures.json").write_text(text)
    comparison = read_comparison(tmp_path / "mixtures.json")
    assert overall(comparison.mixtures["prose last"])["python-prose"] == pytest.approx(0.7 / 4 + 0.3)
