"""One result from a path, whichever program wrote it: a folder of ``wholestack evals score``, or lm-eval's.

Of a folder of ours the scores themselves are read (:func:`~wholestack.evals.results.read_result` binds every line to
model, items and rules) and the numbers made anew, so an older ``metrics.json`` beside them decides nothing.
"""

from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.backend import ItemScore
from wholestack.evals.items import Item
from wholestack.evals.lm_eval import find_results, read_lm_eval
from wholestack.evals.results import NOT_YET, RESULT_FILE, read_result
from wholestack.evals.scored import ScoredItems, ScoredRow, assemble


def load_scored(path: Path, *, cluster: str = "") -> ScoredItems:
    """Read the result of one model.

    Args:
        path: A folder of ``wholestack evals score``, or a folder or ``results_*.json`` of lm-evaluation-harness.
        cluster: For lm-eval: field of the documents whose equal values are one cluster.

    Raises:
        InputError: there is no result, or it is damaged.
        RecordError: a line does not decode, or belongs to another scoring or version.
    """
    if not path.exists():
        raise InputError(f"{path}: does not exist", remedy="name a result folder")
    if (path / RESULT_FILE).is_file():
        return _read_folder(path)
    results = find_results(path)
    if results is None:
        raise InputError(
            f"{path}: holds neither {RESULT_FILE} nor a results_*.json of lm-eval", remedy="name a result folder"
        )
    return read_lm_eval(results, cluster=cluster)


def _read_folder(folder: Path) -> ScoredItems:
    result = read_result(folder)
    given = {score.id: score for score in result.by_item}
    missing = ItemScore(id="", reason=NOT_YET)
    rows = [_row(item, given.get(item.id, missing)) for item in result.items]
    return assemble(result.identity.name, str(folder), rows, item_set=result.item_set.digest)


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
