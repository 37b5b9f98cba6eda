"""Verdicts on what one model wrote, as numbers of single questions: what comparing two models needs of them.

The number of a question is the share of its texts that are right, over the texts with a verdict; every question weighs
alike. So with one text a question, or where every text has a verdict, their mean is ``share_right`` of the summary.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.comparable import SHARE_RIGHT, Flags, Texts
from wholestack.evals.statistics import Floats, Ints
from wholestack.evals.written.grading import JUDGED, Graded
from wholestack.evals.written.judging import Judged
from wholestack.record import digest

CANNOT_TELL = "the checker cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScores:
    """What became of one model's texts; satisfies :class:`~wholestack.evals.comparable.ItemNumbers`."""

    item_set: str
    """Digest of the questions with their right answers."""
    item_ids: Texts
    """``[questions]``."""
    sources: Texts
    """``[questions]``."""
    clusters: Ints
    """``[questions]``; equal numbers are one group."""
    reasons: Texts
    """``[questions]``, why no text of it has a verdict; empty if one has."""
    right: Floats
    """``[questions]``, share of right ones among the texts with a verdict; 0 where there is none."""
    texts: Texts
    """``[questions]``, digest of everything that was written behind it."""

    @property
    def is_scored(self) -> Flags:
        """``[questions]``."""
        return np.asarray(self.reasons == "")

    def take(self, places: Ints) -> "TextScores":
        """Some of the questions, or all in another order."""
        names = ("item_ids", "sources", "clusters", "reasons", "right", "texts")
        return replace(self, **{name: getattr(self, name)[places] for name in names})

    def values(self, metric: str) -> tuple[Floats, Floats]:
        """Share of right texts and a weight of 1, ``[questions]`` each.

        Raises:
            InputError: the metric is another.
        """
        if metric != SHARE_RIGHT:
            raise InputError(f"no metric {metric!r} of written answers", remedy=f"use {SHARE_RIGHT}")
        return self.right, np.ones(len(self.right))

    def standing(self) -> Floats:
        """The same share."""
        return self.right

    def beats(self, other: "TextScores", metric: str) -> Flags:
        """Where this model is right more often."""
        return np.asarray(self.right > other.right)

    def equals(self, other: "TextScores") -> Flags:
        """Where both wrote the same to the letter."""
        return np.asarray(self.texts == other.texts)


def text_scores(judged: Judged) -> TextScores:
    """Numbers of every question, in the order of the set."""
    verdicts: dict[str, list[Graded]] = defaultdict(list)
    texts: dict[str, list[str]] = defaultdict(list)
    for line, each in zip(judged.written.texts, judged.graded, strict=True):
        verdicts[each.id].append(each)
        texts[each.id].append(line.written.text)
    asked = judged.questions.questions
    _, clusters = np.unique([each.group for each in asked], return_inverse=True)
    return TextScores(
        item_set=judged.questions.digest,
        item_ids=np.array([each.id for each in asked]),
        sources=np.array(["" for _ in asked]),
        clusters=clusters.astype(np.int64),
        reasons=np.array([_reason(verdicts[each.id]) for each in asked]),
        right=np.array([_share(verdicts[each.id]) for each in asked]),
        texts=np.array([digest(texts[each.id]) for each in asked]),
    )


def _share(verdicts: Sequence[Graded]) -> float:
    judged = [each.grade == "right" for each in verdicts if each.grade in JUDGED]
    return sum(judged) / len(judged) if judged else 0.0


def _reason(verdicts: Sequence[Graded]) -> str:
    if any(each.grade in JUDGED for each in verdicts):
        return ""
    return next((each.reason for each in verdicts if each.grade == "unwritten"), CANNOT_TELL)
