"""The sources that a recipe names, as the data package knows them: a plain table, one line a kind."""

from collections.abc import Callable
from pathlib import Path

from wholestack.data.source import Source
from wholestack.experiments.recipe import Recipe, SourceSpec
