"""One result from a path, whichever program wrote it: a folder of ``wholestack evals score``, or lm-eval's."""

from pathlib import Path
from typing import Any

import msgspec

from wholestack.errors import InputError
from wholestack.evals.backend import ItemScore
from wholestack.evals.items import Item
from wholestack.evals.lm_eval import find_results, read_lm_eval
from wholestack.evals.scored import ScoredItems, ScoredRow, assemble
from wholestack.evals.scores import Scores
from wholestack.journal import read_journal

RESULT, ITEMS, SCORES, METRICS = "result.json", "items.jsonl", "scores.jsonl", "metrics.json"
NOT_YET = "not scored yet"


def load_scored(path: Path, *, cluster: str = "") -> ScoredItems:
    """Read the result of one model.

    Args:
        path: A folder of ``wholestack evals score``, or a folder or ``results_*.json`` of lm-evaluation-harness.
        cluster: For lm-eval: field of the documents whose equal values are one cluster.

    Raises:
        InputError: there is no result, or it is damaged or of another version.
        RecordError: a line does not decode.
    """
    if not path.exists():
        raise InputError(f"{path}: does not exist", remedy="name a result folder")
    if (path / RESULT).is_file():
        return _read_folder(path)
    results = find_results(path)
    if results is None:
        raise InputError(
            f"{path}: holds neither {RESULT} nor a results_*.json of lm-eval", remedy="name a result folder"
        )
    return read_lm_eval(results, cluster=cluster)


def _read_folder(folder: Path) -> ScoredItems:
    result = _decode(folder / RESULT)
    _refuse_other_version(folder / METRICS)
    given = {score.id: score for score in read_journal(folder / SCORES, ItemScore)}
    items = _read_items(folder / ITEMS)
    strangers = sorted(given.keys() - {item.id for item in items})
    if strangers:
        raise InputError(f"{folder / SCORES}: item {strangers[0]!r} is not in {ITEMS}", remedy="score it again")
    identity = result.get("identity") or result.get("model")
    name = identity.get("name") if isinstance(identity, dict) else identity
    item_set = result.get("item_set")
    return assemble(
        str(name or folder.name),
        str(folder),
        [_row(item, given.get(item.id), folder) for item in items],
        item_set=item_set if isinstance(item_set, str) else "",
    )


def _row(item: Item, score: ItemScore | None, folder: Path) -> ScoredRow:
    score = score or ItemScore(id=item.id, reason=NOT_YET)
    numbers = (len(score.nll_nats), len(score.tokens))
    if not score.reason and numbers != (len(item.choices), len(item.choices)):
        raise InputError(
            f"{folder / SCORES}: item {item.id!r} has {len(item.choices)} choices and {numbers[0]} scores",
            remedy="score it again",
        )
    return ScoredRow(
        id=item.id,
        source=item.source,
        cluster=item.cluster,
        requests=tuple((item.context, item.delimiter + choice) for choice in item.choices),
        gold=item.gold,
        nll_nats=() if score.reason else score.nll_nats,
        tokens=() if score.reason else score.tokens,
        reason=score.reason,
        truncated=score.truncated,
        spanning=score.spanning,
    )


def _read_items(path: Path) -> list[Item]:
    """Items as they were sealed; keys that a later version added are passed over."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", remedy="score it again") from error
    try:
        return [msgspec.json.decode(line, type=Item) for line in lines if line.strip()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is damaged: {error}", remedy="score it again") from error


def _refuse_other_version(path: Path) -> None:
    if not path.exists():
        return
    schema = _decode(path).get("schema", Scores.SCHEMA)
    if schema != Scores.SCHEMA:
        raise InputError(
            f"{path}: schema is {schema!r}, this version reads {Scores.SCHEMA!r}",
            remedy="use the version of wholestack that wrote it, or score again",
        )


def _decode(path: Path) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is damaged: {error}", remedy="score it again") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: expected an object, got {type(raw).__name__}", remedy="score it again")
    return raw
