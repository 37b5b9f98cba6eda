"""The records of a rehearsal: what several packages list, they take from here."""

import re
from pathlib import Path

from wholestack.experiments.records import PHASE_ORDER

SOURCE = Path(__file__).parents[2] / "src" / "wholestack"


def test_the_order_of_the_phases_is_written_down_once() -> None:
    first, second = PHASE_ORDER[:2]
    listed = re.compile(rf'"{first}",\s*"{second}"')
    assert [path.name for path in SOURCE.rglob("*.py") if listed.search(path.read_text())] == ["records.py"]
