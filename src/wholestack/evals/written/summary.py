"""The share of right answers and how sure it is, what could not be read and why, and pass@k.

The share is right answers over texts with a verdict: right, wrong, or without an answer, which is not right. Texts on
which the checker could not tell and prompts behind which nothing came are in no share; ``lowest`` and ``highest`` say
what it could be if they were all wrong or all right. With one text a question and every question by itself the
interval is exact (Clopper & Pearson 1934); otherwise it is cluster-robust over groups (Student's t).

pass@k is the unbiased estimator 1 - C(n - c, k) / C(n, k) of c right among n texts (Chen et al. 2021, equation 1),
averaged over questions of which all n texts have a verdict.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from wholestack.evals.calibration import clopper_pearson
from wholestack.evals.statistics import Estimate, Interval, mean_estimate, t_interval
from wholestack.evals.written.grading import GRADES, JUDGED, Graded
from wholestack.evals.written.questions import OpenQuestion
from wholestack.record import Record

LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenScores(Record):
    """All numbers of one evaluation in writing."""

    SCHEMA: ClassVar[str] = "written-scores/2"

    questions: int
    """Questions asked."""
    texts: int
    """Texts written, several a question where so asked."""
    right: int
    """Texts that the checker accepts."""
    judged: int
    """Texts with a verdict, those without an answer among them: what the share is of."""
    share_right: float | None
    """``None`` if there is no verdict at all."""
    standard_error: float | None
    """Of the share, cluster-robust over groups; ``None`` with fewer than two."""
    groups: int
    """Independent groups of questions with a verdict."""
    interval: Interval | None
    """Of the share."""
    interval_kind: str
    """How it was made."""
    lowest: float | None
    """The share if every text without a verdict were wrong."""
    highest: float | None
    """The share if every text without a verdict were right."""
    grades: dict[str, int]
    """Texts by grade."""
    unparsable: dict[str, int]
    """Texts without an answer, by reason."""
    unparsable_cut: int
    """Of these, texts that were cut at the most tokens: a larger limit may help."""
    unwritten: dict[str, int]
    """Prompts behind which nothing came, by reason."""
    tokens_written: int
    """Of all texts."""
    tokens_per_text: float | None
    """Mean."""
    pass_at: dict[str, float]
    """pass@k by k, where there are several texts a question."""
    pass_at_questions: int
    """Questions that pass@k rests on."""

    @property
    def flat(self) -> dict[str, float]:
        """Flat metrics, name to number, as of every scoring."""
        found: dict[str, float] = {}
        if self.share_right is not None and self.lowest is not None and self.highest is not None:
            found |= {"share_right": self.share_right, "lowest": self.lowest, "highest": self.highest}
        if self.standard_error is not None:
            found["share_right_se"] = self.standard_error
        if self.interval is not None:
            found |= {"share_right_low": self.interval.low, "share_right_high": self.interval.high}
        if self.texts:
            found |= {f"share_{grade}_of_all": count / self.texts for grade, count in self.grades.items()}
        found |= {f"pass_at_{k}": value for k, value in self.pass_at.items()}
        return found | {"tokens_written": float(self.tokens_written)}


def summarise_written(questions: Sequence[OpenQuestion], graded: Sequence[Graded]) -> WrittenScores:
    """Summarise graded texts; their order changes nothing.

    Args:
        questions: All that were asked.
        graded: What became of their texts, one or more a question.
    """
    groups = {question.id: question.group for question in questions}
    ordered = sorted(graded, key=lambda each: (each.id, each.sample))
    judged = [each for each in ordered if each.grade in JUDGED]
    right = sum(each.grade == "right" for each in judged)
    estimate = _estimate(judged, groups) if judged else None
    interval, kind = _interval(judged, estimate) if estimate else (None, "no verdict, no interval")
    undecided = len(ordered) - len(judged)
    at, of = _pass_at(judged, ordered)
    written = [each for each in ordered if each.grade != "unwritten"]
    tokens = sum(each.tokens for each in written)
    return WrittenScores(
        questions=len(questions),
        texts=len(ordered),
        right=right,
        judged=len(judged),
        share_right=right / len(judged) if judged else None,
        standard_error=estimate.standard_error if estimate else None,
        groups=estimate.clusters if estimate else 0,
        interval=interval,
        interval_kind=kind,
        lowest=right / len(ordered) if ordered else None,
        highest=(right + undecided) / len(ordered) if ordered else None,
        grades={grade: sum(each.grade == grade for each in ordered) for grade in GRADES},
        unparsable=_counted(each.reason for each in ordered if each.grade == "unparsable"),
        unparsable_cut=sum(each.cut for each in ordered if each.grade == "unparsable"),
        unwritten=_counted(each.reason for each in ordered if each.grade == "unwritten"),
        tokens_written=tokens,
        tokens_per_text=tokens / len(written) if written else None,
        pass_at=at,
        pass_at_questions=of,
    )


def pass_at(k: int, *, right: int, texts: int) -> float:
    """Unbiased estimate of the chance that one of k texts is right, from so many right among so many."""
    return 1.0 - comb(texts - right, k) / comb(texts, k)


def _estimate(judged: Sequence[Graded], groups: Mapping[str, str]) -> Estimate:
    _, numbers = np.unique([groups[each.id] for each in judged], return_inverse=True)
    return mean_estimate(np.array([float(each.grade == "right") for each in judged]), numbers.astype(np.int64))


def _interval(judged: Sequence[Graded], estimate: Estimate) -> tuple[Interval | None, str]:
    if estimate.clusters == len(judged):
        right = sum(each.grade == "right" for each in judged)
        return clopper_pearson(right, len(judged), level=LEVEL), "exact binomial"
    if len({each.grade == "right" for each in judged}) == 1:  # no spread, which says nothing of the error
        agreed = estimate.clusters if judged[0].grade == "right" else 0
        kind = f"exact binomial over {estimate.clusters} groups, for all texts agree"
        return clopper_pearson(agreed, estimate.clusters, level=LEVEL), kind
    found = t_interval(estimate, level=LEVEL)
    if found is None:
        return None, "all texts are of one group: no interval"
    clipped = Interval(low=max(0.0, found.low), high=min(1.0, found.high), level=found.level)
    return clipped, f"cluster-robust over {estimate.clusters} groups"


def _pass_at(judged: Sequence[Graded], ordered: Sequence[Graded]) -> tuple[dict[str, float], int]:
    """pass@k for k = 1, 2, 5, 10, ... up to the texts a question."""
    asked = Counter(each.id for each in ordered)
    texts = max(asked.values(), default=0)
    if texts < 2:
        return {}, 0
    found: dict[str, list[bool]] = defaultdict(list)
    for each in judged:
        found[each.id].append(each.grade == "right")
    whole = [verdicts for verdicts in found.values() if len(verdicts) == texts]
    steps = [k for k in (1, 2, 5, 10, 20, 50, 100) if k < texts] + [texts]
    if not whole:
        return {}, 0
    means = {
        str(k): sum(pass_at(k, right=sum(verdicts), texts=texts) for verdicts in whole) / len(whole) for k in steps
    }
    return means, len(whole)


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items()))
