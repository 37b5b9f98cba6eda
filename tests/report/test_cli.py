"""``wholestack report DIR`` draws the page again."""

import json
import subprocess
import sys

import pytest

from wholestack.cli.main import main

from .synthetic_run import write_run


def _run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["report", *map(str, arguments)])
    return end.value.code, capsys.readouterr()


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run", "preflight")


def test_json_is_one_document_with_the_path_of_the_page(folder, capsys):
    code, said = _run(capsys, folder, "--json")
    assert (code, said.err) == (0, "")
    assert json.loads(said.out) == {"report": str(folder / "report.html")}
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_without_json_the_short_version_is_printed(folder, capsys):
    code, said = _run(capsys, folder)
    assert code == 0
    assert "This rehearsal has no result yet" in said.out
    assert "report.html" in said.out.replace("\n", "")


def test_a_folder_that_is_no_run_is_one_clear_line(tmp_path, capsys):
    code, said = _run(capsys, tmp_path)
    assert (code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert f"{tmp_path}: not a run directory" in said.err


def test_missing_matplotlib_is_one_clear_line(folder):
    code = "import sys; sys.modules['matplotlib'] = None; from wholestack.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "wholestack: the report needs matplotlib (pip install 'wholestack[report]')\n"
