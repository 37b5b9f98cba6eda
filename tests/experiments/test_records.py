"""The records of a rehearsal: what several packages list, they take from here; older run directories stay readable."""

import json
import re
from pathlib import Path

import pytest

from wholestack.experiments.preflight import ProbeResult
from wholestack.experiments.records import PHASE_ORDER, CurvePoint, SuggestionRecord
from wholestack.record import Record, from_json, to_json

SOURCE = Path(__file__).parents[2] / "src" / "wholestack"


def test_the_order_of_the_phases_is_written_down_once() -> None:
    first, second = PHASE_ORDER[:2]
    listed = re.compile(rf'"{first}",\s*"{second}"')
    assert [path.name for path in SOURCE.rglob("*.py") if listed.search(path.read_text())] == ["records.py"]


@pytest.mark.parametrize(
    ("record", "key", "old"),
    [
        (SuggestionRecord(name="a", role="search", number=0, params={}, seed=0, cost_flops=1, after=3), "after", None),
        (
            CurvePoint(
                step=1, tokens=1, cost_flops=1.0, train_bpb=1.0, gradient_norm=1.0, lr=1.0, seconds=1.0,
                cpu_seconds=1.0, at=9.0,
            ),
            "at",
            0.0,
        ),
        (ProbeResult(checksum="", expected_checksum="", rates_flops_s={}, seconds=1.0, device=None), "device", "cpu"),
    ],
)  # fmt: skip
def test_a_record_from_before_a_key_was_kept_is_read(record: Record, key: str, old: object) -> None:
    document = json.loads(to_json(record))
    assert key in document
    del document[key]
    assert getattr(from_json(type(record), json.dumps(document)), key) == old
    assert from_json(type(record), to_json(record)) == record
