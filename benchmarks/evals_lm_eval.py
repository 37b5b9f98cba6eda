"""Our scorer against lm-evaluation-harness: the same local model, the same requests, separate processes of one run.

    python benchmarks/evals_lm_eval.py              # contexts of about 60 tokens, 3 seeds, 3 rounds: some 10 minutes
    python benchmarks/evals_lm_eval.py --context 512 --seeds 1

For each seed a Llama of 0.93M random weights (width 128, 2 layers, BPE of 4,096 trained on the questions) is saved in a
temporary folder, with 500 four-choice items: of MMLU-Redux where ``../shared/data/evals/mmlu_redux.jsonl`` is there,
made up where not. With ``--context`` each question gets other text of its own in front, up to about so many tokens;
with ``--few-shot`` all get the same text. The peer runs ``HFLM.loglikelihood`` at several batch sizes, ours
``Backend.score``; tokenisation is inside the time of both. Each runs in a process with one thread; times are CPU
seconds of that process, memory is its largest resident size. Both take turns, some rounds a seed, and the least time
of each counts: on a machine that others use too, more is other people's work.

The two differ by rule where a token spans the join of context and choice; such items are counted and left out of the
comparison of numbers. Printed is one JSON document.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

MOST_ITEMS = 500
VOCABULARY = 4096
MMLU = Path(__file__).resolve().parents[2] / "shared" / "data" / "evals" / "mmlu_redux.jsonl"
LETTERS = "bdfgklmnprstvz"


def questions() -> list[dict[str, Any]]:
    """Questions with four different choices."""
    if MMLU.is_file():
        rows = [json.loads(line) for line in MMLU.read_text().split("\n") if line]
        return [
            {"question": row["question"], "choices": row["choices"]}
            for row in rows
            if len(set(row["choices"])) == 4 and all(choice.strip() for choice in row["choices"])
        ]
    rng = random.Random(0)
    words = ["".join(rng.choice(LETTERS) + rng.choice("aeiou") for _ in range(rng.randint(1, 3))) for _ in range(3000)]

    def text(least: int, most: int) -> str:
        return " ".join(rng.choices(words, k=rng.randint(least, most)))

    return [{"question": f"{text(8, 45)}?", "choices": [text(2, 9) for _ in range(4)]} for _ in range(1500)]


def make_model(folder: Path, seed: int, texts: list[str]) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        initializer_range=0.15,
        eos_token_id=0,
        bos_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def make_items(folder: Path, rows: list[dict[str, Any]], items: int, context: int, few_shot: bool) -> None:
    """``items.jsonl``: a question with so much other text in front that the context has about ``context`` tokens."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    filler = tokenizer.encode(" ".join(row["question"] for row in rows[MOST_ITEMS:])).ids
    lines = []
    for number, row in enumerate(rows[:items]):
        question = f"Question: {row['question']}\nAnswer:"
        more = max(0, context - len(tokenizer.encode(question).ids)) if context > 100 else 0
        start = 0 if few_shot else (number * 211) % (len(filler) - more)
        front = tokenizer.decode(filler[start : start + more]).replace("\ufffd", "") + "\n" if more else ""
        lines.append(json.dumps({"context": front + question, "choices": row["choices"], "gold": 0, "id": str(number)}))
    (folder / "items.jsonl").write_text("\n".join(lines))


def read_rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().split("\n") if line]


def stand_in_for_accelerate() -> None:
    """Where accelerate is not installed: the harness imports these names and uses none for a model handed over."""
    if find_spec("accelerate") is None:
        stand_in, inner = ModuleType("accelerate"), ModuleType("accelerate.utils")
        for name in ("Accelerator", "InitProcessGroupKwargs", "find_executable_batch_size"):
            setattr(stand_in, name, None)
        setattr(inner, "get_max_memory", None)  # noqa: B010  # a module has no such attribute for the type checker
        sys.modules |= {"accelerate": stand_in, "accelerate.utils": inner}


def peer(folder: Path, batch_size: int) -> dict[str, Any]:
    """lm-evaluation-harness on the requests."""
    import torch
    from lm_eval.api.instance import Instance
    from transformers import AutoModelForCausalLM, AutoTokenizer

    stand_in_for_accelerate()
    from lm_eval.models.huggingface import HFLM

    torch.set_num_threads(1)
    loaded: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = HFLM(pretrained=loaded.eval(), tokenizer=tokenizer, batch_size=batch_size, max_length=2048)
    rows = read_rows(folder)
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(row["context"], f" {choice}"), idx=number)
        for number, row in enumerate(rows)
        for choice in row["choices"]
    ]
    start = time.process_time()
    found = model.loglikelihood(requests, disable_tqdm=True)
    return {"start_cpu_s": start, "cpu_s": time.process_time() - start, "log_p": [float(each[0]) for each in found]}


def ours(folder: Path, batch_size: int) -> dict[str, Any]:
    from wholestack.evals.backend import Opening
    from wholestack.evals.items import read_items
    from wholestack.evals.models.opening import open_backend

    backend = open_backend(str(folder), Opening(threads=1, batch_size=batch_size))
    items = read_items(folder / "items.jsonl").items
    start = time.process_time()
    found = list(backend.score(items))
    taken = time.process_time() - start
    return {
        "start_cpu_s": start,
        "cpu_s": taken,
        "log_p": [-each for score in found for each in score.nll_nats],
        "spanning": [score.spanning for score in found],
        "unscorable": sum(score.reason != "" for score in found),
        "positions": sum(score.positions for score in found),
        "tokens": sum(sum(score.tokens) for score in found),
    }


def light(folder: Path, batch_size: int) -> dict[str, Any]:
    """What an import costs before torch is needed."""
    start = time.process_time()
    import wholestack.evals.models.opening  # noqa: F401  # the import is what is timed

    return {"cpu_s": time.process_time() - start, "torch": "torch" in sys.modules}


def peak_rss_mb() -> float:
    """Of this process alone; what ``getrusage`` says begins with the size of the process that started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


PARTS = {"peer": peer, "ours": ours, "light": light}


def run(part: str, folder: Path, batch_size: int = 1) -> dict[str, Any]:
    """One part in a process of its own."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, __file__, "--part", part, "--folder", str(folder), "--batch-size", str(batch_size)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{part}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(part, batch_size, round(found["cpu_s"], 2), "CPU s", file=sys.stderr, flush=True)
    return found


def compare(reference: list[float], found: list[float], spanning: list[bool]) -> dict[str, Any]:
    """Largest difference and flips of the best choice, over items in which no token spans the join."""
    gaps = [0.0]
    flips = 0
    for number, spans in enumerate(spanning):
        if spans:
            continue
        one, other = (each[4 * number : 4 * number + 4] for each in (reference, found))
        gaps += [abs(a - b) for a, b in zip(one, other, strict=True)]
        flips += one.index(max(one)) != other.index(max(other))
    return {"max_difference_nats": max(gaps), "flips": flips}


def one_seed(seed: int, given: argparse.Namespace, batch_sizes: list[int]) -> dict[str, Any]:
    items = given.items
    rows = questions()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_model(folder, seed, [row["question"] for row in rows])
        make_items(folder, rows, items, given.context, given.few_shot)
        rounds = [
            (run("ours", folder, 8), {size: run("peer", folder, size) for size in batch_sizes})
            for _ in range(given.repeats)
        ]
    requests = 4 * items
    mine, peers = rounds[0]
    ours_s = [float(each["cpu_s"]) for each, _ in rounds]
    peer_s = {size: [float(each[size]["cpu_s"]) for _, each in rounds] for size in batch_sizes}
    fastest = min(peer_s, key=lambda size: min(peer_s[size]))
    return {
        "seed": seed,
        "ours_cpu_s": ours_s,
        "ours_requests_per_cpu_s": requests / min(ours_s),
        "peer_cpu_s": peer_s,
        "peer_requests_per_cpu_s": requests / min(peer_s[fastest]),
        "peer_fastest_batch": fastest,
        "times_as_fast": min(peer_s[fastest]) / min(ours_s),
        "times_as_fast_by_round": [min(each) / own for own, *each in zip(ours_s, *peer_s.values(), strict=True)],
        "peak_rss_mb": {"ours": mine["peak_rss_mb"], **{f"peer {s}": each["peak_rss_mb"] for s, each in peers.items()}},
        "start_cpu_s": {"ours": mine["start_cpu_s"], "peer": peers[fastest]["start_cpu_s"]},
        **compare(peers[batch_sizes[0]]["log_p"], mine["log_p"], mine["spanning"]),
        "peer_batch_difference": compare(
            peers[batch_sizes[0]]["log_p"], peers[batch_sizes[-1]]["log_p"], mine["spanning"]
        ),
        "spanning_items": sum(mine["spanning"]),
        "unscorable": mine["unscorable"],
        "positions": mine["positions"],
        "scored_tokens": mine["tokens"],
        "bit_equal_runs": all(each["log_p"] == mine["log_p"] for each, _ in rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", type=int, default=60)
    parser.add_argument("--items", type=int, default=MOST_ITEMS, choices=range(1, MOST_ITEMS + 1), metavar="N")
    parser.add_argument("--few-shot", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="rounds of ours and the peer; the least of each counts")
    parser.add_argument("--peer-batches", default="1,8,16", help="the first is what numbers are compared with")
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--batch-size", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        found = PARTS[given.part](given.folder, given.batch_size)
        print(json.dumps({**found, "peak_rss_mb": peak_rss_mb()}))
        return
    sizes = [int(each) for each in given.peer_batches.split(",")]
    imported = run("light", Path())
    seeds = [one_seed(seed, given, sizes) for seed in range(given.seeds)]
    summary = {
        "items": given.items,
        "context": given.context,
        "few_shot": given.few_shot,
        "questions": "MMLU-Redux" if MMLU.is_file() else "made up",
        "import_cpu_s": imported["cpu_s"],
        "import_loads_torch": imported["torch"],
        "times_as_fast": [each["times_as_fast"] for each in seeds],
        "seeds": seeds,
    }
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
