import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wholestack.errors import InputError
from wholestack.evals.comparison import compare_results
from wholestack.evals.lm_eval import (
    CONTRADICTION,
    NO_CHOICES,
    NO_GOLD,
    NOT_FINITE,
    NOT_UNICODE,
    SEVERAL_GOLD,
    read_lm_eval,
)
from wholestack.evals.loading import load_scored
from wholestack.evals.scores import summarise

from .lm_eval_results import DATE, sample, write_results
from .scored import synthetic_items, synthetic_scores, write_folder


def test_log_likelihoods_lengths_and_right_answers_are_those_of_the_samples(tmp_path):
    write_results(tmp_path / "m", {"toy": [sample(0, [-1.5, -2.5, -9]), sample(1, [-4, -2, -3], target="1")]})
    found = load_scored(tmp_path / "m")
    assert found.name == "org/model"
    assert found.scores.nll_nats.tolist() == [1.5, 2.5, 9, 4, 2, 3]
    assert found.scores.answer_bytes.tolist() == [4, 3, 6] * 2
    assert found.scores.gold.tolist() == [0, 1]
    assert found.scores.item_ids.tolist() == ["toy/0", "toy/1"]
    assert set(found.scores.reasons) == {""}
    assert not found.counts_tokens
    assert summarise(found.scores).answer_bpb == pytest.approx((1.5 + 2) / math.log(2) / 7)


def test_a_model_folder_its_parent_and_the_file_mean_the_same_and_the_newest_run_counts(tmp_path):
    old = [sample(0, [-9, -9.5, -9.7])]
    write_results(tmp_path / "m", {"toy": old}, date="2025-01-02T03-04-05.678901")
    file = write_results(tmp_path / "m", {"toy": [sample(0, [-1.5, -2.5, -9])]})
    found = [load_scored(each).scores.nll_nats.tolist() for each in (tmp_path / "m", tmp_path, file)]
    assert found == [[1.5, 2.5, 9]] * 3
    write_results(tmp_path / "n", {"toy": old})
    with pytest.raises(InputError, match="holds results of 2 models"):
        load_scored(tmp_path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (sample(1, ["nan", "-2.0", "-1.0"], acc=math.nan), NOT_FINITE),
        (sample(1, ["-inf", "-2.0", "-1.0"]), NOT_FINITE),
        (sample(1, [-1, -2, -3], target="7"), NO_GOLD),
        (sample(1, [-1, -2, -3], target="perhaps"), NO_GOLD),
        (sample(1, [-1, -2, -3], target="[0, 2]"), SEVERAL_GOLD),
        (sample(1, [-1, -2, -3], acc=0.0), CONTRADICTION),
        (sample(1, [-1, -2, -3], filtered_resps=[]), NO_CHOICES),
        (sample(1, [-1, -2, -3], filtered_resps=["some text"]), NO_CHOICES),
        (sample(1, [-1, -2, -3], arguments={"gen_args_0": {"arg_0": "Q", "arg_1": {"until": ["x"]}}}), NO_CHOICES),
        (sample(1, [-1, -2, -3], context="half a pair \ud800"), NOT_UNICODE),
    ],
)
def test_what_cannot_be_compared_is_counted_with_a_reason_and_never_a_zero(tmp_path, line, reason):
    write_results(tmp_path / "m", {"toy": [sample(0, [-1.5, -2.5, -9]), line]})
    found = load_scored(tmp_path / "m")
    assert found.scores.reasons.tolist() == ["", reason]
    assert summarise(found.scores).unscorable == {reason: 1}


def test_a_target_may_be_the_text_of_a_choice(tmp_path):
    write_results(tmp_path / "m", {"toy": [sample(0, [-3, -2.5, -1], target="maybe", acc=1.0)]})
    assert load_scored(tmp_path / "m").scores.gold.tolist() == [2]


def test_digits_are_an_index_unless_the_task_s_own_accuracy_says_that_they_are_the_text_of_a_choice(tmp_path):
    choices = ("1", "2", "0")
    best = [[-1, -2, -3], [-2, -1, -3], [-3, -2, -1]]
    by_text = [sample(n, best[n], target=choices[n], choices=choices, acc=1.0) for n in range(3)]
    by_index = [sample(n, best[n], target=str(n), choices=choices, acc=1.0) for n in range(3)]
    write_results(tmp_path / "m", {"text": by_text, "index": by_index})
    found = load_scored(tmp_path / "m")
    assert set(found.scores.reasons) == {""}
    assert found.scores.gold.tolist() == [0, 1, 2] * 2


@pytest.mark.parametrize(("acc", "reason", "gold"), [(1.0, "", 1), (0.0, "", 0), (None, NO_GOLD, 0)])
def test_of_two_contexts_with_one_continuation_the_accuracy_tells_which_is_right(tmp_path, acc, reason, gold):
    line = sample(0, [-3, -2], target="was late.", choices=("was late.", "was late."), acc=acc)
    line["arguments"]["gen_args_0"]["arg_0"], line["arguments"]["gen_args_1"]["arg_0"] = "Ann", "Bea"
    write_results(tmp_path / "m", {"winogrande": [line, sample(1, [-1, -2, -3])]})
    found = load_scored(tmp_path / "m")
    assert (found.scores.reasons[0], found.scores.gold[0]) == (reason, gold)


def test_choices_scored_once_more_without_context_are_left_out(tmp_path):
    line = sample(0, [-1, -2, -3])
    twice = {f"gen_args_{at + 3}": {"arg_0": "", "arg_1": each["arg_1"]} for at, each in enumerate(
        line["arguments"].values()
    )}  # fmt: skip
    line["arguments"] |= twice
    line["filtered_resps"] += [["-7.0", "False"]] * 3
    write_results(tmp_path / "m", {"toy": [line]})
    assert load_scored(tmp_path / "m").scores.nll_nats.tolist() == [1, 2, 3]


def test_only_the_first_filter_is_read_and_blank_lines_are_passed_over(tmp_path):
    lines = [sample(0, [-1, -2, -3]), sample(0, [-1, -2, -3], filter="other")]
    path = write_results(tmp_path / "m", {"toy": lines})
    samples = path.parent / f"samples_toy_{DATE}.jsonl"
    samples.write_text("\n" + samples.read_text() + "\n\n")
    assert load_scored(tmp_path / "m").scores.item_ids.tolist() == ["toy/0"]


def test_tasks_are_sources_and_a_field_of_the_documents_makes_clusters(tmp_path):
    tasks = {name: [sample(n, [-1, -2, -3], context=f"{name} {n}") for n in range(6)] for name in ("a", "b_c")}
    write_results(tmp_path / "m", tasks)
    alone, together = load_scored(tmp_path / "m"), load_scored(tmp_path / "m", cluster="passage")
    assert sorted(set(alone.scores.sources.tolist())) == ["a", "b_c"]
    assert len(np.unique(alone.scores.clusters)) == 12
    assert len(np.unique(together.scores.clusters)) == 6
    with pytest.raises(InputError, match="no field 'chapter'"):
        load_scored(tmp_path / "m", cluster="chapter")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: next(folder.glob("samples*")).unlink(), "has no samples_"),
        (lambda folder: next(folder.glob("samples*")).write_text("{"), r"samples_toy_.*:1: is damaged: not JSON"),
        (lambda folder: next(folder.glob("samples*")).write_text("[]\n"), ":1: expected an object, got list"),
        (lambda folder: next(folder.glob("samples*")).write_text('{"doc_id": 0}\n'), "key 'arguments' is missing"),
        (lambda folder: next(folder.glob("samples*")).write_bytes(b"\xff\xfe"), "not UTF-8"),
        (lambda folder: next(folder.glob("samples*")).write_text(""), "holds no scored item"),
        (lambda folder: next(folder.glob("results*")).write_text("no"), "results_.*:1: is damaged"),
        (
            lambda folder: next(folder.glob("results*")).unlink(),
            "neither result.json, writing.json nor a results_",
        ),
    ],
)
def test_damaged_results_are_refused_in_one_line(tmp_path, damage, message):
    write_results(tmp_path / "m", {"toy": [sample(0, [-1, -2, -3])]})
    damage(tmp_path / "m")
    with pytest.raises(InputError, match=message) as caught:
        load_scored(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_a_document_twice_and_generations_only_are_refused(tmp_path):
    write_results(tmp_path / "m", {"toy": [sample(0, [-1, -2, -3])] * 2})
    with pytest.raises(InputError, match=":2: document 0 is in it twice"):
        load_scored(tmp_path / "m")
    text = sample(0, [-1, -2, -3], filtered_resps=["42"], arguments={"gen_args_0": {"arg_0": "Q", "arg_1": {}}})
    write_results(tmp_path / "g", {"toy": [text]})
    with pytest.raises(InputError, match="no task asks for a choice"):
        load_scored(tmp_path / "g")


def test_a_result_of_the_harness_meets_one_of_ours_on_the_same_items(tmp_path):
    items = synthetic_items(20)
    scores = synthetic_scores(items, seed=1)
    ours = load_scored(write_folder(tmp_path / "ours", items, scores))
    lines = [
        sample(
            n,
            [-each for each in score.nll_nats],
            target=str(item.gold),
            context=item.context,
            choices=item.choices,
        )
        for n, (item, score) in enumerate(zip(items, scores, strict=True))
    ]
    write_results(tmp_path / "theirs", {"toy": lines})
    for pair in ([ours, load_scored(tmp_path / "theirs")], [load_scored(tmp_path / "theirs"), ours]):
        found = compare_results(pair)
        assert (found.items, found.clusters, found.pairs[0].verdict) == (20, 10, "same")


SCRIPT = """
import hashlib, json, os, sys
import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

class Hashing(LM):
    def loglikelihood(self, requests, **_):
        def one(context, answer):
            return -len(answer) * (0.5 + int(hashlib.sha256((context + answer).encode()).hexdigest()[:8], 16) / 2**32)
        return [(one(*request.args), False) for request in requests]
    def loglikelihood_rolling(self, *_, **__): raise NotImplementedError
    def generate_until(self, *_, **__): raise NotImplementedError

folder = sys.argv[1]
tracker = EvaluationTracker(output_path=folder + "/out")
tracker.general_config_tracker.log_experiment_args("dummy", "pretrained=org/dummy", None, None, False)
found = lm_eval.simple_evaluate(
    model=Hashing(), tasks=["toy_index", "toy_text", "toy_contexts"], bootstrap_iters=0, log_samples=True,
    task_manager=TaskManager(include_path=folder, include_defaults=False),
)
samples = found.pop("samples")
tracker.save_results_aggregated(results=found, samples=samples)
for task, lines in samples.items():
    tracker.save_results_samples(task_name=task, samples=lines)
"""

TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/data.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: {text}
doc_to_choice: {choice}
doc_to_target: {target}
metric_list: [{{metric: acc}}, {{metric: acc_norm}}, {{metric: brier_score}}]
"""


@pytest.mark.heavy
def test_what_the_harness_itself_writes_is_read_with_its_own_accuracy(tmp_path):
    pytest.importorskip("lm_eval")
    documents = [
        {"question": f"{n} and {n}?", "choices": [f"it is {n + 1}", f"{2 * n}", f"{n}é"], "i": n % 3} for n in range(40)
    ]
    for document in documents:
        document["text"] = document["choices"][document["i"]]
        document["contexts"] = [f"Ann {document['question']}", f"Bea {document['question']}"]
        document["which"] = document["i"] % 2
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    question = '"Q: {{question}}\\nA:"'
    for name, text, choice, target in (
        ("toy_index", question, "choices", "i"),
        ("toy_text", question, "choices", "text"),
        ("toy_contexts", "which", "contexts", "text"),
    ):
        task = TASK.format(name=name, text=text, choice=choice, target=target, folder=tmp_path)
        (tmp_path / f"{name}.yaml").write_text(task)
    offline = {"HF_HOME": str(tmp_path / "hf"), "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, **offline},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = load_scored(tmp_path / "out")
    results = json.loads(next(Path(tmp_path / "out").rglob("results_*.json")).read_text())["results"]
    for task in ("toy_index", "toy_text", "toy_contexts"):
        part = found.scores.take(np.flatnonzero(found.scores.sources == task))
        summary = summarise(part)
        assert summary.unscorable == {}
        assert summary.metric("accuracy_raw").value == pytest.approx(results[task]["acc,none"])
        assert summary.metric("brier_raw").value == pytest.approx(results[task]["brier_score,none"])


@pytest.mark.parametrize(
    "changed",
    [
        {"target": "²"},
        {"target": "9" * 5000},
        {"arguments": None},
        {"arguments": 5},
        {"arguments": {"gen_args_x": {"arg_0": "a", "arg_1": "b"}}},
        {"filtered_resps": [[10**400], [1]]},
    ],
    ids=lambda changed: str(changed)[:30],
)
def test_a_sample_of_another_form_is_a_counted_reason_and_spoils_nothing(changed, tmp_path):
    sound = {
        "doc_id": 0, "target": 0, "arguments": [["c", " a"], ["c", " b"]], "filtered_resps": [[-1.0], [-2.0]],
    }  # fmt: skip
    lines = "".join(json.dumps(each) + "\n" for each in (sound, {**sound, "doc_id": 1, **changed}))
    (tmp_path / "samples_t_2026-01-01T00-00-00.jsonl").write_text(lines)
    summary = tmp_path / "results_2026-01-01T00-00-00.json"
    summary.write_text('{"config": ["no", "object"]}')
    found = read_lm_eval(summary)
    assert (len(found.scores.item_ids), [bool(each) for each in found.scores.reasons]) == (2, [False, True])
