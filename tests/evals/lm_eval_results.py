"""Synthetic results in the layout of lm-evaluation-harness 0.4.13; written by us, no model was run.

``test_lm_eval.py`` also lets the harness itself write some, where it is installed.
"""

import hashlib
import json

DATE = "2026-01-02T03-04-05.678901"


def sample(number, likelihoods, *, target="0", context=None, choices=("yes", "no", "maybe"), **changes):
    """One line of a samples file; likelihoods are written as texts, as the harness does."""
    context = f"Q: number {number}?\nA:" if context is None else context
    best = max(range(len(likelihoods)), key=lambda at: float(likelihoods[at]))
    line = {
        "doc_id": number,
        "doc": {"question": f"number {number}?", "passage": f"passage {number // 2}"},
        "target": target,
        "arguments": {f"gen_args_{at}": {"arg_0": context, "arg_1": f" {each}"} for at, each in enumerate(choices)},
        "resps": [[[str(each), "False"]] for each in likelihoods],
        "filtered_resps": [[str(each), "False"] for each in likelihoods],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": hashlib.sha256(str(number).encode()).hexdigest(),
        "prompt_hash": hashlib.sha256(context.encode(errors="replace")).hexdigest(),
        "target_hash": hashlib.sha256(target.encode()).hexdigest(),
        "acc": float(str(best) == target),
    }
    return line | changes


def write_results(folder, tasks, *, model="org/model", date=DATE):
    """``results_*.json`` and one samples file a task."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = {"results": {task: {"alias": task} for task in tasks}, "model_name": model, "config": {"model": "hf"}}
    path = folder / f"results_{date}.json"
    path.write_text(json.dumps(summary))
    for task, samples in tasks.items():
        lines = "".join(json.dumps(each) + "\n" for each in samples)
        (folder / f"samples_{task}_{date}.jsonl").write_text(lines)
    return path
