"""Conformance of models of reviewers: what each must keep, whatever it believes of people.

Subclass, give ``model``, and let pytest collect it::

    class TestMine(ReviewerModelSuite):
        model = Mine()
"""

from typing import ClassVar

import numpy as np

from wholestack.evals.judgments.models.model import ReviewerModel
from wholestack.evals.judgments.votes import make_votes
from wholestack.evals.statistics import Floats

_ROWS = [
    (f"i{item}", f"r{reviewer}", f"l{(item + (item * reviewer) % 7 // 5) % 3}")
    for item in range(30)
    for reviewer in range(7)
    if (item + reviewer) % 3
]


class ReviewerModelSuite:
    """See the module."""

    model: ClassVar[ReviewerModel]
    """What is tested."""

    def _posterior(self, rows: list[tuple[str, str, str]], weight: float = 1.0) -> tuple[dict[str, Floats], list[str]]:
        votes = make_votes(rows)
        found = self.model.infer(votes, np.full(len(votes), weight)).posterior
        assert found.shape == (len(votes.items), len(votes.labels))
        return dict(zip(votes.items, found, strict=True)), list(votes.labels)

    def test_rows_are_probabilities(self) -> None:
        """They sum to 1 and none is negative."""
        posterior, _ = self._posterior(_ROWS)
        for row in posterior.values():
            assert np.isfinite(row).all()
            assert (row >= 0).all()
            assert abs(row.sum() - 1) < 1e-9

    def test_what_all_say_is_likeliest(self) -> None:
        """Where everybody agrees and all labels are there."""
        rows = [(f"i{item}", f"r{reviewer}", f"l{item % 3}") for item in range(30) for reviewer in range(5)]
        posterior, _ = self._posterior(rows)
        assert all(row.argmax() == int(name[1:]) % 3 for name, row in posterior.items())

    def test_the_order_of_votes_does_not_matter(self) -> None:
        """Reviewers and items may come in any order."""
        straight, _ = self._posterior(_ROWS)
        turned, _ = self._posterior([_ROWS[(11 * place) % len(_ROWS)] for place in range(len(_ROWS))])
        assert all(np.allclose(straight[name], turned[name], atol=1e-6) for name in straight)

    def test_the_names_of_labels_do_not_matter(self) -> None:
        """Other names, in another order, give the same probabilities."""
        other = {"l0": "z", "l1": "x", "l2": "y"}
        straight, labels = self._posterior(_ROWS)
        renamed, names = self._posterior([(item, reviewer, other[label]) for item, reviewer, label in _ROWS])
        place = [names.index(other[label]) for label in labels]
        assert all(np.allclose(straight[name], renamed[name][place], atol=1e-6) for name in straight)

    def test_an_item_without_votes_is_not_known(self) -> None:
        """Its row is a distribution too, and surer than no item that was judged."""
        votes = make_votes(_ROWS, items=["nobody", *dict.fromkeys(item for item, _, _ in _ROWS)])
        posterior = self.model.infer(votes, np.ones(len(votes))).posterior
        assert abs(posterior[0].sum() - 1) < 1e-9
        assert posterior[0].max() <= posterior[1:].max(axis=1).min() + 1e-9
