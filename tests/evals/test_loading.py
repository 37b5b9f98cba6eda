import json

import pytest

from wholestack.errors import InputError, WholestackError
from wholestack.evals.backend import ItemScore
from wholestack.evals.comparison import compare_results
from wholestack.evals.loading import NOT_YET, load_scored
from wholestack.evals.scores import summarise

from .scored import synthetic_items, synthetic_scores, write_folder


def test_a_folder_gives_the_numbers_clusters_and_the_digest_of_its_items(tmp_path):
    items = synthetic_items(12)
    scores = synthetic_scores(items, seed=1)
    found = load_scored(write_folder(tmp_path / "r", items, scores[::-1], name="tiny"))
    assert found.name == "tiny"
    assert found.scores.item_set == json.loads((tmp_path / "r/result.json").read_text())["item_set"]
    assert found.scores.item_ids.tolist() == [item.id for item in items]
    assert found.scores.nll_nats.tolist() == [each for score in scores for each in score.nll_nats]
    assert found.scores.answer_bytes[:3].tolist() == [4, 3, 9]
    assert found.scores.clusters.tolist()[0] == found.scores.clusters.tolist()[1] != found.scores.clusters.tolist()[2]
    assert found.counts_tokens
    assert summarise(found.scores).scored == 12


def test_items_without_a_line_are_not_scored_yet_and_reasons_are_kept(tmp_path):
    items = synthetic_items(6)
    scores = [*synthetic_scores(items[:4], seed=1), ItemScore(id="q4", reason="too long")]
    found = load_scored(write_folder(tmp_path / "r", items, scores))
    assert summarise(found.scores).unscorable == {NOT_YET: 1, "too long": 1}


def test_two_folders_are_compared(tmp_path):
    items = synthetic_items(80)
    results = [
        load_scored(write_folder(tmp_path / f"{gain}", items, synthetic_scores(items, seed=gain, gain=gain)))
        for gain in (0, 4)
    ]
    found = compare_results(results, metric="accuracy_per_token")
    assert (found.pairs[0].verdict, found.clusters) == ("second", 40)
    assert [each.source for each in found.pairs[0].sources] == ["even", "odd"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("result.json", b"{", "result.json: is damaged"),
        ("result.json", b"[]", "expected an object, got list"),
        ("metrics.json", b'{"schema": "scores/99"}', "schema is 'scores/99', this version reads 'scores/1'"),
        ("items.jsonl", b'{"id": 3}\n', "items.jsonl: is damaged"),
        ("scores.jsonl", b'{"id": "q0", "nll_nats": [1.0]}\n', "item 'q0' has 3 choices and 1 scores"),
        ("scores.jsonl", b'{"id": "z"}\n', "item 'z' is not in items.jsonl"),
        ("scores.jsonl", b'{"id": "q0", "nll_nats": [NaN, 1, 2]}\n', "scores.jsonl:1: not JSON"),
        ("scores.jsonl", b"garbage\n", "scores.jsonl:1: not JSON"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line_that_names_the_file(tmp_path, file, content, message):
    items = synthetic_items(4)
    folder = write_folder(tmp_path / "r", items, synthetic_scores(items, seed=1))
    (folder / file).write_bytes(content)
    with pytest.raises(WholestackError, match=message) as caught:
        load_scored(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_scored(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"neither result\.json nor a results_"):
        load_scored(tmp_path)
    (tmp_path / "file.json").write_text("{}")
    with pytest.raises(InputError, match="neither"):
        load_scored(tmp_path / "file.json")
    items = synthetic_items(2)
    folder = write_folder(tmp_path / "r", items, [])
    (folder / "items.jsonl").unlink()
    with pytest.raises(InputError, match=r"items\.jsonl: cannot be read"):
        load_scored(folder)
