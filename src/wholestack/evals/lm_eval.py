"""Results of lm-evaluation-harness: ``results_*.json`` with the ``samples_*.jsonl`` that ``--log_samples`` writes.

Fields as version 0.4.13 writes them (``loggers/evaluation_tracker.py``, ``evaluator.py``, ``api/task.py``). A sample
has ``arguments`` (for each request ``gen_args_N`` its context ``arg_0`` and continuation ``arg_1``, delimiter
included), ``filtered_resps`` (for each request the log-likelihood and whether it was greedy, as texts), ``target``
(the right index or its text, both written as text) and, where the task has it, ``acc``. What is no choice between
log-likelihoods (generation, rolling likelihood, several right answers) is counted with a reason. The harness does not
say how many tokens it scored, and knows no clusters; a field of its documents can be named as cluster.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wholestack.errors import InputError
from wholestack.evals.reading import read_file
from wholestack.evals.scored import ScoredItems, ScoredRow, assemble

_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT.+)\.jsonl")
_RESULTS = re.compile(r"results_(?P<date>\d{4}-\d\d-\d\dT.+)\.json")

_MOST_DIGITS = 9

NO_CHOICES = "no choice between log-likelihoods (a generation or a rolling task)"
NOT_FINITE = "a log-likelihood is not a finite number"
NO_GOLD = "the sample does not say which choice is right"
SEVERAL_GOLD = "several choices are right"
CONTRADICTION = "its acc contradicts its target"
NOT_UNICODE = "text that is not Unicode"


def find_results(path: Path) -> Path | None:
    """The newest ``results_*.json`` that a path means: itself, in it, or in its only sub-folder that has one."""
    if path.is_file():
        return path if _RESULTS.fullmatch(path.name) else None
    for folders in ([path], sorted(each for each in path.iterdir() if each.is_dir())):
        holding = {folder: found for folder in folders if (found := _newest(folder))}
        if len(holding) > 1:
            raise InputError(
                f"{path}: holds results of {len(holding)} models", remedy=f"name one, for instance {min(holding)}"
            )
        if holding:
            return next(iter(holding.values()))
    return None


def read_lm_eval(results: Path, *, cluster: str = "") -> ScoredItems:
    """Read one ``results_*.json`` with its samples.

    Args:
        results: The file.
        cluster: Field of the documents whose equal values are one cluster; default every document by itself.

    Raises:
        InputError: a file is missing, damaged or something else, or holds no choice between log-likelihoods.
    """
    match = _RESULTS.fullmatch(results.name)
    date = match["date"] if match else ""
    summary = _decode(results, _read(results), 1)
    samples = {
        found["task"]: path
        for path in sorted(results.parent.glob("samples_*.jsonl"))
        if (found := _SAMPLES.fullmatch(path.name)) and found["date"] == date
    }
    if not samples:
        raise InputError(f"{results}: has no samples_*_{date}.jsonl beside it", remedy="run lm_eval with --log_samples")
    rows = [row for task, path in samples.items() for row in _rows(task, path, cluster)]
    if rows and all(row.reason == NO_CHOICES for row in rows):
        raise InputError(
            f"{results.parent}: no task asks for a choice between log-likelihoods",
            remedy="compare results of output_type multiple_choice",
        )
    config = summary.get("config")
    name = summary.get("model_name") or (config.get("model") if isinstance(config, dict) else "") or results.parent.name
    return assemble(str(name), str(results.parent), rows)


def _newest(folder: Path) -> Path | None:
    return max((path for path in folder.glob("results_*.json") if _RESULTS.fullmatch(path.name)), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """What a line of a samples file says, before it is known how it names the right choice."""

    raw: dict[str, Any]
    where: str
    requests: tuple[tuple[str, str], ...]
    likelihoods: list[float]
    """Empty where this is no choice between log-likelihoods."""


def _rows(task: str, path: Path, cluster: str) -> Iterator[ScoredRow]:
    samples = list(_samples(path))
    usable = [each for each in samples if each.likelihoods]
    # Digits may be an index or the text of a choice. A task does it one way, and its acc tells which.
    doubts = [sum(bool(_doubt(each, rule(each))) for each in usable) for rule in (_gold_by_index, _gold_by_text)]
    gold = _gold_by_text if doubts[1] < doubts[0] else _gold_by_index
    for each in samples:
        yield _row(task, each, cluster, gold(each))


def _samples(path: Path) -> Iterator[_Sample]:
    """Lines of the first filter of a task; the others hold the same log-likelihoods."""
    first_filter: object = None
    seen: set[object] = set()
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if not line.strip():
            continue
        sample = _decode(path, line, number)
        for key in ("doc_id", "arguments", "filtered_resps", "target"):
            if key not in sample:
                raise InputError(f"{path}:{number}: key {key!r} is missing", remedy="run lm_eval with --log_samples")
        first_filter = sample.get("filter") if first_filter is None else first_filter
        if sample.get("filter") != first_filter:
            continue
        if str(sample["doc_id"]) in seen:
            raise InputError(f"{path}:{number}: document {sample['doc_id']} is in it twice", remedy="score it again")
        seen.add(str(sample["doc_id"]))
        requests, likelihoods = _requests(sample), _likelihoods(sample["filtered_resps"])
        if len(requests) < 2 or len(requests) != len(likelihoods):
            likelihoods = []
        half = len(requests) // 2
        if len(requests) == 2 * len({choice for _, choice in requests}) and not any(c for c, _ in requests[half:]):
            # acc_mutual_info adds every choice once more without a context.
            requests, likelihoods = requests[:half], likelihoods[:half]
        yield _Sample(raw=sample, where=f"{path}:{number}", requests=requests, likelihoods=likelihoods)


def _row(task: str, sample: _Sample, cluster: str, gold: int) -> ScoredRow:
    identity = f"{task}/{sample.raw['doc_id']}"
    reason = _doubt(sample, gold) if sample.likelihoods else NO_CHOICES
    readable, requests = _unicode(sample.requests or ((identity, ""),))
    reason = reason if readable else NOT_UNICODE
    return ScoredRow(
        id=identity,
        source=task,
        cluster=_cluster(task, sample, cluster) if cluster else identity,
        requests=requests,
        gold=gold if gold < len(requests) else -1,
        nll_nats=() if reason else tuple(-each for each in sample.likelihoods),
        reason=reason,
    )


def _cluster(task: str, sample: _Sample, cluster: str) -> str:
    document = sample.raw.get("doc")
    if not isinstance(document, dict) or cluster not in document:
        raise InputError(
            f"{sample.where}: the document has no field {cluster!r}", remedy="name a field that every one has"
        )
    return f"{task}/{json.dumps(document[cluster], sort_keys=True)}"


def _requests(sample: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Context and continuation of every request; nothing if it is something else."""
    arguments = sample["arguments"]
    if isinstance(arguments, dict):
        arguments = [
            [each.get("arg_0"), each.get("arg_1")] if isinstance(each, dict) else each
            for _, each in sorted(arguments.items(), key=lambda pair: _place(pair[0]))
        ]
    if not isinstance(arguments, list):
        return ()
    pairs = [tuple(each[:2]) for each in arguments if isinstance(each, list) and len(each) >= 2]
    if len(pairs) != len(arguments) or not all(isinstance(text, str) for pair in pairs for text in pair):
        return ()
    return tuple(pairs)


def _place(name: str) -> tuple[int, str]:
    """Order of ``gen_args_2`` and ``gen_args_10``."""
    digits = name.rpartition("_")[2]
    return (int(digits) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else 0, name)


def _likelihoods(responses: Any) -> list[float]:
    """The log-likelihood of every request; nothing if the responses are something else."""
    try:
        return [float(each[0]) if isinstance(each, list) else math.nan for each in responses]
    except (TypeError, ValueError, IndexError, OverflowError):
        return []


def _gold_by_index(sample: _Sample) -> int:
    """Index of the right choice, -1 if it cannot be told; what is not digits is the text of a choice."""
    target = str(sample.raw["target"]).strip()
    if not target.isdecimal():
        return _gold_by_text(sample)
    # So many digits are no index of anything, and Python refuses to read thousands of them.
    index = int(target) if len(target) <= _MOST_DIGITS else -1
    return index if index < len(sample.requests) else -1


def _gold_by_text(sample: _Sample) -> int:
    """Index of the only choice with the text of the target, -1 if there is none such."""
    target = str(sample.raw["target"]).strip()
    if len({text for _, text in sample.requests}) == 1:
        return _gold_by_acc(sample)
    places = [place for place, (_, text) in enumerate(sample.requests) if text.strip() == target]
    return places[0] if len(places) == 1 else -1


def _gold_by_acc(sample: _Sample) -> int:
    """Of two contexts with one continuation (WinoGrande) the sample names none; that the likelier is right it does."""
    best, acc = max(sample.likelihoods, default=0.0), sample.raw.get("acc")
    if len(sample.likelihoods) != 2 or sample.likelihoods.count(best) != 1 or acc not in (0, 1):
        return -1
    likelier = sample.likelihoods.index(best)
    return likelier if acc else 1 - likelier


def _doubt(sample: _Sample, gold: int) -> str:
    """Why a choice between log-likelihoods cannot be scored, or nothing."""
    if gold < 0:
        return SEVERAL_GOLD if str(sample.raw["target"]).startswith("[") else NO_GOLD
    if not all(math.isfinite(each) for each in sample.likelihoods):
        return NOT_FINITE
    best, acc = max(sample.likelihoods), sample.raw.get("acc")
    one_best = sample.likelihoods.count(best) == 1
    return CONTRADICTION if acc in (0, 1) and one_best and (sample.likelihoods[gold] == best) != acc else ""


def _unicode(requests: tuple[tuple[str, str], ...]) -> tuple[bool, tuple[tuple[str, str], ...]]:
    try:
        "".join(text for pair in requests for text in pair).encode()
        return True, requests
    except UnicodeEncodeError:
        plain = [tuple(text.encode(errors="backslashreplace").decode() for text in pair) for pair in requests]
        return False, tuple((context, choice) for context, choice in plain)


def _read(path: Path) -> str:
    try:
        return read_file(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is damaged: not UTF-8", remedy="score it again") from error


def _decode(path: Path, text: str, line: int) -> dict[str, Any]:
    # Not msgspec: the harness writes a bare NaN where a metric is undefined.
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}:{line}: is damaged: not JSON", remedy="score it again") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}:{line}: expected an object, got {type(raw).__name__}")
    return raw
