"""Bad input and a full disk, through a whole rehearsal: one clear error, and where it can be a clean resume."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.test_rehearsal import check_complete
from tests.experiments.tiny import tiny_recipe, write_text
from wholestack.data.corpus import Corpus
from wholestack.errors import InputError, RunDirectoryError
from wholestack.experiments import rehearsal
from wholestack.experiments.progress import Progress
from wholestack.experiments.recipe import Recipe, SourceSpec

pytestmark = pytest.mark.heavy


def run_data_of(recipe: Recipe, folder: Path) -> Corpus:
    """Rehearse up to the first trial, which the watcher refuses."""

    class EnoughError(Exception):
        pass

    def stop(moment: Progress) -> None:
        if moment.phase == "evaluation":
            raise EnoughError

    with rehearsal.create(folder, recipe, budget_s=600, seed=0, at=time.time()) as run, pytest.raises(EnoughError):
        rehearsal.rehearse(run, watch=stop)
    return Corpus.open(folder / "data")


def with_source(recipe: Recipe, spec: SourceSpec) -> Recipe:
    return replace(recipe, sources=(recipe.sources[0], spec), prose_source=spec.name)


def test_a_folder_that_is_not_there_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    recipe = with_source(tiny_recipe(tmp_path / "text"), SourceSpec(kind="folder", name="gone", path="/no/such/folder"))
    with pytest.raises(InputError, match="/no/such/folder"):
        rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=time.time())
    assert not (tmp_path / "run").exists()


def test_an_item_file_with_a_wrong_line_is_refused_by_line_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"context": "a", "choices": ["b", "c"], "gold": 0}\n{"context": 1}\n')
    recipe = tiny_recipe(tmp_path / "text", items=str(tmp_path / "items.jsonl"))
    with pytest.raises(InputError, match=r"items\.jsonl:"):
        rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=time.time())
    assert not (tmp_path / "run").exists()


def test_a_folder_without_text_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    recipe = with_source(
        tiny_recipe(tmp_path / "text"),
        SourceSpec(kind="folder", name="empty", path=str(tmp_path / "empty"), licence="CC0-1.0"),
    )
    with (
        rehearsal.create(tmp_path / "run", recipe, budget_s=600, seed=0, at=time.time()) as run,
        pytest.raises(InputError, match="empty"),
    ):
        rehearsal.rehearse(run)


def test_files_that_are_not_utf8_or_have_no_licence_are_refused_by_name_and_counted(tmp_path: Path) -> None:
    folder = write_text(tmp_path / "mine", kind="mine")
    (folder / "latin.txt").write_bytes("caf\u00e9 ".encode("latin-1") * 50)
    recipe = with_source(
        tiny_recipe(tmp_path / "text"),
        SourceSpec(kind="folder", name="mine", path=str(folder), licence="CC0-1.0"),
    )
    corpus = run_data_of(recipe, tmp_path / "run")
    assert [(each.path, each.reason) for each in corpus.refused()] == [("latin.txt", "not_utf8")]
    statement = (tmp_path / "run" / "data-statement.txt").read_text()
    assert "latin.txt" in statement
    assert "CC0-1.0" in statement
    assert corpus.not_from(["notes", "mine"]) == []
    assert corpus.not_from(["notes"]) != []
    lawless = with_source(recipe, SourceSpec(kind="folder", name="mine", path=str(folder)))
    with pytest.raises(InputError, match="mine"):
        run_data_of(lawless, tmp_path / "run2")


@pytest.mark.root
def test_a_disk_that_fills_up_is_one_clear_error_and_with_space_again_it_goes_on(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        folder, filler = disk / "run", disk / "filler"
        recipe = tiny_recipe(tmp_path / "text")

        def fill(moment: Progress) -> None:
            if moment.phase == "search" and moment.done >= 3 and not filler.exists():
                with filler.open("wb") as file, pytest.raises(OSError, match="No space"):
                    while True:
                        file.write(b"\0" * (1 << 16))
                        file.flush()

        with (
            rehearsal.create(folder, recipe, budget_s=900, seed=0, at=time.time()) as run,
            pytest.raises(RunDirectoryError, match="space"),
        ):
            rehearsal.rehearse(run, watch=fill)
        filler.unlink()
        with rehearsal.resume(folder) as run:
            rehearsal.rehearse(run)
        check_complete(folder)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
