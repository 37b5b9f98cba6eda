"""``wholestack rehearse``: what it keeps of what was asked, what it prints, what it refuses."""

from pathlib import Path

import pytest

from wholestack.cli.main import main
from wholestack.experiments import rehearsal
from wholestack.runs import RunReader

ROOT = Path(__file__).parents[2]


def write_recipe(folder: Path, **changes: object) -> Path:
    """A recipe file of a user: the tiny recipe of the tests, over text below the same folder."""
    given = "".join(f", {name}={value!r}" for name, value in changes.items())
    path = folder / "mine.py"
    path.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\nfrom tests.experiments.tiny import tiny_recipe\n"
        f"def recipe():\n    return tiny_recipe(Path({str(folder / 'text')!r}){given})\n"
    )
    return path


def in_process(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_the_run_keeps_the_file_that_the_recipe_came_from_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rehearsal, "rehearse", interrupted)
    assert in_process("rehearse", "./mine.py", "--seed", "4") == 130
    config = RunReader(tmp_path / "rehearsal-tiny-4").manifest.config
    assert config["recipe_given"] == "./mine.py"
