"""One sandbox for all tests, and items of every kind and level that are made once."""

import pytest

from wholestack.codetasks.generating import cells_of, make_items
from wholestack.codetasks.item import CodeItem
from wholestack.sandbox import Sandbox

EACH = 20


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    return Sandbox.open()


@pytest.fixture(scope="session")
def items(sandbox: Sandbox) -> list[CodeItem]:
    """Twenty of every kind and level."""
    cells = cells_of()
    return list(make_items(cells, count=EACH * len(cells), seed=11, run=sandbox.run))
