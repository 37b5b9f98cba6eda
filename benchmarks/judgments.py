"""Figures of judgments: crowds of real people, planted crowds, a million labels, and whom to ask next.

    python benchmarks/judgments.py real --data DIR            # crowd sets with known truth, beside crowd-kit
    python benchmarks/judgments.py planted --seeds 101:111    # calibration with 30 % who are not honest
    python benchmarks/judgments.py speed --labels 1000000     # CPU seconds, beside crowd-kit
    python benchmarks/judgments.py asking --seeds 201:206     # as good as a majority of five, with how many votes?

* ``planted``: 1,000 items, 50 reviewers, 5 votes an item, 2 and 4 labels, every kind of crowd of
  ``tests/evals/judgments/crowds.py``, which knows nothing of what infers.
* ``asking``: 600 items and 30 reviewers who come in a drawn order. Everyone gets the item of which their answer is
  expected to tell most; after every 60 votes the posterior is made anew. It stops at 60 % of the votes of a majority of
  five. The same number of votes on drawn items is beside it, read by the same model.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from crowdkit.aggregation import GLAD, DawidSkene, MajorityVote
from tests.evals.judgments.crowds import KINDS, Crowd, make_crowd

from wholestack.evals.judgments.aggregate import aggregate, infer_apart
from wholestack.evals.judgments.asking import next_item
from wholestack.evals.judgments.models.catalog import MODELS, find_model
from wholestack.evals.judgments.votes import Votes, make_votes, read_table, read_votes

OURS = find_model("dawid-skene")
PEERS: dict[str, Callable[[], object]] = {
    "majority": MajorityVote,
    "dawid-skene": lambda: DawidSkene(n_iter=100),
    "glad": GLAD,
}


def loop_s() -> float:
    began = time.process_time()
    sum(range(10**7))
    return time.process_time() - began


def peer_accuracy(name: str, frame: pd.DataFrame, truth: dict[str, str]) -> float:
    labels = PEERS[name]().fit_predict(frame)  # type: ignore[attr-defined]
    known = [item for item in labels.index if item in truth]
    return float(np.mean([labels[item] == truth[item] for item in known]))


def frame_of(votes: Votes) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task": np.array(votes.items, dtype=object)[votes.item],
            "worker": np.array(votes.reviewers, dtype=object)[votes.reviewer],
            "label": np.array(votes.labels, dtype=object)[votes.label],
        }
    )


def real(data: Path) -> Iterator[dict[str, object]]:
    for name in ("duck", "face"):
        votes = read_votes(data / f"crowd_{name}_labels.csv")
        truth = read_table(data / f"crowd_{name}_truth.csv", "item", "truth")
        for model in MODELS.values():
            found = aggregate(votes, model, truth=truth).truth
            assert found is not None
            yield {
                "set": name,
                "model": model.name,
                "accuracy": found.accuracy,
                "calibration_error": found.calibration_error,
                "crowd_kit": peer_accuracy(model.name, frame_of(votes), truth),
            }


def planted(seeds: Sequence[int]) -> Iterator[dict[str, object]]:
    for labels in (2, 4):
        for kind in KINDS:
            rows = []
            named: dict[str, int] = {}
            for seed in seeds:
                crowd = make_crowd(kind, seed=seed, labels=labels)
                judged = aggregate(crowd.votes(5), OURS, truth=crowd.known())
                plain = aggregate(crowd.votes(5), find_model("majority"), truth=crowd.known())
                assert judged.truth is not None
                assert plain.truth is not None
                rows.append((judged.truth.calibration_error, judged.truth.accuracy, plain.truth.accuracy))
                for name, each in judged.reviewers.items():
                    key = f"{'planted' if crowd.bad[int(name[1:])] else 'honest'} {each.standing}"
                    named[key] = named.get(key, 0) + 1
            errors, ours, majority = np.array(rows).T
            yield {
                "kind": kind,
                "labels": labels,
                "crowds": len(rows),
                "calibration_error": errors.mean(),
                "worst": errors.max(),
                "accuracy": ours.mean(),
                "majority": majority.mean(),
                "reviewers": named,
            }


def speed(labels: int) -> Iterator[dict[str, object]]:
    rng = np.random.default_rng(1)
    items, reviewers, classes = labels // 5, 2000, 4
    able, truth = rng.uniform(0.5, 0.95, reviewers), rng.integers(0, classes, items)
    item = np.repeat(np.arange(items), 5)
    who = (rng.integers(0, reviewers, items)[:, None] + np.arange(5) * 397).ravel() % reviewers
    wrong = (truth[item] + rng.integers(1, classes, len(item))) % classes
    said = np.where(rng.random(len(item)) < able[who], truth[item], wrong)
    known = {f"item{place}": f"L{label}" for place, label in enumerate(truth)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.csv"
        with path.open("w") as file:
            file.write("item,reviewer,label\n")
            file.writelines(f"item{i},rev{r},L{k}\n" for i, r, k in zip(item, who, said, strict=True))
        began = time.process_time()
        votes = read_votes(path)
        yield {"what": "read", "cpu_s": time.process_time() - began, "loop_s": loop_s()}
    for model in MODELS.values():
        began = time.process_time()
        model.infer(votes, np.ones(len(votes)))
        yield {"what": model.name, "cpu_s": time.process_time() - began, "loop_s": loop_s()}
        began = time.process_time()
        judged = aggregate(votes, model, truth=known)
        assert judged.truth is not None
        yield {
            "what": f"aggregate with {model.name}: who copies, what each reviewer is worth, every item",
            "cpu_s": time.process_time() - began,
            "loop_s": loop_s(),
            "accuracy": judged.truth.accuracy,
        }
    frame = frame_of(votes)
    for name in ("majority", "dawid-skene"):
        began = time.process_time()
        accuracy = peer_accuracy(name, frame, known)
        yield {
            "what": f"crowd-kit {name}",
            "cpu_s": time.process_time() - began,
            "loop_s": loop_s(),
            "accuracy": accuracy,
        }


def asking(seeds: Sequence[int], share: float) -> Iterator[dict[str, object]]:
    for kind in KINDS:
        rows = []
        for seed in seeds:
            crowd = make_crowd(kind, seed=seed, items=600, reviewers=30)
            five = aggregate(crowd.votes(5), find_model("majority"), truth=crowd.known()).truth
            assert five is not None
            budget = int(share * 5 * len(crowd.truth))
            rows.append(
                (five.accuracy, accuracy_of(crowd, chosen(crowd, budget)), accuracy_of(crowd, drawn(crowd, budget)))
            )
        five_of, ours, plain = np.array(rows).T
        yield {
            "kind": kind,
            "crowds": len(rows),
            "share_of_votes": share,
            "majority_of_five": five_of.mean(),
            "chosen": ours.mean(),
            "drawn": plain.mean(),
            "at_least_as_good": int((ours >= five_of).sum()),
        }


def accuracy_of(crowd: Crowd, votes: Votes) -> float:
    truth = aggregate(votes, OURS, truth=crowd.known()).truth
    assert truth is not None
    return truth.accuracy


def drawn(crowd: Crowd, budget: int) -> Votes:
    """The same number of votes, spread evenly over the items."""
    people = len(crowd.tables)
    rows = []
    for item in range(len(crowd.truth)):
        number = budget // len(crowd.truth) + (item < budget % len(crowd.truth))
        rows += [crowd.ask(item, who) for who in crowd.rng.permutation(people)[:number]]
    return make_votes(rows, labels=crowd.labels)


def chosen(crowd: Crowd, budget: int, *, refresh: int = 60) -> Votes:
    """Each reviewer who comes gets the item of which their answer tells most; first every item gets one vote."""
    people, items = len(crowd.tables), [str(item) for item in range(len(crowd.truth))]
    asked = np.zeros((people, len(items)), dtype=bool)
    rows = []
    for item in range(len(items)):
        who = int(crowd.rng.integers(people))
        asked[who, item] = True
        rows.append(crowd.ask(item, who))
    while len(rows) < budget:
        votes = make_votes(rows, items=items, labels=crowd.labels)
        apart = infer_apart(votes, OURS, seed=0)
        posterior, means = apart.inference.posterior.copy(), apart.tables.means
        place = {name: number for number, name in enumerate(votes.reviewers)}
        typical = apart.tables.prior / apart.tables.prior.sum(axis=1, keepdims=True)
        for _ in range(min(refresh, budget - len(rows))):
            who = int(crowd.rng.integers(people))
            table = means[place[f"r{who}"]] if f"r{who}" in place else typical
            best = next_item(posterior, table, ~asked[who])
            if best is None:
                continue
            asked[who, best] = True
            rows.append(crowd.ask(best, who))
            posterior[best] *= table[:, crowd.labels.index(rows[-1][2])]
            posterior[best] /= posterior[best].sum()
    return make_votes(rows, items=items, labels=crowd.labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("real", "planted", "speed", "asking"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data/evals"))
    parser.add_argument("--seeds", default="101:106", help="first:behind")
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.6)
    given = parser.parse_args()
    seeds = range(*map(int, given.seeds.split(":")))
    rows = {
        "real": lambda: real(given.data),
        "planted": lambda: planted(seeds),
        "speed": lambda: speed(given.labels),
        "asking": lambda: asking(seeds, given.share),
    }[given.what]()
    for row in rows:
        print(json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
