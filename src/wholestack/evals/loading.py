"""One result from a path, whichever program wrote it: ``wholestack evals score``, ``evals write`` or lm-eval.

Of a folder of ours the sealed scores or verdicts themselves are read, each bound to model, items and rules, and the
numbers made anew, so an older ``metrics.json`` beside them decides nothing.
"""

from dataclasses import replace
from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.backend import ItemScore, Writing
from wholestack.evals.comparable import WRITING
from wholestack.evals.items import Item
from wholestack.evals.lm_eval import find_results, read_lm_eval
from wholestack.evals.results import NOT_YET, RESULT_FILE, SCORING, Result, read_result
from wholestack.evals.scored import ScoredItems, ScoredRow, assemble, begin_of, end_of, numbered
from wholestack.evals.written.answering import PLAN_FILE
from wholestack.evals.written.judging import Judged, holds_written, read_judged
from wholestack.evals.written.text_scores import text_scores
from wholestack.record import digest


def load_scored(path: Path, *, cluster: str = "") -> ScoredItems:
    """Read the result of one model.

    Args:
        path: A folder of ``wholestack evals score``; one of ``wholestack evals write``, or one of its files of metrics
            where it was judged in several ways; or a folder or ``results_*.json`` of lm-evaluation-harness.
        cluster: For lm-eval: field of the documents whose equal values are one cluster.

    Raises:
        InputError: there is no result, it has not ended, or it is damaged.
        RecordError: a line does not decode, or belongs to another scoring or version.
    """
    if not path.exists():
        raise InputError(f"{path}: does not exist", remedy="name a result folder")
    if SCORING.is_in(path):
        return scored_items(read_result(path))
    if holds_written(path):
        return written_items(read_judged(path), path)
    results = find_results(path)
    if results is None:
        raise InputError(
            f"{path}: holds neither {RESULT_FILE}, {PLAN_FILE} nor a results_*.json of lm-eval",
            remedy="name a result folder",
        )
    return read_lm_eval(results, cluster=cluster)


def scored_items(result: Result) -> ScoredItems:
    """A folder of ``wholestack evals score``."""
    given = {score.id: score for score in result.by_item}
    missing = ItemScore(id="", reason=NOT_YET)
    rows = [_row(item, given.get(item.id, missing)) for item in result.items]
    found = assemble(result.identity.name, str(result.folder), rows, item_set=result.item_set.digest)
    return replace(found, purpose=result.task.purpose) if result.task else found


def written_items(judged: Judged, path: Path) -> ScoredItems:
    """A folder of ``wholestack evals write``, or one way in which it was judged.

    Args:
        judged: The verdicts.
        path: What the user named.
    """
    asked, plan, metrics = judged.questions.questions, judged.written.plan, judged.metrics
    answers: dict[str, str] = {}
    for line, each in zip(judged.written.texts, judged.graded, strict=True):
        answers.setdefault(each.id, each.answer or each.reason or line.written.text)
    return ScoredItems(
        name=plan.model.name,
        path=str(path),
        scores=text_scores(judged),
        keys=numbered([digest(each.prompt, each.gold, list(each.choices)) for each in asked]),
        asked=tuple(digest(each.gold, list(each.choices)) for each in asked),
        contexts=tuple(end_of(each.prompt) for each in asked),
        answers=tuple(begin_of(each.gold) for each in asked),
        given=tuple(begin_of(answers[each.id]) for each in asked),
        counts_tokens=False,
        purpose=metrics.purpose,
        family=WRITING,
        judged_by=f"{metrics.extraction}, {metrics.checker}",
        written_with=_way(plan.writing, plan.samples),
    )


def _way(writing: Writing, samples: int) -> str:
    """How texts were written, in words; where every token is the likeliest there is no seed."""
    parts = [f"at most {writing.max_tokens:,} tokens", f"temperature {writing.temperature:g}"]
    if writing.temperature:
        parts.append(f"seed {writing.seed}")
    if writing.stop:
        parts.append(f"ended by {', '.join(map(repr, writing.stop))}")
    if samples > 1:
        parts.append(f"{samples} texts a question")
    return ", ".join(parts)


def _row(item: Item, score: ItemScore) -> ScoredRow:
    return ScoredRow(
        id=item.id,
        source=item.source,
        cluster=item.cluster,
        requests=tuple((item.context, item.delimiter + choice) for choice in item.choices),
        gold=item.gold,
        nll_nats=score.nll_nats,
        tokens=score.tokens,
        reason=score.reason,
        truncated=score.truncated,
        spanning=score.spanning,
    )
