"""Run directories: made once, one live writer, readable by anybody at any time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wholestack.claim import seal
from wholestack.errors import RunBusyError, RunDirectoryError
from wholestack.finding import finding
from wholestack.runs import RunDirectory, RunManifest, RunReader

MANIFEST = RunManifest(kind="test", created_at=1.0, seed=7, config={"a": 1}, versions={"python": "3"})
HOLD = """
import sys, pathlib
from wholestack.runs import RunDirectory
run = RunDirectory.resume(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_what_was_written_is_read_back_by_a_reader_without_a_lock(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", MANIFEST) as run:
        claim = run.seal(seal("a", "run", "a holds", quantity="x", predicted=1.0, sealed_at=2.0))
        found = run.report(finding("run", "check", "ok", evidence=["1"], settles=claim.id))
        reader = RunReader(tmp_path / "run")
        assert reader.manifest == MANIFEST
        assert reader.claims() == [claim]
        assert reader.findings() == [found]


def test_a_folder_that_is_not_empty_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunDirectoryError, match="choose another --out"):
        RunDirectory.create(tmp_path, MANIFEST)
    RunDirectory.create(tmp_path / "run", MANIFEST).close()
    with pytest.raises(RunDirectoryError, match="--resume"):
        RunDirectory.create(tmp_path / "run", MANIFEST)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    for opener in (RunReader, RunDirectory.resume):
        with pytest.raises(RunDirectoryError, match=r"run\.json"):
            opener(tmp_path)


def test_a_second_live_process_is_refused_and_a_killed_one_leaves_the_way_free(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "run", MANIFEST).close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RunBusyError, match=str(holder.pid)):
            RunDirectory.resume(tmp_path / "run")
        RunReader(tmp_path / "run")
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    RunDirectory.resume(tmp_path / "run").close()


def test_a_name_that_is_taken_by_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunDirectoryError, match="cannot be made"):
        RunDirectory.create(tmp_path / "file" / "run", MANIFEST)


@pytest.mark.root
def test_a_read_only_mount_is_one_clear_error(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    folder = tmp_path / "frozen"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        with pytest.raises(RunDirectoryError, match="Read-only"):
            RunDirectory.create(folder / "run", MANIFEST)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
