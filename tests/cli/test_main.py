"""The command: light to start, one line for an error, exit codes that scripts can trust."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wholestack import __version__
from wholestack.claim import seal
from wholestack.cli import main as main_module
from wholestack.cli.main import main
from wholestack.cli.output import parse_duration
from wholestack.errors import InputError
from wholestack.finding import finding
from wholestack.runs import RunDirectory, RunManifest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "wholestack", *arguments], capture_output=True, text=True, check=False)


def in_process(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        ("['--help']", ("numpy", "scipy", "torch", "tokenizers", "matplotlib", "wholestack.experiments")),
        ("['--version']", ("numpy", "scipy", "torch", "tokenizers", "matplotlib", "wholestack.experiments")),
        ("['rehearse', '--help']", ("torch",)),
        ("['nonsense']", ("torch",)),
    ],
)
def test_help_and_usage_errors_import_nothing_heavy(arguments: str, absent: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom wholestack.cli.main import main\n"
        f"try: main({arguments})\nexcept SystemExit: pass\n"
        f"print([m for m in {absent} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_version() -> None:
    assert run("--version").stdout == f"wholestack {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "nonsense"),
        (["rehearse", "--budgit", "8m"], "budgit"),
        (["rehearse", "laptp"], "did you mean 'laptop'"),
        (["rehearse", "--budget", "soon"], "'soon' is no duration"),
        (["rehearse", "--budget", "0s"], "no time at all"),
        (["rehearse", "--workers", "0"], "workers is 0"),
        (["rehearse", "--resume", "/nowhere"], "not a run directory"),
        (["rehearse", "--resume", "/nowhere", "--seed", "1"], "--seed cannot be given with --resume"),
        (["rehearse", "--resume", "/nowhere", "--dry-run"], "--dry-run cannot be given with --resume"),
        (["rehearse", "gpu", "--resume", "/nowhere"], "--recipe cannot be given with --resume"),
        (["ready", "/nowhere"], "not a run directory"),
        (["settle", "/nowhere"], "not a run directory"),
        (["why", "/nowhere"], "not a run directory"),
        (["report", "/nowhere"], "not a run directory"),
        (["data", "statement", "/nowhere"], "no corpus"),
        (["data", "only", "/nowhere"], "no source is named"),
    ],
)
def test_bad_usage_and_input_are_exit_code_2_with_one_clear_message(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.fixture
def claims_run(tmp_path: Path) -> tuple[Path, RunDirectory]:
    manifest = RunManifest(kind="rehearsal", created_at=1.0, seed=0, config={}, versions={})
    folder = tmp_path / "run"
    return folder, RunDirectory.create(folder, manifest)


def test_ready_is_go_only_when_every_claim_held(claims_run, capsys: pytest.CaptureFixture[str]) -> None:
    folder, run = claims_run
    with run:
        assert in_process("ready", str(folder)) == 3
        first = run.seal(seal("a", "run", "a is so", quantity="x", predicted=1.0, sealed_at=1.0))
        assert in_process("ready", str(folder)) == 3
        run.report(finding("run", "a", "ok", evidence=["1"], settles=first.id))
        assert in_process("ready", str(folder)) == 0
        second = run.seal(seal("b", "run", "b is so", quantity="x", predicted=1.0, rests_on=[first.id], sealed_at=1.0))
        run.report(finding("run", "b", "fail", evidence=["2"], cause="too high", settles=second.id))
    capsys.readouterr()
    assert in_process("ready", str(folder), "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["go"] is False
    assert {claim["name"]: claim["status"] for claim in document["claims"]} == {"a": "held", "b": "broken"}


def test_why_names_the_broken_claim_and_what_is_ruled_out(claims_run, capsys: pytest.CaptureFixture[str]) -> None:
    folder, run = claims_run
    with run:
        ground = run.seal(seal("data.sources", "run", "data", quantity="x", predicted=1.0, sealed_at=1.0))
        top = run.seal(seal("top", "run", "top", quantity="x", predicted=1.0, rests_on=[ground.id], sealed_at=1.0))
        run.report(finding("run", "data", "ok", evidence=["1"], settles=ground.id))
        run.report(finding("run", "top", "fail", evidence=["7.5"], cause="too high", settles=top.id))
    assert in_process("why", str(folder)) == 1
    printed = capsys.readouterr().out
    assert "BROKEN: top" in printed
    assert "7.5" in printed
    assert "ruled out: data.sources" in printed


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("8m", 480), ("1.5h", 5400), ("2h30m", 9000), (" 1D ", 86400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "8 m", "-3s", "8mm", "1e3", "nan", "0"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no"):
        parse_duration(text)


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -m wholestack --help | true", shell=True, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


@pytest.mark.root
def test_an_out_directory_of_another_user_on_a_read_only_mount_is_one_line(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(frozen)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        done = run("rehearse", "--out", str(frozen / "run"))
    finally:
        subprocess.run(["umount", "-l", str(frozen)], check=True)
    assert done.returncode == 2
    assert "Read-only" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_time_is_read_nowhere_but_at_the_edges() -> None:
    """The clock is an argument in pure code: the packages that judge and fit never read it."""
    source = Path(__file__).parents[2] / "src" / "wholestack"
    assert time.time() > 0
    for package in ("scaling", "search", "evals"):
        for path in (source / package).rglob("*.py"):
            assert "time.time()" not in path.read_text(), path


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("arguments", ["--help", "health checks --json", "health explain nothing"])
def test_a_closed_stream_swallows_what_is_written_and_changes_no_verdict(
    arguments: str, closed: str, tmp_path: Path
) -> None:
    command = f"{sys.executable} -m wholestack {arguments}"
    plain = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    mute = subprocess.run(f"{command} {closed}", shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert mute.returncode == plain.returncode
    assert "Traceback" not in mute.stderr
    assert mute.stdout == ("" if closed.startswith(">") else plain.stdout)


def test_a_character_that_the_terminal_s_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "wholestack", "ready", str(tmp_path / "näin")],
        capture_output=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"n\\xe4in: not a run directory" in done.stderr


def test_an_error_that_quotes_a_huge_input_is_cut_in_its_middle(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_process("ready", "x" * 200_000) == 2
    said = capsys.readouterr().err
    assert len(said) < 5000
    assert "characters ...]" in said
    assert "xxx" in said[-200:] or "not a run directory" in said[-200:]


def test_a_mistake_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Python ends with 1 after an exception, which here means that something is wrong with a machine or a claim."""

    def fails(*_: object, **__: object) -> int:
        raise KeyError("ours")

    monkeypatch.setattr(main_module, "app", fails)
    with pytest.raises(SystemExit) as ended:
        main_module.main(["health", "checks"])
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert "KeyError: 'ours'" in said
    assert said.endswith("please open an issue with the lines above\n")
