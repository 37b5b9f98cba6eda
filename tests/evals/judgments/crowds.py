"""Crowds whose truth is known: honest reviewers with tables of their own, and some who are not honest.

Knows nothing of the code that infers: plain draws, one vote at a time.
"""

from dataclasses import dataclass

import numpy as np

from wholestack.evals.judgments.votes import Votes, make_votes

KINDS = ("honest", "spammers", "constants", "adversaries", "copied noise", "copied work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Everything of a crowd; reviewer ``r`` is called ``r0``, ``r1``, ..., item ``i`` is ``0``, ``1``, ..."""

    truth: np.ndarray
    """``[items]``"""
    tables: np.ndarray
    """``[reviewers, truth, said]``"""
    bad: np.ndarray
    """``[reviewers]``, who is of the planted kind."""
    group: np.ndarray
    """``[reviewers]``, group of copiers, -1 for none."""
    shared: np.ndarray
    """``[groups, items]``, what a group says."""
    rng: np.random.Generator

    def ask(self, item: int, reviewer: int) -> tuple[str, str, str]:
        """One vote, as a row."""
        group = self.group[reviewer]
        if group >= 0 and self.rng.random() < 0.97:
            said = self.shared[group, item]
        else:
            said = self.rng.choice(self.tables.shape[1], p=self.tables[reviewer, self.truth[item]])
        return str(item), f"r{reviewer}", f"L{said}"

    def known(self) -> dict[str, str]:
        """The truth by item."""
        return {str(item): f"L{label}" for item, label in enumerate(self.truth)}

    @property
    def labels(self) -> tuple[str, ...]:
        """All."""
        return tuple(f"L{label}" for label in range(self.tables.shape[1]))

    def votes(self, a_item: int) -> Votes:
        """So many votes of drawn reviewers on every item."""
        people = len(self.tables)
        return make_votes(
            [
                self.ask(item, reviewer)
                for item in range(len(self.truth))
                for reviewer in self.rng.permutation(people)[:a_item]
            ],
            labels=self.labels,
        )


def make_crowd(
    kind: str,
    *,
    seed: int,
    items: int = 1000,
    reviewers: int = 50,
    labels: int = 4,
    share: float = 0.3,
    evenness: float = 20.0,
) -> Crowd:
    """A crowd of which ``share`` are of a kind of :data:`KINDS`; copiers come in groups of five.

    ``evenness`` is the parameter of the Dirichlet distribution of how frequent the labels are.
    """
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(labels, evenness))
    truth = rng.choice(labels, items, p=weights)
    able = rng.uniform(0.6, 0.95, reviewers)
    tables = np.stack([_table(rng, labels, each) for each in able])
    bad = np.zeros(reviewers, dtype=bool)
    bad[rng.permutation(reviewers)[: int(share * reviewers)]] = kind != "honest"
    group = np.full(reviewers, -1)
    places = np.flatnonzero(bad)
    if kind in ("spammers", "copied noise"):
        tables[bad] = 1 / labels
    elif kind == "constants":
        tables[bad] = np.eye(labels)[rng.integers(labels, size=len(places))][:, None, :]
    elif kind == "adversaries":
        tables[bad] = np.stack([_table(rng, labels, 0.5 / labels) for _ in places])
    if kind.startswith("copied"):
        group[places] = np.arange(len(places)) // 5
    shared = np.array(
        [[rng.choice(labels, p=tables[places[5 * each], label]) for label in truth] for each in range(group.max() + 1)]
    )
    return Crowd(truth=truth, tables=tables, bad=bad, group=group, shared=shared, rng=rng)


def _table(rng: np.random.Generator, labels: int, right: float) -> np.ndarray:
    table = np.empty((labels, labels))
    for truth in range(labels):
        here = float(np.clip(rng.normal(right, 0.05), 0.01, 0.99))
        table[truth] = np.insert(rng.dirichlet(np.ones(labels - 1)) * (1 - here), truth, here)
    return table
