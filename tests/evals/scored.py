"""Synthetic scores with a known truth, for tests of what is made of scores."""

import dataclasses

import numpy as np

from wholestack.evals.backend import ItemScore, ModelIdentity
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.results import score_into
from wholestack.evals.scored import ScoredRow, assemble
from wholestack.evals.scores import ItemScores
from wholestack.record import digest


def scores_from_values(
    values, gold, *, ids=None, clusters=None, sources=None, reasons=None, answer_bytes=None, item_set="3f2a9c1b00000000"
):
    """From log-likelihoods ``[items, choices]``, all choices four characters and two tokens unless said."""
    items, choices = values.shape
    lengths = np.full(items * choices, 4) if answer_bytes is None else np.asarray(answer_bytes).reshape(-1)
    return ItemScores(
        item_set=item_set,
        item_ids=np.array([f"item-{n:05}" for n in range(items)] if ids is None else ids),
        sources=np.array(["s"] * items if sources is None else sources),
        clusters=np.arange(items) if clusters is None else np.asarray(clusters),
        gold=np.asarray(gold),
        reasons=np.array([""] * items if reasons is None else reasons),
        truncated=np.zeros(items, bool),
        spanning=np.zeros(items, bool),
        choice_offsets=np.arange(items + 1) * choices,
        nll_nats=-values.reshape(-1).astype(float),
        answer_bytes=lengths,
        answer_chars=lengths,
        answer_tokens=np.full(items * choices, 2),
        positions=0,
    )


def calibrated_values(rng, items, *, choices=4, spread=2.0, temperature=1.0):
    """Values and right answers drawn from their own softmax; then the values are taken times ``temperature``."""
    values = rng.normal(0, spread, (items, choices))
    gold = np.argmax(values + rng.gumbel(size=values.shape), axis=1)
    return values * temperature - 20, gold


def result_of(values, gold, *, name="model", ids=None, clusters=None, sources=None, reasons=None, texts=None):
    """A result as a program would have left it, choices of four characters under short contexts."""
    rows = []
    for at, (row, right) in enumerate(zip(values.tolist(), np.asarray(gold).tolist(), strict=True)):
        reason = "" if reasons is None else reasons[at]
        text = f"question {at}" if texts is None else texts[at]
        rows.append(
            ScoredRow(
                id=f"item-{at:05}" if ids is None else ids[at],
                source="s" if sources is None else sources[at],
                cluster=str(at if clusters is None else clusters[at]),
                requests=tuple((text, f" {chr(97 + place) * 3}") for place in range(len(row))),
                gold=right,
                nll_nats=() if reason else tuple(-value for value in row),
                tokens=() if reason else (2,) * len(row),
                reason=reason,
            )
        )
    return assemble(name, f"results/{name}", rows)


def with_values(result, values):
    """The same items with other log-likelihoods; made in the order of the result."""
    scores = dataclasses.replace(result.scores, nll_nats=-np.asarray(values, float).reshape(-1))
    return dataclasses.replace(result, scores=scores)


@dataclasses.dataclass
class Given:
    """A model whose scores are known beforehand."""

    name: str
    scores: list

    @property
    def identity(self):
        return ModelIdentity(kind="synthetic", name=self.name, parts={"weights": digest(self.name)})

    def score(self, items, *, done=()):
        by_id = {score.id: score for score in self.scores}
        return (by_id[item.id] for item in items if item.id not in done)


def write_folder(out, items, scores, *, name="model"):
    """The folder that scoring a model with these scores leaves in ``out``."""
    return score_into(Given(name, list(scores)), seal_items(items, kind="items from a file"), out).folder


def synthetic_items(count):
    """Small questions, two a passage, from two sources."""
    return [
        make_item(
            f"Passage {at // 2}. Question {at}?",
            ["yes", "no", "maybe so"],
            at % 3,
            source="odd" if at % 2 else "even",
            cluster=f"passage {at // 2}",
            id=f"q{at}",
        )
        for at in range(count)
    ]


def synthetic_scores(items, *, seed, gain=0.0):
    """Scores of a model that gives the right choices ``gain`` nats more."""
    rng = np.random.default_rng(seed)
    return [
        ItemScore(
            id=item.id,
            nll_nats=tuple((rng.exponential(2, 3) + 6 - gain * (np.arange(3) == item.gold)).tolist()),
            tokens=(1, 1, 2),
        )
        for item in items
    ]
