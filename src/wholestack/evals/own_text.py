"""Items cut from somebody's own text: a folder, a JSON Lines file, or the Python library that is on every machine.

Fresh text makes the items that no model has memorised; text that is public since long, such as the Python library's,
does not, and a comparison on it says so only if its reader does.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from wholestack.data.folder import FolderSource, JsonLinesSource
from wholestack.data.python_library import python_sources
from wholestack.data.source import Document, Refusal, Source
from wholestack.errors import InputError
from wholestack.evals.continuation import build_continuation_items
from wholestack.evals.items import ItemSet


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnItems:
    """Items and what was not read for them."""

    items: ItemSet
    refused: dict[str, int]
    """Documents that were not taken, counted by reason."""


def own_sources(path: Path | None) -> list[Source]:
    """The sources behind a path: a folder, a file with ``text`` and ``licence`` a line; without one, Python's library.

    Raises:
        InputError: it is neither.
    """
    if path is None:
        return list(python_sources())
    if path.is_dir():
        return [FolderSource(root=path, given="LicenseRef-own")]
    if path.is_file():
        return [JsonLinesSource(file=path)]
    raise InputError(f"{path}: no such folder or file", remedy="name a folder of text, or a JSON Lines file")


def items_from_text(sources: Iterable[Source], *, count: int, seed: int) -> OwnItems:
    """Four-way continuation choices from documents, as evenly from each source as they allow.

    Args:
        sources: Where the text is.
        count: Items wanted.
        seed: Seed of every draw.

    Raises:
        InputError: the documents do not hold that many items, or a source cannot be read.
    """
    documents: list[Document] = []
    refused: Counter[str] = Counter()
    for source in sources:
        for each in source.documents():
            if isinstance(each, Refusal):
                refused[each.reason] += 1
                continue
            identity = hashlib.sha256(each.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            documents.append(Document(id=identity, source=source.name, path=each.path, text=each.text))
    remedy = "give more text, or a smaller --count"
    items = build_continuation_items(documents, count=count, seed=seed, remedy=remedy)
    return OwnItems(items=items, refused=dict(sorted(refused.items())))
