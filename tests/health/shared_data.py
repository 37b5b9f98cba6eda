"""The recorded outputs of real machines beside the project, where they are there; nothing of them is in it."""

from pathlib import Path

import pytest


def shared(*parts: str) -> Path:
    """A file or folder of the shared health data; the test is skipped where the folder is not there."""
    for above in Path(__file__).resolve().parents:
        path = above / "shared" / "data" / "health"
        if path.is_dir():
            return path.joinpath(*parts)
    pytest.skip("the shared health data is not beside the project")
