"""One real tiny rehearsal a test process, shared by the tests that only read it."""

import time
from pathlib import Path

import pytest

from tests.experiments.tiny import tiny_recipe
from wholestack.experiments import rehearsal


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a rehearsal that ran to its end."""
    folder = tmp_path_factory.mktemp("tiny")
    run = rehearsal.create(folder / "run", tiny_recipe(folder / "text"), budget_s=600, seed=3, at=time.time())
    with run:
        rehearsal.rehearse(run)
    return folder / "run"
