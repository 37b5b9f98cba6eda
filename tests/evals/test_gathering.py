"""Numbers of several models are brought together where they are of the same items, and refused by name where not."""

import dataclasses

import numpy as np
import pytest

from tests.evals.scored import synthetic_items, synthetic_scores, write_folder
from tests.evals.written.material import grader, sums, written_folder
from wholestack.errors import InputError
from wholestack.evals.curves import judge_curves
from wholestack.evals.gathering import read_checkpoints, read_models
from wholestack.evals.measured import directions_of, read_numbers, read_share_right
from wholestack.evals.proxies import beside_target, column_ranked, measure_proxies
from wholestack.evals.results import read_result

ITEMS = synthetic_items(40)


def scored(place, name, *, items=ITEMS, gain=0.0):
    return write_folder(place / "scored", items, synthetic_scores(items, seed=1, gain=gain), name=name)


def with_examples(items):
    return [dataclasses.replace(item, context=f"An example. {item.context}") for item in items]


def test_a_written_folder_is_a_row_with_its_share_and_error(tmp_path):
    right = [n % 4 == 0 for n in range(40)]
    (row,) = read_numbers(written_folder(tmp_path, "tiny", sums(40), right))
    error = np.std(right, ddof=1) / np.sqrt(40)
    assert (row.model, row.values, row.errors) == ("tiny", {"share_right": 0.25}, {"share_right": pytest.approx(error)})


def test_scores_and_written_answers_of_a_checkpoint_stand_at_one_place(tmp_path):
    inputs, curve = [], [0, 0, 1, 2, 20, 36, 38]
    for step, right in enumerate(curve):
        inputs.append(f"{10**step}M={scored(tmp_path, f'step {step}', gain=0.5 * step)}")
        inputs.append(
            f"{10**step}M={written_folder(tmp_path, f'step {step}', sums(40), [n < right for n in range(40)])}"
        )
    found = read_checkpoints(inputs, x="tokens")
    assert [row.values["tokens"] for row in found.rows] == [10.0 ** (6 + step) for step in range(7)]
    assert [row.values["share_right"] for row in found.rows] == [right / 40 for right in curve]
    first = read_result(scored(tmp_path, "step 0")).summary.answer_bpb
    assert found.rows[0].values["answer_bpb"] == first
    report = judge_curves(found.rows, directions_of(found.rows, wanted=("share_right", "answer_bpb")), x="tokens")
    assert {each.metric: each.better for each in report.curves} == {"share_right": "higher", "answer_bpb": "lower"}
    assert {each.metric: each.shape for each in report.curves}["share_right"] in ("jumps", "accelerates")


def test_a_written_score_is_a_target_and_a_metric(tmp_path):
    inputs = []
    for place in range(6):
        inputs.append(str(scored(tmp_path, f"m{place}", gain=2.0 * place)))
        inputs.append(str(written_folder(tmp_path, f"m{place}", sums(40), [n < 6 * place for n in range(40)])))
    rows = read_models(inputs)
    assert [row.model for row in rows] == [f"m{place}" for place in range(6)]
    ranked = column_ranked(rows, {"answer_bpb": "lower"}, target="share_right")
    found = measure_proxies(ranked, at=0.0, rng=np.random.default_rng(0)).agreements[0]
    assert (found.target, found.models, found.share.value) == ("share_right", 6, 1.0)
    turned = column_ranked(rows, {"share_right": "higher"}, target="answer_bpb")
    assert measure_proxies(turned, at=0.0, rng=np.random.default_rng(0)).agreements[0].metric == "share_right"
    with pytest.raises(InputError, match="no column 'vibes'"):
        column_ranked(rows, {"answer_bpb": "lower"}, target="vibes")


@pytest.mark.parametrize("read", [read_models, lambda inputs, **by: read_checkpoints(inputs, x="x", **by).rows])
def test_folders_of_different_items_are_refused_by_name(tmp_path, read):
    def named(*folders):
        return [f"{place + 1}={folder}" for place, folder in enumerate(folders)]

    one, part = scored(tmp_path, "one"), scored(tmp_path, "two", items=ITEMS[:30])
    shown = scored(tmp_path, "three", items=with_examples(ITEMS))
    for by in ("content", "id"):
        with pytest.raises(InputError, match=f"{one} and {part} are of different items"):
            read(named(one, part), by=by)
    with pytest.raises(InputError, match=f"{one} and {shown} ask the same in other prompts.*--by id"):
        read(named(one, shown))
    assert len(read(named(one, shown), by="id")) == 2
    write, judged = (
        written_folder(tmp_path, name, sums(12), [True] * 6 + [False] * 6, **more)
        for name, more in (("a", {}), ("b", {"judge": grader("last_number", "exact")}))
    )
    longer = written_folder(tmp_path, "c", sums(12), [True] * 6 + [False] * 6, max_tokens=64)
    with pytest.raises(InputError, match="are of different items"):
        read(named(write, judged), by="id")
    with pytest.raises(InputError, match=r"written in another way.*--by id"):
        read(named(write, longer))
    assert len(read(named(one, write, longer), by="id")) == 3


def test_the_order_of_items_and_the_other_purpose_are_no_difference(tmp_path):
    one, turned = scored(tmp_path, "one"), scored(tmp_path, "two", items=ITEMS[::-1])
    written = written_folder(tmp_path, "three", sums(12), [True] * 6 + [False] * 6)
    assert len(read_models([str(one), str(turned), str(written)])) == 3


def test_two_scorings_of_one_model_are_two_rows_and_refused_later(tmp_path):
    one = scored(tmp_path, "one")
    rows = read_models([f"m={one}", f"m={one}"])
    with pytest.raises(InputError, match="model 'm' stands also at"):
        beside_target([], rows, {"answer_bpb": "lower"}, target="t", better="higher")


def test_the_error_of_a_target_follows_from_its_number_where_all_answers_are_alike(tmp_path):
    mixed = read_share_right(written_folder(tmp_path, "a", sums(40), [n % 4 == 0 for n in range(40)]))
    assert (mixed.value, mixed.n) == (0.25, None)
    assert mixed.error == pytest.approx(np.sqrt(0.25 * 0.75 / 39))
    alike = read_share_right(written_folder(tmp_path, "b", sums(40, group="{half}"), [True] * 40))
    assert (alike.value, alike.error, alike.n) == (1.0, None, 20)
