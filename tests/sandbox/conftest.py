"""The sandbox of this machine, and the plain process that stands where there is none."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wholestack.sandbox import Isolation, Sandbox
from wholestack.sandbox.image import default_folder, image_of_this_interpreter
from wholestack.sandbox.plain import PlainProcess


@pytest.fixture(scope="session")
def image() -> Path:
    return image_of_this_interpreter(default_folder())


@pytest.fixture(scope="session")
def isolated() -> Sandbox:
    """Not skipped where it is missing: the gate installs bubblewrap."""
    sandbox = Sandbox.open()
    assert sandbox.isolation is Isolation.BUBBLEWRAP
    return sandbox


@pytest.fixture(scope="session")
def plain(image: Path) -> Sandbox:
    return Sandbox(PlainProcess(image))


@pytest.fixture(params=["bubblewrap", "process"])
def sandbox(request: pytest.FixtureRequest, isolated: Sandbox, plain: Sandbox) -> Sandbox:
    return isolated if request.param == "bubblewrap" else plain


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def own_temporary_folder(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files of this test lie, and of nobody else."""
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    return open_folder


@pytest.fixture
def processes_named() -> Callable[[str], list[int]]:
    """Processes of this machine that have a word among the words of their command line."""

    def find(word: str) -> list[int]:
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and word.encode() in _command_line(entry)
        ]

    return find


def _command_line(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
