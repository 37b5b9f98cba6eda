"""Folders of results: named by what is in them and by a key, and held by one process at a time."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wholestack.errors import RunDirectoryError
from wholestack.runs import lock_folder


def keyed_folder(out: Path, stem: str, model: str, key: str) -> Path:
    """Where a result lies: ``OUT/<stem>-<model>-<first 8 digits of the key>``.

    Args:
        out: Folder of results.
        stem: How the items are called, for instance the name of their file.
        model: How the model is called.
        key: Hash of everything that reaches a number.
    """
    return out / f"{_plain(stem)}-{_plain(model)}-{key[:8]}"


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """The folder, made if it is missing, and no other process in it.

    Raises:
        RunDirectoryError: it cannot be made.
        RunBusyError: a live process is at work in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"{folder}: cannot be made: {error.strerror}", remedy="choose another --out") from error
    handle = lock_folder(folder)
    try:
        yield folder
    finally:
        os.close(handle)


def _plain(name: str) -> str:
    """A name as part of a folder's name: the last part of a path, letters that every file system takes."""
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return re.sub(r"[^A-Za-z0-9._]+", "-", last).strip("-.")[:48] or "model"
