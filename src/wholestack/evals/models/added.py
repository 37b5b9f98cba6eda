"""A backend of an installed package: its name and version in the identity, and its mistakes in one line."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from wholestack.evals.backend import Backend, Expense, Generation, ItemScore, ModelIdentity, Writing
from wholestack.evals.items import Item
from wholestack.plugins import Plugin

T = TypeVar("T")


class AddedBackend:
    """A backend as its package gives it.

    Args:
        inner: The backend.
        plugin: Where it is from.

    Raises:
        InputError: it is no backend.
    """

    def __init__(self, inner: Backend, plugin: Plugin) -> None:
        self._inner, self._plugin = inner, plugin
        found: object = inner
        if not isinstance(found, Backend):
            raise plugin.fault(f"what it opened is no backend ({type(found).__name__})")
        if not isinstance(inner.identity, ModelIdentity):
            raise plugin.fault(f"gave {type(inner.identity).__name__} where ModelIdentity was due")

    @property
    def identity(self) -> ModelIdentity:
        """What it says of its model, and which package computes the numbers."""
        with self._plugin.blamed("cannot say what its model is"):
            said = self._inner.identity
        return replace(said, parts={**said.parts, "plug-in": self._plugin.package})

    def expense(self, items: Sequence[Item], prompts: Sequence[str] = (), writing: Writing | None = None) -> Expense:
        """As it says."""
        with self._plugin.blamed("cannot say what it takes"):
            return self._inner.expense(items, prompts, writing)

    def score(self, items: Sequence[Item], *, done: Collection[str] = ()) -> Iterator[ItemScore]:
        """As it scores."""
        with self._plugin.blamed("cannot score"):
            yield from self._each(self._inner.score(items, done=done), ItemScore)

    def generate(self, prompts: Sequence[str], writing: Writing) -> Iterator[Generation]:
        """As it writes."""
        with self._plugin.blamed("cannot write"):
            yield from self._each(self._inner.generate(prompts, writing), Generation)

    def _each(self, found: Iterator[T], kind: type[T]) -> Iterator[T]:
        for each in found:
            if not isinstance(each, kind):
                raise self._plugin.fault(f"gave {type(each).__name__} where {kind.__name__} was due")
            yield each
