import json

import numpy as np
import pytest

from wholestack.errors import InputError, WholestackError
from wholestack.evals.backend import ItemScore
from wholestack.evals.comparison import compare_results
from wholestack.evals.loading import load_scored
from wholestack.evals.results import NOT_YET, read_result
from wholestack.evals.scores import ItemScores, summarise

from .scored import synthetic_items, synthetic_scores, write_folder


@pytest.fixture
def folder(tmp_path):
    items = synthetic_items(12)
    return write_folder(tmp_path, items, synthetic_scores(items, seed=1), name="tiny")


def test_a_folder_gives_the_very_arrays_that_its_metrics_are_made_of(folder):
    found, result = load_scored(folder), read_result(folder)
    assert (found.name, found.path) == ("tiny", str(folder))
    assert found.scores.item_set == result.item_set.digest
    for name in ItemScores.__dataclass_fields__:
        if name not in ("positions", "item_set"):
            np.testing.assert_array_equal(getattr(found.scores, name), getattr(result.scores, name))
    assert found.counts_tokens
    stored = json.loads((folder / "metrics.json").read_text())["metrics"]
    assert {each["name"]: each["value"] for each in stored} == {
        each.name: each.value for each in summarise(found.scores).metrics
    }


def test_items_without_a_line_are_not_scored_yet_and_reasons_are_kept(tmp_path):
    items = synthetic_items(6)
    scores = [*synthetic_scores(items[:5], seed=1), ItemScore(id="q5", reason="too long")]
    folder = write_folder(tmp_path, items, scores)
    lines = (folder / "scores.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "scores.jsonl").write_bytes(b"".join(lines[1:]) + b'{"cut')
    assert summarise(load_scored(folder).scores).unscorable == {NOT_YET: 1, "too long": 1}


def test_two_folders_are_compared(tmp_path):
    items = synthetic_items(80)
    results = [
        load_scored(write_folder(tmp_path, items, synthetic_scores(items, seed=gain, gain=gain), name=f"by {gain}"))
        for gain in (0, 4)
    ]
    found = compare_results(results, metric="accuracy_per_token")
    assert (found.pairs[0].verdict, found.clusters) == ("second", 40)
    assert [each.source for each in found.pairs[0].sources] == ["even", "odd"]
    assert found.metric.endswith(f"[{results[0].scores.item_set[:8]}]")


def test_the_metrics_file_of_another_version_decides_nothing(folder):
    before = load_scored(folder)
    (folder / "metrics.json").write_text('{"schema": "scores/1"}')
    np.testing.assert_array_equal(load_scored(folder).scores.nll_nats, before.scores.nll_nats)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", b"{"),
        ("result.json", b'{"schema": "scoring-plan/99"}'),
        ("manifest.json", b"[]"),
        ("items.jsonl", b'{"id": 3}\n'),
        ("scores.jsonl", b'{"id": "q0", "nll_nats": [1.0]}\n'),
        ("scores.jsonl", b'{"id": "q0", "nll_nats": [NaN, 1, 2], "tokens": [1, 1, 1]}\n'),
        ("scores.jsonl", b"garbage\n"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line_that_names_the_file(folder, file, content):
    (folder / file).write_bytes(content)
    with pytest.raises(WholestackError, match=file) as caught:
        load_scored(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_what_is_no_result_is_refused(tmp_path, folder):
    with pytest.raises(InputError, match="does not exist"):
        load_scored(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"neither result\.json, writing\.json nor a results_"):
        load_scored(tmp_path / "empty")
    (tmp_path / "file.json").write_text("{}")
    with pytest.raises(InputError, match="neither"):
        load_scored(tmp_path / "file.json")
    (folder / "items.jsonl").unlink()
    with pytest.raises(WholestackError, match=r"items\.jsonl: cannot be read"):
        load_scored(folder)
