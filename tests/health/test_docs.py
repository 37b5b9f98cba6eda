"""The docs of health cannot drift."""

import random
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.health import write_faults
from tests.health.looking import look, said
from tests.health.write_table import PAGE, table
from wholestack.cli.health import app
from wholestack.cli.main import main
from wholestack.health import catalog, fleet, profile
from wholestack.health.check import Owner
from wholestack.health.outofband.address import address_of
from wholestack.remote.batch import Output
from wholestack.remote.inventory import read_toml

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "guides" / "first-sweep.md"


def test_the_table_of_checks_is_what_the_catalogue_says():
    assert PAGE.read_text(encoding="utf-8") == table(), "python -m tests.health.write_table"


def test_the_table_of_faults_is_what_the_simulator_has():
    assert write_faults.PAGE.read_text(encoding="utf-8") == write_faults.page(), "python -m tests.health.write_faults"


ADDING = (DOCS / "adding" / "check.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", ADDING, re.DOTALL)
ENTROPY = "wholestack.health.checks.entropy"


@pytest.fixture
def followed(monkeypatch):
    """The example of the guide, as if its file and its line in the catalogue were there."""
    module = ModuleType(ENTROPY)
    exec(compile(BLOCKS[0], "entropy.py", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, ENTROPY, module)
    monkeypatch.setattr(catalog, "CHECKS", (*catalog.CHECKS, *module.CHECKS))
    return module


def test_the_tests_of_the_guide_s_check_pass(followed, tmp_path):
    """In the catalogue and beside a second check with another probe, since it will not be the last."""
    other = replace(followed.CHECKS[0], name="kernel.other", probes=(catalog.named("swap.on").probes[0],))
    followed.CHECKS = (*followed.CHECKS, replace(other, judge=lambda seen: ()))
    file = tmp_path / "test_entropy.py"
    file.write_text(BLOCKS[1])
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", str(tmp_path / "none.ini")]
    (tmp_path / "none.ini").write_text("[pytest]\n")
    assert pytest.main([*options, str(file)]) == 0


def test_the_fragments_of_the_guide_run(followed):
    """One after the other, in the file of the example."""
    space = {**followed.__dict__, "look": look, "said": said}
    for block in BLOCKS[2:]:
        exec(compile(block, "check.md", "exec", dont_inherit=True), space)
    assert space["POOLS"].read(Output(name="pools", stdout=b"256\n")) == 256
    assert space["POOL"].counters is not None
    machine, truth = SimpleNamespace(entropy_bits=256), space["FAULT"]
    truth.inject(machine, space["Draw"](rng=random.Random(1), severity=1.0))
    answer = space["TOOL"].answer(machine).stdout
    assert [each.status for each in look(followed.CHECKS, entropy=answer).symptoms] == ["warn"]


@pytest.mark.usefixtures("followed")
def test_the_commands_of_the_guide_print_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "low.txt").write_text("63\n")
    (console,) = re.findall(r"```console\n(.*?)```", ADDING, re.DOTALL)
    shown = dict(re.findall(r"^\$ wholestack (.*)\n((?:[^$].*\n)*)", console, re.MULTILINE))
    assert len(shown) == 3
    codes = []
    for line, wanted in shown.items():
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(line))
        codes.append(ended.value.code)
        assert re.sub(r"\b[0-9a-f]{8}\]", "ID]", capsys.readouterr().out) == wanted
    assert codes == [0, 1, 0]


def test_the_guide_s_two_files_pass_the_linter(tmp_path):
    places = ("src/wholestack/health/checks/entropy.py", "tests/health/checks/test_entropy.py")
    for place, block in zip(places, BLOCKS, strict=False):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(block)
    shutil.copy(DOCS.parent / "pyproject.toml", tmp_path)
    ours = 'lint.isort.known-first-party=["tests", "wholestack"]'
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", ours, "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_guide_names_every_owner_and_files_that_exist():
    for owner in Owner.__args__:
        assert f"`{owner}`" in ADDING
    for name in re.findall(r"`((?:tests|docs|src)/[\w/.-]+\.\w+)`", ADDING):
        assert (DOCS.parent / name).exists() or name.endswith("entropy.py"), name


def test_the_profile_in_the_docstring_is_one():
    text = textwrap.dedent(profile.__doc__.split("::\n\n")[1].split("\nStrict:")[0])
    assert profile.read_profile(text).kinds["h100"].checks


def test_the_guide_says_from_how_many_hosts_on_a_fleet_compares():
    assert (fleet.FEWEST_VOTERS, fleet.FEWEST_HOSTS) == (4, 8)
    assert "traits from four hosts of\n  a kind on, measures from eight" in ADDING


def test_the_hosts_file_of_the_first_sweep_is_read():
    text, _, bmc = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    tomllib.loads(text)
    hosts = read_toml(text, where="guide")
    assert [(host.name, host.kind, host.user) for host in hosts] == [
        (f"gpu00{number}", "h100", "root") for number in (1, 2, 3)]  # fmt: skip
    asked = read_toml(text.replace("[defaults]\n", bmc), where="guide")
    assert [str(address_of(host)) for host in asked] == [f"ipmi://gpu00{number}-bmc" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "line", re.findall(r"^wholestack health (.*?)(?:\s+#.*)?$", GUIDE.read_text(), re.MULTILINE), ids=str
)
def test_every_command_of_the_first_sweep_is_one(line):
    """Parsed, not run."""
    app.parse_args(shlex.split(line), print_error=False, exit_on_error=False)


def test_the_guide_names_every_owner():
    for owner in Owner.__args__:
        assert f"`{owner}`" in GUIDE.read_text()
