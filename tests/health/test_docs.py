"""The docs of health cannot drift."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.health import write_faults
from tests.health.write_table import PAGE, table
from wholestack.cli.health import app
from wholestack.health.check import Owner
from wholestack.remote.inventory import read_toml

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "guides" / "first-sweep.md"


def test_the_table_of_checks_is_what_the_catalogue_says():
    assert PAGE.read_text(encoding="utf-8") == table(), "python -m tests.health.write_table"


def test_the_table_of_faults_is_what_the_simulator_has():
    assert write_faults.PAGE.read_text(encoding="utf-8") == write_faults.page(), "python -m tests.health.write_faults"


def test_the_guide_to_adding_a_check_runs():
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "adding" / "check.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "check.md", "exec"), {"__name__": "guide"})


def test_the_hosts_file_of_the_first_sweep_is_read():
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    tomllib.loads(text)
    hosts = read_toml(text, where="guide")
    assert [(host.name, host.kind, host.user) for host in hosts] == [
        (f"gpu00{number}", "h100", "root") for number in (1, 2, 3)]  # fmt: skip


@pytest.mark.parametrize(
    "line", re.findall(r"^wholestack health (.*?)(?:\s+#.*)?$", GUIDE.read_text(), re.MULTILINE), ids=str
)
def test_every_command_of_the_first_sweep_is_one(line):
    """Parsed, not run."""
    import shlex

    app.parse_args(shlex.split(line), print_error=False, exit_on_error=False)


def test_the_guide_names_every_owner():
    for owner in Owner.__args__:
        assert f"`{owner}`" in GUIDE.read_text()
