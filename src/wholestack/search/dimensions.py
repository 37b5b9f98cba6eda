"""Kinds of search dimension: how a value becomes a coordinate, and how a search steps along it.

The search sees one coordinate a dimension. For an ordered kind it is ``(f(value) - f(centre)) / scale`` with f the
identity (Linear), log10 (Log) or log10(v / (1 - v)) (Logit), so the centre is 0 and ``scale`` is the change of f that
counts as one unit; a local step has a standard deviation of a fraction of it (``radius``). For a categorical kind the
coordinate is the index of the choice, and only equality of two coordinates means anything.

A point that a step carries past a bound is put onto the bound. Dropping it (as CARBS does) loses almost every candidate
when many dimensions are bounded and never reaches the bound itself, where the optimum of a capped setting often lies;
reflecting it does not reach the bound either.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import erfc

from wholestack.errors import InputError

Array: TypeAlias = npt.NDArray[np.float64]
Value: TypeAlias = float | int | str

_RANGE_IN_UNITS = 4.0
"""A dimension with two bounds and no scale of its own spans this many units: a step of 0.3 is 7.5 % of the range."""


@runtime_checkable
class Dimension(Protocol):
    """What a search needs of a dimension; `wholestack.testing.dimensions` checks an implementation."""

    @property
    def name(self) -> str:
        """Key in the params."""

    @property
    def centre(self) -> Value:
        """Where the search starts; an allowed value."""

    @property
    def ordered(self) -> bool:
        """Whether distances between coordinates mean anything."""

    def encode(self, value: Value) -> float:
        """Coordinate of an allowed value; InputError, naming key and value, for any other."""

    def decode(self, coordinate: float) -> Value:
        """The allowed value nearest to a coordinate."""

    def snap(self, coordinates: Array) -> Array:
        """Coordinates of the allowed values nearest to the given ones."""

    def move(self, coordinates: Array, radius: Array, rng: np.random.Generator) -> Array:
        """Allowed coordinates [n], each about its ``radius`` [n] in units away from the given one [n]."""


@dataclass(frozen=True, slots=True)
class _Numeric:
    """What Linear, Log and Logit share; they differ in the map to the unscaled coordinate and in their domain."""

    name: str
    """Key in the params."""
    _: KW_ONLY
    centre: float
    """Where the search starts, in the value's own unit."""
    scale: float | None = None
    """Change of the transformed value that counts as one unit; a quarter of the range between two bounds, else 1."""
    low: float | None = None
    """Least allowed value, itself allowed."""
    high: float | None = None
    """Largest allowed value, itself allowed."""
    integer: bool = False
    """Whether values are whole numbers."""
    rounding: int = 1
    """Whole values are multiples of this."""

    @property
    def ordered(self) -> bool:
        """Distances mean something."""
        return True

    def __post_init__(self) -> None:
        self._check_domain()
        _refuse(self.rounding < 1, self.name, "rounding must be at least 1", self.rounding)
        _refuse(self.rounding != 1 and not self.integer, self.name, "rounding needs integer=True", self.rounding)
        least, most = self._ends()
        _refuse(least > most, self.name, f"no allowed value between low {self.low} and high", self.high)
        centred = self.centre if not self.integer else self._round(self.centre)
        _refuse(self.integer and not math.isclose(centred, self.centre), self.name, self._grid(), self.centre)
        _refuse(not least <= self.centre <= most, self.name, f"centre outside bounds {self._bounds()}:", self.centre)

    def encode(self, value: Value) -> float:
        """Coordinate of an allowed value."""
        number = _number(self.name, value)
        least, most = self._ends()
        _refuse(not least <= number <= most, self.name, f"value outside bounds {self._bounds()}:", value)
        _refuse(self.integer and self._round(number) != number, self.name, self._grid(), value)
        return float((self._forward(np.float64(number)) - self._origin()) / self._unit())

    def decode(self, coordinate: float) -> Value:
        """Nearest allowed value."""
        value = float(self._values(np.array([coordinate]))[0])
        return round(value) if self.integer else value

    def snap(self, coordinates: Array) -> Array:
        """Nearest allowed coordinates."""
        return np.asarray((self._forward(self._values(coordinates)) - self._origin()) / self._unit(), np.float64)

    def move(self, coordinates: Array, radius: Array, rng: np.random.Generator) -> Array:
        """Gaussian step; a whole number that would stay where it is goes one notch up or down half of the time."""
        start = self.snap(coordinates)
        moved = self.snap(coordinates + radius * rng.standard_normal(coordinates.shape))
        if not self.integer:
            return moved
        notch = self.rounding * rng.choice(np.array([-1.0, 0.0, 0.0, 1.0]), coordinates.shape)
        stepped = self._clip(self._values(coordinates) + notch)
        nudged = np.asarray((self._forward(stepped) - self._origin()) / self._unit(), np.float64)
        return np.where(moved == start, nudged, moved)

    def _values(self, coordinates: Array) -> Array:
        raw = self._backward(np.asarray(coordinates, np.float64) * self._unit() + self._origin())
        return self._clip(self.rounding * np.round(raw / self.rounding) if self.integer else raw)

    def _clip(self, values: Array) -> Array:
        return np.clip(values, *self._ends())

    def _round(self, value: float) -> float:
        return float(self.rounding * round(value / self.rounding))

    def _ends(self) -> tuple[float, float]:
        """Least and largest allowed value; of whole numbers the outermost multiples inside the bounds."""
        low, high = self._domain()
        low, high = max(low, low if self.low is None else self.low), min(high, high if self.high is None else self.high)
        if not self.integer:
            return low, high
        least = math.ceil(low / self.rounding) * self.rounding if math.isfinite(low) else low
        most = math.floor(high / self.rounding) * self.rounding if math.isfinite(high) else high
        return least, most

    def _origin(self) -> float:
        return float(self._forward(np.float64(self.centre)))

    def _unit(self) -> float:
        if self.scale is not None:
            return self.scale
        if self.low is None or self.high is None or self.low == self.high:
            return 1.0
        least, most = self._ends()
        return max(float(self._forward(np.float64(most)) - self._forward(np.float64(least))) / _RANGE_IN_UNITS, 1e-12)

    def _check_domain(self) -> None:
        least, most = self._domain()
        for key in ("centre", "low", "high", "scale"):
            value = getattr(self, key)
            _refuse(value is not None and not _is_finite(value), self.name, f"{key} must be a finite number:", value)
        for key in ("centre", "low", "high"):
            value = getattr(self, key)
            if value is not None:
                _refuse(not least <= value <= most, self.name, f"{key} must lie in {self._says_domain()}:", value)
        _refuse(self.scale is not None and self.scale <= 0, self.name, "scale must be positive:", self.scale)
        crossed = self.low is not None and self.high is not None and self.low > self.high
        _refuse(crossed, self.name, f"low {self.low} is above high", self.high)

    def _bounds(self) -> str:
        least, most = self._ends()
        return f"[{least:g}, {most:g}]"

    def _grid(self) -> str:
        return f"must be a multiple of {self.rounding}:" if self.rounding > 1 else "must be a whole number:"

    def _domain(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def _says_domain(self) -> str:
        return "the real numbers"

    def _forward(self, value: npt.ArrayLike) -> Array:
        return np.asarray(value, np.float64)

    def _backward(self, value: Array) -> Array:
        return value


@dataclass(frozen=True, slots=True)
class Linear(_Numeric):
    """A number that is searched as it is.

    Example:
        >>> Linear("layers", centre=4, low=2, high=12, integer=True).decode(0.0)
        4
    """


@dataclass(frozen=True, slots=True)
class Log(_Numeric):
    """A positive number that is searched in decades: learning rate, width, tokens.

    Example:
        >>> Log("width", centre=256, low=64, high=1024, integer=True, rounding=64).decode(0.1)
        256
    """

    def _domain(self) -> tuple[float, float]:
        return (1.0 if self.integer else np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)

    def _says_domain(self) -> str:
        return "the whole numbers from 1" if self.integer else "the positive numbers"

    def _forward(self, value: npt.ArrayLike) -> Array:
        return np.asarray(np.log10(value), np.float64)

    def _backward(self, value: Array) -> Array:
        return np.asarray(10.0 ** np.clip(value, -307.0, 308.0), np.float64)


@dataclass(frozen=True, slots=True)
class Logit(_Numeric):
    """A fraction between 0 and 1, neither included, that is searched in decades of its odds: warm-up, mixture weight.

    Example:
        >>> Logit("prose", centre=0.5).decode(0.0)
        0.5
    """

    def __post_init__(self) -> None:
        _refuse(self.integer, self.name, "a Logit dimension cannot be integer:", self.integer)
        _Numeric.__post_init__(self)

    def _domain(self) -> tuple[float, float]:
        return 1e-15, 1.0 - 1e-15

    def _says_domain(self) -> str:
        return "(0, 1)"

    def _forward(self, value: npt.ArrayLike) -> Array:
        fraction = np.asarray(value, np.float64)
        return np.asarray(np.log10(fraction) - np.log10(1.0 - fraction), np.float64)

    def _backward(self, value: Array) -> Array:
        odds = 10.0 ** np.clip(value, -300.0, 300.0)
        return np.asarray(odds / (1.0 + odds), np.float64)


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of a few named choices without order.

    Example:
        >>> Categorical("activation", choices=("relu", "gelu"), centre="gelu").decode(1.0)
        'gelu'
    """

    name: str
    """Key in the params."""
    _: KW_ONLY
    choices: tuple[Value, ...]
    """The choices: strings, or numbers that shall not be ordered."""
    centre: Value
    """The choice that the search starts with."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", tuple(self.choices))
        _refuse(not self.choices, self.name, "choices must not be empty:", self.choices)
        _refuse(len(set(self.choices)) < len(self.choices), self.name, "choices must differ:", self.choices)
        _refuse(self.centre not in self.choices, self.name, f"centre not among choices {self.choices}:", self.centre)

    @property
    def ordered(self) -> bool:
        """Distances mean nothing."""
        return False

    def encode(self, value: Value) -> float:
        """Index of the choice."""
        _refuse(value not in self.choices, self.name, f"value not among choices {self.choices}:", value)
        return float(self.choices.index(value))

    def decode(self, coordinate: float) -> Value:
        """Choice of the nearest index."""
        return self.choices[int(self.snap(np.array([coordinate]))[0])]

    def snap(self, coordinates: Array) -> Array:
        """Nearest index."""
        return np.asarray(np.clip(np.round(coordinates), 0, len(self.choices) - 1), np.float64)

    def move(self, coordinates: Array, radius: Array, rng: np.random.Generator) -> Array:
        """Another choice, with the probability that a Gaussian step of the radius leaves the middle half of a unit."""
        leaves = erfc(0.5 / (math.sqrt(2.0) * np.maximum(radius, 1e-9)))
        drawn = rng.integers(0, len(self.choices), coordinates.shape).astype(np.float64)
        return np.where(rng.random(coordinates.shape) < np.maximum(leaves, 0.05), drawn, self.snap(coordinates))


def _number(name: str, value: Value) -> float:
    _refuse(not _is_finite(value), name, "value must be a finite number:", value)
    return float(value)


def _is_finite(value: object) -> bool:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]


def _refuse(wrong: bool, name: str, says: str, value: object) -> None:
    if wrong:
        raise InputError(f"dimension {name!r}: {says} {value!r}")


Maker: TypeAlias = Callable[..., Dimension]

BUILT_IN: dict[str, Maker] = {"linear": Linear, "log": Log, "logit": Logit, "categorical": Categorical}
"""Kinds by the name that a configuration file uses."""
