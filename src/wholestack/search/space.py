"""A search space: named dimensions, and the map between params and the matrix that the models see."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError
from wholestack.record import digest
from wholestack.search.dimensions import Array, Dimension, Value

Params: TypeAlias = dict[str, Value]


class Space:
    """The dimensions of a search, in a fixed order.

    Args:
        dimensions: At least one; names differ.

    Raises:
        InputError: no dimension, or two of one name.

    Example:
        >>> from wholestack.search import Log
        >>> Space([Log("lr", centre=1e-3)]).centre()
        {'lr': 0.001}
    """

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        self.dimensions: tuple[Dimension, ...] = tuple(dimensions)
        self.names: tuple[str, ...] = tuple(each.name for each in self.dimensions)
        if not self.dimensions:
            raise InputError("a search space needs at least one dimension")
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise InputError(f"dimension {twice[0]!r} is given twice")
        self.ordered: npt.NDArray[np.bool_] = np.array([each.ordered for each in self.dimensions])

    def __len__(self) -> int:
        return len(self.dimensions)

    def __repr__(self) -> str:
        return f"Space({list(self.dimensions)!r})"

    def describe(self) -> tuple[str, ...]:
        """One line a dimension; two spaces that describe alike are the same search."""
        return tuple(repr(each) for each in self.dimensions)

    def identity(self) -> str:
        """Hash of the description."""
        return digest(list(self.describe()))

    def centre(self) -> Params:
        """Params at the search centre."""
        return {each.name: each.centre for each in self.dimensions}

    def check(self, params: Mapping[str, Value]) -> None:
        """Refuse params that miss a dimension, name an unknown one, or hold a value that is not allowed.

        Raises:
            InputError: names the key and the value.
        """
        for key in params:
            if key not in self.names:
                near = difflib.get_close_matches(key, self.names, n=1)
                remedy = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(self.names)}"
                raise InputError(f"params have an unknown key {key!r} (value {params[key]!r})", remedy=remedy)
        for each in self.dimensions:
            if each.name not in params:
                raise InputError(f"params lack the key {each.name!r}")
            each.encode(params[each.name])

    def encode(self, many: Sequence[Mapping[str, Value]]) -> Array:
        """Coordinates [len(many), dimensions] of params."""
        rows = [[each.encode(params[each.name]) for each in self.dimensions] for params in many]
        return np.array(rows, np.float64).reshape(len(many), len(self))

    def decode(self, coordinates: Array) -> Params:
        """Params of one row of coordinates."""
        return {each.name: each.decode(float(x)) for each, x in zip(self.dimensions, coordinates, strict=True)}

    def snap(self, coordinates: Array) -> Array:
        """Coordinates [n, dimensions] of the nearest allowed points."""
        columns = [each.snap(coordinates[:, j]) for j, each in enumerate(self.dimensions)]
        return np.stack(columns, axis=1)

    def move(self, coordinates: Array, radius: Array, share: Array, rng: np.random.Generator) -> Array:
        """A local step from each point.

        Args:
            coordinates: [n, dimensions] allowed points.
            radius: [n] length of the step in units.
            share: [n] probability with which a dimension takes part; at least one always does.
            rng: Source of randomness.
        """
        count = len(coordinates)
        takes_part = rng.random(coordinates.shape) < share[:, None]
        takes_part[np.arange(count), rng.integers(0, len(self), count)] = True
        columns = [each.move(coordinates[:, j], radius, rng) for j, each in enumerate(self.dimensions)]
        return np.where(takes_part, np.stack(columns, axis=1), coordinates)
