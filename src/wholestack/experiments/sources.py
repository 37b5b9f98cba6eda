"""The sources that a recipe names, as the data package knows them: a plain table, one line a kind."""

from collections.abc import Callable, Mapping
from pathlib import Path

from wholestack.data.folder import FolderSource, JsonLinesSource
from wholestack.data.python_library import CODE, PROSE, python_sources
from wholestack.data.source import Source
from wholestack.errors import InputError
from wholestack.experiments.recipe import Recipe, SourceKind, SourceSpec


def sources_of(recipe: Recipe) -> list[Source]:
    """Open the sources of a recipe; both halves of the standard library share one reading of it.

    Raises:
        InputError: a source of the standard library has another name than its text has in the ledger.
    """
    code, prose = python_sources()
    makers: Mapping[SourceKind, Callable[[SourceSpec], Source]] = {
        "python_code": lambda spec: _named(spec, CODE, code),
        "python_prose": lambda spec: _named(spec, PROSE, prose),
        "folder": lambda spec: FolderSource(Path(spec.path), spec.name, given=spec.licence or None),
        "jsonl": lambda spec: JsonLinesSource(Path(spec.path), spec.name),
    }
    return [makers[spec.kind](spec) for spec in recipe.sources]


def _named(spec: SourceSpec, name: str, source: Source) -> Source:
    if spec.name != name:
        raise InputError(f"source {spec.name!r}: the kind {spec.kind!r} is always named {name!r}")
    return source
